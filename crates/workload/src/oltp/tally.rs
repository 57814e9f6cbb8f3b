//! Requests, blocks and latencies of a run, by unit and by operation.

use super::request::{Asu, Operation, Request};

/// Requests and blocks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Requests done.
    pub requests: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Their latencies in all, ns.
    pub latency_ns: u64,
}

/// One unit's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AsuTally {
    /// Reads.
    pub read: Count,
    /// Writes.
    pub write: Count,
}

/// All units' counts, by [`Asu::index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Each unit's.
    pub asus: [AsuTally; 3],
}

impl Count {
    /// The sum of both.
    pub fn plus(self, other: Count) -> Count {
        Count {
            requests: self.requests + other.requests,
            blocks: self.blocks + other.blocks,
            latency_ns: self.latency_ns + other.latency_ns,
        }
    }

    /// What was counted since `earlier`.
    pub fn since(self, earlier: Count) -> Count {
        Count {
            requests: self.requests - earlier.requests,
            blocks: self.blocks - earlier.blocks,
            latency_ns: self.latency_ns - earlier.latency_ns,
        }
    }

    /// The mean latency, ms; 0 without requests.
    pub fn mean_latency_ms(self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.latency_ns as f64 / self.requests as f64 / 1e6 }
    }
}

impl AsuTally {
    /// Reads and writes.
    pub fn total(&self) -> Count {
        self.read.plus(self.write)
    }
}

impl Tally {
    /// Counts `request`, done after `latency_ns`.
    pub fn count(&mut self, request: &Request, latency_ns: u64) {
        let asu = &mut self.asus[request.asu.index()];
        let count = match request.operation {
            Operation::Read => &mut asu.read,
            Operation::Write => &mut asu.write,
        };
        *count = count.plus(Count { requests: 1, blocks: request.blocks, latency_ns });
    }

    /// All reads.
    pub fn reads(&self) -> Count {
        self.sum(|asu| asu.read)
    }

    /// All writes.
    pub fn writes(&self) -> Count {
        self.sum(|asu| asu.write)
    }

    /// All requests.
    pub fn total(&self) -> Count {
        self.sum(AsuTally::total)
    }

    /// The counts of `asu`.
    pub fn asu(&self, asu: Asu) -> &AsuTally {
        &self.asus[asu.index()]
    }

    fn sum(&self, part: impl Fn(&AsuTally) -> Count) -> Count {
        self.asus.iter().map(part).fold(Count::default(), Count::plus)
    }
}
