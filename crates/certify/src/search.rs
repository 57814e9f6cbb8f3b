//! The largest load that passes: loads grow until one fails, then the search halves the distance.
//!
//! The next load is a pure function of the earlier tries, so an interrupted search goes on from its
//! list of tries. A load passes only if every try of it passed. A load larger than a failed one is
//! not tried again.

mod kept;
mod point;

use crate::certification::{Observer, Phase, drive_then};
use crate::load::Ending;
use crate::rig::{Rig, RigError};
use crate::verdict::{AfterFailure, Judgement, Reason, Rules, Run, Verdict, judge};

pub use kept::{tries_json, tries_of};
pub use point::Point;

/// How to search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What a load must keep to.
    pub rules: Rules,
    /// Loads are multiples of this many times the configured one; above 0.
    pub step: f64,
    /// The first load, in steps; at least 1.
    pub first: u32,
    /// The largest load, in steps.
    pub most: u32,
    /// How long each load is tried.
    pub seconds: u32,
    /// How long the largest is tried once more in the end; 0: not.
    pub confirm_seconds: u32,
    /// Devices are left alone between loads for so long.
    pub rest_seconds: u32,
    /// Loads tried at most.
    pub tries_max: usize,
    /// Seconds after which no further load begins.
    pub seconds_max: u64,
}

/// One load that was tried.
#[derive(Debug, Clone)]
pub struct Try {
    /// How many steps.
    pub steps: u32,
    /// Which kind of try.
    pub purpose: Purpose,
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// What it means.
    pub judgement: Judgement,
    /// Its point on the curve; `None` where nothing was judged.
    pub point: Option<Point>,
    /// What happened; `None` where it was tried before this process began.
    pub run: Option<Run>,
}

/// Why a load is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To find the limit.
    Probe,
    /// To confirm it.
    Confirm,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try so many steps.
    Try(u32, Purpose),
    /// It is over.
    Done(Outcome),
}

/// Why a search is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The largest load that passes is known to a step.
    Found,
    /// The largest load that was allowed passes.
    AllPass,
    /// A single step is too much.
    NonePasses,
    /// As many loads as allowed were tried.
    TriesUsed,
    /// The time was over.
    TimeUsed,
    /// Somebody asked it to stop.
    Interrupted,
    /// A load could not be issued, or could not go on.
    Broken,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Why it is over.
    pub outcome: Outcome,
    /// The largest load that passed, in steps.
    pub largest: Option<u32>,
    /// The smallest one that failed.
    pub smallest_failed: Option<u32>,
    /// How many times the configured load a step is.
    pub step: f64,
    /// All loads, in the order in which they were tried.
    pub tries: Vec<Try>,
}

impl Search {
    /// What comes after `tries`.
    pub fn next(&self, tries: &[Try]) -> Next {
        let failed = smallest_failed(tries);
        let passed = largest_passed(tries);
        let over = |outcome| {
            let confirmed =
                |tried: &Try| Some(tried.steps) == passed && tried.purpose == Purpose::Confirm;
            match passed {
                Some(steps) if self.confirm_seconds > 0 && !tries.iter().any(confirmed) => {
                    Next::Try(steps, Purpose::Confirm)
                }
                _ => Next::Done(outcome),
            }
        };
        let most = self.most.max(1);
        match (passed, failed) {
            (None, None) => Next::Try(self.first.clamp(1, most), Purpose::Probe),
            (Some(passed), None) if passed >= most => over(Outcome::AllPass),
            (Some(passed), None) => Next::Try(passed.saturating_mul(2).min(most), Purpose::Probe),
            (None, Some(1)) => Next::Done(Outcome::NonePasses),
            (passed, Some(failed)) => match passed.unwrap_or(0) {
                passed if failed - passed <= 1 => over(Outcome::Found),
                passed => Next::Try(u32::midpoint(passed, failed), Purpose::Probe),
            },
        }
    }

    fn seconds_of(&self, purpose: Purpose) -> u32 {
        match purpose {
            Purpose::Probe => self.seconds,
            Purpose::Confirm => self.confirm_seconds,
        }
    }
}

