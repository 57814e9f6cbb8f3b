//! Work that waits for the device: syncs, drops, pages of scans, and writes that have to make room
//! first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use entresol_tier::{Error, ErrorKind, SpaceId, Timestamp};
use parking_lot::{Condvar, Mutex};

use crate::hosted::failure::Failure;
use crate::hosted::operation::OwnedOperation;
use crate::hosted::scan::Scan;

/// Most jobs that wait at a time.
const JOBS_MAX: usize = 1 << 16;
/// Most bytes of writes that wait at a time.
const JOB_BYTES_MAX: usize = 128 << 20;

/// Something to do whose answer is reaped.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) token: u64,
    pub(super) task: Task,
}

/// What a job does.
#[derive(Debug)]
pub(super) enum Task {
    Sync,
    /// Drops a space, or one partition of it.
    Drop(SpaceId, Option<u16>),
    /// Reads a page of a scan.
    Scan {
        scan: Arc<Scan>,
        limit: usize,
        now: Timestamp,
    },
    Operation(OwnedOperation, Timestamp),
}

/// Jobs that wait.
#[derive(Debug, Default)]
pub(super) struct JobQueue {
    waiting: Mutex<Waiting>,
    added: Condvar,
    /// Drops and writes that are not done yet.
    changes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    ended: bool,
}

impl JobQueue {
    /// Adds a job, unless there are too many, or none are done any more.
    pub(super) fn push(&self, job: Job) -> Result<(), Failure> {
        let mut waiting = self.waiting.lock();
        let bytes = job.bytes();
        if waiting.ended {
            return Err(Failure::closed());
        }
        let full = waiting.bytes + bytes > JOB_BYTES_MAX && bytes > 0 && waiting.bytes > 0;
        if full || waiting.jobs.len() >= JOBS_MAX {
            let detail = format!(
                "{} jobs with {} bytes wait for the device; at most {JOBS_MAX} with \
                 {JOB_BYTES_MAX} may: finish some first",
                waiting.jobs.len(),
                waiting.bytes
            );
            return Err(Error::new(ErrorKind::Busy, detail).into());
        }
        waiting.bytes += bytes;
        self.changes.fetch_add(usize::from(job.is_change()), Ordering::Release);
        waiting.jobs.push_back(job);
        drop(waiting);
        self.added.notify_one();
        Ok(())
    }

    /// Whether a write that came now would overtake one that came before it, or a drop.
    pub(super) fn has_changes(&self) -> bool {
        self.changes.load(Ordering::Acquire) > 0
    }

    /// Takes no more jobs; those that wait are done.
    pub(super) fn end(&self) {
        self.waiting.lock().ended = true;
        self.added.notify_all();
    }

    /// Says that a job of [`JobQueue::next`] is done.
    pub(super) fn finish(&self, job: &Job) {
        self.changes.fetch_sub(usize::from(job.is_change()), Ordering::Release);
    }

    /// Waits for the job that comes next; none after the end.
    pub(super) fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.bytes -= job.bytes();
                return Some(job);
            }
            if waiting.ended {
                return None;
            }
            self.added.wait(&mut waiting);
        }
    }
}

impl Job {
    /// Whether it changes entries.
    fn is_change(&self) -> bool {
        matches!(self.task, Task::Drop(..) | Task::Operation(..))
    }

    fn bytes(&self) -> usize {
        match &self.task {
            Task::Operation(operation, _) => operation.bytes(),
            _ => 0,
        }
    }
}
