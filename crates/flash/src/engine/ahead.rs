//! Segments of the journal in their order, read ahead of whoever looks at them: the device reads
//! the next ones meanwhile.
//!
//! Of each segment what is filled is read, and no more. What the device refuses is read again, part
//! by part.

use std::collections::VecDeque;

use entresol_device::{Completion, IoBuffer, Queue, QueueOptions};

use super::Engine;
use super::journal::Stretch;
use crate::error::Result;
use crate::unreadable::read_around;

/// Memory for segments that are read ahead, where that is some.
const AHEAD_BYTES: usize = 4 << 20;
/// Segments in memory at once, at least and at most.
const AHEAD_MIN: usize = 2;
const AHEAD_MAX: usize = 16;

/// The segments of a lane.
pub(super) struct Ahead<'e> {
    engine: &'e Engine,
    /// The shard that has the lane.
    number: usize,
    stretches: &'e [Stretch],
    queue: Box<dyn Queue>,
    /// Segments in memory that nobody has taken, at most.
    depth: usize,
    /// Those before it were given out.
    first: usize,
    /// The next ones, as far as they were begun. `None`: the device has still to answer.
    begun: VecDeque<Option<IoBuffer>>,
    completions: Vec<Completion>,
}

impl<'e> Ahead<'e> {
    /// For whoever looks at `together` segments at a time.
    pub(super) fn new(
        engine: &'e Engine,
        number: usize,
        stretches: &'e [Stretch],
        together: usize,
    ) -> Result<Ahead<'e>> {
        let segment_bytes = engine.shards[number].lock().log.shape().segment_bytes as usize;
        let depth = (AHEAD_BYTES / segment_bytes).clamp(AHEAD_MIN, AHEAD_MAX);
        // Those that were taken are still in buffers of the queue.
        let buffers = (depth + together).min(stretches.len().max(1));
        let options = QueueOptions { depth: buffers, buffer_bytes: segment_bytes };
        let queue = engine.device.queue(options)?;
        let (begun, completions) = (VecDeque::new(), Vec::new());
        Ok(Ahead { engine, number, stretches, queue, depth, first: 0, begun, completions })
    }

    /// What is filled of the next segment, from its beginning on, and a little more. What cannot be
    /// read of it is zeros.
    pub(super) fn next(&mut self) -> Result<Option<IoBuffer>> {
        self.begin()?;
        while let Some(None) = self.begun.front() {
            let mut completions = std::mem::take(&mut self.completions);
            self.queue.reap(1, &mut completions)?;
            for completion in completions.drain(..) {
                self.take(completion)?;
            }
            self.completions = completions;
        }
        let next = self.begun.pop_front().flatten();
        self.first += usize::from(next.is_some());
        Ok(next)
    }

    /// Begins to read as many as there is memory for.
    pub(super) fn begin(&mut self) -> Result<()> {
        while self.begun.len() < self.depth
            && let Some(stretch) = self.stretches.get(self.first + self.begun.len())
        {
            let shard = self.engine.shards[self.number].lock();
            let (shape, segment) = (shard.log.shape(), stretch.of.segment);
            let length = self.length(stretch);
            let found = shard.log.in_memory(shape.address(segment, 0)).map(|memory| {
                let mut copy = IoBuffer::aligned(length);
                copy.copy_from_slice(&memory[..length]);
                copy
            });
            drop(shard);
            if found.is_none() {
                let token = (self.first + self.begun.len()) as u64;
                self.queue.read(token, shape.offset_of(segment), length)?;
            }
            self.begun.push_back(found);
        }
        Ok(self.queue.submit()?)
    }

    fn take(&mut self, completion: Completion) -> Result<()> {
        let at = completion.token as usize;
        let read = completion.buffer.filter(|_| completion.result.is_ok());
        let bytes = match read {
            Some(bytes) => bytes,
            None => self.read_again(&self.stretches[at])?,
        };
        self.begun[at - self.first] = Some(bytes);
        Ok(())
    }

    fn read_again(&self, stretch: &Stretch) -> Result<IoBuffer> {
        let shape = self.engine.shards[self.number].lock().log.shape();
        let mut bytes = IoBuffer::aligned(self.length(stretch));
        read_around(&*self.engine.device, shape.offset_of(stretch.of.segment), &mut bytes)?;
        Ok(bytes)
    }

    fn length(&self, stretch: &Stretch) -> usize {
        // A device reads whole sectors, of which a segment has many.
        let sector = self.engine.sector_bytes as u32;
        stretch.row.used_bytes.max(1).next_multiple_of(sector.max(BLOCK_BYTES)) as usize
    }
}

/// What is read is a multiple of this, and segments are.
const BLOCK_BYTES: u32 = 4096;
