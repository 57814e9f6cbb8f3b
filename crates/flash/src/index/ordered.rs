//! Filling an index in the order of hashes, as recovery does: each entry goes straight behind the
//! one before it, so memory is written once, from front to back, and nothing is moved.

use super::growth::Moved;
use super::slot::{DISTANCE_MAX, ONE_BUCKET, Prefix};
use super::{Index, Place, SLOTS};

impl Index {
    /// Adds entries in the order of their hashes, none of which is below one that is there; returns
    /// where the next call goes on. `end` is what the last call returned, 0 for an empty index.
    /// The table does not grow: make it large enough ([`Index::with_expected`]).
    pub fn append_ordered(
        &mut self,
        end: usize,
        entries: impl Iterator<Item = (u64, Place)>,
    ) -> usize {
        self.append_in_order(end, entries.map(|(hash, place)| (Prefix::whole(hash), place)))
    }

    /// As `append_ordered`, of hashes of which the leading bits are known, as many as a granule has
    /// at least.
    pub(super) fn append_in_order(
        &mut self,
        end: usize,
        entries: impl Iterator<Item = (Prefix, Place)>,
    ) -> usize {
        assert!(self.frontier_bucket == 0 && self.notes.is_none(), "only a fresh index is filled");
        let (format, mapping) = (self.format, self.current);
        let slots: &mut [u64] = &mut self.table;
        let mut position = end;
        for (prefix, place) in entries {
            let (home, slot) = format.pack(&mapping, prefix, place);
            position = position.max(home * SLOTS);
            let far = (position / SLOTS - home) as u64;
            self.entries += 1;
            if far > DISTANCE_MAX {
                self.spill.insert(format.spilled(&mapping, Moved { home, slot, note: 0 }));
                continue;
            }
            slots[position] = slot + far * ONE_BUCKET;
            position += 1;
        }
        position
    }
}
