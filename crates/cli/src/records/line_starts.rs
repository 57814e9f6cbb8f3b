//! The line in which a record begins.
//!
//! The reader of CSV counts a line too early: before the second half of a CRLF, and before empty
//! lines.

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

    /// A record is read next that begins at or behind byte `offset`. Lines before it are forgotten.
    pub(crate) fn begin(&self, offset: u64) {
        let mut seen = self.seen.borrow_mut();
        while seen.starts.front().is_some_and(|(start, _)| *start < offset) {
            seen.starts.pop_front();
        }
    }

    /// The line, from 1, that the record begins in.
    pub(crate) fn line(&self) -> u64 {
        let seen = self.seen.borrow();
        seen.starts.front().map_or(seen.newlines + 1, |(_, line)| *line)
    }

    fn note(&self, bytes: &[u8]) {
        let mut seen = self.seen.borrow_mut();
        // More is read once all that was is taken in: the other lines are within the record, which
        // may be long.
        seen.starts.truncate(1);
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

#[cfg(test)]
mod tests {
    use super::*;

    // Sixteen bytes were kept for each line behind a quote that nobody closes, beside the bound of
    // a record's length.
    #[test]
    fn a_record_of_many_lines_keeps_no_more_of_them_than_are_read_at_once() {
        let lines = LineStarts::default();
        let text = "a\n".repeat(1 << 20) + "b";
        let mut input = lines.of(text.as_bytes());
        lines.begin(0);
        let mut buffer = [0; 8 << 10];
        while input.read(&mut buffer).unwrap() > 0 {
            assert!(lines.seen.borrow().starts.len() <= buffer.len());
        }
        assert_eq!(lines.line(), 1);
        lines.begin(2 << 20);
        assert_eq!(lines.line(), (1 << 20) + 1);
    }
}
