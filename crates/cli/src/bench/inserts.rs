//! The numbers of keys that threads insert, and the numbers that are surely present.
//!
//! Before a thread takes a number, it announces that it may insert it, and the announcement stays
//! until the insert is answered. Numbers below all announced ones, and below the next free one, can
//! be read.

use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out numbers of new keys. Thread-safe.
#[derive(Debug)]
pub(crate) struct Inserts {
    first: u64,
    end: u64,
    next: AtomicU64,
    /// By thread, the least number that it may be at; `NONE` if it is at none.
    at: Vec<AtomicU64>,
}

/// At no insert.
pub(crate) const NONE: u64 = u64::MAX;
/// Most threads of a run.
pub(crate) const THREADS_MAX: usize = 1024;

impl Inserts {
    /// Numbers from `first` on, so many of them. After the last one they go round: what was
    /// inserted first is put again.
    pub(crate) fn new(first: u64, room: u64) -> Inserts {
        let at = (0..THREADS_MAX).map(|_| AtomicU64::new(NONE)).collect();
        let end = first.saturating_add(room.max(1));
        Inserts { first, end, next: AtomicU64::new(first), at }
    }

    /// The next number, for `thread`.
    pub(crate) fn take(&self, thread: usize) -> u64 {
        if self.at[thread].load(Ordering::SeqCst) == NONE {
            self.at[thread].store(self.next.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        let taken = self.next.fetch_add(1, Ordering::SeqCst);
        if taken < self.end { taken } else { self.first + (taken - self.first) % self.room() }
    }

    /// Says that `thread` is at no number below `oldest`.
    pub(crate) fn settle(&self, thread: usize, oldest: u64) {
        self.at[thread].store(oldest, Ordering::SeqCst);
    }

    /// The keys below this number are there, if the first `threads` are all that insert.
    pub(crate) fn visible(&self, threads: usize) -> u64 {
        // The order counts: who takes a number later than this has said so.
        let taken = self.next.load(Ordering::SeqCst).min(self.end);
        let at = self.at[..threads].iter().map(|at| at.load(Ordering::SeqCst));
        at.fold(taken, u64::min)
    }

    /// Whether there were more inserts than numbers.
    pub(crate) fn went_round(&self) -> bool {
        self.next.load(Ordering::SeqCst) > self.end
    }

    fn room(&self) -> u64 {
        self.end - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_once_no_thread_may_be_at_it() {
        let inserts = Inserts::new(10, 100);
        assert_eq!(inserts.visible(2), 10);
        assert_eq!((inserts.take(0), inserts.take(1), inserts.take(1)), (10, 11, 12));
        inserts.settle(1, 12);
        assert_eq!(inserts.visible(2), 10, "the first thread is slow");
        inserts.settle(0, NONE);
        assert_eq!(inserts.visible(2), 12);
        inserts.settle(1, NONE);
        assert_eq!(inserts.visible(2), 13);
    }

    #[test]
    fn numbers_go_round_when_there_are_no_more() {
        let inserts = Inserts::new(10, 3);
        let taken: Vec<u64> = (0..7).map(|_| inserts.take(0)).collect();
        assert_eq!(taken, [10, 11, 12, 10, 11, 12, 10]);
        assert!(inserts.went_round());
        inserts.settle(0, NONE);
        assert_eq!(inserts.visible(1), 13);
    }
}
