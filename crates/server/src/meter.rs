//! What the server measures: how often each command was called and how long its replies took.
//!
//! A worker records into a [`Meter`] of its own, a batch at a time; readers merge all of them.
//! Latencies run from the moment the bytes of a command were read to the moment its reply was
//! ready.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use entresol_page::Interval;
use entresol_tier::Statistics;
use hdrhistogram::Histogram;

use crate::client::Clients;
use crate::command::table::SPECS;
use crate::lock::lock;
use crate::recent::Counts;

/// Longest latency told apart, nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// The measurements of one worker. Thread-safe.
#[derive(Debug)]
pub(crate) struct Meter {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    measured: Measured,
    /// Since somebody last took it; `None` where nobody ever does.
    interval: Option<Interval>,
}

/// Measurements of one worker or of all.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// By command.
    pub(crate) commands: Vec<CommandFigures>,
    /// Bytes read from clients.
    pub(crate) input_bytes: u64,
    /// Bytes written to clients.
    pub(crate) output_bytes: u64,
    /// Error replies.
    pub(crate) errors: u64,
}

/// Measurements of one command.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandFigures {
    /// Calls that were answered.
    pub(crate) calls: u64,
    /// Calls that were refused before they began.
    pub(crate) rejected: u64,
    /// Calls answered with an error.
    pub(crate) failed: u64,
    /// Their latencies.
    pub(crate) latency: Latency,
}

/// A distribution of latencies: a histogram for percentiles, sums for the moments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latency {
    histogram: Option<Box<Histogram<u64>>>,
    sum: f64,
    sum_of_squares: f64,
    sum_of_logarithms: f64,
}

/// What `INFO stats` counts besides: figures of clients and of the store, which go on where they
/// are for the HTTP interface.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Connections accepted.
    pub(crate) accepted: u64,
    /// Connections refused.
    pub(crate) refused: u64,
    /// Entries that expired.
    pub(crate) expired: u64,
    /// Entries evicted from flash.
    pub(crate) evicted: u64,
    /// Gets that found an entry.
    pub(crate) hits: u64,
    /// Gets that found none.
    pub(crate) misses: u64,
}

impl Counted {
    /// Everything since the start.
    pub(crate) fn of(clients: &Clients, store: &Statistics) -> Counted {
        Counted {
            accepted: clients.accepted.load(Ordering::Relaxed),
            refused: clients.refused.load(Ordering::Relaxed),
            expired: store.expired,
            evicted: store.evicted_flash,
            hits: store.memory_hits + store.buffer_hits + store.flash_hits,
            misses: store.misses,
        }
    }

    /// What came after `before`. Figures of the store may be of a moment before.
    pub(crate) fn since(self, before: Counted) -> Counted {
        Counted {
            accepted: self.accepted.saturating_sub(before.accepted),
            refused: self.refused.saturating_sub(before.refused),
            expired: self.expired.saturating_sub(before.expired),
            evicted: self.evicted.saturating_sub(before.evicted),
            hits: self.hits.saturating_sub(before.hits),
            misses: self.misses.saturating_sub(before.misses),
        }
    }
}

/// One batch of what a worker has to record.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// (command, calls, nanoseconds each).
    pub(crate) calls: Vec<(usize, u64, u64)>,
    /// (command, calls) with an error reply.
    pub(crate) failed: Vec<usize>,
    /// Commands refused before they began.
    pub(crate) rejected: Vec<usize>,
    /// Bytes read.
    pub(crate) input_bytes: u64,
    /// Bytes written.
    pub(crate) output_bytes: u64,
    /// Error replies.
    pub(crate) errors: u64,
}

impl Meter {
    /// A meter that has measured nothing, and whose intervals nobody takes.
    pub(crate) fn new() -> Meter {
        Meter { state: Mutex::new(State { measured: Measured::new(), interval: None }) }
    }

    /// One whose intervals somebody takes.
    pub(crate) fn with_intervals() -> Meter {
        let interval = Some(Interval::default());
        Meter { state: Mutex::new(State { measured: Measured::new(), interval }) }
    }

    /// Records `batch` and empties it.
    pub(crate) fn record(&self, batch: &mut Batch) {
        let State { measured: state, interval } = &mut *lock(&self.state);
        for (command, calls, nanoseconds) in batch.calls.drain(..) {
            if let Some(interval) = interval {
                interval.record(SPECS[command].kind(), nanoseconds, calls);
            }
            let figures = &mut state.commands[command];
            figures.calls += calls;
            figures.latency.record(nanoseconds, calls);
        }
        batch.failed.drain(..).for_each(|command| state.commands[command].failed += 1);
        batch.rejected.drain(..).for_each(|command| state.commands[command].rejected += 1);
        state.input_bytes += std::mem::take(&mut batch.input_bytes);
        state.output_bytes += std::mem::take(&mut batch.output_bytes);
        state.errors += std::mem::take(&mut batch.errors);
    }

    /// Forgets everything.
    pub(crate) fn reset(&self) {
        lock(&self.state).measured = Measured::new();
    }

