//! The hot regions and the hierarchical random walk over them.
//!
//! A region is a row of leaves of eight blocks. A step stays within a group of leaves around the
//! last one; each doubling of the group is less likely than the one before, so that blocks are
//! reused at many distances. Each leaf remembers which of its blocks was read last; all walkers of
//! a context share that.

use super::lrand48::Lrand48;
use super::request::Operation;
use super::stream::Style;

/// A hot region, shared by the walkers of a context.
#[derive(Debug, Clone)]
pub(super) struct Region {
    style: Style,
    /// First block.
    start: u64,
    /// Blocks that a walker's own part of the region spans.
    span: u64,
    /// By how many blocks a walker's part may be shifted.
    slack: u64,
    /// A group of 2^levels leaves is the largest.
    levels: u32,
    /// Each leaf's next block to read.
    next_block: Vec<u8>,
}

/// Where one walker is.
#[derive(Debug, Clone, Default)]
pub(super) struct Walker {
    offset: u64,
    rewrite: Option<u64>,
}

const LEAF_BLOCKS: u64 = 8;
const RETRIES: u32 = 100;

impl Region {
    pub(super) fn new(style: Style, start: u64, blocks: u64) -> Region {
        let leaves = blocks / LEAF_BLOCKS;
        let mut levels = leaves.next_power_of_two().trailing_zeros();
        let mut slack = 0;
        if style != Style::V2 {
            if 1 << levels > leaves {
                levels -= 1;
            }
            slack = LEAF_BLOCKS * (leaves - (1 << levels));
        }
        let next_block = vec![0; 2 * leaves as usize];
        Region { style, start, span: blocks - slack, slack, levels, next_block }
    }

    /// Puts `walker` down in its part of the region and returns the block where it stands.
    pub(super) fn enter(&self, walker: &mut Walker, random: &mut Lrand48) -> u64 {
        walker.offset = match self.style {
            Style::Classic => (self.start + random.below(self.slack + 1)) & !(LEAF_BLOCKS - 1),
            Style::Fixed => {
                let shift = random.below(self.slack + 1);
                self.start + shift - shift % LEAF_BLOCKS
            }
            Style::V2 => self.start,
        };
        walker.rewrite = None;
        walker.offset + random.below(self.span)
    }

    /// Moves `walker` from block `position` to the next, which it returns.
    pub(super) fn step(
        &mut self,
        walker: &mut Walker,
        position: u64,
        operation: Operation,
        random: &mut Lrand48,
    ) -> u64 {
        if operation == Operation::Write
            && let Some(block) = walker.rewrite.take()
        {
            return block;
        }
        let from = (position - walker.offset) / LEAF_BLOCKS;
        let leaf = self.choose_leaf(walker, from, operation, random);
        let (block, rewrites) = self.choose_block(leaf, operation, random);
        let first = match self.style {
            Style::Fixed => self.start,
            Style::Classic | Style::V2 => walker.offset,
        };
        let position = first + leaf * LEAF_BLOCKS + block;
        if rewrites {
            walker.rewrite = Some(position);
        }
        position
    }

    fn choose_leaf(
        &self,
        walker: &Walker,
        mut from: u64,
        operation: Operation,
        random: &mut Lrand48,
    ) -> u64 {
        let leaves = self.span / LEAF_BLOCKS;
        for _ in 0..=RETRIES {
            let mut level = if self.style == Style::Classic { 7 } else { 6 };
            while level < self.levels && random.below(100) < 44 {
                level += 1;
            }
            let group = 1 << level;
            let mut leaf = group * (from / group) + random.below(group);
            if operation == Operation::Write {
                leaf -= leaf % 8;
            }
            match self.style {
                Style::Classic => return leaf,
                Style::Fixed => return leaf + (walker.offset - self.start) / LEAF_BLOCKS,
                // One past the last leaf is let through, as the original does.
                Style::V2 if leaf <= leaves => return leaf,
                Style::V2 => from = leaf,
            }
        }
        random.below(leaves)
    }

    /// The block within the leaf, and whether the walker comes back to write it again.
    fn choose_block(
        &mut self,
        leaf: u64,
        operation: Operation,
        random: &mut Lrand48,
    ) -> (u64, bool) {
        let next = &mut self.next_block[leaf as usize];
        match operation {
            Operation::Read => {
                let block = *next;
                *next = (block + 1) % LEAF_BLOCKS as u8;
                (u64::from(block), false)
            }
            Operation::Write => {
                let block = if random.below(100) < 50 {
                    random.below(LEAF_BLOCKS)
                } else if self.style == Style::Classic {
                    u64::from(*next)
                } else {
                    // The block that was read last.
                    (u64::from(*next) + LEAF_BLOCKS - 1) % LEAF_BLOCKS
                };
                (block, random.below(100) < 15)
            }
        }
    }
}
