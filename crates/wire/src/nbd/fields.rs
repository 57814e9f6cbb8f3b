//! Big-endian fields: read in order from complete bytes, and written.

use super::error::Error;
use super::numbers::STRING_BYTES_MAX;

/// Fields in order. Running out of bytes is an error that names the field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, Error> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Error> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Error> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// A string of `length` bytes: UTF-8, at most [`STRING_BYTES_MAX`] long.
    pub(crate) fn text(&mut self, length: usize, field: &'static str) -> Result<&'a str, Error> {
        if length > STRING_BYTES_MAX {
            let detail =
                format!("expected a string of at most {STRING_BYTES_MAX} bytes, found {length}");
            return Err(Error::malformed(field, detail));
        }
        let bytes = self.bytes(length, field)?;
        std::str::from_utf8(bytes)
            .map_err(|error| Error::malformed(field, format!("expected UTF-8: {error}")))
    }

    /// The next `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], Error> {
        let found = self.rest.len();
        let Some((bytes, rest)) = self.rest.split_at_checked(length) else {
            let detail = format!("expected {length} bytes, found {found}");
            return Err(Error::malformed(field, detail));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Everything that was not read.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Demands that everything was read.
    pub(crate) fn end(self, field: &'static str) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let detail = format!("expected no more bytes, found {}", self.rest.len());
        Err(Error::malformed(field, detail))
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Error> {
        let found = self.rest.len();
        let Some((array, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(Error::malformed(field, format!("expected {N} bytes, found {found}")));
        };
        self.rest = rest;
        Ok(*array)
    }
}

/// Appends big-endian numbers.
pub(crate) trait Put {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }
}
