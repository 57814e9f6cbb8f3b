//! Reclaim: making segments free. Live records are copied forward (store) or let go (cache).
//!
//! The victim is read whole without the lock; its records are then decided a few at a time under
//! it. A record is live if the index says so: no scan of the index, no read but of the victim.
//!
//! Maintenance reclaims whole segments ahead of need. Where it does not keep up, each write decides
//! a few records of one victim (`under_way`), so that none waits for a whole segment.
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
mod open_ends;
mod under_way;

use entresol_device::IoBuffer;
use entresol_planted::planted;
use parking_lot::MutexGuard;

use crate::error::{ErrorKind, Result};
use crate::format::FooterEntry;
use crate::index::{Place, SizeCode};
use crate::log::{Patience, Progress, RELEASE_BATCH, footer_of, read_footer};
use crate::segment::{Segment, SegmentState};
use crate::shard::{Plan, Shard};
use crate::store::{Budget, Inner, Maintenance};
use crate::types::{Key, Timestamp};
use crate::unreadable::read_around;
pub(crate) use under_way::UnderWay;
use under_way::{Part, Step};

/// Records decided under one hold of the lock.
const BATCH: usize = 32;

/// The shortest period of syncs beside which the longest rest is short.
const PERIOD_QUIET_MS: u64 = 10 * Maintenance::QUIET.as_millis() as u64;

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
        self.check_ground(now)?;
        done.awaits_device = self.sync_in_time(now)?;
        // A short period is kept from the first write after a rest on.
        let quiet = self.period_ms().is_none_or(|period| period >= PERIOD_QUIET_MS);
        done.quiet = quiet && !done.awaits_device;
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
                done.quiet &= self.settle_idle(number, now)?;
                return Ok(());
            }
        }
        done.quiet = false;
        Ok(())
    }

    /// Settles the notes on one segment if nothing was appended since the last call, so that
    /// `count` becomes exact in time; no more than one, for the sake of reads. Whether nothing was,
    /// and nothing was left to do.
    fn settle_idle(&self, number: usize, now: Timestamp) -> Result<bool> {
        let mut shard = self.shards[number].lock();
        let appended = shard.log.appended();
        let idle = std::mem::replace(&mut shard.maintained_at, appended) == appended;
        if idle && shard.under_way.is_some() {
            // No writer goes on with it, and sweeps pass it over.
            drop(shard);
            return self.end_under_way(number, now).map(|()| false);
        }
        if !idle || shard.notes.len() == 0 {
            return Ok(idle && shard.log.pending_writes() == 0);
        }
        let noted = most_noted(&shard.log.segments);
        drop(shard);
        noted.map_or(Ok(true), |segment| self.sweep(number, segment, now)).map(|_| false)
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
        shard.drop_ended_in_open(now);
        let settle = shard.notes.len() as u64 > notes_budget(&shard);
        let expired = shard.first_expired((now.0 / 1000) as u32);
        let noted = if settle { most_noted(&shard.log.segments) } else { None };
        let idle = shard.log.appended() == shard.maintained_at;
        let short_of_slots = shard.is_short_of_slots();
        let log = &mut shard.log;
        let (free, releasing) = (log.free_count(), log.releasing_count());
        let low = free + releasing < log.free_target() || short_of_slots;
        if free < log.free_target() && !low {
            if idle {
                log.begin_release()?;
            } else {
                log.begin_release_unpadded()?;
            }
            done.awaits_device = true;
        }
        drop(shard);
        if low {
            let progress = self.reclaim_one(number, now)?;
            done.segments_freed += u32::from(progress == Progress::Made);
            done.more |= progress == Progress::Made;
            done.awaits_device |= progress == Progress::Awaited;
            if progress == Progress::Made {
                return Ok(true);
            }
        }
        if let Some(segment) = noted.or(expired) {
            let all = self.sweep(number, segment, now)?;
            done.more |= all;
            return Ok(all);
        }
        Ok(false)
    }

    /// Begins the syncs that a period or single puts ask for. Whether some have not ended: where a
    /// round is under way that does not cover what is due, another one has to follow it.
    fn sync_in_time(&self, now: Timestamp) -> Result<bool> {
        let last = self.last_sync_ms.load(std::sync::atomic::Ordering::Relaxed);
        let due = self.period_ms().is_some_and(|period| now.0 >= last + period || now.0 < last);
        let mut owed = false;
        for shard in &self.shards {
            let mut shard = shard.lock();
            if due {
                let appended = shard.log.appended();
                shard.log.owe(appended);
            }
            owed |= shard.log.begin_owed()?;
        }
        if due {
            self.last_sync_ms.store(now.0, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(owed)
    }

    /// Frees one segment of a shard, or sees to it that released ones become free.
    pub(crate) fn reclaim_one(&self, number: usize, now: Timestamp) -> Result<Progress> {
        let mut shard = self.shards[number].lock();
        // Under the lock: a store that closes waits for the reclaims that began before.
        self.check_open()?;
        shard.log.poll(0)?;
        let scarce = shard.log.free_count() <= shard.log.reserve() / 2;
        if shard.log.releasing_count() >= RELEASE_BATCH
            || (scarce && shard.log.releasing_count() > 0)
        {
            if scarce {
                shard.log.begin_release()?;
            } else {
                shard.log.begin_release_unpadded()?;
            }
            if scarce || shard.log.releasing_count() >= 2 * RELEASE_BATCH {
                return Ok(Progress::Awaited);
            }
        }
        // What a writer left half done goes first.
        let victim = match shard.under_way.take() {
            Some(victim) => Some(victim),
            None => shard.choose()?,
        };
        match victim {
            Some(victim) => self.reclaim(number, shard, victim, (now, Patience::Returns)),
            None if shard.log.releasing_count() > 0 => {
                shard.log.begin_release()?;
                Ok(Progress::Awaited)
            }
            None if shard.reclaiming > 0 => Ok(Progress::Awaited),
            None if shard.log.frees_tombstones()? => Ok(Progress::Awaited),
            None => Ok(Progress::None),
        }
    }

    /// There is no victim left. Another thread may have the last: what it frees is for whoever asks
    /// first.
    fn await_others(&self, number: usize, shard: MutexGuard<'_, Shard>) -> Progress {
        let others = shard.reclaiming > 0;
        drop(shard);
        if !others {
            return Progress::None;
        }
        drop(self.reclaims[number].write());
        Progress::Made
    }

    /// Reclaims `victim` to its end.
    fn reclaim(
        &self,
        number: usize,
        mut shard: MutexGuard<'_, Shard>,
        mut victim: UnderWay,
        (now, patience): (Timestamp, Patience),
    ) -> Result<Progress> {
        while shard.awaits_read(&mut victim) {
            if patience == Patience::Returns {
                shard.under_way = Some(victim);
                return Ok(Progress::Awaited);
            }
            if let Err(error) = shard.log.poll(1) {
                shard.keep_victim(&victim);
                return Err(error);
            }
        }
        if victim.is_empty() {
            shard.end_reclaim(&victim);
            return Ok(Progress::Made);
        }
        // Before the shard's lock goes: who sees this reclaim must find that it is on. It passes by
        // those who wait for others; who has waited gives the lock back at once.
        let held = self.reclaims[number].read_recursive();
        drop(shard);
        let ended = self.decide_all(number, &mut victim, now);
        let mut shard = self.shards[number].lock();
        match ended {
            Ok(()) => shard.end_reclaim(&victim),
            Err(_) => shard.keep_victim(&victim),
        }
        drop(held);
        ended.map(|()| Progress::Made)
    }

    /// Decides every record of the victim that is not decided yet.
    fn decide_all(&self, number: usize, victim: &mut UnderWay, now: Timestamp) -> Result<()> {
        let borrows = !victim.is_read();
        if borrows {
            let segment_bytes = self.shards[number].lock().log.shape.segment_bytes as usize;
            let memory = self.segment_memory.lock().pop();
            let mut bytes = memory.unwrap_or_else(|| IoBuffer::aligned(segment_bytes));
            self.read_segment(number, victim.number(), &mut bytes)?;
            victim.take_bytes(bytes);
        }
        let part = Part { bytes: u64::MAX, records: BATCH };
        while !victim.is_decided() {
            let mut shard = self.gather(number);
            if shard.log.lacks_idle_buffer()? {
                shard.await_buffer()?;
                continue;
            }
            shard.decide(victim, part, now)?;
        }
        if let Some(bytes) = victim.give_bytes().filter(|_| borrows) {
            self.segment_memory.lock().push(bytes);
        }
        Ok(())
    }

    /// Brings a victim that a writer left half done to its end, whether or not room is short.
    pub(crate) fn end_under_way(&self, number: usize, now: Timestamp) -> Result<()> {
        let mut shard = self.shards[number].lock();
        match shard.under_way.take() {
            Some(victim) => self.reclaim(number, shard, victim, (now, Patience::Waits)).map(drop),
            None => Ok(()),
        }
    }

    /// A part of what makes room for a write that found none, and needs more than `wanted` free
    /// segments. `None`: there is nothing to gain.
    pub(crate) fn make_room(
        &self,
        (number, wanted): (usize, u32),
        now: Timestamp,
    ) -> Result<Progress> {
        let mut shard = self.shards[number].lock();
        self.check_open()?;
        shard.log.poll(0)?;
        if shard.log.is_release_due() {
            shard.log.begin_release()?;
        }
        if shard.log.free_count() <= shard.log.reserve() / 2 && shard.log.releases()? {
            // What is left is for copies.
            return self.await_device(shard).map(|()| Progress::Awaited);
        }
        // Victims of a cache come in turn, and each takes room for what is copied of it: where the
        // device is slower than reclaim, that would be all that the device gives back.
        let enough = self.evicts()
            && shard.log.is_release_due()
            && shard.log.free_count() + shard.log.coming_free() > wanted;
        if enough && !planted!("reclaimed-instead-of-awaited") && shard.log.releases()? {
            return self.await_device(shard).map(|()| Progress::Awaited);
        }
        let part = Part { bytes: u64::MAX, records: BATCH };
        match shard.step(part, now) {
            Ok(Step::Ended) => Ok(Progress::Made),
            Ok(Step::Decided(_)) => {
                // Whoever waits for the shard meanwhile has its turn.
                MutexGuard::unlock_fair(shard);
                Ok(Progress::Decided)
            }
            Ok(Step::Awaits) => self.await_device(shard).map(|()| Progress::Awaited),
            Ok(Step::Unreadable) => {
                drop(shard);
                self.end_under_way(number, now).map(|()| Progress::Made)
            }
            Ok(Step::None) if shard.log.releases()? || shard.log.frees_tombstones()? => {
                self.await_device(shard).map(|()| Progress::Awaited)
            }
            Ok(Step::None) => Ok(self.await_others(number, shard)),
            // Copies need what is about to become free.
            Err(error) if error.kind() == ErrorKind::Full && shard.log.releases()? => {
                self.await_device(shard).map(|()| Progress::Awaited)
            }
            Err(error) => {
                if let Some(victim) = shard.under_way.take() {
                    shard.keep_victim(&victim);
                }
                Err(error)
            }
        }
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

    /// Settles the notes on a segment and drops what ended in it, by its footer alone. False if
    /// large values are left for want of room for their tombstones: the segment is to be swept
    /// again.
    pub(crate) fn sweep(&self, number: usize, segment: u32, now: Timestamp) -> Result<bool> {
        let (shape, state, held) = {
            let shard = self.shards[number].lock();
            let (shape, state) = (shard.log.shape, shard.log.segments[segment as usize]);
            // Its last write may be under way: the device may have the footer of a former use yet.
            let memory = shard.log.in_memory(shape.address(segment, 0));
            let sealed = memory.filter(|_| state.state == SegmentState::Sealed);
            (shape, state, sealed.map(|memory| footer_of(memory, state.sequence)))
        };
        let footer = match held {
            Some(footer) => footer,
            None => read_footer(&*self.device, &shape, segment, state.sequence)?,
        };
        let mut shard = self.shards[number].lock();
        let current = shard.log.segments[segment as usize];
        if current.sequence != state.sequence || current.state != SegmentState::Sealed {
            return Ok(true);
        }
        let Some(footer) = footer else {
            let row = &mut shard.log.segments[segment as usize];
            // Not swept again, nor freed unread.
            row.next_end = ENDED;
            if self.evicts() {
                // It goes in its turn: older records of its keys must go before it.
                row.notes = 0;
            } else {
                row.state = SegmentState::Damaged;
            }
            return Ok(true);
        };
        let mut next_end = u32::MAX;
        let mut ended = false;
        let mut large = Vec::new();
        let noted = shard.notes.in_segment(segment);
        for entry in &footer {
            if noted.binary_search(&shape.address(segment, entry.offset)).is_ok() {
                shard.settle(segment, entry);
            }
            if state.sequence < shard.floor_of(entry.space, entry.partition) {
                let place = place_of(&shard, segment, entry);
                shard.let_go(entry.hash, place);
                continue;
            }
            if entry.ends_seconds == 0 {
                continue;
            }
            let place = place_of(&shard, segment, entry);
            let over = shard.is_over_at(entry.hash, (place, entry.ends_seconds), now);
            ended |= over;
            if over {
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
        self.bury_all(number, (segment, state.sequence), large)
    }

    /// Buries large values of a segment whose time is over. False if there was no room for all of
    /// their tombstones.
    fn bury_all(
        &self,
        number: usize,
        (segment, sequence): (u32, u64),
        large: Vec<(u128, Place, u32)>,
    ) -> Result<bool> {
        for (hash, place, ends_seconds) in large {
            match self.bury_large(number, hash, (place, ends_seconds)) {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    let row = &mut self.shards[number].lock().log.segments[segment as usize];
                    if (row.sequence, row.state) == (sequence, SegmentState::Sealed) {
                        row.next_end = row.next_end.min(ends_seconds);
                    }
                    return Ok(false);
                }
                buried => buried?,
            }
        }
        Ok(true)
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
        shard.bury(key, hash, (plan.location(), ends))
    }
}

impl Inner {
    /// What the footer of its segment says of the record that `plan` was to read.
    pub(crate) fn line_at(&self, number: usize, plan: &Plan) -> Option<FooterEntry> {
        let shape = self.shards[number].lock().log.shape;
        let (segment, at) = shape.split(plan.place.address);
        let footer = read_footer(&*self.device, &shape, segment, plan.segment_sequence);
        let footer = footer.ok().flatten();
        footer?.into_iter().find(|entry| entry.offset == at)
    }
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

#[cfg(test)]
mod tests;
