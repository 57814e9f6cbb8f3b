//! The checkpoint of a clean stop: each shard's tables and index as they are, in segments of its
//! own.
//!
//! A stream of bytes, cut into segments: tables first (little-endian, counted), then the words of
//! the index. Every segment carries its length and checksum; the superblock lists them and is
//! written
//! last. The next open loads the checkpoint, then rewrites the superblock without it.
//!
//! If there are not enough free segments, there is no checkpoint: the next open reads footers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use entresol_device::{Completion, IoBuffer, Queue, QueueOptions};
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{SEQUENCE_END, copy_words, u16_at, u32_at, u64_at};
use crate::index::{Bounds, Index, Layout, Place, Prefix, SizeCode, Spilled};
use crate::large::Pieces;
use crate::log::Shape;
use crate::notes::Note;
use crate::segment::{Segment, SegmentState};
use crate::shard::Shard;
use crate::store::Inner;
use crate::types::{SpaceId, Timestamp};

const MAGIC: u32 = 0x434b_5054;
/// Magic, CRC-32C of the payload, store, shard, number, payload length.
const HEADER_BYTES: usize = 64;
/// More entries than any device holds.
const COUNT_END: u64 = 1 << 48;

/// Syncs everything, writes the checkpoint and refuses further writes. Who closes once more is told
/// how it ended.
pub(crate) fn close(inner: &Inner, now: Timestamp) -> Result<()> {
    let again = inner.closed.swap(true, Ordering::AcqRel);
    if inner.options.mode == crate::options::OpenMode::ReadOnly {
        return Ok(());
    }
    let mut shards = idle_shards(inner, now);
    if again {
        return shards.first().map_or(Ok(()), |shard| shard.log.check_poisoned());
    }
    let saved = save_all(inner, &mut shards);
    if let Err(error) = &saved {
        let why = format!("the store could not be closed: {error}");
        shards.iter_mut().take(1).for_each(|shard| shard.log.poison(why.clone()));
    }
    saved
}

/// All shards, locked, with no reclaim under way: its victim is neither in use nor free.
fn idle_shards(inner: &Inner, now: Timestamp) -> Vec<MutexGuard<'_, Shard>> {
    loop {
        for number in 0..inner.shards.len() {
            // What fails here leaves the victim as it was, and what it was is saved.
            let _kept = inner.end_under_way(number, now);
        }
        // None begins any more; those under way need the shards.
        inner.reclaims.iter().for_each(|reclaim| drop(reclaim.write()));
        let shards: Vec<_> = inner.shards.iter().map(Mutex::lock).collect();
        if shards.iter().all(|shard| shard.reclaiming == 0) {
            return shards;
        }
    }
}

