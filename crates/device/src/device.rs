//! The device trait: what the engine asks of a medium.
//!
//! Invariants that every implementation keeps:
//! 1. Offsets, lengths and memory are multiples of `Geometry::sector_bytes`; anything else is
//!    `ErrorKind::InvalidInput`, never a silent read-modify-write.
//! 2. A read sees every write that completed before the read was submitted.
//! 3. A completed write is durable only after a later `sync` completes, or if it was submitted as
//!    `WriteMode::Durable`.
//! 4. After a failed write or sync the medium's state is unknown; the caller must poison itself.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::buffer::{IoBuffer, WriteBuffer};
use crate::error::{Error, ErrorKind, Result};
use crate::pending::PendingIo;
use crate::place::{Ground, Place};

/// Something with capacity that reads, writes and syncs bytes at offsets. Thread-safe.
pub trait Device: Send + Sync {
    /// Sizes and alignments; constant while the device is open.
    fn geometry(&self) -> Geometry;

    /// A name for messages: a path, or `memory`.
    fn name(&self) -> String;

    /// Where the files and block devices are that it is made of, in their order; none where there
    /// are none.
    fn places(&self) -> Vec<Place> {
        Vec::new()
    }

    /// What has become of them since it was opened.
    fn ground(&self) -> Ground {
        Ground::Firm
    }

    /// Whether any of it is a file, in which unknown bytes are somebody's. What a used block device
    /// was left with is not.
    fn is_file(&self) -> bool {
        false
    }

    /// Whether a transfer of `length` bytes is a copy that the calling thread makes: nothing
    /// is gained by having others in flight beside it.
    fn answers_at_once(&self, _length: usize) -> bool {
        false
    }

