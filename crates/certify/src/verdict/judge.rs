//! A run compared with the rules: pass or fail, each reason in words with its numbers.
//!
//! The bounds hold for response time, counted from the moment when a transfer was due, the time
//! that a caller would have waited. A failed transfer counts although it is in no histogram.

use std::fmt;

use crate::load::{Ending, Kind, Series, Telemetry};
use crate::verdict::run::{counts, judged_kind};
use crate::verdict::{Bound, Figures, Rules, Run, Span, Trend};

/// Pass, fail, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every rule held to the end.
    Pass,
    /// A rule was broken.
    Fail,
    /// The run was interrupted before a rule was broken.
    Undecided,
}

/// A verdict with what led to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Pass, fail, or neither.
    pub verdict: Verdict,
    /// Why not pass; empty only for a pass.
    pub reasons: Vec<Reason>,
    /// What a reader should know besides; changes no verdict.
    pub notes: Vec<String>,
}

/// Why a run does not pass.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Too large a share of the operations took too long.
    TooSlow {
        /// Name of the series.
        series: String,
        /// The bound that was broken.
        bound: Bound,
        /// How many slices broke it.
        slices: usize,
        /// The worst of them.
        worst_slice: u32,
        /// The share there, by response time, %.
        percent: f64,
        /// The share there by service time, %.
        service_percent: f64,
    },
    /// Transfers failed.
    Errors {
        /// Name of the series.
        series: String,
        /// How many.
        count: u64,
        /// Out of how many, the failed ones included.
        of: u64,
    },
    /// Blocks held something else than what was written there.
    Wrong {
        /// Name of the series.
        series: String,
        /// How many.
        count: u64,
    },
    /// Less was done than was due.
    Shortfall {
        /// Name of the series.
        series: String,
        /// In how many slices.
        slices: usize,
        /// The worst of them.
        worst_slice: u32,
        /// Due in it.
        due: u64,
        /// Done in it.
        done: u64,
    },
    /// The load stopped because it was too far behind.
    Lagged {
        /// Which transfers.
        kind: Kind,
        /// How far, ns.
        lag_ns: u64,
        /// When, seconds since the start.
        at_seconds: f64,
    },
    /// The load could not go on.
    Broken {
        /// Why.
        why: String,
    },
    /// Whole slices are not there.
    MissingSlices {
        /// How many.
        missing: u32,
        /// Of how many.
        of: u32,
    },
    /// A slice is only partly there.
    PartialSlice {
        /// Which.
        slice: u32,
        /// Seconds that intervals cover.
        covered_seconds: f64,
        /// Seconds that they should cover.
        planned_seconds: f64,
    },
    /// No operation that the bounds hold for was completed.
    NothingJudged,
    /// The load went on long after its time was over.
    Overran {
        /// When it was stopped, seconds since the start.
        at_seconds: f64,
    },
    /// Somebody stopped it.
    Interrupted {
        /// When, seconds since the start.
        at_seconds: f64,
    },
}

/// Operations that may be missing at a slice's edge, besides those that a bound still allows to be
/// under way.
const UNDER_WAY: f64 = 2.0;

/// Share of the time that threads may wait for a processor before a note says so.
const WAIT_SHARE_MAX: f64 = 0.005;

/// Holds `run` against `rules`.
pub fn judge(rules: &Rules, run: &Run) -> Judgement {
    let mut reasons = Vec::new();
    reasons.extend(endings(run));
    reasons.extend(failures(run));
    reasons.extend(slow_series(rules, run));
    reasons.extend(shortfalls(rules, run));
    if !run.cut_short {
        reasons.extend(missing(run));
    }
    Judgement { verdict: verdict_of(&reasons, run), reasons, notes: notes(rules, run) }
}

/// Holds `run` to what a stress test asks: that it runs to its end without an error. Latencies and
/// the rate are free.
pub(crate) fn judge_stress(rules: &Rules, run: &Run) -> Judgement {
    let mut judgement = judge(rules, run);
    judgement
        .reasons
        .retain(|reason| !matches!(reason, Reason::TooSlow { .. } | Reason::Shortfall { .. }));
    judgement.verdict = verdict_of(&judgement.reasons, run);
    judgement.notes.clear();
    judgement
}