fn save_all(inner: &Inner, shards: &mut [MutexGuard<'_, Shard>]) -> Result<()> {
    let mut lists = Vec::new();
    for shard in shards.iter_mut() {
        shard.log.seal_all()?;
        shard.log.commit_all()?;
        shard.log.refuse_appends();
        if let Some(list) = save(shard)? {
            lists.push(list);
        }
    }
    let mut superblock = inner.superblock.lock();
    superblock.checkpoint = if lists.len() == shards.len() { lists } else { Vec::new() };
    superblock.next_segment_sequence =
        shards.iter().map(|s| s.log.next_sequence()).max().unwrap_or(1);
    superblock.record_sequence = shards.iter().map(|s| s.sequence).max().unwrap_or(0);
    if superblock.encode().is_none() {
        // There is no room for it beside what was dropped.
        superblock.checkpoint = Vec::new();
    }
    // Who finds the file although it was to be removed sees that nothing stands in it.
    shards.iter_mut().for_each(|shard| shard.log.forget_buffers());
    superblock.opening = 0;
    inner.write_superblock(&mut superblock)?;
    inner.buffers.remove()
}

/// Writes one shard's checkpoint; the segments it took, or `None` if there was no room.
fn save(shard: &mut Shard) -> Result<Option<Vec<u32>>> {
    let layout = shard.index.settle();
    let tables = encode_tables(shard, &layout);
    let words = shard.index.words().len() * 8;
    let total = 8 + tables.len() + words;
    let payload_bytes = shard.log.shape.segment_bytes as usize - HEADER_BYTES;
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
    writer.put(&(tables.len() as u64).to_le_bytes())?;
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
        let segment_bytes = self.shard.log.shape.segment_bytes as usize;
        while !bytes.is_empty() {
            let (buffer, filled) =
                self.buffer.get_or_insert_with(|| (IoBuffer::aligned(segment_bytes), HEADER_BYTES));
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
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            self.put(&bytes)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let Some((mut buffer, filled)) = self.buffer.take() else { return Ok(()) };
        let shape = &self.shard.log.shape;
        let crc = crc32c::crc32c(&buffer[HEADER_BYTES..filled]);
        buffer[..4].copy_from_slice(&MAGIC.to_le_bytes());
        buffer[4..8].copy_from_slice(&crc.to_le_bytes());
        buffer[8..16].copy_from_slice(&shape.store.to_le_bytes());
        buffer[16..20].copy_from_slice(&u32::from(shape.shard).to_le_bytes());
        buffer[20..24].copy_from_slice(&(self.at as u32).to_le_bytes());
        buffer[24..28].copy_from_slice(&((filled - HEADER_BYTES) as u32).to_le_bytes());
        let segment = self.list.get(self.at).copied().unwrap_or_default();
        self.shard.log.device.write_at(shape.offset_of(segment), &buffer)?;
        self.at += 1;
        Ok(())
    }
}

/// Loads a shard from the checkpoint in `segments`, which become free again.
pub(crate) fn load(shard: &mut Shard, segments: &[u32]) -> Result<()> {
    let mut reader = Reader::new(shard, segments)?;
    let mut length = [0; 8];
    reader.take(&mut length)?;
    let length = u64::from_le_bytes(length);
    if segments.len() > shard.log.segments.len() {
        return Err(damaged("it names more segments than there are"));
    }
    let room = segments.len() as u64 * u64::from(shard.log.shape.segment_bytes);
    if length > room {
        return Err(damaged("its tables have an impossible length"));
    }
    let mut tables = vec![0; length as usize];
    reader.take(&mut tables)?;
    let mut input = Input { bytes: &tables, at: 0 };
    let (layout, spilled) =
        decode_tables(shard, &mut input).ok_or_else(|| damaged("its tables do not decode"))?;
    if layout.buckets.saturating_mul(64) > room {
        return Err(damaged("its index is larger than what holds it"));
    }
    if layout.address_bits != shard.index.address_bits() {
        return Err(damaged("its index is of a device of another size"));
    }
    crate::recovery::demand_slots(shard, layout.entries)?;
    let buckets_max = shard.index.buckets_max();
    let bounds = Bounds { buckets_max, addresses_end: shard.log.shape.addresses_end() };
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
        let shape = shard.log.shape;
        let buffer_bytes = shape.segment_bytes as usize;
        let depth = (AHEAD_BYTES / buffer_bytes).clamp(2, 32);
        Ok(Reader {
            shape,
            segments,
            queue: shard.log.device.queue(QueueOptions { depth, buffer_bytes })?,
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
                out[0] = u64::from_le_bytes(raw);
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
        let length = u32_at(&buffer, 24).unwrap_or_default() as usize;
        let payload = buffer.get(HEADER_BYTES..HEADER_BYTES + length);
        let whole = u32_at(&buffer, 0) == Some(MAGIC)
            && u64_at(&buffer, 8) == Some(self.shape.store)
            && u32_at(&buffer, 16) == Some(u32::from(self.shape.shard))
            && u32_at(&buffer, 20) == Some(self.at as u32)
            && payload.is_some_and(|p| u32_at(&buffer, 4) == Some(crc32c::crc32c(p)))
            && length > 0;
        if !whole {
            return Err(damaged(&format!("part {} in segment {segment} does not verify", self.at)));
        }
        self.at += 1;
        self.used = HEADER_BYTES;
        self.block = Some((buffer, HEADER_BYTES + length));
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

/// In the byte of a segment's stream: much of the segment is padding.
const PADDED: u8 = 1 << 7;

fn encode_tables(shard: &Shard, layout: &Layout) -> Vec<u8> {
    let mut out = Vec::new();
    let u64s = |out: &mut Vec<u8>, values: &[u64]| {
        values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
    };
    let lifespan = shard.lifespan.to_bits();
    u64s(&mut out, &[shard.sequence, lifespan, layout.buckets, layout.entries]);
    u64s(&mut out, &[u64::from(layout.address_bits), shard.log.segments.len() as u64]);
    for segment in &shard.log.segments {
        u64s(&mut out, &[segment.sequence, segment.age]);
        let bytes = [segment.live_bytes, segment.used_bytes, segment.tombstone_bytes];
        for value in bytes.into_iter().chain([segment.next_end]) {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.push(segment.stream | if segment.padded { PADDED } else { 0 });
        out.push(match segment.state {
            SegmentState::Sealed => 1,
            SegmentState::Damaged => 2,
            _ => 0,
        });
        out.extend_from_slice(&segment.notes.to_le_bytes());
    }
    u64s(&mut out, &[shard.counts.len() as u64]);
    for ((space, partition), count) in &shard.counts {
        out.extend_from_slice(&space.0.to_le_bytes());
        out.extend_from_slice(&partition.to_le_bytes());
        u64s(&mut out, &[*count as u64]);
    }
    u64s(&mut out, &[shard.notes.len() as u64]);
    for note in shard.notes.iter() {
        u64s(&mut out, &[note.address, note.by as u64, (note.by >> 64) as u64]);
        out.extend_from_slice(&note.owner.0.0.to_le_bytes());
        out.extend_from_slice(&note.owner.1.to_le_bytes());
        out.push(note.shared_bits);
        u64s(&mut out, &[note.size.bytes()]);
    }
    u64s(&mut out, &[shard.large.iter().count() as u64]);
    for (manifest, version, pieces) in shard.large.iter() {
        u64s(&mut out, &[manifest, version, pieces.stored_bytes, pieces.places.len() as u64]);
        for (address, bytes) in &pieces.places {
            u64s(&mut out, &[*address, u64::from(*bytes)]);
        }
    }
    let spilled: Vec<&Spilled> = shard.index.spilled_entries().collect();
    u64s(&mut out, &[spilled.len() as u64]);
    for entry in spilled {
        u64s(&mut out, &[entry.prefix.hash, u64::from(entry.prefix.known)]);
        u64s(&mut out, &[entry.place.address, entry.place.size.bytes()]);
    }
    u64s(&mut out, &[shard.log.lost_bytes, u64::from(shard.ended_until)]);
    out
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn u64(&mut self) -> Option<u64> {
        self.at += 8;
        u64_at(self.bytes, self.at - 8)
    }

    fn sequence(&mut self) -> Option<u64> {
        self.u64().filter(|sequence| *sequence < SEQUENCE_END)
    }

    /// An address, if it is of a segment of `shape`.
    fn address(&mut self, shape: &Shape) -> Option<u64> {
        self.u64().filter(|address| *address < shape.addresses_end())
    }

    fn u32(&mut self) -> Option<u32> {
        self.at += 4;
        u32_at(self.bytes, self.at - 4)
    }

    fn u16(&mut self) -> Option<u16> {
        self.at += 2;
        u16_at(self.bytes, self.at - 2)
    }

    fn u8(&mut self) -> Option<u8> {
        self.at += 1;
        self.bytes.get(self.at - 1).copied()
    }
}

fn decode_tables(shard: &mut Shard, input: &mut Input<'_>) -> Option<(Layout, Vec<Spilled>)> {
    shard.sequence = input.sequence()?;
    shard.lifespan = f64::from_bits(input.u64()?);
    let (buckets, entries) = (input.u64()?, input.u64()?);
    let layout = Layout { buckets, entries, address_bits: input.u64()? as u32 };
    // The store may have grown since.
    let rows = usize::try_from(input.u64()?).ok()?;
    if rows > shard.log.segments.len() {
        return None;
    }
    for number in 0..rows {
        let (sequence, age) = (input.sequence()?, input.u64()?);
        let (live_bytes, used_bytes) = (input.u32()?, input.u32()?);
        let tombstone_bytes = input.u32().filter(|bytes| *bytes <= live_bytes)?;
        let next_end = input.u32()?;
        let stream = input.u8()?;
        let state = match input.u8()? {
            // Reclaim tries again what it found damaged: what was may have gone since.
            1 | 2 => SegmentState::Sealed,
            _ => SegmentState::Free,
        };
        let notes = input.u32()?;
        if state == SegmentState::Free && live_bytes != 0 {
            return None;
        }
        let in_use = Segment {
            sequence,
            age,
            live_bytes,
            used_bytes,
            tombstone_bytes,
            next_end,
            notes,
            stream: stream & !PADDED,
            padded: stream & PADDED != 0,
            state,
            ..Segment::UNUSED
        };
        shard.log.live_bytes += u64::from(live_bytes);
        shard.log.tombstone_bytes += u64::from(tombstone_bytes);
        shard.log.segments[number] = in_use;
    }
    for _ in 0..input.u64()? {
        let key = (SpaceId(input.u16()?), input.u16()?);
        let count = input.u64()? as i64;
        // Below zero where a key was removed that hides one which another partition counts.
        shard.counts.insert(key, Some(count).filter(|count| count.unsigned_abs() < COUNT_END)?);
    }
    decode_notes_and_pieces(shard, input)?;
    let shape = shard.log.shape;
    let mut spilled = Vec::new();
    for _ in 0..input.u64()? {
        let prefix = Prefix { hash: input.u64()?, known: input.u64()? as u32 };
        let place =
            Place { address: input.address(&shape)?, size: SizeCode::covering(input.u64()?) };
        spilled.push(Spilled::new(prefix, place));
    }
    // The first checkpoints ended here.
    shard.log.lost_bytes = input.u64().unwrap_or(0).min(u64::from(shape.segment_bytes));
    // Later ones here; what these dropped as ended had ended by now if the clock did not go back.
    if let Some(seconds) = input.u64() {
        shard.ended_until = u32::try_from(seconds).ok()?;
    }
    Some((layout, spilled))
}

fn decode_notes_and_pieces(shard: &mut Shard, input: &mut Input<'_>) -> Option<()> {
    let shape = shard.log.shape;
    for _ in 0..input.u64()? {
        let (address, low, high) = (input.address(&shape)?, input.u64()?, input.u64()?);
        let owner = (SpaceId(input.u16()?), input.u16()?);
        let by = u128::from(low) | u128::from(high) << 64;
        let shared_bits = input.u8()?;
        let size = SizeCode::covering(input.u64()?);
        let note = Note { address, by, owner, size, shared_bits };
        shard.notes.add(shape.split(address).0, note);
    }
    for _ in 0..input.u64()? {
        let (manifest, version) = (input.address(&shape)?, input.sequence()?);
        let stored_bytes = input.u64()?;
        let mut places = Vec::new();
        for _ in 0..input.u64()? {
            // Lengths are kept rounded up, and may reach behind the segment.
            let address = input.address(&shape)?;
            let bytes = input.u64().filter(|bytes| *bytes <= u64::from(shape.segment_bytes))?;
            places.push((address, bytes as u32));
        }
        shard.large.insert(manifest, version, Pieces { stored_bytes, places });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use entresol_device::MemoryDevice;

    use super::*;
    use crate::{Durability, Store, StoreOptions};

    /// Turns that a thread gets to do what it must not.
    const TURNS: usize = 20_000;

    #[test]
    fn a_store_is_closed_only_after_the_reclaims_that_began_before() {
        let device = Arc::new(MemoryDevice::new(16 << 20).unwrap());
        let options = StoreOptions { durability: Durability::Memory, ..StoreOptions::default() };
        let options = StoreOptions { segment_bytes: 64 << 10, shards: 1, ..options };
        let store = Arc::new(Store::open(device, options, Timestamp(0)).unwrap());
        let under_way = store.inner.reclaims[0].read();
        store.inner.shards[0].lock().reclaiming += 1;
        let closed = Arc::clone(&store);
        let closes = thread::spawn(move || closed.close(Timestamp(0)));
        let waits = |closes: &thread::JoinHandle<_>| {
            (0..TURNS).all(|_| {
                thread::yield_now();
                !closes.is_finished()
            })
        };
        assert!(waits(&closes), "closed while a victim is read");
        drop(under_way);
        assert!(waits(&closes), "closed before the victim's fate is noted");
        store.inner.shards[0].lock().reclaiming -= 1;
        closes.join().unwrap().unwrap();
    }
}
