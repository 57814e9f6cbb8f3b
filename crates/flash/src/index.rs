//! The index of one shard: from the 64-bit hash of a key to where its record is, in 8 bytes a slot.
//!
//! One table of buckets of eight slots, a cache line each, kept 80 to 89 % full. The keys are not
//! here, so a lookup answers with candidates and the caller reads the record to know.
//!
//! Invariants:
//! 1. An entry sits 0 to 7 buckets after its home, or in the spill.
//! 2. Every bucket from an entry's home up to the entry's bucket is full.
//! 3. Slots are ordered by the leading bits of their hashes, and empty slots of a bucket are its
//!    last: so a lookup may stop at a bucket that is not full or whose last slot is of a later hash
//!    (Robin Hood hashing, Celis 1986), and growth and scans go through the table in order.
//! 4. Hashes from `frontier` on are mapped by `current`, those below by `previous`; between rounds
//!    of growth `frontier` is 0. During a round the old part ends at bucket `frontier_bucket`, its
//!    entries reach less than 8 buckets beyond, and the new part starts at least 8 buckets beyond.
//!
//! It does no input or output, takes no lock (the caller holds the shard's) and never compares
//! keys.

mod checkpoint;
mod growth;
mod mapping;
mod ordered;
mod slot;
mod spill;
#[cfg(test)]
mod tests;

use entresol_device::Table;

use crate::error::Result;
pub use crate::format::SizeCode;
pub use checkpoint::{Bounds, Layout};
use growth::Moved;
use mapping::Mapping;
pub use slot::Prefix;
use slot::{DISTANCE_MAX, ONE_BUCKET, REFERENCED, SlotFormat, distance, order};
use spill::Spill;
pub use spill::Spilled;

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// Address of the record, in the log's units (32 bytes).
    pub address: u64,
    /// How much to read.
    pub size: SizeCode,
}

/// The index of one shard. The top 48 bits of hashes must be evenly spread within the shard.
#[derive(Debug)]
pub struct Index {
    table: Table,
    format: SlotFormat,
    current: Mapping,
    previous: Mapping,
    frontier: u64,
    frontier_bucket: usize,
    /// How much higher than the frontier's bucket its bucket in the new part is.
    frontier_shift: usize,
    buckets_max: u64,
    /// Entries at which the next round of growth starts.
    grow_at: u64,
    inserts_since_step: u32,
    entries: u64,
    spill: Spill,
    scratch: Vec<Moved>,
    /// A word for each slot, moved along with it; only between `begin_notes` and `end_notes`.
    notes: Option<Table>,
}

/// Places that a lookup found, nearest to home first. Reuse one: it allocates only past 16 places.
#[derive(Debug, Default)]
pub struct Candidates {
    first: [Place; 16],
    length: usize,
    more: Vec<Place>,
}

const SLOTS: usize = 8;
/// Buckets behind the last home.
const PADDING: usize = 8;
const BUCKETS_MIN: u64 = 64;
/// What entries outside the table may take at most before new ones are refused, bytes.
const SPILL_BYTES_MAX: u64 = 48 << 10;
/// What an index takes beside its largest table: entries outside it, and those of a step of growth.
pub const BESIDE_TABLE_BYTES: u64 = 64 << 10;

impl Index {
    /// An empty index for addresses below 2^`address_bits` (20 to 36) that grows to `buckets_max`
    /// buckets of 64 bytes at most. It starts small, but large enough that no slot runs out of hash
    /// bits on the way to `buckets_max`.
    pub fn new(address_bits: u32, buckets_max: u64) -> Result<Index> {
        Index::with_expected(address_bits, buckets_max, 0)
    }

    /// As `new`, with room for `entries` before the first round of growth.
    pub fn with_expected(address_bits: u32, buckets_max: u64, entries: u64) -> Result<Index> {
        let format = SlotFormat::new(address_bits);
        let buckets_max = buckets_max.clamp(BUCKETS_MIN, mapping::BUCKETS_MAX);
        let start = Index::buckets_at_start(&format, buckets_max);
        let buckets = (entries / (SLOTS as u64) * 100 / LOAD_PERCENT + 1).clamp(start, buckets_max);
        Index::with_buckets(format, buckets_max, buckets)
    }

