//! A backing that is a file or a block device.
//!
//! Threads of its own read and write it through the page cache: one for each request in flight, at
//! most sixteen.
//!
//! Invariant: after a failed sync, in a flush or a durable write, every later sync fails. Nobody
//! knows which bytes the system dropped, and a successful retry would prove nothing. Reads and
//! plain writes go on.
//!
//! Requests have no time-out: each takes as long as the system takes.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use entresol_device::{Access, Force, PlainFile, WriteMode, Zeroed};
use parking_lot::{Condvar, Mutex};

use crate::backing::outbox::Outbox;
use crate::backing::{Backing, BackingCompletion, BackingRequest, Description, Extent, ExtentKind};
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Durable, Hole};

/// Most threads, and so most requests that the system has at a time.
const THREADS_MAX: usize = 16;

/// A request that takes no longer is a copy from or to memory: a thread takes as long to run.
const QUICK_NS: u64 = 50_000;

/// Most bytes of one request.
const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// Bytes of one write of zeros.
const ZEROS_BYTES: usize = 1 << 20;

/// A file or block device. Dropping it waits for what is in flight.
#[derive(Debug)]
pub struct FileBacking {
    description: Description,
    shared: Arc<Shared>,
    gathered: Vec<(u64, BackingRequest)>,
    threads: Vec<JoinHandle<()>>,
    in_flight: usize,
}

#[derive(Debug)]
struct Shared {
    file: PlainFile,
    state: Mutex<State>,
    /// Requests wait, or it is over.
    work: Condvar,
    /// The sync that failed.
    poisoned: Mutex<Option<Error>>,
    outbox: Outbox,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<(u64, BackingRequest)>,
    /// Threads that wait for requests.
    idle: usize,
    /// Of those, the ones that are being woken.
    waking: usize,
    /// What requests took lately, nanoseconds.
    lately_ns: u64,
    is_over: bool,
}

impl State {
    /// Whether to wake a thread. One at a time: those that are awake may be done with what is
    /// queued before it runs.
    fn wakes_one(&mut self) -> bool {
        let wakes = !self.queue.is_empty() && self.idle > 0 && self.waking == 0;
        self.waking += usize::from(wakes);
        wakes
    }

    /// Whether a thread that takes a request should wake the next one: not where it is done with
    /// all that is queued sooner than another runs. If it is not, the owner wakes one.
    fn wakes_next(&mut self) -> bool {
        self.lately_ns > QUICK_NS && self.wakes_one()
    }

    /// A request took so long.
    fn took(&mut self, time: Duration) {
        // A thread that did not get a processor must not look like a device that is slow.
        let time_ns = time.as_nanos().min(u128::from(2 * QUICK_NS)) as u64;
        self.lately_ns = (self.lately_ns * 7 + time_ns) / 8;
    }
}

impl FileBacking {
    /// Opens the file or block device at `path`. One that may not be written is opened read-only.
    ///
    /// Errors: `Unavailable` if it is not there or in use; `InvalidInput` if it is none.
    pub fn open(path: impl AsRef<Path>, force: Force) -> Result<FileBacking> {
        let path = path.as_ref();
        let may_write = std::fs::OpenOptions::new().write(true).open(path);
        let is_denied = |error: &std::io::Error| {
            use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
            matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
        };
        let access = match may_write {
            Err(error) if is_denied(&error) => Access::ReadOnly,
            _ => Access::ReadWrite,
        };
        FileBacking::open_as(path, access, force)
    }

    /// Opens the file or block device at `path` to do with it what `access` says.
    pub fn open_as(path: impl AsRef<Path>, access: Access, force: Force) -> Result<FileBacking> {
        let file = PlainFile::open(path, access, force)?;
        let description = Description {
            bytes: file.bytes(),
            identity: file.identity(),
            version: version(file.modified(), file.found_changed()),
            alignment: 1,
            request_bytes_max: REQUEST_BYTES_MAX,
            read_only: access == Access::ReadOnly,
            can_trim: file.can_punch(),
            zeroes_fast: file.can_punch(),
            rotational: file.is_rotational(),
        };
        let outbox = Outbox::new().map_err(|source| {
            let detail =
                format!("{}: cannot make a pipe to be polled: {source}", file.path().display());
            Error::new(ErrorKind::Unavailable, detail)
        })?;
        let state = State {
            queue: VecDeque::new(),
            idle: 0,
            waking: 0,
            lately_ns: 2 * QUICK_NS,
            is_over: false,
        };
        let shared = Shared {
            file,
            state: Mutex::new(state),
            work: Condvar::new(),
            poisoned: Mutex::new(None),
            outbox,
        };
        Ok(FileBacking {
            description,
            shared: Arc::new(shared),
            gathered: Vec::new(),
            threads: Vec::new(),
            in_flight: 0,
        })
    }
}

