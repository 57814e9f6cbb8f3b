//! The tiered store: memory in front of flash, shared by all threads of a process.
//!
//! Invariants:
//! 1. The cache never answers with anything but the entry flash would answer with: while a write to
//!    a key is under way its hash's gate is closed, and reads that began before are not cached.
//! 2. Index, buffers, tables, what users above have reserved and the cache together stay under the
//!    memory cap: the cache gives way, and the index never grows into what may be reserved.
//!
//! Lock order: a shard of the cache is a leaf; nothing is called under it.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use entresol_device::Device;
use entresol_flash::{
    Error, ErrorKind, OpenMode, Reclaim, Result, SpaceId, Store, StoreOptions, StoreStatistics,
    Timestamp,
};

use crate::admission::{Admission, AdmissionPolicy};
use crate::memory::MemoryCache;
use crate::segment_prefetch::Marks;
use crate::session::{Session, SessionOptions};
use crate::statistics::Statistics;

pub use entresol_flash::{Budget, Maintenance};

/// Memory in front of a flash store. Thread-safe; every thread takes a [`Session`] of its own.
#[derive(Debug)]
pub struct Tiered {
    pub(crate) store: Store,
    pub(crate) memory: MemoryCache,
    pub(crate) gates: Vec<Gate>,
    /// What the opening wrote to the device.
    opening_written_bytes: u64,
    /// Sessions take turns with them: processors that add to the same one wait for each other.
    pub(crate) counters: Vec<TierCounters>,
    /// Sessions made.
    pub(crate) sessions: AtomicUsize,
    pub(crate) admission: AdmissionPolicy,
    pub(crate) marks: Marks,
    options: TieredOptions,
    cache_bytes: AtomicU64,
    /// Of the cap, for as long as somebody else needs them.
    lent_bytes: AtomicU64,
    /// Of the cap: what users above may reserve, and what they have.
    reservable_bytes: u64,
    reserved_bytes: AtomicU64,
    /// Held while the size of the cache is changed.
    fitting: Mutex<()>,
    /// About what the cache holds, bytes: exact at each `maintain`, too high between.
    cache_used: AtomicU64,
    /// When the store's figures were last taken for those who cannot wait, ms.
    figures_at: AtomicU64,
}

/// How a tiered store is opened.
#[derive(Debug, Clone)]
pub struct TieredOptions {
    /// The flash store under it.
    pub store: StoreOptions,
    /// One cap for everything this library keeps in memory, bytes: index, buffers, cache.
    pub memory_bytes: u64,
    /// Bytes of the cache of entries; `None`: what `memory_bytes` leaves over, shrinking as the
    /// index grows; 0: there is none.
    pub cache_bytes: Option<u64>,
    /// Which entries may enter flash; a store admits all, and refuses to open with a budget.
    pub admission: Admission,
}

impl TieredOptions {
    /// Takes over what is fixed of the store on `device`, if there is one: its shards, and the size
    /// of its segments. Its write buffers are those that the memory cap has to hold.
    pub fn fit(&mut self, device: &dyn Device) {
        if self.store.mode != OpenMode::Reformat
            && let Some((shards, segment_bytes)) = Store::shape_on(device)
        {
            (self.store.shards, self.store.segment_bytes) = (shards, segment_bytes);
        }
    }

