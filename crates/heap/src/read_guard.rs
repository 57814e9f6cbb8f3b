//! The guard that a reader holds of a heap.

use crate::heap::Heap;

/// Keeps blocks that are freed while it lives from being used for something else. Cheap; may be
/// moved to another thread. Growing lists of waiting blocks are the price of keeping it long.
#[derive(Debug)]
pub struct ReadGuard {
    heap: Heap,
    place: Option<usize>,
    epoch: u64,
}

impl ReadGuard {
    pub(crate) fn new(heap: Heap) -> ReadGuard {
        let (place, epoch) = heap.core().guards.enter();
        ReadGuard { heap, place, epoch }
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        let core = self.heap.core();
        core.guards.leave(self.place, self.epoch);
        // The oldest block waits for no guard that is younger, and the others wait longer.
        if self.epoch <= core.guards.oldest_waiting() {
            core.drain_waiting();
        }
    }
}
