//! How much of each write buffer the device has said it holds: for whoever finds the buffers after
//! the process was killed.
//!
//! What a device shows of a write that failed may be gone later, although a sync has succeeded in
//! between. A process may be killed before it hears of the failure; so the next one takes for
//! written what is confirmed here, and writes the rest of a buffer again.

use std::ops::Range;

use entresol_device::{WriteBuffer, WriteMode};

use super::{Buffer, Log};
use crate::error::Result;
use crate::format::{LastWrite, SEGMENT_HEADER_BYTES, set_mark};
use crate::segment::NO_BUFFER;

/// The write buffers of a shard.
pub(crate) struct ShardBuffers {
    pub buffers: Vec<WriteBuffer>,
    /// A mark for each of them, if they outlive the process: bytes that are confirmed, u32; and at
    /// its end the last write that was.
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

impl Log {
    /// Notes that `write`, which is in flight no more, has succeeded.
    pub(super) fn confirm(&mut self, write: &Write) {
        let buffer = &mut self.buffers[write.buffer as usize];
        buffer.written = buffer.written.max(write.range.end);
        let others = self.writes.iter().filter(|other| other.buffer == write.buffer);
        let before = others.map(|other| other.range.start).min();
        let confirmed = before.unwrap_or(buffer.written).min(buffer.written);
        let segment = buffer.segment;
        self.mark(write.buffer, confirmed as u32);
        let Some(segment) = segment.filter(|_| confirmed > 0) else { return };
        let sequence = self.segments[segment as usize].sequence;
        let last = LastWrite { segment, sequence, end: confirmed as u32 };
        if let Some(marks) = &mut self.marks
            && self.last_write.is_none_or(|before| before.sequence <= sequence)
        {
            last.encode(marks.bytes_mut());
            self.last_write = Some(last);
        }
    }

    /// The segment is about to be erased: what the device held of it says nothing any more.
    pub(super) fn forget_last_write(&mut self, segment: u32) {
        if let Some(marks) = &mut self.marks
            && self.last_write.is_some_and(|last| last.segment == segment)
        {
            LastWrite::forget(marks.bytes_mut());
            self.last_write = None;
        }
    }

    /// Hands everything in the buffers to the device, and waits until it has it.
    pub(crate) fn write_all(&mut self) -> Result<()> {
        self.seal_all()?;
        while self.queue.in_flight() > 0 {
            self.poll(1)?;
        }
        self.check_poisoned()
    }

    /// Takes buffers, in place of those it has; of these the device holds all, and nothing is in
    /// flight.
    pub(crate) fn attach(&mut self, memory: ShardBuffers) {
        assert!(self.writes.is_empty(), "buffers are given up only once they are written");
        for segment in self.segments.iter_mut().filter(|segment| segment.buffer != NO_BUFFER) {
            segment.buffer = NO_BUFFER;
        }
        self.queue.register(&memory.buffers);
        self.buffers = memory.buffers.into_iter().map(Buffer::idle).collect();
        (self.marks, self.last_write) = (memory.marks, None);
    }

    /// Forgets what stands in the buffers, for whoever finds them: the device holds all of it for
    /// good.
    pub(crate) fn forget_buffers(&mut self) {
        for buffer in &mut self.buffers {
            if let Some(segment) = buffer.segment.take() {
                self.segments[segment as usize].buffer = NO_BUFFER;
            }
            buffer.memory.bytes_mut()[..SEGMENT_HEADER_BYTES].fill(0);
        }
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
            set_mark(marks.bytes_mut(), usize::from(buffer), confirmed);
        }
    }
}
