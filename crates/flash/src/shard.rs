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

mod ahead;
mod counts;
mod decide;
mod ends;
mod pinned;
mod room;
mod victim;
mod write;

use std::sync::Arc;

use entresol_planted::planted;

pub use ahead::SegmentUse;
use ahead::Trail;
use counts::Counts;
pub(crate) use ends::seconds_of;
use pinned::PinnedBytes;

use crate::error::Result;
use crate::format::{Floor, FooterEntry, PIECE_SPACE, SizeCode};
use crate::index::{Candidates, Index, Place};
use crate::large::LargeValues;
use crate::log::Log;
use crate::notes::{Note, Notes, index_hash};
use crate::policy::ReclaimPolicy;
use crate::record::{HashSeed, Payloads, Record};
use crate::segment::{Segment, Stream};
use crate::statistics::ShardCounters;
use crate::types::{Key, SpaceId};

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
    pub(crate) counts: Counts,
    pub(crate) floors: Vec<Floor>,
    pub(crate) sequence: u64,
    pub(crate) hash_seed: HashSeed,
    pub(crate) counters: ShardCounters,
    pub(crate) payloads: Arc<Payloads>,
    pub(crate) limits: Limits,
    /// Mean age, in sequences, at which records of the hot stream were found dead.
    pub(crate) lifespan: f64,
    /// Records that end by then, seconds, may have been dropped from the index as ended. Clocks go
    /// back: without this a reclaim could take an ended record for one that was superseded, and let
    /// go what hides older ones.
    pub(crate) ended_until: u32,
    /// A victim that writers reclaim in steps; whoever goes on with it takes it out.
    pub(crate) under_way: Option<Victim>,
    /// Bytes of victims that writers owe for what they appended while segments were short.
    pub(crate) owed_bytes: u64,
    /// Segments under reclaim: what was evicted from them is still on the medium.
    pub(crate) reclaiming: u32,
    /// Bytes that reclaim of a cache copied because they were read, less what it may copy for what
    /// went since.
    pub(crate) copied_ahead: u64,
    /// What had been appended when the shard was maintained last.
    pub(crate) maintained_at: u64,
    /// The second for which no segment was found in which something had ended.
    none_ended_at: u32,
    /// The second in which the open segment of each stream was searched for what had ended.
    pub(crate) open_ends_at: [u32; Stream::ALL.len()],
    /// What was dropped below this sequence is looked for, or was.
    swept_below: u64,
    /// Where the search for a victim goes on.
    pub(crate) victim_cursor: usize,
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
    Memory(Record<'a>, Place),
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
            maintained_at: 0,
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

    /// Back to an empty shard, as before anything was loaded.
    pub(crate) fn forget_all(&mut self) {
        self.log.segments.fill(crate::segment::Segment::UNUSED);
        self.log.live_bytes = 0;
        self.log.tombstone_bytes = 0;
        self.log.lost_bytes = 0;
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
                    let wanted = (generation as u32, Some(key));
                    if self.payloads.is_of(self.log.shape.shard, bytes, wanted, &mut self.scratch) {
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
                let bytes = self.log.in_memory(place.address).unwrap_or_default();
                let wanted = (generation as u32, Some(key));
                let shard = self.log.shape.shard;
                match self.payloads.open(shard, bytes, wanted, &mut self.scratch) {
                    Ok(record) => Ok(Located::Memory(record, place)),
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
        let (segment, _) = self.log.shape.split(address);
        self.log.segments.get(segment as usize).map_or(0, |s| s.sequence)
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
            address: self.log.shape.address(segment, entry.offset),
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
        let (segment, offset) = self.log.shape.split(place.address);
        Plan {
            place,
            segment_sequence: self.segment_sequence(place.address),
            offset: self.log.shape.offset_of(segment) + u64::from(offset),
            length: self.log.shape.segment_bytes - offset,
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
        self.is_below_floor((key.space, key.partition), address)
    }

    fn is_below_floor(&self, (space, partition): (SpaceId, u16), address: u64) -> bool {
        !self.floors.is_empty() && self.floor_of(space, partition) > self.segment_sequence(address)
    }

    /// Segments below this sequence hold nothing of the partition any more.
    pub(crate) fn floor_of(&self, space: SpaceId, partition: u16) -> u64 {
        self.floors
            .iter()
            .filter(|f| f.space == space && f.partition.is_none_or(|p| p == partition))
            .map(|f| f.below)
            .max()
            .unwrap_or(0)
    }

    /// A record found hidden behind another key's slot gets a slot of its own back.
    pub(crate) fn unhide(&mut self, hash: u128, place: Place) {
        let (segment, _) = self.log.shape.split(place.address);
        if let Some(note) = self.notes.take(hash, (segment, place.address)) {
            let notes = &mut self.log.segments[segment as usize].notes;
            *notes = notes.saturating_sub(1);
            self.counters.collisions_put += 1;
            self.count_owner(&note);
            self.index.insert(index_hash(hash), place);
            self.log.change_live(place.address, place.size.bytes() as i64);
        }
    }

    /// The key whose put left `note` turned out to be another one than the hidden: a new entry.
    pub(crate) fn count_owner(&mut self, note: &Note) {
        if note.owner.0 != PIECE_SPACE {
            self.counts.add(note.owner.0, note.owner.1, 1);
        }
    }

    /// The floors with another one; those under everything that still stands are no longer needed.
    /// `oldest` is the oldest use of any segment of the store with dead records.
    pub(crate) fn floors_with(&self, floor: Floor, oldest: Option<u64>) -> Vec<Floor> {
        let live = self.log.segments.iter().map(|s| s.sequence).filter(|s| *s != 0).min();
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
        self.log.segments.iter_mut().for_each(Segment::try_again);
        self.pinned.dropped(floor.space, floor.partition, &mut self.log.segments);
    }

    /// Memory of tables other than index and buffers, and of a victim, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.index.bytes() + self.log.buffer_bytes() + self.other_bytes()
    }

    pub(crate) fn other_bytes(&self) -> u64 {
        let segments = self.log.segments.len() * std::mem::size_of::<crate::segment::Segment>();
        // Whoever reclaims holds a victim. One that comes and goes is no room for others.
        let reclaims = self.reclaiming > 0 || self.counters.segments_reclaimed > 0;
        let victim = if reclaims { u64::from(self.log.shape.segment_bytes) } else { 0 };
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
    let (segment, offset) = log.shape.split(address);
    let at = log.shape.offset_of(segment) + u64::from(offset);
    crate::error::Error::new(
        crate::error::ErrorKind::Corrupt,
        format!(
            "record at byte {at} of {} (shard {}, segment {segment}, offset {offset}) does not \
             verify: {mismatch:?}; the medium returned other bytes than were written; put or \
             remove its entry to give it up",
            log.device.name(),
            log.shape.shard,
        ),
    )
}
