//! Whether there is room for a write: what it counts for, the full mark, and the slow one.

use entresol_planted::planted;

use super::Shard;
use super::write::{PutRequest, manifest_header};
use crate::error::{Error, ErrorKind, Result};
use crate::format::SizeCode;
use crate::format::{
    FOOTER_ENTRY_BYTES, MANIFEST_BYTES, PieceName, RECORD_ALIGNMENT, RecordHeader,
    SEGMENT_HEADER_BYTES, TRAILER_BYTES,
};
use crate::index::{Index, Place};
use crate::log::{Attempt, Refusal};
use crate::policy::WhenFull;
use crate::types::Pinning;

/// Segments' worth of dead or empty bytes that new ends leave at most, and at least; and how many
/// records more than that least.
const SEGMENTS_LEFT_MAX: u64 = 3;
const SEGMENTS_LEFT_MIN: u64 = 1;
const RECORDS_LEFT: u64 = 16;
/// What may take the reserve is smaller than this part of a segment.
const PART_OF_RESERVE: usize = 8;

/// The part of its slots that maintenance keeps free for the new keys of a cache.
const SLOTS_KEPT_PART: u64 = 64;

/// The mark from which a write that makes its entry larger is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// That of puts.
    Full,
    /// That of new ends, later: they are what makes room.
    Touch,
}

/// Whether a writer pays from the slow mark on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It leaves twice the reserve free.
    Marked,
    /// There is nothing that reclaim could gain: it leaves the reserve free.
    Unmarked,
}

impl Shard {
    /// Bytes that the record of `header` counts for with `value_bytes` of a stored value.
    pub(super) fn counted_bytes(&self, header: &RecordHeader, value_bytes: usize) -> u64 {
        let value_bytes = (value_bytes + self.payloads.tag_bytes()) as u32;
        let header = RecordHeader { value_bytes, ..*header };
        SizeCode::covering(header.record_bytes() as u64).bytes()
    }

    /// Whether a record of `header` with `value_bytes` of a value fits a segment of its own.
    pub(super) fn fits_segment(&self, header: &RecordHeader, value_bytes: usize) -> bool {
        let value_bytes = (value_bytes + self.payloads.tag_bytes()) as u32;
        let header = RecordHeader { value_bytes, ..*header };
        let frame = SEGMENT_HEADER_BYTES.next_multiple_of(RECORD_ALIGNMENT)
            + FOOTER_ENTRY_BYTES
            + TRAILER_BYTES;
        let record_bytes = header.record_bytes().next_multiple_of(RECORD_ALIGNMENT);
        record_bytes + frame <= self.log.shape().segment_bytes as usize
    }

