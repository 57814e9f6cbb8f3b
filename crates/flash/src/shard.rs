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
mod pinned;
mod room;
mod write;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use entresol_planted::planted;

pub use ahead::SegmentUse;
use ahead::Trail;
use pinned::PinnedBytes;

use crate::error::Result;
use crate::format::{Floor, PIECE_SPACE};
use crate::index::{Candidates, Index, Place};
use crate::large::LargeValues;
use crate::log::Log;
use crate::notes::{Note, Notes, index_hash};
use crate::options::Reclaim;
use crate::reclaim::UnderWay;
use crate::record::{HashSeed, Payloads, Record};
use crate::segment::{Segment, SegmentState, Stream};
use crate::statistics::ShardCounters;
use crate::types::{Key, SpaceId, Timestamp};

pub(crate) use room::{Mark, Pace};
pub(crate) use write::{Absence, Known, PutRequest, PutStep, Written};

/// One shard.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) log: Log,
    pub(crate) index: Index,
    pub(crate) notes: Notes,
    pub(crate) large: LargeValues,
    /// Entries by space and partition. Below zero for a while where a key was removed that had
    /// hidden
    /// another one and was not counted itself.
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
    pub(crate) under_way: Option<UnderWay>,
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

/// Entries by space and partition.
pub(crate) type Counts = HashMap<(SpaceId, u16), i64, BuildHasherDefault<OwnerHasher>>;

/// Spaces and partitions are few and small numbers: multiplied together they spread enough.
#[derive(Debug, Default)]
pub(crate) struct OwnerHasher(u64);

