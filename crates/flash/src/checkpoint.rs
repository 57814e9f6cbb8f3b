//! The checkpoint of a clean stop: each shard's tables and index as they are, in segments of its
//! own.
//!
//! A stream of bytes, cut into segments: tables first (little-endian, counted), then the words of
//! the index. Every segment carries its length and checksum; the superblock lists them and is
//! written last. The next open loads the checkpoint, then rewrites the superblock without it.
//!
//! If there are not enough free segments, there is no checkpoint: the next open reads footers.

use std::collections::HashMap;

use entresol_device::{Completion, IoBuffer, Queue, QueueOptions};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    CountRow, Fields, JournalRow, LargeRow, NoteRow, PART_HEADER_BYTES, PartHeader, PieceRow,
    RowState, SegmentRow, ShardRow, SizeCode, SpillRow, copy_words, put_u64s, u64_at,
};
use crate::index::{Bounds, Index, Layout, Place, Prefix, Spilled};
use crate::large::Pieces;
use crate::log::{JournalSegment, JournalTable, Shape};
use crate::notes::Note;
use crate::segment::{Segment, SegmentState};
use crate::shard::Shard;
use crate::types::Owner;

/// Writes one shard's checkpoint; the segments it took, or `None` if there was no room.
pub(crate) fn save(shard: &mut Shard) -> Result<Option<Vec<u32>>> {
    let layout = shard.index.settle();
    let tables = encode_tables(shard, &layout);
    let words = shard.index.words().len() * 8;
    let mut length = Vec::new();
    put_u64s(&mut length, &[tables.len() as u64]);
    let total = length.len() + tables.len() + words;
    let payload_bytes = shard.log.shape().segment_bytes as usize - PART_HEADER_BYTES;
    let needed = total.div_ceil(payload_bytes);
    if needed as u32 > shard.log.free_count() {
        return Ok(None);
    }
    let mut list = Vec::with_capacity(needed);
    for _ in 0..needed {
        match shard.log.take_for_checkpoint() {
            Some(segment) => list.push(segment),
            None => return Ok(None),
        }
    }
    let mut writer = Writer { shard, list: &list, at: 0, buffer: None };
    writer.put(&length)?;
    writer.put(&tables)?;
    writer.put_words()?;
    writer.finish()?;
    Ok(Some(list))
}

struct Writer<'a> {
    shard: &'a Shard,
    list: &'a [u32],
    at: usize,
    buffer: Option<(IoBuffer, usize)>,
}

impl Writer<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        let segment_bytes = self.shard.log.shape().segment_bytes as usize;
        while !bytes.is_empty() {
            let (buffer, filled) = self
                .buffer
                .get_or_insert_with(|| (IoBuffer::aligned(segment_bytes), PART_HEADER_BYTES));
            let room = (segment_bytes - *filled).min(bytes.len());
            buffer[*filled..*filled + room].copy_from_slice(&bytes[..room]);
            *filled += room;
            bytes = &bytes[room..];
            if *filled == segment_bytes {
                self.finish()?;
            }
        }
        Ok(())
    }

    fn put_words(&mut self) -> Result<()> {
        let mut bytes = Vec::with_capacity(64 << 10);
        for words in self.shard.index.words().chunks(8 << 10) {
            bytes.clear();
            put_u64s(&mut bytes, words);
            self.put(&bytes)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let Some((mut buffer, filled)) = self.buffer.take() else { return Ok(()) };
        let shape = &self.shard.log.shape();
        PartHeader { store: shape.store, shard: shape.shard, number: self.at as u32 }
            .seal(&mut buffer, filled);
        let segment = self.list.get(self.at).copied().unwrap_or_default();
        self.shard.log.device().write_at(shape.offset_of(segment), &buffer)?;
        self.at += 1;
        Ok(())
    }
}

