//! Completions on their way from the threads of a backing to its owner.
//!
//! Invariant: the pipe that is polled holds a byte exactly while a completion waits.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::backing::BackingCompletion;
use crate::error::Result;

/// Completions that wait to be reaped.
#[derive(Debug)]
pub(super) struct Outbox {
    waiting: Mutex<Vec<BackingCompletion>>,
    arrived: Condvar,
    /// Read and written under the lock: of a byte in an otherwise empty pipe neither ever waits.
    signal: (PipeReader, PipeWriter),
}

impl Outbox {
    pub(super) fn new() -> io::Result<Outbox> {
        let signal = io::pipe()?;
        Ok(Outbox { waiting: Mutex::new(Vec::new()), arrived: Condvar::new(), signal })
    }

    pub(super) fn put(&self, token: u64, result: Result<Bytes>) {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            (&self.signal.1).write_all(&[0]).expect("the pipe is empty, and open while this is");
        }
        waiting.push(BackingCompletion { token, result });
        self.arrived.notify_one();
    }

    /// Appends what waits; returns how many.
    pub(super) fn take(&self, completions: &mut Vec<BackingCompletion>) -> usize {
        self.empty(self.waiting.lock(), completions)
    }

    /// Waits for a completion, of which there must be one to come; then as [`Outbox::take`].
    pub(super) fn wait(&self, completions: &mut Vec<BackingCompletion>) -> usize {
        let mut waiting = self.waiting.lock();
        while waiting.is_empty() {
            self.arrived.wait(&mut waiting);
        }
        self.empty(waiting, completions)
    }

    pub(super) fn poll_fd(&self) -> RawFd {
        self.signal.0.as_raw_fd()
    }

    fn empty(
        &self,
        mut waiting: MutexGuard<'_, Vec<BackingCompletion>>,
        completions: &mut Vec<BackingCompletion>,
    ) -> usize {
        let count = waiting.len();
        if count > 0 {
            completions.append(&mut waiting);
            (&self.signal.0).read_exact(&mut [0]).expect("a byte stands in the pipe");
        }
        count
    }
}
