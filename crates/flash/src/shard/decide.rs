//! What becomes of each record of a victim: left behind, copied, or replaced by a tombstone.

use std::cell::OnceCell;

use entresol_planted::planted;

use super::write::NewRecord;
use super::{Ending, Shard};
use crate::format::{Flags, FooterEntry, PIECE_SPACE, PieceName, RecordHeader, RecordKind};
use crate::index::Place;
use crate::log::{Append, Attempt, Log};
use crate::notes::index_hash;
use crate::policy::{Keep, Live, OfDamaged};
use crate::record::Wanted;
use crate::segment::{Segment, Stream};
use crate::types::{Lifespan, Timestamp};

/// Bytes that were read and that a cache copies, for each byte that goes: where all of a cache is
/// read, reclaim would otherwise copy all of it before a new entry found room.
const COPIED_PER_FREED: u64 = 3;
/// How far ahead of what goes copying may be: half of the shard. What is read lies together.
const COPIED_AHEAD_PARTS: u64 = 2;

/// A segment whose records are decided, while the shard is locked.
pub(super) struct Judged<'a> {
    number: u32,
    segment: &'a Segment,
    oldest_dead: OnceCell<Option<u64>>,
}

impl<'a> Judged<'a> {
    pub(super) fn new(number: u32, segment: &'a Segment) -> Judged<'a> {
        Judged { number, segment, oldest_dead: OnceCell::new() }
    }

    /// The oldest other segment with records that are no longer live.
    fn oldest_dead(&self, log: &Log) -> Option<u64> {
        *self.oldest_dead.get_or_init(|| log.oldest_dead(Some(self.number)))
    }
}

/// What becomes of a record of a victim.
enum Fate {
    Dead,
    Copy,
    /// An expired record that may have an older one behind it; whether the index has it yet.
    Entomb {
        live: bool,
    },
}

impl Shard {
    /// Decides one record of a victim; false if it is live and damaged.
    pub(super) fn reclaim_record(
        &mut self,
        victim: &Judged<'_>,
        entry: &FooterEntry,
        record: &[u8],
        now: Timestamp,
    ) -> Attempt<bool> {
        self.settle(victim.number, entry);
        let place = self.place_of(victim.number, entry);
        let fate = match entry.flags.kind {
            RecordKind::Value | RecordKind::Manifest => self.entry_fate(victim, entry, place, now),
            RecordKind::Tombstone => self.tombstone_fate(victim, record),
            RecordKind::Piece => {
                let live = self.large.holds(PieceName::of_hash(entry.hash), place.address);
                if live { Fate::Copy } else { Fate::Dead }
            }
            RecordKind::Padding | RecordKind::Journal => Fate::Dead,
        };
        match fate {
            Fate::Dead => Ok(true),
            Fate::Copy => self.copy_forward(victim.segment, entry, place, record),
            Fate::Entomb { live } => {
                // The tombstone first: what could not be appended is tried again, and a manifest
                // that the index no longer has is not buried.
                let entombed = self.entomb(entry, record)?;
                if live {
                    self.expire_at(entry, place);
                }
                Ok(entombed)
            }
        }
    }

    fn entry_fate(
        &mut self,
        victim: &Judged<'_>,
        entry: &FooterEntry,
        place: Place,
        now: Timestamp,
    ) -> Fate {
        let live = self.index.contains(index_hash(entry.hash), place.address);
        if victim.segment.sequence < self.floor_of(entry.owner()) {
            self.let_go(entry.hash, place);
            return Fate::Dead;
        }
        if self.is_over_at(entry.hash, Ending { place, seconds: entry.ends_seconds }, now) {
            // Else superseded, or buried already; or a piece of it was lost, and it hides nothing.
            let hides = live || entry.flags.kind != RecordKind::Manifest;
            if hides && entry.flags.follows && victim.oldest_dead(&self.log).is_some() {
                return Fate::Entomb { live };
            }
            if live {
                self.expire_at(entry, place);
            }
            return Fate::Dead;
        }
        if live {
            let of = Live { pinned: entry.flags.pinned, stream: victim.segment.stream };
            if self.limits.policy.of_live(of) == Keep::Always || self.spares(entry, place) {
                return Fate::Copy;
            }
            self.evict(entry.hash, place, entry.owner());
        }
        let freed = u64::from(entry.aligned_bytes()) * COPIED_PER_FREED;
        self.copied_ahead = self.copied_ahead.saturating_sub(freed);
        Fate::Dead
    }

    fn expire_at(&mut self, entry: &FooterEntry, place: Place) {
        let ending = Ending { place, seconds: entry.ends_seconds };
        self.expire(entry.hash, ending, entry.owner());
    }

