//! What a server of volumes did in a second or a minute: for the charts of its console. All samples
//! that it keeps take some 250 KiB.

use std::time::Duration;

use entresol_page::{Calls, Interval, Passed, Sampled};
use serde_json::Value;

/// The samples of a server.
pub(crate) type History = entresol_page::History<Totals>;

/// Counts that only grow and levels, at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Time since the start.
    at: Duration,
    /// Reads that found all of their blocks, some, none, and those that went around the cache.
    reads: [u64; 4],
    /// Bytes read from backings, written to them, and of these written back.
    backing_bytes: [u64; 3],
    /// Bytes that clients sent and were sent.
    client_bytes: [u64; 2],
    /// Bytes that backings still lack.
    dirty_bytes: u64,
}

/// What happened in a second or a minute. Rates are by the second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sample {
    /// Seconds from the start to its end.
    seconds: f64,
    /// Requests.
    pub(crate) requests: Calls,
    /// Reads that found all of their blocks, some, none, and those that went around the cache.
    pub(crate) reads: [f32; 4],
    /// Bytes read from backings, written to them, and of these written back.
    pub(crate) backing_bytes: [f32; 3],
    /// Bytes that clients sent and were sent.
    pub(crate) client_bytes: [f32; 2],
    /// Bytes that backings still lack, at the end.
    pub(crate) dirty_bytes: f32,
}

impl Totals {
    /// Those of a report at `at`.
    pub(crate) fn of(at: Duration, report: &Value) -> Totals {
        let server = |key: &str| report["server"][key].as_u64().unwrap_or_default();
        let block_bytes = report["cache"]["block_bytes"].as_u64().unwrap_or_default();
        let requests = |key: &str| sum(report, "requests", key);
        let bytes = |section: &str, key: &str| sum(report, section, key) * block_bytes;
        Totals {
            at,
            reads: ["read_hits", "read_partial_misses", "read_full_misses", "pass_through_reads"]
                .map(requests),
            backing_bytes: ["from_backing", "to_backing", "cleaned"]
                .map(|key| bytes("blocks", key)),
            client_bytes: ["received_bytes", "sent_bytes"].map(server),
            dirty_bytes: bytes("usage", "dirty"),
        }
    }
}

impl Sampled for Sample {
    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn calls(&self) -> &Calls {
        &self.requests
    }
}

impl entresol_page::Totals for Totals {
    type Sample = Sample;

    fn at(&self) -> Duration {
        self.at
    }

    fn since(&self, before: &Totals, interval: &Interval) -> Sample {
        let passed = Passed::between(before.at, self.at);
        Sample {
            seconds: self.at.as_secs_f64(),
            requests: passed.calls(interval),
            reads: passed.grown(before.reads, self.reads),
            backing_bytes: passed.grown(before.backing_bytes, self.backing_bytes),
            client_bytes: passed.grown(before.client_bytes, self.client_bytes),
            dirty_bytes: self.dirty_bytes as f32,
        }
    }
}

/// A count of all volumes together.
pub(crate) fn sum(report: &Value, section: &str, key: &str) -> u64 {
    let volumes = report["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume[section][key].as_u64()).sum()
}

#[cfg(test)]
mod tests {
    use entresol_page::{Kind, Totals as _};
    use serde_json::json;

    use super::*;

    fn at(seconds: u64, hits: [u64; 2]) -> Totals {
        let volume = |hits: u64| {
            json!({
                "usage": {"dirty": 3}, "requests": {"read_hits": hits},
                "blocks": {"to_backing": 2 * hits},
            })
        };
        let report = json!({
            "cache": {"block_bytes": 4096}, "volumes": hits.map(volume),
            "server": {"sent_bytes": 100 * seconds},
        });
        Totals::of(Duration::from_secs(seconds), &report)
    }

    #[test]
    fn a_sample_has_the_rates_of_all_volumes_together_between_two_looks() {
        let mut interval = Interval::default();
        interval.record(Kind::Write, 2_000, 50);
        let sample = at(4, [30, 50]).since(&at(2, [20, 20]), &interval);
        assert_eq!((sample.seconds, sample.requests.rates), (4.0, [0.0, 25.0, 0.0]));
        assert_eq!((sample.reads, sample.client_bytes), ([20.0, 0.0, 0.0, 0.0], [0.0, 100.0]));
        assert_eq!(sample.backing_bytes, [0.0, 40.0 * 4096.0, 0.0]);
        assert_eq!((sample.dirty_bytes, sample.requests.read_us), (6.0 * 4096.0, [0.0; 3]));
        assert!((sample.requests.write_us[1] - 2.0).abs() < 0.02);
        // A volume was taken away, and a clock stood still.
        assert_eq!(at(4, [5, 5]).since(&at(2, [20, 20]), &interval).reads, [0.0; 4]);
        assert_eq!(at(2, [9, 9]).since(&at(2, [0, 0]), &interval).requests.rates, [0.0; 3]);
    }
}
