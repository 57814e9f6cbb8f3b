//! Reclaim: making segments free. Live records are copied forward (store) or let go (cache).
//!
//! The victim is read whole without the lock; its records are then decided a few at a time under
//! it. A record is live if the index says so: no scan of the index, no read but of the victim.
//!
//! Invariants:
//! 1. The index is changed to a copy only after the copy is appended, and only if it still points
//!    to the original.
//! 2. A victim is released after its last record was decided, and free only once all copies are
//!    durable (`Log::release`).
//! 3. A tombstone is dropped only if no older segment holds records that are no longer live.
//! 4. A live record that does not verify, or cannot be read, is not copied: its segment stays as it
//!    is.

mod fate;

use fate::Victim;

use entresol_device::IoBuffer;

use crate::error::Result;
use crate::format::{FooterEntry, SegmentHeader, Trailer, decode_footer};
use crate::index::{Place, SizeCode};
use crate::log::{Goal, Patience, Progress};
use crate::segment::{Segment, SegmentState, Stream, choose_pinned, choose_victim};
use crate::shard::Shard;
use crate::store::{Budget, Inner, Maintenance};
use crate::types::{Key, Timestamp};
use crate::unreadable::read_around;

/// Segments looked at for one victim.
const VICTIM_WINDOW: usize = 1 << 15;
/// Live eighths of a victim beyond which it is worth finding out which tombstones hide nothing.
const CHEAP_EIGHTHS: u32 = 6;
/// Records decided under one hold of the lock.
const BATCH: usize = 32;
/// Released segments that are worth a sync.
const RELEASE_BATCH: u32 = 4;
/// Bytes read first from a segment's end: most footers fit.
const FOOTER_READ_BYTES: usize = 32 << 10;

/// `next_end` of a segment where all that will end has ended: its records may need tombstones yet,
/// so
/// it is not as one where nothing ends. Beyond every real end.
const ENDED: u32 = u32::MAX - 1;

impl Inner {
    /// Background work within `budget`.
    pub(crate) fn maintain(&self, now: Timestamp, budget: Budget) -> Result<Maintenance> {
        let mut done = Maintenance::default();
        if self.check_open().is_err() {
            return Ok(done);
        }
        self.sync_periodically(now)?;
        let mut ended = Ok(());
        for number in 0..self.shards.len() {
            // One shard's failure is no reason to let the others run out of room.
            ended = ended.and(self.maintain_within(number, now, budget, &mut done));
        }
        ended.map(|()| done)
    }

    fn maintain_within(
        &self,
        number: usize,
        now: Timestamp,
        budget: Budget,
        done: &mut Maintenance,
    ) -> Result<()> {
        for _ in 0..budget.segments {
            if !self.maintain_shard(number, now, done)? {
                return self.settle_idle(number, now);
            }
        }
        Ok(())
    }

    /// Settles the notes on one segment if nothing was appended since the last call, so that
    /// `count` becomes exact in time; no more than one, for the sake of reads.
    fn settle_idle(&self, number: usize, now: Timestamp) -> Result<()> {
        let mut shard = self.shards[number].lock();
        let appended = shard.log.appended();
        let idle = std::mem::replace(&mut shard.maintained_at, appended) == appended;
        if !idle || shard.notes.len() == 0 {
            return Ok(());
        }
        let noted = most_noted(&shard.log.segments);
        drop(shard);
        noted.map_or(Ok(()), |segment| self.sweep(number, segment, now))
    }

    /// One piece of work on one shard; false if there was none.
    fn maintain_shard(
        &self,
        number: usize,
        now: Timestamp,
        done: &mut Maintenance,
    ) -> Result<bool> {
        let mut shard = self.shards[number].lock();
        shard.log.poll(0)?;
        let settle = shard.notes.len() as u64 > notes_budget(&shard);
        let expired = shard.first_expired((now.0 / 1000) as u32);
        let noted = if settle { most_noted(&shard.log.segments) } else { None };
        let log = &mut shard.log;
        let (free, releasing) = (log.free_count(), log.releasing_count());
        let low = free + releasing < log.free_target();
        if free < log.free_target() && !low {
            log.begin_release()?;
            done.awaits_device = true;
        }
        drop(shard);
        if low {
            let progress = self.reclaim_one(number, now, Patience::Returns)?;
            done.segments_freed += u32::from(progress == Progress::Made);
            done.more |= progress == Progress::Made;
            done.awaits_device |= progress == Progress::Awaited;
            if progress == Progress::Made {
                return Ok(true);
            }
        }
        if let Some(segment) = noted.or(expired) {
            self.sweep(number, segment, now)?;
            done.more = true;
            return Ok(true);
        }
        Ok(false)
    }

