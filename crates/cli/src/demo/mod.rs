//! `entresol demo`: a data set ten times larger than its memory, served, killed and served again.
//!
//! Everything runs below one scratch directory that vanishes at the end, also when the demo is
//! interrupted or fails. The demo fails (exit status 1) if one acknowledged record is missing.

mod crash;
mod packages;
mod steps;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::cleanup;
use crate::failure::{Failure, Outcome};
use crate::report::{Format, Report};
use crate::scratch::Scratch;
use crate::units::{self, parse_size};
use steps::Stage;

/// Options of `entresol demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol demo
  entresol demo --memory 64MiB --times 20")]
pub(crate) struct DemoArgs {
    /// The server's memory cap
    #[arg(long, default_value = "96MiB", value_parser = parse_size)]
    memory: u64,
    /// How many times the cap the data are
    #[arg(long, default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    times: u64,
    /// Where the files go, below a directory that is removed at the end
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print only the summary, as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Outcome<()> {
    cleanup::on_signals()?;
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let directory = Scratch::below(&parent, "entresol-demo")?;
    let buffers = Scratch::below("/dev/shm".as_ref(), "entresol-demo")?;
    let mut report = Report::default();
    let mut stage = Stage::new(args, &directory, &buffers);
    stage.load(&mut report)?;
    stage.read(&mut report)?;
    stage.tables(&mut report)?;
    stage.crash(&mut report)?;
    stage.restart(&mut report)?;
    drop(stage);
    let lost = report.get("records_lost").unwrap_or(0.0);
    say(args, "Summary");
    report.print(if args.json { Format::Json } else { Format::Table });
    match lost > 0.0 {
        true => Err(Failure::Failed(format!("{lost} acknowledged records were lost"))),
        false => Ok(()),
    }
}

impl DemoArgs {
    /// Bytes of keys and values to serve.
    fn data_bytes(&self) -> u64 {
        self.memory.saturating_mul(self.times)
    }

    /// Bytes of the data file: the data fill two thirds of it.
    fn capacity_bytes(&self) -> u64 {
        (self.data_bytes().saturating_mul(3) / 2).saturating_add(128 << 20) >> 20 << 20
    }

    /// The server's options.
    fn options(&self, directory: &Scratch, buffers: &Scratch) -> Vec<OsString> {
        vec![
            "--dir".into(),
            directory.path().into(),
            "--buffer-directory".into(),
            buffers.path().into(),
            "--memory".into(),
            self.memory.to_string().into(),
            "--capacity".into(),
            self.capacity_bytes().to_string().into(),
            "--durability".into(),
            "process".into(),
        ]
    }
}

/// Announces a step to people.
fn say(args: &DemoArgs, step: &str) {
    if !args.json {
        println!("\n== {step}");
    }
}

/// Tells people a result of a step.
fn tell(args: &DemoArgs, sentence: &str) {
    if !args.json {
        println!("   {sentence}");
    }
}

/// `1.23 GB in 4.5 s: 273 MB/s`.
fn rate(bytes: f64, seconds: f64) -> String {
    format!(
        "{} in {}: {}/s",
        units::bytes(bytes),
        units::seconds(seconds),
        units::bytes(bytes / seconds)
    )
}
