//! The workloads of the source documents as data: writes, reads, and the figures measured there.

/// The data grid tutorial's benchmark: every thread writes entries of its own one after the other,
/// then reads them back in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Client threads.
    pub threads: u32,
    /// Entries of each thread.
    pub iterations: u64,
    /// Bytes of each value.
    pub payload_bytes: u32,
}

impl Grid {
    /// What the tutorial ran.
    pub const TUTORIAL: Grid = Grid { threads: 10, iterations: 200_000, payload_bytes: 10_000 };

    /// Rate of the tutorial's flash table over that of its RAM table, for writes.
    pub const TUTORIAL_WRITE_RATIO: f64 = 0.79;

    /// Rate of the tutorial's flash table over that of its RAM table, for reads.
    pub const TUTORIAL_READ_RATIO: f64 = 0.44;

    /// The key of a thread's iteration.
    pub fn key(&self, thread: u32, iteration: u64) -> u64 {
        u64::from(thread) * self.iterations + iteration
    }

    /// Entries of all threads.
    pub fn entries(&self) -> u64 {
        u64::from(self.threads) * self.iterations
    }

    /// The iterations of round `round` of `rounds`, which together cover all of them.
    pub fn slice(&self, round: u64, rounds: u64) -> std::ops::Range<u64> {
        let at = |r: u64| self.iterations * r / rounds.max(1);
        at(round)..at(round + 1)
    }
}

/// The test of billions of entries in terabytes of memory: fill, then uniform reads and writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BigMemory {
    /// Entries of the test of record.
    pub entries: u64,
    /// Bytes of each value.
    pub value_bytes: u32,
    /// Share of gets in the test phase, percent.
    pub reads: u8,
    /// Operations a second it reached over all its servers.
    pub ops_per_second: f64,
    /// Mean latency it had, milliseconds.
    pub latency_ms: f64,
}

/// What the test of record had.
pub const BIGMEMORY: BigMemory = BigMemory {
    entries: 2_000_000_000,
    value_bytes: 1_700,
    reads: 90,
    ops_per_second: 66_000.0,
    latency_ms: 23.0,
};

/// What was measured here, from which a larger store is worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slopes {
    /// Memory of each entry on flash, bytes.
    pub memory_bytes_per_entry: f64,
    /// Flash of each entry in a full log, bytes.
    pub flash_bytes_per_entry: f64,
    /// Share of the device that may be live, 0 to 1.
    pub fill: f64,
    /// Entries loaded a second.
    pub load_per_second: f64,
    /// Entries indexed again a second after a crash, and after a clean stop.
    pub recover_per_second: Option<(f64, f64)>,
}

/// What `entries` entries would take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extrapolation {
    /// Entries.
    pub entries: u64,
    /// Memory of the index, bytes.
    pub memory_bytes: f64,
    /// Capacity of the device, bytes.
    pub flash_bytes: f64,
    /// Time to load, seconds.
    pub load_seconds: f64,
    /// Time to open after a crash and after a clean stop, seconds.
    pub open_seconds: Option<(f64, f64)>,
}

impl Slopes {
    /// What `entries` entries would take on one node.
    pub fn extrapolate(&self, entries: u64) -> Extrapolation {
        let count = entries as f64;
        Extrapolation {
            entries,
            memory_bytes: count * self.memory_bytes_per_entry,
            flash_bytes: count * self.flash_bytes_per_entry / self.fill,
            load_seconds: count / self.load_per_second,
            open_seconds: self
                .recover_per_second
                .map(|(crash, clean)| (count / crash, count / clean)),
        }
    }
}