    /// Refuses a memory cap that does not hold the write buffers, as [`Tiered::open`] does: for
    /// whoever would make a device first.
    ///
    /// # Errors
    /// `InvalidInput` if it does not.
    pub fn demand_memory(&self) -> Result<()> {
        let (buffers, least) = (self.write_buffer_bytes(), self.least_memory_bytes());
        if self.memory_bytes >= least {
            return Ok(());
        }
        let detail = format!(
            "a memory cap of {} bytes; at least {least} needed: {buffers} for write buffers \
             ({} shards), the rest for index and cache; raise the cap, or make the store \
             with fewer shards",
            self.memory_bytes, self.store.shards
        );
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    fn write_buffer_bytes(&self) -> u64 {
        u64::from(self.store.shards)
            * u64::from(self.store.buffers_per_shard)
            * u64::from(self.store.segment_bytes)
    }

    /// What the store says of an index for which its share, `index_max`, is too small, as it is
    /// told of the whole cap.
    fn whole_cap(&self, error: Error, index_max: u64) -> Error {
        let Some(index_bytes) = error.needed_bytes() else { return error };
        let needed = (self.memory_bytes - index_max).saturating_add(index_bytes);
        let detail = format!(
            "a memory cap of {} bytes; at least {needed} needed, since it leaves {error}",
            self.memory_bytes
        );
        Error::too_small(detail, needed)
    }

    /// The least memory cap, bytes.
    pub fn least_memory_bytes(&self) -> u64 {
        self.write_buffer_bytes() + SLACK_BYTES + 2 * CACHE_BYTES_MIN
    }

    /// Locks of the cache. A get holds one while its value is visited, so that a few threads need
    /// many more; but no more than leave each a part in which values of some size find room.
    fn cache_shards(&self) -> usize {
        let most = self.cache_bytes.unwrap_or(u64::MAX).min(self.memory_bytes);
        let shards = (most / CACHE_SHARD_BYTES).clamp(1, CACHE_SHARDS_MAX);
        (1 << shards.ilog2()).max(usize::from(self.store.shards))
    }

    /// Refuses a write budget of a store: it must take every entry, so that it cannot keep one.
    fn demand_no_vain_budget(&self) -> Result<()> {
        match (self.store.reclaim, self.admission) {
            (Reclaim::Compact, Admission::WriteBudget(bytes)) => {
                let detail = format!(
                    "a `write-budget` of {bytes} bytes a second with `reclaim` = `store`; a store \
                     takes every entry and can keep no budget: choose `reclaim` = `cache`, which \
                     may leave entries out, or give no `write-budget`"
                );
                Err(Error::new(ErrorKind::InvalidInput, detail))
            }
            _ => Ok(()),
        }
    }
}

/// Writes under way to keys of one group of hashes.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Writes begun and not ended.
    pub active: AtomicU32,
    /// Changes with every begin and end of a write.
    pub stamp: AtomicU64,
}

/// What the tier counts without a lock.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct TierCounters {
    pub gets: AtomicU64,
    pub memory_hits: AtomicU64,
}

/// Groups of hashes; a power of two.
const GATES: usize = 4096;
const COUNTERS: usize = 16;
/// Memory not accounted for in detail: sessions, queues, the program itself.
const SLACK_BYTES: u64 = 8 << 20;
/// Part of the slack that a recovery may use beside the index's share, unless the caller says what
/// memory lies idle until then: there is no session yet.
pub const SCRATCH_BYTES: u64 = 3 << 20;
/// How old the figures may be that those get who cannot wait for a shard.
const FIGURES_MS: u64 = 100;
/// The least cache behind each of its locks, where it has more of them than the store: values of
/// 128 KiB find room in it.
const CACHE_SHARD_BYTES: u64 = 12 << 20;
const CACHE_SHARDS_MAX: u64 = 16;
/// The least the cache gets.
const CACHE_BYTES_MIN: u64 = 1 << 20;

impl Tiered {
    /// Opens or makes the store on `device`.
    ///
    /// Errors: as `Store::open`; `InvalidInput` if the memory cap does not hold the write buffers,
    /// or if a store is given a write budget.
    pub fn open(
        device: Arc<dyn Device>,
        options: TieredOptions,
        now: Timestamp,
    ) -> Result<Arc<Tiered>> {
        Tiered::open_reserving(device, options, 0, now)
    }

