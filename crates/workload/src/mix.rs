//! Which operation comes next: mixes as data.

use entresol_random::Random;

use crate::keys::Distribution;

/// What to do to the chosen key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Get it.
    Read,
    /// Put it anew.
    Update,
    /// Put a key that is not there yet.
    Insert,
    /// Get it and the keys that follow it in the store's order.
    Scan,
    /// Get it, then put it.
    ReadModifyWrite,
}

/// Shares of operations, percent, and how keys are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// What it is called.
    pub name: &'static str,
    /// Gets.
    pub reads: u8,
    /// Puts of keys that are there.
    pub updates: u8,
    /// Puts of new keys.
    pub inserts: u8,
    /// Scans.
    pub scans: u8,
    /// Gets followed by a put of the same key.
    pub read_modify_writes: u8,
    /// How keys are chosen.
    pub distribution: Distribution,
}

/// The skew that YCSB uses.
const ZIPF: Distribution = Distribution::Zipf { theta: 0.99 };

/// The core workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010).
pub const YCSB: [Mix; 6] = [
    Mix { updates: 50, ..reading("ycsb-a", 50) },
    Mix { updates: 5, ..reading("ycsb-b", 95) },
    reading("ycsb-c", 100),
    Mix { inserts: 5, distribution: Distribution::Latest { theta: 0.99 }, ..reading("ycsb-d", 95) },
    Mix { scans: 95, inserts: 5, ..reading("ycsb-e", 0) },
    Mix { read_modify_writes: 50, ..reading("ycsb-f", 50) },
];

impl Mix {
    /// Only gets, keys chosen by `distribution`.
    pub const fn gets(distribution: Distribution) -> Mix {
        Mix { distribution, ..reading("get", 100) }
    }

    /// `reads` percent gets, the rest updates, keys chosen by `distribution`.
    pub const fn updating(reads: u8, distribution: Distribution) -> Mix {
        Mix { updates: 100 - reads, distribution, ..reading("mixed", reads) }
    }

    /// The next operation.
    #[inline]
    pub fn next(&self, random: &mut Random) -> Action {
        if self.reads == 100 {
            return Action::Read;
        }
        let draw = random.below(100) as u8;
        let mut bound = self.reads;
        if draw < bound {
            return Action::Read;
        }
        bound += self.updates;
        if draw < bound {
            return Action::Update;
        }
        bound += self.inserts;
        if draw < bound {
            return Action::Insert;
        }
        if draw < bound + self.scans { Action::Scan } else { Action::ReadModifyWrite }
    }
}

const fn reading(name: &'static str, reads: u8) -> Mix {
    Mix { name, reads, updates: 0, inserts: 0, scans: 0, read_modify_writes: 0, distribution: ZIPF }
}
