//! What all clones and sessions of a store share: shards on one device, and the operations on them.
//!
//! Lock order: one shard's lock at a time, except `drop_below`, `close` and whoever takes a
//! snapshot, which take all in order of number; then the superblock's lock. No other lock is taken
//! under them.

mod ahead;
mod assemble;
mod close;
mod device_wait;
mod figures;
mod format;
mod ground;
mod inspect;
mod journal;
mod listing;
mod maintain;
mod make_room;
mod reclaim;
mod segment_ages;
mod segment_groups;
mod sweep;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use entresol_device::{Device, IoBuffer};
use parking_lot::{Mutex, RwLock};

use device_wait::Gathering;
pub(crate) use device_wait::wait_for;
use ground::Outliving;
pub use inspect::{LogPosition, LogScan, SegmentInfo, Verification};
pub use journal::{JournalRead, JournalReplay, JournalState};
pub use listing::{Listed, Listing};
pub use maintain::{Budget, Maintenance};
use make_room::Reclaims;
pub(crate) use make_room::Waits;
pub use segment_ages::SegmentAge;
pub use segment_groups::{SegmentGroup, SegmentMap};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{FORMAT_VERSION_MARKS, Floor, Superblock};
use crate::log::{Attempt, Hold, Refusal};
use crate::options::StoreOptions;
use crate::policy::{self, ReclaimPolicy, WhenFull};
use crate::record::{HashSeed, HashedKey, Payloads, check_space};
use crate::recovery::{self, Recovered};
use crate::shard::{
    Absence, Discarded, Known, Location, Pace, Plan, PutRequest, PutStep, Removal, Shard, Written,
};
use crate::statistics::{Opened, StoreStatistics};
use crate::superblock;
use crate::types::{Durability, Lifespan, SpaceId, Timestamp};

/// What all clones and sessions of a store share.
pub(crate) struct Engine {
    pub device: Arc<dyn Device>,
    pub options: StoreOptions,
    pub policy: &'static dyn ReclaimPolicy,
    pub shards: Vec<Mutex<Shard>>,
    pub payloads: Arc<Payloads>,
    pub hash_seed: HashSeed,
    pub sector_bytes: u64,
    pub session_counters: [SessionCounters; SESSION_COUNTERS],
    /// Sessions opened.
    pub sessions: AtomicUsize,
    /// Bytes of segments that sessions read ahead and nobody has taken yet.
    pub ahead_bytes: AtomicU64,
    pub superblock: Mutex<Superblock>,
    pub superblock_damage: Option<String>,
    /// The format that the superblock on the device names.
    pub format: AtomicU32,
    pub buffers: Outliving,
    /// When the last periodic sync began, ms.
    pub last_sync_ms: AtomicU64,
    pub closed: AtomicBool,
    pub segment_memory: Mutex<Vec<IoBuffer>>,
    /// One a shard, shared while segments of it are reclaimed: who finds no other victim waits.
    pub reclaims: Vec<RwLock<()>>,
    /// What the snapshot that is being read holds. Its lock is taken before those of shards.
    pub held: Mutex<Weak<Hold>>,
    /// The figures of all shards when somebody had them last. A leaf.
    pub latest: Mutex<StoreStatistics>,
    pub opened: Opened,
}

/// A count that many threads add to passes from one processor to the other each time.
pub(crate) const SESSION_COUNTERS: usize = 16;

/// Counts made without a shard's lock; sessions by turns have one of a few.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SessionCounters {
    pub gets_flash: AtomicU64,
    pub gets_missed: AtomicU64,
    pub collisions_get: AtomicU64,
    pub segments_ahead: AtomicU64,
    pub damaged: AtomicU64,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("device", &self.device.name()).finish_non_exhaustive()
    }
}

/// What a put came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Stored(Written),
    /// What is known of the key does not do: resolve it, once more if it was.
    Unresolved,
    /// The device has still to answer: try again once it may have.
    Postponed,
}

impl Engine {
    /// Opens the store on `device`, or makes one. Recovers after a crash.
    pub(crate) fn open(
        device: Arc<dyn Device>,
        options: StoreOptions,
        now: Timestamp,
    ) -> Result<Engine> {
        let found = recovery::open(device, options, now)?;
        let Recovered { device, options, shards, payloads, hash_seed, superblock, .. } = found;
        let mut engine = Engine {
            sector_bytes: u64::from(device.geometry().sector_bytes),
            device,
            reclaims: shards.iter().map(|_| RwLock::new(())).collect(),
            shards: shards.into_iter().map(Mutex::new).collect(),
            payloads,
            hash_seed,
            session_counters: Default::default(),
            sessions: AtomicUsize::new(0),
            ahead_bytes: AtomicU64::new(0),
            format: AtomicU32::new(superblock.version),
            superblock: Mutex::new(superblock),
            superblock_damage: found.superblock_damage,
            buffers: Outliving::new(found.buffer_file, found.former_buffers),
            last_sync_ms: AtomicU64::new(now.0),
            closed: AtomicBool::new(false),
            segment_memory: Mutex::new(Vec::new()),
            held: Mutex::default(),
            latest: Mutex::default(),
            opened: found.opened,
            policy: policy::of(options.reclaim),
            options,
        };
        engine.first_figures();
        Ok(engine)
    }

