//! Many requests in flight through io_uring.
//!
//! A plain ring: submission polling and I/O polling cost a processor and gain nothing on the
//! devices this was measured on. A ring of a single thread completes when that thread enters the
//! kernel, for whatever reason, which saves interrupts. Completions are not deferred until the
//! thread asks the ring for them: a thread that waits for the ring's descriptor would not learn of
//! such completions (seen with Linux 6.18).
//!
//! Invariants:
//! 1. A slot is taken from gathering until its completion is reaped; the kernel's `user_data` is
//!    the slot's number. The memory of a request lives in its slot.
//! 2. There are at most `depth` slots, and the rings have one more entry, for a signal. So neither
//!    ring can overflow.
//! 3. The memory outlives the request: dropping the queue waits, and leaks the slots if it cannot.
//! 4. Only the submission ring knows how many entries the kernel still has to take: a doorbell may
//!    have handed them over from another thread.
#![expect(unsafe_code, reason = "the kernel gets raw pointers to the memory of requests")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, opcode, types};

use crate::blocking::Medium;
use crate::buffer::{BufferPool, IoBuffer, WriteBuffer, WriteHold};
use crate::device::{Completion, Doorbell, Queue, QueueOptions, WriteRequest, busy};
use crate::error::{Error, Result};
use crate::file::OpenFile;
use crate::pending::Pending;
use crate::system;

mod request;

use request::{Action, Request};

/// Most buffers that a ring registers: what kernels since 5.13 take.
const REGISTERED_MAX: usize = 1 << 14;

/// What an empty request is known by: no slot has this number.
const SIGNAL: u32 = u32::MAX;

/// A queue on an io_uring of its own.
pub(crate) struct UringQueue {
    ring: IoUring,
    file: Arc<OpenFile>,
    pool: Arc<BufferPool>,
    pool_registered: bool,
    registered: RegisteredWrites,
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    pending: Arc<Pending>,
    threads: Threads,
    bell: Option<Arc<RingBell>>,
    /// An empty request is in the submission ring, or its end in the completion ring.
    signalled: bool,
}

/// The ring's descriptor once more: with it whoever gathered requests enters the kernel after the
/// queue went to another thread. Entries belong to the ring, and the kernel takes them one caller
/// at a time.
struct RingBell {
    descriptor: OwnedFd,
    depth: u32,
    name: String,
}

/// Which threads use a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// One; completions come only when it enters the kernel.
    One,
    /// Several in turn.
    Several,
}

/// The memory of writes that the kernel has pinned. Held while the ring is there: an address in it
/// means these pages and no others.
#[derive(Default)]
struct RegisteredWrites {
    /// The number of the first one among the ring's buffers.
    first: u16,
    holds: Vec<WriteHold>,
}

/// Why this process may not use io_uring, if it may not: containers often forbid it. Files and
/// block devices are then read and written by blocking calls.
pub fn uring_refusal() -> Option<io::Error> {
    IoUring::new(1).err()
}

/// A ring of `entries`, for one thread if wanted and the kernel knows how.
fn open_ring(entries: u32, threads: Threads) -> io::Result<(IoUring, Threads)> {
    if threads == Threads::One {
        let of_one = IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(entries);
        if let Ok(ring) = of_one {
            return Ok((ring, Threads::One));
        }
    }
    Ok((IoUring::builder().build(entries)?, Threads::Several))
}

