//! One load from its start to its end, summed up.

use entresol_workload::Summary;

use crate::load::{Ending, Kind, Series, Telemetry};
use crate::verdict::{Bound, Slicing};

/// One load from its start to its end.
#[derive(Debug, Clone)]
pub struct Run {
    /// How often the configured rates it ran at.
    pub factor: f64,
    /// How long it was to run.
    pub planned_seconds: u32,
    /// How it is cut.
    pub slicing: Slicing,
    /// The bounds that [`Latency::over`] counts against.
    pub bounds: Vec<Bound>,
    /// What was transferred; the order of [`Span::series`].
    pub series: Vec<Series>,
    /// The slices that the bounds hold for, in order of time. Those without any interval are not
    /// there.
    pub slices: Vec<Span>,
    /// The same time cut finer, for charts: at most about 300 spans.
    pub timeline: Vec<Span>,
    /// All of it.
    pub total: Span,
    /// Why it ended.
    pub ending: Ending,
    /// How long threads of the load waited for a processor, seconds; `None`: not known.
    pub processor_wait_seconds: Option<f64>,
    /// It was told to stop once a slice had broken a rule, so later slices are not missing.
    pub cut_short: bool,
}

/// A span of a run.
#[derive(Debug, Clone, Default)]
pub struct Span {
    /// 1 is the first.
    pub number: u32,
    /// When it began, seconds since the start of the load.
    pub start_seconds: f64,
    /// When it ended.
    pub end_seconds: f64,
    /// The time of the intervals in it; less than its length where some are missing.
    pub covered_seconds: f64,
    /// The furthest that any stream was behind its schedule, ns.
    pub lag_ns: u64,
    /// In the order of the run's list of series.
    pub series: Vec<Figures>,
    /// One for each device that the system tells of.
    pub telemetry: Vec<Telemetry>,
}

/// One series in one span.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Transfers that the schedule made due.
    pub due: u64,
    /// Transfers completed.
    pub done: u64,
    /// Transfers that failed.
    pub errors: u64,
    /// Blocks that held something else than what was written there.
    pub wrong: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// From the due time to completion.
    pub response: Latency,
    /// From submission to completion.
    pub service: Latency,
}

/// Latencies of one series in one span, ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latency {
    /// Count, extremes, means, percentiles.
    pub summary: Summary,
    /// For each bound of the rules, how many took as long as its threshold or longer.
    pub over: Vec<u64>,
}

impl Run {
    /// The kind of transfer that the bounds hold for: reads where there are any, else writes, else
    /// large ones.
    pub fn judged_kind(&self) -> Option<Kind> {
        judged_kind(&self.series)
    }

    /// The series of all devices together that the bounds hold for, as a position in the list.
    pub fn judged_series(&self) -> Option<usize> {
        let kind = self.judged_kind()?;
        let of_kind = |series: &&(usize, &Series)| series.1.kind == kind;
        let all: Vec<(usize, &Series)> = self.series.iter().enumerate().collect();
        let together = all.iter().filter(of_kind).find(|(_, series)| series.device.is_none());
        together.or_else(|| all.iter().find(of_kind)).map(|(index, _)| *index)
    }

    /// The series that count each transfer once: those of all devices together, and those of one
    /// device where there is none of all.
    pub fn counting_series(&self) -> Vec<usize> {
        (0..self.series.len()).filter(|index| counts(&self.series, *index)).collect()
    }
}

/// Whether one of the series counts transfers that no other of them does.
pub(crate) fn counts(all: &[Series], index: usize) -> bool {
    let series = &all[index];
    let together = |other: &Series| other.kind == series.kind && other.device.is_none();
    series.device.is_none() || !all.iter().any(together)
}

impl Span {
    /// How long it is by the clock, in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_seconds - self.start_seconds
    }

    /// Completed transfers of series `index` a second.
    pub fn done_per_second(&self, index: usize) -> f64 {
        per_second(self.series[index].done, self.covered_seconds)
    }

    /// Due transfers of series `index` a second.
    pub fn due_per_second(&self, index: usize) -> f64 {
        per_second(self.series[index].due, self.covered_seconds)
    }
}

impl Latency {
    /// Percent at or above the threshold of bound `index`; 0 where nothing was done.
    pub fn percent_over(&self, index: usize) -> f64 {
        match self.summary.count {
            0 => 0.0,
            count => 100.0 * self.over[index] as f64 / count as f64,
        }
    }
}

pub(crate) fn judged_kind(series: &[Series]) -> Option<Kind> {
    [Kind::Read, Kind::Write, Kind::LargeWrite, Kind::LargeRead, Kind::Raid]
        .into_iter()
        .find(|kind| series.iter().any(|series| series.kind == *kind))
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
