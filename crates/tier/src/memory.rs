//! The cache of entries in memory: S3-FIFO (Yang et al., SOSP 2023) over queues of chunks.
//!
//! Entries are appended to chunks; a chunk is freed when the last of its entries is evicted from the
//! tail of its queue. So there is no fragmentation and no allocation for an entry, and the cap is
//! kept to the byte, the cache's own index included.
//!
//! Who is kept: a new entry goes to the *small* queue, a tenth of the memory. At its tail, one that
//! was hit moves to the *main* queue; another leaves, and its fingerprint is remembered: if it is
//! inserted again soon, it goes to main at once. At main's tail, a hit entry goes round again.
//!
//! Freshness: between `begin_write` and its end nobody can fill the cache with what that write
//! replaces, and a fill is refused if a write of (about) that key ended since its lookup.
//!
//! Lock order: one shard at a time; no other lock is taken under it, except by `visit`.

mod entry;
mod ghost;
mod shard;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use entresol_flash::{Expiry, Pinning, Result, SpaceId, Timestamp, Version};
use parking_lot::Mutex;

use shard::Shard;
#[cfg(test)]
pub(crate) use tests::mix;

/// A bounded cache of entries. Thread-safe.
#[derive(Debug)]
pub(crate) struct MemoryCache {
    shards: Vec<Mutex<Shard>>,
}

/// Names an entry of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheKey<'a> {
    /// The hash of space and key that the store uses.
    pub(crate) hash: u128,
    /// The table.
    pub(crate) space: SpaceId,
    /// The key's bytes.
    pub(crate) bytes: &'a [u8],
}

/// An entry as the cache holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cached<'a> {
    /// Whose.
    pub(crate) key: CacheKey<'a>,
    /// The caller's partition.
    pub(crate) partition: u16,
    /// The value's bytes.
    pub(crate) value: &'a [u8],
    /// Which put wrote it.
    pub(crate) version: Version,
    /// The caller's byte.
    pub(crate) label: u8,
    /// When it ends.
    pub(crate) expiry: Expiry,
    /// Whether a flash cache may evict it. This cache may, always.
    pub(crate) pinning: Pinning,
    /// A word of the tier's.
    pub(crate) extra: u64,
}

/// How a lookup ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The entry was visited.
    Hit,
    /// It is not here. Read it from flash and pass the ticket to `fill`.
    Miss(FillTicket),
}

/// Lets the value read after a miss into the cache unless it may be stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FillTicket(u32);

/// A write under way; given to exactly one of `insert`, `update`, `end_write` and `invalidate`.
#[derive(Debug)]
#[must_use = "fills of the key are refused until the write has ended"]
pub(crate) struct WriteTicket {
    hash: u128,
}

/// Figures of the cache since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemoryStatistics {
    /// Lookups that found the entry.
    pub(crate) hits: u64,
    /// Lookups that did not.
    pub(crate) misses: u64,
    /// Entries put in, updates included.
    pub(crate) inserts: u64,
    /// Inserts of entries that had left the small queue lately.
    pub(crate) ghost_hits: u64,
    /// Entries evicted from the small queue.
    pub(crate) evicted_small: u64,
    /// Entries evicted from the main queue.
    pub(crate) evicted_main: u64,
    /// Entries dropped because their time was over.
    pub(crate) expired: u64,
    /// Entries held now.
    pub(crate) entries: u64,
    /// Memory used now, bytes.
    pub(crate) bytes: u64,
}

impl MemoryCache {
    /// An empty cache that uses at most `capacity_bytes` of memory, split over `shards` locks. Below
    /// some 300 KiB a shard it holds next to nothing. Fails if address space cannot be reserved.
    pub(crate) fn new(capacity_bytes: u64, shards: usize) -> Result<MemoryCache> {
        let each = capacity_bytes / shards as u64;
        let shards = (0..shards).map(|_| Ok(Mutex::new(Shard::new(each)?)));
        Ok(MemoryCache { shards: shards.collect::<Result<_>>()? })
    }

