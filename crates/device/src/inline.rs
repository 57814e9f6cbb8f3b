//! For media in memory: small transfers at once, in the calling thread; all others through
//! io_uring.
//!
//! On most block devices and file systems in memory, the kernel cannot begin a transfer without
//! finishing it. So a ring hands each transfer to a thread of the kernel's, which costs tens of
//! microseconds for a copy that takes one. Long transfers are worth the thread, which copies beside
//! the caller.
//!
//! Invariants:
//! 1. A small transfer is done before the call that gathers it returns; its completion lies in
//!    `done` until it is reaped.
//! 2. After [`Queue::submit`] the ring's descriptor polls readable while `done` has something: an
//!    empty request is in the ring to say so. A reap right after gathering needs none.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking::Medium;
use crate::buffer::WriteBuffer;
use crate::device::{Completion, Queue, QueueOptions, WriteRequest, busy};
use crate::error::Result;
use crate::file::OpenFile;
use crate::uring::{Threads, UringQueue};

/// Longest transfer that is made at once: some ten microseconds of copying.
pub(crate) const INLINE_BYTES_MAX: usize = 64 << 10;

/// A queue that makes small transfers when they are gathered.
pub(crate) struct InlineQueue {
    ring: UringQueue,
    file: Arc<OpenFile>,
    done: Vec<Completion>,
}

impl InlineQueue {
    pub(crate) fn new(
        file: Arc<OpenFile>,
        options: QueueOptions,
        threads: Threads,
    ) -> Result<InlineQueue> {
        let ring = UringQueue::new(Arc::clone(&file), options, threads)?;
        Ok(InlineQueue { ring, file, done: Vec::with_capacity(options.depth) })
    }

    fn check_room(&self) -> Result<()> {
        if self.in_flight() < self.depth() {
            return Ok(());
        }
        Err(busy(self.file.name(), self.depth()))
    }
}

impl Queue for InlineQueue {
    fn register(&mut self, buffers: &[WriteBuffer]) {
        self.ring.register(buffers);
    }

    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        self.check_room()?;
        if length > INLINE_BYTES_MAX {
            return self.ring.read(token, offset, length);
        }
        self.file.geometry().check(self.file.name(), offset, length)?;
        self.file.counters().count_read(length);
        let mut buffer = self.ring.take_buffer(length);
        let result = self.ring.during(|| self.file.read_now(offset, &mut buffer));
        self.done.push(Completion { token, result, buffer: Some(buffer) });
        Ok(())
    }

    fn write(&mut self, request: WriteRequest<'_>) -> Result<()> {
        self.check_room()?;
        if request.range.len() > INLINE_BYTES_MAX {
            return self.ring.write(request);
        }
        request.check(&self.file.geometry(), self.file.name())?;
        self.file.counters().count_write(request.range.len(), request.mode);
        let hold = request.buffer.hold(&request.range);
        let write = || self.file.write_now(request.offset, &hold, request.mode);
        let result = self.ring.during(write);
        self.done.push(Completion { token: request.token, result, buffer: None });
        Ok(())
    }

    fn sync(&mut self, token: u64) -> Result<()> {
        self.check_room()?;
        self.ring.sync(token)
    }

    fn submit(&mut self) -> Result<()> {
        if !self.done.is_empty() {
            self.ring.signal();
        }
        self.ring.submit()
    }

    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        let had = self.done.len();
        completions.append(&mut self.done);
        if self.ring.in_flight() == 0 {
            self.ring.forget_signal();
            return Ok(());
        }
        self.ring.reap(wait_for.saturating_sub(had), completions)
    }

    fn reap_within(&mut self, timeout: Duration, completions: &mut Vec<Completion>) -> Result<()> {
        if self.done.is_empty() {
            return self.ring.reap_within(timeout, completions);
        }
        self.reap(0, completions)
    }

    fn in_flight(&self) -> usize {
        self.ring.in_flight() + self.done.len()
    }

    fn depth(&self) -> usize {
        self.ring.depth()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.ring.poll_fd()
    }
}
