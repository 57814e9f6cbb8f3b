//! When a thread of the blocking engine does its next transfer: absolute times since the start of
//! the load, so that a late thread catches up.

use crate::load::interval::Kind;

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// What it is that cannot keep up when the threads lag.
    pub kind: Kind,
    /// How many.
    pub threads: u32,
    /// The rhythm of each.
    pub pace: Pace,
    /// What is done when it is time.
    pub steps: Steps,
}

/// The rhythm of one thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Pace {
    /// Transfer `n` at `n` × `scale` / `per_sec` seconds, cut to whole µs.
    Scaled {
        /// How many threads share the rate.
        scale: u64,
        /// Their rate together.
        per_sec: u64,
    },
    /// The same with a rate that is no whole number.
    Shared {
        /// How many threads share the rate.
        parts: u64,
        /// Their rate together.
        per_sec: f64,
    },
    /// After a pause; no schedule.
    After {
        /// ns.
        pause_ns: u64,
    },
}

/// What is done when it is time, as numbers of streams.
#[derive(Debug, Clone, PartialEq)]
pub enum Steps {
    /// One transfer.
    One(usize),
    /// One transfer of either stream.
    Mixed {
        /// The stream of so many of 2^20.
        first: usize,
        /// The stream of the others.
        second: usize,
        /// Share of the first.
        first_of_2_20: u64,
    },
    /// One of each, so many times in a row. A row counts `times` in the schedule.
    Rows {
        /// One after the other.
        streams: Vec<usize>,
        /// How many rows.
        times: u32,
    },
}

impl Loop {
    /// Counts of the schedule that one turn of a thread takes.
    pub(crate) fn counts(&self) -> u64 {
        match &self.steps {
            Steps::One(_) | Steps::Mixed { .. } => 1,
            Steps::Rows { times, .. } => u64::from((*times).max(1)),
        }
    }

    /// How many transfers of each stream all threads should have begun before `t_us`: stream and
    /// count. Nothing for loops without a schedule. Where chance says which stream a transfer is
    /// of, it has said so of `chosen`: those are left out, for whoever counted them knows better.
    pub(crate) fn due_before(&self, t_us: u64, chosen: u64) -> Vec<(usize, f64)> {
        let counts = self.counts();
        let period_us = match self.pace.exact_us(counts) {
            Some(period_us) if period_us > 0.0 => period_us,
            _ => return Vec::new(),
        };
        let turns = (t_us as f64 / period_us).ceil();
        let total = turns * counts as f64 * f64::from(self.threads);
        match &self.steps {
            Steps::One(stream) => vec![(*stream, total)],
            Steps::Mixed { first, second, first_of_2_20 } => {
                let share = *first_of_2_20 as f64 / f64::from(1 << 20);
                let open = total - chosen as f64;
                vec![(*first, open * share), (*second, open * (1.0 - share))]
            }
            Steps::Rows { streams, .. } => streams.iter().map(|&stream| (stream, total)).collect(),
        }
    }
}

impl Pace {
    /// When transfer `count` is due, µs since the start; `None`: there is no schedule.
    pub(crate) fn due_us(&self, count: u64) -> Option<u64> {
        match self {
            Pace::Scaled { scale, per_sec } => {
                let scaled = u128::from(count) * 1_000_000 * u128::from(*scale);
                let due = scaled / u128::from((*per_sec).max(1));
                Some(u64::try_from(due).unwrap_or(u64::MAX))
            }
            Pace::Shared { .. } => self.exact_us(count).map(|due| due as u64),
            Pace::After { .. } => None,
        }
    }

    /// Without the cut.
    fn exact_us(&self, count: u64) -> Option<f64> {
        match self {
            Pace::Scaled { scale, per_sec } => {
                Some(count as f64 * 1e6 * *scale as f64 / (*per_sec).max(1) as f64)
            }
            Pace::Shared { parts, per_sec } => Some(count as f64 * 1e6 * *parts as f64 / per_sec),
            Pace::After { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(pace: Pace, steps: Steps, threads: u32, seconds: u64) -> u64 {
        let one = Loop { kind: Kind::Read, threads, pace, steps };
        let per_thread = (0..)
            .step_by(one.counts() as usize)
            .take_while(|&count| {
                one.pace.due_us(count).is_some_and(|due| due < seconds * 1_000_000)
            })
            .count() as u64
            * one.counts();
        let due = one.due_before(seconds * 1_000_000, 0)[0].1;
        assert_eq!(due as u64, per_thread * u64::from(threads), "what is due is what is done");
        per_thread * u64::from(threads)
    }

    #[test]
    fn counts_are_those_that_act_logged() {
        let scaled = |scale, per_sec| Pace::Scaled { scale, per_sec };
        // 503 reads/s on 5 threads are 500/s, for 10 s.
        assert_eq!(done(scaled(1, 503 / 5), Steps::One(0), 5, 10), 5000);
        // 20 s of 2.3529 blocks/s; 10 s of 45.977.
        let shared = |per_sec| Pace::Shared { parts: 1, per_sec };
        assert_eq!(done(shared(200.0 / 85.0), Steps::One(0), 1, 20), 48);
        assert_eq!(done(shared(4000.0 / 87.0), Steps::One(0), 1, 10), 460);
        // 8 cache threads at 200/s: bursts of 100, the next after 4 s; 24 of them in 10 s.
        let rows = || Steps::Rows { streams: vec![0, 1], times: 100 };
        assert_eq!(done(scaled(8, 200), rows(), 8, 1), 800);
        assert_eq!(done(scaled(8, 200), rows(), 8, 4), 800);
        assert_eq!(done(scaled(8, 200), rows(), 8, 10), 2400);
    }

    #[test]
    fn strict_paces_keep_the_derived_rate() {
        let pace = Pace::Scaled { scale: 5, per_sec: 503 };
        assert_eq!(done(pace, Steps::One(0), 5, 1000) / 5, 503 * 1000 / 5);
    }
}