/// Loads a shard from the checkpoint in `segments`, which become free again.
pub(crate) fn load(shard: &mut Shard, segments: &[u32]) -> Result<()> {
    let mut reader = Reader::new(shard, segments)?;
    let mut length = [0; 8];
    reader.take(&mut length)?;
    let length = u64_at(&length, 0).unwrap_or_default();
    if segments.len() > shard.log.segments().len() {
        return Err(damaged("it names more segments than there are"));
    }
    let room = segments.len() as u64 * u64::from(shard.log.shape().segment_bytes);
    if length > room {
        return Err(damaged("its tables have an impossible length"));
    }
    let mut tables = vec![0; length as usize];
    reader.take(&mut tables)?;
    let mut fields = Fields::new(&tables);
    let (layout, spilled) =
        decode_tables(shard, &mut fields).ok_or_else(|| damaged("its tables do not decode"))?;
    if layout.buckets.saturating_mul(64) > room {
        return Err(damaged("its index is larger than what holds it"));
    }
    if layout.address_bits != shard.index.address_bits() {
        return Err(damaged("its index is of a device of another size"));
    }
    shard.demand_slots(layout.entries)?;
    let buckets_max = shard.index.buckets_max();
    let bounds = Bounds { buckets_max, addresses_end: shard.log.shape().addresses_end() };
    let fill = &mut |words: &mut [u64]| reader.take_words(words);
    shard.index = Index::restore(layout, bounds, &spilled, fill)?;
    Ok(())
}

/// Bytes of a checkpoint that are asked for ahead, at least two segments.
const AHEAD_BYTES: usize = 4 << 20;

/// The stream of a checkpoint, read ahead. Parts arrive in any order and are taken in theirs.
struct Reader<'a> {
    shape: Shape,
    segments: &'a [u32],
    queue: Box<dyn Queue>,
    completions: Vec<Completion>,
    /// Parts asked for.
    asked: usize,
    /// Parts that are there, not yet taken.
    ready: HashMap<usize, IoBuffer>,
    /// Parts taken.
    at: usize,
    /// The part in use, where its payload ends, and how far it is used.
    block: Option<(IoBuffer, usize)>,
    used: usize,
}

impl Reader<'_> {
    fn new<'a>(shard: &Shard, segments: &'a [u32]) -> Result<Reader<'a>> {
        let shape = shard.log.shape();
        let buffer_bytes = shape.segment_bytes as usize;
        let depth = (AHEAD_BYTES / buffer_bytes).clamp(2, 32);
        Ok(Reader {
            shape,
            segments,
            queue: shard.log.device().queue(QueueOptions { depth, buffer_bytes })?,
            completions: Vec::new(),
            asked: 0,
            ready: HashMap::new(),
            at: 0,
            block: None,
            used: 0,
        })
    }

    fn take(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let rest = self.rest()?;
            let length = rest.len().min(out.len());
            let (head, behind) = out.split_at_mut(length);
            head.copy_from_slice(&rest[..length]);
            self.used += length;
            out = behind;
        }
        Ok(())
    }

    /// As `take`, for little-endian words.
    fn take_words(&mut self, mut out: &mut [u64]) -> Result<()> {
        while !out.is_empty() {
            let rest = self.rest()?;
            let count = (rest.len() / 8).min(out.len());
            if count == 0 {
                // A word that two segments share.
                let mut raw = [0; 8];
                self.take(&mut raw)?;
                copy_words(&raw, &mut out[..1]);
                out = &mut out[1..];
                continue;
            }
            let (head, behind) = out.split_at_mut(count);
            copy_words(&rest[..count * 8], head);
            self.used += count * 8;
            out = behind;
        }
        Ok(())
    }

    /// What is left of the part in use, or the next part; never empty.
    fn rest(&mut self) -> Result<&[u8]> {
        if self.block.as_ref().is_none_or(|(_, filled)| self.used == *filled) {
            self.next()?;
        }
        let (buffer, filled) = self.block.as_ref().expect("`next` leaves a part or an error");
        Ok(&buffer[self.used..*filled])
    }

    fn next(&mut self) -> Result<()> {
        self.block = None;
        let segment = *self.segments.get(self.at).ok_or_else(|| damaged("it ends early"))?;
        let buffer = self.part()?;
        let wanted =
            PartHeader { store: self.shape.store, shard: self.shape.shard, number: self.at as u32 };
        let Some(end) = wanted.payload_end(&buffer) else {
            return Err(damaged(&format!("part {} in segment {segment} does not verify", self.at)));
        };
        self.at += 1;
        self.used = PART_HEADER_BYTES;
        self.block = Some((buffer, end));
        Ok(())
    }

    /// The bytes of part `at`, once they are there; more parts are asked for meanwhile.
    fn part(&mut self) -> Result<IoBuffer> {
        loop {
            while self.asked < self.segments.len() && self.asked - self.at < self.queue.depth() {
                let segment = self.segments[self.asked];
                if segment >= self.shape.segments {
                    return Err(damaged("it names a segment that is not there"));
                }
                let offset = self.shape.offset_of(segment);
                let bytes = self.shape.segment_bytes as usize;
                self.queue.read(self.asked as u64, offset, bytes)?;
                self.asked += 1;
            }
            self.queue.submit()?;
            if let Some(buffer) = self.ready.remove(&self.at) {
                return Ok(buffer);
            }
            self.queue.reap(1, &mut self.completions)?;
            for completion in self.completions.drain(..) {
                completion.result?;
                if let Some(buffer) = completion.buffer {
                    self.ready.insert(completion.token as usize, buffer);
                }
            }
        }
    }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the checkpoint is damaged: {what}"))
}

