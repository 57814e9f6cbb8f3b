//! What a run varies, all of it drawn from its seed: what keys and values are like, what time does,
//! and the options that a store is made and opened again with.

use std::num::NonZeroU32;
use std::path::Path;

use entresol_flash::{
    Compression, Condition, Durability, EncryptionKey, Reclaim, StoreOptions, Version, WriteMode,
};
use entresol_sim::Random;

use crate::devices::Devices;
use crate::history::{Ends, Kept, Name, Put, SPACES, State};
use crate::requests::Request;

/// Longer than any entry lives that a plan draws, but those that live for years.
pub(crate) const ENDS_MS_MAX: u64 = 10_000_000;

/// What stays as it is for a whole run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub keys: u64,
    pub segment_bytes: u32,
    pub shards: u16,
    /// Few, so that they are reused all the time.
    pub segments_per_shard: u64,
    /// Values are as long as it takes to have the store full at times.
    pub crowded: bool,
    /// Some values take several segments.
    pub large_values: bool,
    /// Some entries end.
    pub ends: bool,
    /// The index cannot tell many of the keys apart.
    pub collides: bool,
    /// How far apart times are: a store has to live through ends of seconds, and of minutes.
    pub stretch: u64,
    /// The clock leaps ahead and back all the time.
    pub restless_clock: bool,
    /// A store may be opened as a cache, and a cache as a store.
    pub turns: bool,
    /// At the end the store is filled.
    pub fills: bool,
    /// It begins with a part of the device, and takes more of it when it is opened again.
    pub grows: bool,
    /// How many devices it lies on, and bytes of each before the next.
    pub members: (u64, u64),
}

impl Plan {
    pub(crate) fn draw(random: &mut Random) -> Plan {
        let segment_bytes = if random.one_in(3) { 128u32 << 10 } else { 64 << 10 };
        Plan {
            keys: [20, 60, 200][random.below(3) as usize],
            segment_bytes,
            shards: 1 + random.below(2) as u16,
            segments_per_shard: 16 + random.below(30),
            crowded: random.one_in(4),
            large_values: random.one_in(2),
            ends: !random.one_in(4),
            collides: random.one_in(4),
            stretch: [1, 1, 10, 100][random.below(4) as usize],
            restless_clock: random.one_in(3),
            turns: random.one_in(3),
            fills: random.one_in(4),
            grows: random.one_in(3),
            members: match random.below(4) {
                0 => (2 + random.below(2), 4096 << random.below(6)),
                _ => (1, 4096),
            },
        }
    }

    pub(crate) fn devices(&self, seed: u64) -> Devices {
        Devices::new(seed, self.bytes_of(self.segments_per_shard), self.members)
    }

    /// Bytes of a store with so many segments a shard.
    fn bytes_of(&self, segments: u64) -> u64 {
        let segment_bytes = u64::from(self.segment_bytes);
        segment_bytes.max(128 << 10) + segments * u64::from(self.shards) * segment_bytes
    }

    fn log_bytes(&self) -> u64 {
        u64::from(self.shards) * self.segments_per_shard * u64::from(self.segment_bytes)
    }

    /// The options that the store is made with.
    pub(crate) fn options(&self, random: &mut Random, directory: &Path) -> StoreOptions {
        StoreOptions {
            capacity_bytes: self.grows.then(|| self.bytes_of(16)),
            segment_bytes: self.segment_bytes,
            shards: self.shards,
            durability: durability(random),
            reclaim: if random.one_in(3) { Reclaim::Evict } else { Reclaim::Compact },
            compression: compression(random),
            encryption: random.one_in(2).then_some(EncryptionKey([3; 32])),
            buffer_directory: random.one_in(2).then(|| directory.to_owned()),
            buffers_per_shard: 6 + random.below(4) as u16,
            write_mode: write_mode(random),
            boot: 1,
            seed: random.next_u64(),
            index_hash_bits: if self.collides { 5 + random.below(8) as u32 } else { 64 },
            ..StoreOptions::default()
        }
    }

    /// Changes some of the options that a store may be opened again with.
    pub(crate) fn change(&self, random: &mut Random, options: &mut StoreOptions) {
        if random.one_in(2) {
            return;
        }
        options.durability = durability(random);
        options.compression = compression(random);
        options.buffers_per_shard = 6 + random.below(6) as u16;
        options.write_mode = write_mode(random);
        if random.one_in(4) {
            // The store keeps the shape that it was made with.
            (options.shards, options.segment_bytes) = (5, 1 << 20);
        }
        if let Some(bytes) = options.capacity_bytes {
            let more = self.bytes_of(random.below(6)) - self.bytes_of(0);
            options.capacity_bytes = Some(bytes + more);
        }
        if self.turns && random.one_in(2) {
            options.reclaim = if random.one_in(2) { Reclaim::Evict } else { Reclaim::Compact };
        }
    }

    pub(crate) fn name(&self, random: &mut Random) -> Name {
        Name { space: space(random), number: random.below(self.keys) }
    }

    /// Whether a segment has room for a record of this key.
    pub(crate) fn has_room(&self, name: Name) -> bool {
        !name.has_longest_key() || self.segment_bytes > 64 << 10
    }