    /// As [`Tiered::open`], with a part of the memory cap that users above may reserve by
    /// [`Tiered::reserve`]. The index does without it; the cache has it while it is not reserved.
    ///
    /// Errors: as `open`; `InvalidInput` also if the memory cap does not hold it.
    pub fn open_reserving(
        device: Arc<dyn Device>,
        mut options: TieredOptions,
        reservable_bytes: u64,
        now: Timestamp,
    ) -> Result<Arc<Tiered>> {
        options.fit(&*device);
        options.demand_memory()?;
        let over = options.memory_bytes - options.least_memory_bytes();
        let over = over.checked_sub(reservable_bytes).ok_or_else(|| {
            let least = options.least_memory_bytes().saturating_add(reservable_bytes);
            let detail = format!(
                "a memory cap of {} bytes, {reservable_bytes} of which may be reserved; at least \
                 {least} needed; raise the cap, or let less be reserved",
                options.memory_bytes
            );
            Error::new(ErrorKind::InvalidInput, detail)
        })?;
        let cache = options.cache_bytes.unwrap_or(CACHE_BYTES_MIN).min(over);
        let index_max = options.memory_bytes
            - reservable_bytes
            - options.write_buffer_bytes()
            - SLACK_BYTES
            - cache;
        options.store.index_bytes_max = options.store.index_bytes_max.min(index_max);
        if options.store.scratch_bytes_max == u64::MAX {
            // Nothing is reserved and nothing cached before the store is open.
            options.store.scratch_bytes_max = SCRATCH_BYTES + reservable_bytes + cache;
        }
        options.demand_no_vain_budget()?;
        let store = Store::open(device, options.store.clone(), now)
            .map_err(|error| options.whole_cap(error, index_max))?;
        options.store = store.options().clone();
        let written = &store.device().counters().written_bytes;
        let tiered = Tiered {
            opening_written_bytes: written.load(Ordering::Relaxed),
            memory: MemoryCache::new(CACHE_BYTES_MIN, options.cache_shards())?,
            store,
            gates: (0..GATES).map(|_| Gate::default()).collect(),
            counters: (0..COUNTERS).map(|_| TierCounters::default()).collect(),
            sessions: AtomicUsize::new(0),
            admission: AdmissionPolicy::new(options.admission, now),
            marks: Marks::new(),
            options,
            cache_bytes: AtomicU64::new(CACHE_BYTES_MIN),
            lent_bytes: AtomicU64::new(0),
            reservable_bytes,
            reserved_bytes: AtomicU64::new(0),
            fitting: Mutex::default(),
            cache_used: AtomicU64::new(0),
            figures_at: AtomicU64::new(now.0),
        };
        tiered.fit_cache();
        Ok(Arc::new(tiered))
    }

    /// A session for the calling thread.
    pub fn session(self: &Arc<Self>, options: SessionOptions) -> Result<Session> {
        Session::new(Arc::clone(self), options)
    }

    /// Entries in `space`, expired ones that were not yet found included. O(1).
    pub fn count(&self, space: SpaceId) -> u64 {
        self.store.count(space)
    }

    /// Spaces that hold entries.
    pub fn spaces(&self) -> Vec<SpaceId> {
        self.store.spaces()
    }

    /// Removes all entries of `space`: at once for every reader, durable on return.
    pub fn drop_space(&self, space: SpaceId) -> Result<()> {
        let closed: Vec<Closed<'_>> = self.gates.iter().map(Gate::close).collect();
        let dropped = self.store.drop_space(space);
        self.memory.clear_space(space.0);
        drop(closed);
        dropped
    }

    /// Removes all entries of one partition of `space`.
    pub fn drop_partition(&self, space: SpaceId, partition: u16) -> Result<()> {
        let closed: Vec<Closed<'_>> = self.gates.iter().map(Gate::close).collect();
        let dropped = self.store.drop_partition(space, partition);
        self.memory.clear_space(space.0);
        drop(closed);
        dropped
    }

    /// Does background work: reclaim, expiry, periodic sync, and fits the cache to the memory cap.
    /// Call it from a thread of your own.
    pub fn maintain(&self, now: Timestamp, budget: Budget) -> Result<Maintenance> {
        let done = self.store.maintain(now, budget);
        // Also where that failed: index and tables may have grown all the same.
        self.fit_cache();
        let taken = self.figures_at.load(Ordering::Relaxed);
        if now.0.abs_diff(taken) >= FIGURES_MS {
            self.figures_at.store(now.0, Ordering::Relaxed);
            // Nobody has to ask for them now: who cannot wait for a shard later gets these.
            let _remembered = self.store.statistics();
        }
        done
    }

    /// On return every write acknowledged before the call survives power loss.
    pub fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    /// Writes a checkpoint so that the next open is fast; further writes are refused.
    pub fn close(&self, now: Timestamp) -> Result<()> {
        self.store.close(now)
    }

