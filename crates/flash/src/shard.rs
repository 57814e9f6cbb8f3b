//! One shard: an index over a log, under one lock. Where operations are decided.
//!
//! Invariants:
//! 1. A record is appended before the index points to it; the old location is given up after.
//! 2. A location read outside the lock is acted on only if the index still holds it.
//! 3. Every slot of the index points to a record that stands in its segment, in memory or on the
//!    device; `log` live bytes are the sum over slots, pieces and tombstones.
//! 4. The sequence grows with every append of a caller's; of two records of one key the one with
//!    the
//!    higher sequence is the truth.
//!
//! It does no reads of its own: what is not in memory is answered with a [`Plan`], and the session
//! reads it without the lock.

mod counts;
mod decide;
mod discard;
mod ends;
mod journal;
mod log_reader_detect;
mod pinned;
mod room;
mod victim;
mod write;

use std::sync::Arc;

use entresol_planted::planted;

use counts::Counts;
pub(crate) use discard::Discarded;
pub(crate) use ends::{Ending, seconds_of};
pub(crate) use journal::Appended;
pub use log_reader_detect::SegmentUse;
use log_reader_detect::Trail;
use pinned::PinnedBytes;

use crate::error::Result;
use crate::format::{Floor, FooterEntry, PIECE_SPACE, SizeCode};
use crate::index::{Candidates, Index, Place};
use crate::large::LargeValues;
use crate::log::{Log, Stamp};
use crate::notes::{Note, Notes, index_hash};
use crate::policy::ReclaimPolicy;
use crate::record::{HashSeed, Payloads, Record, Wanted};
use crate::segment::Stream;
use crate::statistics::ShardCounters;
use crate::types::{Key, Owner};

pub(crate) use room::{Mark, Pace};
pub(crate) use victim::{BATCH, Part, Step, Victim};
pub(crate) use write::{Absence, Known, PutRequest, PutStep, Removal, Written};

/// One shard.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) log: Log,
    pub(crate) index: Index,
    pub(crate) notes: Notes,
    pub(crate) large: LargeValues,
    counts: Counts,
    floors: Vec<Floor>,
    sequence: u64,
    hash_seed: HashSeed,
    counters: ShardCounters,
    payloads: Arc<Payloads>,
    limits: Limits,
    /// Mean age, in sequences, at which records of the hot stream were found dead.
    lifespan: f64,
    /// Records that end by then, seconds, may have been dropped from the index as ended. Clocks go
    /// back: without this a reclaim could take an ended record for one that was superseded, and let
    /// go what hides older ones.
    ended_until: u32,
    /// A victim that writers reclaim in steps; whoever goes on with it takes it out.
    under_way: Option<Victim>,
    /// Bytes of victims that writers owe for what they appended while segments were short.
    owed_bytes: u64,
    /// Segments under reclaim: what was evicted from them is still on the medium.
    reclaiming: u32,
    /// Bytes that reclaim of a cache copied because they were read, less what it may copy for what
    /// went since.
    copied_ahead: u64,
    /// What had been appended when the shard was maintained last.
    maintained_at: Stamp,
    /// The second for which no segment was found in which something had ended.
    none_ended_at: u32,
    /// The second in which the open segment of each stream was searched for what had ended.
    open_ends_at: [u32; Stream::ALL.len()],
    /// What was dropped below this sequence is looked for, or was.
    swept_below: u64,
    /// Where the search for a victim goes on.
    victim_cursor: usize,
    pinned: PinnedBytes,
    trail: Trail,
    found: Candidates,
    scratch: Vec<u8>,
    pieces_scratch: Vec<u8>,
}

/// What bounds a shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub policy: &'static dyn ReclaimPolicy,
    pub index_bytes_max: u64,
    pub full_mark_percent: u8,
    pub slow_mark_percent: u8,
}

/// Where a record is, in one use of its segment: in a later one another may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub place: Place,
    pub segment_sequence: u64,
}

/// A read that has to happen before the operation can be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub place: Place,
    /// Sequence of the segment when the plan was made.
    pub segment_sequence: u64,
    /// Where the record starts on the device.
    pub offset: u64,
    /// How much may be read from there: up to the end of the segment.
    pub length: u32,
    /// Bytes that what it leads to takes in memory: those of a value's pieces, where it has some.
    pub bytes: u64,
    /// The record is hidden behind another key's slot.
    pub hidden: bool,
}

impl Plan {
    pub(crate) fn location(&self) -> Location {
        Location { place: self.place, segment_sequence: self.segment_sequence }
    }
}

