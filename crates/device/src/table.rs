//! A growable array of words that never moves: memory for the index.
//!
//! Invariants:
//! 1. The address space is set aside once; growing and shrinking never copy.
//! 2. Words past the length are zero or unmapped, so growth adds only zeros.
#![expect(unsafe_code, reason = "a view of mapped memory, and prefetch instructions")]

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::error::{Error, ErrorKind, Result};
use crate::mapping::{Mapping, page_bytes};

/// Size of a huge page where the platform has them, bytes.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Zeroed `u64` words at a fixed address. Derefs to the words within the length.
pub struct Table {
    memory: Mapping,
    skipped: usize,
    length: usize,
    words_max: usize,
}

impl Table {
    /// Sets aside address space for `words_max` words, none of them in use yet. Memory is taken as
    /// words are first touched.
    pub fn reserve(words_max: usize) -> Result<Table> {
        let bytes = bytes_of(words_max)?;
        let memory = Mapping::anonymous(bytes)?;
        Ok(Table { memory, skipped: 0, length: 0, words_max })
    }

    /// Like [`Table::reserve`], asking for huge pages: look-ups in tables far larger than the
    /// processor's caches then miss the address translation less often. Memory is taken 2 MiB at a
    /// time. Where the system has no huge pages, it is a plain table.
    pub fn reserve_huge(words_max: usize) -> Result<Table> {
        let bytes = bytes_of(words_max)?;
        let memory = Mapping::anonymous(bytes + HUGE_PAGE_BYTES)?;
        let start = memory.start().as_ptr() as usize;
        let skipped = start.next_multiple_of(HUGE_PAGE_BYTES) - start;
        let advised = bytes.next_multiple_of(page_bytes());
        // A kernel without huge pages refuses; the table works all the same.
        let _refused = memory.advise(skipped, advised, libc::MADV_HUGEPAGE);
        Ok(Table { memory, skipped, length: 0, words_max })
    }

    /// Words in use.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether no word is in use.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Words that address space was set aside for.
    pub fn words_max(&self) -> usize {
        self.words_max
    }

    /// Makes the table `words` long; words that come into view are zero. `words` is at least
    /// [`Table::len`] and at most [`Table::words_max`], else `InvalidInput`.
    pub fn grow(&mut self, words: usize) -> Result<()> {
        if words < self.length || words > self.words_max {
            let detail = format!(
                "table of {} words cannot grow to {words}; its limit is {}",
                self.length, self.words_max
            );
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        self.length = words;
        Ok(())
    }

    /// Makes the table `words` long and gives the pages behind back to the system. No effect if it
    /// is not longer than that.
    pub fn shrink(&mut self, words: usize) -> Result<()> {
        if words >= self.length {
            return Ok(());
        }
        let page = page_bytes();
        let end = self.skipped + self.length * size_of::<u64>();
        let from = (self.skipped + words * size_of::<u64>()).next_multiple_of(page);
        let kept_words = ((from - self.skipped) / size_of::<u64>()).min(self.length);
        self[words..kept_words].fill(0);
        self.length = words;
        if from >= end {
            return Ok(());
        }
        let length = end.next_multiple_of(page).min(self.memory.len()) - from;
        self.memory.advise(from, length, libc::MADV_DONTNEED).map_err(|source| {
            Error::io(format!("cannot give back {length} bytes of a table"), source)
        })
    }

    /// Starts loading the cache line of `word`. No effect past the length.
    #[inline]
    pub fn prefetch(&self, word: usize) {
        if word < self.length {
            // SAFETY: the word is within the mapping.
            prefetch_line(unsafe { self.first().add(word) }.cast());
        }
    }

    #[inline]
    fn first(&self) -> *mut u64 {
        // SAFETY: `skipped` is within the mapping, which is longer than the table by it.
        unsafe { self.memory.start().as_ptr().add(self.skipped).cast() }
    }
}

impl Deref for Table {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        // SAFETY: `length` words from `first` are mapped, aligned and initialised (fresh anonymous
        // pages are zero), and only `&mut self` changes them.
        unsafe { std::slice::from_raw_parts(self.first(), self.length) }
    }
}

impl DerefMut for Table {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.length) }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} of {} words)", self.length, self.words_max)
    }
}

fn bytes_of(words: usize) -> Result<usize> {
    let bytes = words.checked_mul(size_of::<u64>());
    bytes.filter(|&bytes| bytes > 0 && bytes < isize::MAX as usize / 2).ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, format!("a table of {words} words cannot be mapped"))
    })
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn prefetch_line(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: prefetching reads nothing as far as the program can tell; SSE is always there.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn prefetch_line(line: *const u8) {
    // SAFETY: the instruction is a hint without effect on memory or registers.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) line, options(nostack, readonly));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn prefetch_line(_line: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut table: Table) {
        assert!(table.is_empty());
        table.prefetch(0);
        table.grow(10_000).unwrap();
        assert!(table.iter().all(|&word| word == 0));
        let address = table.as_ptr();
        table.fill(u64::MAX);
        table.shrink(777).unwrap();
        table.grow(1_000_000).unwrap();
        assert_eq!(table.as_ptr(), address, "growing never moves");
        assert!(table[..777].iter().all(|&word| word == u64::MAX));
        assert!(table[777..].iter().all(|&word| word == 0), "regrown words are zero");
        table.prefetch(999_999);
        table.prefetch(usize::MAX);
        assert_eq!(table.grow(1_000_001).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(table.grow(5).unwrap_err().kind(), ErrorKind::InvalidInput);
        table.fill(1);
        table.shrink(0).unwrap();
        table.grow(1_000_000).unwrap();
        assert!(table.iter().all(|&word| word == 0));
    }

    #[test]
    fn words_that_come_into_view_are_zero_and_nothing_moves() {
        check(Table::reserve(1_000_000).unwrap());
        check(Table::reserve_huge(1_000_000).unwrap());
    }

    #[test]
    fn address_space_far_beyond_memory_can_be_reserved() {
        let mut table = Table::reserve_huge(1 << 37).unwrap();
        table.grow(1 << 37).unwrap();
        table[(1 << 37) - 1] = 5;
        assert_eq!(table[(1 << 37) - 1], 5);
        assert_eq!(Table::reserve(0).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(Table::reserve(usize::MAX).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
