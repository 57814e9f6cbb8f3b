//! ACT's histogram: 65 counters, each for latencies up to twice those of the counter before.

use std::fmt;

use entresol_workload::Recorder;

/// Counts by latency. Bucket 0 holds what took less than one unit, bucket `i` what took at least
/// 2^(i-1) units and less than 2^i.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    counts: [u64; Buckets::COUNT],
}

/// What a bucket's bounds are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketUnit {
    /// ms.
    Milliseconds,
    /// µs.
    Microseconds,
}

impl Buckets {
    /// Enough for any 64-bit latency.
    pub const COUNT: usize = 65;

    /// Nothing counted.
    pub fn new() -> Buckets {
        Buckets { counts: [0; Buckets::COUNT] }
    }

    /// Counts one transfer of `latency_ns`.
    pub fn record(&mut self, latency_ns: u64, unit: BucketUnit) {
        self.add(Buckets::of(latency_ns, unit), 1);
    }

    /// Adds what `recorder` holds. Its resolution is a tenth of a percent: transfers so near to a
    /// bound may come to lie on its other side.
    pub fn merge(&mut self, recorder: &Recorder, unit: BucketUnit) {
        for (latency_ns, times) in recorder.counts() {
            self.add(Buckets::of(latency_ns, unit), times);
        }
    }

    /// Adds `times` to bucket `index`, if there is one.
    pub fn add(&mut self, index: usize, times: u64) {
        if let Some(count) = self.counts.get_mut(index) {
            *count = count.saturating_add(times);
        }
    }

    /// How many are in bucket `index`.
    pub fn count(&self, index: usize) -> u64 {
        self.counts.get(index).copied().unwrap_or(0)
    }

    /// How many are in all buckets.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The bucket of `latency_ns`.
    pub fn of(latency_ns: u64, unit: BucketUnit) -> usize {
        let units = latency_ns / unit.nanoseconds();
        (u64::BITS - units.leading_zeros()) as usize
    }
}

impl BucketUnit {
    /// How many ns it is.
    pub fn nanoseconds(self) -> u64 {
        match self {
            BucketUnit::Milliseconds => 1_000_000,
            BucketUnit::Microseconds => 1_000,
        }
    }

    /// Its sign.
    pub fn sign(self) -> &'static str {
        match self {
            BucketUnit::Milliseconds => "ms",
            BucketUnit::Microseconds => "us",
        }
    }
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets::new()
    }
}

/// A log's lines: the buckets that are not empty, four in a line.
impl fmt::Display for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count != 0);
        let mut in_line = 0;
        for (index, count) in filled {
            write!(f, " ({index:02}: {count:010})")?;
            in_line += 1;
            if in_line == 4 {
                writeln!(f)?;
                in_line = 0;
            }
        }
        if in_line != 0 { writeln!(f) } else { Ok(()) }
    }
}
