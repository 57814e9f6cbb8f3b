//! The original's map of cached blocks: which slot of the log holds which block, and which slot is
//! given away next.
//!
//! A hand goes around the slots. The hand spares a slot once if it was used since the hand last
//! passed, and takes the first other slot. New entries count as not used, so that consecutive
//! insertions tend to lie side by side.

use std::collections::HashMap;

/// Slots under a hand. A block is any 64-bit key.
#[derive(Debug, Clone)]
pub struct ClockMap {
    slots: Vec<Slot>,
    by_key: HashMap<u64, usize>,
    hand: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: Option<u64>,
    is_recent: bool,
}

impl ClockMap {
    /// A map of `slots` slots, at least 1, all free.
    pub fn new(slots: usize) -> ClockMap {
        assert!(slots > 0, "a map needs a slot to give away");
        ClockMap { slots: vec![Slot::default(); slots], by_key: HashMap::new(), hand: 0 }
    }

    /// The slot of `key`, which from now on counts as used.
    pub fn get(&mut self, key: u64) -> Option<usize> {
        let slot = *self.by_key.get(&key)?;
        self.slots[slot].is_recent = true;
        Some(slot)
    }

    /// Gives `key`, which is not in the map, a slot. Returns it, and the key that was evicted.
    pub fn insert(&mut self, key: u64) -> (usize, Option<u64>) {
        while std::mem::take(&mut self.slots[self.hand].is_recent) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let slot = self.hand;
        self.hand = (self.hand + 1) % self.slots.len();
        let evicted = self.slots[slot].key.replace(key);
        if let Some(evicted) = evicted {
            self.by_key.remove(&evicted);
        }
        let before = self.by_key.insert(key, slot);
        assert!(before.is_none(), "key {key:#x} had slot {before:?} already");
        (slot, evicted)
    }

    /// Frees the slot of `key`; `false` if it had none.
    pub fn invalidate(&mut self, key: u64) -> bool {
        let Some(slot) = self.by_key.remove(&key) else { return false };
        self.slots[slot] = Slot::default();
        true
    }

    /// Slots in use.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether no slot is in use.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Slots in all.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_spared_once_and_what_is_new_is_not() {
        let mut map = ClockMap::new(3);
        for key in 1..=3 {
            assert_eq!(map.insert(key), (key as usize - 1, None));
        }
        map.get(1).unwrap();
        assert_eq!(map.insert(4), (1, Some(2)));
        assert_eq!(map.insert(5), (2, Some(3)));
        assert_eq!(map.insert(6), (0, Some(1)));
    }

    #[test]
    fn a_freed_slot_is_taken_without_evicting() {
        let mut map = ClockMap::new(2);
        map.insert(1);
        map.insert(2);
        map.get(1).unwrap();
        assert!(map.invalidate(1) && !map.invalidate(1));
        assert_eq!(map.insert(3), (0, None));
        assert_eq!((map.len(), map.get(1)), (2, None));
    }
}