    /// Whether a cache keeps a live record that it may evict: it was read, and not too much else
    /// was.
    fn spares(&mut self, entry: &FooterEntry, place: Place) -> bool {
        let shape = &self.log.shape();
        let shard_bytes = u64::from(shape.segments) * u64::from(shape.segment_bytes);
        let ahead = self.copied_ahead + u64::from(entry.aligned_bytes());
        let read = self.index.take_referenced(index_hash(entry.hash), place.address);
        let spares = read && ahead <= shard_bytes / COPIED_AHEAD_PARTS;
        if spares {
            self.copied_ahead = ahead;
        }
        spares
    }

    fn tombstone_fate(&self, victim: &Judged<'_>, record: &[u8]) -> Fate {
        // Of a damaged one nobody knows when it was born.
        let birth = RecordHeader::decode(record).map_or(u64::MAX, |header| header.version);
        let needed = victim.oldest_dead(&self.log).is_some_and(|oldest| oldest < birth);
        if needed && !planted!("tombstone-dropped-early") { Fate::Copy } else { Fate::Dead }
    }

    fn copy_forward(
        &mut self,
        segment: &Segment,
        entry: &FooterEntry,
        place: Place,
        record: &[u8],
    ) -> Attempt<bool> {
        let Some(header) = whole_header(entry, record) else {
            if self.limits.policy.of_damaged() == OfDamaged::Goes {
                self.evict(entry.hash, place, entry.owner());
            }
            return Ok(false);
        };
        let age = self.sequence.saturating_sub(segment.age) as f64;
        let young = match header.lifespan {
            Lifespan::Learned => segment.stream == Stream::Hot as u8 || age < self.lifespan * 4.0,
            hint => hint == Lifespan::Short && !planted!("copies-forget-their-lifespan"),
        };
        let stream = self.limits.policy.stream_of_copy(young);
        self.open_above_floor(stream, entry.owner())?;
        let payload = (&record[header.header_bytes()..], &[][..]);
        let append = Append { stream, header, payload, hash: entry.hash, age: segment.age };
        let address = self.log.append(append)?;
        let copy = Place { address, size: place.size };
        self.counters.moved_bytes += u64::from(entry.aligned_bytes());
        match entry.flags.kind {
            RecordKind::Piece => {
                self.large.move_piece(PieceName::of_hash(entry.hash), address);
            }
            RecordKind::Value | RecordKind::Manifest => {
                self.index.replace(index_hash(entry.hash), place.address, copy);
                self.large.move_manifest(place.address, address);
            }
            RecordKind::Tombstone => self.log.move_tombstone(place.address, place.size),
            RecordKind::Padding | RecordKind::Journal => {}
        }
        self.log.change_live(place.address, -(place.size.bytes() as i64));
        Ok(true)
    }

    /// Leaves a tombstone in place of an expired record.
    fn entomb(&mut self, entry: &FooterEntry, record: &[u8]) -> Attempt<bool> {
        let Some(header) = whole_header(entry, record) else { return Ok(false) };
        let payload = self.payloads.clone();
        let mut scratch = Vec::new();
        let wanted = Wanted::any(u64::from(header.generation));
        let Ok(found) = payload.open(self.log.shape().shard, record, wanted, &mut scratch) else {
            return Ok(false);
        };
        let tombstone = RecordHeader {
            version: self.log.next_sequence(),
            expiry_ms: 0,
            idle_seconds: 0,
            raw_bytes: 0,
            flags: Flags::of(RecordKind::Tombstone),
            lifespan: Lifespan::Learned,
            ..header
        };
        self.append_record(NewRecord {
            header: tombstone,
            key: found.key,
            value: &[],
            hash: entry.hash,
            stream: Stream::ReclaimedYoung,
            age: self.sequence,
        })?;
        Ok(true)
    }

    /// Settles the note on a record, if there is one.
    pub(crate) fn settle(&mut self, segment: u32, entry: &FooterEntry) {
        if self.notes.len() == 0 || entry.space == PIECE_SPACE {
            return;
        }
        let place = self.place_of(segment, entry);
        let Some(note) = self.notes.take(entry.hash, segment, place.address) else { return };
        self.log.settle_note(segment);
        self.counters.notes_settled += 1;
        if note.by == entry.hash {
            return;
        }
        self.counters.collisions_put += 1;
        self.count_owner(&note);
        if self.floor_of(entry.owner()) <= self.segment_sequence(place.address) {
            self.index.insert(index_hash(entry.hash), place);
            self.log.change_live(place.address, place.size.bytes() as i64);
        }
    }
}

/// The header of `record` if all of it verifies.
fn whole_header(entry: &FooterEntry, record: &[u8]) -> Option<RecordHeader> {
    let header = RecordHeader::decode(record)?;
    let payload = record.get(header.header_bytes()..header.record_bytes())?;
    let whole = header.sequence == entry.sequence
        && header.record_bytes() == entry.record_bytes as usize
        && crc32c::crc32c(payload) == header.payload_crc;
    whole.then_some(header)
}
