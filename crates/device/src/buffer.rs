//! Memory that devices can transfer to and from: aligned, and kept alive while a request is in
//! flight.
//!
//! Invariants:
//! 1. Every buffer starts at a multiple of [`BUFFER_ALIGNMENT`].
//! 2. An [`IoBuffer`] has one owner at a time: the queue while in flight, then the caller.
//! 3. A [`WriteBuffer`] may be read by the device while its owner appends behind the range in
//!    flight. The owner never changes a byte of a range in flight: it would not be unsound, since
//!    nothing but the medium reads those bytes, but what lands on the medium would be undefined.
//! 4. Two `WriteBuffer`s never share a byte, but for aliases inside this crate.
#![expect(unsafe_code, reason = "buffers are views of raw memory that the kernel shares")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::mapping::Mapping;

/// Alignment of every buffer, bytes.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// Buffers of at least so many bytes ask for huge pages.
const HUGE_BYTES_MIN: usize = 1 << 20;

/// Aligned memory of one read. Derefs to exactly the bytes that were asked for. `Send`.
///
/// One that came from a queue goes back there when dropped, so hold it no longer than needed: a
/// queue whose buffers are all out serves reads from memory of their own, which costs more.
pub struct IoBuffer {
    start: NonNull<u8>,
    length: usize,
    home: Home,
}

/// Where the memory of an [`IoBuffer`] goes when it is dropped.
enum Home {
    /// Allocated with this layout.
    Allocator(Layout),
    /// The run of a pool that begins with this page.
    Pool(Arc<BufferPool>, usize),
    /// Allocated with this layout; a pool keeps it for the next long read.
    Long(Arc<BufferPool>, Layout),
}

// SAFETY: an `IoBuffer` owns its bytes alone; moving it moves that ownership.
unsafe impl Send for IoBuffer {}
// SAFETY: `&IoBuffer` only allows shared reads of bytes that nobody can change meanwhile.
unsafe impl Sync for IoBuffer {}

impl IoBuffer {
    /// Zeroed memory of its own, `length` bytes (0 allowed).
    pub fn aligned(length: usize) -> IoBuffer {
        let rounded = length.max(1).next_multiple_of(BUFFER_ALIGNMENT);
        let layout = Layout::from_size_align(rounded, BUFFER_ALIGNMENT)
            .expect("a length that fits in memory, rounded to 4096, is a valid layout");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        IoBuffer { start, length, home: Home::Allocator(layout) }
    }

    /// The number of the registered memory that it is a part of, if it came from a pool.
    pub(crate) fn registered(&self) -> Option<u16> {
        match &self.home {
            Home::Pool(_, page) => u16::try_from(page * BUFFER_ALIGNMENT / REGION_BYTES).ok(),
            Home::Allocator(_) | Home::Long(..) => None,
        }
    }

    /// Starts loading the bytes, up to 4 KiB: what a device has just written is in no near cache.
    #[inline]
    pub fn prefetch(&self) {
        for line in (0..self.length.min(BUFFER_ALIGNMENT)).step_by(64) {
            // SAFETY: `line` lies within the buffer, and so does the pointer.
            crate::table::prefetch_line(unsafe { self.start.as_ptr().add(line) }.cast_const());
        }
    }

    /// Where the memory starts, for the kernel to transfer to.
    pub(crate) fn as_raw(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for IoBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to at least `length` initialised bytes owned by this buffer. A
        // queue never derefs a buffer in flight, so the kernel does not change them meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for IoBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        match &self.home {
            // SAFETY: allocated in `aligned` with this layout and dropped once.
            Home::Allocator(layout) => unsafe { dealloc(self.start.as_ptr(), *layout) },
            Home::Pool(pool, page) => pool.give_back(*page, pages_of(self.length)),
            Home::Long(pool, layout) => pool.keep(IoBuffer {
                start: self.start,
                length: self.length,
                home: Home::Allocator(*layout),
            }),
        }
    }
}

impl fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuffer({} bytes)", self.length)
    }
}

/// Memory for the reads of one queue: runs of pages, as many as a read needs. Taking and giving
/// back allocate nothing.
pub(crate) struct BufferPool {
    memory: Mapping,
    /// A bit for each page, the lowest first; set while it is free. A run lies within one word.
    free: Mutex<Vec<u64>>,
    /// Memory of long reads that are over: new memory would be cleared, page by page.
    long: Mutex<Vec<IoBuffer>>,
}

