//! Which line a record begins in.
//!
//! The reader of CSV counts a line where the next record's first byte may be: before the second
//! half of a CRLF, and before lines that are empty.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

/// Where the lines begin of what was read and not yet taken for a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineStarts {
    seen: Rc<RefCell<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    bytes: u64,
    newlines: u64,
    within_line: bool,
    /// Offset and number of lines that are not empty.
    starts: VecDeque<(u64, u64)>,
}

impl LineStarts {
    /// `input`, whose lines are noted as they are read.
    pub(crate) fn of<R>(&self, input: R) -> Noted<R> {
        Noted { input, lines: self.clone() }
    }

    /// The line, from 1, of the first record at or behind byte `offset`. Those before it are
    /// forgotten.
    pub(crate) fn line_at(&self, offset: u64) -> u64 {
        let mut seen = self.seen.borrow_mut();
        while seen.starts.front().is_some_and(|(start, _)| *start < offset) {
            seen.starts.pop_front();
        }
        seen.starts.front().map_or(seen.newlines + 1, |(_, line)| *line)
    }

    fn note(&self, bytes: &[u8]) {
        let mut seen = self.seen.borrow_mut();
        for byte in bytes {
            match byte {
                b'\n' => {
                    seen.newlines += 1;
                    seen.within_line = false;
                }
                b'\r' => {}
                _ if !seen.within_line => {
                    seen.within_line = true;
                    let start = (seen.bytes, seen.newlines + 1);
                    seen.starts.push_back(start);
                }
                _ => {}
            }
            seen.bytes += 1;
        }
    }
}

/// Input whose lines are noted.
pub(crate) struct Noted<R> {
    input: R,
    lines: LineStarts,
}

impl<R: Read> Read for Noted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.lines.note(&buffer[..read]);
        Ok(read)
    }
}
