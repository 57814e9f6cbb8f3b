//! Puts, removes and touches on a shard: what is appended, and what the index then says.

use entresol_planted::planted;

use super::{Ending, Location, Mark, Pace, Shard, seconds_of};
use crate::error::{Error, Result};
use crate::format::{
    Codec, Flags, MANIFEST_BYTES, Manifest, PieceName, RecordHeader, RecordKind, SizeCode,
};
use crate::index::Place;
use crate::large::Pieces;
use crate::log::{Append, Attempt, Refusal, Stamp};
use crate::notes::{Note, index_hash};
use crate::record::{HashedKey, Wanted};
use crate::segment::Stream;
use crate::types::{Key, Lifespan, Owner, Pinning, PutOptions, Timestamp, Version};

/// A put, ready to be decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PutRequest<'a> {
    pub key: Key<'a>,
    pub hash: u128,
    /// As the caller gave it.
    pub value: &'a [u8],
    pub options: PutOptions,
    pub now: Timestamp,
    /// Of an entry whose time of last use alone is renewed; others get a new one.
    pub version: Option<Version>,
    pub mark: Mark,
}

/// What is known of the key's present entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Known<'a> {
    /// Nothing was read: fine for puts without a condition.
    Nothing,
    /// It is the one there.
    At(Location),
    /// There is none: all that matched (these) are of other keys.
    Absent(&'a [Location]),
}

/// How far a put came.
#[derive(Debug)]
pub(crate) enum PutStep {
    Stored(Written),
    /// It cannot be decided without reading: resolve the key first.
    Resolve,
    /// What was known is no longer so: resolve the key again.
    Changed,
    /// The device has still to give back a buffer.
    NeedsBuffer,
    /// Reclaim has to make room first.
    NeedsRoom,
    /// There is no place for the entry, as the error says.
    Full(Error),
}

/// A write that was appended: durable once the log's `durable()` reaches `stamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub version: Version,
    pub stamp: Stamp,
}

/// What the removal of an entry came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The entry is no longer there: resolve the key again.
    Changed,
    /// The device has still to answer: try again once it may have.
    Awaits,
    /// It is removed, for good once the log's `durable()` reaches `stamp`.
    Removed { stamp: Stamp },
}

/// What the removal of a key without an entry came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The key has an entry by now: resolve it again.
    Changed,
    /// The device has still to answer: try again once it may have.
    Awaits,
    /// Nothing of it can come back.
    Final,
    /// Nothing can once the tombstone that was left for it is durable.
    Entombed { stamp: Stamp },
}

/// A record to append; lengths and checksums of the header are filled in.
pub(crate) struct NewRecord<'a> {
    pub header: RecordHeader,
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub hash: u128,
    pub stream: Stream,
    /// When the record was first put, as a record sequence.
    pub age: u64,
}

/// How the value of a put is to be appended.
#[derive(Debug, Clone, Copy)]
struct NewValue {
    sequence: u64,
    version: Version,
    stream: Stream,
    /// Bytes that go with what it replaces.
    replaced_bytes: u64,
    /// An older record of the key may be on the medium.
    follows: bool,
}

/// What the key's slot was found to be.
enum Slot {
    /// No slot matches, or all that do are of other keys.
    New,
    /// This slot is the key's.
    Own(Place),
    /// One slot matches; whose it is would take a read.
    Presumed(Place),
}

impl Shard {
    /// Puts an entry, given what is `known` of the present one.
    pub(crate) fn put(
        &mut self,
        request: PutRequest<'_>,
        known: Known<'_>,
        pace: Pace,
    ) -> Result<PutStep> {
        match self.try_put(request, known, pace) {
            Ok(step) => Ok(step),
            Err(Refusal::NeedsBuffer) => Ok(PutStep::NeedsBuffer),
            Err(Refusal::NeedsRoom) => Ok(PutStep::NeedsRoom),
            Err(Refusal::Full(error)) => Ok(PutStep::Full(error)),
            Err(Refusal::Failed(error)) => Err(error),
        }
    }