/// Says whether a complete slice already breaks a rule.
pub(crate) fn breaks_rules(rules: &Rules, series: &[Series], slice: &Span) -> bool {
    let judged = judged_kind(series);
    slice.series.iter().enumerate().any(|(index, figures)| {
        let slow = judged == Some(series[index].kind)
            && (0..rules.bounds.len()).any(|bound| is_broken(&rules.bounds[bound], bound, figures));
        let fails = figures.errors > 0 || figures.wrong > 0 || falls_short(rules, slice, figures);
        // What a device of several is due is a share of what all are.
        slow || (fails && counts(series, index))
    })
}

impl Run {
    /// How the 99th percentile of response time moved, where enough slices or points tell.
    pub fn trend(&self) -> Option<Trend> {
        let judged = self.judged_series()?;
        let spans = if self.slices.len() >= 6 { &self.slices } else { &self.timeline };
        let whole = |span: &&Span| span.series[judged].response.summary.count > 0;
        let p99 = |span: &Span| span.series[judged].response.summary.p99 as f64;
        Trend::of(&spans.iter().filter(whole).map(p99).collect::<Vec<_>>())
    }
}

impl Run {
    /// The slices that must keep to the rules. One that an interruption cut is too short to tell
    /// how it would have ended: a pause that is allowed in it may have come at its beginning.
    fn judged_slices(&self) -> &[Span] {
        match self.slices.split_last() {
            Some((last, whole)) if self.was_interrupted() && self.is_partial(last) => whole,
            _ => &self.slices,
        }
    }

    /// Somebody stopped it, for none of the rules' reasons.
    fn was_interrupted(&self) -> bool {
        self.ending == Ending::Interrupted && !self.cut_short
    }

    fn is_partial(&self, slice: &Span) -> bool {
        let (start, end) = self.slicing.span(slice.number, self.planned_seconds);
        slice.covered_seconds < (end - start) * 0.99 - 0.05
    }
}

fn verdict_of(reasons: &[Reason], run: &Run) -> Verdict {
    let follows_from_interruption = |reason: &Reason| {
        matches!(
            reason,
            Reason::Interrupted { .. }
                | Reason::MissingSlices { .. }
                | Reason::PartialSlice { .. }
                | Reason::NothingJudged
        )
    };
    if reasons.is_empty() {
        // A load that was given up cannot have passed.
        if run.cut_short { Verdict::Undecided } else { Verdict::Pass }
    } else if run.was_interrupted() && reasons.iter().all(follows_from_interruption) {
        Verdict::Undecided
    } else {
        Verdict::Fail
    }
}

fn endings(run: &Run) -> Option<Reason> {
    let at_seconds = run.total.end_seconds;
    match &run.ending {
        Ending::Completed => None,
        Ending::Interrupted if run.cut_short => None,
        Ending::Interrupted if at_seconds > f64::from(run.planned_seconds) + 1.0 => {
            Some(Reason::Overran { at_seconds })
        }
        Ending::Interrupted => Some(Reason::Interrupted { at_seconds }),
        Ending::Lagged { kind, lag_ns } => {
            Some(Reason::Lagged { kind: *kind, lag_ns: *lag_ns, at_seconds })
        }
        Ending::Broken(why) => Some(Reason::Broken { why: why.clone() }),
    }
}

fn failures(run: &Run) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for index in run.counting_series() {
        let (name, figures) = (&run.series[index].name, &run.total.series[index]);
        if figures.errors > 0 {
            let of = figures.done + figures.errors;
            reasons.push(Reason::Errors { series: name.clone(), count: figures.errors, of });
        }
        if figures.wrong > 0 {
            reasons.push(Reason::Wrong { series: name.clone(), count: figures.wrong });
        }
    }
    reasons
}

fn slow_series(rules: &Rules, run: &Run) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let kind = run.judged_kind();
    let devices = run.series.iter().filter(|s| Some(s.kind) == kind && s.device.is_some()).count();
    for (index, series) in run.series.iter().enumerate() {
        // With a single device its series says the same again.
        let repeats = series.device.is_some() && devices == 1 && run.judged_series() != Some(index);
        if Some(series.kind) != kind || repeats {
            continue;
        }
        for (number, bound) in rules.bounds.iter().enumerate() {
            reasons.extend(slow_reason(run, index, number, bound));
        }
    }
    reasons
}