    /// Figures since the store was opened. Waits as [`Store::statistics`] does.
    pub fn statistics(&self) -> Statistics {
        self.with_store(&self.store.statistics())
    }

    /// Likewise, as [`Store::statistics_within`] has them.
    pub fn statistics_within(&self, patience: Duration) -> Statistics {
        self.with_store(&self.store.statistics_within(patience))
    }

    fn with_store(&self, store: &StoreStatistics) -> Statistics {
        let memory = self.memory.statistics();
        let mut all = Statistics::of(store, self.store.device().counters());
        for counters in &self.counters {
            all.gets += counters.gets.load(Ordering::Relaxed);
            all.memory_hits += counters.memory_hits.load(Ordering::Relaxed);
        }
        all.opening_written_bytes = self.opening_written_bytes;
        all.evicted_small = memory.evicted_small;
        all.evicted_main = memory.evicted_main;
        all.cache_bytes = self.memory.bytes();
        all
    }

    /// The flash store under it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether this is a cache, which may lose entries.
    pub fn evicts(&self) -> bool {
        self.options.store.reclaim == Reclaim::Evict
    }

    /// Bytes the cache may use now.
    pub fn cache_capacity(&self) -> u64 {
        self.cache_bytes.load(Ordering::Relaxed)
    }

    /// Whether there is no memory cache and nothing to decide: every operation is flash's alone.
    #[inline]
    pub(crate) fn is_uncached(&self) -> bool {
        self.options.cache_bytes == Some(0) && self.options.admission == Admission::Always
    }

    pub(crate) fn gate(&self, hash: u128) -> &Gate {
        &self.gates[(hash as u64 >> 32) as usize & (GATES - 1)]
    }

    /// Whether the cache has room for a new entry without evicting, by the last look at it.
    pub(crate) fn has_room(&self, value_bytes: usize) -> bool {
        let used = self.cache_used.fetch_add(value_bytes as u64, Ordering::Relaxed);
        used + used / 8 < self.cache_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that the cache can lend for a while, those that it has lent included: three quarters
    /// of it, for with less it would start afresh.
    pub fn lendable_bytes(&self) -> u64 {
        let lent = self.lent_bytes.load(Ordering::Relaxed);
        (self.cache_bytes.load(Ordering::Relaxed) + lent) / 4 * 3
    }

    /// Has the cache lend `bytes` in all, no more than it can: on return it does without them.
    pub fn lend(&self, bytes: u64) {
        let bytes = bytes.min(self.lendable_bytes());
        if self.lent_bytes.swap(bytes, Ordering::Relaxed) != bytes {
            self.fit_cache();
        }
    }

    /// Says how many bytes of the cap users above take from now on, in all: on return the cache
    /// does without them. Fewer than before give the rest back.
    ///
    /// Errors: `Full`, and nothing is changed, if that is more than may be reserved.
    pub fn reserve(&self, bytes: u64) -> Result<()> {
        if bytes > self.reservable_bytes {
            let detail = format!(
                "{bytes} bytes of the memory cap wanted; {} of its {} may be reserved; use less, \
                 or open the store with a larger part to reserve",
                self.reservable_bytes, self.options.memory_bytes
            );
            return Err(Error::new(ErrorKind::Full, detail));
        }
        if self.reserved_bytes.swap(bytes, Ordering::Relaxed) != bytes {
            self.fit_cache();
        }
        Ok(())
    }

    /// Bytes of the cap that users above may reserve.
    pub fn reservable_bytes(&self) -> u64 {
        self.reservable_bytes
    }

    /// Bytes of the cap that users above have reserved.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Gives the cache what index, buffers and tables leave of the cap, and nobody has borrowed or
    /// reserved.
    fn fit_cache(&self) {
        let _one = self.fitting.lock().unwrap_or_else(PoisonError::into_inner);
        self.cache_used.store(self.memory.bytes(), Ordering::Relaxed);
        let taken = self.store.memory_bytes() + SLACK_BYTES;
        let lent = self.lent_bytes.load(Ordering::Relaxed);
        let given = lent + self.reserved_bytes.load(Ordering::Relaxed);
        let left = self.options.memory_bytes.saturating_sub(taken + given);
        let wanted = self.options.cache_bytes.unwrap_or(u64::MAX).min(left).max(CACHE_BYTES_MIN);
        let current = self.cache_bytes.load(Ordering::Relaxed);
        // What the others took is given up by the slack's half; what they left waits for more.
        let least =
            if wanted < current { (current / 64).min(SLACK_BYTES / 2) } else { current / 64 };
        if wanted.abs_diff(current) > least {
            self.cache_bytes.store(wanted, Ordering::Relaxed);
            self.memory.resize(wanted);
        }
    }
}

impl Gate {
    /// Closes the gate until the guard is dropped.
    pub(crate) fn close(&self) -> Closed<'_> {
        self.begin();
        Closed { gate: self }
    }