    fn try_put(
        &mut self,
        request: PutRequest<'_>,
        known: Known<'_>,
        pace: Pace,
    ) -> Attempt<PutStep> {
        self.log.check_poisoned()?;
        self.log.demand_buffers(request.value.len())?;
        let slot = match self.slot_for(&request, known) {
            Ok(slot) => slot,
            Err(step) => return Ok(step),
        };
        if planted!("index-before-append")
            && let Slot::Own(old) | Slot::Presumed(old) = &slot
        {
            self.index.remove(index_hash(request.hash), old.address);
        }
        self.check_room(&request, matches!(slot, Slot::New), pace)?;
        let replaced_bytes = match &slot {
            Slot::New => 0,
            Slot::Own(old) | Slot::Presumed(old) => self.held_bytes(*old),
        };
        self.sequence += 1;
        let sequence = self.sequence;
        let version = request.version.unwrap_or(Version(sequence));
        let (stream, follows) = match &slot {
            Slot::New => (Stream::Cold, !self.floors.is_empty()),
            Slot::Own(place) | Slot::Presumed(place) => (self.stream_over(*place), true),
        };
        let stream = match request.options.lifespan {
            Lifespan::Learned => stream,
            Lifespan::Short => Stream::Hot,
            Lifespan::Long => Stream::Cold,
        };
        let hash = index_hash(request.hash);
        if planted!("index-before-append")
            && let Slot::Own(old) | Slot::Presumed(old) = slot
        {
            let stream =
                self.limits.policy.stream_of(stream, request.options.pinning == Pinning::Pinned);
            let place = Place { address: self.log.next_address(stream), size: old.size };
            self.index.replace(hash, old.address, place);
        }
        let new = NewValue { sequence, version, stream, replaced_bytes, follows };
        let place = self.append_value(&request, new)?;
        match slot {
            Slot::New => {
                self.index.insert(hash, place);
                self.counts.add(request.key.owner(), 1);
            }
            Slot::Own(old) => {
                self.index.replace(hash, old.address, place);
                self.forget(old);
                self.counters.overwrites += 1;
            }
            Slot::Presumed(old) => {
                let shared = self.index.known_bits(hash, old.address).unwrap_or(0);
                self.index.replace(hash, old.address, place);
                let key = HashedKey { key: request.key, hash: request.hash };
                self.note(key, old, shared as u8);
                self.counters.overwrites += 1;
            }
        }
        self.counters.count_put(request.key.bytes.len(), request.value.len());
        Ok(PutStep::Stored(Written { version, stamp: self.log.appended() }))
    }

    /// Removes the entry at `location`, which was found to be the key's.
    pub(crate) fn remove(
        &mut self,
        HashedKey { key, hash }: HashedKey<'_>,
        location: Location,
    ) -> Attempt<Removal> {
        self.log.check_poisoned()?;
        if !self.is_entry(key, hash, location) {
            return Ok(Removal::Changed);
        }
        let place = location.place;
        self.append_tombstone(key, hash)?;
        self.index.remove(index_hash(hash), place.address);
        self.forget(place);
        self.counts.add(key.owner(), -1);
        self.counters.removes += 1;
        Ok(Removal::Removed { stamp: self.log.appended() })
    }

    /// Drops a large value whose time is over and leaves a tombstone. No effect if the index holds
    /// another place for it by now.
    pub(crate) fn bury(
        &mut self,
        HashedKey { key, hash }: HashedKey<'_>,
        location: Location,
        ends_seconds: u32,
    ) -> Attempt<()> {
        self.log.check_poisoned()?;
        if !self.is_entry(key, hash, location) {
            return Ok(());
        }
        self.append_tombstone(key, hash)?;
        let ending = Ending { place: location.place, seconds: ends_seconds };
        self.expire(hash, ending, key.owner());
        Ok(())
    }

    /// Leaves a tombstone for a key that was found to have no entry (all that matched, those that
    /// were `tried`, are of other keys or over), where one may be on the medium yet that has not
    /// ended: a cache may have evicted it, or it was dropped as ended before the clock went back.
    /// It must not come back after the key was removed.
    pub(crate) fn remove_absent(
        &mut self,
        HashedKey { key, hash }: HashedKey<'_>,
        tried: &[Location],
        now: Timestamp,
    ) -> Attempt<Absence> {
        self.log.check_poisoned()?;
        if !self.is_absent(key, hash, tried) {
            return Ok(Absence::Changed);
        }
        let evicted =
            self.limits.policy.lets_go() && self.reclaiming + self.log.releasing_count() > 0;
        let wanted = self.header(Flags::of(RecordKind::Tombstone), 0, key);
        let returns = evicted || self.dropped_later(seconds_of(now));
        // What no segment has room for was never put.
        if !returns || !self.fits_segment(&wanted, MANIFEST_BYTES) {
            return Ok(Absence::Final);
        }
        self.append_tombstone(key, hash)?;
        Ok(Absence::Entombed { stamp: self.log.appended() })
    }

