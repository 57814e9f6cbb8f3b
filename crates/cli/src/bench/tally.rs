//! The tally of threads that drive a workload: counts, latencies, and the first error.

use std::time::Duration;

use entresol_workload::Recorder;

use crate::failure::{Failure, Outcome};

/// What happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Gets, from the intended start, ns.
    pub(crate) reads: Recorder,
    /// Puts, from the intended start, ns.
    pub(crate) writes: Recorder,
    /// All operations, from their begin, ns.
    pub(crate) service: Recorder,
    /// Entries visited by scans.
    pub(crate) scanned: u64,
    /// Gets that found nothing.
    pub(crate) misses: u64,
    /// Gets whose value was not the one that was put.
    pub(crate) wrong: u64,
    /// Operations that failed.
    pub(crate) failures: u64,
    /// Requests of an open schedule that were due and not begun: the wait was too long.
    pub(crate) not_begun: u64,
    /// The first thing that went wrong.
    pub(crate) first_problem: Option<String>,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// Processor time of this process meanwhile, µs.
    pub(crate) cpu_us: f64,
}

impl Tally {
    /// Operations finished.
    pub(crate) fn operations(&self) -> u64 {
        self.reads.count() + self.writes.count()
    }

    /// Operations finished a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.operations() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Processor time of an operation, µs.
    pub(crate) fn cpu_us_per_op(&self) -> f64 {
        self.cpu_us / self.operations().max(1) as f64
    }

    /// Adds another round's.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.service.merge(&other.service);
        self.scanned += other.scanned;
        self.misses += other.misses;
        self.wrong += other.wrong;
        self.failures += other.failures;
        self.not_begun += other.not_begun;
        if self.first_problem.is_none() {
            self.first_problem.clone_from(&other.first_problem);
        }
        self.elapsed += other.elapsed;
        self.cpu_us += other.cpu_us;
    }

    /// All latencies together.
    pub(crate) fn latencies(&self) -> Recorder {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all
    }

    /// The tally, unless something failed or a value was wrong.
    pub(crate) fn sound(self) -> Outcome<Tally> {
        if self.wrong + self.failures == 0 {
            return Ok(self);
        }
        Err(Failure::Failed(format!(
            "{} operations failed and {} values were wrong; the first: {}",
            self.failures,
            self.wrong,
            self.first_problem.as_deref().unwrap_or("unknown")
        )))
    }
}
