//! The cache of entries in memory: S3-FIFO (Yang et al., SOSP 2023) over queues of chunks.
//!
//! Entries are appended to chunks; a chunk is freed when the last of its entries is evicted from
//! the tail of its queue. So there is no fragmentation and no allocation for an entry, and the cap
//! is kept to the byte, the cache's own index included.
//!
//! Who is kept: a new entry goes to the *small* queue, a tenth of the memory. At its tail, one that
//! was hit moves to the *main* queue; another leaves, and its fingerprint is remembered: if it is
//! inserted again soon, it goes to main at once. At main's tail, a hit entry goes round again.
//! What gets find on flash is *thinned* where the small queue does nothing for it (`thinning`).
//!
//! It knows no time and no order of writes: the tier drops what is over, and keeps out what a write
//! under way may make stale. An earlier version never replaces a later one.
//!
//! Lock order: one shard at a time; no other lock is taken under it, except by `visit`.

mod chunk;
mod entry;
mod ghost;
mod shard;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod thinning;

use entresol_flash::Result;
use parking_lot::{Mutex, MutexGuard};

use chunk::ChunkMemory;
use shard::Shard;
#[cfg(test)]
pub(crate) use tests::mix;

/// A bounded cache of entries. Thread-safe.
#[derive(Debug)]
pub(crate) struct MemoryCache {
    shards: Vec<Mutex<Shard>>,
}

/// Looks at a shard that is in use before whoever wants it goes to sleep.
const LOOKS_MAX: usize = 100;

/// An entry as the cache keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cached<'a> {
    /// Its space.
    pub(crate) space: u16,
    /// Its key.
    pub(crate) key: &'a [u8],
    /// Its value.
    pub(crate) value: &'a [u8],
    /// Its version.
    pub(crate) version: u64,
    /// The caller's byte.
    pub(crate) label: u8,
    /// Absolute end, ms since the epoch; 0: none.
    pub(crate) expiry_ms: u64,
    /// Idle end, seconds; 0: none.
    pub(crate) idle_seconds: u32,
    /// Whether it is pinned on flash. Here it is evicted like any other.
    pub(crate) pinned: bool,
}

/// Figures of the cache since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemoryStatistics {
    /// Entries put in, updates included.
    pub(crate) inserts: u64,
    /// Inserts of entries that had left the small queue lately.
    pub(crate) ghost_hits: u64,
    /// Entries evicted from the small queue.
    pub(crate) evicted_small: u64,
    /// Entries evicted from the main queue.
    pub(crate) evicted_main: u64,
    /// Entries held now.
    pub(crate) entries: u64,
    /// Memory used now, bytes.
    pub(crate) bytes: u64,
}

impl MemoryCache {
    /// An empty cache that uses at most `capacity_bytes` of memory, split over `shards` locks.
    /// Below some 300 KiB a shard it holds next to nothing. Fails if address space cannot be
    /// reserved.
    pub(crate) fn new(capacity_bytes: u64, shards: usize) -> Result<MemoryCache> {
        let each = capacity_bytes / shards as u64;
        let memory = ChunkMemory::new(each, shards)?;
        let shards = (0..shards).map(|_| Ok(Mutex::new(Shard::new(each, memory.clone())?)));
        Ok(MemoryCache { shards: shards.collect::<Result<_>>()? })
    }

