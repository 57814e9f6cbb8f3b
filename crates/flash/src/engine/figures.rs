//! Figures of a store, added up from its shards: those of now, or the latest where the lock of a
//! shard is held for longer than whoever asks can wait.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::Engine;
use crate::log::Log;
use crate::segment::{SegmentState, Stream};
use crate::shard::Shard;
use crate::statistics::StoreStatistics;
use crate::types::{Owner, SpaceId};

/// Segments of a shard that are looked at for how much too large sizes are.
const SIZED_SEGMENTS: usize = 64;

impl Engine {
    pub(crate) fn count(&self, space: SpaceId) -> u64 {
        let of = |shard: &Mutex<Shard>| {
            shard.lock().counts().by_space().get(&space).map_or(0, |count| (*count).max(0) as u64)
        };
        self.shards.iter().map(of).sum()
    }

    pub(crate) fn count_partitions(&self, space: SpaceId) -> Vec<(u16, u64)> {
        let mut counts = BTreeMap::<u16, i64>::new();
        for shard in &self.shards {
            for (owner, count) in shard.lock().counts().iter().filter(|(of, _)| of.space == space) {
                *counts.entry(owner.partition).or_default() += count;
            }
        }
        counts.into_iter().map(|(partition, count)| (partition, count.max(0) as u64)).collect()
    }

    pub(crate) fn count_partition(&self, space: SpaceId, partition: u16) -> u64 {
        let (shards, owner) = (self.shards.iter(), Owner { space, partition });
        let counts = shards.map(|shard| shard.lock().counts().of_partition(owner));
        counts.sum::<i64>().max(0) as u64
    }

    pub(crate) fn spaces(&self) -> Vec<SpaceId> {
        let mut spaces = Vec::new();
        for shard in &self.shards {
            spaces.extend(
                shard.lock().counts().iter().filter(|(_, n)| *n > 0).map(|(of, _)| of.space),
            );
        }
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }

    pub(crate) fn is_short(&self) -> bool {
        self.shards.iter().any(|shard| {
            let shard = shard.lock();
            shard.log.free_count() <= (shard.log.reserve() + shard.log.free_target()) / 2
        })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let of = |shard: &Mutex<Shard>| shard.lock().memory_bytes();
        let shards: u64 = self.shards.iter().map(of).sum();
        shards + self.ahead_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn statistics(&self) -> StoreStatistics {
        let mut total = self.figures_of_store();
        for shard in &self.shards {
            add_shard(&mut total, &shard.lock());
        }
        self.remember(total)
    }

    /// No lock is waited for longer than `patience`, and the first that is is the last.
    pub(crate) fn statistics_within(&self, patience: Duration) -> StoreStatistics {
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
    let counters = shard.counters();
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
    let spaces = shard.counts().by_space();
    total.entries += spaces.values().sum::<i64>().max(0) as u64;
    for (space, count) in spaces {
        *total.entries_of.entry(space).or_default() += count.max(0) as u64;
    }
    let log = &shard.log;
    let segment_bytes = u64::from(log.shape().segment_bytes);
    total.pending_writes += log.pending_writes() as u64;
    total.segments += u64::from(log.shape().segments);
    total.segments_free += u64::from(log.free_count());
    total.allocated_bytes +=
        (u64::from(log.shape().segments) - u64::from(log.free_count())) * segment_bytes;
    total.capacity_bytes += u64::from(log.shape().segments) * segment_bytes;
    total.live_bytes += log.live_bytes();
    total.stored_live_bytes += stored_live_bytes(log);
    total.index_bytes += shard.index.bytes();
    total.buffer_bytes += log.buffer_bytes();
    total.other_bytes += shard.other_bytes();
    total.notes += shard.notes.len() as u64;
    if let Err(poisoned) = log.check_poisoned() {
        total.poisoned = Some(poisoned.to_string());
    }
}

/// About the bytes that live records take: as much less than the index says as what some segments
/// hold is less than it says of them.
fn stored_live_bytes(log: &Log) -> u64 {
    let (segments, room) = (log.segments(), u64::from(log.shape().segment_bytes));
    let apart = segments.len().div_ceil(SIZED_SEGMENTS).max(1);
    let (mut said, mut held) = (0, 0);
    for segment in segments.iter().step_by(apart) {
        let is_used = !matches!(segment.state, SegmentState::Free | SegmentState::Checkpoint);
        if is_used && segment.stream != Stream::Journal as u8 {
            said += u64::from(segment.used_bytes);
            held += u64::from(segment.used_bytes).min(room);
        }
    }
    let live = u128::from(log.live_bytes());
    let stored = (live * u128::from(held)).checked_div(u128::from(said));
    let used = (segments.len() as u64).saturating_sub(u64::from(log.free_count())) * room;
    stored.map_or(log.live_bytes(), |stored| stored as u64).min(used)
}
