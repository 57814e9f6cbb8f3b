//! `--search`: the most BSUs whose mean latency stays below a limit.

use std::sync::atomic::Ordering;

use entresol_workload::oltp::Configuration;
use serde_json::{Value, json};

use super::live::{self, Finished, Setting};
use super::page;
use super::report::write_page;
use super::source::Source;
use crate::failure::{Failure, Outcome};
use crate::report::rounded;

/// Which load to try next: doubles until a try fails, then halves the gap.
#[derive(Debug, Clone, Copy)]
struct Bisection {
    /// The most that passed; 0 if none did.
    passed: u64,
    /// The least that failed.
    failed: Option<u64>,
    start: u64,
}

const BSUS_MAX: u64 = 100_000;

/// Runs try after try and prints what came of it.
pub(super) fn run(setting: Setting<'_>) -> Outcome<()> {
    let args = setting.args;
    let limit = args.latency_limit;
    let mut bisection = Bisection { passed: 0, failed: None, start: args.bsu };
    let mut tries = Vec::new();
    while let Some(bsus) = bisection.next() {
        let configuration = args.configuration(setting.units.layout(), bsus)?;
        let source = Source::new(args, &configuration)?;
        let lanes = live::lanes(setting, &configuration)?;
        let finished = live::run(setting, &configuration, (lanes, source), None)?;
        if setting.interrupted.load(Ordering::Relaxed) {
            say!("entresol: interrupted; the try of {bsus} BSUs does not count");
            break;
        }
        super::demand_sound(&finished.ended)?;
        let tried = Try::new(&configuration, &finished, limit);
        if !args.json {
            println!("{}", tried.line());
        }
        bisection.note(bsus, tried.passes);
        tries.push(tried);
    }
    let most = bisection.passed;
    if let Some(path) = &args.html {
        write_page(path, &page::search_page(args, &tries, most))?;
    }
    if args.json {
        let tries: Vec<Value> = tries.iter().map(Try::json).collect();
        println!("{}", json!({"most_bsu": most, "latency_limit_ms": limit, "tries": tries}));
    } else {
        println!("Most BSUs below {limit} ms: {most}");
    }
    if most > 0 {
        return Ok(());
    }
    if setting.interrupted.load(Ordering::Relaxed) {
        return Err(Failure::CannotRun("interrupted before a load passed".to_owned()));
    }
    Err(Failure::Failed(format!(
        "no load stayed below {limit} ms of mean latency, not even the least that was tried"
    )))
}

/// One load and what came of it.
#[derive(Debug)]
pub(super) struct Try {
    pub(super) bsus: u64,
    pub(super) iops: f64,
    pub(super) asked_iops: u64,
    pub(super) latency_ms: f64,
    pub(super) passes: bool,
}

impl Try {
    fn new(configuration: &Configuration, finished: &Finished, limit_ms: f64) -> Try {
        let latencies = finished.ended.latencies.as_ref();
        let latency_ms =
            latencies.map_or(0.0, |l| l.from_intended_start.summary().mean / 1_000_000.0);
        Try {
            bsus: configuration.bsus,
            iops: finished.ended.period.tally.total().requests as f64 / finished.ended.seconds,
            asked_iops: configuration.requests_per_second(),
            latency_ms,
            passes: latency_ms < limit_ms && !finished.fell_behind,
        }
    }

    fn line(&self) -> String {
        let Try { bsus, iops, asked_iops, latency_ms, .. } = self;
        let verdict = if self.passes { "below" } else { "not below" };
        format!("bsu:{bsus} asked:{asked_iops} IOPS:{iops:.2} Latency:{latency_ms:.4} ms {verdict}")
    }

    fn json(&self) -> Value {
        json!({
            "bsu": self.bsus,
            "asked_iops": self.asked_iops,
            "iops": rounded(self.iops),
            "latency_ms": rounded(self.latency_ms),
            "passes": self.passes,
        })
    }
}

impl Bisection {
    /// The next load; `None` once the answer is known to one part in fifty.
    fn next(&self) -> Option<u64> {
        match self.failed {
            None if self.passed == 0 => Some(self.start),
            None => (self.passed < BSUS_MAX).then(|| (self.passed * 2).min(BSUS_MAX)),
            Some(failed) if failed - self.passed <= (self.passed / 50).max(1) => None,
            Some(failed) => Some(self.passed + (failed - self.passed) / 2),
        }
    }

    fn note(&mut self, bsus: u64, passes: bool) {
        if passes {
            self.passed = bsus;
        } else {
            self.failed = Some(bsus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_most_that_passes_to_one_part_in_fifty() {
        for most in [0, 1, 2, 3, 49, 50, 51, 99, 777, 12_345, BSUS_MAX] {
            for start in [1, 50, 1_000] {
                let mut bisection = Bisection { passed: 0, failed: None, start };
                let mut tries = 0;
                while let Some(bsus) = bisection.next() {
                    bisection.note(bsus, bsus <= most);
                    tries += 1;
                    assert!(tries < 40, "{most} from {start}");
                }
                let found = bisection.passed;
                assert!(found <= most && most - found <= found / 50 + 1, "{found} of {most}");
            }
        }
    }
}