    pub(super) fn append_tombstone(&mut self, key: Key<'_>, hash: u128) -> Attempt<()> {
        self.sequence += 1;
        let header = RecordHeader {
            version: self.log.next_sequence(),
            ..self.header(Flags::of(RecordKind::Tombstone), self.sequence, key)
        };
        let age = self.sequence;
        let (key, value, stream) = (key.bytes, &[][..], Stream::Hot);
        self.append_record(NewRecord { header, key, value, hash, stream, age })?;
        Ok(())
    }

    /// Appends one record; returns its place.
    pub(crate) fn append_record(&mut self, record: NewRecord<'_>) -> Attempt<Place> {
        let NewRecord { mut header, key, value, hash, stream, age } = record;
        let stream = self.limits.policy.stream_of(stream, header.flags.pinned);
        self.open_above_floor(stream, header.owner())?;
        header.key_bytes = key.len() as u32;
        let mut scratch = std::mem::take(&mut self.scratch);
        let payload = if self.payloads.encrypts() {
            scratch.clear();
            scratch.extend_from_slice(key);
            scratch.extend_from_slice(value);
            header.flags.encrypted = true;
            self.payloads.encrypt(self.log.shape().shard, &header, &mut scratch)?;
            scratch.split_at(key.len())
        } else {
            (key, value)
        };
        header.value_bytes = payload.1.len() as u32;
        header.payload_crc = self.checksum(stream, payload.0, payload.1);
        let size = SizeCode::covering(header.record_bytes() as u64);
        let address = self.log.append(Append { stream, header, payload, hash, age });
        self.scratch = scratch;
        let place = Place { address: address?, size };
        if self.limits.policy.keeps_apart(stream) {
            let (segment, _) = self.log.shape().split(place.address);
            let sequence = self.log.segment(segment).sequence;
            self.pinned.add(segment, sequence, header.owner(), size);
        }
        Ok(place)
    }

    /// Seals the open segment of `stream` if it is below the floor of the record's partition, which
    /// was dropped meanwhile: the record would count as dropped with it.
    pub(crate) fn open_above_floor(&mut self, stream: Stream, owner: Owner) -> Result<()> {
        if let Some(sequence) = self.log.open_sequence(stream)
            && self.floor_of(owner) > sequence
            && !planted!("dropped-while-open")
        {
            self.log.seal(stream)?;
        }
        Ok(())
    }

    /// The checksum of a payload. While it is computed, what the record will be copied over is
    /// loaded, a part at a time: all at once is more than a processor has in flight.
    fn checksum(&self, stream: Stream, key: &[u8], value: &[u8]) -> u32 {
        let (ahead, rest) = value.split_at(value.len().min(PREFETCH_BYTES_MAX));
        let mut start = 0;
        let mut crc = crc32c::crc32c(key);
        for part in ahead.chunks(CHECKSUM_BYTES) {
            self.log.prefetch(stream, start, CHECKSUM_BYTES.min(ahead.len() - start + 64));
            start += CHECKSUM_BYTES;
            crc = crc32c::crc32c_append(crc, part);
        }
        crc32c::crc32c_append(crc, rest)
    }

    /// Decides which slot the put is about, or why it cannot be.
    fn slot_for(
        &mut self,
        request: &PutRequest<'_>,
        known: Known<'_>,
    ) -> std::result::Result<Slot, PutStep> {
        match known {
            Known::At(location) if self.is_entry(request.key, request.hash, location) => {
                Ok(Slot::Own(location.place))
            }
            Known::At(_) => Err(PutStep::Changed),
            Known::Absent(tried) if self.is_absent(request.key, request.hash, tried) => {
                Ok(Slot::New)
            }
            Known::Absent(_) => Err(PutStep::Changed),
            Known::Nothing => self.slot_unread(request),
        }
    }

    /// Whether the record at `location`, which was found to be the key's, is its entry yet: it may
    /// have been moved or replaced meanwhile, or dropped with its space or partition.
    fn is_entry(&self, key: Key<'_>, hash: u128, location: Location) -> bool {
        let address = location.place.address;
        let dropped = self.is_dropped(key, address) && !planted!("dropped-in-flight");
        self.holds(hash, location) && !dropped
    }

    /// Whether all that matches the key is among what was `tried`, or of other keys.
    fn is_absent(&mut self, key: Key<'_>, hash: u128, tried: &[Location]) -> bool {
        let mut found = std::mem::take(&mut self.found);
        self.index.candidates(index_hash(hash), &mut found);
        let all_other = found.iter().all(|place| {
            self.is_tried(tried, place.address)
                || self.is_dropped(key, place.address)
                || self.is_other_in_memory(key, place)
        });
        self.found = found;
        let passed = |address| self.is_tried(tried, address) || self.is_dropped(key, address);
        all_other && self.notes.hidden(hash).all(|note| passed(note.address))
    }

