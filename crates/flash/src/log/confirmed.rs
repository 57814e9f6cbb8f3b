//! How much of each write buffer the device has said it holds: for whoever finds the buffers after
//! the process was killed.
//!
//! What a device shows of a write that failed may be gone later, although a sync has succeeded in
//! between. A process may be killed before it hears of the failure; so the next one takes for
//! written what is confirmed here, and writes the rest of a buffer again.

use std::ops::Range;

use entresol_device::{WriteBuffer, WriteMode};

use super::Log;

/// Bytes of a buffer's mark.
pub(crate) const MARK_BYTES: usize = 4;

/// The write buffers of a shard.
pub(crate) struct ShardBuffers {
    pub buffers: Vec<WriteBuffer>,
    /// A mark for each of them, if they outlive the process: bytes that are confirmed, u32.
    pub marks: Option<WriteBuffer>,
}

/// A write in flight.
#[derive(Debug)]
pub(super) struct Write {
    pub number: u64,
    /// `NO_BUFFER`: it erases a header.
    pub buffer: u16,
    pub mode: WriteMode,
    /// Bytes of the buffer.
    pub range: Range<usize>,
}

/// The mark of buffer number `buffer` among those of its shard; `None` if it has none.
pub(crate) fn mark_of(marks: &[u8], buffer: usize) -> Option<u32> {
    let bytes = marks.get(buffer * MARK_BYTES..(buffer + 1) * MARK_BYTES)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

impl Log {
    /// Notes that `write`, which is in flight no more, has succeeded.
    pub(super) fn confirm(&mut self, write: &Write) {
        let buffer = &mut self.buffers[write.buffer as usize];
        buffer.written = buffer.written.max(write.range.end);
        let others = self.writes.iter().filter(|other| other.buffer == write.buffer);
        let before = others.map(|other| other.range.start).min();
        let confirmed = before.unwrap_or(buffer.written).min(buffer.written);
        self.mark(write.buffer, confirmed as u32);
    }

    /// Nothing of a buffer is written: it gets other contents.
    pub(super) fn unconfirm(&mut self, buffer: u16) {
        self.buffers[buffer as usize].written = 0;
        self.mark(buffer, 0);
        // The mark is down before the contents change, also for who finds both after a kill.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn mark(&mut self, buffer: u16, confirmed: u32) {
        if let Some(marks) = &mut self.marks {
            let at = usize::from(buffer) * MARK_BYTES;
            marks.bytes_mut()[at..at + MARK_BYTES].copy_from_slice(&confirmed.to_le_bytes());
        }
    }
}
