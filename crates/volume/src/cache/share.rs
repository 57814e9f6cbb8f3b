//! Keeping a volume's clean blocks within its share of the cache: the blocks that were put first
//! go.
//!
//! The order in which an earlier opening put its blocks is not known. These go first, in the order
//! of their numbers.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use crate::meta::BLOCK_BYTES;

/// Blocks of an earlier opening that are looked for at one put.
const SOUGHT_MAX: usize = 1 << 16;
/// Blocks that go for one that is put, where more than one are too many.
const GO_MAX: u64 = 2;

/// The blocks of a volume that has a share, in the order in which they were put.
#[derive(Debug)]
pub(crate) struct Share {
    blocks_max: u64,
    order: VecDeque<u64>,
    /// Where blocks that an earlier opening put may be still.
    earlier: Range<u64>,
    /// Those put since, until all of those are gone.
    since: HashSet<u64>,
}

impl Share {
    /// For `share_bytes`; 0: no limit, and nothing is remembered.
    pub(crate) fn new(share_bytes: u64) -> Share {
        let blocks_max = share_bytes.div_ceil(BLOCK_BYTES);
        Share { blocks_max, order: VecDeque::new(), earlier: 0..0, since: HashSet::new() }
    }

    /// An earlier opening may have put any of so many blocks.
    pub(crate) fn found(&mut self, blocks: u64) {
        self.earlier = 0..blocks;
    }

    /// A block is put, and `held` are cached before it, which `may_hold` knows; those that must go
    /// for it.
    pub(crate) fn on_put(
        &mut self,
        block: u64,
        held: u64,
        may_hold: impl Fn(u64) -> bool,
    ) -> Vec<u64> {
        if self.blocks_max == 0 {
            return Vec::new();
        }
        self.order.push_back(block);
        if !self.earlier.is_empty() {
            self.since.insert(block);
        }
        // Blocks put twice, and those that others took, are in the order still.
        let forgotten = u64::from(self.order.len() as u64 > 2 * self.blocks_max);
        let surplus = (held + 1).saturating_sub(self.blocks_max).min(GO_MAX);
        (0..surplus.max(forgotten)).filter_map(|_| self.first_before(block, &may_hold)).collect()
    }

    /// Takes out the first block that may be cached, but for the one that is put.
    fn first_before(&mut self, block: u64, may_hold: &impl Fn(u64) -> bool) -> Option<u64> {
        let may_go = |gone: &u64| *gone != block && may_hold(*gone);
        let earlier = self.earlier.by_ref().take(SOUGHT_MAX);
        let found = earlier.into_iter().find(|block| !self.since.contains(block) && may_go(block));
        if found.is_some() {
            return found;
        }
        if self.earlier.is_empty() {
            self.since = HashSet::new();
        }
        // The one that is put is the last.
        while self.order.len() > 1 {
            let first = self.order.pop_front().filter(may_go);
            if first.is_some() {
                return first;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u64; 0] = [];

    #[test]
    fn the_block_put_first_goes_for_the_one_that_is_too_many() {
        let mut share = Share::new(3 * BLOCK_BYTES);
        let all = |_| true;
        for block in 1..=3 {
            assert_eq!(share.on_put(block, block - 1, all), NONE);
        }
        assert_eq!(share.on_put(4, 3, all), [1]);
        assert_eq!(share.on_put(5, 4, all), [2, 3]);
        assert_eq!(Share::new(0).on_put(1, 1 << 40, all), NONE);
    }

    #[test]
    fn blocks_of_an_earlier_opening_go_before_those_put_since() {
        let mut share = Share::new(3 * BLOCK_BYTES);
        share.found(100);
        let is_held = |block| matches!(block, 7 | 8 | 50 | 99);
        assert_eq!(share.on_put(7, 2, is_held), NONE);
        assert_eq!(share.on_put(8, 3, is_held), [50]);
        assert_eq!(share.on_put(9, 4, is_held), [99, 7]);
        assert_eq!(share.on_put(10, 3, is_held), [8]);
    }
}