    fn with_buckets(format: SlotFormat, buckets_max: u64, buckets: u64) -> Result<Index> {
        let table = Table::reserve_huge((buckets_max as usize + PADDING) * SLOTS)?;
        let mut index = Index {
            table,
            format,
            current: Mapping::new(buckets),
            previous: Mapping::new(buckets),
            frontier: 0,
            frontier_bucket: 0,
            frontier_shift: 0,
            buckets_max,
            grow_at: 0,
            inserts_since_step: 0,
            entries: 0,
            spill: Spill::new(),
            scratch: Vec::new(),
            notes: None,
        };
        index.fit_table();
        Ok(index)
    }

    fn buckets_at_start(format: &SlotFormat, buckets_max: u64) -> u64 {
        let bits_max = Mapping::new(buckets_max).bits();
        let mut start = BUCKETS_MIN;
        while Mapping::new(start).bits() + format.hash_bits_max() < bits_max {
            start *= 2;
        }
        start
    }

    /// Bits of an address, as given when the index was made.
    pub fn address_bits(&self) -> u32 {
        self.format.address_bits()
    }

    /// Buckets it may grow to.
    pub fn buckets_max(&self) -> u64 {
        self.buckets_max
    }

    /// Entries.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Entries it holds well: the load it is kept at, in the largest table allowed. Beyond, entries
    /// spill at many times the memory each; the caller refuses new keys before.
    pub fn entries_max(&self) -> u64 {
        // The last round is left out if it would be too small to be done in steps.
        load(self.buckets_max - self.buckets_max / 32)
    }

    /// The bytes that an index needs to hold so many entries well.
    pub fn bytes_for(entries: u64) -> u64 {
        let buckets = entries.max(1).saturating_mul(100) / (SLOTS as u64 * LOAD_PERCENT) + 1;
        (buckets + buckets / 31 + 1).saturating_mul(64).saturating_add(BESIDE_TABLE_BYTES)
    }

    /// Whether one more entry finds room: in the largest table allowed, or in one that is left as
    /// it was when it held more. What is outside it is brought back where removals made place.
    pub fn takes_one(&mut self) -> bool {
        if self.spill.bytes() > SPILL_BYTES_MAX {
            for spilled in self.spill.take_range(0, u64::MAX) {
                let mapping = *self.mapping(spilled.prefix.hash);
                self.place_spilled(&mapping, spilled);
            }
        }
        self.entries < self.entries_max() && self.spill.bytes() <= SPILL_BYTES_MAX
    }

    /// Entries outside the table.
    pub fn spilled_len(&self) -> u64 {
        self.spill.len() as u64
    }

    /// RAM used, bytes.
    pub fn bytes(&self) -> u64 {
        let words = self.table.len() + self.notes.as_ref().map_or(0, |notes| notes.len());
        let scratch = self.scratch.capacity() * size_of::<Moved>();
        (words * size_of::<u64>() + scratch) as u64 + self.spill.bytes()
    }

