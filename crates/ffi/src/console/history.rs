//! What a store did in a second or a minute: for the charts of the console.

use std::time::Duration;

use entresol_page::{
    Calls, Interval, Passed, Sampled, Span, StoreCounts, StoreRates, StoreSampled, measured,
};
use serde_json::{Value, json};

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
    /// Calls of the cache, whose latencies nobody tells.
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

    /// Adds a look.
    pub(super) fn look(&self, totals: Totals) {
        self.0.look(totals, &Interval::default());
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

impl Sample {
    /// As figures of a page.
    pub(super) fn figures(&self) -> Value {
        let rate = |value: f32| measured(value.into());
        let [reads, writes, removes] = self.calls.rates;
        let StoreRates { gets, device_bytes } = self.store;
        json!({
            "calls": measured(self.calls.rate()),
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

    fn since(&self, before: &Totals, _interval: &Interval) -> Sample {
        let passed = Passed::between(before.at, self.at);
        let rates = passed.grown(before.calls, self.calls);
        Sample {
            seconds: self.at.as_secs_f64(),
            calls: Calls { rates, ..Calls::default() },
            store: passed.store(&before.store, &self.store),
            kept: self.kept.map(|level| level as f32),
            memory_bytes: self.memory_bytes.map(|level| level as f32),
        }
    }
}