impl UringQueue {
    pub(crate) fn new(
        file: Arc<OpenFile>,
        options: QueueOptions,
        threads: Threads,
    ) -> Result<UringQueue> {
        options.check(file.name())?;
        let failed = |source| Error::io(format!("{}: cannot set up io_uring", file.name()), source);
        let depth = options.depth;
        let (ring, threads) = open_ring(depth as u32 + 1, threads).map_err(failed)?;
        ring.submitter().register_files(&[file.descriptor()]).map_err(failed)?;
        let pool = BufferPool::new(depth, options.buffer_bytes)?;
        // Registered memory counts against a limit of locked memory; past it reads work without.
        // SAFETY: the pool outlives the ring: the field order drops the ring first, and buffers
        // that are out hold the pool.
        let pool_registered = options.buffer_bytes > 0
            && unsafe { ring.submitter().register_buffers(&pool.vectors()) }.is_ok();
        let slots = (0..depth).map(|_| None).collect();
        let free = (0..depth as u32).rev().collect();
        let pending = file.pending_of_queue();
        let bell = match threads {
            Threads::One => None,
            Threads::Several => RingBell::of(&ring, depth, file.name()),
        };
        Ok(UringQueue {
            ring,
            file,
            pool,
            pool_registered,
            registered: RegisteredWrites::default(),
            slots,
            free,
            pending,
            threads,
            bell: bell.map(Arc::new),
            signalled: false,
        })
    }

    /// Memory for a read of `length` bytes.
    pub(crate) fn take_buffer(&self, length: usize) -> IoBuffer {
        self.pool.take(length)
    }

    /// Counts a request of the queue's that is made at once.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let group = self.pending.begin();
        let done = work();
        self.pending.end(group);
        done
    }

    /// Makes the queue's descriptor poll readable once what was gathered is handed over.
    pub(crate) fn signal(&mut self) {
        if self.signalled {
            return;
        }
        let entry = opcode::Nop::new().build().user_data(u64::from(SIGNAL));
        // SAFETY: an empty request has no memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the submission ring has an entry for a signal");
        self.signalled = true;
    }

    /// Takes back a signal, where nothing is in flight.
    pub(crate) fn forget_signal(&mut self) {
        if self.signalled {
            let answer = self.next_answer();
            debug_assert!(answer.is_none(), "nothing is in flight");
        }
    }

    fn check_room(&self) -> Result<()> {
        if self.free.is_empty() {
            return Err(busy(self.file.name(), self.slots.len()));
        }
        Ok(())
    }

    fn gather(&mut self, token: u64, offset: u64, length: usize, action: Action) {
        let slot = self.free.pop().expect("room was checked");
        let group = self.pending.begin();
        let request = Request::new(token, offset, length, group, action);
        self.slots[slot as usize] = Some(request);
        self.push(slot);
    }

    /// Puts the request of `slot`, or the rest of it, into the submission ring.
    fn push(&mut self, slot: u32) {
        let request = self.slots[slot as usize].as_mut().expect("only taken slots are pushed");
        let entry = request.entry(self.pool_registered).user_data(u64::from(slot));
        // SAFETY: the memory the entry points to belongs to the slot, which stays taken until the
        // completion (invariants 1 and 3).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the submission ring holds one entry for each slot");
    }

    /// Requests in the submission ring that the kernel has not taken yet.
    fn gathered(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Hands over what is gathered and waits for `wait_for` entries in the completion ring.
    fn enter(&mut self, wait_for: usize) -> Result<()> {
        loop {
            match self.ring.submit_and_wait(wait_for) {
                Ok(_) if self.gathered() == 0 => return Ok(()),
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(code) if is_for_later(code) => return Ok(()),
                    _ => return Err(entering(self.file.name(), error)),
                },
            }
        }
    }

    /// Whether completions lie with the kernel until it is entered.
    fn defers(&mut self) -> bool {
        self.threads == Threads::One && self.ring.submission().taskrun()
    }

    /// Takes all entries of the completion ring; requests that are not finished go back into the
    /// submission ring.
    fn drain(&mut self, completions: &mut Vec<Completion>) -> usize {
        let before = completions.len();
        while let Some((slot, answer)) = self.next_answer() {
            let place = &mut self.slots[slot as usize];
            let request = place.as_mut().expect("the kernel completes taken slots only");
            let Some(result) = request.advance(answer, &self.file) else {
                self.push(slot);
                continue;
            };
            let finished = place.take().expect("it was there a moment ago");
            self.free.push(slot);
            self.pending.end(finished.group);
            let buffer = match finished.action {
                Action::Read(buffer) => Some(buffer),
                Action::Write(..) | Action::Sync => None,
            };
            completions.push(Completion { token: finished.token, result, buffer });
        }
        completions.len() - before
    }

    /// The next entry of the completion ring: slot and answer.
    fn next_answer(&mut self) -> Option<(u32, i32)> {
        loop {
            let entry = self.ring.completion().next()?;
            match entry.user_data() as u32 {
                SIGNAL => self.signalled = false,
                slot => return Some((slot, entry.result())),
            }
        }
    }
}

