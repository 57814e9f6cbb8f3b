//! A run in a virtual clock: every request is served the moment it is due.
//!
//! Nothing takes time here, so counters depend on the requests alone; latencies are zero.

use super::cache::{CacheCounters, CacheModel, LogCounters};
use super::request::{Request, TICKS_PER_SECOND};
use super::tally::Tally;

/// A run up to now.
#[derive(Debug, Clone)]
pub struct Simulation {
    cache: Option<CacheModel>,
    ramp_ticks: u64,
    end_ticks: u64,
    tally: Tally,
    /// What the cache had counted when the ramp was over.
    before: Option<(CacheCounters, LogCounters)>,
}

/// What was counted from the end of the ramp until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Requests and blocks.
    pub tally: Tally,
    /// The cache's counters, if there is one.
    pub cache: Option<(CacheCounters, LogCounters)>,
}

impl Simulation {
    /// A run of `run_seconds` after a ramp of `ramp_seconds` whose requests are not counted.
    pub fn new(cache: Option<CacheModel>, ramp_seconds: u64, run_seconds: u64) -> Simulation {
        let ramp_ticks = ramp_seconds * TICKS_PER_SECOND;
        Simulation {
            cache,
            ramp_ticks,
            end_ticks: ramp_ticks + run_seconds * TICKS_PER_SECOND,
            tally: Tally::default(),
            before: None,
        }
    }

    /// Serves `request`; `false`, and nothing done, if it is due only after the end.
    pub fn serve(&mut self, request: &Request) -> bool {
        if request.due >= self.end_ticks {
            return false;
        }
        if request.due >= self.ramp_ticks {
            if let (None, Some(cache)) = (self.before, &self.cache) {
                self.before = Some((cache.counters(), cache.log_counters()));
            }
            self.tally.count(request, 0);
        }
        if let Some(cache) = &mut self.cache {
            cache.serve(request);
        }
        true
    }

    /// What was counted so far.
    pub fn period(&self) -> Period {
        self.period_with(|cache| cache.log_counters())
    }

    /// What was counted, once the cache's log is closed.
    pub fn end(&self) -> Period {
        self.period_with(|cache| cache.closed_log_counters())
    }

    fn period_with(&self, log: impl Fn(&CacheModel) -> LogCounters) -> Period {
        let cache = self.cache.as_ref().map(|cache| {
            let (before, log_before) = self.before.unwrap_or_default();
            (cache.counters().since(&before), log(cache).since(&log_before))
        });
        Period { tally: self.tally, cache }
    }
}