    /// Whether the record at `place` is in memory and of another key.
    fn is_other_in_memory(&mut self, key: Key<'_>, place: Place) -> bool {
        let wanted = Wanted::of(self.segment_sequence(place.address), key);
        let bytes = self.log.in_memory(place.address);
        bytes.is_some_and(|bytes| {
            !self.payloads.is_of(self.log.shape().shard, bytes, wanted, &mut self.scratch)
        })
    }

    fn slot_unread(&mut self, request: &PutRequest<'_>) -> std::result::Result<Slot, PutStep> {
        self.index.candidates(index_hash(request.hash), &mut self.found);
        let mut only = None;
        for at in 0..self.found.len() {
            let Some(place) = self.found.get(at) else { break };
            if self.is_dropped(request.key, place.address) {
                continue;
            }
            if let Some(bytes) = self.log.in_memory(place.address) {
                let wanted = Wanted::of(self.segment_sequence(place.address), request.key);
                if self.payloads.is_of(self.log.shape().shard, bytes, wanted, &mut self.scratch) {
                    return Ok(Slot::Own(place));
                }
            } else if only.replace(place).is_some() {
                return Err(PutStep::Resolve);
            }
        }
        if self.notes.hidden(request.hash).next().is_some() {
            return Err(PutStep::Resolve);
        }
        match only {
            None => Ok(Slot::New),
            Some(place) if self.large.is_manifest(place.address) => Err(PutStep::Resolve),
            Some(place) => Ok(Slot::Presumed(place)),
        }
    }

    /// The key was put or removed at `old`, which may be another one's.
    pub(super) fn note(&mut self, by: HashedKey<'_>, old: Place, shared_bits: u8) {
        self.log.change_live(old.address, -(old.size.bytes() as i64));
        let (segment, _) = self.log.shape().split(old.address);
        self.log.add_note(segment);
        let (owner, by) = (by.key.owner(), by.hash);
        let (address, size) = (old.address, old.size);
        self.notes.add(segment, Note { address, by, owner, size, shared_bits });
    }

    /// The stream for a put over the record at `old`: hot if that one did not live long.
    fn stream_over(&self, old: Place) -> Stream {
        let (segment, _) = self.log.shape().split(old.address);
        let old = self.log.segment(segment);
        let age = if old.age == 0 { 0 } else { self.sequence.saturating_sub(old.age) };
        if (age as f64) < self.lifespan { Stream::Hot } else { Stream::Cold }
    }

    pub(super) fn header(&self, flags: Flags, sequence: u64, key: Key<'_>) -> RecordHeader {
        RecordHeader {
            payload_crc: 0,
            sequence,
            version: sequence,
            generation: 0,
            value_bytes: 0,
            raw_bytes: 0,
            expiry_ms: 0,
            idle_seconds: 0,
            touched_seconds: 0,
            space: key.space,
            partition: key.partition,
            key_bytes: key.bytes.len() as u32,
            flags,
            label: 0,
            lifespan: Lifespan::Learned,
        }
    }

    /// Appends the value, in pieces if it is large, where some bytes go with what it
    /// replaces.
    fn append_value(&mut self, request: &PutRequest<'_>, new: NewValue) -> Attempt<Place> {
        let NewValue { sequence, version, stream, replaced_bytes, follows } = new;
        let mut packed = std::mem::take(&mut self.pieces_scratch);
        let (codec, stored) = self.payloads.compress(request.value, &mut packed);
        let expiry = request.options.expiry;
        let mut header = RecordHeader {
            version: version.0,
            raw_bytes: request.value.len() as u32,
            expiry_ms: expiry.at.map_or(0, |at| at.0.max(1)),
            idle_seconds: expiry.idle_seconds.map_or(0, std::num::NonZeroU32::get),
            touched_seconds: (request.now.0 / 1000) as u32,
            label: request.options.label,
            lifespan: request.options.lifespan,
            flags: Flags {
                pinned: request.options.pinning == Pinning::Pinned,
                codec,
                follows,
                ..Flags::of(RecordKind::Value)
            },
            ..self.header(Flags::of(RecordKind::Value), sequence, request.key)
        };
        let ends_seconds = header.ends_seconds();
        header.flags.follows |= ends_seconds != 0 && self.dropped_later(ends_seconds);
        let whole =
            header.key_bytes as usize + stored.len() + crate::format::RECORD_HEADER_BYTES_MAX;
        let piece_bytes = piece_bytes(self.log.shape().segment_bytes);
        let place = if whole <= piece_bytes {
            let wanted = self.counted_bytes(&header, stored.len());
            let (key, hash) = (request.key.bytes, request.hash);
            let record = NewRecord { header, key, value: stored, hash, stream, age: sequence };
            self.check_full(wanted, replaced_bytes, request.mark)
                .and_then(|()| self.append_record(record))
        } else {
            let wanted = self.counted_in_pieces(&header, stored.len(), piece_bytes);
            let manifest = RecordHeader { version: 0, ..manifest_header(header) };
            let fits = self.check_key_fits(&manifest).map_err(Refusal::from);
            fits.and_then(|()| self.check_full(wanted, replaced_bytes, request.mark))
                .and_then(|()| self.append_pieces(header, request, stored, piece_bytes))
        };
        self.pieces_scratch = packed;
        if self.pieces_scratch.capacity() > 1 << 20 {
            self.pieces_scratch = Vec::new();
        }
        place
    }

