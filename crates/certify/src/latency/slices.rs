//! Slices of a log, with the latencies of their transfers.

use std::fmt;

use super::LatencyOptions;
use crate::buckets::BucketUnit;
use crate::config::Finding;
use crate::log::{Log, LogHistogram, Report, Said};

/// What a log shows.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// Of the buckets.
    pub unit: BucketUnit,
    /// Seconds.
    pub slice_sec: u64,
    /// Powers of two of `unit`, rising.
    pub thresholds: Vec<u32>,
    /// The histograms, by their whole names.
    pub histograms: Vec<String>,
    /// In order, none left out.
    pub slices: Vec<Slice>,
    /// What must not be in a log: any of it makes figures doubtful.
    pub faults: Vec<Finding>,
    /// What else the log says, such as why the test ended, and what no slice shows.
    pub remarks: Vec<Finding>,
}

/// One slice of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// 1 is the first.
    pub number: u64,
    /// One for each histogram.
    pub columns: Vec<Column>,
}

/// One histogram in one slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Transfers.
    pub total: u64,
    /// % of them at or above each threshold, rounded to two digits.
    pub percent_over: Vec<f64>,
    /// Transfers a second, rounded to one digit.
    pub rate: f64,
}

/// Why there is no analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnalysisError {
    /// An option is wrong; how, in words.
    Option(String),
    /// No histogram has a name, or more than one has a name that begins so.
    Histogram {
        /// As asked for.
        name: String,
        /// Those that it may mean; none: all that there are.
        candidates: Vec<String>,
        /// Do all of the candidates begin so?
        ambiguous: bool,
    },
}

/// Analyses `log`.
///
/// # Errors
/// See [`AnalysisError`]. A faulty log is no error; see [`Analysis::faults`].
pub fn analyse(log: &Log<'_>, options: &LatencyOptions) -> Result<Analysis, AnalysisError> {
    let thresholds = options.thresholds().map_err(AnalysisError::Option)?;
    let chosen = choose(&log.names, &options.histograms)?;
    let slice_sec = slice_seconds(log, options);
    let mut analysis = Analysis {
        unit: log.unit.unwrap_or(BucketUnit::Milliseconds),
        slice_sec,
        thresholds,
        histograms: chosen.iter().map(|&index| log.names[index].clone()).collect(),
        slices: Vec::new(),
        faults: Vec::new(),
        remarks: Vec::new(),
    };
    let mut before: Option<Report> = None;
    let mut last_seconds = 0;
    let mut reports = log.reports();
    for report in reports.by_ref() {
        analysis.check_order(&report, last_seconds);
        last_seconds = report.seconds;
        let due = (analysis.slices.len() as u64 + 1).saturating_mul(slice_sec);
        if report.seconds == due && report.histograms.iter().all(Option::is_some) {
            analysis.add(&chosen, before.as_ref(), &report);
            before = Some(report);
        } else if report.seconds >= due && analysis.faults.is_empty() {
            let text = format!(
                "slice {} has no report at its end after {due} sec",
                analysis.slices.len() + 1
            );
            analysis.faults.push(Finding { line: Some(report.line), text });
        }
    }
    analysis.remarks = reports.remarks;
    analysis.check_end(log, last_seconds, reports.said);
    analysis.tell_of_rest(last_seconds);
    Ok(analysis)
}

/// The seconds of a slice: what is asked for, in whole report intervals.
pub fn slice_seconds(log: &Log<'_>, options: &LatencyOptions) -> u64 {
    let asked = u64::try_from(options.slice_sec).unwrap_or(1);
    asked.div_ceil(log.interval_sec).saturating_mul(log.interval_sec)
}

impl Analysis {
    fn add(&mut self, chosen: &[usize], before: Option<&Report>, report: &Report) {
        let columns = chosen
            .iter()
            .map(|&index| {
                let earlier = before.and_then(|report| report.histograms[index].as_ref());
                let now = report.histograms[index].as_ref();
                self.column(earlier, now, (report.line, index))
            })
            .collect();
        self.slices.push(Slice { number: self.slices.len() as u64 + 1, columns });
    }

