//! The bytes of a read, assembled from chunks in any order.

use super::chunk::Chunk;
use super::error::Error;
use super::numbers::ErrorCode;

/// The bytes of a read, as its chunks come in.
///
/// Invariant: what is covered are ranges in order that neither overlap nor touch.
#[derive(Debug, Clone)]
pub struct ReadAssembly {
    offset: u64,
    bytes: Vec<u8>,
    covered: Vec<(usize, usize)>,
    failure: Option<(ErrorCode, String)>,
}

impl ReadAssembly {
    /// Nothing yet of `length` bytes from `offset` on.
    pub fn new(offset: u64, length: u32) -> ReadAssembly {
        let bytes = vec![0; length as usize];
        ReadAssembly { offset, bytes, covered: Vec::new(), failure: None }
    }

    /// Takes a chunk of the reply.
    ///
    /// # Errors
    /// It is none that may come here: outside the read, over another one, or of another command.
    /// The connection cannot be trusted.
    pub fn put(&mut self, chunk: Chunk<'_>) -> Result<(), Error> {
        match chunk {
            Chunk::None => Ok(()),
            Chunk::Data { offset, bytes } => {
                let start = self.cover(offset, bytes.len() as u64)?;
                if let Some(target) = self.bytes.get_mut(start..start + bytes.len()) {
                    target.copy_from_slice(bytes);
                }
                Ok(())
            }
            Chunk::Hole { offset, length } => self.cover(offset, u64::from(length)).map(drop),
            Chunk::Error { code, message, .. } => {
                self.failure.get_or_insert_with(|| (code, message.to_owned()));
                Ok(())
            }
            Chunk::Status { .. } => {
                let detail = "expected data, a hole or an error, found a block status";
                Err(Error::malformed("type of a chunk of a read", detail))
            }
        }
    }

    /// The bytes, or how the read failed, after the last chunk.
    ///
    /// # Errors
    /// The server claims success, but some of the bytes did not come.
    pub fn finish(self) -> Result<Result<Vec<u8>, (ErrorCode, String)>, Error> {
        if let Some(failure) = self.failure {
            return Ok(Err(failure));
        }
        let is_whole = match self.covered.as_slice() {
            [] => self.bytes.is_empty(),
            [(0, end)] => *end == self.bytes.len(),
            _ => false,
        };
        if !is_whole {
            let found: usize = self.covered.iter().map(|(start, end)| end - start).sum();
            let detail = format!("expected {} bytes, found {found}", self.bytes.len());
            return Err(Error::malformed("chunks of a read", detail));
        }
        Ok(Ok(self.bytes))
    }

    /// Marks a range as come; returns where it begins in the read.
    fn cover(&mut self, offset: u64, length: u64) -> Result<usize, Error> {
        let wrong = |what: &str| {
            let detail = format!(
                "expected a part of {} bytes at {} {what}, found {length} bytes at {offset}",
                self.bytes.len(),
                self.offset
            );
            Error::malformed("range of a chunk of a read", detail)
        };
        let start = offset.checked_sub(self.offset);
        let end = start.and_then(|start| start.checked_add(length));
        let (start, end) = match (start, end) {
            (Some(start), Some(end)) if end <= self.bytes.len() as u64 => {
                (start as usize, end as usize)
            }
            _ => return Err(wrong("that was asked for")),
        };
        let place = self.covered.partition_point(|(_, other)| *other < start);
        // From `place` on: ranges that end at the new one's start or later.
        let mut merged = (start, end);
        let mut count = 0;
        for (other_start, other_end) in self.covered.iter().skip(place) {
            if *other_start > end {
                break;
            }
            if *other_end > start && *other_start < end {
                return Err(wrong("that did not come yet"));
            }
            merged = (merged.0.min(*other_start), merged.1.max(*other_end));
            count += 1;
        }
        self.covered.splice(place..place + count, [merged]);
        Ok(start)
    }
}