impl Backing for FileBacking {
    fn description(&self) -> &Description {
        &self.description
    }

    fn begin(&mut self, token: u64, request: BackingRequest) {
        self.in_flight += 1;
        self.gathered.push((token, request));
    }

    fn submit(&mut self) {
        // What waits behind a request that takes longer than those before it is seen to here.
        if self.in_flight == 0 {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state.lock();
        for (token, request) in self.gathered.drain(..) {
            match self.description.check(&request) {
                Ok(()) => state.queue.push_back((token, request)),
                Err(error) => shared.outbox.put(token, Err(error)),
            }
        }
        let wanted = state.queue.len().saturating_sub(state.idle);
        let missing = wanted.min(THREADS_MAX - self.threads.len());
        for _ in 0..missing {
            let ours = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new()
                .name("backing".to_owned())
                .stack_size(256 << 10)
                .spawn(move || ours.serve());
            match thread {
                Ok(thread) => self.threads.push(thread),
                // With one at least, it only takes longer.
                Err(_) if !self.threads.is_empty() => break,
                Err(source) => {
                    let detail =
                        format!("{}: cannot start a thread: {source}", self.description.identity);
                    let error = Error::new(ErrorKind::Unavailable, detail);
                    while let Some((token, _)) = state.queue.pop_front() {
                        shared.outbox.put(token, Err(error.clone()));
                    }
                }
            }
        }
        let wakes = state.wakes_one();
        drop(state);
        if wakes {
            shared.work.notify_one();
        }
    }

    fn reap(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.in_flight -= self.shared.outbox.take(completions);
    }

    fn wait(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.submit();
        if self.in_flight > 0 {
            self.in_flight -= self.shared.outbox.wait(completions);
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.shared.outbox.poll_fd())
    }

    fn version(&mut self) -> String {
        version(self.shared.file.modified(), self.shared.file.changed())
    }

    fn grow(&mut self) -> Result<()> {
        let found = self.shared.file.grow()?;
        if found < self.description.bytes {
            let detail = format!(
                "{}: has {found} bytes now; while it is served a backing may only grow",
                self.description.identity
            );
            return Err(Error::new(ErrorKind::Unsupported, detail));
        }
        self.description.bytes = found;
        self.description.identity = self.shared.file.identity();
        Ok(())
    }

    fn check_room(&self, range: (u64, u64)) -> Result<()> {
        Ok(self.shared.file.check_room(range.1)?)
    }

    fn allocation(&mut self, range: (u64, u64), most: usize) -> Result<Vec<Extent>> {
        let runs = self.shared.file.extents(range, most).into_iter();
        let kind = |data| if data { ExtentKind::Data } else { ExtentKind::Hole };
        Ok(runs.map(|(length, data)| Extent { length, kind: kind(data) }).collect())
    }
}

/// When a file was written to last, and when anything of it was changed last: the one can be set to
/// what it was, the other cannot.
fn version(modified: Option<String>, changed: Option<String>) -> String {
    match (modified, changed) {
        (Some(modified), Some(changed)) => format!("{modified} {changed}"),
        (modified, _) => modified.unwrap_or_default(),
    }
}

impl Drop for FileBacking {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}

impl Shared {
    /// One thread's life: requests until it is over and none is left.
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((token, request)) = state.queue.pop_front() {
                let wakes = state.wakes_next();
                drop(state);
                if wakes {
                    self.work.notify_one();
                }
                let begun = Instant::now();
                let result = self.perform(&request);
                let time = begun.elapsed();
                self.outbox.put(token, result);
                state = self.state.lock();
                state.took(time);
            } else if state.is_over {
                return;
            } else {
                state.idle += 1;
                self.work.wait(&mut state);
                state.idle -= 1;
                state.waking = state.waking.saturating_sub(1);
            }
        }
    }

    fn perform(&self, request: &BackingRequest) -> Result<Bytes> {
        match *request {
            BackingRequest::Read { offset, length } => {
                let mut bytes = vec![0; length as usize];
                self.file.read_at(offset, &mut bytes)?;
                return Ok(Bytes::from(bytes));
            }
            BackingRequest::Write { offset, ref bytes, durable: Durable::AtFlush } => {
                self.file.write_at(offset, bytes, WriteMode::Flushed)?;
            }
            BackingRequest::Write { offset, ref bytes, durable: Durable::AtOnce } => {
                // One that found no room was not made: that is not the sync's failure.
                let is_no_room = |error: &Error| error.kind() == ErrorKind::NoSpace;
                self.sync(is_no_room, || self.file.write_at(offset, bytes, WriteMode::Durable))?;
            }
            BackingRequest::Flush => self.sync(|_| false, || self.file.sync())?,
            BackingRequest::Trim { offset, length } => {
                // What it cannot do need not be done.
                let _either_way = self.file.punch(offset, length)?;
            }
            BackingRequest::Zero { offset, length, hole } => self.zero(offset, length, hole)?,
        }
        Ok(Bytes::new())
    }

    /// Makes something survive power loss; a failure that is not `excused` poisons.
    fn sync(
        &self,
        excused: impl Fn(&Error) -> bool,
        make: impl Fn() -> entresol_device::Result<()>,
    ) -> Result<()> {
        // Held while the system works: it tells of an error once, and two syncs side by side could
        // each be told of the other's.
        let mut poisoned = self.poisoned.lock();
        if let Some(error) = &*poisoned {
            let detail = format!("a sync failed before; nothing is sure until reopened: {error}");
            return Err(Error::new(ErrorKind::Io, detail));
        }
        let made = make().map_err(Error::from);
        if let Err(error) = &made
            && !excused(error)
        {
            *poisoned = Some(error.clone());
        }
        made
    }

    fn zero(&self, offset: u64, length: u64, hole: Hole) -> Result<()> {
        if hole == Hole::Forbidden {
            // The system would fill all that there is before it says so.
            self.file.check_room(length)?;
        }
        let zeroed = match hole {
            Hole::Allowed => self.file.punch(offset, length)?,
            Hole::Forbidden => self.file.zero(offset, length)?,
        };
        if zeroed == Zeroed::Unsupported {
            return self.write_zeros(offset, offset + length);
        }
        // What is less than a sector of a block device was left alone.
        let (start, whole) = self.file.whole_sectors(offset, length);
        if whole == 0 {
            return self.write_zeros(offset, offset + length);
        }
        self.write_zeros(offset, start)?;
        self.write_zeros(start + whole, offset + length)
    }

    fn write_zeros(&self, mut offset: u64, end: u64) -> Result<()> {
        let zeros = vec![0; end.saturating_sub(offset).min(ZEROS_BYTES as u64) as usize];
        while offset < end {
            let count = (end - offset).min(ZEROS_BYTES as u64) as usize;
            self.file.write_at(offset, &zeros[..count], WriteMode::Flushed)?;
            offset += count as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_woken_one_at_a_time_until_none_is_idle_or_nothing_is_left() {
        let flush = |token| (token, BackingRequest::Flush);
        let queue = VecDeque::from_iter((0..3).map(flush));
        let mut state =
            State { queue, idle: 2, waking: 0, lately_ns: 2 * QUICK_NS, is_over: false };
        assert!(state.wakes_one());
        assert!(!state.wakes_one(), "one is on its way");
        for wakes_next in [true, false] {
            state.idle -= 1;
            state.waking -= 1;
            state.queue.pop_front();
            assert_eq!(state.wakes_next(), wakes_next, "{} idle", state.idle);
        }
        state.idle += 1;
        assert!(state.wakes_one(), "a thread is idle and a request is left");
        state.waking = 0;
        (0..8).for_each(|_| state.took(Duration::from_micros(1)));
        assert!(!state.wakes_next(), "it is done with all of them sooner");
        assert!(state.wakes_one(), "but for the owner, who finds that it is not");
        (state.waking, state.queue) = (0, VecDeque::new());
        assert!(!state.wakes_one(), "nothing is left");
    }
}