    pub(crate) fn put(&self, random: &mut Random, id: u64, now_ms: u64) -> Put {
        let segment_bytes = u64::from(self.segment_bytes);
        let length = match random.below(40) {
            0 => 0,
            1 if self.large_values => random.below(segment_bytes * 3),
            // Around where values begin to be kept in pieces.
            2 => segment_bytes / 4 - 400 + random.below(300),
            _ if self.crowded => {
                let share_bytes = self.log_bytes() / (self.keys * SPACES.len() as u64);
                random.below(3 * share_bytes.min(12_000))
            }
            3..8 => random.below(9000),
            _ => random.below(1200),
        };
        Put {
            id,
            length: length as usize,
            ends: self.draw_ends(random, now_ms),
            label: random.below(3) as u8,
            pinned: random.one_in(12),
            version: None,
            idle_from_ms: (now_ms, now_ms),
            may_be_evicted: false,
            removed: false,
            latest_ms: now_ms,
        }
    }

    /// What may be asked of a key that is perhaps in state `latest`; puts get the number `id`.
    pub(crate) fn request(
        &self,
        random: &mut Random,
        latest: State,
        (id, now_ms): (u64, u64),
    ) -> Request {
        match random.below(100) {
            0..50 => {
                let put = self.put(random, id, now_ms);
                let condition = condition(random, latest);
                let absent = random.one_in(10);
                let condition = if absent { Condition::Absent } else { condition };
                let durability = random.one_in(10).then(|| durability(random));
                Request::Put(put, condition, durability)
            }
            50..62 => Request::Remove(condition(random, latest)),
            62..72 => {
                let ends = self.draw_ends(random, now_ms);
                Request::Touch(ends, condition(random, latest))
            }
            _ => Request::Get,
        }
    }

    fn draw_ends(&self, random: &mut Random, now_ms: u64) -> Ends {
        if !self.ends {
            return Ends::default();
        }
        let at_ms = random.one_in(5).then(|| match random.below(20) {
            0 => u64::MAX,
            1 => now_ms,
            2 => 1 << 45,
            // Around the last second that footers can tell from no end.
            3 => u64::from(u32::MAX) * 1000 + 999,
            4 => 0,
            5 => (u64::from(u32::MAX) + 1) * 1000,
            _ => now_ms + self.stretch * (1 + random.below(9000)),
        });
        let idle_seconds = random.one_in(8).then(|| match random.below(10) {
            0 => u32::MAX,
            _ => 1 + (random.below(9) * self.stretch) as u32,
        });
        Ends { at_ms, idle_seconds }
    }
}

/// What an acknowledgement of a store with `options` outlives; `asked`: of a put that asked for a
/// durability of its own.
pub(crate) fn kept(options: &StoreOptions, asked: Option<Durability>) -> Kept {
    let shares = shares_memory(options);
    if options.write_mode == WriteMode::Behind {
        // It is answered before anything is reached, shared buffers apart.
        return Kept { kill: shares, power_loss: false };
    }
    let periodic = matches!(options.durability, Durability::Periodic(_));
    match asked.unwrap_or(options.durability) {
        Durability::Memory => Kept { kill: shares, power_loss: false },
        Durability::Synced => Kept::ALL,
        Durability::Flushed => Kept { kill: true, power_loss: false },
        // Without shared buffers a put that asks for it waits for the device.
        Durability::Process => Kept { kill: shares || asked.is_some(), power_loss: false },
        // A put that asks for a period that the store lacks waits for a sync.
        Durability::Periodic(_) if !periodic => Kept::ALL,
        Durability::Periodic(_) => Kept { kill: shares, power_loss: false },
    }
}

/// Whether write buffers outlive the process.
fn shares_memory(options: &StoreOptions) -> bool {
    let shares = matches!(
        options.durability,
        Durability::Process | Durability::Flushed | Durability::Periodic(_)
    );
    shares && options.buffer_directory.is_some()
}

pub(crate) fn space(random: &mut Random) -> u16 {
    SPACES[random.below(SPACES.len() as u64) as usize]
}

/// A condition that removals and touches may have, too.
fn condition(random: &mut Random, latest: State) -> Condition {
    let version = latest.and_then(|put| put.version);
    match random.below(10) {
        0 => Condition::Present,
        1 => Condition::Version(Version(version.unwrap_or(5))),
        2 => Condition::Version(Version(version.map_or(1, |version| version.wrapping_add(1)))),
        _ => Condition::Always,
    }
}

fn durability(random: &mut Random) -> Durability {
    match random.below(5) {
        0 => Durability::Memory,
        1 => Durability::Process,
        2 => Durability::Flushed,
        3 => Durability::Periodic(NonZeroU32::MIN.saturating_add(499)),
        _ => Durability::Synced,
    }
}

fn compression(random: &mut Random) -> Compression {
    [Compression::None, Compression::Lz4, Compression::Zstd][random.below(3) as usize]
}

fn write_mode(random: &mut Random) -> WriteMode {
    if random.one_in(5) { WriteMode::Behind } else { WriteMode::Through }
}
