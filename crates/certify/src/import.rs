//! Configurations from reports that operators have at hand: tables and logs of a cluster, captures
//! of `iostat`, logs of fio, and the statistics of our own server.
//!
//! Each importer turns a text into a [`Profile`]. Values that a text lacks stay open, and come from
//! the defaults or from another text.

mod asloglatency;
mod fio;
mod iostat;
mod profile;
mod server_log;
mod stats;

use std::fmt;

pub use iostat::DeviceLoad;
pub use profile::Profile;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Tables of `asloglatency`.
    Asloglatency,
    /// A server's log with dumps of histograms and lines of its devices.
    ServerLog,
    /// A capture of `iostat -x`.
    Iostat,
    /// A log of fio: one line for each transfer.
    Fio,
    /// `/stats` of our own server.
    Stats,
}

/// Which part of a text is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Namespace; `None`: the only one there is.
    pub namespace: Option<String>,
    /// Devices; none: the only busy one.
    pub devices: Vec<String>,
    /// Transfers of this size and more are large blocks, bytes.
    pub large_block_bytes: u64,
    /// What the first table of a capture of `iostat` is the mean of.
    pub first_table: FirstTable,
}

/// What the first of several tables of `iostat` is the mean of. The text does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstTable {
    /// The time since the system started; it is left out.
    #[default]
    SinceStart,
    /// An interval like the others, as `iostat -y` prints it.
    Interval,
}

/// Why a text is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Where, if it is one line: 1 is the first.
    pub line: Option<usize>,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

/// What `text` looks like.
pub fn detect(text: &str) -> Option<Source> {
    let mut lines = text.lines().take(LINES_LOOKED_AT);
    if text.trim_start().starts_with('{') && text.contains("\"uptime_seconds\"") {
        return Some(Source::Stats);
    }
    lines.find_map(|line| {
        let words = line.trim();
        if words.starts_with("slice-to") || words.starts_with("% >") {
            Some(Source::Asloglatency)
        } else if words.contains("histogram dump: {") || words.contains(": used-bytes ") {
            Some(Source::ServerLog)
        } else if iostat::is_header(words) {
            Some(Source::Iostat)
        } else if fio::is_line(words) {
            Some(Source::Fio)
        } else {
            None
        }
    })
}

/// A log may begin with much else.
const LINES_LOOKED_AT: usize = 100_000;

/// Reads `text`, which is a `source`.
///
/// # Errors
/// What is missing or cannot be read.
pub fn import(source: Source, text: &str, selection: &Selection) -> Result<Profile, ImportError> {
    match source {
        Source::Asloglatency => asloglatency::import(text, selection),
        Source::ServerLog => server_log::import(text, selection),
        Source::Iostat => iostat::import(text, selection),
        Source::Fio => fio::import(text, selection),
        Source::Stats => stats::import(text),
    }
}

/// The load of a device in an `iostat -x` capture, the mean of its samples.
///
/// # Errors
/// What is missing or cannot be read.
pub fn device_load(text: &str, selection: &Selection) -> Result<DeviceLoad, ImportError> {
    iostat::device_load(text, selection)
}

/// One of `names`, the one that is selected or the only one.
fn the_only<'a>(
    what: &str,
    selected: Option<&str>,
    names: &[&'a str],
) -> Result<&'a str, ImportError> {
    let listed = names.join("`, `");
    match (selected, names) {
        (_, []) => Err(ImportError::of_text(format!("the text shows no {what}"))),
        (None, [name]) => Ok(name),
        (None, _) => Err(ImportError::of_text(format!(
            "the text shows more than one {what}: `{listed}`; choose one of them"
        ))),
        (Some(selected), _) => {
            let found = names.iter().find(|name| **name == selected);
            found.copied().ok_or_else(|| {
                let problem = format!("the text shows no {what} `{selected}`; it shows `{listed}`");
                ImportError::of_text(problem)
            })
        }
    }
}

/// The name of a device without the directory, which not every text shows.
fn short(device: &str) -> &str {
    device.rsplit('/').next().unwrap_or(device)
}

impl ImportError {
    fn of_text(problem: String) -> ImportError {
        ImportError { line: None, problem }
    }

    fn at(line: usize, problem: String) -> ImportError {
        ImportError { line: Some(line), problem }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for ImportError {}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Asloglatency => "asloglatency",
            Source::ServerLog => "server-log",
            Source::Iostat => "iostat",
            Source::Fio => "fio",
            Source::Stats => "stats",
        })
    }
}
