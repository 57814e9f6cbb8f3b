//! The store: shards on one device, opened, shared, maintained and closed.
//!
//! Lock order: one shard's lock at a time, except `drop_space`, `drop_partition` and `close`, which
//! take all in order of number; then the superblock's lock. No other lock is taken under them.

mod assemble;
mod figures;
mod ground;
mod inspect;
mod patience;
mod reclaims;
mod waiting;

pub(crate) use ground::Outliving;

pub use inspect::{LogScan, SegmentInfo, Verification};
use reclaims::Reclaims;
pub(crate) use waiting::wait_for;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use entresol_device::{Device, IoBuffer};
use parking_lot::{Mutex, RwLock};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Floor, Superblock};
use crate::log::Progress;
use crate::options::{Reclaim, StoreOptions};
use crate::record::{HashSeed, Payloads, check_space};
use crate::segment::{SegmentState, Stream};
use crate::session::{Session, SessionOptions};
use crate::shard::{Absence, Known, Location, Pace, Plan, PutRequest, PutStep, Shard};
use crate::statistics::StoreStatistics;
use crate::superblock;
use crate::types::{Durability, Key, SpaceId, Timestamp};
pub(crate) use patience::Waits;

/// A flash store: never loses an acknowledged entry beyond what its durability allows. With
/// [`Reclaim::Evict`] it is a cache instead. Cheap to clone; thread-safe.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("device", &self.device.name()).finish_non_exhaustive()
    }
}

/// What all clones and sessions of a store share.
pub(crate) struct Inner {
    pub device: Arc<dyn Device>,
    pub options: StoreOptions,
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
    pub buffers: Outliving,
    /// When the last periodic sync began, ms.
    pub last_sync_ms: AtomicU64,
    pub closed: std::sync::atomic::AtomicBool,
    pub segment_memory: Mutex<Vec<IoBuffer>>,
    /// One a shard, shared while segments of it are reclaimed: who finds no other victim waits.
    pub reclaims: Vec<RwLock<()>>,
    /// The figures of all shards when somebody had them last. A leaf.
    pub latest: Mutex<StoreStatistics>,
    pub opened: crate::statistics::Opened,
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

/// How much background work one call of [`Store::maintain`] may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Most segments to read: reclaimed, swept for expiry, or to settle notes.
    pub segments: u32,
}

/// What one call of [`Store::maintain`] did, and whether more waits.
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
            (false, true) => Some(Duration::from_micros(300)),
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

impl Store {
    /// Shards and bytes of a segment of the store on `device`, which are fixed when it is made;
    /// `None` if there is none that verifies.
    pub fn shape_on(device: &dyn Device) -> Option<(u16, u32)> {
        let superblock = superblock::read(device).ok().flatten()?;
        Some((superblock.shards, superblock.segment_bytes))
    }

    /// Opens the store on `device`, or makes one, as `options.mode` says. Recovers after a crash.
    ///
    /// Errors: `Incompatible` if the device holds something else, `Corrupt` if both superblocks are
    /// damaged, or gone and a segment is there yet, `WrongKey`, `InvalidInput` for options, `Io`.
    pub fn open(device: Arc<dyn Device>, options: StoreOptions, now: Timestamp) -> Result<Store> {
        let inner = crate::recovery::open(device, options, now)?;
        Ok(Store { inner: Arc::new(inner) })
    }

    /// A session for the calling thread.
    pub fn session(&self, options: SessionOptions) -> Result<Session> {
        Session::new(Arc::clone(&self.inner), options)
    }

    /// Entries in `space`, expired ones that were not yet found included. O(1) in entries.
    pub fn count(&self, space: SpaceId) -> u64 {
        self.inner.shards.iter().map(|shard| shard.lock().entries(space)).sum()
    }

    /// Partitions of `space` that have or had entries, in their order, and how many; likewise.
    pub fn count_partitions(&self, space: SpaceId) -> Vec<(u16, u64)> {
        let mut counts = std::collections::BTreeMap::<u16, i64>::new();
        for shard in &self.inner.shards {
            for ((of, partition), count) in &shard.lock().counts {
                if *of == space {
                    *counts.entry(*partition).or_default() += count;
                }
            }
        }
        counts.into_iter().map(|(partition, count)| (partition, count.max(0) as u64)).collect()
    }

    /// Entries in one partition of `space`, likewise.
    pub fn count_partition(&self, space: SpaceId, partition: u16) -> u64 {
        let shards = self.inner.shards.iter();
        let counts =
            shards.filter_map(|shard| shard.lock().counts.get(&(space, partition)).copied());
        counts.sum::<i64>().max(0) as u64
    }

    /// Whether a put may have to make room itself before it can be answered: `maintain` has not
    /// kept as many segments free as it aims at.
    pub fn is_short(&self) -> bool {
        self.inner.shards.iter().any(|shard| {
            let shard = shard.lock();
            shard.log.free_count() <= (shard.log.reserve() + shard.log.free_target()) / 2
        })
    }