/// Pages of a run, at most.
const RUN_PAGES_MAX: usize = u64::BITS as usize;
/// Buffers of long reads that are kept, and the longest one kept.
const LONG_MAX: usize = 4;
const LONG_BYTES_MAX: usize = 4 << 20;
/// Bytes that the kernel takes as one registered buffer: its limit, a multiple of the longest run.
const REGION_BYTES: usize = 1 << 30;

impl BufferPool {
    /// Memory for `count` reads of `buffer_bytes` each (rounded up to the alignment), or for more
    /// shorter ones or fewer longer ones.
    pub(crate) fn new(count: usize, buffer_bytes: usize) -> Result<Arc<BufferPool>> {
        let buffer_bytes = buffer_bytes.max(1).next_multiple_of(BUFFER_ALIGNMENT);
        let total = buffer_bytes.checked_mul(count).filter(|_| u32::try_from(count).is_ok());
        let Some(total) = total else {
            let detail = format!("{count} read buffers of {buffer_bytes} bytes are too many");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        };
        let memory = Mapping::anonymous(total)?;
        let pages = total / BUFFER_ALIGNMENT;
        let mut free = vec![u64::MAX; pages.div_ceil(RUN_PAGES_MAX)];
        if let Some(last) = free.last_mut().filter(|_| !pages.is_multiple_of(RUN_PAGES_MAX)) {
            *last = run_of(pages % RUN_PAGES_MAX);
        }
        Ok(Arc::new(BufferPool { memory, free: Mutex::new(free), long: Mutex::default() }))
    }

    /// A buffer of `length` bytes: a pooled one if there is a free run of pages for it. Pooled ones
    /// hold what earlier reads left in them.
    pub(crate) fn take(self: &Arc<Self>, length: usize) -> IoBuffer {
        if pages_of(length) > RUN_PAGES_MAX {
            return self.take_long(length);
        }
        let Some(page) = self.take_run(pages_of(length)) else { return IoBuffer::aligned(length) };
        let start = page * BUFFER_ALIGNMENT;
        assert!(start + length <= self.memory.len(), "a run past the pool");
        // SAFETY: the run lies within the mapping.
        let start = unsafe { self.memory.start().add(start) };
        IoBuffer { start, length, home: Home::Pool(Arc::clone(self), page) }
    }

    fn take_long(self: &Arc<Self>, length: usize) -> IoBuffer {
        let mut long = self.long.lock();
        let kept = long.iter().position(|kept| pages_of(kept.length) == pages_of(length));
        let buffer = kept.map(|at| long.swap_remove(at));
        drop(long);
        let mut buffer = buffer.unwrap_or_else(|| IoBuffer::aligned(length));
        buffer.length = length;
        if let (Home::Allocator(layout), true) = (&buffer.home, length <= LONG_BYTES_MAX) {
            buffer.home = Home::Long(Arc::clone(self), *layout);
        }
        buffer
    }

    fn keep(&self, buffer: IoBuffer) {
        let mut long = self.long.lock();
        if long.len() < LONG_MAX {
            long.push(buffer);
        }
    }

    /// The memory as the kernel wants to hear of it at registration.
    pub(crate) fn vectors(&self) -> Vec<libc::iovec> {
        let vector = |start: usize| libc::iovec {
            // SAFETY: `start` lies within the mapping.
            iov_base: unsafe { self.memory.start().add(start) }.as_ptr().cast(),
            iov_len: (self.memory.len() - start).min(REGION_BYTES),
        };
        (0..self.memory.len()).step_by(REGION_BYTES).map(vector).collect()
    }

    /// Takes the lowest free run of `pages`, so that a queue that is seldom deep touches few pages;
    /// the number of its first page.
    fn take_run(&self, pages: usize) -> Option<usize> {
        let mut free = self.free.lock();
        let (number, word) = free.iter_mut().enumerate().find(|(_, w)| runs(**w, pages) != 0)?;
        let first = runs(*word, pages).trailing_zeros() as usize;
        *word &= !(run_of(pages) << first);
        Some(number * RUN_PAGES_MAX + first)
    }

    fn give_back(&self, page: usize, pages: usize) {
        self.free.lock()[page / RUN_PAGES_MAX] |= run_of(pages) << (page % RUN_PAGES_MAX);
    }
}

/// Pages that a buffer of `length` bytes takes.
fn pages_of(length: usize) -> usize {
    length.max(1).div_ceil(BUFFER_ALIGNMENT)
}

