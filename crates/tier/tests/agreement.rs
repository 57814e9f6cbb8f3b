//! Memory answers with what flash would answer with, whatever two sessions do at the same time: a
//! run of operations from a seed, and after each burst of them a look at both.
//!
//! `ENTRESOL_SEED` replaces the seeds.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::num::NonZeroU32;
use std::sync::Arc;

use entresol_device::MemoryDevice;
use entresol_tier::flash::{Session as FlashSession, SessionOptions as FlashOptions};
use entresol_tier::{
    Admission, Budget, Condition, Durability, Expiry, Key, Operation, Outcome, Pinning, PutOptions,
    Reclaim, Result, Session, SessionOptions, SpaceId, StoreOptions, Tiered, TieredOptions,
    Timestamp, Version, WriteMode,
};
use entresol_workload::Random;

const SEEDS: u64 = 12;
const BURSTS: u32 = 400;
const KEYS: u64 = 40;
const SPACES: u64 = 2;
const PARTITIONS: u64 = 2;
const START_MS: u64 = 1_700_000_000_000;

/// An entry as it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    value: Vec<u8>,
    version: Version,
    label: u8,
    expiry: Expiry,
    pinning: Pinning,
}

struct World {
    random: Random,
    tiered: Arc<Tiered>,
    sessions: [Session; 2],
    flash: FlashSession,
    now_ms: u64,
    puts: u64,
    /// The latest versions that puts were told of.
    versions: Vec<Version>,
}

fn name_of(number: u64) -> (SpaceId, u16, Vec<u8>) {
    let (space, partition) = (number % SPACES, number / SPACES % PARTITIONS);
    (SpaceId(space as u16), partition as u16, format!("key {number}").into_bytes())
}

