//! Figures of a tiered store.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use entresol_device::Counters;
use entresol_flash::{Sizes, SpaceId, StoreStatistics};

/// Figures since the store was opened; sizes in bytes.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Gets.
    pub gets: u64,
    /// Gets answered from the cache in memory.
    pub memory_hits: u64,
    /// Gets answered from write buffers and recent segments in memory.
    pub buffer_hits: u64,
    /// Gets answered from flash.
    pub flash_hits: u64,
    /// Gets of absent keys.
    pub misses: u64,
    /// Segments read ahead of gets in the order of the log.
    pub segments_ahead: u64,
    /// Puts.
    pub puts: u64,
    /// Removes that found an entry.
    pub removes: u64,
    /// Touches.
    pub touches: u64,
    /// Puts that replaced an entry (as far as known without a read).
    pub overwrites: u64,
    /// Reads of a record that turned out to have another key, on behalf of gets.
    pub collisions_get: u64,
    /// Overwrites that turned out to be of another key, on behalf of puts.
    pub collisions_put: u64,
    /// Times that a get, a write or a scan met a record that does not verify.
    pub damaged: u64,
    /// Entries that expired.
    pub expired: u64,
    /// Entries evicted from flash (caches).
    pub evicted_flash: u64,
    /// Entries evicted from the small queue of the memory cache.
    pub evicted_small: u64,
    /// Entries evicted from the main queue of the memory cache.
    pub evicted_main: u64,
    /// Entries on flash now.
    pub entries: u64,
    /// Entries on flash now, by space.
    pub entries_of: BTreeMap<SpaceId, u64>,
    /// Bytes of the device that records may take, those that reclaim needs included.
    pub capacity_bytes: u64,
    /// Writes of the log that are with the device now.
    pub pending_io: u64,
    /// Bytes of the device given to segments.
    pub flash_allocated_bytes: u64,
    /// Bytes of live records.
    pub flash_live_bytes: u64,
    /// Key and value bytes that callers put.
    pub user_written_bytes: u64,
    /// Bytes written to the device.
    pub device_written_bytes: u64,
    /// Of those, what the opening wrote: the whole of a file that was made.
    pub opening_written_bytes: u64,
    /// Write requests to the device.
    pub device_writes: u64,
    /// Bytes read from the device.
    pub device_read_bytes: u64,
    /// Read requests to the device.
    pub device_reads: u64,
    /// Syncs, durable writes included.
    pub device_syncs: u64,
    /// Record bytes that reclaim copied forward.
    pub reclaim_moved_bytes: u64,
    /// Segments that reclaim freed.
    pub reclaim_segments: u64,
    /// Writes that found no room and waited until there was some.
    pub reclaims_by_writers: u64,
    /// Times a write decided a few records of a segment that reclaim was behind with.
    pub steps_by_writers: u64,
    /// Segments, all.
    pub segments: u64,
    /// Segments free now.
    pub segments_free: u64,
    /// Memory of the index, bytes.
    pub index_bytes: u64,
    /// Memory of write buffers, bytes.
    pub buffer_bytes: u64,
    /// Memory of the cache, bytes.
    pub cache_bytes: u64,
    /// Memory of tables, notes and the rest, bytes.
    pub other_bytes: u64,
    /// Times that write buffers were made again since somebody removed them.
    pub buffers_remade: u64,
    /// Whether something is wrong with where the store's files or its write buffers are.
    pub ground_lost: u64,
    /// Whether a failed write or sync poisoned the store.
    pub poisoned: bool,
    /// Sizes of keys put.
    pub key_bytes: Distribution,
    /// Sizes of values put.
    pub value_bytes: Distribution,
}

