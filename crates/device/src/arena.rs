//! Equal pieces of one range of memory with huge pages.
//!
//! Memory that is mapped piece by piece gets no huge page if a piece is shorter than one, because
//! the rest of the page is not mapped when the piece is first touched.
//!
//! Invariants:
//! 1. A piece's bytes belong to its [`ArenaPiece`] alone until that is dropped.
//! 2. The lowest free piece is taken first. So used pieces lie together, and while no piece is
//!    given back, at most one huge page is in use only in part.
//! 3. Pieces up to the highest that was ever taken, and those that share its huge page, may be
//!    touched. The memory above is only address space.
#![expect(unsafe_code, reason = "pieces are views of mapped memory")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::mapping::{Mapping, page_bytes};
use crate::table::{HUGE_PAGE_BYTES, prefetch_line};

/// Address space for pieces of one length. Thread-safe. Shared by its pieces: the last one unmaps
/// it.
pub struct Arena {
    memory: Mapping,
    skipped: usize,
    /// What is opened at a time, bytes.
    step: usize,
    piece_bytes: usize,
    pieces_max: usize,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    /// Numbers of pieces that were given back.
    back: BinaryHeap<Reverse<usize>>,
    /// The lowest number that was never taken.
    next: usize,
    /// Bytes that may be touched, from the first piece on.
    opened: usize,
}

/// One piece of an [`Arena`]. Dropped, it gives its memory back to the system.
pub struct ArenaPiece {
    arena: Arc<Arena>,
    number: usize,
    start: NonNull<u8>,
}

// SAFETY: a piece owns its bytes alone; moving it moves that ownership.
unsafe impl Send for ArenaPiece {}
// SAFETY: `&ArenaPiece` only allows shared reads of bytes that nobody can change meanwhile.
unsafe impl Sync for ArenaPiece {}

impl Arena {
    /// Sets address space aside for `pieces_max` pieces of `piece_bytes`, a multiple of the page.
    /// Memory is taken as pieces are first touched.
    pub fn reserve(piece_bytes: usize, pieces_max: usize) -> Result<Arc<Arena>> {
        let memory = Mapping::reserved(bytes_of(piece_bytes, pieces_max)?)?;
        Ok(Arc::new(Arena::of(memory, (0, piece_bytes), (piece_bytes, pieces_max))))
    }

    /// Like [`Arena::reserve`], asking for huge pages. Memory is taken 2 MiB at a time: up to
    /// [`HUGE_PAGE_BYTES`] more than is in use. Where the system has no huge pages, it is a plain
    /// arena.
    pub fn reserve_huge(piece_bytes: usize, pieces_max: usize) -> Result<Arc<Arena>> {
        let bytes = bytes_of(piece_bytes, pieces_max)?;
        let memory = Mapping::reserved(bytes + 2 * HUGE_PAGE_BYTES)?;
        let start = memory.start().as_ptr() as usize;
        let skipped = start.next_multiple_of(HUGE_PAGE_BYTES) - start;
        // A kernel without huge pages refuses; the memory works all the same.
        let advised = bytes.next_multiple_of(HUGE_PAGE_BYTES);
        let _refused = memory.advise(skipped, advised, libc::MADV_HUGEPAGE);
        Ok(Arc::new(Arena::of(memory, (skipped, HUGE_PAGE_BYTES), (piece_bytes, pieces_max))))
    }

    fn of(
        memory: Mapping,
        (skipped, step): (usize, usize),
        (piece_bytes, pieces_max): (usize, usize),
    ) -> Arena {
        let free = Mutex::new(Free::default());
        Arena { memory, skipped, step, piece_bytes, pieces_max, free }
    }

    /// The lowest piece that is free, zeroed; `None`: all are in use, or the system has no more
    /// memory.
    pub fn take(self: &Arc<Arena>) -> Option<ArenaPiece> {
        let mut free = self.free.lock();
        let number = match free.back.pop() {
            Some(Reverse(number)) => number,
            None if free.next < self.pieces_max => {
                self.open_next(&mut free)?;
                free.next += 1;
                free.next - 1
            }
            None => return None,
        };
        let at = self.skipped + number * self.piece_bytes;
        // SAFETY: the piece is within the mapping.
        let start = unsafe { self.memory.start().add(at) };
        Some(ArenaPiece { arena: Arc::clone(self), number, start })
    }

    fn open_next(&self, free: &mut Free) -> Option<()> {
        let wanted = ((free.next + 1) * self.piece_bytes).next_multiple_of(self.step);
        if wanted > free.opened {
            let from = self.skipped + free.opened;
            self.memory.open(from, wanted - free.opened).ok()?;
            free.opened = wanted;
        }
        Some(())
    }

    /// Bytes of a piece.
    pub fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }
}

impl ArenaPiece {
    /// Where it lies among the pieces of its arena, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// All bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies within the mapping, which the arena keeps, and belongs to this
        // piece alone; changing it takes `&mut self`. Fresh anonymous pages are initialised: zero.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.arena.piece_bytes) }
    }

    /// All bytes, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.arena.piece_bytes) }
    }

    /// Starts loading the memory lines from `start` on, `length` bytes, cut at the piece's end.
    #[inline]
    pub fn prefetch(&self, start: usize, length: usize) {
        let end = start.saturating_add(length).min(self.arena.piece_bytes);
        for line in (start..end).step_by(64) {
            // SAFETY: the line lies within the mapping, and so does the pointer.
            prefetch_line(unsafe { self.start.as_ptr().add(line) }.cast_const());
        }
    }
}

