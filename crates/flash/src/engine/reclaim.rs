//! Reclaim: making segments free. Live records are copied forward (store) or let go (cache).
//!
//! The victim is read whole without the lock; its records are then decided a few at a time under
//! it. A record is live if the index says so: no scan of the index, no read but of the victim.
//!
//! Maintenance reclaims whole segments ahead of need. Where it does not keep up, each write decides
//! a few records of one victim (`shard/victim.rs`), so that none waits for a whole segment.
//!
//! Invariants:
//! 1. The index is changed to a copy only after the copy is appended, and only if it still points
//!    to the original.
//! 2. A victim is released after its last record was decided, and free only once all copies are
//!    durable (`Log::release`).
//! 3. A tombstone is dropped only if no older segment holds records that are no longer live.
//! 4. A live record that does not verify, or cannot be read, is not copied: its segment stays as it
//!    is.

use entresol_device::IoBuffer;
use parking_lot::MutexGuard;

use super::Engine;
use crate::error::Result;
use crate::log::{Patience, Progress, RELEASE_BATCH};
use crate::shard::{BATCH, Part, Shard, Victim};
use crate::types::Timestamp;
use crate::unreadable::read_around;

impl Engine {
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
        let victim = match shard.take_victim() {
            Some(victim) => Some(victim),
            None => shard.choose()?,
        };
        match victim {
            Some(victim) => self.reclaim(number, shard, victim, (now, Patience::Returns)),
            None if shard.log.releasing_count() > 0 => {
                shard.log.begin_release()?;
                Ok(Progress::Awaited)
            }
            None if shard.is_reclaiming() => Ok(Progress::Awaited),
            None if shard.log.frees_tombstones()? => Ok(Progress::Awaited),
            None => Ok(Progress::None),
        }
    }

    /// There is no victim left. Another thread may have the last: what it frees is for whoever asks
    /// first.
    pub(super) fn await_others(&self, number: usize, shard: MutexGuard<'_, Shard>) -> Progress {
        let others = shard.is_reclaiming();
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
        mut victim: Victim,
        (now, patience): (Timestamp, Patience),
    ) -> Result<Progress> {
        while shard.awaits_read(&mut victim) {
            if patience == Patience::Returns {
                shard.leave_victim(victim);
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
    fn decide_all(&self, number: usize, victim: &mut Victim, now: Timestamp) -> Result<()> {
        let borrows = !victim.is_read();
        if borrows {
            let segment_bytes = self.shards[number].lock().log.shape().segment_bytes as usize;
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
        match shard.take_victim() {
            Some(victim) => self.reclaim(number, shard, victim, (now, Patience::Waits)).map(drop),
            None => Ok(()),
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
        let start = shard.log.shape().address(segment, 0);
        if let Some(memory) = shard.log.in_memory(start) {
            out.copy_from_slice(memory);
            return Ok(());
        }
        let offset = shard.log.shape().offset_of(segment);
        drop(shard);
        read_around(&*self.device, offset, out).map(drop)
    }
}

#[cfg(test)]
mod tests;
