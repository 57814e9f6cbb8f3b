//! What is measured: sizes, phases and the memory each contestant may use. Pure data, handed to the
//! contestant's process as JSON so that all processes measure the same thing.

use entresol_workload::Distribution;
use serde::{Deserialize, Serialize};

/// The sizes of one comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Records loaded.
    pub keys: u64,
    /// Bytes of a value; a key has 16.
    pub value_bytes: usize,
    /// The memory cap of a contestant's processes, page cache included, bytes.
    pub memory_bytes: u64,
    /// The contestant's own cache of records, bytes.
    pub cache_bytes: u64,
    /// Threads of contestants that block on every read.
    pub threads: usize,
    /// Seconds a timed phase lasts.
    pub seconds: f64,
    /// Seconds after which a load is cut off; later phases then use the keys loaded so far.
    pub load_seconds_max: f64,
    /// Seconds after which the warm-up before the mixed phase is cut off.
    pub warm_seconds_max: f64,
    /// Capacity of our store: data bytes over this share, percent.
    pub fill_percent: u64,
    /// What Entresol's writes survive outside the synced phase.
    pub durability: Durability,
    /// Seeds keys and values.
    pub seed: u64,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing: lost with the process.
    Memory,
    /// The death of the process, as the peers' unsynced logs do.
    Process,
}

/// One measured stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Every key once, flushed to the device at the end.
    Load,
    /// Gets, all keys alike.
    Uniform,
    /// As `Zipf`, until there were as many gets as keys: caches settle.
    ZipfWarm,
    /// Gets, Zipf 0.99.
    Zipf,
    /// Puts, each synced before it is acknowledged.
    Synced,
    /// Gets and puts, half and half, all keys alike, until half of the data was put once more.
    Warm,
    /// As `Warm`, measured for the plan's seconds.
    Mix,
}

/// Every key's length.
pub const KEY_BYTES: usize = 16;
/// The phases in order.
pub const PHASES: [Phase; 7] = [
    Phase::Load,
    Phase::Uniform,
    Phase::ZipfWarm,
    Phase::Zipf,
    Phase::Synced,
    Phase::Warm,
    Phase::Mix,
];

impl Plan {
    /// Bytes of keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.keys * self.record_bytes()
    }

    /// Bytes of one key and its value.
    pub fn record_bytes(&self) -> u64 {
        (KEY_BYTES + self.value_bytes) as u64
    }
}

impl Phase {
    /// The word in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Uniform => "uniform",
            Phase::ZipfWarm => "zipf-warm",
            Phase::Zipf => "zipf",
            Phase::Warm => "warm",
            Phase::Mix => "mix",
            Phase::Synced => "synced",
        }
    }

    /// What the phase does, for people.
    pub fn title(self) -> &'static str {
        match self {
            Phase::Load => "load: every key once, flushed at the end",
            Phase::Uniform => "uniform get",
            Phase::ZipfWarm => "warm-up of zipf",
            Phase::Zipf => "zipf 0.99 get",
            Phase::Warm => "warm-up of the mix",
            Phase::Mix => "50/50 get/put, uniform",
            Phase::Synced => "synced puts, 64 writers",
        }
    }

    /// Which keys it chooses; `None`: each once, in order of their numbers.
    pub fn distribution(self) -> Option<Distribution> {
        match self {
            Phase::Load => None,
            Phase::ZipfWarm | Phase::Zipf => Some(Distribution::Zipf { theta: 0.99 }),
            _ => Some(Distribution::Uniform),
        }
    }

    /// Puts in a hundred operations.
    pub fn put_percent(self) -> u64 {
        match self {
            Phase::Load | Phase::Synced => 100,
            Phase::Uniform | Phase::ZipfWarm | Phase::Zipf => 0,
            Phase::Warm | Phase::Mix => 50,
        }
    }

    /// Whether the probe beside it writes.
    pub fn is_load(self) -> bool {
        self == Phase::Load
    }

    /// The longest it may last, seconds.
    pub fn seconds(self, plan: &Plan) -> f64 {
        match self {
            Phase::Load => plan.load_seconds_max,
            Phase::ZipfWarm | Phase::Warm => plan.warm_seconds_max,
            // Long enough to measure, too short to fill a store that is 70 % full.
            Phase::Synced => plan.seconds.min(2.0),
            _ => plan.seconds,
        }
    }

    /// The most operations it may do.
    pub fn operations_max(self, plan: &Plan) -> u64 {
        match self {
            Phase::Load | Phase::ZipfWarm | Phase::Warm => plan.keys,
            _ => u64::MAX,
        }
    }
}
