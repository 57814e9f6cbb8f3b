//! Room for a write that finds none: how much of reclaim it does itself, how long it goes on, and
//! how long it waits for the device before its session goes on with others.

use entresol_planted::planted;
use parking_lot::MutexGuard;

use super::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Progress, Refusal};
use crate::policy::Order;
use crate::segment::{SegmentState, Stream};
use crate::shard::{BATCH, Part, Shard, Step};
use crate::types::Timestamp;

/// How often a write waits for the device, a moment each time, before its session goes on with
/// others: a device that stalls must not stop everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waits(u32);

impl Waits {
    /// Those of a write that begins: a device that is merely slower than its writers answers
    /// within.
    pub(crate) const OF_FIRST_TRY: Waits = Waits(16);
    /// Those of one that was put off before.
    pub(crate) const OF_RETRY: Waits = Waits(1);

    /// Those for room, one after the other without a step of reclaim between: what was gained for a
    /// write is counted from its beginning, so it is put off only where the device stalls.
    pub(super) const FOR_ROOM: Waits = Waits(64);

    /// Whether a write goes on whose last step `awaited` the device, or not.
    pub(super) fn go_on(&mut self, awaited: bool) -> bool {
        if awaited {
            return self.take();
        }
        *self = Waits::FOR_ROOM;
        true
    }

    pub(super) fn take(&mut self) -> bool {
        let left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        left
    }
}

/// Segments that one write reclaims at most without a gain before it gives up: where each gives
/// back a fiftieth of itself, one is free by then.
const FRUITLESS_MAX: u32 = 64;

/// How often one write of a cache seals what is open: what it then reclaims it may have to copy
/// once before it can be evicted.
const SEALS_MAX: u32 = 3;

/// Whether what one write reclaims still leads somewhere.
#[derive(Default)]
pub(super) struct Reclaims {
    /// The most segments that were free, or about to be.
    best: u32,
    fruitless: u32,
    seals: u32,
    pub(super) counted: bool,
    /// The last step waited for the device.
    pub(super) awaited: bool,
}

impl Reclaims {
    /// Those of a write that was counted before.
    pub(super) fn counted() -> Reclaims {
        Reclaims { counted: true, ..Reclaims::default() }
    }

    /// Counts the write among those that found no room.
    pub(super) fn count(&mut self, shard: &mut Shard) {
        if !std::mem::replace(&mut self.counted, true) {
            shard.counters_mut().reclaims_by_writers += 1;
        }
    }

    /// Whether segments that are open may be sealed once more to be reclaimed.
    pub(super) fn seals(&mut self) -> bool {
        self.seals += 1;
        self.seals <= SEALS_MAX
    }

    /// Takes note of how many segments are `free`, or about to be; false if reclaim has gained none
    /// for so long that it never will: of 64 victims, or of all the `turn` has that come in turn.
    pub(super) fn gain(&mut self, free: u32, turn: u32) -> bool {
        self.fruitless = if self.grew(free) { 0 } else { self.fruitless + 1 };
        self.fruitless <= turn.max(FRUITLESS_MAX)
    }

    /// Takes note of how many segments are `free`, or about to be; whether that is more than ever.
    pub(super) fn grew(&mut self, free: u32) -> bool {
        let grew = free > self.best;
        self.best = self.best.max(free);
        grew
    }
}

impl Engine {
    /// Does a part of what makes more than `wanted` segments free for a write; false if that no
    /// longer leads anywhere.
    pub(super) fn gains_room(
        &self,
        number: usize,
        wanted: u32,
        now: Timestamp,
        reclaims: &mut Reclaims,
    ) -> Result<bool> {
        let progress = self.make_room(number, wanted, now)?;
        reclaims.awaited = progress == Progress::Awaited;
        if matches!(progress, Progress::Awaited | Progress::Decided) {
            return Ok(true);
        }
        let log = &self.shards[number].lock().log;
        let free = log.free_count() + log.releasing_count();
        // A cache's victims come in turn, however little there is to gain: all of them get it.
        let most = if self.policy.order() == Order::InTurn { log.shape().segments } else { 0 };
        Ok(match progress {
            // Whoever asked may have found one taken that is free again.
            Progress::None => reclaims.grew(free),
            _ => reclaims.gain(free, most),
        })
    }

    /// Seals what is open of a shard whose index is full: all that it has a slot for may be there,
    /// where nothing is evicted. Whether there was any.
    pub(super) fn seal_for_slots(&self, number: usize) -> Result<bool> {
        let mut shard = self.shards[number].lock();
        if shard.has_slot() {
            return Ok(false);
        }
        let open = |stream: &Stream| shard.log.open_sequence(*stream).is_some();
        let open: Vec<Stream> = Stream::ALL.into_iter().filter(open).collect();
        open.iter().try_for_each(|stream| shard.log.seal(*stream))?;
        Ok(!open.is_empty())
    }

    /// Gives up a snapshot that holds segments of a shard that is full. Whether there was one.
    pub(super) fn breaks_snapshot(&self, number: usize) -> bool {
        self.shards[number].lock().log.break_snapshot()
    }

    pub(super) fn full(&self, number: usize) -> Error {
        let mut shard = self.shards[number].lock();
        if !shard.has_slot() {
            return shard.index_full();
        }
        let log = &shard.log;
        let damaged = log.segments().iter().filter(|s| s.state == SegmentState::Damaged).count();
        let detail = format!(
            "shard {number} is full: {} bytes are live, {damaged} segments are damaged, {} are \
             free and {} about to be, and reclaim frees no more; remove entries or give the store \
             more capacity",
            log.live_bytes(),
            log.free_count(),
            log.releasing_count()
        );
        Error::new(ErrorKind::Full, detail)
    }

    /// A part of what makes room for a write that found none, and needs more than `wanted` free
    /// segments. `None`: there is nothing to gain.
    pub(crate) fn make_room(&self, number: usize, wanted: u32, now: Timestamp) -> Result<Progress> {
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
        let enough = self.policy.order() == Order::InTurn
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
            Err(Refusal::Full(_)) if shard.log.releases()? => {
                self.await_device(shard).map(|()| Progress::Awaited)
            }
            Err(refusal) => {
                if let Some(victim) = shard.take_victim() {
                    shard.keep_victim(&victim);
                }
                Err(refusal.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_reclaims_for_as_long_as_that_gains_a_segment_now_and_then() {
        let mut reclaims = Reclaims::default();
        // Each of these victims gives back a fiftieth of itself: more than 64 of them are needed.
        assert!((0..5_000).all(|round| reclaims.gain(5 + round / 50, 0)));
        // What comes and goes is no gain.
        let more = (0..1_000).take_while(|round| reclaims.gain(100 + round % 5, 0)).count();
        assert!(more <= FRUITLESS_MAX as usize + 5, "{more} rounds for nothing");
    }
}