    /// Visits the entry of the key if it is here; whether it is. The visit is under the shard's
    /// lock: copy out, call nothing that locks.
    #[inline]
    pub(crate) fn get(
        &self,
        hash: u128,
        space: u16,
        key: &[u8],
        visit: &mut dyn FnMut(Cached<'_>),
    ) -> bool {
        self.enter(hash).get(hash, (space, key), visit)
    }

    /// Starts loading what a `get` will touch first; nothing if the shard is in use.
    pub(crate) fn prefetch(&self, hash: u128) {
        if let Some(shard) = self.shard(hash).try_lock() {
            shard.prefetch(hash);
        }
    }

    /// Starts loading the entry that `hash` leads to, if there is one; true if so. The index is
    /// looked at: `prefetch` should have been called before.
    pub(crate) fn prefetch_entry(&self, hash: u128) -> bool {
        self.shard(hash).try_lock().is_some_and(|mut shard| shard.prefetch_entry(hash))
    }

    /// Puts `item` in, in place of an earlier version.
    #[cfg(test)]
    pub(crate) fn insert(&self, hash: u128, item: Cached<'_>) {
        self.shard(hash).lock().put(hash, &item);
    }

    /// Puts what a get found on flash in, in place of an earlier version, if `is_latest` says so.
    /// It is asked under the shard's lock, which whoever makes the item stale takes after it has:
    /// either it is seen here, or it finds the item.
    pub(crate) fn insert_found_if(
        &self,
        hash: u128,
        item: Cached<'_>,
        is_latest: &dyn Fn() -> bool,
    ) {
        let mut shard = self.shard(hash).lock();
        if is_latest() {
            shard.put_found(hash, &item);
        }
    }

    /// As `insert_found_if`, of what nobody has asked for yet, unless an entry of its key is here.
    pub(crate) fn insert_ahead_if(
        &self,
        hash: u128,
        item: Cached<'_>,
        is_latest: &dyn Fn() -> bool,
    ) {
        let mut shard = self.shard(hash).lock();
        if is_latest() && !shard.holds(hash, (item.space, item.key)) {
            shard.put_ahead(hash, &item);
        }
    }

    /// Puts `item` in if `is_latest` says so, asked as by `insert_found_if`, and there is `room` or
    /// an entry of its key to replace. If it is not the latest, none of its key stays.
    pub(crate) fn replace(
        &self,
        hash: u128,
        item: Cached<'_>,
        room: bool,
        is_latest: &dyn Fn() -> bool,
    ) {
        let mut shard = self.shard(hash).lock();
        if !is_latest() {
            shard.remove(hash, (item.space, item.key));
        } else if room || shard.holds(hash, (item.space, item.key)) {
            shard.put(hash, &item);
        }
    }

    /// Drops the entry of the key.
    pub(crate) fn invalidate(&self, hash: u128, space: u16, key: &[u8]) {
        self.shard(hash).lock().remove(hash, (space, key));
    }

    /// Drops the entries of `space`.
    pub(crate) fn clear_space(&self, space: u16) {
        self.shards.iter().for_each(|shard| shard.lock().clear(space));
    }

    /// Changes the cap; on return the memory above it is given back. A change to less than a
    /// quarter or more than four times starts afresh.
    pub(crate) fn resize(&self, capacity_bytes: u64) {
        let each = capacity_bytes / self.shards.len() as u64;
        let mut fresh: Option<ChunkMemory> = None;
        let mut fresh_memory = || match &fresh {
            Some(memory) => Ok(memory.clone()),
            None => Ok(fresh.insert(ChunkMemory::new(each, self.shards.len())?).clone()),
        };
        for shard in &self.shards {
            shard.lock().resize(each, &mut fresh_memory);
            // The lock is free between the steps: nobody waits for all of the memory to be freed.
            while shard.lock().shrink_step() {}
        }
    }

    /// Memory used now, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    /// How far the chunks in use reach in their arena, bytes.
    #[cfg(test)]
    fn arena_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().arena_bytes()).max().unwrap_or(0)
    }

    /// Figures, summed over the shards.
    pub(crate) fn statistics(&self) -> MemoryStatistics {
        self.shards.iter().fold(MemoryStatistics::default(), |sum, shard| {
            let one = shard.lock().statistics();
            MemoryStatistics {
                inserts: sum.inserts + one.inserts,
                ghost_hits: sum.ghost_hits + one.ghost_hits,
                evicted_small: sum.evicted_small + one.evicted_small,
                evicted_main: sum.evicted_main + one.evicted_main,
                entries: sum.entries + one.entries,
                bytes: sum.bytes + one.bytes,
            }
        })
    }

    /// The shard of a hash, for a visit. Whoever has it lets go within the time of a visit: to look
    /// a few times is less than to go to sleep.
    #[inline]
    fn enter(&self, hash: u128) -> MutexGuard<'_, Shard> {
        let shard = self.shard(hash);
        for _ in 0..LOOKS_MAX {
            // A look takes nothing from the processor that has it, as a try would.
            if !shard.is_locked()
                && let Some(entered) = shard.try_lock()
            {
                return entered;
            }
            std::hint::spin_loop();
        }
        shard.lock()
    }

    /// The index uses the upper half of the hash, the choice of shard the lower.
    #[inline]
    fn shard(&self, hash: u128) -> &Mutex<Shard> {
        let (hash, shards) = (hash as u64 as usize, self.shards.len());
        // A division of 64 bits is slow.
        &self.shards[if shards.is_power_of_two() { hash & (shards - 1) } else { hash % shards }]
    }
}
