//! What is measured: sizes, phases and the memory each contestant may use. Pure data, handed to the
//! contestant's process as JSON so that all processes measure the same thing.

use entresol_workload::{Distribution, KeyLayout, mix64};
use serde::{Deserialize, Serialize};

use crate::probe::Reads;

/// The sizes of one comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Which phases there are, on what.
    pub course: Course,
    /// Records loaded.
    pub keys: u64,
    /// Bytes of a value; a key has 16.
    pub value_bytes: usize,
    /// The memory cap of a contestant's processes, page cache included, bytes.
    pub memory_bytes: u64,
    /// Of it, what changes may take before they are merged with what is on the device, bytes.
    pub waiting_bytes: u64,
    /// The contestant's own cache of records, bytes.
    pub cache_bytes: u64,
    /// Threads of contestants that block on every read.
    pub threads: usize,
    /// Seconds a timed phase lasts.
    pub seconds: f64,
    /// Seconds after which a load is cut off; later phases then use the keys loaded so far.
    pub load_seconds_max: f64,
    /// Elements that a round of a queue pushes, and pops.
    pub queue: u64,
    /// Seconds after which the warm-up before the mixed phase is cut off.
    pub warm_seconds_max: f64,
    /// Capacity of our store: data bytes over this share, percent.
    pub fill_percent: u64,
    /// What Entresol's writes survive outside the synced phase.
    pub durability: Durability,
    /// Seeds keys and values.
    pub seed: u64,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Records, whose order nobody asks for.
    Records,
    /// Rows in order, loaded and put again at random; scans.
    Rows,
    /// Rows that are loaded in their order.
    Sequence,
    /// A queue: pushed at one end, popped at the other.
    Queue,
    /// Many tables of five rows each; of a peer, as many prefixes.
    Tables,
}

/// Rows of a table of [`Course::Tables`].
pub const TABLE_ROWS: u64 = 5;
/// Elements that a queue has before its first round.
pub const QUEUE_LENGTH: u64 = 10_000;
/// Rounds of a queue.
const QUEUE_ROUNDS: usize = 10;

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
    /// As `Overwrite`: what is measured then begins in a steady state.
    OverwriteWarm,
    /// Puts of what is there, as many as there are keys, all alike.
    Overwrite,
    /// As `ZipfOverwrite`.
    ZipfOverwriteWarm,
    /// Puts of what is there, as many as there are keys, Zipf 0.99.
    ZipfOverwrite,
    /// Gets of what is not there.
    Absent,
    /// As `Cached`: what is asked for comes into caches.
    CachedWarm,
    /// Gets of so few keys that a cache holds what they need.
    Cached,
    /// Scans from a key on, all keys alike.
    Scan,
    /// As `CachedScan`.
    CachedScanWarm,
    /// Scans of so few places that a cache holds what they need.
    CachedScan,
    /// Pushes and pops by turns.
    Queue,
}

/// Every key's length.
pub const KEY_BYTES: usize = 16;
/// Rows of a scan.
const SCAN_ROWS: usize = 100;
/// Bytes of a cache that a key of `Phase::Cached` may take.
const CACHED_KEY_BYTES: u64 = 32 << 10;
const RECORDS: &[Phase] = &[
    Phase::Load,
    Phase::Uniform,
    Phase::ZipfWarm,
    Phase::Zipf,
    Phase::Synced,
    Phase::Warm,
    Phase::Mix,
];
const ROWS: &[Phase] = &[
    Phase::Load,
    Phase::OverwriteWarm,
    Phase::Overwrite,
    Phase::ZipfOverwriteWarm,
    Phase::ZipfOverwrite,
    Phase::Uniform,
    Phase::Absent,
    Phase::ZipfWarm,
    Phase::Zipf,
    Phase::CachedWarm,
    Phase::Cached,
    Phase::Scan,
    Phase::CachedScanWarm,
    Phase::CachedScan,
];

impl Course {
    /// Its phases in order.
    pub fn phases(self) -> Vec<Phase> {
        match self {
            Course::Records => RECORDS.to_vec(),
            Course::Rows => ROWS.to_vec(),
            Course::Sequence => vec![Phase::Load, Phase::Scan],
            Course::Queue => [&[Phase::Load][..], &[Phase::Queue; QUEUE_ROUNDS]].concat(),
            Course::Tables => vec![Phase::Load, Phase::Uniform, Phase::Scan],
        }
    }

    /// Those of which figures are shown, each once.
    pub fn shown(self) -> Vec<Phase> {
        if self == Course::Records {
            return vec![Phase::Load, Phase::Uniform, Phase::Zipf, Phase::Mix, Phase::Synced];
        }
        let mut phases = self.phases();
        phases.retain(|phase| !phase.is_warm_up());
        phases.dedup();
        phases
    }

    /// Whether keys have an order that somebody asks for.
    pub fn is_ordered(self) -> bool {
        self != Course::Records
    }

    /// The bytes of key `id`.
    #[inline]
    pub fn key(self, id: u64) -> [u8; KEY_BYTES] {
        let (high, low) = match self {
            // The hash spreads neighbouring numbers, so that no contestant loads keys in order.
            Course::Records => return KeyLayout::Text.key(mix64(id) >> 4),
            Course::Rows => return KeyLayout::Scattered.key(id),
            Course::Sequence | Course::Queue => return KeyLayout::Ascending.key(id),
            Course::Tables => (mix64(id / TABLE_ROWS), id % TABLE_ROWS),
        };
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&high.to_be_bytes());
        key[8..].copy_from_slice(&low.to_be_bytes());
        key
    }

    /// A scan begins at a key whose number is a multiple of this.
    pub fn scan_step(self) -> u64 {
        if self == Course::Tables { TABLE_ROWS } else { 1 }
    }

    /// Rows of a scan.
    pub fn scan_rows(self) -> usize {
        if self == Course::Tables { TABLE_ROWS as usize } else { SCAN_ROWS }
    }
}

