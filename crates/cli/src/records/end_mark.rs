//! A mark behind the last record of CSV: an unclosed quote takes it in.
//!
//! The same text within the input is not a mark: the position of the reader decides.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use csv::StringRecord;

/// Stands behind the input.
const MARK: &str = "\n\0the end\0\n";

/// How long the input is that stands before the mark.
#[derive(Debug, Clone, Default)]
pub(crate) struct InputEnd {
    /// Bytes of the input that were read.
    bytes: Rc<Cell<u64>>,
}

impl InputEnd {
    /// `input` with the mark behind it.
    pub(crate) fn behind<R: Read>(&self, input: R) -> Marked<R> {
        Marked { input, end: self.clone(), unread: MARK.as_bytes() }
    }

    /// Whether `record`, behind which the reader is at byte `position`, is the mark.
    pub(crate) fn is_mark(&self, record: &StringRecord, position: u64) -> bool {
        self.is_behind(position) && record.len() == 1 && record.get(0) == Some(MARK.trim())
    }

    /// Whether the last field of `record`, behind which the reader is at byte `position`, goes on
    /// to the end of the input.
    pub(crate) fn is_open(&self, record: &StringRecord, position: u64) -> bool {
        let last = record.iter().next_back();
        self.is_behind(position) && last.is_some_and(|last| last.ends_with(MARK))
    }

    fn is_behind(&self, position: u64) -> bool {
        position > self.bytes.get()
    }
}

/// Input and the mark behind it.
pub(crate) struct Marked<R> {
    input: R,
    end: InputEnd,
    unread: &'static [u8],
}

impl<R: Read> Read for Marked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.end.bytes.set(self.end.bytes.get() + read as u64);
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        self.unread.read(buffer)
    }
}