    /// Visits the entry of `key` if it is here and its time is not over. The visit is under the
    /// shard's lock: copy out, call nothing that locks.
    #[inline]
    pub(crate) fn get(
        &self,
        key: CacheKey<'_>,
        now: Timestamp,
        visit: &mut dyn FnMut(Cached<'_>),
    ) -> Looked {
        self.shard(key.hash).lock().get(&key, now, visit)
    }

    /// Starts loading what a `get` will touch first; nothing if the shard is in use.
    pub(crate) fn prefetch(&self, hash: u128) {
        if let Some(shard) = self.shard(hash).try_lock() {
            shard.prefetch(hash);
        }
    }

    /// Puts in what was read from flash after a miss, unless a write came between.
    pub(crate) fn fill(&self, ticket: FillTicket, item: &Cached<'_>, now: Timestamp) {
        self.shard(item.key.hash).lock().fill(ticket, item, now);
    }

    /// Call before the store is changed, and one of the four below after, before the write is
    /// acknowledged.
    pub(crate) fn begin_write(&self, hash: u128) -> WriteTicket {
        self.shard(hash).lock().begin_write(hash);
        WriteTicket { hash }
    }

    /// Ends a put: the cache holds the new entry.
    pub(crate) fn insert(&self, ticket: WriteTicket, item: &Cached<'_>, now: Timestamp) {
        let mut shard = self.shard(ticket.hash).lock();
        if shard.end_write(ticket.hash) {
            shard.put(item, now);
        } else {
            shard.remove(&item.key);
        }
    }

    /// Ends a put: the cache holds the new entry if it held the old one.
    pub(crate) fn update(&self, ticket: WriteTicket, item: &Cached<'_>, now: Timestamp) {
        let mut shard = self.shard(ticket.hash).lock();
        let alone = shard.end_write(ticket.hash);
        if !alone {
            shard.remove(&item.key);
        } else if shard.holds(&item.key) {
            shard.put(item, now);
        }
    }

    /// Ends a remove, or any write of which the cache should hold nothing.
    pub(crate) fn invalidate(&self, ticket: WriteTicket, key: &CacheKey<'_>) {
        let mut shard = self.shard(ticket.hash).lock();
        shard.end_write(ticket.hash);
        shard.remove(key);
    }

    /// Ends a write that changed nothing.
    pub(crate) fn end_write(&self, ticket: WriteTicket) {
        self.shard(ticket.hash).lock().end_write(ticket.hash);
    }

    /// Drops the entries of `space`, and those on their way in.
    pub(crate) fn clear_space(&self, space: SpaceId) {
        self.shards.iter().for_each(|shard| shard.lock().clear(&|key| key.space() == space));
    }

    /// Drops the entries of one partition of `space`, and those on their way in.
    pub(crate) fn clear_partition(&self, space: SpaceId, partition: u16) {
        let gone = |key: &entry::Stored<'_>| key.space() == space && key.partition() == partition;
        self.shards.iter().for_each(|shard| shard.lock().clear(&gone));
    }

    /// Changes the cap; on return the memory above it is given back. A change to less than a quarter
    /// or more than four times starts afresh.
    pub(crate) fn resize(&self, capacity_bytes: u64) {
        let each = capacity_bytes / self.shards.len() as u64;
        self.shards.iter().for_each(|shard| shard.lock().resize(each));
    }

    /// Memory used now, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    /// Figures, summed over the shards.
    pub(crate) fn statistics(&self) -> MemoryStatistics {
        self.shards.iter().fold(MemoryStatistics::default(), |sum, shard| {
            let one = shard.lock().statistics();
            MemoryStatistics {
                hits: sum.hits + one.hits,
                misses: sum.misses + one.misses,
                inserts: sum.inserts + one.inserts,
                ghost_hits: sum.ghost_hits + one.ghost_hits,
                evicted_small: sum.evicted_small + one.evicted_small,
                evicted_main: sum.evicted_main + one.evicted_main,
                expired: sum.expired + one.expired,
                entries: sum.entries + one.entries,
                bytes: sum.bytes + one.bytes,
            }
        })
    }

    /// The index uses the upper half of the hash, the choice of shard the lower.
    fn shard(&self, hash: u128) -> &Mutex<Shard> {
        &self.shards[hash as u64 as usize % self.shards.len()]
    }
}
