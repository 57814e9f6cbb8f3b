//! Prepare, wait until the device is steady, test, stress: and a verdict.

use std::ops::ControlFlow;

use crate::load::Ending;
use crate::rig::{Preparation, Prepared, Rig, RigError};
use crate::search::Try;
use crate::verdict::{
    Judgement, Plan, Reason, Round, Rules, Run, Span, Steadiness, SteadyRule, Tally, Verdict,
    judge, judge_stress,
};

/// What a certification consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    /// What the test must keep to.
    pub rules: Rules,
    /// Which devices are filled first; `None`: they are taken as they are.
    pub prepare: Option<Preparation>,
    /// Wait until they are steady; `None`: do not look.
    pub settle: Option<Settling>,
    /// The test at the configured load.
    pub test_seconds: u32,
    /// A harder load that they must only live through; `None`: none.
    pub stress: Option<Stress>,
    /// Left alone before the stress, in seconds.
    pub rest_seconds: u32,
}

/// Rounds of the configured load until the rule holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Settling {
    /// When it holds.
    pub rule: SteadyRule,
    /// Length of a round.
    pub round_seconds: u32,
    /// Rounds after which the test begins all the same.
    pub rounds_max: usize,
}

/// A load that must only run to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stress {
    /// How often the configured rates.
    pub factor: f64,
    /// How long.
    pub seconds: u32,
}

/// What a certification found.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// Pass, fail, or neither; of test and stress together.
    pub verdict: Verdict,
    /// What the rules were.
    pub rules: Rules,
    /// What preparation did.
    pub prepared: Option<Prepared>,
    /// How steady the devices were before the test.
    pub steadiness: Option<Steadiness>,
    /// The test at the configured load; `None`: it was interrupted before.
    pub test: Option<Judged>,
    /// The stress; `None`: not asked for, or the test did not pass.
    pub stress: Option<Judged>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
}

/// A run and what is to be thought of it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What happened.
    pub run: Run,
    /// What it means.
    pub judgement: Judgement,
}

/// What is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Filling the devices.
    Prepare,
    /// Waiting until they are steady.
    Settle,
    /// The load that is judged.
    Test,
    /// The harder load.
    Stress,
    /// Leaving the devices alone.
    Rest,
}

/// Is told how a certification or a search goes on.
pub trait Observer {
    /// `phase` begins and takes so many seconds, where that is known, at so many times the
    /// configured load.
    fn begin(&mut self, phase: Phase, seconds: Option<u32>, factor: f64);
    /// The load of the phase is so far, in seconds.
    fn advance(&mut self, seconds: f64);
    /// A slice of the test is complete.
    fn slice(&mut self, slice: &Span);
    /// A search tried one more load, the last of these.
    fn tried(&mut self, tries: &[Try]);
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn begin(&mut self, _: Phase, _: Option<u32>, _: f64) {}
    fn advance(&mut self, _: f64) {}
    fn slice(&mut self, _: &Span) {}
    fn tried(&mut self, _: &[Try]) {}
}

/// Certifies the devices of `rig`.
pub fn certify(
    rig: &mut dyn Rig,
    procedure: &Procedure,
    observer: &mut dyn Observer,
) -> Result<Certificate, RigError> {
    let mut certificate = Certificate {
        verdict: Verdict::Undecided,
        rules: procedure.rules.clone(),
        prepared: None,
        steadiness: None,
        test: None,
        stress: None,
        notes: Vec::new(),
    };
    if let Some(which) = procedure.prepare {
        observer.begin(Phase::Prepare, None, 0.0);
        let prepared = rig.prepare(which)?;
        certificate.prepared = Some(prepared);
        if prepared.stopped {
            certificate.notes.push("It was interrupted while it filled the devices.".to_owned());
            return Ok(certificate);
        }
    }
    if let Some(settling) = &procedure.settle {
        match settle(rig, settling, &procedure.rules, observer)? {
            Settled::Interrupted => {
                certificate.notes.push("It was interrupted before the test.".to_owned());
                return Ok(certificate);
            }
            Settled::Assessed(steadiness) => {
                certificate.notes.extend(unsteady_note(&steadiness, settling));
                certificate.steadiness = Some(steadiness);
            }
        }
    }
    let seconds = procedure.test_seconds;
    let run = drive(rig, &procedure.rules, observer, (Phase::Test, 1.0, seconds))?;
    let judgement = judge(&procedure.rules, &run);
    certificate.verdict = judgement.verdict;
    certificate.notes.extend(judgement.notes.iter().cloned());
    certificate.test = Some(Judged { run, judgement });
    if certificate.verdict == Verdict::Pass
        && let Some(stress) = procedure.stress
    {
        stress_test(rig, procedure, stress, (&mut certificate, observer));
    } else if procedure.stress.is_some() {
        certificate.notes.push("The test did not pass, so there was no stress.".to_owned());
    }
    Ok(certificate)
}

