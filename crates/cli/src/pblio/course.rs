//! The course of a run: its counts at evenly spaced moments.

use entresol_workload::oltp::{CacheCounters, Count, Period, Tally};

/// Counts over the course of a run.
#[derive(Debug, Clone)]
pub(super) struct Course {
    step_seconds: f64,
    next_seconds: f64,
    samples: Vec<(f64, Period)>,
}

/// What happened between two moments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// Its middle, seconds since the run began.
    pub(super) middle: f64,
    /// How long it is.
    pub(super) seconds: f64,
    before: Period,
    after: Period,
}

/// Points of a chart at most; a second is the finest.
const SAMPLES_MAX: u64 = 120;

impl Course {
    /// Of a run of so many seconds.
    pub(super) fn new(run_seconds: u64) -> Course {
        let step_seconds = run_seconds.div_ceil(SAMPLES_MAX) as f64;
        Course { step_seconds, next_seconds: step_seconds, samples: Vec::new() }
    }

    /// Notes what was counted `seconds` after the run began, if it is time to. Several moments that
    /// passed at once are one.
    pub(super) fn note(&mut self, seconds: f64, period: &Period) {
        if seconds >= self.next_seconds {
            self.samples.push((seconds, *period));
            self.next_seconds = seconds - seconds % self.step_seconds + self.step_seconds;
        }
    }

    /// The moment to note next, seconds since the run began.
    pub(super) fn next_seconds(&self) -> f64 {
        self.next_seconds
    }

    /// Notes the end.
    pub(super) fn end(&mut self, seconds: f64, period: &Period) {
        if self.samples.last().is_none_or(|last| last.0 + self.step_seconds / 2.0 <= seconds) {
            self.samples.push((seconds, *period));
        }
    }

    /// The stretches between the moments.
    pub(super) fn stretches(&self) -> Vec<Stretch> {
        let start = (0.0, Period { tally: Tally::default(), cache: None });
        let befores = std::iter::once(&start).chain(&self.samples);
        let pairs = befores.zip(&self.samples).filter(|(before, after)| after.0 > before.0);
        pairs
            .map(|(before, after)| Stretch {
                middle: f64::midpoint(before.0, after.0),
                seconds: after.0 - before.0,
                before: before.1,
                after: after.1,
            })
            .collect()
    }
}

impl Stretch {
    /// What `pick` counts of it.
    pub(super) fn count(&self, pick: impl Fn(&Tally) -> Count) -> Count {
        pick(&self.after.tally).since(pick(&self.before.tally))
    }

    /// What the cache counted, if there is one.
    pub(super) fn cache(&self) -> Option<CacheCounters> {
        let before = self.before.cache.map(|cache| cache.0).unwrap_or_default();
        self.after.cache.map(|cache| cache.0.since(&before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(requests: u64) -> Period {
        let mut tally = Tally::default();
        tally.asus[0].read.requests = requests;
        Period { tally, cache: None }
    }

    #[test]
    fn every_request_falls_in_one_stretch_however_late_moments_are_noted() {
        let mut course = Course::new(600);
        assert_eq!(course.next_seconds(), 5.0);
        for (seconds, requests) in [(4.0, 1), (5.1, 2), (6.0, 3), (27.0, 9), (28.0, 10)] {
            course.note(seconds, &counted(requests));
        }
        course.end(33.0, &counted(12));
        let found: Vec<(f64, u64)> = course
            .stretches()
            .iter()
            .map(|stretch| (stretch.seconds, stretch.count(Tally::reads).requests))
            .collect();
        assert_eq!(found.iter().map(|one| one.1).collect::<Vec<_>>(), [2, 7, 3]);
        assert!((found.iter().map(|one| one.0).sum::<f64>() - 33.0).abs() < 1e-9);
    }
}