    fn column(
        &mut self,
        earlier: Option<&LogHistogram>,
        now: Option<&LogHistogram>,
        place: (usize, usize),
    ) -> Column {
        let bucket = |histogram: Option<&LogHistogram>, index| {
            histogram.map_or(0, |histogram| histogram.buckets.count(index))
        };
        let mut fell = false;
        let mut grown = |index| {
            let (from, to) = (bucket(earlier, index), bucket(now, index));
            fell |= to < from;
            to.saturating_sub(from)
        };
        let grown: Vec<u64> = (0..crate::buckets::Buckets::COUNT).map(&mut grown).collect();
        if fell {
            let text = "counts fall from the slice before to this one".to_owned();
            self.faults.push(Finding { line: Some(place.0), text });
        }
        let total = sum(&grown);
        let percent_over = self.thresholds.iter().map(|&threshold| {
            let below = sum(&grown[..=threshold as usize]);
            match total {
                0 => 0.0,
                _ => rounded((total - below) as f64 * 100.0 / total as f64, 2),
            }
        });
        Column {
            total,
            percent_over: percent_over.collect(),
            rate: rounded(total as f64 / self.slice_sec as f64, 1),
        }
    }

    fn check_order(&mut self, report: &Report, last_seconds: u64) {
        self.faults.extend(report.faults.iter().cloned());
        if report.seconds <= last_seconds && last_seconds != 0 {
            let text = format!(
                "the report after {} sec follows the one after {last_seconds} sec",
                report.seconds
            );
            self.faults.push(Finding { line: Some(report.line), text });
        }
    }

    /// A log that ends before the test did is incomplete, unless the test says why it ended.
    fn check_end(&mut self, log: &Log<'_>, last_seconds: u64, said: Said) {
        let counts = [
            (said.failed, "transfers failed, which no histogram shows"),
            (said.wrong, "transfers brought wrong contents"),
            (said.unlisted, "more errors are not listed in the log"),
        ];
        for (count, what) in counts.into_iter().filter(|&(count, _)| count > 0) {
            self.faults.push(Finding { line: None, text: format!("{count} {what}") });
        }
        let Some(duration) = log.duration_sec else { return };
        if last_seconds < duration && !said.stopped && self.faults.is_empty() {
            let text = format!(
                "the log ends after {last_seconds} sec of {duration}; it is cut short, or the test \
                 is still running"
            );
            self.faults.push(Finding { line: None, text });
        }
    }

    /// A table shows whole slices only; what comes after the last one must not pass unseen.
    fn tell_of_rest(&mut self, last_seconds: u64) {
        let shown = (self.slices.len() as u64).saturating_mul(self.slice_sec);
        let rest = last_seconds.saturating_sub(shown);
        if rest == 0 || self.slices.is_empty() || !self.faults.is_empty() {
            return;
        }
        let text = format!(
            "the last {rest} sec, after {shown} sec, are less than a slice of {} sec and not in \
             the table; shorter slices show them",
            self.slice_sec
        );
        self.remarks.push(Finding { line: None, text });
    }
}

/// Positions of the histograms asked for. A name in full comes before one that only begins so.
fn choose(names: &[String], asked: &[String]) -> Result<Vec<usize>, AnalysisError> {
    let position = |name: &String| {
        if let Some(index) = names.iter().position(|one| one == name) {
            return Ok(index);
        }
        let begins = |index: &usize| names[*index].starts_with(name.as_str());
        let candidates: Vec<usize> = (0..names.len()).filter(begins).collect();
        match candidates[..] {
            [index] => Ok(index),
            _ => {
                let ambiguous = !candidates.is_empty();
                let listed = if ambiguous { candidates } else { (0..names.len()).collect() };
                let candidates = listed.into_iter().map(|index| names[index].clone()).collect();
                Err(AnalysisError::Histogram { name: name.clone(), candidates, ambiguous })
            }
        }
    };
    asked.iter().map(position).collect()
}

/// A log may hold any counts.
fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// Rounds as a decimal number is written, which is what the analyser's language does.
pub(super) fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$}").parse().unwrap_or(value)
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnalysisError::Option(sentence) => f.write_str(sentence),
            AnalysisError::Histogram { name, candidates, ambiguous } => {
                let listed = candidates.join("`, `");
                if *ambiguous {
                    write!(f, "more than one histogram begins with `{name}`: `{listed}`; name one")
                } else {
                    write!(f, "the log has no histogram `{name}`; it has `{listed}`")
                }
            }
        }
    }
}

impl std::error::Error for AnalysisError {}
