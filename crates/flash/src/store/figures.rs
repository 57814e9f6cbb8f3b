//! Figures of a store, added up from its shards: those of now, or the latest where the lock of a
//! shard is held for longer than whoever asks can wait.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::Inner;
use crate::shard::Shard;
use crate::statistics::StoreStatistics;
use crate::types::SpaceId;

impl Inner {
    pub(super) fn statistics(&self) -> StoreStatistics {
        let mut total = self.figures_of_store();
        for shard in &self.shards {
            add_shard(&mut total, &shard.lock());
        }
        self.remember(total)
    }

    /// No lock is waited for longer than `patience`, and the first that is is the last.
    pub(super) fn statistics_within(&self, patience: Duration) -> StoreStatistics {
        let mut total = self.figures_of_store();
        for shard in &self.shards {
            match shard.try_lock_for(patience) {
                Some(shard) => add_shard(&mut total, &shard),
                None => return self.with_counts_of_sessions(self.latest.lock().clone()),
            }
        }
        self.remember(total)
    }

    /// The figures of the shards of a store that nobody has yet.
    pub(crate) fn first_figures(&mut self) {
        let mut total = self.figures_of_store();
        self.shards.iter_mut().map(Mutex::get_mut).for_each(|one| add_shard(&mut total, one));
        *self.latest.get_mut() = total;
    }

    fn figures_of_store(&self) -> StoreStatistics {
        StoreStatistics {
            opened: self.opened,
            former_buffers: self.buffers.former().clone(),
            buffers_remade: self.buffers.remade(),
            ground: self.buffers.ground(),
            ..StoreStatistics::default()
        }
    }

    fn remember(&self, total: StoreStatistics) -> StoreStatistics {
        self.latest.lock().clone_from(&total);
        self.with_counts_of_sessions(total)
    }

    fn with_counts_of_sessions(&self, mut total: StoreStatistics) -> StoreStatistics {
        for counters in &self.session_counters {
            total.gets_flash += counters.gets_flash.load(Ordering::Relaxed);
            total.gets_missed += counters.gets_missed.load(Ordering::Relaxed);
            total.collisions_get += counters.collisions_get.load(Ordering::Relaxed);
            total.segments_ahead += counters.segments_ahead.load(Ordering::Relaxed);
            total.damaged += counters.damaged.load(Ordering::Relaxed);
        }
        total.other_bytes += self.ahead_bytes.load(Ordering::Relaxed);
        total
    }
}

fn add_shard(total: &mut StoreStatistics, shard: &Shard) {
    let counters = &shard.counters;
    total.gets_memory += counters.gets_memory;
    total.gets_flash += counters.gets_flash;
    total.gets_missed += counters.gets_missed;
    total.puts += counters.puts;
    total.removes += counters.removes;
    total.touches += counters.touches;
    total.overwrites += counters.overwrites;
    total.collisions_get += counters.collisions_get;
    total.collisions_put += counters.collisions_put;
    total.expired += counters.expired;
    total.evicted += counters.evicted;
    total.user_bytes += counters.user_bytes;
    total.moved_bytes += counters.moved_bytes;
    total.segments_reclaimed += counters.segments_reclaimed;
    total.reclaims_by_writers += counters.reclaims_by_writers;
    total.steps_by_writers += counters.steps_by_writers;
    total.key_sizes.merge(&counters.key_sizes);
    total.value_sizes.merge(&counters.value_sizes);
    total.entries += shard.counts.values().sum::<i64>().max(0) as u64;
    let mut spaces = BTreeMap::<SpaceId, i64>::new();
    for ((space, _), count) in &shard.counts {
        *spaces.entry(*space).or_default() += count;
    }
    for (space, count) in spaces {
        *total.entries_of.entry(space).or_default() += count.max(0) as u64;
    }
    let log = &shard.log;
    let segment_bytes = u64::from(log.shape.segment_bytes);
    total.pending_writes += log.pending_writes() as u64;
    total.segments += u64::from(log.shape.segments);
    total.segments_free += u64::from(log.free_count());
    total.allocated_bytes +=
        (u64::from(log.shape.segments) - u64::from(log.free_count())) * segment_bytes;
    total.capacity_bytes += u64::from(log.shape.segments) * segment_bytes;
    total.live_bytes += log.live_bytes;
    total.index_bytes += shard.index.bytes();
    total.buffer_bytes += log.buffer_bytes();
    total.other_bytes += shard.other_bytes();
    total.notes += shard.notes.len() as u64;
    if let Err(poisoned) = log.check_poisoned() {
        total.poisoned = Some(poisoned.to_string());
    }
}
