//! Keeping a volume's clean blocks within its share of the cache: those that were put first go.

use std::collections::VecDeque;

use crate::meta::BLOCK_BYTES;

/// The blocks of a volume that has a share, in the order in which they were put.
#[derive(Debug)]
pub(crate) struct Share {
    blocks_max: u64,
    order: VecDeque<u64>,
}

impl Share {
    /// For `share_bytes`; 0: no limit, and nothing is remembered.
    pub(crate) fn new(share_bytes: u64) -> Share {
        Share { blocks_max: share_bytes.div_ceil(BLOCK_BYTES), order: VecDeque::new() }
    }

    /// A block was put, and `held` are cached now; the one that must go for it. Blocks that an
    /// earlier opening put are not remembered: they go as new ones are put in their place.
    pub(crate) fn on_put(&mut self, block: u64, held: u64) -> Option<u64> {
        if self.blocks_max == 0 {
            return None;
        }
        self.order.push_back(block);
        // Blocks put twice, and those that others took, are in the order still.
        let over = held > self.blocks_max || self.order.len() as u64 > 2 * self.blocks_max;
        if over { self.order.pop_front().filter(|first| *first != block) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_put_first_goes_for_the_one_that_is_too_many() {
        let mut share = Share::new(3 * BLOCK_BYTES);
        for block in 1..=3 {
            assert_eq!(share.on_put(block, block), None);
        }
        assert_eq!(share.on_put(4, 4), Some(1));
        assert_eq!(share.on_put(5, 4), Some(2));
        assert_eq!(Share::new(0).on_put(1, 1 << 40), None);
    }
}
