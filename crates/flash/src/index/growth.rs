//! Growth of the index in place, a little with each insert.
//!
//! A round adds an eleventh to the number of buckets and moves entries from the highest hashes
//! down, because no entry's new bucket is below its old one. Each step takes the old buckets
//! `start..frontier_bucket` out, and puts their entries back by the new mapping; then `start` is
//! the frontier. Where old and new buckets of the frontier would come closer than the padding,
//! which is near bucket 0, the rest of the round is one step.
//!
//! Bounds: a step moves 64 buckets (the last one some 150) and comes every eighth insert, so a
//! round of `n` buckets ends within `n / 8` inserts and the load of no part passes 90 %.

use std::ops::Range;

use super::mapping::Mapping;
use super::slot::{DISTANCE_MAX, ONE_BUCKET, REFERENCED, SlotFormat, distance};
use super::spill::Spilled;
use super::{Index, PADDING, SLOTS, load};

/// A slot (at distance 0) on its way to its home.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moved {
    pub(super) home: usize,
    pub(super) slot: u64,
    pub(super) note: u64,
}

/// A round adds this share of the buckets. More would leave the table emptier after a round, less
/// would move each entry more often.
const GROWTH_SHARE: u64 = 11;
const STEP_BUCKETS: usize = 64;
const INSERTS_A_STEP: u32 = 8;

impl Index {
    /// Does the share of growth that falls to one insert.
    #[inline]
    pub(super) fn grow_for_insert(&mut self) {
        if self.frontier_bucket != 0 {
            self.prefetch_step();
            self.inserts_since_step += 1;
            if self.inserts_since_step == INSERTS_A_STEP {
                self.inserts_since_step = 0;
                self.grow_step();
            }
        } else if self.entries > self.grow_at {
            self.begin_growth();
        }
    }

    /// Moves the next few buckets if a round of growth is on. Inserts do this by themselves; more
    /// calls end the round sooner.
    pub fn grow_step(&mut self) {
        if self.frontier_bucket == 0 {
            return;
        }
        let (old, new) = (self.previous, self.current);
        let end = self.frontier_bucket;
        let mut start = end.saturating_sub(STEP_BUCKETS);
        let mut start_hash = old.first_hash(start);
        if new.home(start_hash) < start + PADDING {
            (start, start_hash) = (0, 0);
        }
        // Above the frontier is the new part, except in the first step of a round, which has none.
        let (end_hash, new_part) = match end == old.buckets() {
            true => (u64::MAX, new.buckets() + PADDING),
            false => (self.frontier - 1, new.home(self.frontier)),
        };
        let spilled = match self.spill.len() {
            0 => Vec::new(),
            _ => self.spill.take_range(start_hash, end_hash),
        };
        self.take_out(&old, &new, start..end);
        self.put_back(&new, new_part);
        self.frontier = start_hash;
        self.frontier_bucket = start;
        self.frontier_shift = new.home(start_hash) - start;
        if start == 0 {
            self.previous = new;
            self.scratch = Vec::new();
            // Inserts during the round count towards the next.
            self.grow_at = load(new.buckets() as u64);
        }
        for spilled in spilled {
            self.place_spilled(&new, spilled);
        }
    }

    /// Puts an entry from the spill into the table if its hash is known well enough.
    pub(super) fn place_spilled(&mut self, mapping: &Mapping, spilled: Spilled) {
        if spilled.prefix.known < mapping.bits() {
            self.spill.insert(spilled);
            return;
        }
        let (home, slot) = self.format.pack(mapping, spilled.prefix, spilled.place);
        let slot = if spilled.referenced { slot | REFERENCED } else { slot };
        self.place_slot(mapping, Moved { home, slot, note: spilled.note });
    }