fn encode_tables(shard: &Shard, layout: &Layout) -> Vec<u8> {
    let mut out = Vec::new();
    let row = ShardRow {
        sequence: shard.sequence(),
        lifespan: shard.lifespan(),
        buckets: layout.buckets,
        entries: layout.entries,
        address_bits: layout.address_bits,
        segments: shard.log.segments().len() as u64,
    };
    row.encode(&mut out);
    shard.log.segments().iter().for_each(|segment| row_of(segment).encode(&mut out));
    put_u64s(&mut out, &[shard.counts().iter().len() as u64]);
    for (Owner { space, partition }, entries) in shard.counts().iter() {
        CountRow { space, partition, entries }.encode(&mut out);
    }
    put_u64s(&mut out, &[shard.notes.len() as u64]);
    for note in shard.notes.iter() {
        let Owner { space, partition } = note.owner;
        let record_bytes = note.size.bytes();
        let Note { address, by, shared_bits, .. } = *note;
        NoteRow { address, by, space, partition, shared_bits, record_bytes }.encode(&mut out);
    }
    put_u64s(&mut out, &[shard.large.iter().count() as u64]);
    for (manifest, sequence, Pieces { stored_bytes, places }) in shard.large.iter() {
        let pieces = places.len() as u64;
        LargeRow { manifest, sequence, stored_bytes: *stored_bytes, pieces }.encode(&mut out);
        for &(address, bytes) in places {
            PieceRow { address, record_bytes: u64::from(bytes) }.encode(&mut out);
        }
    }
    let spilled: Vec<&Spilled> = shard.index.spilled_entries().collect();
    put_u64s(&mut out, &[spilled.len() as u64]);
    for Spilled { prefix, place, .. } in spilled {
        let (hash, known) = (prefix.hash, u64::from(prefix.known));
        let (address, record_bytes) = (place.address, place.size.bytes());
        SpillRow { hash, known, address, record_bytes }.encode(&mut out);
    }
    put_u64s(&mut out, &[shard.log.lost_bytes(), u64::from(shard.ended_until())]);
    if let Some(journal) = shard.log.journal().table() {
        let JournalTable { segments, next_ordinal, watermark } = journal;
        put_u64s(&mut out, &[watermark, next_ordinal, segments.len() as u64]);
        for JournalSegment { segment, ordinal, cut_short } in segments {
            JournalRow { segment: u64::from(segment), ordinal, cut_short }.encode(&mut out);
        }
    }
    out
}

fn row_of(segment: &Segment) -> SegmentRow {
    SegmentRow {
        sequence: segment.sequence,
        age: segment.age,
        live_bytes: segment.live_bytes,
        used_bytes: segment.used_bytes,
        tombstone_bytes: segment.tombstone_bytes,
        next_end: segment.next_end,
        stream: segment.stream,
        padded: segment.padded,
        state: match segment.state {
            SegmentState::Journal => RowState::Journal,
            SegmentState::Sealed => RowState::Sealed,
            SegmentState::Damaged => RowState::Damaged,
            _ => RowState::Free,
        },
        notes: segment.notes,
    }
}

fn segment_of(row: &SegmentRow) -> Segment {
    Segment {
        sequence: row.sequence,
        age: row.age,
        live_bytes: row.live_bytes,
        used_bytes: row.used_bytes,
        tombstone_bytes: row.tombstone_bytes,
        next_end: row.next_end,
        notes: row.notes,
        stream: row.stream,
        padded: row.padded,
        state: match row.state {
            // Reclaim tries again what it found damaged: what was may have gone since.
            RowState::Sealed | RowState::Damaged => SegmentState::Sealed,
            RowState::Journal => SegmentState::Journal,
            RowState::Free => SegmentState::Free,
        },
        ..Segment::UNUSED
    }
}

