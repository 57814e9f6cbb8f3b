//! `entresol act`: certification of devices.

mod certify;
mod config;
mod index;
mod latency;
mod link;
mod outcome;
mod prepare;
mod search;
mod storage;
mod subject;
mod tester;

use std::io;
use std::path::Path;

use clap::Subcommand;

use crate::failure::{Failure, Outcome};

pub(crate) use link::named_by_link;

/// What is done.
#[derive(Debug, Subcommand)]
pub(crate) enum ActCommand {
    /// Fill a device with zeros, then with random data
    #[command(name = "prep")]
    Prepare(prepare::PrepareArgs),
    /// Load data devices as a configuration says
    Storage(storage::StorageArgs),
    /// Load index devices as a configuration says
    Index(index::IndexArgs),
    /// Tabulate the latencies of a log
    #[command(disable_help_flag = true)]
    Latency(latency::LatencyArgs),
    /// Make or explain a configuration
    Config(config::ConfigArgs),
    /// Prepare, test and stress devices, and give a verdict
    Certify(certify::CertifyArgs),
    /// Find the largest load that passes
    Search(search::SearchArgs),
}

/// Does it.
pub(crate) fn run(command: &ActCommand) -> Outcome<()> {
    match command {
        ActCommand::Prepare(args) => prepare::run(args),
        ActCommand::Storage(args) => storage::run(args),
        ActCommand::Index(args) => index::run(args),
        ActCommand::Latency(args) => latency::run(args),
        ActCommand::Config(args) => config::run(args),
        ActCommand::Certify(args) => certify::run(args),
        ActCommand::Search(args) => search::run(args),
    }
}

/// The configuration at `path` cannot be read.
fn unread(path: &Path, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::NotFound => {
            "; `entresol act config --device /dev/… --load N --output FILE` makes one"
        }
        io::ErrorKind::IsADirectory => "; name a file in it",
        _ => "",
    };
    let path = path.display();
    Failure::CannotRun(format!("cannot read the configuration {path}: {error}{next}"))
}