    /// Memory for the index, write buffers, tables and segments read ahead, bytes: what
    /// `statistics` tells of each, added up. O(shards).
    pub fn memory_bytes(&self) -> u64 {
        let of = |shard: &Mutex<Shard>| shard.lock().memory_bytes();
        let shards: u64 = self.inner.shards.iter().map(of).sum();
        shards + self.inner.ahead_bytes.load(Ordering::Relaxed)
    }

    /// Spaces that hold entries, in order.
    pub fn spaces(&self) -> Vec<SpaceId> {
        let mut spaces = Vec::new();
        for shard in &self.inner.shards {
            spaces.extend(shard.lock().counts.iter().filter(|(_, n)| **n > 0).map(|(k, _)| k.0));
        }
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }

    /// Removes all entries of `space`: at once for every reader, durable on return. O(segments).
    pub fn drop_space(&self, space: SpaceId) -> Result<()> {
        self.inner.drop_below(space, None)
    }

    /// Removes all entries of one partition of `space`, likewise.
    pub fn drop_partition(&self, space: SpaceId, partition: u16) -> Result<()> {
        self.inner.drop_below(space, Some(partition))
    }

    /// Does background work: reclaim ahead of need, expiry, notes, periodic sync.
    pub fn maintain(&self, now: Timestamp, budget: Budget) -> Result<Maintenance> {
        self.inner.maintain(now, budget)
    }

    /// On return every write acknowledged before the call survives power loss.
    pub fn sync(&self) -> Result<()> {
        for number in 0..self.inner.shards.len() {
            self.inner.sync_shard(number)?;
            if self.inner.evicts() {
                // What was evicted must not come back: its key may have been removed since.
                self.inner.free_released(number)?;
            }
        }
        Ok(())
    }

    /// Syncs and writes a checkpoint, so that the next open is fast. Writes after it are refused.
    pub fn close(&self, now: Timestamp) -> Result<()> {
        crate::checkpoint::close(&self.inner, now)
    }

    /// Figures since the store was opened. Waits for the locks of shards, which may be held for as
    /// long as the device takes.
    pub fn statistics(&self) -> StoreStatistics {
        self.inner.statistics()
    }

    /// Likewise, of now if no shard's lock is waited for longer than `patience`; else those of
    /// shards are the latest that anybody asked for.
    pub fn statistics_within(&self, patience: Duration) -> StoreStatistics {
        self.inner.statistics_within(patience)
    }

    /// The device under the store.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.inner.device
    }

    /// The options the store was opened with, those fixed at its making as they were then.
    pub fn options(&self) -> &StoreOptions {
        &self.inner.options
    }

    /// The hash by which the store places `key`: stable for the life of the store.
    pub fn hash(&self, key: Key<'_>) -> u128 {
        crate::record::hash_key(self.inner.hash_seed, key)
    }

    /// What scans call the entry of a key.
    pub fn name(&self, key: Key<'_>) -> crate::session::EntryName {
        let hash = self.hash(key);
        crate::session::EntryName::new(self.inner.shard_of(hash), hash)
    }
}

