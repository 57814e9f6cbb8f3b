//! A queue over blocking transfers: the reference that other queues are tested against, and the one
//! for media that answer at once.
//!
//! Invariants:
//! 1. Requests are performed by [`Queue::submit`], in the order they were gathered, on the thread
//!    that submits.
//! 2. So nothing is under way after `submit`, and [`Queue::reap`] never waits.

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::buffer::{BufferPool, IoBuffer, WriteHold};
use crate::device::{
    Completion, Counters, Geometry, Queue, QueueOptions, WriteMode, WriteRequest, busy,
};
use crate::error::Result;

/// Blocking transfers of checked ranges.
pub(crate) trait Medium: Send + Sync {
    /// The name for messages.
    fn name(&self) -> &str;

    /// Sizes and alignments.
    fn geometry(&self) -> Geometry;

    /// Where requests are counted.
    fn counters(&self) -> &Counters;

    /// Fills `bytes` from `offset`.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()>;

    /// Writes what is held at `offset`.
    fn write(&self, offset: u64, bytes: &WriteHold, mode: WriteMode) -> Result<()>;

    /// Makes completed writes durable.
    fn sync(&self) -> Result<()>;
}

/// A queue that performs requests when they are submitted.
pub(crate) struct BlockingQueue<M: Medium> {
    medium: Arc<M>,
    pool: Arc<BufferPool>,
    depth: usize,
    gathered: Vec<Request>,
    done: Vec<Completion>,
}

struct Request {
    token: u64,
    offset: u64,
    action: Action,
}

enum Action {
    Read(IoBuffer),
    Write(WriteHold, WriteMode),
    Sync,
}

impl<M: Medium> BlockingQueue<M> {
    pub(crate) fn new(medium: Arc<M>, options: QueueOptions) -> Result<BlockingQueue<M>> {
        options.check(medium.name())?;
        let pool = BufferPool::new(options.depth, options.buffer_bytes)?;
        let depth = options.depth;
        let (gathered, done) = (Vec::with_capacity(depth), Vec::with_capacity(depth));
        Ok(BlockingQueue { medium, pool, depth, gathered, done })
    }

    fn gather(&mut self, token: u64, offset: u64, action: Action) -> Result<()> {
        self.gathered.push(Request { token, offset, action });
        Ok(())
    }

    fn check_room(&self) -> Result<()> {
        if self.in_flight() < self.depth {
            return Ok(());
        }
        Err(busy(self.medium.name(), self.depth))
    }
}

impl<M: Medium> Queue for BlockingQueue<M> {
    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        self.check_room()?;
        self.medium.geometry().check(self.medium.name(), offset, length)?;
        self.medium.counters().count_read(length);
        let buffer = self.pool.take(length);
        self.gather(token, offset, Action::Read(buffer))
    }

    fn write(&mut self, request: WriteRequest<'_>) -> Result<()> {
        self.check_room()?;
        request.check(&self.medium.geometry(), self.medium.name())?;
        self.medium.counters().count_write(request.range.len(), request.mode);
        let hold = request.buffer.hold(&request.range);
        self.gather(request.token, request.offset, Action::Write(hold, request.mode))
    }

    fn sync(&mut self, token: u64) -> Result<()> {
        self.check_room()?;
        self.medium.counters().count_sync();
        self.gather(token, 0, Action::Sync)
    }

    fn submit(&mut self) -> Result<()> {
        for Request { token, offset, action } in self.gathered.drain(..) {
            let (result, buffer) = match action {
                Action::Read(mut buffer) => (self.medium.read(offset, &mut buffer), Some(buffer)),
                Action::Write(hold, mode) => (self.medium.write(offset, &hold, mode), None),
                Action::Sync => (self.medium.sync(), None),
            };
            self.done.push(Completion { token, result, buffer });
        }
        Ok(())
    }

    fn reap(&mut self, _wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        self.submit()?;
        completions.append(&mut self.done);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.gathered.len() + self.done.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }
}
