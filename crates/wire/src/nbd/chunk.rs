//! Payloads of chunks, as a client reads them.

use super::error::Error;
use super::fields::Fields;
use super::numbers::{ErrorCode, STRING_BYTES_MAX, chunk_type};

/// A piece of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// Nothing: the reply ends.
    None,
    /// Bytes of the export.
    Data {
        /// Where they stand.
        offset: u64,
        /// At least one.
        bytes: &'a [u8],
    },
    /// Zeros of the export.
    Hole {
        /// Where they stand.
        offset: u64,
        /// How many, at least one.
        length: u32,
    },
    /// How a range stands in a context.
    Status {
        /// The number of the context.
        context: u32,
        /// Consecutive extents from the request's offset on, at least one.
        extents: Extents<'a>,
    },
    /// The request failed.
    Error {
        /// How.
        code: ErrorCode,
        /// What the server says to people; may be empty.
        message: &'a str,
        /// Where it failed, if that is known.
        offset: Option<u64>,
    },
}

impl<'a> Chunk<'a> {
    /// The chunk of type `kind` that `payload` is.
    ///
    /// # Errors
    /// There is no such type, or the payload is none of it: the connection cannot be trusted.
    pub fn decode(kind: u16, payload: &'a [u8]) -> Result<Chunk<'a>, Error> {
        let mut fields = Fields::new(payload);
        match kind {
            chunk_type::NONE => {
                fields.end("payload of an empty chunk")?;
                Ok(Chunk::None)
            }
            chunk_type::OFFSET_DATA => {
                let offset = fields.u64("offset of a data chunk")?;
                let bytes = fields.rest();
                if bytes.is_empty() {
                    let detail = "expected at least 9 bytes, found 8";
                    return Err(Error::malformed("payload of a data chunk", detail));
                }
                Ok(Chunk::Data { offset, bytes })
            }
            chunk_type::OFFSET_HOLE => {
                let offset = fields.u64("offset of a hole chunk")?;
                let length = fields.u32("length of a hole chunk")?;
                fields.end("payload of a hole chunk")?;
                if length == 0 {
                    let detail = "expected at least 1 byte, found 0";
                    return Err(Error::malformed("length of a hole chunk", detail));
                }
                Ok(Chunk::Hole { offset, length })
            }
            chunk_type::BLOCK_STATUS => {
                let context = fields.u32("context of a status chunk")?;
                let extents = Extents { rest: fields.rest(), descriptor_bytes: 8 };
                extents.check()?;
                Ok(Chunk::Status { context, extents })
            }
            chunk_type::BLOCK_STATUS_EXTENDED => {
                let context = fields.u32("context of a status chunk")?;
                let count = fields.u32("descriptor count of a status chunk")?;
                let extents = Extents { rest: fields.rest(), descriptor_bytes: 16 };
                extents.check()?;
                if extents.count() != count as usize {
                    let detail =
                        format!("expected {} as there are, found {count}", extents.count());
                    return Err(Error::malformed("descriptor count of a status chunk", detail));
                }
                Ok(Chunk::Status { context, extents })
            }
            _ if kind & chunk_type::ERROR_BIT != 0 => error(kind, fields),
            _ => {
                let detail = format!("expected one that the protocol has, found {kind}");
                Err(Error::malformed("type of a chunk", detail))
            }
        }
    }
}

fn error<'a>(kind: u16, mut fields: Fields<'a>) -> Result<Chunk<'a>, Error> {
    let number = fields.u32("error of an error chunk")?;
    if number == 0 {
        let detail = "expected an error's number, found 0";
        return Err(Error::malformed("error of an error chunk", detail));
    }
    let length = fields.u16("length of an error's message")?;
    if usize::from(length) > STRING_BYTES_MAX {
        let detail = format!("expected at most {STRING_BYTES_MAX}, found {length}");
        return Err(Error::malformed("length of an error's message", detail));
    }
    let message = fields.bytes(usize::from(length), "message of an error chunk")?;
    let offset = match kind {
        chunk_type::ERROR_OFFSET => Some(fields.u64("offset of an error chunk")?),
        _ => None,
    };
    if matches!(kind, chunk_type::ERROR | chunk_type::ERROR_OFFSET) {
        fields.end("payload of an error chunk")?;
    }
    let code = ErrorCode::from_number(number);
    // A message in another encoding is no reason to lose the error that it goes with.
    let message = std::str::from_utf8(message).unwrap_or_default();
    Ok(Chunk::Error { code, message, offset })
}

/// An extent of a block status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusExtent {
    /// Its length in bytes, more than 0.
    pub length: u64,
    /// Its flags, as the context defines them.
    pub flags: u64,
}

/// The extents of a block status, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents<'a> {
    rest: &'a [u8],
    descriptor_bytes: usize,
}

impl Extents<'_> {
    fn check(&self) -> Result<(), Error> {
        if self.rest.is_empty() || !self.rest.len().is_multiple_of(self.descriptor_bytes) {
            let detail = format!(
                "expected descriptors of {} bytes, at least one, found {} bytes",
                self.descriptor_bytes,
                self.rest.len()
            );
            return Err(Error::malformed("payload of a status chunk", detail));
        }
        if self.into_iter().any(|extent| extent.length == 0) {
            let detail = "expected at least 1 byte, found 0";
            return Err(Error::malformed("length of an extent", detail));
        }
        Ok(())
    }
}

impl Iterator for Extents<'_> {
    type Item = StatusExtent;

    fn next(&mut self) -> Option<StatusExtent> {
        let (descriptor, rest) = self.rest.split_at_checked(self.descriptor_bytes)?;
        self.rest = rest;
        let mut fields = Fields::new(descriptor);
        let is_extended = self.descriptor_bytes == 16;
        let mut next = |field| {
            if is_extended { fields.u64(field).ok() } else { fields.u32(field).ok().map(u64::from) }
        };
        Some(StatusExtent { length: next("length")?, flags: next("flags")? })
    }
}
