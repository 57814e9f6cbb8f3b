//! What a process did in the last ten minutes, by seconds, and in the last day, by minutes: for
//! charts.
//!
//! Whoever looks at the process once a second adds a sample. The memory is bounded: 2,040 samples.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::interval::Interval;
use crate::passed::{Calls, StoreRates};

const SECONDS: usize = 600;
const MINUTES: usize = 24 * 60;
const MINUTE: Duration = Duration::from_secs(60);

/// Counts that only grow and levels, at a moment.
pub trait Totals: Copy + Default + Debug {
    /// What two of them make.
    type Sample: Sampled;

    /// Time since the start.
    fn at(&self) -> Duration;

    /// What happened since `before`; `interval` has the calls of that time.
    fn since(&self, before: &Self, interval: &Interval) -> Self::Sample;
}

/// What happened in a second or a minute.
pub trait Sampled: Copy + Default + Debug {
    /// Seconds from the start to its end.
    fn seconds(&self) -> f64;

    /// The calls.
    fn calls(&self) -> &Calls;
}

/// What happened in a second or a minute to a process with a store.
pub trait StoreSampled: Sampled {
    /// What the store did.
    fn store(&self) -> &StoreRates;
}

/// How far back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Ten minutes, by seconds.
    Minutes,
    /// A day, by minutes.
    Day,
}

/// The samples. Thread-safe; its lock is a leaf.
#[derive(Debug)]
pub struct History<T: Totals>(Mutex<Rings<T>>);

#[derive(Debug)]
struct Rings<T: Totals> {
    seconds: VecDeque<T::Sample>,
    minutes: VecDeque<T::Sample>,
    /// At the last look.
    before: T,
    /// At the last look that ended a minute.
    minute_before: T,
    /// Since then.
    minute: Interval,
}

impl Span {
    /// The one that an address names by `?span=`; ten minutes if it names none.
    pub fn named(name: Option<&[u8]>) -> Span {
        match name {
            Some(b"day") => Span::Day,
            _ => Span::Minutes,
        }
    }
}

impl<T: Totals> Default for History<T> {
    fn default() -> History<T> {
        History::since(T::default())
    }
}

impl<T: Totals> History<T> {
    /// Samples of what comes after `totals`.
    pub fn since(totals: T) -> History<T> {
        History(Mutex::new(Rings {
            seconds: VecDeque::new(),
            minutes: VecDeque::new(),
            before: totals,
            minute_before: totals,
            minute: Interval::default(),
        }))
    }

    /// Adds a look: `totals` of now, and the calls since the look before.
    pub fn look(&self, totals: T, interval: &Interval) {
        let rings = &mut *self.rings();
        push(&mut rings.seconds, SECONDS, totals.since(&rings.before, interval));
        rings.before = totals;
        rings.minute.add(interval);
        if totals.at() >= rings.minute_before.at() + MINUTE {
            let minute = totals.since(&rings.minute_before, &rings.minute);
            push(&mut rings.minutes, MINUTES, minute);
            rings.minute_before = totals;
            rings.minute.clear();
        }
    }

    /// The samples of `span`, the oldest first.
    pub fn samples(&self, span: Span) -> Vec<T::Sample> {
        let rings = self.rings();
        match span {
            Span::Minutes => rings.seconds.iter().copied().collect(),
            Span::Day => rings.minutes.iter().copied().collect(),
        }
    }

    /// The latest second; nothing happened before the first look.
    pub fn latest(&self) -> T::Sample {
        self.rings().seconds.back().copied().unwrap_or_default()
    }

    fn rings(&self) -> MutexGuard<'_, Rings<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push<S>(ring: &mut VecDeque<S>, most: usize, sample: S) {
    if ring.len() >= most {
        ring.pop_front();
    }
    ring.push_back(sample);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Kind;
    use crate::passed::Passed;

    #[derive(Debug, Clone, Copy, Default)]
    struct Count(u64);

    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    struct Sample {
        seconds: f64,
        grown: u64,
        calls: Calls,
    }

    impl Sampled for Sample {
        fn seconds(&self) -> f64 {
            self.seconds
        }

        fn calls(&self) -> &Calls {
            &self.calls
        }
    }

    impl Totals for Count {
        type Sample = Sample;

        fn at(&self) -> Duration {
            Duration::from_secs(self.0)
        }

        fn since(&self, before: &Count, interval: &Interval) -> Sample {
            let passed = Passed::between(before.at(), self.at());
            let calls = passed.calls(interval);
            Sample { seconds: self.0 as f64, grown: self.0 - before.0, calls }
        }
    }

    #[test]
    fn old_samples_go_and_minutes_stay_for_a_day() {
        let history = History::<Count>::default();
        assert_eq!(history.latest(), Sample::default());
        let mut interval = Interval::default();
        interval.record(Kind::Read, 1_000, 7);
        for second in 1..=60 * 60 * 25 {
            history.look(Count(second), &interval);
        }
        let (seconds, minutes) = (history.samples(Span::Minutes), history.samples(Span::Day));
        assert_eq!((seconds.len(), minutes.len()), (SECONDS, MINUTES));
        assert_eq!(seconds[0].seconds, (60 * 60 * 25 - 599) as f64);
        assert_eq!(minutes[0].seconds, (60 * (60 * 25 - 1439)) as f64);
        assert!(seconds.iter().all(|one| (one.grown, one.calls.rates[0]) == (1, 7.0)));
        assert!(minutes.iter().all(|one| (one.grown, one.calls.rates[0]) == (60, 7.0)));
        assert_eq!(history.latest(), seconds[SECONDS - 1]);
    }

    /// All that came before would be a peak that never was.
    #[test]
    fn what_came_before_the_first_look_of_a_late_one_is_in_no_sample() {
        let history = History::since(Count(1_000_000));
        history.look(Count(1_000_002), &Interval::default());
        assert_eq!(history.latest().grown, 2);
        assert!(history.samples(Span::Day).is_empty());
    }
}
