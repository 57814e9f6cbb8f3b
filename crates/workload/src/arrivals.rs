//! When the next operation is due.
//!
//! In an open workload the schedule is fixed before the run: a store that stalls does not slow the
//! arrivals. So latency from the due time includes the wait that a caller would have had.

use entresol_random::Random;

/// How operations arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// The next one as soon as an earlier one is done.
    Closed,
    /// At even distances, so many a second.
    Even(f64),
    /// Independently of each other, so many a second on average.
    Poisson(f64),
}

/// The due times of one stream of arrivals.
#[derive(Debug, Clone)]
pub struct Schedule {
    arrivals: Arrivals,
    due_ns: f64,
}

impl Schedule {
    /// The schedule of `arrivals`, beginning at time 0.
    pub fn new(arrivals: Arrivals) -> Schedule {
        Schedule { arrivals, due_ns: 0.0 }
    }

    /// The next due time in nanoseconds since the start; `None` where arrivals are closed.
    pub fn next(&mut self, random: &mut Random) -> Option<u64> {
        let due = self.due_ns;
        self.due_ns += match self.arrivals {
            Arrivals::Closed => return None,
            Arrivals::Even(per_second) => 1e9 / per_second,
            Arrivals::Poisson(per_second) => -(1.0 - random.fraction()).ln() * 1e9 / per_second,
        };
        Some(due as u64)
    }
}