    fn sync_periodically(&self, now: Timestamp) -> Result<()> {
        let Some(period) = self.period_ms() else { return Ok(()) };
        let last = self.last_sync_ms.load(std::sync::atomic::Ordering::Relaxed);
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.log.poll(0)?;
            if now.0 >= last + period || now.0 < last {
                shard.log.begin_round(Goal::Synced)?;
            }
        }
        if now.0 >= last + period || now.0 < last {
            self.last_sync_ms.store(now.0, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    /// Frees one segment of a shard, or sees to it that released ones become free.
    pub(crate) fn reclaim_one(
        &self,
        number: usize,
        now: Timestamp,
        patience: Patience,
    ) -> Result<Progress> {
        let mut shard = self.shards[number].lock();
        // Under the lock: a store that closes waits for the reclaims that began before.
        self.check_open()?;
        shard.log.poll(0)?;
        let scarce = shard.log.free_count() <= shard.log.reserve() / 2;
        if shard.log.releasing_count() >= RELEASE_BATCH
            || (scarce && shard.log.releasing_count() > 0)
        {
            if scarce || shard.log.releasing_count() >= 2 * RELEASE_BATCH {
                return shard.log.release_more(patience);
            }
            shard.log.begin_release()?;
        }
        let Some(victim) = self.begin_reclaim(&mut shard)? else {
            if shard.log.releasing_count() > 0 {
                return shard.log.release_more(patience);
            }
            let others = shard.reclaiming > 0;
            drop(shard);
            return Ok(match (others, patience) {
                (false, _) => Progress::None,
                (true, Patience::Returns) => Progress::Awaited,
                (true, Patience::Waits) => {
                    // Another thread has the last victim: what it frees is for whoever asks first.
                    drop(self.reclaims[number].write());
                    Progress::Made
                }
            });
        };
        let segment = shard.log.segments[victim as usize];
        if segment.live_bytes == 0 && segment.notes == 0 && segment.next_end == u32::MAX {
            shard.counters.segments_reclaimed += 1;
            shard.reclaiming -= 1;
            shard.log.release(victim);
            return Ok(Progress::Made);
        }
        // Before the shard's lock goes: who sees this reclaim must find that it is on.
        let held = self.reclaims[number].try_read();
        drop(shard);
        let ended = self.reclaim_segment(number, victim, segment, now);
        let mut shard = self.shards[number].lock();
        shard.reclaiming -= 1;
        drop(held);
        match ended {
            // A cache lets go of what it cannot read; what it evicted with it must not come back.
            Ok(kept) if kept || self.evicts() => {
                shard.counters.segments_reclaimed += 1;
                if segment.stream == Stream::Hot as u8 {
                    learn_lifespan(&mut shard, &segment);
                }
                shard.log.release(victim);
                Ok(Progress::Made)
            }
            Ok(_) => {
                shard.log.segments[victim as usize].state = SegmentState::Damaged;
                Ok(Progress::Made)
            }
            Err(error) => {
                shard.log.segments[victim as usize].state = SegmentState::Sealed;
                Err(error)
            }
        }
    }

    fn begin_reclaim(&self, shard: &mut Shard) -> Result<Option<u32>> {
        let victim = if self.evicts() {
            match choose_pinned(&shard.log.segments) {
                Some(pinned) => Some(pinned),
                None => shard.log.oldest_sealed()?,
            }
        } else {
            let start = shard.victim_cursor;
            let window = (start, VICTIM_WINDOW);
            let bytes = shard.log.shape.segment_bytes;
            shard.victim_cursor = (start + VICTIM_WINDOW) % shard.log.segments.len().max(1);
            let cheap = choose_victim(&shard.log.segments, bytes, (shard.sequence, 0), window);
            let dear = |victim: u32| {
                shard.log.segments[victim as usize].live_bytes > bytes / 8 * CHEAP_EIGHTHS
            };
            if shard.log.tombstone_bytes > 0 && cheap.is_none_or(dear) {
                let hiding_from = shard.log.oldest_dead(None).unwrap_or(u64::MAX);
                let at = (shard.sequence, hiding_from);
                choose_victim(&shard.log.segments, bytes, at, window)
            } else {
                cheap
            }
        };
        if let Some(victim) = victim {
            shard.log.segments[victim as usize].state = SegmentState::Reclaiming;
            shard.reclaiming += 1;
        }
        Ok(victim)
    }

    /// Decides every record of the victim; false if some could neither be copied nor dropped.
    fn reclaim_segment(
        &self,
        number: usize,
        victim: u32,
        segment: Segment,
        now: Timestamp,
    ) -> Result<bool> {
        let shape = self.shards[number].lock().log.shape;
        let memory = self.segment_memory.lock().pop();
        let mut bytes = memory.unwrap_or_else(|| IoBuffer::aligned(shape.segment_bytes as usize));
        self.read_segment(number, victim, &mut bytes)?;
        let header = SegmentHeader::decode(&bytes);
        let footer = Trailer::decode_end(&bytes)
            .filter(|t| t.sequence == segment.sequence)
            .and_then(|t| decode_footer(&t, &bytes, shape.segment_bytes));
        let whole = header.is_some_and(|h| h.sequence == segment.sequence);
        let Some(footer) = footer.filter(|_| whole) else { return Ok(false) };
        let mut kept = true;
        for batch in footer.chunks(BATCH) {
            let mut shard = self.shards[number].lock();
            let victim = Victim::new(victim, &segment);
            for entry in batch {
                let at = entry.offset as usize;
                let record = bytes.get(at..at + entry.record_bytes as usize).unwrap_or_default();
                kept &= shard.reclaim_record(&victim, entry, record, now)?;
            }
        }
        self.segment_memory.lock().push(bytes);
        Ok(kept)
    }

    /// Reads a sealed segment, from memory if it is there. What cannot be read is zeros.
    pub(crate) fn read_segment(
        &self,
        number: usize,
        segment: u32,
        out: &mut IoBuffer,
    ) -> Result<()> {
        let shard = self.shards[number].lock();
        let start = shard.log.shape.address(segment, 0);
        if let Some(memory) = shard.log.in_memory(start) {
            out.copy_from_slice(memory);
            return Ok(());
        }
        let offset = shard.log.shape.offset_of(segment);
        drop(shard);
        read_around(&*self.device, offset, out).map(drop)
    }

    /// Settles the notes on a segment and drops what ended in it, by its footer alone.
    fn sweep(&self, number: usize, segment: u32, now: Timestamp) -> Result<()> {
        let (shape, state, held) = {
            let shard = self.shards[number].lock();
            let (shape, state) = (shard.log.shape, shard.log.segments[segment as usize]);
            // Its last write may be under way: the device may have the footer of a former use yet.
            let memory = shard.log.in_memory(shape.address(segment, 0));
            let sealed = memory.filter(|_| state.state == SegmentState::Sealed);
            (shape, state, sealed.map(|memory| footer_of(memory, state.sequence)))
        };
        let offset = shape.offset_of(segment);
        let footer = match held {
            Some(footer) => footer,
            None => read_footer(self, offset, shape.segment_bytes, state.sequence)?,
        };
        let mut shard = self.shards[number].lock();
        let current = shard.log.segments[segment as usize];
        if current.sequence != state.sequence || current.state != SegmentState::Sealed {
            return Ok(());
        }
        let Some(footer) = footer else {
            let row = &mut shard.log.segments[segment as usize];
            if self.evicts() {
                // It goes in its turn: older records of its keys must go before it.
                (row.next_end, row.notes) = (ENDED, 0);
            } else {
                row.state = SegmentState::Damaged;
            }
            return Ok(());
        };
        let mut next_end = u32::MAX;
        let mut ended = false;
        let mut large = Vec::new();
        let noted = shard.notes.in_segment(segment);
        for entry in &footer {
            if noted.binary_search(&shape.address(segment, entry.offset)).is_ok() {
                shard.settle(segment, entry);
            }
            if entry.ends_seconds == 0 {
                continue;
            }
            let dropped = state.sequence < shard.floor_of(entry.space, entry.partition);
            let over = shard.is_over(entry.ends_seconds, now);
            ended |= over;
            if dropped {
                // Counted no more; its slot goes when the segment is reclaimed.
            } else if over {
                let place = place_of(&shard, segment, entry);
                let owner = (entry.space, entry.partition);
                if shard.large.is_manifest(place.address) {
                    large.push((entry.hash, place, entry.ends_seconds));
                    continue;
                }
                shard.expire(entry.hash, (place, entry.ends_seconds), owner);
            } else {
                next_end = next_end.min(entry.ends_seconds);
            }
        }
        if ended {
            next_end = next_end.min(ENDED);
        }
        shard.log.segments[segment as usize].next_end = next_end;
        drop(shard);
        for (hash, place, ends_seconds) in large {
            self.bury_large(number, hash, (place, ends_seconds))?;
        }
        Ok(())
    }

    /// Leaves a tombstone for a large value whose time is over: its pieces go, and what is left of
    /// it would look like one that never was whole.
    fn bury_large(&self, number: usize, hash: u128, (place, ends): (Place, u32)) -> Result<()> {
        let (plan, held) = {
            let shard = self.shards[number].lock();
            let held = shard.log.in_memory(place.address);
            let held =
                held.map(|bytes| bytes[..bytes.len().min(place.size.bytes() as usize)].to_vec());
            (shard.plan(place, false), held)
        };
        let (offset, length) = self.read_range(&plan);
        let mut bytes = IoBuffer::aligned(length);
        if held.is_none() {
            read_around(&*self.device, offset, &mut bytes)?;
        }
        let read = bytes.get((plan.offset - offset) as usize..).unwrap_or_default();
        let record = held.as_deref().unwrap_or(read);
        let wanted = (plan.segment_sequence as u32, None);
        let mut scratch = Vec::new();
        let mut shard = self.shards[number].lock();
        let opened = self.payloads.open(shard.log.shape.shard, record, wanted, &mut scratch);
        // What does not verify, or was just replaced, is left to reads and to reclaim.
        let Ok(record) = opened else { return Ok(()) };
        let key = Key {
            space: record.header.space,
            partition: record.header.partition,
            bytes: record.key,
        };
        shard.bury(key, hash, (place, ends))
    }
}

/// The footer of a sealed segment on the device; `None` if it does not verify or cannot be read.
pub(crate) fn read_footer(
    inner: &Inner,
    offset: u64,
    segment_bytes: u32,
    sequence: u64,
) -> Result<Option<Vec<FooterEntry>>> {
    read_footer_of(&*inner.device, offset, segment_bytes, sequence)
}

pub(crate) fn read_footer_of(
    device: &dyn entresol_device::Device,
    offset: u64,
    segment_bytes: u32,
    sequence: u64,
) -> Result<Option<Vec<FooterEntry>>> {
    let mut length = FOOTER_READ_BYTES.min(segment_bytes as usize);
    loop {
        let mut bytes = IoBuffer::aligned(length);
        read_around(device, offset + u64::from(segment_bytes) - length as u64, &mut bytes)?;
        let Some(trailer) = Trailer::decode_end(&bytes).filter(|t| t.sequence == sequence) else {
            return Ok(None);
        };
        let needed = trailer.region_bytes().next_multiple_of(4096);
        if needed > segment_bytes as usize {
            return Ok(None);
        }
        if needed <= length {
            return Ok(decode_footer(&trailer, &bytes, segment_bytes));
        }
        length = needed;
    }
}

pub(crate) fn footer_of(bytes: &[u8], sequence: u64) -> Option<Vec<FooterEntry>> {
    let trailer = Trailer::decode_end(bytes).filter(|t| t.sequence == sequence)?;
    decode_footer(&trailer, bytes, bytes.len() as u32)
}

fn place_of(shard: &Shard, segment: u32, entry: &FooterEntry) -> Place {
    Place {
        address: shard.log.shape.address(segment, entry.offset),
        size: SizeCode::covering(u64::from(entry.record_bytes)),
    }
}

/// Notes a shard keeps before it settles some: a thirty-second of its entries.
fn notes_budget(shard: &Shard) -> u64 {
    (shard.index.len() / 32).max(4096)
}

fn most_noted(segments: &[Segment]) -> Option<u32> {
    let sealed = segments.iter().enumerate().filter(|(_, s)| s.state == SegmentState::Sealed);
    sealed.filter(|(_, s)| s.notes > 0).max_by_key(|(_, s)| s.notes).map(|(n, _)| n as u32)
}

fn learn_lifespan(shard: &mut Shard, segment: &Segment) {
    let age = shard.sequence.saturating_sub(segment.age) as f64;
    shard.lifespan = if shard.lifespan == f64::INFINITY || shard.lifespan == 0.0 {
        age
    } else {
        shard.lifespan * 0.9 + age * 0.1
    };
}