impl Drop for ArenaPiece {
    fn drop(&mut self) {
        let at = self.arena.skipped + self.number * self.arena.piece_bytes;
        // Advice on memory of one's own is refused only where pages are locked; they stay then.
        let given = self.arena.memory.advise(at, self.arena.piece_bytes, libc::MADV_DONTNEED);
        if given.is_err() {
            self.bytes_mut().fill(0);
        }
        self.arena.free.lock().back.push(Reverse(self.number));
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({} pieces of {} bytes)", self.pieces_max, self.piece_bytes)
    }
}

impl fmt::Debug for ArenaPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArenaPiece({} of {:?})", self.number, self.arena)
    }
}

fn bytes_of(piece_bytes: usize, pieces_max: usize) -> Result<usize> {
    let bytes = piece_bytes.checked_mul(pieces_max).filter(|bytes| *bytes > 0);
    let bytes = bytes.filter(|bytes| *bytes < isize::MAX as usize / 2);
    bytes.filter(|_| piece_bytes.is_multiple_of(page_bytes())).ok_or_else(|| {
        let detail = format!("{pieces_max} pieces of {piece_bytes} bytes cannot be mapped");
        Error::new(ErrorKind::InvalidInput, detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_piece_is_taken_first_and_is_zero() {
        let plain = [16 << 10, 2 << 20].map(|bytes| Arena::reserve(bytes, 4).unwrap());
        let huge = [4096, 256 << 10, 2 << 20].map(|bytes| Arena::reserve_huge(bytes, 4).unwrap());
        for arena in plain.iter().chain(&huge) {
            let piece_bytes = arena.piece_bytes();
            let mut held: Vec<ArenaPiece> = (0..4).map(|_| arena.take().unwrap()).collect();
            assert!(arena.take().is_none(), "all are in use");
            for (number, piece) in held.iter_mut().enumerate() {
                assert_eq!(piece.number(), number);
                piece.prefetch(piece_bytes - 1, 5000);
                piece.bytes_mut().fill(number as u8 + 1);
            }
            held.remove(2);
            held.remove(0);
            let again = [arena.take().unwrap(), arena.take().unwrap()];
            assert_eq!(again.each_ref().map(ArenaPiece::number), [0, 2]);
            assert!(again.iter().all(|piece| piece.bytes().iter().all(|byte| *byte == 0)));
            assert!(held[0].bytes().iter().all(|byte| *byte == 2));
            assert!(held[1].bytes().iter().all(|byte| *byte == 4));
        }
    }

    #[test]
    fn pieces_that_are_given_back_are_not_resident() {
        for arena in [Arena::reserve(256 << 10, 64), Arena::reserve_huge(256 << 10, 64)] {
            let arena = arena.unwrap();
            let mut held: Vec<ArenaPiece> = (0..64).map(|_| arena.take().unwrap()).collect();
            held.iter_mut().for_each(|piece| piece.bytes_mut().fill(1));
            assert_eq!(resident_pages(&arena), 64 * (256 << 10) / page_bytes());
            held.truncate(21);
            assert_eq!(resident_pages(&arena), 21 * (256 << 10) / page_bytes());
        }
    }

    #[test]
    fn what_was_never_taken_is_address_space_alone() {
        let arena = Arena::reserve_huge(256 << 10, 1 << 20).unwrap();
        let _held: Vec<ArenaPiece> = (0..9).map(|_| arena.take().unwrap()).collect();
        let start = arena.memory.start().as_ptr() as usize;
        let all = start..start + arena.memory.len();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut writable = 0;
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let (from, to) =
                line.split(' ').next().and_then(|range| range.split_once('-')).unwrap();
            let [from, to] = [from, to].map(|at| usize::from_str_radix(at, 16).unwrap());
            writable += to.min(all.end).saturating_sub(from.max(all.start));
        }
        assert_eq!(writable, 2 * HUGE_PAGE_BYTES, "nine pieces, in whole huge pages");
    }

    #[test]
    fn pieces_outlive_the_arena_that_they_were_taken_from() {
        let arena = Arena::reserve(1 << 20, 2).unwrap();
        let mut piece = arena.take().unwrap();
        drop(arena);
        piece.bytes_mut()[77] = 3;
        assert_eq!(piece.bytes()[77], 3);
    }

    #[test]
    fn pieces_of_no_or_broken_pages_and_beyond_the_address_space_are_refused() {
        for (piece_bytes, pieces) in [(0, 5), (4096, 0), (5000, 5), (1 << 40, 1 << 40)] {
            for refused in [Arena::reserve, Arena::reserve_huge].map(|of| of(piece_bytes, pieces)) {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
            }
        }
    }

    fn resident_pages(arena: &Arena) -> usize {
        let bytes = arena.pieces_max * arena.piece_bytes;
        let mut pages = vec![0u8; bytes / page_bytes()];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let failed = unsafe {
            let start = arena.memory.start().as_ptr().add(arena.skipped);
            libc::mincore(start.cast(), bytes, pages.as_mut_ptr())
        };
        assert_eq!(failed, 0);
        pages.iter().filter(|page| **page & 1 == 1).count()
    }
}
