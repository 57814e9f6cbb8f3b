//! What continues a record of the journal: it stands right behind the record, without alignment and
//! with a header of eight bytes.
//!
//! The checksum goes on from that of what is continued, so that bytes of a former use of the memory
//! or of the segment continue nothing.

use super::{u16_at, u32_at};

/// Bytes of the header.
pub(crate) const CONTINUATION_BYTES: usize = 8;

/// The header of a continuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Continuation {
    /// Stored bytes behind the header; at least one.
    pub bytes: u16,
    /// So far above the sequence of what is continued its own is; at least one.
    pub distance: u16,
    pub crc: u32,
}

impl Continuation {
    /// The header of `stored`, behind what has the checksum `before`.
    pub(crate) fn of(before: u32, distance: u16, stored: &[u8]) -> Continuation {
        let bytes = stored.len() as u16;
        let crc = checksum(before, bytes, distance, stored);
        Continuation { bytes, distance, crc }
    }

    pub(crate) fn encode(&self) -> [u8; CONTINUATION_BYTES] {
        let mut out = [0; CONTINUATION_BYTES];
        out[..4].copy_from_slice(&lengths(self.bytes, self.distance));
        out[4..].copy_from_slice(&self.crc.to_le_bytes());
        out
    }

    /// The header at the start of `bytes` and what it stands before, if that continues what has the
    /// checksum `before`.
    pub(crate) fn decode(bytes: &[u8], before: u32) -> Option<(Continuation, &[u8])> {
        let (length, distance) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
        if length == 0 || distance == 0 {
            return None;
        }
        let end = CONTINUATION_BYTES + usize::from(length);
        let stored = bytes.get(CONTINUATION_BYTES..end)?;
        let crc = u32_at(bytes, 4)?;
        let found = Continuation { bytes: length, distance, crc };
        (checksum(before, length, distance, stored) == crc).then_some((found, stored))
    }
}

fn checksum(before: u32, bytes: u16, distance: u16, stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(before, &lengths(bytes, distance)), stored)
}

fn lengths(bytes: u16, distance: u16) -> [u8; 4] {
    let [low, high] = bytes.to_le_bytes();
    let [near, far] = distance.to_le_bytes();
    [low, high, near, far]
}
