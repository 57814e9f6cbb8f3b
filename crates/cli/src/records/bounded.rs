//! Input whose records have a longest length.
//!
//! Readers of lines and of CSV gather a record in memory until it ends. In a file of another kind,
//! such as an array of JSON in one line, or behind a quote that is never closed, the record would
//! be the whole file.

use std::cell::Cell;
use std::io::{self, BufRead, ErrorKind, Read};
use std::rc::Rc;

/// Longest record, in bytes. No entry needs a longer one: its value has at most 64 MiB, and a byte
/// is written with six at most.
pub(crate) const RECORD_BYTES_MAX: u64 = 512 << 20;

/// Bytes that a record may still have.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    left: Rc<Cell<u64>>,
    most: u64,
}

impl Allowance {
    /// Records of `most` bytes.
    pub(crate) fn new(most: u64) -> Allowance {
        Allowance { left: Rc::new(Cell::new(most)), most }
    }

    /// `input`, which fails where a record is longer.
    pub(crate) fn bound<R>(&self, input: R) -> Bounded<R> {
        Bounded { input, allowance: self.clone() }
    }

    /// A record begins.
    pub(crate) fn renew(&self) {
        self.left.set(self.most);
    }

    fn take(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_sub(bytes as u64));
    }

    /// How many of `bytes` may be read.
    fn of(&self, bytes: usize) -> io::Result<usize> {
        let allowed = usize::try_from(self.left.get()).map_or(bytes, |left| left.min(bytes));
        if allowed > 0 || bytes == 0 {
            return Ok(allowed);
        }
        let what = format!(
            "the record that begins here is longer than {} bytes, which no entry needs: a quote is \
             not closed, or the file has another format",
            self.most
        );
        Err(io::Error::new(ErrorKind::InvalidData, what))
    }
}

/// Input that fails where a record is longer than it may be.
pub(crate) struct Bounded<R> {
    input: R,
    allowance: Allowance,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowance.of(buffer.len())?;
        let read = self.input.read(&mut buffer[..allowed])?;
        self.allowance.take(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let found = self.input.fill_buf()?;
        let allowed = self.allowance.of(found.len())?;
        Ok(&found[..allowed])
    }

    fn consume(&mut self, bytes: usize) {
        self.allowance.take(bytes);
        self.input.consume(bytes);
    }
}
