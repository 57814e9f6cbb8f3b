//! Reading what was written: from memory, or one segment beside the writes, without waiting for it.

use entresol_device::{Completion, IoBuffer};

use super::Log;
use crate::segment::NO_BUFFER;

/// The token of the read: write numbers do not come that far.
const READ_TOKEN: u64 = u64::MAX - 1;

/// The read of a segment, one at a time.
#[derive(Debug)]
pub(super) enum SegmentRead {
    None,
    InFlight,
    /// `None`: it failed.
    Done(Option<IoBuffer>),
}

impl Log {
    /// The bytes from `address` on, if its segment is in memory.
    pub(crate) fn in_memory(&self, address: u64) -> Option<&[u8]> {
        let (segment, offset) = self.shape.split(address);
        let buffer = self.segments.get(segment as usize)?.buffer;
        if buffer == NO_BUFFER {
            return None;
        }
        self.buffers[buffer as usize].memory.bytes().get(offset as usize..)
    }

    /// Begins to read a segment; false if that cannot be now.
    pub(crate) fn begin_read(&mut self, segment: u32) -> bool {
        // One that nobody took is of a victim that was given up.
        let idle = !matches!(self.read, SegmentRead::InFlight);
        // A write may come that waits for a place otherwise.
        if !idle || self.queue.in_flight() + 2 >= self.queue.depth() {
            return false;
        }
        let offset = self.shape.offset_of(segment);
        let length = self.shape.segment_bytes as usize;
        if self.queue.read(READ_TOKEN, offset, length).is_err() {
            return false;
        }
        self.read = SegmentRead::InFlight;
        // What is not submitted now is with the next write.
        self.hand_over().is_ok()
    }

    /// What the read gave, once it is done: `Some(None)` if it failed.
    pub(crate) fn take_read(&mut self) -> Option<Option<IoBuffer>> {
        match std::mem::replace(&mut self.read, SegmentRead::None) {
            SegmentRead::Done(bytes) => Some(bytes),
            SegmentRead::None => Some(None),
            SegmentRead::InFlight => {
                self.read = SegmentRead::InFlight;
                None
            }
        }
    }

    /// Takes note of the read's completion; gives back that of anything else. A failed read is not
    /// a failed write: whoever needs the segment reads around the damage.
    pub(super) fn finish_read(&mut self, completion: Completion) -> Option<Completion> {
        if completion.token != READ_TOKEN {
            return Some(completion);
        }
        self.read = SegmentRead::Done(completion.buffer.filter(|_| completion.result.is_ok()));
        None
    }
}