impl Plan {
    /// The reads of the probe. Of rows in order: as many in flight as each contestant has, of
    /// blocks as small as any of them reads, so that nobody who reads once for each get is faster.
    pub fn probe_reads(&self) -> Reads {
        if self.course.is_ordered() {
            return Reads { bytes: 4096, depth: self.threads };
        }
        Reads::OF_RECORDS
    }

    /// Bytes of keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.keys * self.record_bytes()
    }

    /// Keys that a phase chooses from, of `loaded` ones.
    pub fn choices(&self, phase: Phase, loaded: u64) -> u64 {
        let cached = (self.cache_bytes / CACHED_KEY_BYTES).max(1);
        match phase {
            Phase::CachedWarm | Phase::Cached => cached.min(loaded),
            // A scan needs several pages.
            Phase::CachedScanWarm | Phase::CachedScan => (cached / 12).clamp(1, loaded.max(1)),
            _ => loaded,
        }
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
            Phase::OverwriteWarm => "overwrite-warm",
            Phase::Overwrite => "overwrite",
            Phase::ZipfOverwriteWarm => "zipf-overwrite-warm",
            Phase::ZipfOverwrite => "zipf-overwrite",
            Phase::Absent => "absent",
            Phase::CachedWarm => "cached-warm",
            Phase::Cached => "cached",
            Phase::Scan => "scan",
            Phase::CachedScanWarm => "cached-scan-warm",
            Phase::CachedScan => "cached-scan",
            Phase::Queue => "queue",
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
            Phase::OverwriteWarm | Phase::ZipfOverwriteWarm => "warm-up of overwriting",
            Phase::Overwrite => "overwrite, uniform, until all work is done",
            Phase::ZipfOverwrite => "overwrite, zipf 0.99, until all work is done",
            Phase::Absent => "get of what is not there",
            Phase::CachedWarm | Phase::CachedScanWarm => "warm-up of the cache",
            Phase::Cached => "get from the cache",
            Phase::Scan => "scan",
            Phase::CachedScan => "scan from the cache",
            Phase::Queue => "queue: pushes and pops by turns, all rounds",
        }
    }

    /// Which keys it chooses; `None`: each once, in order of their numbers.
    pub fn distribution(self) -> Option<Distribution> {
        match self {
            Phase::Load | Phase::Queue => None,
            Phase::ZipfWarm | Phase::Zipf | Phase::ZipfOverwriteWarm | Phase::ZipfOverwrite => {
                Some(Distribution::Zipf { theta: 0.99 })
            }
            _ => Some(Distribution::Uniform),
        }
    }

    /// Puts in a hundred operations.
    pub fn put_percent(self) -> u64 {
        match self {
            Phase::Load
            | Phase::Synced
            | Phase::OverwriteWarm
            | Phase::Overwrite
            | Phase::ZipfOverwriteWarm
            | Phase::ZipfOverwrite => 100,
            Phase::Warm | Phase::Mix | Phase::Queue => 50,
            _ => 0,
        }
    }

    /// Whether it scans.
    pub fn scans(self) -> bool {
        matches!(self, Phase::Scan | Phase::CachedScanWarm | Phase::CachedScan)
    }

    /// Whether it puts rows, and as many at once as a contestant likes may be handed over.
    pub fn is_write_of_rows(self) -> bool {
        !matches!(self, Phase::Synced | Phase::Warm | Phase::Mix) && self.put_percent() > 0
    }

    /// Whether it only prepares another one.
    pub fn is_warm_up(self) -> bool {
        matches!(
            self,
            Phase::ZipfWarm
                | Phase::Warm
                | Phase::OverwriteWarm
                | Phase::ZipfOverwriteWarm
                | Phase::CachedWarm
                | Phase::CachedScanWarm
        )
    }

    /// Whether the probe beside it writes.
    pub fn is_load(self) -> bool {
        self == Phase::Load
    }

    /// The longest it may last, seconds.
    pub fn seconds(self, plan: &Plan) -> f64 {
        match self {
            Phase::Load
            | Phase::OverwriteWarm
            | Phase::Overwrite
            | Phase::ZipfOverwriteWarm
            | Phase::ZipfOverwrite
            | Phase::Queue => plan.load_seconds_max,
            Phase::CachedWarm | Phase::CachedScanWarm => 2.0,
            Phase::ZipfWarm | Phase::Warm => plan.warm_seconds_max,
            // Long enough to measure, too short to fill a store that is 70 % full.
            Phase::Synced => plan.seconds.min(2.0),
            _ => plan.seconds,
        }
    }

    /// The most operations it may do.
    pub fn operations_max(self, plan: &Plan) -> u64 {
        match self {
            Phase::Load
            | Phase::ZipfWarm
            | Phase::Warm
            | Phase::OverwriteWarm
            | Phase::Overwrite
            | Phase::ZipfOverwriteWarm
            | Phase::ZipfOverwrite => plan.keys,
            Phase::Queue => plan.queue * 2,
            _ => u64::MAX,
        }
    }
}