    fn append_pieces(
        &mut self,
        header: RecordHeader,
        request: &PutRequest<'_>,
        stored: &[u8],
        piece_bytes: usize,
    ) -> Attempt<Place> {
        self.log.append_at_once();
        // Pieces are known by the sequence of their manifest: renewing the time of last use keeps
        // the version, but not them.
        let owner = self.sequence + stored.len().div_ceil(piece_bytes) as u64 + 1;
        let mut places = Vec::with_capacity(stored.len() / piece_bytes + 1);
        for (number, piece) in stored.chunks(piece_bytes).enumerate() {
            self.sequence += 1;
            let name = PieceName { value: owner, number: number as u32 };
            let key = name.key_bytes();
            let piece_header = self.piece_header(name, &key, piece.len());
            let appended = self.append_record(NewRecord {
                header: piece_header,
                key: &key,
                value: piece,
                hash: name.hash(),
                stream: Stream::Cold,
                age: self.sequence,
            });
            let place = appended.inspect_err(|_| self.give_up_pieces(&places))?;
            places.push((place.address, place.size.bytes() as u32));
        }
        let manifest = Manifest {
            stored_bytes: stored.len() as u64,
            raw_bytes: request.value.len() as u32,
            codec: header.flags.codec,
            pieces: places.len() as u32,
        };
        let manifest = manifest.encode();
        let mut header = manifest_header(header);
        // The pieces carry later sequences than the version; the manifest must be the latest.
        self.sequence += 1;
        debug_assert_eq!(self.sequence, owner, "each piece takes one sequence");
        header.sequence = owner;
        let appended = self.append_record(NewRecord {
            header,
            key: request.key.bytes,
            value: &manifest,
            hash: request.hash,
            stream: Stream::Cold,
            age: self.sequence,
        });
        let place = appended.inspect_err(|_| self.give_up_pieces(&places))?;
        let pieces = Pieces { stored_bytes: stored.len() as u64, places };
        self.large.insert(place.address, owner, pieces);
        Ok(place)
    }

    /// Pieces whose manifest could not be appended are dead.
    fn give_up_pieces(&mut self, places: &[(u64, u32)]) {
        for (address, bytes) in places {
            let size = SizeCode::covering(u64::from(*bytes));
            self.log.change_live(*address, -(size.bytes() as i64));
        }
    }

    pub(super) fn piece_header(
        &self,
        name: PieceName,
        key: &[u8],
        piece_bytes: usize,
    ) -> RecordHeader {
        let key = PieceName::key(key);
        RecordHeader {
            version: name.value,
            raw_bytes: piece_bytes as u32,
            ..self.header(Flags::of(RecordKind::Piece), self.sequence, key)
        }
    }
}

/// The header of a value's manifest, from that of the value.
pub(super) fn manifest_header(value: RecordHeader) -> RecordHeader {
    RecordHeader {
        flags: Flags { kind: RecordKind::Manifest, codec: Codec::Plain, ..value.flags },
        raw_bytes: MANIFEST_BYTES as u32,
        ..value
    }
}

/// Longest stretch of a buffer that is loaded ahead.
const PREFETCH_BYTES_MAX: usize = 4096;
/// Part of a checksum: the algorithm is at its best with multiples of it.
const CHECKSUM_BYTES: usize = 768;

/// Longest record that is not cut into pieces, and most value bytes of a piece: four fit a segment.
pub(crate) fn piece_bytes(segment_bytes: u32) -> usize {
    segment_bytes as usize / 4 - 256
}