fn slow_reason(run: &Run, index: usize, number: usize, bound: &Bound) -> Option<Reason> {
    let broken = |slice: &&Span| is_broken(bound, number, &slice.series[index]);
    let percent = |slice: &Span| slice.series[index].response.percent_over(number);
    let slices = run.judged_slices();
    let worst = slices.iter().filter(broken).max_by(|a, b| percent(a).total_cmp(&percent(b)))?;
    Some(Reason::TooSlow {
        series: run.series[index].name.clone(),
        bound: *bound,
        slices: slices.iter().filter(broken).count(),
        worst_slice: worst.number,
        percent: percent(worst),
        service_percent: worst.series[index].service.percent_over(number),
    })
}

fn shortfalls(rules: &Rules, run: &Run) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for index in run.counting_series() {
        let short = |slice: &&Span| falls_short(rules, slice, &slice.series[index]);
        let missing = |slice: &&Span| {
            let figures = &slice.series[index];
            figures.due.saturating_sub(figures.done)
        };
        let slices = run.judged_slices().iter().filter(short).count();
        if let Some(worst) = run.judged_slices().iter().filter(short).max_by_key(missing) {
            let Figures { due, done, .. } = worst.series[index];
            let series = run.series[index].name.clone();
            let worst_slice = worst.number;
            reasons.push(Reason::Shortfall { series, slices, worst_slice, due, done });
        }
    }
    reasons
}

fn missing(run: &Run) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let there = run.slices.len() as u32;
    if there < run.slicing.count {
        let missing = run.slicing.count - there;
        reasons.push(Reason::MissingSlices { missing, of: run.slicing.count });
    }
    for slice in &run.slices {
        if run.is_partial(slice) {
            let (start, end) = run.slicing.span(slice.number, run.planned_seconds);
            let planned_seconds = end - start;
            let covered_seconds = slice.covered_seconds;
            let slice = slice.number;
            reasons.push(Reason::PartialSlice { slice, covered_seconds, planned_seconds });
        }
    }
    let judged = run.judged_series();
    let none = |index: usize| run.total.series[index].done == 0;
    if judged.is_none_or(none) {
        reasons.push(Reason::NothingJudged);
    }
    reasons
}

fn is_broken(bound: &Bound, number: usize, figures: &Figures) -> bool {
    figures.response.percent_over(number) >= bound.percent
}

fn falls_short(rules: &Rules, slice: &Span, figures: &Figures) -> bool {
    let due = figures.due as f64;
    let patience = rules.bounds.iter().map(|bound| bound.threshold_ns).max().unwrap_or(0);
    let rate = due / slice.covered_seconds.max(f64::MIN_POSITIVE);
    let under_way = UNDER_WAY + rate * patience as f64 / 1e9;
    let missing = figures.due.saturating_sub(figures.done + figures.errors) as f64;
    missing > due * rules.shortfall_percent / 100.0 + under_way
}

fn notes(rules: &Rules, run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    if run.slicing.scaled {
        notes.push(format!(
            "The test is shorter than a slice of {} s, so it was judged in slices of {} s.",
            rules.slice_seconds, run.slicing.seconds
        ));
    }
    if let Some(kind) = run.judged_kind().filter(|kind| *kind != Kind::Read) {
        notes.push(format!("There are no reads, so the bounds hold for {}.", plural(kind)));
    }
    let waited = run.processor_wait_seconds.unwrap_or(0.0);
    let share = waited / run.total.end_seconds.max(f64::MIN_POSITIVE);
    if share > WAIT_SHARE_MAX {
        notes.push(format!(
            "Threads of the load waited for a processor for {waited:.1} s, {:.1} % of the time: \
             this machine is busy with other work, and response times hold that wait.",
            100.0 * share
        ));
    }
    notes.extend(run.total.telemetry.iter().flat_map(health_notes));
    if let Some(trend) = run.trend().filter(Trend::is_degradation) {
        notes.push(format!(
            "The device gets slower: 99 % of the operations took up to {} at the start and up to \
             {} at the end. Test for longer before you rely on this verdict.",
            duration(trend.first as u64),
            duration(trend.last as u64)
        ));
    }
    notes
}

