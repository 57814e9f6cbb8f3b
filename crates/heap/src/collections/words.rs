//! Words of the heap's memory, checked: the one place where collections touch it.
//!
//! Invariants:
//! 1. Nothing outside the heap is read, whatever a handle found in the heap says.
//! 2. Words that may change under a reader are read and written as atomics, so a reader sees an old
//!    word or a new one. Plain slices are made only of bytes that never change once published.

#![expect(unsafe_code, reason = "memory that is mapped and addressed by hand")]

use std::sync::atomic::{AtomicU64, Ordering};

use entresol_planted::planted;

use crate::error::{Error, ErrorKind, Result};
use crate::{Heap, Transaction};

/// A heap's memory as an operation sees it.
#[derive(Clone, Copy)]
pub(super) struct Words<'h> {
    heap: &'h Heap,
    base: *mut u8,
    /// Where data begins and ends.
    first: u64,
    bytes: u64,
}

impl<'h> Words<'h> {
    pub(super) fn of(heap: &'h Heap) -> Words<'h> {
        Words { heap, base: heap.base(), first: heap.data_offset(), bytes: heap.size_bytes() }
    }

    /// The word at `offset`, a multiple of eight.
    #[inline]
    pub(super) fn load(&self, offset: u64) -> Result<u64> {
        self.check(offset, 8)?;
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Begins to bring the lines of `start..end` into the processor's cache.
    #[inline]
    pub(super) fn prefetch_all(&self, start: u64, end: u64) {
        #[cfg(target_arch = "x86_64")]
        if start >= self.first && end <= self.bytes {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let (mut at, last) = (start, end - 1);
            loop {
                // SAFETY: the address lies inside the heap's mapping; a prefetch reads nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(self.base.add(at as usize).cast()) };
                if at >= last {
                    break;
                }
                at = (at + 64).min(last);
            }
        }
    }

    /// `N` words from `offset`.
    #[inline]
    pub(super) fn load_words<const N: usize>(&self, offset: u64) -> Result<[u64; N]> {
        self.check(offset, 8 * N as u64)?;
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.word(offset + 8 * index as u64)?.load(Ordering::Acquire);
        }
        Ok(words)
    }

    /// The byte at `offset`.
    #[inline]
    pub(super) fn byte(&self, offset: u64) -> Result<u8> {
        let word = self.load(offset & !7)?;
        Ok(word.to_le_bytes()[(offset & 7) as usize])
    }

    /// Bytes that do not change as long as the block that holds them is not reused: what the caller
    /// published once and only replaces as a whole.
    #[inline]
    pub(super) fn bytes(&self, offset: u64, length: u64) -> Result<&'h [u8]> {
        self.check(offset, length)?;
        // SAFETY: the range lies in the heap's mapping, which outlives `'h`. By the caller's
        // promise nobody writes it while a guard or a transaction keeps its block.
        Ok(unsafe { std::slice::from_raw_parts(self.base.add(offset as usize), length as usize) })
    }

    /// Stores `value` at `offset` as part of `transaction`.
    pub(super) fn store(
        &self,
        transaction: &mut Transaction,
        offset: u64,
        value: u64,
    ) -> Result<()> {
        self.check(offset, 8)?;
        if !planted!("collection-store-not-logged") {
            transaction.add(offset, 8)?;
        }
        self.put(offset, value)
    }

    /// Stores `value` at `offset`, in a range that was already added to a transaction.
    pub(super) fn put(&self, offset: u64, value: u64) -> Result<()> {
        self.check(offset, 8)?;
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Copies `from` to `offset`, in a block that nobody else can see yet.
    pub(super) fn fill(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.check(offset, from.len() as u64)?;
        // SAFETY: the range lies in the heap's mapping, and by the caller's promise its block was
        // allocated in this transaction and is not published, so nobody reads or writes it.
        unsafe {
            let to = self.base.add(offset as usize);
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
        }
        Ok(())
    }

    /// Bytes of the heap: nothing in it has more parts than this.
    pub(super) fn heap_bytes(&self) -> u64 {
        self.heap.size_bytes()
    }

    /// Whether there is a live block of at least `bytes` at `handle`.
    pub(super) fn is_block(&self, handle: u64, bytes: u64) -> bool {
        self.heap.usable_bytes(handle).is_some_and(|usable| usable >= bytes)
    }

    /// The same heap with the size it has now.
    pub(super) fn again(&self) -> Words<'h> {
        Words::of(self.heap)
    }

    #[inline]
    fn word(&self, offset: u64) -> Result<&'h AtomicU64> {
        if !offset.is_multiple_of(8) {
            return Err(outside(offset, 8, self.bytes));
        }
        // SAFETY: every caller checked that the word lies in the heap's mapping, which outlives
        // `'h`; it is aligned, as the mapping's base is.
        Ok(unsafe { AtomicU64::from_ptr(self.base.add(offset as usize).cast()) })
    }

    #[inline]
    fn check(&self, offset: u64, length: u64) -> Result<()> {
        let fits = |bytes: u64| offset >= self.first && length <= bytes && offset <= bytes - length;
        // The heap may have grown since the operation began.
        if fits(self.bytes) || fits(self.heap.size_bytes()) {
            return Ok(());
        }
        Err(outside(offset, length, self.heap.size_bytes()))
    }
}

#[cold]
fn outside(offset: u64, length: u64, bytes: u64) -> Error {
    let detail = format!(
        "a collection refers to {length} bytes at {offset} of a heap of {bytes} bytes; \
         it is damaged, or its handle is not its own"
    );
    Error::new(ErrorKind::Corrupt, detail)
}