/// The lowest `pages` bits.
fn run_of(pages: usize) -> u64 {
    u64::MAX >> (RUN_PAGES_MAX - pages)
}

/// Where in `free` at least `pages` set bits in a row begin.
fn runs(free: u64, pages: usize) -> u64 {
    let (mut starts, mut length) = (free, 1);
    while length < pages {
        let more = length.min(pages - length);
        starts &= starts >> more;
        length += more;
    }
    starts
}

/// Memory to write from: filled by its owner, read by the device. `Send` and `Sync`; not `Clone`.
///
/// A queue's `write` keeps the memory alive until its completion, even if the buffer is dropped.
pub struct WriteBuffer {
    memory: Arc<Mapping>,
    start: usize,
    length: usize,
}

/// A share in the memory of a [`WriteBuffer`], held while a write is in flight. Gives no access.
pub(crate) struct WriteHold {
    _memory: Arc<Mapping>,
    start: *const u8,
    length: usize,
}

// SAFETY: the pointer is only passed to the kernel, and the memory it points to is held.
unsafe impl Send for WriteHold {}

impl WriteBuffer {
    /// Zeroed private memory of `length` bytes, lost with the process. Large ones ask for huge
    /// pages: buffers made one after the other mostly lie side by side, and filling them and
    /// handing them to a device then takes one page of 2 MiB instead of 512.
    pub fn anonymous(length: usize) -> Result<WriteBuffer> {
        let memory = Mapping::anonymous(length)?;
        if length >= HUGE_BYTES_MIN {
            // A kernel without huge pages refuses; the buffer works all the same.
            let _refused = memory.advise(0, length, libc::MADV_HUGEPAGE);
        }
        Ok(WriteBuffer { memory: Arc::new(memory), start: 0, length })
    }

    /// Cuts `memory` from `start` on into disjoint buffers of the given lengths.
    pub(crate) fn cut(memory: Mapping, lengths: &[usize]) -> Vec<WriteBuffer> {
        let memory = Arc::new(memory);
        let mut start = 0;
        let mut buffers = Vec::with_capacity(lengths.len());
        for &length in lengths {
            assert!(start + length <= memory.len(), "buffer past its mapping");
            buffers.push(WriteBuffer { memory: Arc::clone(&memory), start, length });
            start += length;
        }
        buffers
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies within the mapping and belongs to this buffer alone; changing it
        // takes `&mut self`. The kernel only reads it.
        unsafe { std::slice::from_raw_parts(self.first(), self.length) }
    }

    /// All bytes, to be changed outside the ranges in flight.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive. A device may read
        // concurrently, but that is outside the program's memory accesses.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.length) }
    }

    /// Starts loading the memory lines from `start` on, `length` bytes (cut at the end of the
    /// buffer), to be written: a copy to memory that is not in a cache waits for it otherwise.
    #[inline]
    pub fn prefetch(&self, start: usize, length: usize) {
        let end = start.saturating_add(length).min(self.length);
        for line in (start..end).step_by(64) {
            // SAFETY: the line lies within the mapping, and so does the pointer.
            crate::table::prefetch_line(unsafe { self.first().add(line) }.cast_const());
        }
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it holds no byte; never true for one made by this crate.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The same bytes once more, for a queue to hand on. Only ever read through.
    pub(crate) fn alias(&self) -> WriteBuffer {
        let (start, length) = (self.start, self.length);
        WriteBuffer { memory: Arc::clone(&self.memory), start, length }
    }

    /// Keeps `range` alive for a write. The caller has checked that `range` is inside.
    pub(crate) fn hold(&self, range: &Range<usize>) -> WriteHold {
        let start = self.address(range).expect("the queue has checked the range");
        WriteHold { _memory: Arc::clone(&self.memory), start, length: range.len() }
    }

    /// Where `range` starts, if it is within the buffer. Makes no reference to the bytes: others
    /// may be changing those behind it.
    pub(crate) fn address(&self, range: &Range<usize>) -> Option<*const u8> {
        let inside = range.start <= range.end && range.end <= self.length;
        // SAFETY: the range is within the buffer, which is within the mapping.
        inside.then(|| unsafe { self.first().add(range.start).cast_const() })
    }

    fn first(&self) -> *mut u8 {
        // SAFETY: `start` is within the mapping by construction.
        unsafe { self.memory.start().as_ptr().add(self.start) }
    }
}