/// What a device says of itself that explains how it did.
fn health_notes(one: &Telemetry) -> Vec<String> {
    /// The bits of NVMe's critical warning.
    const WARNINGS: [&str; 6] = [
        "few spare blocks are left",
        "its temperature is outside what it bears",
        "its reliability is degraded",
        "it takes no more writes",
        "the backup of its volatile memory failed",
        "its persistent memory region takes no more writes",
    ];
    let device = &one.device;
    let mut notes = Vec::new();
    if let Some(count) = one.media_errors.filter(|count| *count > 0) {
        notes.push(format!("{device} counted {count} media errors meanwhile."));
    }
    if let Some(seconds) = one.throttled_seconds.filter(|seconds| *seconds > 0) {
        notes.push(format!(
            "{device} went slower for {seconds} s so as not to get too hot: cool it better before \
             you believe its latencies."
        ));
    }
    let warns = one.warnings.unwrap_or(0);
    let told = WARNINGS.iter().enumerate().filter(|(bit, _)| warns >> bit & 1 == 1);
    notes.extend(told.map(|(_, words)| format!("{device} warns: {words}.")));
    notes
}

/// What a kind is called in a sentence.
pub(crate) fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "reads",
        Kind::Write => "writes",
        Kind::LargeRead => "large-block reads",
        Kind::LargeWrite => "large-block writes",
        Kind::Raid => "reads of the tomb raider",
    }
}

/// Nanoseconds in the unit that keeps the number short.
pub(crate) fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => (ns as f64, "ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let decimals = if value >= 100.0 || ns < 1_000 { 0 } else { 2 };
    format!("{value:.decimals$} {unit}")
}

impl Verdict {
    /// One word for scripts: `pass`, `fail`, `undecided`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Undecided => "undecided",
        }
    }
}

impl Reason {
    /// One word for scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Reason::TooSlow { .. } => "too-slow",
            Reason::Errors { .. } => "errors",
            Reason::Wrong { .. } => "wrong-blocks",
            Reason::Shortfall { .. } => "shortfall",
            Reason::Lagged { .. } => "lagged",
            Reason::Broken { .. } => "broken",
            Reason::MissingSlices { .. } => "missing-slices",
            Reason::PartialSlice { .. } => "partial-slice",
            Reason::NothingJudged => "nothing-judged",
            Reason::Overran { .. } => "overran",
            Reason::Interrupted { .. } => "interrupted",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TooSlow { series, bound, slices, worst_slice, percent, service_percent } => {
                write!(
                    f,
                    "{series}: {percent:.2} % took {} ms or longer in slice {worst_slice}, allowed \
                     is less than {} % ({}; by service time {service_percent:.2} %).",
                    bound.threshold_ms(),
                    bound.percent,
                    slices_over(*slices)
                )
            }
            Reason::Errors { series, count, of } => {
                write!(f, "{series}: {count} of {of} transfers failed; none may.")
            }
            Reason::Wrong { series, count } => write!(
                f,
                "{series}: {count} blocks held something else than what was written there."
            ),
            Reason::Shortfall { series, slices, worst_slice, due, done } => write!(
                f,
                "{series}: {done} of {due} were done in slice {worst_slice}, {:.1} % too few ({}).",
                100.0 * (*due as f64 - *done as f64) / *due as f64,
                slices_over(*slices)
            ),
            Reason::Lagged { kind, lag_ns, at_seconds } => write!(
                f,
                "{} fell {} behind and the load stopped after {at_seconds:.0} s.",
                plural(*kind),
                duration(*lag_ns)
            ),
            Reason::Broken { why } => write!(f, "The load could not go on: {why}."),
            Reason::MissingSlices { missing, of } => {
                write!(f, "{missing} of {of} slices are missing.")
            }
            Reason::PartialSlice { slice, covered_seconds, planned_seconds } => {
                write!(f, "Slice {slice} covers {covered_seconds:.1} s of {planned_seconds:.0} s.")
            }
            Reason::NothingJudged => {
                f.write_str("No operation was completed that the bounds could hold for.")
            }
            Reason::Overran { at_seconds } => write!(
                f,
                "The load had not ended {at_seconds:.0} s after its start, long after its time."
            ),
            Reason::Interrupted { at_seconds } => {
                write!(f, "It was interrupted after {at_seconds:.0} s.")
            }
        }
    }
}

fn slices_over(slices: usize) -> String {
    if slices == 1 { "1 slice".to_owned() } else { format!("{slices} slices") }
}
