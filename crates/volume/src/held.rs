//! The parts of a volume that may have clean blocks in the cache: parts with blocks put since all
//! were let go. So the cost of a range depends on its cached blocks, not on its length.
//!
//! Invariant: a part is marked before the first of its blocks is put, and unmarked only by a
//! request that holds all of it alone and has let go of all its blocks.

use std::ops::Range;

use crate::meta::HeldRecord;

/// Parts of a volume at most: what is kept of them has 16 KiB.
const PARTS_MAX: u64 = 1 << 17;
/// Blocks of a part at least.
const PART_BLOCKS_MIN: u64 = 64;

/// The parts of one volume.
#[derive(Debug)]
pub(crate) struct Held {
    blocks: u64,
    part_blocks: u64,
    /// A bit a part, the lowest first.
    bits: Vec<u64>,
}

impl Held {
    /// A volume of so many blocks of which none is cached.
    pub(crate) fn none(blocks: u64) -> Held {
        let part_blocks = blocks.div_ceil(PARTS_MAX).next_power_of_two().max(PART_BLOCKS_MIN);
        let words = blocks.div_ceil(part_blocks).div_ceil(64) as usize;
        Held { blocks, part_blocks, bits: vec![0; words] }
    }

    /// One of which any may be.
    pub(crate) fn any(blocks: u64) -> Held {
        let mut held = Held::none(blocks);
        held.bits.fill(u64::MAX);
        held
    }

    /// What a record says of it; `None`: it is of a volume of another size.
    pub(crate) fn from_record(blocks: u64, record: &HeldRecord) -> Option<Held> {
        let mut held = Held::none(blocks);
        let fits = record.part_blocks == held.part_blocks && record.bits.len() == held.bits.len();
        held.bits.clone_from(&record.bits);
        fits.then_some(held)
    }

    /// The same of a volume that has `blocks` now, no fewer than before.
    pub(crate) fn grown(&self, blocks: u64) -> Held {
        let mut held = Held::none(blocks);
        for part in self.within(&(0..self.blocks)) {
            let mut block = part.start;
            while block < part.end {
                held.mark(block);
                block = (block / held.part_blocks + 1) * held.part_blocks;
            }
        }
        held
    }

    /// What is kept of it while the cache is closed.
    pub(crate) fn record(&self, incarnation: u32) -> HeldRecord {
        HeldRecord { incarnation, part_blocks: self.part_blocks, bits: self.bits.clone() }
    }

    /// A block is about to be put.
    pub(crate) fn mark(&mut self, block: u64) {
        let part = block / self.part_blocks;
        self.bits[(part / 64) as usize] |= 1 << (part % 64);
    }

    /// What of `blocks` lies in marked parts, in order.
    pub(crate) fn within(&self, blocks: &Range<u64>) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        let end = blocks.end.min(self.blocks);
        let mut part = blocks.start / self.part_blocks;
        while part * self.part_blocks < end {
            let rest = self.bits[(part / 64) as usize] >> (part % 64);
            if rest == 0 {
                part = (part / 64 + 1) * 64;
                continue;
            }
            part += u64::from(rest.trailing_zeros());
            let from = (part * self.part_blocks).max(blocks.start);
            part += 1;
            let to = (part * self.part_blocks).min(end);
            match found.last_mut() {
                _ if from >= to => {}
                Some(last) if last.end == from => last.end = to,
                _ => found.push(from..to),
            }
        }
        found
    }

    /// All that was cached of `blocks` was let go.
    pub(crate) fn unmark(&mut self, blocks: &Range<u64>) {
        let first = blocks.start.div_ceil(self.part_blocks);
        let end = match blocks.end >= self.blocks {
            true => self.blocks.div_ceil(self.part_blocks),
            false => blocks.end / self.part_blocks,
        };
        let mut part = first;
        while part < end {
            let (word, bit) = ((part / 64) as usize, part % 64);
            let count = (64 - bit).min(end - part);
            let ones = if count == 64 { u64::MAX } else { (1 << count) - 1 };
            self.bits[word] &= !(ones << bit);
            part += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_marked_by_puts_and_unmarked_only_as_a_whole() {
        let mut held = Held::none(1000);
        assert!(held.within(&(0..1000)).is_empty());
        held.mark(70);
        held.mark(999);
        assert_eq!(held.within(&(0..1000)), [64..128, 960..1000]);
        assert_eq!(held.within(&(100..980)), [100..128, 960..980]);
        held.unmark(&(65..1000));
        assert_eq!(
            held.within(&(0..1000)),
            std::slice::from_ref(&(64..128)),
            "not all of it was let go"
        );
        held.unmark(&(64..128));
        assert!(held.within(&(0..1000)).is_empty());
    }

    #[test]
    fn ranges_and_parts_agree_with_a_model() {
        let mut state = 5u64;
        let mut random = move |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let blocks = 64 * 200 + 17;
        let mut held = Held::none(blocks);
        let mut model = vec![false; blocks.div_ceil(64) as usize];
        for _ in 0..4000 {
            let start = random(blocks);
            let most = if random(3) == 0 { blocks } else { 200 };
            let range = start..(start + 1 + random(most)).min(blocks);
            match random(3) {
                0 => {
                    held.mark(start);
                    model[(start / 64) as usize] = true;
                }
                1 => {
                    held.unmark(&range);
                    for part in 0..model.len() as u64 {
                        let (from, to) = (part * 64, ((part + 1) * 64).min(blocks));
                        if range.start <= from && to <= range.end {
                            model[part as usize] = false;
                        }
                    }
                }
                _ => {
                    let found: Vec<u64> = held.within(&range).into_iter().flatten().collect();
                    let expected: Vec<u64> =
                        range.filter(|block| model[(block / 64) as usize]).collect();
                    assert_eq!(found, expected);
                }
            }
        }
        let grown = held.grown(blocks * 3);
        let all = |held: &Held| held.within(&(0..blocks)).into_iter().flatten().count();
        assert!(all(&grown) >= all(&held), "what may be cached may be so still");
        let record = held.record(3);
        assert_eq!(Held::from_record(blocks, &record).unwrap().bits, held.bits);
        assert!(Held::from_record(blocks * 2, &record).is_none());
        let all = 0..blocks;
        assert_eq!(Held::any(blocks).within(&all), std::slice::from_ref(&all));
    }

    /// Where a volume is so large that a part has many blocks, nothing but words is looked at.
    #[test]
    fn a_volume_of_many_tebibytes_has_few_words() {
        let blocks = 64 << 28;
        let mut held = Held::none(blocks);
        assert_eq!(held.bits.len(), 2048);
        held.mark(blocks - 1);
        let last = blocks - held.part_blocks..blocks;
        assert_eq!(held.within(&(0..blocks)), std::slice::from_ref(&last));
    }
}