impl Hasher for OwnerHasher {
    /// The upper half of a product depends on all of both factors.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u16(u16::from(*byte)));
    }

    #[inline]
    fn write_u16(&mut self, part: u16) {
        self.0 = (self.0 << 16 | u64::from(part)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// What bounds a shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub reclaim: Reclaim,
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

enum Step {
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
        self.counts.clear();
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
        let mut step = Step::Absent;
        for at in 0..self.found.len() {
            let Some(place) = self.found.get(at) else { break };
            if self.is_tried(tried, place.address) || self.is_dropped(key, place.address) {
                continue;
            }
            let generation = self.segment_sequence(place.address);
            match self.log.in_memory(place.address) {
                None => {
                    step = Step::Read(place, false);
                    break;
                }
                Some(bytes) => {
                    let wanted = (generation as u32, Some(key));
                    if self.payloads.is_of(self.log.shape.shard, bytes, wanted, &mut self.scratch) {
                        step = Step::Memory(place, generation);
                        break;
                    }
                    self.counters.collisions_get += 1;
                }
            }
        }
        if matches!(step, Step::Absent) && self.notes.len() > 0 {
            let passed = |address| self.is_tried(tried, address) || self.is_dropped(key, address);
            let hidden = self.notes.hidden(hash).find(|note| !passed(note.address));
            if let Some(note) = hidden {
                step = Step::Read(Place { address: note.address, size: note.size }, true);
            }
        }
        match step {
            Step::Absent => Ok(Located::Absent),
            Step::Read(place, hidden) => Ok(Located::Read(self.plan(place, hidden))),
            Step::Memory(place, generation) => {
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
            self.count(note.owner.0, note.owner.1, 1);
        }
    }

    /// Whether a record that ends at `ends_seconds` (0: never) is over by now, or was by what a
    /// clock said before it went back: it may hide older ones although no slot points to it.
    pub(crate) fn is_over(&self, ends_seconds: u32, now: Timestamp) -> bool {
        is_past(ends_seconds, now) || (ends_seconds != 0 && ends_seconds <= self.ended_until)
    }

    /// Whether a record that ends later than at `ends_seconds` may have been dropped as ended: the
    /// clock has gone back since, and a recovery may find it.
    pub(crate) fn dropped_later(&self, ends_seconds: u32) -> bool {
        ends_seconds < self.ended_until
    }

    /// The same of the record at `place`. What the index has yet was not dropped: it lives as long
    /// as the clock lets it.
    pub(crate) fn is_over_at(
        &self,
        hash: u128,
        (place, ends_seconds): (Place, u32),
        now: Timestamp,
    ) -> bool {
        is_past(ends_seconds, now)
            || (self.is_over(ends_seconds, now)
                && !self.index.contains(index_hash(hash), place.address))
    }

    /// Drops an entry whose time is over, in full seconds: recovery knows no more of it. Its record
    /// stays as its own tombstone; one with pieces is buried instead (`Shard::bury`).
    pub(crate) fn expire(
        &mut self,
        hash: u128,
        (place, ends_seconds): (Place, u32),
        (space, partition): (SpaceId, u16),
    ) {
        self.ended_until = self.ended_until.max(ends_seconds);
        self.counters.expired += u64::from(self.end_entry(hash, place, (space, partition)));
    }

    /// Lets the entry at `place` go.
    pub(crate) fn evict(&mut self, hash: u128, place: Place, (space, partition): (SpaceId, u16)) {
        self.counters.evicted += u64::from(self.end_entry(hash, place, (space, partition)));
    }

    /// Lets the record at `place` go, if the index has it; whether it was an entry. What was
    /// dropped with its space or partition is none, and counted no more.
    fn end_entry(&mut self, hash: u128, place: Place, (space, partition): (SpaceId, u16)) -> bool {
        let dropped = self.is_below_floor((space, partition), place.address);
        if !self.index.remove(index_hash(hash), place.address) {
            return false;
        }
        self.forget(place);
        if !dropped {
            self.count(space, partition, -1);
        }
        !dropped
    }

    /// Lets what was dropped at `place` go; it is counted no more.
    pub(crate) fn let_go(&mut self, hash: u128, place: Place) {
        if self.index.remove(index_hash(hash), place.address) {
            self.forget(place);
        }
    }

    /// Gives up a location that no slot holds any more, pieces of a large value included.
    pub(crate) fn forget(&mut self, place: Place) {
        self.log.change_live(place.address, -(place.size.bytes() as i64));
        if self.large.is_empty() {
            return;
        }
        if let Some(pieces) = self.large.remove(place.address) {
            for (address, bytes) in pieces.places {
                let size = crate::index::SizeCode::covering(u64::from(bytes));
                self.log.change_live(address, -(size.bytes() as i64));
            }
        }
    }

    /// A segment that is to be swept before a put is refused for want of room: something in it has
    /// ended by `seconds`, or may have been dropped. What was counts as live until it is let go.
    pub(crate) fn first_gone(&mut self, seconds: u32) -> Option<u32> {
        let newest = self.floors.iter().map(|floor| floor.below).max().unwrap_or(0);
        if newest > self.swept_below {
            self.swept_below = newest;
            self.none_ended_at = u32::MAX;
            let used = [SegmentState::Sealed, SegmentState::Open, SegmentState::Damaged];
            let below = |s: &&mut Segment| used.contains(&s.state) && s.sequence < newest;
            self.log.segments.iter_mut().filter(below).for_each(|segment| segment.next_end = 0);
        }
        self.first_expired(seconds)
    }

    /// Seals an open segment of a store in which something has ended by `seconds`, or may have been
    /// dropped: little is appended to it, and only sealed ones are swept. Whether there was one.
    pub(crate) fn seals_gone(&mut self, seconds: u32) -> Result<bool> {
        let gone = Stream::ALL.into_iter().find(|stream| self.log.first_end(*stream) <= seconds);
        let Some(stream) = gone.filter(|_| self.limits.reclaim == Reclaim::Compact) else {
            return Ok(false);
        };
        self.log.seal(stream)?;
        self.none_ended_at = u32::MAX;
        Ok(true)
    }

    /// A segment in which something ended by `seconds`; looked for once a second if there is none.
    pub(crate) fn first_expired(&mut self, seconds: u32) -> Option<u32> {
        if seconds == self.none_ended_at {
            return None;
        }
        let stands = |s: &Segment| matches!(s.state, SegmentState::Sealed | SegmentState::Damaged);
        let ended = |s: &Segment| stands(s) && s.next_end <= seconds;
        let found = self.log.segments.iter().position(ended);
        if let Some(segment) = found {
            self.log.segments[segment].try_again();
        }
        if found.is_none() {
            self.none_ended_at = seconds;
        }
        found.map(|segment| segment as u32)
    }

    #[inline]
    pub(crate) fn count(&mut self, space: SpaceId, partition: u16, change: i64) {
        match self.counts.get_mut(&(space, partition)) {
            Some(count) => *count += change,
            None => drop(self.counts.insert((space, partition), change)),
        }
    }

    /// Entries of `space`.
    pub(crate) fn entries(&self, space: SpaceId) -> u64 {
        let counts = self.counts.iter().filter(|((s, _), _)| *s == space).map(|(_, n)| n);
        counts.sum::<i64>().max(0) as u64
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
        self.counts.retain(|(space, partition), _| {
            *space != floor.space || floor.partition.is_some_and(|p| p != *partition)
        });
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

    /// Whether a record of a kind that the index holds has ended.
    pub(crate) fn has_ended(record: &Record<'_>, now: Timestamp) -> bool {
        let end = record.header.ends_ms();
        end != 0 && end <= now.0
    }
}

/// Whether what ends at `ends_seconds` (0: never) is over by what the clock says.
fn is_past(ends_seconds: u32, now: Timestamp) -> bool {
    ends_seconds != 0 && u64::from(ends_seconds) * 1000 <= now.0
}

/// The seconds that are over `now`, as ends are counted.
pub(crate) fn seconds_of(now: Timestamp) -> u32 {
    (now.0 / 1000).min(u64::from(u32::MAX - 1)) as u32
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