fn decode_tables(shard: &mut Shard, fields: &mut Fields<'_>) -> Option<(Layout, Vec<Spilled>)> {
    let row = ShardRow::decode(fields)?;
    shard.resume(row.sequence, row.lifespan);
    let ShardRow { buckets, entries, address_bits, .. } = row;
    let layout = Layout { buckets, entries, address_bits };
    // The store may have grown since.
    let rows = usize::try_from(row.segments).ok()?;
    if rows > shard.log.segments().len() {
        return None;
    }
    for number in 0..rows as u32 {
        shard.log.restore(number, segment_of(&SegmentRow::decode(fields)?));
    }
    for _ in 0..fields.u64()? {
        let CountRow { space, partition, entries } = CountRow::decode(fields)?;
        shard.counts_mut().set(Owner { space, partition }, entries);
    }
    decode_notes_and_pieces(shard, fields)?;
    let shape = shard.log.shape();
    let mut spilled = Vec::new();
    for _ in 0..fields.u64()? {
        let row = SpillRow::decode(fields)?;
        let prefix = Prefix { hash: row.hash, known: row.known as u32 };
        let address = address_in(&shape, row.address)?;
        spilled.push(Spilled::new(
            prefix,
            Place { address, size: SizeCode::covering(row.record_bytes) },
        ));
    }
    // The first checkpoints ended here.
    let lost_bytes = fields.u64().unwrap_or(0).min(u64::from(shape.segment_bytes));
    shard.log.restore_lost_bytes(lost_bytes);
    // Later ones here; what these dropped as ended had ended by now if the clock did not go back.
    if let Some(seconds) = fields.u64() {
        shard.know_ended(u32::try_from(seconds).ok()?);
    }
    decode_journal(shard, fields)?;
    Some((layout, spilled))
}

fn decode_notes_and_pieces(shard: &mut Shard, fields: &mut Fields<'_>) -> Option<()> {
    let shape = shard.log.shape();
    for _ in 0..fields.u64()? {
        let NoteRow { address, by, space, partition, shared_bits, record_bytes } =
            NoteRow::decode(fields)?;
        let size = SizeCode::covering(record_bytes);
        let owner = Owner { space, partition };
        let note = Note { address: address_in(&shape, address)?, by, owner, size, shared_bits };
        shard.notes.add(shape.split(address).0, note);
    }
    for _ in 0..fields.u64()? {
        let LargeRow { manifest, sequence, stored_bytes, pieces } = LargeRow::decode(fields)?;
        let mut places = Vec::new();
        for _ in 0..pieces {
            let PieceRow { address, record_bytes } = PieceRow::decode(fields)?;
            if record_bytes > u64::from(shape.segment_bytes) {
                return None;
            }
            places.push((address_in(&shape, address)?, record_bytes as u32));
        }
        let manifest = address_in(&shape, manifest)?;
        shard.large.insert(manifest, sequence, Pieces { stored_bytes, places });
    }
    Some(())
}

/// The journal, if there was one: all of its segments, and no others, are in the table as such.
fn decode_journal(shard: &mut Shard, fields: &mut Fields<'_>) -> Option<()> {
    let of_journal = |row: &&Segment| row.state == SegmentState::Journal;
    let held = shard.log.segments().iter().filter(of_journal).count() as u64;
    let Some(watermark) = fields.u64() else { return (held == 0).then_some(()) };
    let next_ordinal = fields.u64()?;
    let count = fields.u64().filter(|count| *count == held)?;
    let mut segments = Vec::new();
    for _ in 0..count {
        let JournalRow { segment, ordinal, cut_short } = JournalRow::decode(fields)?;
        let segment = u32::try_from(segment).ok()?;
        let row = shard.log.segments().get(segment as usize);
        row.filter(|row| row.state == SegmentState::Journal)?;
        segments.push(JournalSegment { segment, ordinal, cut_short });
    }
    let ordered = segments.is_sorted_by(|a, b| a.ordinal < b.ordinal)
        && segments.last().is_none_or(|last| last.ordinal < next_ordinal);
    if !ordered {
        return None;
    }
    shard.log.restore_journal(JournalTable { segments, next_ordinal, watermark });
    Some(())
}

/// The address, if it is of a segment of `shape`.
fn address_in(shape: &Shape, address: u64) -> Option<u64> {
    (address < shape.addresses_end()).then_some(address)
}
