//! The cache of entries in memory.

/// An entry as the cache keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cached<'a> {
    /// Its space.
    pub space: u16,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Its version.
    pub version: u64,
    /// The caller's byte.
    pub label: u8,
    /// Absolute end, ms; 0: none.
    pub expiry_ms: u64,
    /// Idle end, seconds; 0: none.
    pub idle_seconds: u32,
    /// Whether it is pinned on flash.
    pub pinned: bool,
}

/// Counts of the cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryStatistics {
    /// Hits.
    pub hits: u64,
    /// Evictions from the small queue.
    pub evicted_small: u64,
    /// Evictions from the main queue.
    pub evicted_main: u64,
    /// Bytes in use.
    pub bytes: u64,
}

/// The cache.
#[derive(Debug)]
pub struct MemoryCache {}

impl MemoryCache {
    /// A cache of `capacity_bytes`.
    pub fn new(_capacity_bytes: u64, _shards: usize) -> MemoryCache {
        MemoryCache {}
    }
    /// Looks up.
    pub fn get(&self, _h: u128, _s: u16, _k: &[u8], _v: &mut dyn FnMut(Cached<'_>)) -> bool {
        false
    }
    /// Inserts or replaces.
    pub fn insert(&self, _hash: u128, _item: Cached<'_>) {}
    /// Replaces if present.
    pub fn update_if_present(&self, _hash: u128, _item: Cached<'_>) -> bool {
        false
    }
    /// Forgets.
    pub fn invalidate(&self, _hash: u128, _space: u16, _key: &[u8]) {}
    /// Forgets a space.
    pub fn clear_space(&self, _space: u16) {}
    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        0
    }
    /// Changes the capacity.
    pub fn resize(&self, _capacity_bytes: u64) {}
    /// Counts.
    pub fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics::default()
    }
}
