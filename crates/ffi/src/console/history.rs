//! What a store did in a second or a minute: for the charts of the console.

use std::time::Duration;

use entresol_page::{
    Calls, Interval, Kind, Passed, Sampled, Span, StoreCounts, StoreRates, StoreSampled, measured,
    percentiles,
};
use serde_json::{Value, json};

/// Pairs of latency and calls that are taken of a second; a histogram of two digits has fewer.
const PAIRS_MAX: usize = 8_192;

/// The samples of a store.
#[derive(Debug)]
pub(super) struct History(entresol_page::History<Totals>);

/// Counts that only grow and levels, at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    /// Time since the start.
    at: Duration,
    /// Reads, writes and removals of the cache above the store.
    calls: [u64; 3],
    store: StoreCounts,
    /// Bytes of live records, and entries.
    kept: [u64; 2],
    /// Memory of the index, of write buffers, of the cache, bytes.
    memory_bytes: [u64; 3],
}

/// What happened in a second or a minute. Rates are by the second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// Seconds from the start to its end.
    seconds: f64,
    /// Calls of the cache, with latencies of the store.
    calls: Calls,
    store: StoreRates,
    /// Bytes of live records, and entries, at the end.
    pub(super) kept: [f32; 2],
    /// Memory of the index, of write buffers, of the cache, bytes, at the end.
    pub(super) memory_bytes: [f32; 3],
}

impl History {
    /// Samples of what comes after `totals`.
    pub(super) fn since(totals: Totals) -> History {
        History(entresol_page::History::since(totals))
    }

    /// Adds a look, and how long calls took since the one before.
    pub(super) fn look(&self, totals: Totals, took: &Interval) {
        self.0.look(totals, took);
    }

    /// The latest second.
    pub(super) fn latest(&self) -> Sample {
        self.0.latest()
    }

    /// The samples of `span`, the oldest first.
    pub(super) fn samples(&self, span: Span) -> Vec<Sample> {
        self.0.samples(span)
    }
}

impl Totals {
    /// Those of a store at `at`.
    pub(super) fn of(at: Duration, store: &Value) -> Totals {
        let number = |part: &str, key: &str| store[part][key].as_u64().unwrap_or_default();
        Totals {
            at,
            calls: ["reads", "writes", "removes"].map(|key| number("cache", key)),
            store: StoreCounts {
                gets: ["memory_hits", "buffer_hits", "flash_hits", "misses"]
                    .map(|key| number("store", key)),
                device_bytes: ["device_read_bytes", "device_written_bytes"]
                    .map(|key| number("store", key)),
            },
            kept: ["flash_live_bytes", "entries"].map(|key| number("store", key)),
            memory_bytes: ["index_bytes", "buffer_bytes", "cache_bytes"]
                .map(|key| number("store", key)),
        }
    }
}

/// How long calls of a store took since it was asked before: pairs of nanoseconds and of how many
/// calls took so long. What is no such pair is passed over.
pub(super) fn took(store: &Value) -> Interval {
    let mut interval = Interval::default();
    for (kind, name) in [(Kind::Read, "reads"), (Kind::Write, "writes")] {
        for pair in store["took"][name].as_array().into_iter().flatten().take(PAIRS_MAX) {
            if let (Some(nanoseconds), Some(calls)) = (pair[0].as_u64(), pair[1].as_u64()) {
                interval.record(kind, nanoseconds, calls);
            }
        }
    }
    interval
}

impl Sample {
    /// As figures of a page.
    pub(super) fn figures(&self) -> Value {
        let rate = |value: f32| measured(value.into());
        let [reads, writes, removes] = self.calls.rates;
        let StoreRates { gets, device_bytes } = self.store;
        json!({
            "calls": measured(self.calls.rate()),
            "read_us": percentiles(self.calls.read_us),
            "write_us": percentiles(self.calls.write_us),
            "reads": rate(reads),
            "writes": rate(writes),
            "removes": rate(removes),
            "memory_hits": rate(gets[0]),
            "buffer_hits": rate(gets[1]),
            "flash_hits": rate(gets[2]),
            "misses": rate(gets[3]),
            "device_read_bytes": rate(device_bytes[0]),
            "device_written_bytes": rate(device_bytes[1]),
        })
    }
}

impl Sampled for Sample {
    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn calls(&self) -> &Calls {
        &self.calls
    }
}

impl StoreSampled for Sample {
    fn store(&self) -> &StoreRates {
        &self.store
    }
}

impl entresol_page::Totals for Totals {
    type Sample = Sample;

    fn at(&self) -> Duration {
        self.at
    }

    fn since(&self, before: &Totals, took: &Interval) -> Sample {
        let passed = Passed::between(before.at, self.at);
        let rates = passed.grown(before.calls, self.calls);
        Sample {
            seconds: self.at.as_secs_f64(),
            calls: Calls { rates, ..passed.calls(took) },
            store: passed.store(&before.store, &self.store),
            kept: self.kept.map(|level| level as f32),
            memory_bytes: self.memory_bytes.map(|level| level as f32),
        }
    }
}
