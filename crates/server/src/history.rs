//! What a server did in a second or a minute: for the charts of the console. All samples that it
//! keeps take some 200 KiB.

use std::time::Duration;

use entresol_page::{Calls, Interval, Passed, Sampled, StoreCounts, StoreRates, StoreSampled};
use entresol_tier::Statistics;

use crate::recent::Counts;

/// The samples of a server.
pub(crate) type History = entresol_page::History<Totals>;

/// Counts that only grow and levels, at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Time since the start.
    at: Duration,
    store: StoreCounts,
    /// Bytes that clients sent and were sent.
    client_bytes: [u64; 2],
    /// Which part of the room for records is live.
    live_share: f64,
}

impl Totals {
    /// Those of a server at `at`.
    pub(crate) fn of(at: Duration, counts: Counts, store: &Statistics) -> Totals {
        Totals {
            at,
            store: StoreCounts {
                gets: [store.memory_hits, store.buffer_hits, store.flash_hits, store.misses],
                device_bytes: [store.device_read_bytes, store.device_written_bytes],
            },
            client_bytes: [counts.input_bytes, counts.output_bytes],
            live_share: store.flash_live_bytes as f64 / store.capacity_bytes.max(1) as f64,
        }
    }
}

/// What happened in a second or a minute. Rates are by the second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sample {
    /// Seconds from the start to its end.
    pub(crate) seconds: f64,
    /// Commands.
    pub(crate) commands: Calls,
    pub(crate) store: StoreRates,
    /// Bytes that clients sent and were sent.
    pub(crate) client_bytes: [f32; 2],
    /// Which part of the room for records is live.
    pub(crate) live_share: f32,
}

impl Sampled for Sample {
    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn calls(&self) -> &Calls {
        &self.commands
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

    fn since(&self, before: &Totals, interval: &Interval) -> Sample {
        let passed = Passed::between(before.at, self.at);
        Sample {
            seconds: self.at.as_secs_f64(),
            commands: passed.calls(interval),
            store: passed.store(&before.store, &self.store),
            client_bytes: passed.grown(before.client_bytes, self.client_bytes),
            live_share: self.live_share as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use entresol_page::Kind;

    use super::*;

    fn at(seconds: u64) -> Totals {
        Totals {
            at: Duration::from_secs(seconds),
            store: StoreCounts {
                gets: [seconds * 10, 0, seconds, 0],
                device_bytes: [4096 * seconds, 0],
            },
            ..Totals::default()
        }
    }

    #[test]
    fn a_sample_has_the_rates_between_two_looks() {
        let history = History::default();
        assert_eq!(history.latest(), Sample::default());
        let mut interval = Interval::default();
        interval.record(Kind::Write, 2_000, 50);
        history.look(at(2), &Interval::default());
        history.look(at(4), &interval);
        let latest = history.latest();
        assert_eq!((latest.seconds, latest.commands.rates), (4.0, [0.0, 25.0, 0.0]));
        let StoreRates { gets, device_bytes } = latest.store;
        assert_eq!((gets, device_bytes), ([10.0, 0.0, 1.0, 0.0], [4096.0, 0.0]));
        assert_eq!(latest.commands.read_us, [0.0; 3]);
        assert!((latest.commands.write_us[1] - 2.0).abs() < 0.02);
        // Counts that were set back, and a clock that stood still, give no rate.
        history.look(at(3), &Interval::default());
        assert_eq!(history.latest().store.gets, [0.0; 4]);
    }
}