impl RingBell {
    /// `None`: the process has no descriptor left.
    fn of(ring: &IoUring, depth: usize, name: &str) -> Option<RingBell> {
        // SAFETY: the ring, which owns the descriptor, is there for the time of the call.
        let borrowed = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        let descriptor = borrowed.try_clone_to_owned().ok()?;
        Some(RingBell { descriptor, depth: depth as u32, name: name.to_owned() })
    }
}

impl Doorbell for RingBell {
    fn ring(&self) -> Result<()> {
        loop {
            // SAFETY: asks the kernel to take what is in the submission ring, whose entries are
            // complete before the queue can be given back, and to wait for nothing.
            match unsafe { system::enter_ring(self.descriptor.as_raw_fd(), self.depth) } {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(code) if is_for_later(code) => return Ok(()),
                    _ => return Err(entering(&self.name, error)),
                },
            }
        }
    }
}

/// The kernel is short of memory, or wants completions reaped first.
fn is_for_later(code: i32) -> bool {
    [libc::EAGAIN, libc::EBUSY].contains(&code)
}

fn entering(name: &str, error: io::Error) -> Error {
    Error::io(format!("{name}: io_uring_enter failed"), error)
}

impl RegisteredWrites {
    /// The number of the buffer that all of `hold` is in.
    fn find(&self, hold: &WriteHold) -> Option<u16> {
        let (start, length) = (hold.raw().0 as usize, hold.raw().1);
        let inside = |all: &WriteHold| {
            let (first, bytes) = (all.raw().0 as usize, all.raw().1);
            first <= start && start + length <= first + bytes
        };
        self.holds.iter().position(inside).map(|at| self.first + at as u16)
    }
}