impl WriteHold {
    /// The bytes held: where they start and how many.
    pub(crate) fn raw(&self) -> (*const u8, usize) {
        (self.start, self.length)
    }
}

impl fmt::Debug for WriteBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteBuffer({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_exact() {
        for length in [0, 1, 512, 4096, 4097, 1 << 20] {
            let buffer = IoBuffer::aligned(length);
            assert_eq!(buffer.len(), length);
            assert_eq!(buffer.as_ptr() as usize % BUFFER_ALIGNMENT, 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn pooled_buffers_go_home_when_dropped() {
        let pool = BufferPool::new(2, 4096).unwrap();
        let first = pool.take(512);
        let second = pool.take(4096);
        assert_eq!((first.registered(), second.registered()), (Some(0), Some(0)));
        assert_ne!(first.as_ptr(), second.as_ptr());
        assert_eq!(pool.take(512).registered(), None, "empty pool: memory of its own");
        let start = first.as_ptr();
        drop(first);
        assert_eq!(pool.take(100).as_ptr(), start);
        assert_eq!(pool.take(4097).registered(), None, "no run so long: memory of its own");
    }

    #[test]
    fn reads_longer_than_planned_are_pooled_while_pages_in_a_row_are_free() {
        let pool = BufferPool::new(65, 8192).unwrap();
        let pages = |buffer: &IoBuffer| {
            let first = buffer.as_ptr() as usize;
            first..first + buffer.len().max(1).next_multiple_of(BUFFER_ALIGNMENT)
        };
        let mut held: Vec<IoBuffer> = Vec::new();
        let mut pooled = 0;
        for step in 0..2000usize {
            let fresh = pool.take(step * 2654435761 % (80 << 12));
            pooled += usize::from(fresh.registered().is_some());
            for other in &held {
                let (a, b) = (pages(&fresh), pages(other));
                assert!(a.end <= b.start || b.end <= a.start, "step {step}: {a:?} {b:?}");
            }
            held.push(fresh);
            if held.len() > 5 {
                held.swap_remove(step * 40503 % 5);
            }
        }
        assert!(pooled > 500, "{pooled} of 2000");
        drop(held);
        assert_eq!(*pool.free.lock(), [u64::MAX, u64::MAX, 3]);
        let whole = [64, 64, 2].map(|pages| pool.take(pages * BUFFER_ALIGNMENT));
        assert!(whole.iter().all(|buffer| buffer.registered() == Some(0)));
        assert_eq!(pool.take(0).registered(), None);
        assert_eq!(pool.take(65 * BUFFER_ALIGNMENT).registered(), None, "longer than any run");
    }

    #[test]
    fn memory_of_long_reads_is_used_again_by_reads_as_long() {
        let pool = BufferPool::new(1, 4096).unwrap();
        let mut first = pool.take(1 << 20);
        first.fill(7);
        let start = first.as_ptr();
        drop(first);
        assert_ne!(pool.take(2 << 20).as_ptr(), start, "another length");
        let again = pool.take((1 << 20) - 1);
        assert_eq!((again.as_ptr(), again.len()), (start, (1 << 20) - 1));
        let others: Vec<IoBuffer> = (0..6).map(|_| pool.take(1 << 20)).collect();
        assert!(others.iter().all(|other| other.as_ptr() != start));
        drop(others);
        assert_eq!(pool.long.lock().len(), LONG_MAX);
        drop(pool.take(LONG_BYTES_MAX + 1));
        assert!(pool.long.lock().iter().all(|kept| kept.len() <= LONG_BYTES_MAX));
        drop(pool);
        assert_eq!(again.len(), (1 << 20) - 1, "it outlives the pool's other holds");
    }

    #[test]
    fn pooled_buffers_outlive_the_queue_s_hold_on_the_pool() {
        let pool = BufferPool::new(1, 4096).unwrap();
        let mut buffer = pool.take(16);
        drop(pool);
        buffer.fill(7);
        assert_eq!(&*buffer, &[7; 16]);
    }

    #[test]
    fn cut_buffers_share_no_byte() {
        let mut buffers = WriteBuffer::cut(Mapping::anonymous(3 * 4096).unwrap(), &[4096, 8192]);
        buffers[0].bytes_mut().fill(1);
        buffers[1].bytes_mut().fill(2);
        assert!(buffers[0].bytes().iter().all(|&byte| byte == 1));
        assert_eq!(buffers[1].len(), 8192);
    }
}