    #[inline]
    pub(crate) fn shard_of(&self, hash: u128) -> usize {
        let shards = self.shards.len() as u64;
        // A division of 64 bits takes longer than all the rest of a choice.
        let number = match shards.is_power_of_two() {
            true => hash as u64 & (shards - 1),
            false => hash as u64 % shards,
        };
        number as usize
    }

    /// The aligned range to read for a plan: offset and length.
    pub(crate) fn read_range(&self, plan: &Plan) -> (u64, usize) {
        let start = plan.offset / self.sector_bytes * self.sector_bytes;
        let wanted = plan.place.size.bytes().min(u64::from(plan.length));
        let end = (plan.offset + wanted).next_multiple_of(self.sector_bytes);
        (start, (end - start) as usize)
    }

    /// Puts, making room by reclaim where that is what is missing.
    ///
    /// `waits` is how often it waits for the device before it answers [`Put::Postponed`].
    pub(crate) fn put(
        &self,
        request: PutRequest<'_>,
        known: Known<'_>,
        mut waits: Waits,
    ) -> Result<Put> {
        self.check_open()?;
        if request.options.lifespan != Lifespan::Learned {
            self.demand_format(FORMAT_VERSION_MARKS)?;
        }
        let number = self.shard_of(request.hash);
        let makes_room = self.policy.when_full() == WhenFull::MakesRoom;
        let mut pace = Pace::Marked;
        let mut reclaims = Reclaims::default();
        let mut waits_for_room = Waits::FOR_ROOM;
        let mut swept = None;
        loop {
            let mut shard = self.gather(number);
            match shard.put(request, known, pace)? {
                PutStep::NeedsBuffer if !waits.take() => return Ok(Put::Postponed),
                PutStep::NeedsBuffer => {
                    shard.await_buffer()?;
                    continue;
                }
                PutStep::NeedsRoom => reclaims.count(&mut shard),
                PutStep::Full(error) => {
                    self.let_gone_go(shard, request.now, &mut swept, error)?;
                    continue;
                }
                // Reclaim moved what was read, and would again if that were read before there is
                // room.
                PutStep::Changed
                    if makes_room && reclaims.counted && shard.lacks_room(&request, pace) => {}
                PutStep::Changed | PutStep::Resolve => return Ok(Put::Unresolved),
                PutStep::Stored(written) => {
                    let bytes = request.key.bytes.len() + request.value.len();
                    shard.contribute(bytes as u64, pace, request.now);
                    return Ok(Put::Stored(written));
                }
            }
            let bytes = request.key.bytes.len() + request.value.len();
            // Where a slot is missing, segments that become free are no help.
            let wanted = match shard.has_slot() {
                true => shard.wanted_free(bytes as u64, pace),
                false => u32::MAX,
            };
            drop(shard);
            if !waits_for_room.go_on(reclaims.awaited) {
                return Ok(Put::Postponed);
            }
            match pace {
                _ if self.gains_room(number, wanted, request.now, &mut reclaims)? => {}
                _ if makes_room && reclaims.seals() && self.seal_for_slots(number)? => {}
                Pace::Marked => (pace, reclaims) = (Pace::Unmarked, Reclaims::counted()),
                Pace::Unmarked if self.breaks_snapshot(number) => {
                    (pace, reclaims) = (Pace::Marked, Reclaims::default());
                }
                Pace::Unmarked => return Err(self.full(number)),
            }
        }
    }

    /// Lets something go that has ended or was dropped, in a shard that is full of entries; the
    /// put's `error` where there is nothing, or only what was `swept` for it before.
    fn let_gone_go(
        &self,
        mut shard: Gathering<'_>,
        now: Timestamp,
        swept: &mut Option<u32>,
        error: Error,
    ) -> Result<()> {
        let seconds = (now.0 / 1000) as u32;
        let gone = shard.first_gone(seconds);
        let Some(segment) = gone.filter(|gone| *swept != Some(*gone)) else {
            return if gone.is_none() && shard.seals_gone(seconds)? { Ok(()) } else { Err(error) };
        };
        let number = usize::from(shard.log.shape().shard);
        drop(shard);
        *swept = Some(segment);
        // Where a footer cannot be read, maintenance says so. The put lacks room.
        self.sweep(number, segment, now).map_or(Err(error), |_| Ok(()))
    }

    /// Removes the entry at `location`, which was found to be the key's.
    pub(crate) fn remove(
        &self,
        key: HashedKey<'_>,
        location: Location,
        now: Timestamp,
        waits: Waits,
    ) -> Result<Removal> {
        let number = self.shard_of(key.hash);
        let removed =
            self.write_in_reserve(number, now, waits, |shard| shard.remove(key, location));
        Ok(removed?.unwrap_or(Removal::Awaits))
    }