impl Inner {
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
    /// `waits` is how often it waits for the device before it answers [`PutStep::Awaits`].
    pub(crate) fn put(
        &self,
        request: PutRequest<'_>,
        known: Known<'_>,
        mut waits: Waits,
    ) -> Result<PutStep> {
        self.check_open()?;
        let number = self.shard_of(request.hash);
        let evicts = self.evicts();
        let mut pace = Pace::Marked;
        let mut reclaims = Reclaims::default();
        let mut waits_for_room = Waits::FOR_ROOM;
        let mut swept = None;
        loop {
            let mut shard = self.gather(number);
            match shard.put(request, known, pace) {
                Err(_) if shard.log.lacks_buffer() => {
                    if !waits.take() {
                        return Ok(PutStep::Awaits);
                    }
                    shard.await_buffer()?;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Busy => reclaims.count(&mut shard),
                Err(error) if error.kind() == ErrorKind::Full => {
                    let seconds = (request.now.0 / 1000) as u32;
                    let gone = shard.first_gone(seconds);
                    let Some(segment) = gone.filter(|gone| swept != Some(*gone)) else {
                        if gone.is_none() && shard.seals_gone(seconds)? {
                            continue;
                        }
                        return Err(error);
                    };
                    drop(shard);
                    swept = Some(segment);
                    if self.sweep(number, segment, request.now).is_err() {
                        // A footer cannot be read: maintenance says so. The put lacks room.
                        return Err(error);
                    }
                    continue;
                }
                // Reclaim moved what was read, and would again if that were read before there is
                // room.
                Ok(PutStep::Changed)
                    if evicts && reclaims.counted && shard.lacks_room(&request, pace) => {}
                Ok(PutStep::Stored(written)) => {
                    let bytes = request.key.bytes.len() + request.value.len();
                    shard.contribute(bytes as u64, pace, request.now);
                    return Ok(PutStep::Stored(written));
                }
                decided => return decided,
            }
            let bytes = request.key.bytes.len() + request.value.len();
            // Where a slot is missing, segments that become free are no help.
            let wanted = match shard.has_slot() {
                true => shard.wanted_free(bytes as u64, pace),
                false => u32::MAX,
            };
            drop(shard);
            if !waits_for_room.go_on(reclaims.awaited) {
                return Ok(PutStep::Awaits);
            }
            match pace {
                _ if self.gains_room((number, wanted), request.now, &mut reclaims)? => {}
                _ if evicts && reclaims.seals() && self.seal_for_slots(number)? => {}
                Pace::Marked => (pace, reclaims) = (Pace::Unmarked, Reclaims::counted()),
                Pace::Unmarked => return Err(self.full(number)),
            }
        }
    }

    /// Removes the entry at `location`, which was found to be the key's.
    pub(crate) fn remove(
        &self,
        (key, hash): (Key<'_>, u128),
        location: Location,
        (now, waits): (Timestamp, Waits),
    ) -> Result<Option<Option<u64>>> {
        self.entomb((hash, now, waits), |shard| shard.remove(key, hash, location))
    }

    /// Sees to it that nothing of a key comes back that was found to have no entry: all that
    /// matched, those that were `tried`, are of other keys or over.
    pub(crate) fn remove_absent(
        &self,
        (key, hash): (Key<'_>, u128),
        tried: &[Location],
        (now, waits): (Timestamp, Waits),
    ) -> Result<Absence> {
        let entombed =
            self.entomb((hash, now, waits), |shard| shard.remove_absent((key, hash), tried, now));
        Ok(entombed?.unwrap_or(Absence::Awaits))
    }

    /// Appends a tombstone; those may use the reserve, so reclaim is asked for only when that is
    /// gone. `None`: the device has yet to answer.
    fn entomb<T>(
        &self,
        (hash, now, mut waits): (u128, Timestamp, Waits),
        mut write: impl FnMut(&mut Shard) -> Result<T>,
    ) -> Result<Option<T>> {
        self.check_open()?;
        let number = self.shard_of(hash);
        let mut reclaims = Reclaims::default();
        let mut waits_for_room = Waits::FOR_ROOM;
        loop {
            let mut shard = self.gather(number);
            match write(&mut shard) {
                Err(_) if shard.log.lacks_buffer() => {
                    if !waits.take() {
                        return Ok(None);
                    }
                    shard.await_buffer()?;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Busy => reclaims.count(&mut shard),
                decided => return decided.map(Some),
            }
            let wanted = shard.log.reserve();
            drop(shard);
            if !waits_for_room.go_on(reclaims.awaited) {
                return Ok(None);
            }
            if !self.gains_room((number, wanted), now, &mut reclaims)? {
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

    /// Does a part of what makes more than `wanted` segments free for a write; false if that no
    /// longer leads anywhere.
    fn gains_room(
        &self,
        (number, wanted): (usize, u32),
        now: Timestamp,
        reclaims: &mut Reclaims,
    ) -> Result<bool> {
        let progress = self.make_room((number, wanted), now)?;
        reclaims.awaited = progress == Progress::Awaited;
        if matches!(progress, Progress::Awaited | Progress::Decided) {
            return Ok(true);
        }
        let log = &self.shards[number].lock().log;
        let free = log.free_count() + log.releasing_count();
        // A cache's victims come in turn, however little there is to gain: all of them get it.
        let most = if self.evicts() { log.shape.segments } else { 0 };
        Ok(match progress {
            // Whoever asked may have found one taken that is free again.
            Progress::None => reclaims.grew(free),
            _ => reclaims.gain(free, most),
        })
    }

    /// Seals what is open of a shard whose index is full: all that it has a slot for may be there,
    /// where nothing is evicted. Whether there was any.
    fn seal_for_slots(&self, number: usize) -> Result<bool> {
        let mut shard = self.shards[number].lock();
        if shard.has_slot() {
            return Ok(false);
        }
        let open = |stream: &Stream| shard.log.open_sequence(*stream).is_some();
        let open: Vec<Stream> = Stream::ALL.into_iter().filter(open).collect();
        open.iter().try_for_each(|stream| shard.log.seal(*stream))?;
        Ok(!open.is_empty())
    }

    fn full(&self, number: usize) -> Error {
        let mut shard = self.shards[number].lock();
        if !shard.has_slot() {
            return Error::new(ErrorKind::Full, shard.index_full());
        }
        let log = &shard.log;
        let damaged = log.segments.iter().filter(|s| s.state == SegmentState::Damaged).count();
        let detail = format!(
            "shard {number} is full: {} bytes are live, {damaged} segments are damaged, {} are \
             free and {} about to be, and reclaim frees no more; remove entries or give the store \
             more capacity",
            log.live_bytes,
            log.free_count(),
            log.releasing_count()
        );
        Error::new(ErrorKind::Full, detail)
    }

    fn drop_below(&self, space: SpaceId, partition: Option<u16>) -> Result<()> {
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

    pub(crate) fn evicts(&self) -> bool {
        self.options.reclaim == Reclaim::Evict
    }
}
