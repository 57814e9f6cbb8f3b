//! `entresol volume log-level`: how much the log of a running server says.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use entresol_host::LogLevel;
use serde_json::json;

use super::cache::CacheArgs;
use super::control::Control;
use crate::failure::{Failure, Outcome};

/// Options of `entresol volume log-level`.
#[derive(Debug, Args)]
#[command(after_help = "\
It holds until the server starts anew, or reads its level again (SIGHUP).

Example:
  entresol volume log-level debug --cache /ssd/cache")]
pub(crate) struct LogLevelArgs {
    /// The log has lines of this level and those before it
    #[arg(value_name = "LEVEL", value_parser = PossibleValuesParser::new(LogLevel::NAMES))]
    level: String,
    #[command(flatten)]
    cache: CacheArgs,
}

/// The level that a server's log begins with, and has again after each SIGHUP.
#[derive(Debug, Clone, Args)]
pub(crate) struct LevelArgs {
    /// The log, on the standard error stream, has lines of this level and those before it
    #[arg(long, value_name = "LEVEL", default_value = "info",
          value_parser = PossibleValuesParser::new(LogLevel::NAMES))]
    log_level: String,
    /// File whose first line is the level, in place of --log-level; SIGHUP has it read again
    #[arg(long, value_name = "FILE")]
    log_level_file: Option<PathBuf>,
}

/// Changes the level.
pub(crate) fn run(args: &LogLevelArgs) -> Outcome<()> {
    let path = args.cache.control_path();
    let mut server = Control::connect(&path).ok_or_else(|| {
        Failure::CannotRun(format!("no server answers at {}: start one first", path.display()))
    })?;
    server.ask(&json!({"command": "log", "level": args.level}))?;
    println!("the log has lines of level {} from now on", args.level);
    Ok(())
}

impl LevelArgs {
    /// The level as file or option say now.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or begins with no level.
    pub(crate) fn read(&self) -> Result<LogLevel, String> {
        let Some(file) = &self.log_level_file else { return self.log_level.parse() };
        let place = format!("--log-level-file {}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| format!("{place}: {error}"))?;
        let word = text.lines().next().unwrap_or_default().trim();
        word.parse().map_err(|error| format!("{place}: {error}"))
    }
}
