//! Blocks of transactions that have not ended: for all others they do not exist.
//!
//! If another transaction freed such a block before its own transaction ended, the block would be
//! handed out again. The end of the first transaction would then mark it as live, or free it once
//! more.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Blocks by their handles, and the numbers of the transactions that allocated them.
#[derive(Debug, Default)]
pub(super) struct Newborn {
    by: HashMap<u64, u64, BuildHasherDefault<HandleHasher>>,
}

/// Room for so many is kept once they are gone.
const KEPT_MAX: usize = 4096;

impl Newborn {
    /// Transaction `by` was given a block.
    pub(super) fn bear(&mut self, handle: u64, by: u64) {
        self.by.insert(handle, by);
    }

    /// The block's transaction has ended, or does without it.
    pub(super) fn forget(&mut self, handle: u64) {
        self.by.remove(&handle);
        if self.by.is_empty() && self.by.capacity() > KEPT_MAX {
            self.by = HashMap::default();
        }
    }

    /// Whether the block is one of a transaction other than `by` that has not ended.
    pub(super) fn is_of_another(&self, handle: u64, by: u64) -> bool {
        self.by.get(&handle).is_some_and(|found| *found != by)
    }
}

/// Handles are chosen by the allocator and by nobody who would want them to collide: one
/// multiplication (Knuth's, by the golden ratio) spreads them.
#[derive(Debug, Default)]
pub(super) struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, handle: u64) {
        let mixed = (self.0 ^ handle).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_transaction_leaves_little_memory_taken() {
        let mut newborn = Newborn::default();
        for handle in (0..100_000).map(|number| number * 64) {
            newborn.bear(handle, 7);
            assert!(newborn.is_of_another(handle, 8) && !newborn.is_of_another(handle, 7));
        }
        (0..100_000).for_each(|number| newborn.forget(number * 64));
        assert!(newborn.by.capacity() <= KEPT_MAX);
        assert!(!newborn.is_of_another(64, 8));
    }
}
