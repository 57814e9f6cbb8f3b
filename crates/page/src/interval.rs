//! Calls and latencies of a short time: what a chart over time has a point of.

use hdrhistogram::Histogram;

/// Longest latency told apart, nanoseconds: the latency of a longer one counts as this.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// What calls are told apart by where their latencies are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It does neither.
    Other,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Other];

    /// Its name among figures.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Other => "other",
        }
    }
}

/// Calls by their kind, and the latencies of those that read or write.
#[derive(Debug)]
pub struct Interval {
    calls: [u64; 3],
    latencies: [Histogram<u32>; 2],
}

impl Default for Interval {
    fn default() -> Interval {
        let none = || {
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, 2)
                .expect("the bounds are constants that the histogram takes")
        };
        Interval { calls: [0; 3], latencies: [none(), none()] }
    }
}

impl Interval {
    /// Records `calls` of so many nanoseconds each.
    pub fn record(&mut self, kind: Kind, nanoseconds: u64, calls: u64) {
        self.calls[kind as usize] += calls;
        if let Some(latencies) = self.latencies.get_mut(kind as usize) {
            let calls = u32::try_from(calls).unwrap_or(u32::MAX);
            latencies.saturating_record_n(nanoseconds.max(1), calls);
        }
    }

    /// Adds what `other` has.
    pub fn add(&mut self, other: &Interval) {
        for (ours, theirs) in self.calls.iter_mut().zip(other.calls) {
            *ours += theirs;
        }
        for (ours, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            ours.add(theirs).expect("all histograms have the same bounds");
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.calls = [0; 3];
        self.latencies.iter_mut().for_each(Histogram::reset);
    }

    /// Calls of a kind.
    pub fn calls(&self, kind: Kind) -> u64 {
        self.calls[kind as usize]
    }

    /// The latency that so many percent of the calls of a kind do not exceed, microseconds; `None`
    /// if there were none, or none are kept of that kind.
    pub fn percentile_us(&self, kind: Kind, percent: f64) -> Option<f64> {
        let latencies = self.latencies.get(kind as usize).filter(|all| !all.is_empty())?;
        Some(latencies.value_at_percentile(percent) as f64 / 1e3)
    }

    /// Percentiles 50, 99 and 99.9 of a kind, microseconds; 0 if there were no calls.
    pub fn percentiles_us(&self, kind: Kind) -> [f32; 3] {
        [50.0, 99.0, 99.9].map(|percent| self.percentile_us(kind, percent).unwrap_or(0.0) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_what_was_recorded_since_it_was_cleared() {
        let (mut worker, mut all) = (Interval::default(), Interval::default());
        worker.record(Kind::Read, 1_000, 99);
        worker.record(Kind::Read, 1_000_000, 1);
        worker.record(Kind::Other, 5, 3);
        all.add(&worker);
        worker.clear();
        worker.record(Kind::Write, u64::MAX, 2);
        all.add(&worker);
        assert_eq!(Kind::ALL.map(|kind| all.calls(kind)), [100, 2, 3]);
        let near = |kind, percent, us: f64| {
            let found = all.percentile_us(kind, percent).unwrap();
            assert!((found / us - 1.0).abs() < 0.01, "{found} {us}");
        };
        near(Kind::Read, 50.0, 1.0);
        near(Kind::Read, 99.9, 1_000.0);
        near(Kind::Write, 50.0, 6e7);
        assert_eq!(all.percentile_us(Kind::Other, 50.0), None);
        assert_eq!(all.percentiles_us(Kind::Other), [0.0; 3]);
        assert!(all.percentiles_us(Kind::Read).is_sorted());
        assert_eq!(Interval::default().percentile_us(Kind::Read, 50.0), None);
    }
}
