//! Segments that are free, and how they became so: their headers are erased.

use std::sync::atomic::Ordering;

use entresol_device::{WriteMode, WriteRequest};
use entresol_planted::planted;

use super::confirmed::Write;
use super::succession::Succession;
use super::{Attempt, Log, Refusal};
use crate::error::{Error, ErrorKind, Result};
use crate::format::SEGMENT_HEADER_BYTES;
use crate::segment::{NO_BUFFER, Segment, SegmentState, Stream};

/// A free segment, and the number of the sync whose end makes its erasure durable; 0: it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Free {
    segment: u32,
    sync: u64,
}

/// How many syncs of the device the log has begun, and how many of them ended: one at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Syncs {
    pub begun: u64,
    pub ended: u64,
}

impl Log {
    /// Fills the list of free segments from the table; called once the table is known. Oldest
    /// first. A checkpoint that could not be loaded is needed no more.
    pub(crate) fn collect_free(&mut self) {
        let checkpoint = self.segments.iter_mut().filter(|s| s.state == SegmentState::Checkpoint);
        checkpoint.for_each(|segment| segment.state = SegmentState::Free);
        let mut free: Vec<u32> = (0..self.shape.segments)
            .filter(|&s| self.segments[s as usize].state == SegmentState::Free)
            .collect();
        free.sort_by_key(|&s| self.segments[s as usize].sequence);
        // The opening syncs the device before anything is appended.
        self.free = free.into_iter().map(|segment| Free { segment, sync: 0 }).collect();
        self.succession = Succession::of(&self.segments);
        self.proven_below = self.siblings.sequences.load(Ordering::Relaxed);
    }

    /// Takes a free segment for a checkpoint.
    pub(crate) fn take_for_checkpoint(&mut self) -> Option<u32> {
        // After a sync of the device: all erasures are durable.
        let Free { segment, .. } = self.free.pop_front()?;
        self.segments[segment as usize] =
            Segment { state: SegmentState::Checkpoint, ..Segment::UNUSED };
        Some(segment)
    }

    pub(super) fn erase(&mut self, segment: u32, mode: WriteMode) -> Result<()> {
        self.forget_last_write(segment);
        self.writes_begun += 1;
        // One sector is torn as a whole, or seen to be: of more, the header might stay and tell of
        // records that were erased.
        let sector = match planted!("erasure-torn") {
            true => self.zeros.len(),
            false => self.device.geometry().sector_bytes as usize,
        };
        let request = WriteRequest {
            token: self.writes_begun,
            offset: self.shape.offset_of(segment),
            buffer: &self.zeros,
            range: 0..sector,
            mode,
        };
        self.queue.write(request)?;
        self.hand_over()?;
        if mode == WriteMode::Flushed {
            self.unsynced_writes += 1;
        }
        self.writes.push(Write { number: self.writes_begun, buffer: NO_BUFFER, mode, range: 0..0 });
        self.erasing.push((self.writes_begun, segment));
        Ok(())
    }

    /// The header of a released segment is erased: it is free.
    pub(super) fn finish_erasing(&mut self, number: u64, mode: WriteMode) {
        let Some(at) = self.erasing.iter().position(|(n, _)| *n == number) else { return };
        let (_, segment) = self.erasing.swap_remove(at);
        let entry = &mut self.segments[segment as usize];
        self.live_bytes -= u64::from(entry.live_bytes);
        self.tombstone_bytes -= u64::from(entry.tombstone_bytes);
        if entry.sequence != 0 && entry.stream != Stream::Journal as u8 {
            self.ghosts.push((entry.sequence, self.appended.next()));
        }
        if entry.buffer != NO_BUFFER {
            let buffer = &mut self.buffers[entry.buffer as usize];
            buffer.segment = None;
            // The buffer may outlive the process; the segment must not come back from it.
            buffer.memory.bytes_mut()[..SEGMENT_HEADER_BYTES].fill(0);
        }
        *entry = Segment::UNUSED;
        let sync = if mode == WriteMode::Durable { 0 } else { self.syncs.begun + 1 };
        self.free.push_back(Free { segment, sync });
    }

    /// The segment that has been free for longest of those whose erasure is durable. Of what is
    /// written to another one the medium may keep a part beside a part of its former use: a record
    /// without the tombstone that hid it. If there is none, one is erased again, durably.
    pub(super) fn take_free(&mut self, stream: Stream) -> Attempt<u32> {
        if self.usable_free().is_none() {
            self.poll(0)?;
        }
        loop {
            if let Some(taken) = self.usable_free().and_then(|at| self.free.remove(at)) {
                return Ok(taken.segment);
            }
            if self.free.is_empty() && self.erasing.is_empty() {
                let detail = format!("shard {} has no free segment", self.shape.shard);
                return Err(Refusal::Full(Error::new(ErrorKind::Full, detail)));
            }
            if self.erasing.is_empty()
                && self.queue.in_flight() + 2 < self.queue.depth()
                && let Some(free) = self.free.pop_front()
            {
                self.erase(free.segment, WriteMode::Durable).inspect_err(|error| {
                    self.poison(format!("a free segment could not be erased: {error}"));
                })?;
            }
            self.await_answer(stream)?;
        }
    }

    /// Where the first free segment stands whose erasure is durable.
    fn usable_free(&self) -> Option<usize> {
        let ended = if planted!("erasure-not-awaited") { u64::MAX } else { self.syncs.ended };
        self.free.iter().position(|free| free.sync <= ended)
    }
}
