//! The text of a log before its first report.

use super::{LogError, Reports, report};
use crate::buckets::BucketUnit;

/// A log, its header read.
#[derive(Debug, Clone)]
pub struct Log<'a> {
    /// The version of ACT that wrote it, as it says so.
    pub version: String,
    /// Seconds between two reports.
    pub interval_sec: u64,
    /// Seconds that the test was to last, where the log says so.
    pub duration_sec: Option<u64>,
    /// The unit of the buckets; `None`: the log does not say, so ms.
    pub unit: Option<BucketUnit>,
    /// The configuration, with its title.
    pub configuration: Vec<&'a str>,
    /// The derived rates, with their title where there is one.
    pub derived: Vec<&'a str>,
    /// The histograms of each report, in order.
    pub names: Vec<String>,
    /// The histograms that the header names, in order. ACT 6.0 and 6.1 name some that no report
    /// has.
    pub announced: Vec<String>,
    text: &'a str,
    /// Where the header ends: what failed before the first report is said from there on.
    end: Position,
    first_report: Position,
    is_old: bool,
    has_old_titles: bool,
}

/// Histograms that ACT 6.0 and 6.1 name in their header and print in no report.
const NAMED_IN_VAIN: [&str; 2] = ["device-reads", "device-writes"];

/// Where in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// Bytes from its begin.
    pub(super) offset: usize,
    /// 1 is the first line.
    pub(super) line: usize,
}

impl<'a> Log<'a> {
    /// Reads the header of `text`.
    ///
    /// # Errors
    /// What is missing; see [`LogError`].
    pub fn read(text: &'a str) -> Result<Log<'a>, LogError> {
        let version = version(text).ok_or(LogError::NoVersion)?;
        let number = number_of(&version).ok_or_else(|| LogError::Incompatible(version.clone()))?;
        if !(3.0..7.0).contains(&number) {
            return Err(LogError::Incompatible(version));
        }
        let interval = value_of(text, "report-interval-sec").ok_or(LogError::NoInterval)?;
        let interval_sec = match interval.parse() {
            Ok(seconds) if seconds > 0 => seconds,
            _ => return Err(LogError::BadInterval),
        };
        let unit = value_of(text, "microsecond-histograms").map(|value| match value.as_bytes() {
            [b'y', ..] => BucketUnit::Microseconds,
            _ => BucketUnit::Milliseconds,
        });
        let configuration = block(text, |line| line.ends_with("CONFIGURATION"));
        if configuration.is_empty() {
            return Err(LogError::NoConfiguration);
        }
        let first_report = first_report(text);
        let duration = value_of(text, "test-duration-sec").and_then(|value| value.parse().ok());
        let mut log = Log {
            version,
            interval_sec,
            duration_sec: duration,
            unit,
            configuration,
            derived: Vec::new(),
            names: Vec::new(),
            announced: Vec::new(),
            text,
            end: first_report,
            first_report,
            is_old: number < 6.0,
            has_old_titles: false,
        };
        log.read_rates_and_names()?;
        log.announced = log.names.clone();
        if (6.0..6.2).contains(&number) {
            log.names.retain(|name| !NAMED_IN_VAIN.contains(&name.as_str()));
        }
        Ok(log)
    }

    /// Was it written by an ACT before 6?
    pub fn is_old(&self) -> bool {
        self.is_old
    }

    /// The reports, in order.
    pub fn reports(&self) -> Reports<'a> {
        Reports::new(self.text, self.end, self.names.clone(), self.has_old_titles)
    }

    fn read_rates_and_names(&mut self) -> Result<(), LogError> {
        self.derived = block(self.text, |line| line == "DERIVED CONFIGURATION");
        let names = block(self.text, |line| line == "HISTOGRAM NAMES");
        self.names = names.iter().skip(1).map(|&name| name.to_owned()).collect();
        if let Some(end) = after_names(self.text) {
            self.end = end;
        }
        if self.is_old && self.names.is_empty() {
            // Logs before 5 show rates in words without a title, and name no histograms: those of
            // the first report are all there are.
            self.has_old_titles = true;
            let words = "internal read requests per sec";
            self.derived = block(self.text, |line| line.starts_with(words));
            let lines = self.text[self.first_report.offset..].lines().skip(1);
            self.names = report::old_names(lines);
        } else if self.derived.is_empty() {
            return Err(LogError::NoDerived);
        }
        if self.names.is_empty() { Err(LogError::NoNames) } else { Ok(()) }
    }
}

/// The version: the word after `version` in ACT's own line, or in the one of version 4.
fn version(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim_end);
    lines
        .filter_map(|line| {
            line.strip_prefix("ACT version")
                .or_else(|| line.strip_prefix("Aerospike act version"))
                .or_else(|| line.strip_prefix("Aerospike ACT version"))
        })
        .find_map(|rest| rest.split_whitespace().next().map(str::to_owned))
}

/// Major and minor number of a version such as `6.6` or `5.3.1`.
fn number_of(version: &str) -> Option<f64> {
    let mut parts = version.split('.');
    let major: u32 = parts.next()?.parse().ok()?;
    let minor = parts.next().unwrap_or("0");
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    format!("{major}.{digits}").parse().ok()
}

/// The first word after `name:` at the begin of a line.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(rest.split_whitespace().next().unwrap_or(""))
}

/// From the first line that `begins` accepts to the next empty one.
fn block(text: &str, begins: impl Fn(&str) -> bool) -> Vec<&str> {
    let lines = text.lines().map(str::trim_end);
    lines.skip_while(|line| !begins(line)).take_while(|line| !line.is_empty()).collect()
}

/// After the block of names and its empty line.
fn after_names(text: &str) -> Option<Position> {
    let mut position = Position { offset: 0, line: 1 };
    let mut within = false;
    for line in text.split_inclusive('\n') {
        position.offset += line.len();
        position.line += 1;
        let line = line.trim_end();
        if within && line.is_empty() {
            return Some(position);
        }
        within |= line == "HISTOGRAM NAMES";
    }
    None
}

fn first_report(text: &str) -> Position {
    let mut position = Position { offset: 0, line: 1 };
    for line in text.split_inclusive('\n') {
        if report::seconds_of(line).is_some() {
            break;
        }
        position.offset += line.len();
        position.line += 1;
    }
    position
}
