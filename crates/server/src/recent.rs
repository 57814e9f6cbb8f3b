//! What a server did in the second before, and the most that it ever held: looked at once a second,
//! for `INFO`.

use std::sync::Mutex;
use std::time::Duration;

use crate::lock::lock;

/// Counts that only grow, at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Commands.
    pub(crate) commands: u64,
    /// Bytes that clients sent.
    pub(crate) input_bytes: u64,
    /// Bytes that clients were sent.
    pub(crate) output_bytes: u64,
}

impl Counts {
    /// Those of both.
    pub(crate) fn and(self, other: Counts) -> Counts {
        Counts {
            commands: self.commands + other.commands,
            input_bytes: self.input_bytes + other.input_bytes,
            output_bytes: self.output_bytes + other.output_bytes,
        }
    }
}

/// Rates by the second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    /// Commands.
    pub(crate) commands: f64,
    /// Bytes that clients sent.
    pub(crate) input_bytes: f64,
    /// Bytes that clients were sent.
    pub(crate) output_bytes: f64,
}

/// What was seen by the last look. Thread-safe.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    at: Duration,
    counts: Counts,
    rates: Rates,
    peak_bytes: u64,
}

impl Recent {
    /// Takes a look: `counts` and bytes in use at `at`, a time since the start.
    pub(crate) fn look(&self, at: Duration, counts: Counts, used_bytes: u64) {
        let mut seen = lock(&self.0);
        let seconds = at.saturating_sub(seen.at).as_secs_f64();
        if seconds > 0.0 {
            // Whoever sets the counts back begins at 0.
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            let Counts { commands, input_bytes, output_bytes } = seen.counts;
            seen.rates = Rates {
                commands: rate(counts.commands, commands),
                input_bytes: rate(counts.input_bytes, input_bytes),
                output_bytes: rate(counts.output_bytes, output_bytes),
            };
        }
        (seen.at, seen.counts) = (at, counts);
        seen.peak_bytes = seen.peak_bytes.max(used_bytes);
    }

    /// The rates between the last two looks.
    pub(crate) fn rates(&self) -> Rates {
        lock(&self.0).rates
    }

    /// The most bytes that any look saw, or `used_bytes` if those are more.
    pub(crate) fn peak_bytes(&self, used_bytes: u64) -> u64 {
        lock(&self.0).peak_bytes.max(used_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(commands: u64) -> Counts {
        Counts { commands, input_bytes: 10 * commands, output_bytes: 100 * commands }
    }

    #[test]
    fn rates_are_those_between_the_last_two_looks() {
        let recent = Recent::default();
        assert_eq!(recent.rates(), Rates::default());
        recent.look(Duration::from_secs(1), counts(100), 7);
        recent.look(Duration::from_secs(3), counts(300), 5);
        let expected = Rates { commands: 100.0, input_bytes: 1_000.0, output_bytes: 10_000.0 };
        assert_eq!(recent.rates(), expected);
        recent.look(Duration::from_secs(4), counts(300), 5);
        assert_eq!(recent.rates(), Rates::default());
    }

    #[test]
    fn counts_that_were_set_back_give_no_rate() {
        let recent = Recent::default();
        recent.look(Duration::from_secs(1), counts(100), 0);
        recent.look(Duration::from_secs(2), counts(1), 0);
        assert_eq!(recent.rates(), Rates::default());
    }

    #[test]
    fn the_peak_is_the_most_that_was_seen_or_is_in_use() {
        let recent = Recent::default();
        recent.look(Duration::from_secs(1), counts(0), 7);
        recent.look(Duration::from_secs(2), counts(0), 5);
        assert_eq!((recent.peak_bytes(3), recent.peak_bytes(9)), (7, 9));
    }
}