/// What the shard knows of a key without reading.
#[derive(Debug)]
pub(crate) enum Located<'a> {
    /// The record is in memory.
    Memory(Record<'a>, Location),
    /// Read this and verify it.
    Read(Plan),
    /// There is none, besides the places already tried.
    Absent,
}

enum Sought {
    Memory(Place, u64),
    Read(Place, bool),
    Absent,
}

impl Shard {
    pub(crate) fn new(log: Log, index: Index, payloads: Arc<Payloads>, limits: Limits) -> Shard {
        Shard {
            log,
            index,
            notes: Notes::default(),
            large: LargeValues::default(),
            counts: Counts::default(),
            floors: Vec::new(),
            sequence: 1,
            hash_seed: HashSeed::new(0, 64),
            counters: ShardCounters::default(),
            payloads,
            limits,
            lifespan: f64::INFINITY,
            ended_until: 0,
            under_way: None,
            owed_bytes: 0,
            reclaiming: 0,
            copied_ahead: 0,
            maintained_at: Stamp::default(),
            none_ended_at: 0,
            open_ends_at: [0; Stream::ALL.len()],
            swept_below: 0,
            victim_cursor: 0,
            pinned: PinnedBytes::default(),
            trail: Trail::default(),
            found: Candidates::default(),
            scratch: Vec::new(),
            pieces_scratch: Vec::new(),
        }
    }

    /// What a store's root says of the shard: what was dropped, and how keys are hashed.
    pub(crate) fn take_root(&mut self, floors: &[Floor], hash_seed: HashSeed) {
        self.floors = floors.to_vec();
        self.hash_seed = hash_seed;
    }

    /// What a checkpoint says beside the tables.
    pub(crate) fn resume(&mut self, sequence: u64, lifespan: f64) {
        (self.sequence, self.lifespan) = (sequence, lifespan);
    }

