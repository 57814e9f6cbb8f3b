//! The log of a server: lines on the standard error stream, each with its time, its level, and the
//! part of the program that says it.

use std::io::IsTerminal;
use std::str::FromStr;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::time::UtcTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// The level of the log of this process, once there is a log.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

/// The lowest level that a log has lines of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLevel(LevelFilter);

impl LogLevel {
    /// The names of all levels, from the fewest lines to the most.
    pub const NAMES: [&'static str; 5] = ["error", "warn", "info", "debug", "trace"];
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(name: &str) -> Result<LogLevel, String> {
        let filter = LogLevel::NAMES.contains(&name).then(|| LevelFilter::from_str(name).ok());
        filter.flatten().map(LogLevel).ok_or_else(|| {
            format!("log level `{name}` found, one of {} expected", LogLevel::NAMES.join(", "))
        })
    }
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// `2026-11-28T09:30:00.000000Z  INFO entresol_server::server: ready`, for people.
    Text,
    /// An object of JSON, for programs that collect logs.
    Json,
}

/// Begins the log of this process, of lines of `level` and above. A process has one log: where
/// there is one, this changes its level alone.
pub fn start_log(level: LogLevel, format: LogFormat) {
    if LEVEL.get().is_some() {
        set_log_level(level);
        return;
    }
    let (filter, handle) = reload::Layer::new(level.0);
    let is_terminal = std::io::stderr().is_terminal();
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_timer(UtcTime::rfc_3339())
        .with_ansi(is_terminal && format == LogFormat::Text);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // A program that embeds the server may have a log of its own: that one counts.
    if tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().is_ok() {
        // Nobody else can have set it: the log that was made a line ago is the first.
        let _ = LEVEL.set(handle);
    }
}

/// From now on the log has lines of `level` and above; without effect where there is no log.
pub fn set_log_level(level: LogLevel) {
    if let Some(handle) = LEVEL.get() {
        // It fails once the log has gone, which only the end of the process does.
        let _ = handle.modify(|filter| *filter = level.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_names_that_are_listed_and_no_others() {
        for name in LogLevel::NAMES {
            assert!(name.parse::<LogLevel>().is_ok(), "{name}");
        }
        let refused = "loud".parse::<LogLevel>().unwrap_err();
        assert_eq!(
            refused,
            "log level `loud` found, one of error, warn, info, debug, trace expected"
        );
        assert!("off".parse::<LogLevel>().is_err());
        assert!("INFO".parse::<LogLevel>().is_err());
    }
}