fn found_by(outcome: Outcome<'_>) -> Option<Found> {
    let Outcome::Found(entry) = outcome else { return None };
    Some(Found {
        value: entry.value.to_vec(),
        version: entry.version,
        label: entry.label,
        expiry: entry.expiry,
        pinning: entry.pinning,
    })
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let reclaim = if one_in(&mut random, 3) { Reclaim::Evict } else { Reclaim::Compact };
        let store = StoreOptions {
            segment_bytes: 64 << 10,
            shards: 1 + random.below(2) as u16,
            durability: if one_in(&mut random, 2) {
                Durability::Memory
            } else {
                Durability::Synced
            },
            write_mode: if one_in(&mut random, 4) { WriteMode::Behind } else { WriteMode::Through },
            buffers_per_shard: 6,
            reclaim,
            seed,
            ..StoreOptions::default()
        };
        let budget = Admission::WriteBudget(100_000 + random.below(1_000_000));
        let budgeted = reclaim == Reclaim::Evict && one_in(&mut random, 2);
        let mut options = TieredOptions {
            store,
            memory_bytes: 0,
            cache_bytes: None,
            admission: if budgeted { budget } else { Admission::Always },
        };
        options.memory_bytes = options.least_memory_bytes() + random.below(4) * (1 << 20);
        let device = Arc::new(MemoryDevice::new(3 << 20).unwrap());
        let tiered = Tiered::open(device, options, Timestamp(START_MS)).unwrap();
        let sessions = [(); 2].map(|()| tiered.session(SessionOptions::default()).unwrap());
        let flash = tiered.store().session(FlashOptions::default()).unwrap();
        let versions = vec![Version(1)];
        World { random, sessions, flash, tiered, now_ms: START_MS, puts: 0, versions }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms)
    }

    /// Some operations that are in flight together, on few keys.
    fn burst(&mut self) {
        let first = self.random.below(KEYS);
        for token in 0..1 + self.random.below(16) {
            let number = (first + self.random.below(4)) % KEYS;
            self.submit(token, number);
            match self.random.below(40) {
                0 => drop(self.tiered.maintain(self.now(), Budget { segments: 4 }).unwrap()),
                1 => self.tiered.drop_space(SpaceId(self.random.below(SPACES) as u16)).unwrap(),
                2 => {
                    let space = SpaceId(self.random.below(SPACES) as u16);
                    let partition = self.random.below(PARTITIONS) as u16;
                    self.tiered.drop_partition(space, partition).unwrap();
                }
                3..12 => self.poll(),
                _ => {}
            }
        }
        while self.sessions.iter().any(|session| session.in_flight() > 0) {
            self.poll();
        }
        self.now_ms += [0, 3, 700, 5000][self.random.below(4) as usize];
    }

    fn submit(&mut self, token: u64, number: u64) {
        let (space, partition, bytes) = name_of(number);
        let key = Key { space, partition, bytes: &bytes };
        let known = self.versions[self.random.below(self.versions.len() as u64) as usize];
        let condition = match self.random.below(8) {
            0 => Condition::Present,
            1 => Condition::Version(known),
            _ => Condition::Always,
        };
        let at = one_in(&mut self.random, 5).then(|| self.now_ms + self.random.below(6000));
        let idle_seconds = NonZeroU32::new(self.random.below(8) as u32).filter(|_| at.is_none());
        let idle_seconds = idle_seconds.filter(|_| one_in(&mut self.random, 4));
        let expiry = Expiry { at: at.map(Timestamp), idle_seconds };
        self.puts += 1;
        let length = if one_in(&mut self.random, 20) { 40_000 } else { self.random.below(3000) };
        let value = [self.puts.to_le_bytes().to_vec(), vec![7; length as usize]].concat();
        let pinning =
            if one_in(&mut self.random, 12) { Pinning::Pinned } else { Pinning::Evictable };
        let absent = one_in(&mut self.random, 8);
        let operation = match self.random.below(10) {
            0..5 => Operation::Get { key },
            5 => Operation::Remove { key, condition },
            6 => Operation::Touch { key, expiry, condition },
            _ => {
                let condition = if absent { Condition::Absent } else { condition };
                let label = self.puts as u8;
                let options =
                    PutOptions { expiry, condition, pinning, label, ..PutOptions::default() };
                Operation::Put { key, value: &value, options }
            }
        };
        let (now, session) = (self.now(), self.random.below(2) as usize);
        let versions = &mut self.versions;
        self.sessions[session].submit(token, now, operation, &mut |_, outcome| {
            note(versions, &outcome);
        });
        if one_in(&mut self.random, 2) {
            // Its reads are done, and wait to be taken.
            self.sessions[session].flush().unwrap();
        }
    }

    fn poll(&mut self) {
        let (now, session) = (self.now(), self.random.below(2) as usize);
        let versions = &mut self.versions;
        let mut visit = |_, outcome: Result<Outcome<'_>>| note(versions, &outcome);
        self.sessions[session].poll(0, now, &mut visit).unwrap();
    }

    /// What flash says of a key, and then what memory in front of it does.
    fn look(&mut self, number: u64) -> [Option<Found>; 2] {
        let (space, partition, bytes) = name_of(number);
        let get = Operation::Get { key: Key { space, partition, bytes: &bytes } };
        let (now, mut found) = (self.now(), [None, None]);
        self.flash.run(now, get, &mut |outcome| found[0] = found_by(outcome)).unwrap();
        self.sessions[0].run(now, get, &mut |outcome| found[1] = found_by(outcome)).unwrap();
        found
    }
}

/// Keeps the version that a write was told of.
fn note(versions: &mut Vec<Version>, outcome: &Result<Outcome<'_>>) {
    match outcome {
        Ok(Outcome::Stored { version } | Outcome::Touched { version }) => {
            versions.push(*version);
            let old = versions.len().saturating_sub(8);
            versions.drain(..old);
        }
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), entresol_tier::ErrorKind::Full, "{error}"),
    }
}

#[test]
fn memory_answers_with_what_flash_would_answer_with() {
    let seeds = match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..SEEDS).collect(),
    };
    for seed in seeds {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for burst in 0..BURSTS {
            world.burst();
            for number in 0..KEYS {
                let [flash, tier] = world.look(number);
                // What a cache evicted may be in memory yet.
                let kept = world.tiered.evicts() && flash.is_none();
                assert!(kept || flash == tier, "seed {seed}, burst {burst}, key {number}");
            }
        }
        let hits = world.tiered.statistics().memory_hits;
        assert!(hits > u64::from(BURSTS), "seed {seed}: {hits} answers from memory");
    }
}

fn one_in(random: &mut Random, count: u64) -> bool {
    random.below(count) == 0
}