    /// Starts loading what a call with `hash` will touch first. Worth it 4 to 16 lookups ahead.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let word = self.mapping(hash).home(hash) * SLOTS;
        self.table.prefetch(word);
        self.table.prefetch(word + SLOTS);
    }

    /// All places that may be the one of `hash`: the right one, if it is here, and, about once in
    /// tens of thousands of lookups, one of another key.
    #[inline]
    pub fn candidates(&self, hash: u64, out: &mut Candidates) {
        out.clear();
        self.each_match(hash, |_, slot| {
            out.push(self.format.place(slot));
            false
        });
        if self.spill.may_hold(hash) {
            self.spill.candidates(hash).for_each(|spilled| out.push(spilled.place));
        }
    }

    /// The first place that may be the one of `hash` and of which `is_it` says that it is.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(Place) -> bool) -> Option<Place> {
        let mut found = None;
        self.each_match(hash, |_, slot| {
            found = Some(self.format.place(slot)).filter(|place| is_it(*place));
            found.is_some()
        });
        if found.is_none() && self.spill.may_hold(hash) {
            let mut spilled = self.spill.candidates(hash).map(|spilled| spilled.place);
            found = spilled.find(|place| is_it(*place));
        }
        found
    }

    /// Adds an entry, whether or not one with the same hash is there.
    pub fn insert(&mut self, hash: u64, place: Place) {
        self.insert_noted(hash, place, 0);
    }

    /// As `insert`; the entry's note is `note` while notes are kept.
    pub fn insert_noted(&mut self, hash: u64, place: Place, note: u64) {
        let mapping = *self.mapping(hash);
        let (home, slot) = self.format.pack(&mapping, Prefix::whole(hash), place);
        self.place_slot(&mapping, Moved { home, slot, note });
        self.entries += 1;
        self.grow_for_insert();
    }

    /// Gives the entry that matches `hash` and is at `old_address` the place `new`; false if there
    /// is none. Its mark and its note stay.
    pub fn replace(&mut self, hash: u64, old_address: u64, new: Place) -> bool {
        let mapping = *self.mapping(hash);
        if let Some(position) = self.locate(hash, old_address) {
            let slot = self.table[position];
            self.table[position] = self.format.replaced(&mapping, hash, slot, new);
            return true;
        }
        if let Some(spilled) = self.spill.find_mut(hash, old_address) {
            spilled.place = new;
            return true;
        }
        false
    }

    /// Removes the entry that matches `hash` and is at `address`; false if there is none.
    pub fn remove(&mut self, hash: u64, address: u64) -> bool {
        let removed = if let Some(position) = self.locate(hash, address) {
            self.vacate(position);
            true
        } else {
            self.spill.remove(hash, address)
        };
        self.entries -= u64::from(removed);
        removed
    }

    /// Whether an entry matches `hash` and is at `address`.
    pub fn contains(&self, hash: u64, address: u64) -> bool {
        self.locate(hash, address).is_some() || self.spilled(hash, address).is_some()
    }

    /// How many leading bits of `hash` the entry that matches it and is at `address` knows; `None`
    /// if there is none.
    pub fn known_bits(&self, hash: u64, address: u64) -> Option<u32> {
        if let Some(position) = self.locate(hash, address) {
            let slot = self.table[position];
            let home = position / SLOTS - distance(slot) as usize;
            return Some(self.format.prefix(self.mapping(hash), home, slot).known);
        }
        self.spilled(hash, address).map(|spilled| spilled.prefix.known)
    }

    /// Marks the entry that matches `hash` and is at `address` as referenced; false if there is
    /// none.
    pub fn mark_referenced(&mut self, hash: u64, address: u64) -> bool {
        if let Some(position) = self.locate(hash, address) {
            self.table[position] |= REFERENCED;
            return true;
        }
        let found = self.spill.find_mut(hash, address);
        found.map(|spilled| spilled.referenced = true).is_some()
    }

    /// Whether the entry was marked since the last call; takes the mark away.
    pub fn take_referenced(&mut self, hash: u64, address: u64) -> bool {
        if let Some(position) = self.locate(hash, address) {
            let slot = self.table[position];
            self.table[position] = slot & !REFERENCED;
            return slot & REFERENCED != 0;
        }
        let found = self.spill.find_mut(hash, address);
        found.is_some_and(|spilled| std::mem::take(&mut spilled.referenced))
    }

    /// Visits the entries of about `buckets` buckets from the hash `cursor` (0 starts), in hash
    /// order, and returns where to go on (0: the end). The low 24 bits of cursors are 0. An entry
    /// present from the first call to the last is visited at least once, growth notwithstanding.
    pub fn scan(&self, cursor: u64, buckets: usize, visit: &mut dyn FnMut(Place)) -> u64 {
        let mapping = self.mapping(cursor);
        let old_part = cursor < self.frontier;
        let limit = if old_part { self.frontier_bucket } else { mapping.buckets() };
        let first = mapping.home(cursor);
        let end = first.saturating_add(buckets.max(1)).min(limit);
        let next = match (end == limit, old_part) {
            (false, _) => mapping.first_hash(end),
            (true, true) => self.frontier,
            (true, false) => 0,
        };
        let granule_first = cursor >> (64 - mapping.bits());
        let reach = end + PADDING - 1;
        for (bucket, line) in
            self.table.as_chunks::<SLOTS>().0.iter().enumerate().take(reach).skip(first)
        {
            for slot in line.iter().copied().filter(|slot| *slot != 0) {
                let home = bucket - distance(slot) as usize;
                let wanted = home > first && home < end
                    || home == first && self.format.granule(mapping, home, slot) >= granule_first;
                if wanted {
                    visit(self.format.place(slot));
                }
            }
        }
        let first_hash = granule_first << (64 - mapping.bits());
        self.spill.range(first_hash, next.wrapping_sub(1)).for_each(|s| visit(s.place));
        next
    }

    /// Removes the entries that `keep` does not want; returns how many. Visits every entry once.
    pub fn retain(&mut self, keep: &mut dyn FnMut(Place) -> bool) -> u64 {
        let mut removed = 0;
        let mut position = 0;
        while position < self.table.len() {
            let slot = self.table[position];
            if slot != 0 && !keep(self.format.place(slot)) {
                self.vacate(position);
                removed += 1;
            } else {
                position += 1;
            }
        }
        removed += self.spill.retain(keep);
        self.entries -= removed;
        removed
    }

    /// Starts keeping a note, a word of the caller's, with each entry; all are 0. Costs as much
    /// memory again as the table. For recovery, which must compare versions.
    pub fn begin_notes(&mut self) -> Result<()> {
        let mut notes = Table::reserve_huge((self.buckets_max as usize + PADDING) * SLOTS)?;
        notes.grow(self.table.len())?;
        self.notes = Some(notes);
        self.spill.iter_mut().for_each(|spilled| spilled.note = 0);
        Ok(())
    }

    /// Stops keeping notes and gives their memory back.
    pub fn end_notes(&mut self) {
        self.notes = None;
    }

    /// The note of the entry that matches `hash` and is at `address`.
    pub fn note(&self, hash: u64, address: u64) -> Option<u64> {
        match self.locate(hash, address) {
            Some(position) => Some(self.notes.as_ref().map_or(0, |notes| notes[position])),
            None => self.spilled(hash, address).map(|spilled| spilled.note),
        }
    }

    /// Changes the note of the entry that matches `hash` and is at `address`; false if there is
    /// none.
    pub fn set_note(&mut self, hash: u64, address: u64, note: u64) -> bool {
        if let Some(position) = self.locate(hash, address) {
            if let Some(notes) = &mut self.notes {
                notes[position] = note;
            }
            return true;
        }
        let found = self.spill.find_mut(hash, address);
        found.map(|spilled| spilled.note = note).is_some()
    }

    #[inline]
    fn mapping(&self, hash: u64) -> &Mapping {
        if hash >= self.frontier { &self.current } else { &self.previous }
    }

    /// Calls `visit` with the position and slot of each match in the table until it returns true.
    #[inline(always)]
    fn each_match(&self, hash: u64, mut visit: impl FnMut(usize, u64) -> bool) {
        let probe = self.format.probe(self.mapping(hash), hash);
        let lines = &self.table.as_chunks::<SLOTS>().0[probe.home..];
        for (bucket, line) in lines.iter().take(PADDING).enumerate() {
            let mut tagged = SlotFormat::tagged(&probe, bucket as u64, line);
            while tagged != 0 {
                let i = tagged.trailing_zeros() as usize;
                tagged &= tagged - 1;
                let position = (probe.home + bucket) * SLOTS + i;
                if self.format.agrees(&probe, line[i]) && visit(position, line[i]) {
                    return;
                }
            }
            if SlotFormat::ends_at(&probe, bucket as u64, line[SLOTS - 1]) {
                return;
            }
        }
    }

    /// The position of the slot that matches `hash` and has `address`.
    #[inline]
    fn locate(&self, hash: u64, address: u64) -> Option<usize> {
        let mut found = None;
        self.each_match(hash, |position, slot| {
            let here = self.format.address(slot) == address;
            if here {
                found = Some(position);
            }
            here
        });
        found
    }

    fn spilled(&self, hash: u64, address: u64) -> Option<&Spilled> {
        if !self.spill.may_hold(hash) {
            return None;
        }
        self.spill.candidates(hash).find(|spilled| spilled.place.address == address)
    }

    /// Puts a slot (at distance 0) where it belongs, moving those of later hashes on by a slot
    /// each.
    fn place_slot(&mut self, mapping: &Mapping, moved: Moved) {
        let lines = self.table.as_chunks_mut::<SLOTS>().0;
        let mut bucket = moved.home;
        let mut slot = moved.slot;
        loop {
            let last = lines[bucket][SLOTS - 1];
            if last == 0 || order(last) > order(slot) {
                break;
            }
            if distance(slot) == DISTANCE_MAX {
                self.spill.insert(self.format.spilled(mapping, moved));
                return;
            }
            slot += ONE_BUCKET;
            bucket += 1;
        }
        let line = &mut lines[bucket];
        let at = line.iter().take_while(|s| **s != 0 && order(**s) <= order(slot)).count();
        let mut carried = line[SLOTS - 1];
        line.copy_within(at..SLOTS - 1, at + 1);
        line[at] = slot;
        let mut note = self.shift_notes(bucket, at, moved.note);
        while carried != 0 {
            let lines = self.table.as_chunks_mut::<SLOTS>().0;
            if distance(carried) == DISTANCE_MAX {
                let home = bucket - DISTANCE_MAX as usize;
                let slot = carried - DISTANCE_MAX * ONE_BUCKET;
                self.spill.insert(self.format.spilled(mapping, Moved { home, slot, note }));
                return;
            }
            bucket += 1;
            let line = &mut lines[bucket];
            let next = line[SLOTS - 1];
            line.copy_within(0..SLOTS - 1, 1);
            line[0] = carried + ONE_BUCKET;
            carried = next;
            note = self.shift_notes(bucket, 0, note);
        }
    }

    /// Puts `note` at slot `at` of `bucket`, the later notes one on; returns the one that fell off.
    #[inline]
    fn shift_notes(&mut self, bucket: usize, at: usize, note: u64) -> u64 {
        let Some(notes) = &mut self.notes else { return 0 };
        let line = &mut notes.as_chunks_mut::<SLOTS>().0[bucket];
        let last = line[SLOTS - 1];
        line.copy_within(at..SLOTS - 1, at + 1);
        line[at] = note;
        last
    }

    /// Empties a slot and moves those after it that are not at home back by a slot each.
    fn vacate(&mut self, position: usize) {
        let lines = self.table.as_chunks_mut::<SLOTS>().0;
        let mut notes = self.notes.as_mut().map(|notes| notes.as_chunks_mut::<SLOTS>().0);
        let (mut bucket, mut at) = (position / SLOTS, position % SLOTS);
        loop {
            lines[bucket].copy_within(at + 1.., at);
            if let Some(notes) = &mut notes {
                notes[bucket].copy_within(at + 1.., at);
            }
            let was_full = lines[bucket][SLOTS - 1] != 0;
            // The last bucket of the padding never fills, so a full bucket has a next one.
            let next = if was_full { lines[bucket + 1][0] } else { 0 };
            if distance(next) == 0 {
                lines[bucket][SLOTS - 1] = 0;
                return;
            }
            lines[bucket][SLOTS - 1] = next - ONE_BUCKET;
            if let Some(notes) = &mut notes {
                notes[bucket][SLOTS - 1] = notes[bucket + 1][0];
            }
            bucket += 1;
            at = 0;
        }
    }

    /// Makes table and limits fit `current`.
    fn fit_table(&mut self) {
        let words = (self.current.buckets() + PADDING) * SLOTS;
        let reserved = "address space for the largest table was reserved when the index was made";
        self.table.grow(words).expect(reserved);
        if let Some(notes) = &mut self.notes {
            notes.grow(words).expect(reserved);
        }
        self.grow_at = load(self.current.buckets() as u64);
    }
}

impl Candidates {
    /// The places found.
    pub fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        self.first[..self.length].iter().chain(&self.more).copied()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.length + self.more.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The `i`-th place.
    pub fn get(&self, i: usize) -> Option<Place> {
        self.first[..self.length].get(i).or_else(|| self.more.get(i.wrapping_sub(16))).copied()
    }

    #[inline]
    fn clear(&mut self) {
        self.length = 0;
        self.more.clear();
    }

    #[inline]
    fn push(&mut self, place: Place) {
        match self.first.get_mut(self.length) {
            Some(free) => {
                *free = place;
                self.length += 1;
            }
            None => self.more.push(place),
        }
    }
}

/// Share of slots in use at which a table grows, percent.
const LOAD_PERCENT: u64 = 88;

/// Entries at which a table of `buckets` grows.
fn load(buckets: u64) -> u64 {
    buckets * (SLOTS as u64) * LOAD_PERCENT / 100
}
