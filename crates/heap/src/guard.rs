//! Readers beside frees: a block that a reader may still look at is not handed out again.
//!
//! Epoch-based reclamation (K. Fraser, "Practical lock-freedom", 2004), with one list of waiting
//! blocks. A guard publishes the epoch in which it began in a place of its own; a free moves the
//! epoch on and waits until every guard published is younger.
//!
//! Invariants:
//! 1. A block freed in epoch `e` is handed out again only when no guard holds `e` or less.
//! 2. A guard that is published after a free has looked at the places can only reach blocks that
//!    the free left reachable: both order their accesses sequentially.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use entresol_planted::planted;
use parking_lot::Mutex;

use crate::allocator::Block;

const PLACES: usize = 64;

/// Guards of a heap, and the blocks that wait for them.
#[derive(Debug)]
pub(crate) struct Guards {
    epoch: AtomicU64,
    /// Epochs of guards; zero where there is none.
    places: [Place; PLACES],
    /// Places from here on were never used.
    used: AtomicUsize,
    /// Epochs of guards that found no place.
    others: Mutex<Vec<u64>>,
    others_count: AtomicUsize,
    next: AtomicUsize,
    /// Blocks by the epoch in which they were freed.
    waiting: Mutex<BTreeMap<u64, Vec<Block>>>,
    /// The least epoch of those, or 0: guards have none that is as low.
    oldest_waiting: AtomicU64,
}

/// A line of its own, so that readers do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place(AtomicU64);

thread_local! {
    /// Where this thread looks for a place first: an address, no state of a heap.
    static HOME: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
}

impl Guards {
    pub(crate) fn new() -> Guards {
        Guards {
            epoch: AtomicU64::new(1),
            places: std::array::from_fn(|_| Place::default()),
            used: AtomicUsize::new(0),
            others: Mutex::new(Vec::new()),
            others_count: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            waiting: Mutex::new(BTreeMap::new()),
            oldest_waiting: AtomicU64::new(0),
        }
    }

    pub(crate) fn enter(&self) -> (Option<usize>, u64) {
        let mut home = HOME.get();
        if home == usize::MAX {
            home = self.next.fetch_add(1, Ordering::Relaxed) % PLACES;
            HOME.set(home);
        }
        let epoch = self.epoch.load(Ordering::SeqCst);
        for step in 0..PLACES {
            let index = (home + step) % PLACES;
            let place = &self.places[index].0;
            let order = Ordering::SeqCst;
            // Before the epoch is published: whoever misses this comes before the guard.
            if self.used.load(order) <= index {
                self.used.fetch_max(index + 1, order);
            }
            if place.load(Ordering::Relaxed) == 0
                && place.compare_exchange(0, epoch, order, order).is_ok()
            {
                return (Some(index), epoch);
            }
        }
        let mut others = self.others.lock();
        others.push(epoch);
        self.others_count.store(others.len(), Ordering::SeqCst);
        (None, epoch)
    }

    pub(crate) fn leave(&self, place: Option<usize>, epoch: u64) {
        if let Some(place) = place {
            self.places[place].0.store(0, Ordering::SeqCst);
            return;
        }
        let mut others = self.others.lock();
        if let Some(index) = others.iter().position(|other| *other == epoch) {
            others.swap_remove(index);
        }
        self.others_count.store(others.len(), Ordering::SeqCst);
    }

    /// The epoch of a free that happens now, if a guard is older; `None` if none is.
    pub(crate) fn epoch_of_free(&self) -> Option<u64> {
        if planted!("heap-freed-under-guard") {
            return None;
        }
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst);
        self.oldest().is_some_and(|oldest| oldest <= epoch).then_some(epoch)
    }

    pub(crate) fn wait(&self, epoch: u64, blocks: &[Block]) {
        let mut waiting = self.waiting.lock();
        waiting.entry(epoch).or_default().extend_from_slice(blocks);
        self.note_oldest(&waiting);
    }

    /// Whether a guard is as old as a free in `epoch`.
    pub(crate) fn is_awaited(&self, epoch: u64) -> bool {
        self.oldest().is_some_and(|oldest| oldest <= epoch)
    }

    pub(crate) fn oldest_waiting(&self) -> u64 {
        self.oldest_waiting.load(Ordering::SeqCst)
    }

    fn note_oldest(&self, waiting: &BTreeMap<u64, Vec<Block>>) {
        let oldest = waiting.first_key_value().map_or(0, |(epoch, _)| *epoch);
        self.oldest_waiting.store(oldest, Ordering::SeqCst);
    }

    /// Blocks that no guard is older than.
    pub(crate) fn take_ready(&self) -> Vec<Block> {
        let mut waiting = self.waiting.lock();
        let mut ready = Vec::new();
        loop {
            let oldest = self.oldest().unwrap_or(u64::MAX);
            let still = waiting.split_off(&oldest);
            ready.extend(std::mem::replace(&mut *waiting, still).into_values().flatten());
            self.note_oldest(&waiting);
            // Those that ended before this was noted could not know of it.
            if waiting.first_key_value().is_none_or(|(epoch, _)| self.is_awaited(*epoch)) {
                return ready;
            }
        }
    }

    fn oldest(&self) -> Option<u64> {
        let used = self.used.load(Ordering::SeqCst);
        let places = self.places[..used].iter().map(|place| place.0.load(Ordering::SeqCst));
        let oldest = places.filter(|epoch| *epoch > 0).min();
        if self.others_count.load(Ordering::SeqCst) == 0 {
            return oldest;
        }
        let others = self.others.lock().iter().copied().min();
        oldest.into_iter().chain(others).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::Mark;

    /// Each read went through all blocks that waited.
    #[test]
    fn guards_that_are_younger_than_what_waits_do_not_look_at_it() {
        let guards = Guards::new();
        let old = guards.enter();
        let block = |handle| Block { handle, bytes: 8, mark: Mark::Run { word: handle } };
        let first = guards.epoch_of_free().unwrap();
        guards.wait(first, &[block(1), block(2)]);
        let young = guards.enter();
        let second = guards.epoch_of_free().unwrap();
        guards.wait(second, &[block(3)]);
        guards.leave(young.0, young.1);
        assert!(young.1 > guards.oldest_waiting(), "it has nothing to drain");
        assert!(guards.take_ready().is_empty());
        guards.leave(old.0, old.1);
        assert!(old.1 <= guards.oldest_waiting(), "it drains");
        assert_eq!(guards.take_ready().len(), 3);
        assert_eq!(guards.oldest_waiting(), 0);
    }
}