/// Searches with `rig`, going on after `tries`.
pub fn search(
    rig: &mut dyn Rig,
    search: &Search,
    mut tries: Vec<Try>,
    observer: &mut dyn Observer,
) -> Result<Found, RigError> {
    let mut spent = tries.iter().map(|tried| tried.seconds).sum::<f64>();
    let outcome = loop {
        let (steps, purpose) = match search.next(&tries) {
            Next::Done(outcome) => break outcome,
            Next::Try(steps, purpose) => (steps, purpose),
        };
        if tries.len() >= search.tries_max {
            break Outcome::TriesUsed;
        }
        if spent >= search.seconds_max as f64 {
            break Outcome::TimeUsed;
        }
        if !tries.is_empty() {
            observer.begin(Phase::Rest, Some(search.rest_seconds), 0.0);
            if rig.rest(search.rest_seconds).is_break() {
                break Outcome::Interrupted;
            }
            spent += f64::from(search.rest_seconds);
        }
        let (factor, length) = (f64::from(steps) * search.step, search.seconds_of(purpose));
        let load = (Phase::Test, factor, length);
        let run = match drive_then(rig, (&search.rules, AfterFailure::Stop), observer, load) {
            Ok(run) => run,
            Err(error) if tries.is_empty() => return Err(error),
            // What was found so far is not lost.
            Err(error) => Run::broken(rig, &search.rules, (factor, length), error),
        };
        let is_broken = matches!(run.ending, Ending::Broken(_));
        let judgement = judge(&search.rules, &run);
        if judgement.verdict == Verdict::Undecided {
            break Outcome::Interrupted;
        }
        let seconds = run.total.end_seconds;
        spent += seconds;
        let point = Point::of(&run);
        tries.push(Try { steps, purpose, seconds, judgement, point, run: Some(run) });
        if is_broken {
            // It says nothing of its load: a search that goes on from here tries it again.
            break Outcome::Broken;
        }
        observer.tried(&tries);
    };
    Ok(Found {
        outcome,
        largest: largest_passed(&tries),
        smallest_failed: smallest_failed(&tries),
        step: search.step,
        tries,
    })
}

impl Found {
    /// The largest load that passed, in times the configured one.
    pub fn largest_factor(&self) -> Option<f64> {
        self.largest.map(|steps| f64::from(steps) * self.step)
    }

    /// Whether a load is known to pass, on devices that were there to the end.
    pub fn verdict(&self) -> Verdict {
        match (self.outcome, self.largest) {
            (Outcome::Broken, _) => Verdict::Fail,
            (_, Some(_)) => Verdict::Pass,
            (Outcome::Interrupted, None) => Verdict::Undecided,
            (_, None) => Verdict::Fail,
        }
    }

    /// In how many of the loads transfers failed or brought wrong blocks: no limit of the device,
    /// but a fault.
    pub fn faulty_tries(&self) -> usize {
        let is_fault =
            |reason: &Reason| matches!(reason, Reason::Errors { .. } | Reason::Wrong { .. });
        let faulty = |tried: &&Try| tried.judgement.reasons.iter().any(is_fault);
        self.tries.iter().filter(faulty).count()
    }
}

impl Outcome {
    /// One word for scripts.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Found => "found",
            Outcome::AllPass => "all-pass",
            Outcome::NonePasses => "none-passes",
            Outcome::TriesUsed => "tries-used",
            Outcome::TimeUsed => "time-used",
            Outcome::Interrupted => "interrupted",
            Outcome::Broken => "broken",
        }
    }
}

fn smallest_failed(tries: &[Try]) -> Option<u32> {
    let failed = tries.iter().filter(|tried| tried.judgement.verdict != Verdict::Pass);
    failed.map(|tried| tried.steps).min()
}

/// The largest that passed below the smallest that failed.
fn largest_passed(tries: &[Try]) -> Option<u32> {
    let limit = smallest_failed(tries).unwrap_or(u32::MAX);
    let passed = tries.iter().filter(|tried| tried.judgement.verdict == Verdict::Pass);
    passed.map(|tried| tried.steps).filter(|steps| *steps < limit).max()
}
