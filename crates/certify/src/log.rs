//! Reading a log: its header, then one report after the other.
//!
//! Logs of ACT 6, which are also ours, and of ACT 3 to 5 are read. Reports are parsed one at a
//! time, since a day's log is long. Text that does not belong in a report is never taken for one of
//! its counts: it becomes a fault, with its line.

mod header;
mod report;

use std::fmt;

pub use header::Log;
pub use report::{LogHistogram, Report, Reports, Said};

use crate::config::Finding;

/// Why a text is no log that can be read. The sentences are those of ACT's analyser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogError {
    /// No line tells a version.
    NoVersion,
    /// The version is none that is known; its text.
    Incompatible(String),
    /// No report interval.
    NoInterval,
    /// The report interval is not a number above 0.
    BadInterval,
    /// No configuration is shown.
    NoConfiguration,
    /// No derived rates are shown.
    NoDerived,
    /// No histograms are named.
    NoNames,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogError::NoVersion => "ACT version not found",
            LogError::Incompatible(_) => "ACT version not compatible",
            LogError::NoInterval => "can't find report interval",
            LogError::BadInterval => "reporting interval must be more than 0",
            LogError::NoConfiguration => "can't recognize configuration",
            LogError::NoDerived => "can't find derived configuration",
            LogError::NoNames => "can't find histogram names",
        })
    }
}

impl std::error::Error for LogError {}

fn finding(line: usize, text: String) -> Finding {
    Finding { line: Some(line), text }
}