impl Queue for UringQueue {
    fn register(&mut self, buffers: &[WriteBuffer]) {
        if self.in_flight() > 0 {
            return;
        }
        let former = std::mem::take(&mut self.registered);
        let mut vectors = if self.pool_registered { self.pool.vectors() } else { Vec::new() };
        let first = vectors.len();
        let holds: Vec<_> = buffers.iter().map(|buffer| buffer.hold(&(0..buffer.len()))).collect();
        vectors.extend(holds.iter().map(|hold| libc::iovec {
            iov_base: hold.raw().0.cast_mut().cast(),
            iov_len: hold.raw().1,
        }));
        if vectors.len() > REGISTERED_MAX {
            return;
        }
        let submitter = self.ring.submitter();
        let is_registered = self.pool_registered || !former.holds.is_empty();
        if is_registered && submitter.unregister_buffers().is_err() {
            return;
        }
        // Registered memory counts against a limit of locked memory; past it writes work without.
        // SAFETY: the holds and the pool outlive the ring, as above.
        if unsafe { submitter.register_buffers(&vectors) }.is_ok() {
            self.registered = RegisteredWrites { first: first as u16, holds };
        } else if self.pool_registered {
            // SAFETY: as when the queue was opened.
            self.pool_registered =
                unsafe { submitter.register_buffers(&self.pool.vectors()) }.is_ok();
        }
    }

    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        self.check_room()?;
        self.file.geometry().check(self.file.name(), offset, length)?;
        self.file.counters().count_read(length);
        let buffer = self.pool.take(length);
        self.gather(token, offset, length, Action::Read(buffer));
        Ok(())
    }

    fn write(&mut self, request: WriteRequest<'_>) -> Result<()> {
        self.check_room()?;
        request.check(&self.file.geometry(), self.file.name())?;
        self.file.counters().count_write(request.range.len(), request.mode);
        let hold = request.buffer.hold(&request.range);
        let registered = self.registered.find(&hold);
        let action = Action::Write(hold, request.mode, registered);
        self.gather(request.token, request.offset, request.range.len(), action);
        Ok(())
    }

    fn sync(&mut self, token: u64) -> Result<()> {
        self.check_room()?;
        self.file.counters().count_sync();
        self.gather(token, 0, 0, Action::Sync);
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        if self.gathered() == 0 { Ok(()) } else { self.enter(0) }
    }

    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        let wait_for = wait_for.min(self.in_flight());
        let mut reaped = self.drain(completions);
        let mut enters = self.defers();
        while enters || reaped < wait_for || self.gathered() > 0 {
            self.enter(wait_for.saturating_sub(reaped))?;
            reaped += self.drain(completions);
            enters = false;
        }
        Ok(())
    }

    fn reap_within(&mut self, timeout: Duration, completions: &mut Vec<Completion>) -> Result<()> {
        if self.drain(completions) > 0 && self.gathered() == 0 {
            return Ok(());
        }
        let limit = types::Timespec::from(timeout);
        let arguments = types::SubmitArgs::new().timespec(&limit);
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => {}
            // The time is over, a signal came, or completions must be reaped first.
            Err(error)
                if [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY]
                    .contains(&error.raw_os_error().unwrap_or_default()) => {}
            Err(error) => return Err(entering(self.file.name(), error)),
        }
        self.drain(completions);
        Ok(())
    }

    fn take_ready(&mut self, completions: &mut Vec<Completion>) -> Result<bool> {
        if self.bell.is_none() {
            return self.reap(0, completions).map(|()| false);
        }
        self.drain(completions);
        Ok(self.gathered() > 0)
    }

    fn doorbell(&self) -> Option<Arc<dyn Doorbell>> {
        let bell = Arc::clone(self.bell.as_ref()?);
        Some(bell)
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.ring.as_raw_fd())
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        let mut completions = Vec::with_capacity(self.in_flight());
        while self.in_flight() > 0 {
            if self.reap(self.in_flight(), &mut completions).is_err() {
                // The kernel may still transfer to the memory of these requests.
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, WriteMode};
    use crate::file::{FileDevice, FileOptions};
    use crate::testing::TempDir;

    #[test]
    fn writes_from_registered_memory_write_what_it_holds_at_the_time() {
        let dir = TempDir::new("registered");
        let capacity_bytes = Some(1 << 20);
        let options = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device = FileDevice::open(dir.path().join("device"), &options).unwrap();
        let file = Arc::clone(device.open_file());
        let options = QueueOptions { depth: 8, buffer_bytes: 4096 };
        let mut queue = UringQueue::new(file, options, Threads::Several).unwrap();
        let anonymous = |length| WriteBuffer::anonymous(length).unwrap();
        let mut buffers = [anonymous(64 << 10), anonymous(8192), anonymous(8192)];
        queue.register(&buffers[..2]);
        let registered = |buffer: &WriteBuffer, range| queue.registered.find(&buffer.hold(&range));
        let all = [0..8192, 4096..8192];
        let numbers = all.map(|range| buffers.each_ref().map(|b| registered(b, range.clone())));
        let first = queue.registered.first;
        assert_eq!(numbers, [[Some(first), Some(first + 1), None]; 2]);
        let mut completions = Vec::new();
        for round in 1..=3u8 {
            for (number, buffer) in buffers.iter_mut().enumerate() {
                buffer.bytes_mut().fill(round * 10 + number as u8);
                let mode = if round == 2 { WriteMode::Durable } else { WriteMode::Flushed };
                let (token, offset) = (number as u64, number as u64 * 8192);
                queue
                    .write(WriteRequest { token, offset, buffer, range: 4096..8192, mode })
                    .unwrap();
            }
            queue.read(9, 512 << 10, 4096).unwrap();
            queue.reap(4, &mut completions).unwrap();
            assert!(completions.drain(..).all(|completion| completion.result.is_ok()));
            for number in 0..3u8 {
                let mut read = IoBuffer::aligned(4096);
                device.read_at(u64::from(number) * 8192, &mut read).unwrap();
                assert!(read.iter().all(|&byte| byte == round * 10 + number), "round {round}");
            }
        }
    }

    #[test]
    fn a_request_is_pending_until_it_is_reaped() {
        let dir = TempDir::new("pending");
        let capacity_bytes = Some(1 << 20);
        let options = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device = FileDevice::open(dir.path().join("device"), &options).unwrap();
        let age = |seconds| {
            let pending = device.oldest_pending(Duration::from_secs(seconds))?;
            assert_eq!(pending.device, device.name());
            Some(pending.age.as_secs())
        };
        let mut queue = device.queue(QueueOptions { depth: 8, buffer_bytes: 4096 }).unwrap();
        assert_eq!(age(10), None);
        queue.read(1, 0, 4096).unwrap();
        queue.sync(2).unwrap();
        assert_eq!([age(11), age(40), age(41)], [Some(0), Some(29), Some(30)]);
        queue.submit().unwrap();
        let mut completions = Vec::new();
        queue.reap(2, &mut completions).unwrap();
        assert_eq!(age(50), None);
        device.sync().unwrap();
        assert_eq!(age(51), None);
    }

    #[test]
    fn a_doorbell_hands_over_what_was_gathered_and_may_ring_at_any_time() {
        const REQUESTS: u64 = 20_000;
        let dir = TempDir::new("doorbell");
        let capacity_bytes = Some(1 << 20);
        let options = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device = FileDevice::open(dir.path().join("device"), &options).unwrap();
        let file = Arc::clone(device.open_file());
        let options = QueueOptions { depth: 16, buffer_bytes: 4096 };
        let mut queue = UringQueue::new(file, options, Threads::Several).unwrap();
        let bell = queue.doorbell().unwrap();
        let mut completions = Vec::new();
        (0..3).for_each(|token| queue.read(token, token * 4096, 4096).unwrap());
        assert!(queue.take_ready(&mut completions).unwrap(), "they wait to be handed over");
        assert_eq!(queue.gathered(), 3, "looking hands over nothing");
        std::thread::scope(|scope| scope.spawn(|| bell.ring().unwrap()).join().unwrap());
        assert_eq!(queue.gathered(), 0);
        queue.reap(3, &mut completions).unwrap();
        assert_eq!(completions.len(), 3);
        // Who gathers, looks and waits races with who rings: each request completes once.
        let over = std::sync::atomic::AtomicBool::new(false);
        let mut seen = vec![0u8; REQUESTS as usize];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    bell.ring().unwrap();
                }
            });
            let mut next = 0;
            while next < REQUESTS || queue.in_flight() > 0 {
                while next < REQUESTS && queue.in_flight() < 16 {
                    queue.read(next, next % 256 * 4096, 4096).unwrap();
                    next += 1;
                }
                completions.clear();
                match next % 3 {
                    0 => queue.reap(1, &mut completions).unwrap(),
                    1 => queue.submit().unwrap(),
                    _ => queue.take_ready(&mut completions).map(|_| ()).unwrap(),
                }
                queue.reap(0, &mut completions).unwrap();
                for completion in completions.drain(..) {
                    completion.result.unwrap();
                    seen[completion.token as usize] += 1;
                }
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(seen.iter().all(|&times| times == 1));
        drop(queue);
        bell.ring().unwrap();
    }

    #[test]
    fn requests_outlive_the_thread_that_submitted_them() {
        let dir = TempDir::new("threads");
        let capacity_bytes = Some(1 << 20);
        let options = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device = FileDevice::open(dir.path().join("device"), &options).unwrap();
        let mut queue = device.queue(QueueOptions { depth: 64, buffer_bytes: 4096 }).unwrap();
        let submitting = std::thread::spawn(move || {
            for token in 0..60 {
                queue.read(token, token * 4096, 4096).unwrap();
            }
            (60..64).for_each(|token| queue.sync(token).unwrap());
            queue.submit().unwrap();
            queue
        });
        let mut queue = submitting.join().unwrap();
        let mut completions = Vec::new();
        queue.reap(64, &mut completions).unwrap();
        assert_eq!(completions.len(), 64);
        for completion in completions {
            completion.result.unwrap();
        }
    }
}