impl Certificate {
    /// Why it is no pass.
    pub fn reasons(&self) -> Vec<&Reason> {
        let both = [&self.test, &self.stress];
        both.into_iter().flatten().flat_map(|judged| &judged.judgement.reasons).collect()
    }
}

impl Default for Settling {
    fn default() -> Settling {
        Settling { rule: SteadyRule::default(), round_seconds: 60, rounds_max: 25 }
    }
}

fn stress_test(
    rig: &mut dyn Rig,
    procedure: &Procedure,
    stress: Stress,
    (certificate, observer): (&mut Certificate, &mut dyn Observer),
) {
    observer.begin(Phase::Rest, Some(procedure.rest_seconds), 0.0);
    if rig.rest(procedure.rest_seconds).is_break() {
        certificate.verdict = Verdict::Undecided;
        certificate.notes.push("It was interrupted before the stress.".to_owned());
        return;
    }
    let what = (Phase::Stress, stress.factor, stress.seconds);
    // What the test found is not lost with a device that is gone by now.
    let run = drive(rig, &procedure.rules, observer, what).unwrap_or_else(|error| {
        Run::broken(rig, &procedure.rules, (stress.factor, stress.seconds), error)
    });
    let judgement = judge_stress(&procedure.rules, &run);
    certificate.verdict = judgement.verdict;
    certificate.stress = Some(Judged { run, judgement });
}

enum Settled {
    Assessed(Steadiness),
    Interrupted,
}

fn settle(
    rig: &mut dyn Rig,
    settling: &Settling,
    rules: &Rules,
    observer: &mut dyn Observer,
) -> Result<Settled, RigError> {
    let mut rounds = Vec::new();
    loop {
        let seconds = settling.round_seconds;
        let run = drive(rig, rules, observer, (Phase::Settle, 1.0, seconds))?;
        if run.ending == Ending::Interrupted {
            return Ok(Settled::Interrupted);
        }
        rounds.push(round_of(&run));
        let steadiness = settling.rule.assess(&rounds);
        if steadiness.steady
            || rounds.len() >= settling.rounds_max
            || run.ending != Ending::Completed
        {
            return Ok(Settled::Assessed(steadiness));
        }
    }
}

fn round_of(run: &Run) -> Round {
    let done = run.counting_series().into_iter().map(|index| run.total.done_per_second(index));
    let judged = run.judged_series().map(|index| run.total.series[index].service.summary.mean);
    Round { done_per_second: done.sum(), service_ns: judged.unwrap_or(0.0) }
}

fn unsteady_note(steadiness: &Steadiness, settling: &Settling) -> Option<String> {
    (!steadiness.steady).then(|| {
        format!(
            "The device was not steady after {} rounds of {} s: over the last {} its figures range \
             over {:.0} % (allowed {:.0} %) and move by {:.0} % (allowed {:.0} %).",
            steadiness.rounds.len(),
            settling.round_seconds,
            settling.rule.window.min(steadiness.rounds.len()),
            steadiness.range_percent,
            settling.rule.range_percent,
            steadiness.slope_percent,
            settling.rule.slope_percent
        )
    })
}

impl Run {
    /// A load that could not be issued: so many times the configured one, for so many seconds.
    pub(crate) fn broken(
        rig: &dyn Rig,
        rules: &Rules,
        (factor, seconds): (f64, u32),
        error: RigError,
    ) -> Run {
        let plan = Plan { factor, seconds, interval_seconds: rig.interval_seconds() };
        Tally::new(plan, rules, rig.series()).finish(Ending::Broken(error.0))
    }
}

/// One load, folded.
pub(crate) fn drive(
    rig: &mut dyn Rig,
    rules: &Rules,
    observer: &mut dyn Observer,
    (phase, factor, seconds): (Phase, f64, u32),
) -> Result<Run, RigError> {
    drive_then(rig, (rules, crate::verdict::AfterFailure::GoOn), observer, (phase, factor, seconds))
}

pub(crate) fn drive_then(
    rig: &mut dyn Rig,
    (rules, after_failure): (&Rules, crate::verdict::AfterFailure),
    observer: &mut dyn Observer,
    (phase, factor, seconds): (Phase, f64, u32),
) -> Result<Run, RigError> {
    observer.begin(phase, Some(seconds), factor);
    let plan = Plan { factor, seconds, interval_seconds: rig.interval_seconds() };
    let mut tally = Tally::new(plan, rules, rig.series());
    let mut shown = 0;
    let mut visit = |interval: &crate::load::Interval| -> ControlFlow<()> {
        let next = tally.add_then(interval, after_failure);
        observer.advance(interval.end_seconds);
        for slice in &tally.closed_slices()[shown..] {
            observer.slice(slice);
        }
        shown = tally.closed_slices().len();
        next
    };
    let ending = rig.load(factor, seconds, &mut visit)?;
    let mut run = tally.finish(ending);
    run.processor_wait_seconds = rig.processor_wait_seconds();
    for slice in &run.slices[shown.min(run.slices.len())..] {
        observer.slice(slice);
    }
    Ok(run)
}