impl Statistics {
    /// What the flash store and its device counted.
    pub(crate) fn of(store: &StoreStatistics, device: &Counters) -> Statistics {
        Statistics {
            gets: 0,
            memory_hits: 0,
            buffer_hits: store.gets_memory,
            flash_hits: store.gets_flash,
            misses: store.gets_missed,
            segments_ahead: store.segments_ahead,
            puts: store.puts,
            removes: store.removes,
            touches: store.touches,
            overwrites: store.overwrites,
            collisions_get: store.collisions_get,
            collisions_put: store.collisions_put,
            damaged: store.damaged,
            expired: store.expired,
            evicted_flash: store.evicted,
            evicted_small: 0,
            evicted_main: 0,
            entries: store.entries,
            entries_of: store.entries_of.clone(),
            capacity_bytes: store.capacity_bytes,
            pending_io: store.pending_writes,
            flash_allocated_bytes: store.allocated_bytes,
            flash_live_bytes: store.live_bytes,
            user_written_bytes: store.user_bytes,
            device_written_bytes: device.written_bytes.load(Ordering::Relaxed),
            opening_written_bytes: 0,
            device_writes: device.writes.load(Ordering::Relaxed),
            device_read_bytes: device.read_bytes.load(Ordering::Relaxed),
            device_reads: device.reads.load(Ordering::Relaxed),
            device_syncs: device.syncs.load(Ordering::Relaxed),
            reclaim_moved_bytes: store.moved_bytes,
            reclaim_segments: store.segments_reclaimed,
            reclaims_by_writers: store.reclaims_by_writers,
            steps_by_writers: store.steps_by_writers,
            segments: store.segments,
            segments_free: store.segments_free,
            index_bytes: store.index_bytes,
            buffer_bytes: store.buffer_bytes,
            cache_bytes: 0,
            other_bytes: store.other_bytes,
            buffers_remade: store.buffers_remade,
            ground_lost: u64::from(store.ground.is_some()),
            poisoned: store.poisoned.is_some(),
            key_bytes: Distribution::of(&store.key_sizes),
            value_bytes: Distribution::of(&store.value_sizes),
        }
    }

    /// All figures that are plain numbers, each with its unit in its name.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("gets", self.gets),
            ("memory_hits", self.memory_hits),
            ("buffer_hits", self.buffer_hits),
            ("flash_hits", self.flash_hits),
            ("misses", self.misses),
            ("segments_ahead", self.segments_ahead),
            ("puts", self.puts),
            ("removes", self.removes),
            ("touches", self.touches),
            ("overwrites", self.overwrites),
            ("collisions_get", self.collisions_get),
            ("collisions_put", self.collisions_put),
            ("damaged", self.damaged),
            ("expired", self.expired),
            ("evicted_flash", self.evicted_flash),
            ("evicted_small", self.evicted_small),
            ("evicted_main", self.evicted_main),
            ("entries", self.entries),
            ("pending_io", self.pending_io),
            ("flash_allocated_bytes", self.flash_allocated_bytes),
            ("flash_live_bytes", self.flash_live_bytes),
            ("user_written_bytes", self.user_written_bytes),
            ("device_written_bytes", self.device_written_bytes),
            ("device_writes", self.device_writes),
            ("device_read_bytes", self.device_read_bytes),
            ("device_reads", self.device_reads),
            ("device_syncs", self.device_syncs),
            ("reclaim_moved_bytes", self.reclaim_moved_bytes),
            ("reclaim_segments", self.reclaim_segments),
            ("reclaims_by_writers", self.reclaims_by_writers),
            ("steps_by_writers", self.steps_by_writers),
            ("segments", self.segments),
            ("segments_free", self.segments_free),
            ("index_bytes", self.index_bytes),
            ("buffer_bytes", self.buffer_bytes),
            ("cache_bytes", self.cache_bytes),
            ("other_bytes", self.other_bytes),
            ("buffers_remade", self.buffers_remade),
            ("ground_lost", self.ground_lost),
        ]
    }

    /// Bytes written to the device for each byte that callers put, without what the opening wrote.
    pub fn write_amplification(&self) -> f64 {
        let written = self.device_written_bytes.saturating_sub(self.opening_written_bytes);
        written as f64 / self.user_written_bytes.max(1) as f64
    }
}

/// A distribution of sizes, out of counts in log-linear buckets; mean and deviation are exact.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The geometric mean (of value + 1, less 1).
    pub geometric_mean: f64,
    /// The standard deviation.
    pub standard_deviation: f64,
    /// (percentile, value) pairs: 50, 90, 99, 99.9.
    pub percentiles: Vec<(f64, u64)>,
}

impl Distribution {
    fn of(sizes: &Sizes) -> Distribution {
        if sizes.count == 0 {
            return Distribution::default();
        }
        let mean = sizes.sum / sizes.count as f64;
        let variance = (sizes.squares / sizes.count as f64 - mean * mean).max(0.0);
        Distribution {
            count: sizes.count,
            min: sizes.min,
            max: sizes.max,
            mean,
            geometric_mean: sizes.geometric_mean(),
            standard_deviation: variance.sqrt(),
            percentiles: [50.0, 90.0, 99.0, 99.9].map(|p| (p, sizes.percentile(p))).to_vec(),
        }
    }
}