    /// Commands and bytes, without latencies: whoever looks often does not hold the worker up.
    pub(crate) fn counts(&self) -> Counts {
        let state = &lock(&self.state).measured;
        Counts {
            commands: state.calls(),
            input_bytes: state.input_bytes,
            output_bytes: state.output_bytes,
        }
    }

    /// Adds what was measured since the last call to `total`.
    pub(crate) fn take_interval(&self, total: &mut Interval) {
        if let Some(interval) = &mut lock(&self.state).interval {
            total.add(interval);
            interval.clear();
        }
    }

    /// Adds these measurements to `total`.
    pub(crate) fn add_to(&self, total: &mut Measured) {
        let state = &lock(&self.state).measured;
        for (sum, part) in total.commands.iter_mut().zip(&state.commands) {
            sum.calls += part.calls;
            sum.rejected += part.rejected;
            sum.failed += part.failed;
            sum.latency.add(&part.latency);
        }
        total.input_bytes += state.input_bytes;
        total.output_bytes += state.output_bytes;
        total.errors += state.errors;
    }
}

impl Measured {
    /// Nothing measured.
    pub(crate) fn new() -> Measured {
        Measured {
            commands: vec![CommandFigures::default(); SPECS.len()],
            input_bytes: 0,
            output_bytes: 0,
            errors: 0,
        }
    }

    /// Calls of all commands.
    pub(crate) fn calls(&self) -> u64 {
        self.commands.iter().map(|figures| figures.calls).sum()
    }
}

impl Latency {
    /// Records `count` latencies of `nanoseconds` each.
    fn record(&mut self, nanoseconds: u64, count: u64) {
        let nanoseconds = nanoseconds.clamp(1, LATENCY_NS_MAX);
        let histogram = self.histogram.get_or_insert_with(|| Box::new(new_histogram()));
        histogram.saturating_record_n(nanoseconds, count);
        let (value, count) = (nanoseconds as f64, count as f64);
        self.sum += value * count;
        self.sum_of_squares += value * value * count;
        self.sum_of_logarithms += value.ln() * count;
    }

    /// Adds the latencies of `other`.
    pub(crate) fn add(&mut self, other: &Latency) {
        let Some(theirs) = &other.histogram else {
            return;
        };
        let ours = self.histogram.get_or_insert_with(|| Box::new(new_histogram()));
        ours.add(theirs.as_ref()).expect("all histograms have the same bounds");
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.sum_of_logarithms += other.sum_of_logarithms;
    }

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// Their sum, microseconds.
    pub(crate) fn sum_us(&self) -> f64 {
        self.sum / 1e3
    }

    /// The smallest, microseconds.
    pub(crate) fn min_us(&self) -> f64 {
        self.histogram.as_ref().map_or(0.0, |histogram| histogram.min() as f64 / 1e3)
    }

    /// The largest, microseconds.
    pub(crate) fn max_us(&self) -> f64 {
        self.histogram.as_ref().map_or(0.0, |histogram| histogram.max() as f64 / 1e3)
    }

    /// The arithmetic mean, microseconds.
    pub(crate) fn mean_us(&self) -> f64 {
        self.sum / self.count().max(1) as f64 / 1e3
    }

    /// The geometric mean, microseconds.
    pub(crate) fn geometric_mean_us(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => (self.sum_of_logarithms / count as f64).exp() / 1e3,
        }
    }

    /// The standard deviation, microseconds.
    pub(crate) fn standard_deviation_us(&self) -> f64 {
        let count = self.count().max(1) as f64;
        let mean = self.sum / count;
        (self.sum_of_squares / count - mean * mean).max(0.0).sqrt() / 1e3
    }

    /// The latency that `percent` of all do not exceed, microseconds.
    pub(crate) fn percentile_us(&self, percent: f64) -> f64 {
        let value = self.histogram.as_ref().map_or(0, |h| h.value_at_percentile(percent));
        value as f64 / 1e3
    }

    /// How many did not exceed `microseconds`.
    pub(crate) fn count_up_to_us(&self, microseconds: u64) -> u64 {
        let Some(histogram) = &self.histogram else {
            return 0;
        };
        histogram.count_between(0, microseconds.saturating_mul(1000))
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 2)
        .expect("the bounds are constants that the histogram takes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_what_was_recorded() {
        let meter = Meter::new();
        let mut batch = Batch::default();
        batch.calls.extend([(0, 3, 1_000), (0, 1, 8_000)]);
        meter.record(&mut batch);
        let mut total = Measured::new();
        meter.add_to(&mut total);
        meter.add_to(&mut total);
        let latency = &total.commands[0].latency;
        assert_eq!((latency.count(), total.calls()), (8, 8));
        assert!((latency.mean_us() - 2.75).abs() < 1e-9);
        assert!((latency.geometric_mean_us() - 8f64.powf(0.25)).abs() < 1e-9);
        assert!((latency.standard_deviation_us() - 3.031_088_913).abs() < 1e-6);
        assert!((latency.percentile_us(50.0) - 1.0).abs() < 0.02);
        assert_eq!(latency.count_up_to_us(2), 6);
    }
}
