//! `entresol`: one subcommand per job.
//!
//! Exit status: 0 done, 1 the thing tested failed, 2 could not run.

mod bench;
mod client;
mod engine;
mod failure;
mod meter;
mod progress;
mod report;
mod scratch;
mod service;
mod units;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use bench::BenchArgs;

/// A data set larger than memory, served from flash as if it were in memory.
#[derive(Debug, Parser)]
#[command(name = "entresol", version, arg_required_else_help = true)]
#[command(after_help = "\
Exit status: 0 done, 1 the thing tested failed, 2 could not run.

Examples:
  entresol serve --dir /var/lib/entresol --port 6379 --memory 1GiB
  entresol bench flash-get
  entresol demo")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload and report rates, latencies and costs
    Bench(BenchArgs),
    /// Fill a store for `bench recovery` until killed
    #[command(hide = true)]
    FillUntilKilled(BenchArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Bench(args) => bench::run(args),
        Command::FillUntilKilled(args) => bench::fill_until_killed(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("entresol: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