    /// Removes what may be of the key, without a look at it.
    pub(crate) fn discard(
        &self,
        key: HashedKey<'_>,
        now: Timestamp,
        waits: Waits,
    ) -> Result<Discarded> {
        let number = self.shard_of(key.hash);
        let discarded = self.write_in_reserve(number, now, waits, |shard| shard.discard(key, now));
        Ok(discarded?.unwrap_or(Discarded::Awaits))
    }

    /// Sees to it that nothing of a key comes back that was found to have no entry: all that
    /// matched, those that were `tried`, are of other keys or over.
    pub(crate) fn remove_absent(
        &self,
        key: HashedKey<'_>,
        tried: &[Location],
        now: Timestamp,
        waits: Waits,
    ) -> Result<Absence> {
        let number = self.shard_of(key.hash);
        let entombed =
            self.write_in_reserve(number, now, waits, |shard| shard.remove_absent(key, tried, now));
        Ok(entombed?.unwrap_or(Absence::Awaits))
    }

    /// Appends a tombstone, or to the journal: those may use the reserve, so reclaim is asked for
    /// only when that is gone. `None`: the device has still to answer.
    fn write_in_reserve<T>(
        &self,
        number: usize,
        now: Timestamp,
        mut waits: Waits,
        mut write: impl FnMut(&mut Shard) -> Attempt<T>,
    ) -> Result<Option<T>> {
        self.check_open()?;
        let mut reclaims = Reclaims::default();
        let mut waits_for_room = Waits::FOR_ROOM;
        loop {
            let mut shard = self.gather(number);
            match write(&mut shard) {
                Ok(written) => return Ok(Some(written)),
                Err(Refusal::NeedsBuffer) if !waits.take() => return Ok(None),
                Err(Refusal::NeedsBuffer) => {
                    shard.await_buffer()?;
                    continue;
                }
                Err(Refusal::NeedsRoom) => reclaims.count(&mut shard),
                Err(refusal) => return Err(refusal.into()),
            }
            let wanted = shard.log.reserve();
            drop(shard);
            if !waits_for_room.go_on(reclaims.awaited) {
                return Ok(None);
            }
            if !self.gains_room(number, wanted, now, &mut reclaims)?
                && !self.breaks_snapshot(number)
            {
                return Err(self.full(number));
            }
        }
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        if self.options.mode == crate::options::OpenMode::ReadOnly {
            let detail = "the store was opened for reading only; open it for writing";
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        Ok(())
    }

    /// On return every write acknowledged before the call survives power loss.
    pub(crate) fn sync(&self) -> Result<()> {
        for number in 0..self.shards.len() {
            self.sync_shard(number)?;
            if self.policy.lets_go() {
                // What was evicted must not come back: its key may have been removed since.
                self.free_released(number)?;
            }
        }
        Ok(())
    }

    pub(crate) fn drop_below(&self, space: SpaceId, partition: Option<u16>) -> Result<()> {
        check_space(space)?;
        self.check_open()?;
        let mut shards: Vec<_> = self.shards.iter().map(Mutex::lock).collect();
        // Since then a close may have written what the next open believes.
        self.check_open()?;
        // Segments that are open are below it: what comes for the partition next opens others.
        let below = shards.first().map_or(0, |shard| shard.log.next_sequence());
        let oldest = shards.iter().filter_map(|s| s.log.oldest_dead(None)).min();
        let floor = Floor { space, partition, below };
        let floors: Vec<_> = shards.iter().map(|shard| shard.floors_with(floor, oldest)).collect();
        let mut superblock = self.superblock.lock();
        let mut next = superblock.clone();
        let identity = |f: &Floor| (f.space, f.partition, f.below);
        let needed: HashSet<_> = floors.iter().flatten().map(identity).collect();
        next.floors.retain(|f| *f != floor && needed.contains(&identity(f)));
        next.floors.push(floor);
        next.next_segment_sequence = next.next_segment_sequence.max(below);
        // Before anything is changed: what does not fit leaves all as it was.
        next.encode().ok_or_else(|| superblock::too_many_floors(superblock.floors.len()))?;
        for (shard, floors) in shards.iter_mut().zip(floors) {
            shard.drop_below(floor, floors);
        }
        *superblock = next;
        let written = self.write_superblock(&mut superblock);
        if let Err(error) = &written {
            // What the failed sync should have covered may be lost although a later one succeeds.
            let why = format!("the superblock could not be written: {error}");
            shards.iter_mut().take(1).for_each(|shard| shard.log.poison(why.clone()));
        }
        written
    }

    /// Writes the next generation of the superblock over its older copy, and syncs.
    pub(crate) fn write_superblock(&self, superblock: &mut Superblock) -> Result<()> {
        superblock::write(&*self.device, superblock)
    }

    /// The goal of periodic and process-level maintenance.
    pub(crate) fn period_ms(&self) -> Option<u64> {
        match self.options.durability {
            Durability::Periodic(ms) => Some(u64::from(ms.get())),
            Durability::Synced | Durability::Flushed
                if self.options.write_mode == crate::options::WriteMode::Behind =>
            {
                Some(100)
            }
            _ => None,
        }
    }
}