    /// Reads exactly `buffer.len()` bytes at `offset`. Blocking. `buffer` must be aligned
    /// ([`IoBuffer`] is).
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`. Blocking; not durable until [`Device::sync`].
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// On return everything written before the call survives power loss.
    fn sync(&self) -> Result<()>;

    /// Tells the medium that a range is unused. Best effort; contents become undefined.
    fn discard(&self, offset: u64, length: u64) -> Result<()>;

    /// Opens a queue owned by the calling thread.
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>>;

    /// Opens a queue for one thread alone, not necessarily the calling one, which may cost less
    /// than one that threads use in turn: what one thread has handed over may not complete for
    /// another until the first one does a system call or is interrupted.
    fn queue_of_thread(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.queue(options)
    }

    /// The oldest request that is not answered, of blocking ones and of all queues, seen from `now`
    /// of any clock that only goes forward: it began no later than at an earlier call. A request of
    /// a queue is pending until it is reaped. `None` if there is none, or where nobody counts.
    fn oldest_pending(&self, _now: Duration) -> Option<PendingIo> {
        None
    }

    /// I/O counts since the device was opened, all queues included.
    fn counters(&self) -> &Counters;
}

/// Many requests in flight from one thread. Requests complete in any order.
///
/// Requests are gathered until [`Queue::submit`] (or [`Queue::reap`], which submits first), so that
/// one doorbell serves a batch. Dropping a queue waits for what is in flight.
pub trait Queue: Send {
    /// Tells the queue which memory most of its writes will be from. It may have the kernel pin it
    /// once, which saves finding its pages at each write; the memory is held until other memory is
    /// named or the queue is gone. No effect while requests are in flight.
    fn register(&mut self, _buffers: &[WriteBuffer]) {}

    /// Gathers a read of `length` bytes at `offset` into a buffer of the queue's own (in
    /// registered memory where enough of it is free). The completion hands the buffer over;
    /// dropping it gives it back to the queue.
    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()>;

    /// Gathers a write of `range` of `buffer` at `offset`. The bytes in `range` must not change
    /// until the completion; the memory itself is kept alive by the queue.
    fn write(&mut self, request: WriteRequest<'_>) -> Result<()>;

    /// Gathers a sync: everything *completed* before it is durable once it completes.
    fn sync(&mut self, token: u64) -> Result<()>;

    /// Hands all gathered requests to the device.
    fn submit(&mut self) -> Result<()>;

    /// Submits, waits until at least `wait_for` requests (at most those in flight) are done, and
    /// appends all completions that are ready to `completions`.
    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()>;

    /// Submits, waits until a request is done, or for so long, or until a signal comes, and appends
    /// all completions that are ready.
    fn reap_within(&mut self, timeout: Duration, completions: &mut Vec<Completion>) -> Result<()> {
        let before = completions.len();
        self.reap(0, completions)?;
        if completions.len() > before {
            return Ok(());
        }
        let descriptors: Vec<RawFd> = self.poll_fd().into_iter().collect();
        crate::waiting::wait_readable(&descriptors, timeout)?;
        self.reap(0, completions)
    }

    /// Appends all completions that are ready. Submits nothing where [`Queue::doorbell`] is one;
    /// whether something is left to be handed over then.
    fn take_ready(&mut self, completions: &mut Vec<Completion>) -> Result<bool> {
        self.reap(0, completions).map(|()| false)
    }

    /// What hands over gathered requests for whoever gave the queue back to others: handing over
    /// takes long, and a lock on the queue need not be held for it. `None`: only the queue can.
    fn doorbell(&self) -> Option<Arc<dyn Doorbell>> {
        None
    }

    /// Requests gathered or in flight whose completion was not yet reaped.
    fn in_flight(&self) -> usize;

    /// Requests that may be in flight at once; `read`, `write` and `sync` past it are `Busy`.
    fn depth(&self) -> usize;

    /// A descriptor that polls readable when completions wait; `None` where there is none.
    fn poll_fd(&self) -> Option<RawFd>;
}

/// Hands what was gathered on a queue to the device, while others may use the queue. Whatever it
/// does not hand over, the queue's next submission does.
pub trait Doorbell: Send + Sync {
    /// Hands over all requests gathered so far. No effect if the queue has done so meanwhile, or is
    /// no longer there.
    fn ring(&self) -> Result<()>;
}

/// One write for [`Queue::write`].
#[derive(Debug)]
pub struct WriteRequest<'a> {
    /// Returned in the completion.
    pub token: u64,
    /// Where on the device, in bytes.
    pub offset: u64,
    /// The memory to write from.
    pub buffer: &'a WriteBuffer,
    /// Which bytes of `buffer`.
    pub range: std::ops::Range<usize>,
    /// Whether completion means durability.
    pub mode: WriteMode,
}

/// What the completion of a write means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Handed to the device; may be lost with power until a sync.
    Flushed,
    /// Survives power loss once completed (`O_DSYNC`).
    Durable,
}

/// The end of one request.
#[derive(Debug)]
pub struct Completion {
    /// The token the request was gathered with.
    pub token: u64,
    /// `Ok` if the whole range was transferred.
    pub result: Result<()>,
    /// For reads: the buffer, holding exactly the bytes asked for.
    pub buffer: Option<IoBuffer>,
}

/// How a queue is set up.
#[derive(Debug, Clone, Copy)]
pub struct QueueOptions {
    /// Most requests in flight, 1 to 4096.
    pub depth: usize,
    /// Registered memory for reads, bytes for each of `depth`; reads that find too little of it
    /// get memory of their own.
    pub buffer_bytes: usize,
}

/// Sizes and alignments of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Usable size in bytes, a multiple of `sync_unit_bytes`.
    pub capacity_bytes: u64,
    /// Alignment of offsets, lengths and memory; a power of two of at least 512.
    pub sector_bytes: u32,
    /// Writes that share no unit of this size cannot harm each other when power fails; a power of
    /// two, a multiple of `sector_bytes` (the physical block of the medium).
    pub sync_unit_bytes: u32,
}

impl Geometry {
    /// Whether `length` bytes at `offset` are a range that the device `name` can transfer:
    /// aligned, not empty and within the capacity. Else `InvalidInput`.
    pub fn check(&self, name: &str, offset: u64, length: usize) -> Result<()> {
        let sector = u64::from(self.sector_bytes);
        let end = offset.checked_add(length as u64);
        let inside = end.is_some_and(|end| end <= self.capacity_bytes);
        let aligned = offset.is_multiple_of(sector) && (length as u64).is_multiple_of(sector);
        if length > 0 && inside && aligned {
            return Ok(());
        }
        let detail = format!(
            "{name}: {length} bytes at offset {offset} are no range of it: expected multiples of \
             {sector} below {} bytes",
            self.capacity_bytes
        );
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    /// Like [`Geometry::check`], and whether the memory is aligned.
    pub fn check_memory(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check_address(name, offset, (bytes.as_ptr(), bytes.len()))
    }

    fn check_address(
        &self,
        name: &str,
        offset: u64,
        (start, length): (*const u8, usize),
    ) -> Result<()> {
        self.check(name, offset, length)?;
        if start.addr().is_multiple_of(self.sector_bytes as usize) {
            return Ok(());
        }
        let detail = format!(
            "{name}: memory for {length} bytes at offset {offset} is not aligned to {} bytes",
            self.sector_bytes
        );
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }
}

impl QueueOptions {
    /// Most requests in flight that a queue can be opened for.
    pub const DEPTH_MAX: usize = 4096;

    /// Whether a queue can be opened like this. Else `InvalidInput`.
    pub fn check(&self, name: &str) -> Result<()> {
        if (1..=Self::DEPTH_MAX).contains(&self.depth) {
            return Ok(());
        }
        let detail = format!(
            "{name}: a queue cannot be {} requests deep; expected 1 to {}",
            self.depth,
            Self::DEPTH_MAX
        );
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }
}

impl WriteRequest<'_> {
    /// Whether the range is within the buffer and one that `geometry` takes. Else `InvalidInput`.
    pub fn check(&self, geometry: &Geometry, name: &str) -> Result<()> {
        let start = self.buffer.address(&self.range).ok_or_else(|| {
            let detail = format!(
                "{name}: bytes {:?} of a buffer of {} bytes",
                self.range,
                self.buffer.len()
            );
            Error::new(ErrorKind::InvalidInput, detail)
        })?;
        geometry.check_address(name, self.offset, (start, self.range.len()))
    }
}

/// The error of a queue that has no room for another request.
pub(crate) fn busy(name: &str, depth: usize) -> Error {
    let detail = format!("{name}: all {depth} requests of the queue are in flight; reap first");
    Error::new(ErrorKind::Busy, detail)
}

/// I/O counts of a device, monotonic since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    /// Read requests.
    pub reads: AtomicU64,
    /// Bytes read.
    pub read_bytes: AtomicU64,
    /// Write requests.
    pub writes: AtomicU64,
    /// Bytes written.
    pub written_bytes: AtomicU64,
    /// Syncs, durable writes included.
    pub syncs: AtomicU64,
}

impl Counters {
    /// Counts one read of `bytes`.
    pub fn count_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts one write of `bytes`.
    pub fn count_write(&self, bytes: usize, mode: WriteMode) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if mode == WriteMode::Durable {
            self.count_sync();
        }
    }

    /// Counts one sync.
    pub fn count_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}
