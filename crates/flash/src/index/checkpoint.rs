//! The index as words of a checkpoint, and back.
//!
//! A checkpoint is the table as it is, plus its layout and the spill; loading is one copy. Where
//! the table is larger than it may be by now, or nearly empty, a smaller one is filled from it.
//! Checksums are the caller's, but what they let through is still checked slot by slot: no image
//! makes an index that breaks an invariant.

use super::mapping::{BUCKETS_MAX, Mapping};
use super::slot::{SlotFormat, distance};
use super::spill::Spilled;
use super::{BUCKETS_MIN, Index, PADDING, SLOTS, load};
use crate::error::{Error, ErrorKind, Result};

/// What a checkpoint needs to know besides the words and the spill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Buckets of the table.
    pub buckets: u64,
    /// Bits of an address.
    pub address_bits: u32,
    /// Entries, the spilled ones included.
    pub entries: u64,
}

/// What an index that is restored may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Buckets it grows to at most.
    pub buckets_max: u64,
    /// Every address is below this.
    pub addresses_end: u64,
}

impl Index {
    /// Finishes a round of growth and says how the table is laid out, for a checkpoint.
    pub fn settle(&mut self) -> Layout {
        self.finish_growth();
        Layout {
            buckets: self.current.buckets() as u64,
            address_bits: self.format.address_bits(),
            entries: self.entries,
        }
    }

    /// The table as it is, to be written to a checkpoint after `settle`.
    pub fn words(&self) -> &[u64] {
        assert!(self.frontier_bucket == 0, "a checkpoint settles the index first");
        &self.table
    }

    /// Entries outside the table, to be written to a checkpoint next to the words.
    pub fn spilled_entries(&self) -> impl Iterator<Item = &Spilled> {
        self.spill.range(0, u64::MAX)
    }

    /// Rebuilds an index from a checkpoint. `fill` copies the words into the table, some at a time,
    /// from front to back. What was loaded is checked slot by slot; `Corrupt` if it is not what an
    /// index of this layout can hold.
    pub fn restore(
        layout: Layout,
        bounds: Bounds,
        spilled: &[Spilled],
        fill: &mut dyn FnMut(&mut [u64]) -> Result<()>,
    ) -> Result<Index> {
        let usable = (20..=36).contains(&layout.address_bits)
            && (BUCKETS_MIN..=BUCKETS_MAX).contains(&layout.buckets);
        if !usable {
            return Err(damaged(&layout, "no index has such a layout"));
        }
        let format = SlotFormat::new(layout.address_bits);
        let buckets_max = bounds.buckets_max.clamp(BUCKETS_MIN, BUCKETS_MAX);
        let room = layout.entries + layout.entries / SPARSE_PART;
        let smaller = Index::with_expected(layout.address_bits, buckets_max, room)?;
        let sparse = layout.entries < load(layout.buckets) / SPARSE_PART
            && (smaller.current.buckets() as u64) < layout.buckets;
        let mut index = if layout.buckets > buckets_max || sparse {
            smaller.refilled((layout, bounds), fill)?
        } else {
            Index::with_buckets(format, buckets_max, layout.buckets)?
                .filled((layout, bounds), fill)?
        };
        for spilled in spilled {
            let fits = spilled.place.address < bounds.addresses_end
                && spilled.place.address >> layout.address_bits == 0;
            if !fits || !(1..=64).contains(&spilled.prefix.known) {
                return Err(damaged(&layout, "a spilled entry has an impossible address or hash"));
            }
            index.spill.insert(*spilled);
        }
        index.entries += spilled.len() as u64;
        if index.entries != layout.entries {
            return Err(damaged(&layout, &format!("it holds {} entries", index.entries)));
        }
        Ok(index)
    }

    /// Takes the words of a checkpoint as they are.
    fn filled(
        mut self,
        (layout, bounds): (Layout, Bounds),
        fill: &mut dyn FnMut(&mut [u64]) -> Result<()>,
    ) -> Result<Index> {
        let mut check = Check::new(self.format, layout, bounds);
        for words in self.table.chunks_mut(FILL_WORDS) {
            fill(words)?;
            check.take(words)?;
        }
        self.entries = check.count;
        Ok(self)
    }

    /// Takes the entries of a checkpoint's words, in the order of their hashes.
    fn refilled(
        mut self,
        (layout, bounds): (Layout, Bounds),
        fill: &mut dyn FnMut(&mut [u64]) -> Result<()>,
    ) -> Result<Index> {
        let (format, old) = (self.format, Mapping::new(layout.buckets));
        let mut check = Check::new(format, layout, bounds);
        let mut words = vec![0; FILL_WORDS];
        let (mut left, mut bucket, mut end) = ((old.buckets() + PADDING) * SLOTS, 0, 0);
        while left > 0 {
            let words = &mut words[..left.min(FILL_WORDS)];
            fill(words)?;
            check.take(words)?;
            let slots = (0..).zip(&*words).filter(|(_, slot)| **slot != 0);
            let entries = slots.map(|(at, slot): (usize, _)| {
                let home = bucket + at / SLOTS - distance(*slot) as usize;
                (format.prefix(&old, home, *slot), format.place(*slot))
            });
            end = self.append_in_order(end, entries);
            bucket += words.len() / SLOTS;
            left -= words.len();
        }
        Ok(self)
    }
}

/// A table with fewer entries than this part of what it holds is left for a smaller one.
const SPARSE_PART: u64 = 4;

/// Words filled and then checked, while they are in the processor's cache; whole buckets.
const FILL_WORDS: usize = 8 << 10;

/// Counts entries, and checks that no slot breaks an invariant.
struct Check {
    format: SlotFormat,
    layout: Layout,
    bounds: Bounds,
    bucket: usize,
    /// The last slot's fine number.
    fine_min: u64,
    /// Whether the bucket before is full.
    full: bool,
    count: u64,
}

impl Check {
    fn new(format: SlotFormat, layout: Layout, bounds: Bounds) -> Check {
        Check { format, layout, bounds, bucket: 0, fine_min: 0, full: true, count: 0 }
    }

    /// Checks the next buckets.
    fn take(&mut self, words: &[u64]) -> Result<()> {
        for line in words.as_chunks::<SLOTS>().0 {
            let used = line.iter().take_while(|slot| **slot != 0).count();
            let mut sound = line[used..].iter().all(|slot| *slot == 0);
            for slot in &line[..used] {
                let distance = distance(*slot) as usize;
                let home = self.bucket.wrapping_sub(distance);
                let fine = SlotFormat::fine(home, *slot);
                sound &= distance <= self.bucket
                    && (home as u64) < self.layout.buckets
                    && fine >= self.fine_min
                    && (distance == 0 || self.full)
                    && self.format.is_well_formed(*slot)
                    && self.format.address(*slot) < self.bounds.addresses_end;
                self.fine_min = fine;
            }
            if !sound {
                let detail = format!("bucket {} holds {line:#x?}", self.bucket);
                return Err(damaged(&self.layout, &detail));
            }
            self.count += used as u64;
            self.full = used == SLOTS;
            self.bucket += 1;
        }
        Ok(())
    }
}

fn damaged(layout: &Layout, found: &str) -> Error {
    let detail = format!("index checkpoint of {layout:?} is damaged: {found}");
    Error::new(ErrorKind::Corrupt, detail)
}
