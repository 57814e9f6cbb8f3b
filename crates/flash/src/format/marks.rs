//! The marks behind write buffers that outlive the process: how much of each buffer the device has
//! confirmed, and which write it confirmed last.

use super::{u32_at, u64_at};

/// Bytes of a buffer's mark.
pub(crate) const MARK_BYTES: usize = 4;

/// Bytes of what says which write was confirmed last.
pub(crate) const LAST_WRITE_BYTES: usize = 24;

/// The last write that a device confirmed: who finds the buffers sees by it whether the device is
/// still in that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub segment: u32,
    pub sequence: u64,
    /// Bytes of the segment that are confirmed.
    pub end: u32,
}

impl LastWrite {
    /// Writes it to the end of `marks`.
    pub(crate) fn encode(self, marks: &mut [u8]) {
        let at = marks.len() - LAST_WRITE_BYTES;
        let out = &mut marks[at..];
        out[4..8].copy_from_slice(&self.segment.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..20].copy_from_slice(&self.end.to_le_bytes());
        let crc = crc32c::crc32c(&out[4..20]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Nothing is said at the end of `marks` any more.
    pub(crate) fn forget(marks: &mut [u8]) {
        let at = marks.len() - LAST_WRITE_BYTES;
        marks[at..].fill(0);
    }

    /// What the end of `marks` says; `None` if nothing was confirmed, or the process ended while it
    /// was being noted.
    pub(crate) fn decode(marks: &[u8]) -> Option<LastWrite> {
        let bytes = marks.get(marks.len().checked_sub(LAST_WRITE_BYTES)?..)?;
        let last = LastWrite {
            segment: u32_at(bytes, 4)?,
            sequence: u64_at(bytes, 8)?,
            end: u32_at(bytes, 16)?,
        };
        let sound = u32_at(bytes, 0)? == crc32c::crc32c(bytes.get(4..20)?);
        (sound && last.sequence != 0).then_some(last)
    }
}

/// The mark of buffer number `buffer` among those of its shard; `None` if it has none.
pub(crate) fn mark_of(marks: &[u8], buffer: usize) -> Option<u32> {
    u32_at(marks.get(buffer * MARK_BYTES..(buffer + 1) * MARK_BYTES)?, 0)
}

/// Writes that mark.
pub(crate) fn set_mark(marks: &mut [u8], buffer: usize, confirmed: u32) {
    let at = buffer * MARK_BYTES;
    marks[at..at + MARK_BYTES].copy_from_slice(&confirmed.to_le_bytes());
}