    /// Begins a write; the stamp from then on, until another begins or ends.
    pub(crate) fn begin(&self) -> u64 {
        self.active.fetch_add(1, Ordering::AcqRel);
        self.stamp.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub(crate) fn end(&self) {
        self.stamp.fetch_add(1, Ordering::AcqRel);
        self.active.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.active.load(Ordering::Acquire) == 0
    }

    /// Whether the write that began with `stamp` has had no other beside it since.
    pub(crate) fn is_alone_since(&self, stamp: u64) -> bool {
        self.active.load(Ordering::Acquire) == 1 && self.is_at(stamp)
    }

    /// Whether no write has begun or ended since the stamp was `stamp`.
    pub(crate) fn is_at(&self, stamp: u64) -> bool {
        self.stamp.load(Ordering::Acquire) == stamp
    }
}

/// A closed gate.
pub(crate) struct Closed<'a> {
    gate: &'a Gate,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.gate.end();
    }
}

#[cfg(test)]
mod tests {
    use entresol_flash::StoreOptions;

    use super::{Admission, CACHE_SHARDS_MAX, Gate, TieredOptions};
    use crate::memory::{MemoryCache, mix};

    fn options(memory_bytes: u64, cache_bytes: Option<u64>) -> TieredOptions {
        let store = StoreOptions { shards: 2, ..StoreOptions::default() };
        TieredOptions { store, memory_bytes, cache_bytes, admission: Admission::Always }
    }

    /// Threads that met at the lock of the cache slept there.
    #[test]
    fn a_large_cache_has_many_locks_and_a_value_of_128_kib_finds_room_behind_each() {
        let value = vec![7; 128 << 10];
        let value = &value[..value.len() - 100];
        for mib in [24, 25, 100, 200, 257, 1 << 10] {
            let shards = options(1 << 40, Some(mib << 20)).cache_shards();
            assert!(mib < 192 || shards as u64 == CACHE_SHARDS_MAX, "{mib} MiB: {shards}");
            let cache = MemoryCache::new(mib << 20, shards).unwrap();
            let mut kept = 0;
            for number in 0..shards as u64 {
                let hash = u128::from(mix(number)) << 64 | u128::from(number);
                let key = number.to_be_bytes();
                let item = crate::memory::Cached {
                    space: 0,
                    key: &key,
                    value,
                    version: 1,
                    label: 0,
                    expiry_ms: 0,
                    idle_seconds: 0,
                    pinned: false,
                };
                cache.insert(hash, item);
                kept += usize::from(cache.get(hash, 0, &key, &mut |_| {}));
            }
            assert_eq!(kept, shards, "{mib} MiB");
        }
        assert_eq!(options(64 << 20, None).cache_shards(), 4, "no more than the memory cap");
        assert_eq!(options(1 << 30, Some(1 << 20)).cache_shards(), 2, "as many as the store");
    }

    /// A writer looked whether it was alone, and put its entry into the cache a moment later:
    /// another that began and ended between the two left the older value there for good.
    #[test]
    fn a_writer_is_alone_only_while_no_other_has_begun_or_ended_beside_it() {
        let gate = Gate::default();
        let stamp = gate.begin();
        assert!(gate.is_alone_since(stamp));
        let beside = gate.begin();
        assert!(!gate.is_alone_since(stamp) && !gate.is_alone_since(beside));
        gate.end();
        assert!(!gate.is_alone_since(stamp), "the other one was faster");
        gate.end();
        let stamp = gate.begin();
        assert!(gate.is_alone_since(stamp) && !gate.is_open());
    }
}
