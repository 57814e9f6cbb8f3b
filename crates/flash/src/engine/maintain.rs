//! Background work, a piece at a time: reclaim ahead of need, expiry, notes, the periodic sync.

use std::time::Duration;

use super::Engine;
use crate::error::Result;
use crate::log::Progress;
use crate::segment::{Segment, SegmentState};
use crate::shard::Shard;
use crate::types::Timestamp;

/// The shortest period of syncs beside which the longest rest is short.
const PERIOD_QUIET_MS: u64 = 10 * Maintenance::QUIET.as_millis() as u64;

/// How much background work one call of [`crate::Store::maintain`] may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Most segments to read: reclaimed, swept for expiry, or to settle notes.
    pub segments: u32,
}

/// What one call of [`crate::Store::maintain`] did, and whether more waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Maintenance {
    /// Segments made free.
    pub segments_freed: u32,
    /// Whether calling again now would find work.
    pub more: bool,
    /// Work goes on when the device has answered: call again within a millisecond.
    pub awaits_device: bool,
    /// Nothing was written since the call before, and nothing is left of what was.
    pub quiet: bool,
}

impl Maintenance {
    /// How long whoever calls `maintain` in a loop may rest before the next call.
    pub fn rest(&self) -> Option<Duration> {
        match (self.more, self.awaits_device) {
            (true, _) => None,
            (false, true) => Some(Duration::from_micros(100)),
            (false, false) if self.quiet => Some(Maintenance::QUIET),
            (false, false) => Some(Maintenance::IDLE),
        }
    }

    /// The longest rest between two calls of `maintain` while entries are written.
    pub const IDLE: Duration = Duration::from_millis(10);
    /// The longest rest else: what a burst of writes after it may take of free segments is made
    /// good by the writers themselves.
    pub const QUIET: Duration = Duration::from_millis(50);
}

impl Engine {
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
        let idle = shard.is_idle();
        shard.note_maintained();
        if idle && shard.has_victim() {
            // No writer goes on with it, and sweeps pass it over.
            drop(shard);
            return self.end_under_way(number, now).map(|()| false);
        }
        if !idle || shard.notes.len() == 0 {
            return Ok(idle && shard.log.pending_writes() == 0);
        }
        let noted = most_noted(shard.log.segments());
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
        let noted = if settle { most_noted(shard.log.segments()) } else { None };
        let idle = shard.is_idle();
        let short_of_slots = shard.is_short_of_slots();
        let log = &mut shard.log;
        let (free, releasing) = (log.free_count(), log.releasing_count());
        let low = free + releasing < log.free_in_background() || short_of_slots;
        if free < log.free_in_background() && !low {
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
}

/// Notes a shard keeps before it settles some: a thirty-second of its entries.
fn notes_budget(shard: &Shard) -> u64 {
    (shard.index.len() / 32).max(4096)
}

fn most_noted(segments: &[Segment]) -> Option<u32> {
    let sealed = segments.iter().enumerate().filter(|(_, s)| s.state == SegmentState::Sealed);
    sealed.filter(|(_, s)| s.notes > 0).max_by_key(|(_, s)| s.notes).map(|(n, _)| n as u32)
}