    /// Starts loading an eighth of what the next step touches: by the time it runs, all is there.
    #[inline]
    fn prefetch_step(&self) {
        let part = (STEP_BUCKETS + PADDING).div_ceil(INSERTS_A_STEP as usize);
        let start = self.frontier_bucket.saturating_sub(STEP_BUCKETS);
        let first = start + self.inserts_since_step as usize * part;
        for bucket in first..first + part {
            self.table.prefetch(bucket * SLOTS);
            self.table.prefetch((bucket + self.frontier_shift) * SLOTS);
        }
    }

    /// Moves what is left of a round.
    pub(super) fn finish_growth(&mut self) {
        while self.frontier_bucket != 0 {
            self.grow_step();
        }
    }

    fn begin_growth(&mut self) {
        let buckets = self.current.buckets() as u64;
        let grown = (buckets + (buckets / GROWTH_SHARE).max(PADDING as u64)).min(self.buckets_max);
        // A smaller round would have to be done in one large step.
        if grown - buckets < buckets / 32 || grown == buckets {
            self.grow_at = u64::MAX;
            return;
        }
        self.previous = self.current;
        self.current = Mapping::new(grown);
        self.frontier_bucket = self.previous.buckets();
        self.frontier = u64::MAX;
        self.inserts_since_step = 0;
        self.fit_table();
        self.grow_step();
    }

    /// Empties the slots of entries whose old home is in `homes` into the scratch, in order.
    fn take_out(&mut self, old: &Mapping, new: &Mapping, homes: Range<usize>) {
        let (format, old, new) = (self.format, *old, *new);
        let mut taken = std::mem::take(&mut self.scratch);
        taken.clear();
        taken.reserve_exact((homes.len() + PADDING - 1) * SLOTS);
        for bucket in homes.start..homes.end + PADDING - 1 {
            let line = &mut self.table.as_chunks_mut::<SLOTS>().0[bucket];
            let notes = self.notes.as_ref().map(|notes| notes.as_chunks::<SLOTS>().0[bucket]);
            for (slot, i) in line.iter_mut().zip(0..) {
                // Entries of lower homes come first, and empty slots last.
                if *slot == 0 || bucket - (distance(*slot) as usize) < homes.start {
                    continue;
                }
                let home = bucket - distance(*slot) as usize;
                let note = notes.map_or(0, |notes| notes[i]);
                let slot = std::mem::take(slot);
                match format.remap(&old, &new, home, slot) {
                    Some((home, slot)) => taken.push(Moved { home, slot, note }),
                    None => self.spill.insert(format.spilled(&old, Moved { home, slot, note })),
                }
            }
        }
        if new.bits() != old.bits() {
            restore_order(&mut taken);
        }
        self.scratch = taken;
    }

    /// Places the scratch by the new mapping: straight down below `new_part`, where buckets are
    /// empty, and by insertion from there on.
    fn put_back(&mut self, new: &Mapping, new_part: usize) {
        let scratch = std::mem::take(&mut self.scratch);
        let mut inserted = scratch.len();
        let mut position = 0;
        let slots = &mut self.table[..new_part * SLOTS];
        for (i, moved) in scratch.iter().enumerate() {
            position = position.max(moved.home * SLOTS);
            if position >= slots.len() {
                inserted = i;
                break;
            }
            let far = (position / SLOTS - moved.home) as u64;
            if far > DISTANCE_MAX {
                self.spill.insert(self.format.spilled(new, *moved));
                continue;
            }
            slots[position] = moved.slot + far * ONE_BUCKET;
            if let Some(notes) = &mut self.notes {
                notes[position] = moved.note;
            }
            position += 1;
        }
        scratch[inserted..].iter().for_each(|moved| self.place_slot(new, *moved));
        self.scratch = scratch;
    }
}

/// Sorts by hash what is in order but for the two halves of split granules.
fn restore_order(moved: &mut [Moved]) {
    let fine = |moved: &Moved| SlotFormat::fine(moved.home, moved.slot);
    for i in 1..moved.len() {
        let mut at = i;
        while at > 0 && fine(&moved[at - 1]) > fine(&moved[at]) {
            moved.swap(at - 1, at);
            at -= 1;
        }
    }
}