    /// Refuses a key whose manifest no segment has room for.
    pub(super) fn check_key_fits(&self, manifest: &RecordHeader) -> Result<()> {
        if self.fits_segment(manifest, MANIFEST_BYTES) {
            return Ok(());
        }
        let detail = format!(
            "a key of {} bytes, which segments of {} bytes have no room for; use a shorter key, or \
             make the store with larger segments",
            manifest.key_bytes,
            self.log.shape().segment_bytes
        );
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    /// Bytes that a value counts for with its manifest, `header`, and its pieces.
    pub(super) fn counted_in_pieces(
        &self,
        header: &RecordHeader,
        stored_bytes: usize,
        piece_bytes: usize,
    ) -> u64 {
        let name = PieceName { value: 0, number: 0 };
        let key = name.key_bytes();
        let piece = |bytes| self.counted_bytes(&self.piece_header(name, &key, bytes), bytes);
        let (whole, rest) = (stored_bytes / piece_bytes, stored_bytes % piece_bytes);
        let last = if rest == 0 { 0 } else { piece(rest) };
        self.counted_bytes(&manifest_header(*header), MANIFEST_BYTES)
            + whole as u64 * piece(piece_bytes)
            + last
    }

    /// Bytes that the entry at `place` counts for, its pieces included.
    pub(super) fn held_bytes(&self, place: Place) -> u64 {
        let pieces = self.large.at(place.address).into_iter().flat_map(|pieces| &pieces.places);
        let size = |&(_, bytes): &(u64, u32)| SizeCode::covering(u64::from(bytes)).bytes();
        place.size.bytes() + pieces.map(size).sum::<u64>()
    }

    /// Refuses an entry of `wanted` bytes that a full store has no place for. One no larger than
    /// the `replaced` bytes that go with what it replaces always has.
    pub(super) fn check_full(&self, wanted: u64, replaced: u64, mark: Mark) -> Attempt<()> {
        // Tombstones go by reclaim; what is full of entries stays so.
        let entries = self.occupied().saturating_sub(self.log.tombstone_bytes());
        let line = if replaced == 0 { FOOTER_ENTRY_BYTES as u64 } else { 0 };
        let after = (entries + wanted + line).saturating_sub(replaced);
        let mark = match mark {
            Mark::Full => self.full_mark(),
            Mark::Touch => self.touch_mark(),
        };
        if wanted <= replaced
            || after <= mark
            || self.limits.policy.when_full() != WhenFull::Refuses
        {
            return Ok(());
        }
        let shape = &self.log.shape();
        let detail = format!(
            "shard {} is full: {} of {} bytes are live, and {mark} may be, {} percent of what \
             reclaim leaves; remove entries or give the store more capacity",
            shape.shard,
            self.log.live_bytes(),
            u64::from(shape.segments) * u64::from(shape.segment_bytes),
            (mark as f64 / self.log.room() as f64 * 100.0).round()
        );
        Err(Refusal::Full(Error::new(ErrorKind::Full, detail)))
    }

    fn full_mark(&self) -> u64 {
        self.log.room() / 100 * u64::from(self.limits.full_mark_percent)
    }

    /// A third of what the full mark leaves is for new ends. Of the rest, reclaim needs a segment,
    /// and where few records fit one a few, or it would gain nothing.
    fn touch_mark(&self) -> u64 {
        let full = self.full_mark();
        let left = self.log.room().saturating_sub(full);
        let segment_bytes = u64::from(self.log.shape().segment_bytes);
        // What filled segments had no record for tells of large records among many small ones.
        let mean = self.log.live_bytes() / self.index.len().max(1);
        let record_bytes = mean.max(2 * self.log.lost_bytes());
        let kept = SEGMENTS_LEFT_MIN * segment_bytes + RECORDS_LEFT * record_bytes;
        let kept = kept.min(SEGMENTS_LEFT_MAX * segment_bytes);
        full + (left / 3).min(left.saturating_sub(kept))
    }

    /// Bytes of segments that live records take with their lines in the footers.
    fn occupied(&self) -> u64 {
        self.log.live_bytes() + self.index.len() * FOOTER_ENTRY_BYTES as u64
    }

    /// Refuses what does not fit.
    pub(super) fn check_room(
        &mut self,
        request: &PutRequest<'_>,
        new: bool,
        pace: Pace,
    ) -> Attempt<()> {
        if new && !self.has_slot() {
            return Err(match self.limits.policy.when_full() {
                WhenFull::Refuses => Refusal::Full(self.index_full()),
                // What goes leaves its slot.
                WhenFull::MakesRoom => Refusal::NeedsRoom,
            });
        }
        let key_bytes = request.key.bytes.len();
        if !new && self.may_take_reserve(request) {
            return Ok(());
        }
        let decided = self.check_bytes((key_bytes + request.value.len()) as u64, new, pace);
        let Err(refusal) = decided else { return Ok(()) };
        let segments = request.value.len() / self.log.shape().segment_bytes as usize;
        if matches!(refusal, Refusal::NeedsRoom) && segments == 0 {
            return Err(refusal);
        }
        // What counts is what will be stored; compressing costs time, so it is tried last.
        let mut packed = std::mem::take(&mut self.pieces_scratch);
        let (_, stored) = self.payloads.compress(request.value, &mut packed);
        let stored_bytes = stored.len();
        self.pieces_scratch = packed;
        if stored_bytes == request.value.len() {
            return Err(refusal);
        }
        self.check_bytes((key_bytes + stored_bytes) as u64, new, pace)
    }

    /// Whether the index has room for a new key. That it was full once does not count: its table
    /// keeps its size, but slots come back.
    pub(crate) fn has_slot(&mut self) -> bool {
        let table_bytes = self.index.bytes() + self.index.bytes() / 16;
        if planted!("index-full-for-ever") && table_bytes + (1 << 16) > self.limits.index_bytes_max
        {
            return false;
        }
        self.index.takes_one()
    }

    /// Whether a cache is about to run out of slots: so few are left that maintenance evicts.
    pub(crate) fn is_short_of_slots(&self) -> bool {
        let most = self.index.entries_max();
        self.limits.policy.when_full() == WhenFull::MakesRoom
            && self.index.len() > most - most / SLOTS_KEPT_PART
    }

    /// What is told of an index without room.
    pub(crate) fn index_full(&self) -> Error {
        let detail = format!(
            "the index of shard {} holds {} entries in {} bytes, its share of the memory cap; \
             remove entries or raise the cap",
            self.log.shape().shard,
            self.index.len(),
            self.index.bytes()
        );
        Error::new(ErrorKind::Full, detail)
    }

    /// Whether reclaim has to make room before the put of an entry that is there.
    pub(crate) fn lacks_room(&mut self, request: &PutRequest<'_>, pace: Pace) -> bool {
        matches!(self.check_room(request, false, pace), Err(Refusal::NeedsRoom))
    }

    /// Segments that a write of `wanted` bytes leaves free.
    pub(crate) fn kept_free(&self, wanted: u64, pace: Pace) -> u32 {
        let slow_mark = self.log.room() / 100 * u64::from(self.limits.slow_mark_percent);
        let refuses = self.limits.policy.when_full() == WhenFull::Refuses;
        let slow = refuses && pace == Pace::Marked && self.occupied() + wanted > slow_mark;
        if slow { 2 * self.log.reserve() } else { self.log.reserve() }
    }

    /// Whether a put over an entry needs no more than a removal of it does: what a cache's owner
    /// pins and replaces is what it must know before it can give up anything else.
    fn may_take_reserve(&self, request: &PutRequest<'_>) -> bool {
        self.limits.policy.lets_go()
            && request.options.pinning == Pinning::Pinned
            && request.value.len() < self.log.shape().segment_bytes as usize / PART_OF_RESERVE
    }

    /// How many free segments a put of a key and its stored value, `wanted` bytes, needs more than.
    pub(crate) fn wanted_free(&self, wanted: u64, pace: Pace) -> u32 {
        let segments = wanted / u64::from(self.log.shape().segment_bytes) * 5 / 4;
        self.kept_free(wanted, pace) + segments as u32
    }

    /// The same for the `wanted` bytes of a key and its stored value.
    fn check_bytes(&self, wanted: u64, new: bool, pace: Pace) -> Attempt<()> {
        if new {
            // Before reclaim works for what is refused in the end.
            self.check_full(wanted, 0, Mark::Full)?;
        }
        match self.log.free_count() <= self.wanted_free(wanted, pace) {
            true => Err(Refusal::NeedsRoom),
            false => Ok(()),
        }
    }

    /// Refuses to open a shard of so many `entries` with an index that has no room for them: one
    /// that grew all the same would pass the memory cap for good.
    pub(crate) fn demand_slots(&self, entries: u64) -> Result<()> {
        let most = self.index.entries_max();
        // A few more than puts may fill come back where removals were lost, or hidden ones were
        // found.
        if entries <= most.saturating_add(most / 64) {
            return Ok(());
        }
        let shards = u64::from(self.log.shape().shards);
        let needed = Index::bytes_for(entries.saturating_add(entries / 32)).saturating_mul(shards);
        let found = self.limits.index_bytes_max.saturating_mul(shards);
        let detail = format!(
            "an index of {found} bytes at most; shard {} of {shards} holds {entries} entries, and \
             for all shards {needed} are needed; open the store with a larger memory cap",
            self.log.shape().shard
        );
        Err(Error::too_small(detail, needed))
    }
}
