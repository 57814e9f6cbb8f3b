//! Replies, appended to a buffer in the version of the protocol that the connection speaks.
//!
//! Invariant: the caller writes exactly as many elements as it announced; nothing here counts them.

use super::number::{format_double, format_integer};

/// The version of RESP that a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Version 2, spoken until a client says otherwise.
    #[default]
    Resp2,
    /// Version 3.
    Resp3,
}

/// A writer of replies onto the end of a buffer.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    /// Writes onto the end of `out`.
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Reply<'a> {
        Reply { out, protocol }
    }

    /// A writer onto the end of the same buffer, for a shorter time.
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply { out: self.out, protocol: self.protocol }
    }

    /// The version written.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Bytes in the buffer: a mark for [`Reply::rewind`].
    pub fn mark(&self) -> usize {
        self.out.len()
    }

    /// Takes back everything written since `mark`.
    pub fn rewind(&mut self, mark: usize) {
        self.out.truncate(mark);
    }

    /// A simple string; `text` has no line break.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error: `text` starts with its code, for example `ERR`. Line breaks become spaces.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        let clean = |byte: u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        self.out.extend(text.bytes().map(clean));
        self.end_line();
    }

    /// An integer.
    pub fn integer(&mut self, number: i64) {
        self.number_line(b':', number);
    }

    /// A string of any bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len() + 32);
        self.number_line(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.end_line();
    }

    /// The absence of a value.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The absence of an array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Opens an array of `count` elements.
    pub fn array(&mut self, count: usize) {
        self.number_line(b'*', count as i64);
    }

    /// Opens a map of `count` pairs; version 2 has an array of twice as many elements.
    pub fn map(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.number_line(b'*', 2 * count as i64),
            Protocol::Resp3 => self.number_line(b'%', count as i64),
        }
    }

    /// Opens a set of `count` elements; version 2 has an array.
    pub fn set(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.number_line(b'*', count as i64),
            Protocol::Resp3 => self.number_line(b'~', count as i64),
        }
    }

    /// A floating-point number; version 2 has a string.
    pub fn double(&mut self, number: f64) {
        let mut text = Vec::with_capacity(24);
        format_double(number, &mut text);
        match self.protocol {
            Protocol::Resp2 => self.bulk(&text),
            Protocol::Resp3 => self.line(b',', &text),
        }
    }

    /// Text for people; version 2 has a string.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.number_line(b'=', text.len() as i64 + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.end_line();
            }
        }
    }

    /// Bytes that are replies already.
    pub fn raw(&mut self, encoded: &[u8]) {
        self.out.extend_from_slice(encoded);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.end_line();
    }

    fn number_line(&mut self, kind: u8, number: i64) {
        self.out.push(kind);
        format_integer(number, self.out);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, protocol));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_kind_has_the_form_of_its_version() {
        let both = |write: fn(&mut Reply<'_>)| {
            (written(Protocol::Resp2, write), written(Protocol::Resp3, write))
        };
        for (write, two, three) in [
            ((|r| r.null()) as fn(&mut Reply<'_>), "$-1\r\n", "_\r\n"),
            (|r| r.null_array(), "*-1\r\n", "_\r\n"),
            (|r| r.map(2), "*4\r\n", "%2\r\n"),
            (|r| r.set(2), "*2\r\n", "~2\r\n"),
            (|r| r.double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (|r| r.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n"),
            (|r| r.verbatim("hi"), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
            (|r| r.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (|r| r.integer(-7), ":-7\r\n", ":-7\r\n"),
            (|r| r.error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
        ] {
            assert_eq!(both(write), (two.to_owned(), three.to_owned()));
        }
    }
}
