//! What happened between two looks at a process, by the second.

use std::time::Duration;

use crate::interval::{Interval, Kind};

/// Calls of some time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calls {
    /// Those that read, that write, and others, by the second.
    pub rates: [f32; 3],
    /// Percentiles 50, 99 and 99.9 of those that read, microseconds; 0 if there were none.
    pub read_us: [f32; 3],
    /// Those of writes.
    pub write_us: [f32; 3],
}

/// What a store did so far: counts that only grow.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreCounts {
    /// Gets that the memory cache, a write buffer, the device answered, and that found nothing.
    pub gets: [u64; 4],
    /// Bytes read from the device and written to it.
    pub device_bytes: [u64; 2],
}

/// What a store did in some time, by the second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StoreRates {
    /// Gets that the memory cache, a write buffer, the device answered, and that found nothing.
    pub gets: [f32; 4],
    /// Bytes read from the device and written to it.
    pub device_bytes: [f32; 2],
}

/// The time between two looks.
#[derive(Debug, Clone, Copy)]
pub struct Passed(f64);

impl Calls {
    /// All of them, by the second.
    pub fn rate(&self) -> f64 {
        self.rates.iter().copied().map(f64::from).sum()
    }
}

impl Passed {
    /// From `before` to `now`; none, if a clock went back.
    pub fn between(before: Duration, now: Duration) -> Passed {
        Passed(now.saturating_sub(before).as_secs_f64())
    }

    /// The calls of this time.
    pub fn calls(self, interval: &Interval) -> Calls {
        Calls {
            rates: Kind::ALL.map(|kind| self.rate(interval.calls(kind))),
            read_us: interval.percentiles_us(Kind::Read),
            write_us: interval.percentiles_us(Kind::Write),
        }
    }

    /// What a store did in this time.
    pub fn store(self, before: &StoreCounts, now: &StoreCounts) -> StoreRates {
        StoreRates {
            gets: self.grown(before.gets, now.gets),
            device_bytes: self.grown(before.device_bytes, now.device_bytes),
        }
    }

    /// By how much counts grew, by the second. One that was set back grew by nothing.
    pub fn grown<const N: usize>(self, before: [u64; N], now: [u64; N]) -> [f32; N] {
        std::array::from_fn(|at| self.rate(now[at].saturating_sub(before[at])))
    }

    fn rate(self, count: u64) -> f32 {
        if self.0 > 0.0 { (count as f64 / self.0) as f32 } else { 0.0 }
    }
}