    /// Records appended from now on have higher sequences than this.
    pub(crate) fn begin_after(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Records that end by then, seconds, may have been dropped as ended; later ones were not.
    pub(crate) fn know_ended(&mut self, seconds: u32) {
        self.ended_until = seconds;
    }

    /// Records that end by then, seconds, may have been dropped as ended.
    pub(crate) fn ended_until(&self) -> u32 {
        self.ended_until
    }

    /// Mean age, in sequences, at which records of the hot stream were found dead.
    pub(crate) fn lifespan(&self) -> f64 {
        self.lifespan
    }

    pub(crate) fn hash_seed(&self) -> HashSeed {
        self.hash_seed
    }

    pub(crate) fn payloads(&self) -> &Arc<Payloads> {
        &self.payloads
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn counters(&self) -> &ShardCounters {
        &self.counters
    }

    pub(crate) fn counters_mut(&mut self) -> &mut ShardCounters {
        &mut self.counters
    }

    /// Entries by space and partition.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// Whether nothing was appended since the shard was maintained last.
    pub(crate) fn is_idle(&self) -> bool {
        self.log.appended() == self.maintained_at
    }

    /// The shard is maintained.
    pub(crate) fn note_maintained(&mut self) {
        self.maintained_at = self.log.appended();
    }

    /// Takes the victim that lies half decided; whoever does goes on with it.
    pub(crate) fn take_victim(&mut self) -> Option<Victim> {
        self.under_way.take()
    }

    /// Leaves a victim half decided.
    pub(crate) fn leave_victim(&mut self, victim: Victim) {
        self.under_way = Some(victim);
    }

    pub(crate) fn has_victim(&self) -> bool {
        self.under_way.is_some()
    }

    /// Back to an empty shard, as before anything was loaded.
    pub(crate) fn forget_all(&mut self) {
        self.log.forget_table();
        self.notes = Notes::default();
        self.large = LargeValues::default();
        self.counts = Counts::default();
        self.sequence = 1;
        self.lifespan = f64::INFINITY;
    }

    /// Where the record of `key` is, places in `tried` excepted (they hold other keys).
    pub(crate) fn locate(
        &mut self,
        key: Key<'_>,
        hash: u128,
        tried: &[Location],
    ) -> Result<Located<'_>> {
        self.index.candidates(index_hash(hash), &mut self.found);
        let mut step = Sought::Absent;
        for at in 0..self.found.len() {
            let Some(place) = self.found.get(at) else { break };
            if self.is_tried(tried, place.address) || self.is_dropped(key, place.address) {
                continue;
            }
            let generation = self.segment_sequence(place.address);
            match self.log.in_memory(place.address) {
                None => {
                    step = Sought::Read(place, false);
                    break;
                }
                Some(bytes) => {
                    let wanted = Wanted::of(generation, key);
                    if self.payloads.is_of(self.log.shape().shard, bytes, wanted, &mut self.scratch)
                    {
                        step = Sought::Memory(place, generation);
                        break;
                    }
                    self.counters.collisions_get += 1;
                }
            }
        }
        if matches!(step, Sought::Absent) && self.notes.len() > 0 {
            let passed = |address| self.is_tried(tried, address) || self.is_dropped(key, address);
            let hidden = self.notes.hidden(hash).find(|note| !passed(note.address));
            if let Some(note) = hidden {
                step = Sought::Read(Place { address: note.address, size: note.size }, true);
            }
        }
        match step {
            Sought::Absent => Ok(Located::Absent),
            Sought::Read(place, hidden) => Ok(Located::Read(self.plan(place, hidden))),
            Sought::Memory(place, generation) => {
                self.index.mark_referenced(index_hash(hash), place.address);
                let location = Location { place, segment_sequence: generation };
                let bytes = self.log.in_memory(place.address).unwrap_or_default();
                let wanted = Wanted::of(generation, key);
                let shard = self.log.shape().shard;
                match self.payloads.open(shard, bytes, wanted, &mut self.scratch) {
                    Ok(record) => Ok(Located::Memory(record, location)),
                    Err(mismatch) => Err(damaged(&self.log, place.address, mismatch)),
                }
            }
        }
    }

    /// The record at `address` was read: reclaim of a cache passes over it once.
    pub(crate) fn mark_referenced(&mut self, hash: u128, address: u64) {
        // None if it moved meanwhile: then it is elsewhere unmarked, as after a look of reclaim.
        let _marked = self.index.mark_referenced(index_hash(hash), address);
    }

    /// All records that may be of a key of this hash count as read.
    pub(crate) fn mark_candidates(&mut self, hash: u128) {
        self.index.candidates(index_hash(hash), &mut self.found);
        for place in self.found.iter() {
            let _marked = self.index.mark_referenced(index_hash(hash), place.address);
        }
    }

    /// Whether any slot or note may be of `key`.
    pub(crate) fn may_hold(&mut self, key: Key<'_>, slot_hash: u64, hash: u128) -> bool {
        self.index.candidates(slot_hash, &mut self.found);
        self.found.iter().any(|place| !self.is_dropped(key, place.address))
            || self.notes.hidden(hash).any(|note| !self.is_dropped(key, note.address))
    }

    /// Sequence of the segment that `address` is in.
    pub(crate) fn segment_sequence(&self, address: u64) -> u64 {
        let (segment, _) = self.log.shape().split(address);
        self.log.segments().get(segment as usize).map_or(0, |s| s.sequence)
    }

    /// The location of what is at `place` now.
    pub(crate) fn location(&self, place: Place) -> Location {
        Location { place, segment_sequence: self.segment_sequence(place.address) }
    }

    /// Whether the index holds the record that was found at `location`: its segment may be in use
    /// anew, with another record of the key at the same address.
    pub(crate) fn holds(&self, hash: u128, location: Location) -> bool {
        let same = self.location(location.place) == location || planted!("location-by-address");
        same && self.index.contains(index_hash(hash), location.place.address)
    }

    /// Whether what is at `address` is among the records that were `tried`.
    fn is_tried(&self, tried: &[Location], address: u64) -> bool {
        let mut there = tried.iter().filter(|location| location.place.address == address);
        there.any(|location| location.segment_sequence == self.segment_sequence(address))
    }

    /// Where the record stands that a footer of `segment` tells of.
    pub(crate) fn place_of(&self, segment: u32, entry: &FooterEntry) -> Place {
        Place {
            address: self.log.shape().address(segment, entry.offset),
            size: SizeCode::covering(u64::from(entry.record_bytes)),
        }
    }

    /// Whether segments are under reclaim.
    pub(crate) fn is_reclaiming(&self) -> bool {
        self.reclaiming > 0
    }

    /// One more segment is under reclaim, or one less.
    #[cfg(test)]
    pub(crate) fn count_reclaim(&mut self, change: i32) {
        self.reclaiming = self.reclaiming.saturating_add_signed(change);
    }

    /// Of all records appended the latest has this sequence.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The read of the record at `place`, hidden or not.
    pub(crate) fn plan(&self, place: Place, hidden: bool) -> Plan {
        let (segment, offset) = self.log.shape().split(place.address);
        Plan {
            place,
            segment_sequence: self.segment_sequence(place.address),
            offset: self.log.shape().offset_of(segment) + u64::from(offset),
            length: self.log.shape().segment_bytes - offset,
            bytes: self
                .large
                .at(place.address)
                .map_or(place.size.bytes(), |pieces| pieces.stored_bytes),
            hidden,
        }
    }

    /// Whether the index (or a note) still holds what `plan` read.
    pub(crate) fn is_current(&self, hash: u128, plan: &Plan) -> bool {
        if self.segment_sequence(plan.place.address) != plan.segment_sequence {
            return false;
        }
        if plan.hidden {
            return self.notes.hidden(hash).any(|note| note.address == plan.place.address);
        }
        self.index.contains(index_hash(hash), plan.place.address)
    }

    /// Whether a record at `address`, if it is of `key`, was dropped with its space or partition.
    pub(crate) fn is_dropped(&self, key: Key<'_>, address: u64) -> bool {
        self.is_below_floor(key.owner(), address)
    }

    fn is_below_floor(&self, owner: Owner, address: u64) -> bool {
        !self.floors.is_empty() && self.floor_of(owner) > self.segment_sequence(address)
    }

    /// Whether anything was dropped that may still stand in a segment.
    pub(crate) fn has_floors(&self) -> bool {
        !self.floors.is_empty()
    }

    /// Segments below this sequence hold nothing of the partition any more.
    pub(crate) fn floor_of(&self, owner: Owner) -> u64 {
        self.floors
            .iter()
            .filter(|f| f.space == owner.space && f.partition.is_none_or(|p| p == owner.partition))
            .map(|f| f.below)
            .max()
            .unwrap_or(0)
    }

    /// A record found hidden behind another key's slot gets a slot of its own back.
    pub(crate) fn unhide(&mut self, hash: u128, place: Place) {
        let (segment, _) = self.log.shape().split(place.address);
        if let Some(note) = self.notes.take(hash, segment, place.address) {
            self.log.settle_note(segment);
            self.counters.collisions_put += 1;
            self.count_owner(&note);
            self.index.insert(index_hash(hash), place);
            self.log.change_live(place.address, place.size.bytes() as i64);
        }
    }

    /// The key whose put left `note` turned out to be another one than the hidden: a new entry.
    pub(crate) fn count_owner(&mut self, note: &Note) {
        if note.owner.space != PIECE_SPACE {
            self.counts.add(note.owner, 1);
        }
    }

    /// The floors with another one; those under everything that still stands are no longer needed.
    /// `oldest` is the oldest use of any segment of the store with dead records.
    pub(crate) fn floors_with(&self, floor: Floor, oldest: Option<u64>) -> Vec<Floor> {
        let live = self.log.segments().iter().map(|s| s.sequence).filter(|s| *s != 0).min();
        let oldest = oldest.into_iter().chain(live).min().unwrap_or(u64::MAX);
        let other = |f: &Floor| {
            f.space != floor.space || floor.partition.is_some() && f.partition != floor.partition
        };
        let others = self.floors.iter().copied().filter(other);
        others.chain([floor]).filter(|f| f.below > oldest).collect()
    }

    /// Everything of a space or partition is gone at once; slots go when their segments are swept.
    pub(crate) fn drop_below(&mut self, floor: Floor, floors: Vec<Floor>) {
        self.floors = floors;
        self.counts.drop_all(floor.space, floor.partition);
        self.notes.disown(floor.space, floor.partition);
        self.log.try_all_again();
        for (segment, bytes) in self.pinned.dropped(floor, self.log.segments()) {
            self.log.add_dropped(segment, bytes);
        }
    }

    /// Memory of tables other than index and buffers, and of a victim, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.index.bytes() + self.log.buffer_bytes() + self.other_bytes()
    }

    pub(crate) fn other_bytes(&self) -> u64 {
        let segments = std::mem::size_of_val(self.log.segments());
        // Whoever reclaims holds a victim. One that comes and goes is no room for others.
        let reclaims = self.reclaiming > 0 || self.counters.segments_reclaimed > 0;
        let victim = if reclaims { u64::from(self.log.shape().segment_bytes) } else { 0 };
        segments as u64 + self.notes.bytes() + self.large.bytes() + victim
    }

    pub(crate) fn prefetch(&self, hash: u128) {
        self.index.prefetch(index_hash(hash));
    }
}

/// The error for a record that should be whole and is not.
pub(crate) fn damaged(
    log: &Log,
    address: u64,
    mismatch: crate::record::Mismatch,
) -> crate::error::Error {
    let (segment, offset) = log.shape().split(address);
    let at = log.shape().offset_of(segment) + u64::from(offset);
    crate::error::Error::new(
        crate::error::ErrorKind::Corrupt,
        format!(
            "record at byte {at} of {} (shard {}, segment {segment}, offset {offset}) does not \
             verify: {mismatch:?}; the medium returned other bytes than were written; put or \
             remove its entry to give it up",
            log.device().name(),
            log.shape().shard,
        ),
    )
}
