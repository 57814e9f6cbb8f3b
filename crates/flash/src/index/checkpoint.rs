//! The index as words of a checkpoint, and back.
//!
//! A checkpoint is the table as it is, plus its layout and the spill; loading is one copy.
//! Checksums are the caller's, but what they let through is still checked slot by slot: no image
//! makes an index that breaks an invariant.

use super::mapping::BUCKETS_MAX;
use super::slot::{SlotFormat, distance};
use super::spill::Spilled;
use super::{BUCKETS_MIN, Index, SLOTS};
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

    /// Rebuilds an index from a checkpoint. `fill` copies the words into the table. What was loaded
    /// is checked slot by slot; `Corrupt` if it is not what an index of this layout can hold.
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
        let buckets_max = bounds.buckets_max.clamp(layout.buckets, BUCKETS_MAX);
        let mut index = Index::with_buckets(format, buckets_max, layout.buckets)?;
        fill(&mut index.table)?;
        for spilled in spilled {
            let fits = spilled.place.address < bounds.addresses_end
                && spilled.place.address >> layout.address_bits == 0;
            if !fits || !(1..=64).contains(&spilled.prefix.known) {
                return Err(damaged(&layout, "a spilled entry has an impossible address or hash"));
            }
            index.spill.insert(*spilled);
        }
        index.entries = index.count_sound_slots(&layout, bounds)? + spilled.len() as u64;
        if index.entries != layout.entries {
            return Err(damaged(&layout, &format!("it holds {} entries", index.entries)));
        }
        Ok(index)
    }

    /// Counts the table's entries; `Corrupt` if a slot breaks an invariant.
    fn count_sound_slots(&self, layout: &Layout, bounds: Bounds) -> Result<u64> {
        let mut count = 0;
        let mut fine_min = 0;
        let mut full = true;
        for (bucket, line) in self.table.as_chunks::<SLOTS>().0.iter().enumerate() {
            let mut empty = false;
            for slot in line.iter().copied() {
                if slot == 0 {
                    empty = true;
                    continue;
                }
                let distance = distance(slot) as usize;
                let home = bucket.wrapping_sub(distance);
                let fine = SlotFormat::fine(home, slot);
                let in_place = home <= bucket && home < self.current.buckets() && fine >= fine_min;
                let reached = distance == 0 || full;
                let sound = self.format.is_well_formed(slot)
                    && self.format.address(slot) < bounds.addresses_end;
                if !in_place || !reached || empty || !sound {
                    return Err(damaged(layout, &format!("bucket {bucket} holds {slot:#x}")));
                }
                fine_min = fine;
                count += 1;
            }
            full = !empty;
        }
        Ok(count)
    }
}

fn damaged(layout: &Layout, found: &str) -> Error {
    let detail = format!("index checkpoint of {layout:?} is damaged: {found}");
    Error::new(ErrorKind::Corrupt, detail)
}
