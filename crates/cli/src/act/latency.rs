//! `entresol act latency`: shares of a log's transfers above each threshold.
//!
//! The table is that of ACT's analyser, byte for byte. Faults that ACT's analyser shows as
//! nonsense, or not at all, go to standard error and into the exit status.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{ArgAction, Args};
use entresol_certify::BucketUnit;
use entresol_certify::config::Finding;
use entresol_certify::latency::{
    self, Analysis, AnalysisError, Extra, LatencyOptions, LatencyTable, Slice,
};
use entresol_certify::log::{Log, LogError};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};

/// Options of `entresol act latency`: those of ACT's analyser, and more output formats.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 done, 1 the log is incomplete or holds errors, 2 no table could be made.

Examples:
  entresol act latency -l test.log
  entresol act latency -l test.log -t 60 -h reads -h large-block-writes -x
  entresol act latency -l test.log --json")]
pub(crate) struct LatencyArgs {
    /// Log to analyse
    #[arg(short, long, value_name = "FILE")]
    log: PathBuf,
    /// Histogram to tabulate, or how its name begins; may be given again
    #[arg(short = 'h', long, value_name = "NAME", default_values_t = ["reads".to_owned()])]
    histogram: Vec<String>,
    /// Seconds of a slice
    #[arg(short = 't', long, default_value_t = 3600, allow_hyphen_values = true)]
    slice: i64,
    /// First threshold, as a power of two
    #[arg(short, long = "start_bucket", alias = "start-bucket", default_value_t = 0)]
    #[arg(allow_hyphen_values = true)]
    start_bucket: i64,
    /// Thresholds at most
    #[arg(short, long = "num_buckets", alias = "num-buckets", default_value_t = 7)]
    #[arg(allow_hyphen_values = true)]
    num_buckets: i64,
    /// Every how many-th threshold
    #[arg(short, long = "every_nth", alias = "every-nth", default_value_t = 1)]
    #[arg(allow_hyphen_values = true)]
    every_nth: i64,
    /// Show rates besides
    #[arg(short = 'x', long)]
    extra: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV, a line for each slice and histogram
    #[arg(long)]
    csv: bool,
    /// End with ACT's exit status, 255 for errors, and say what ACT's analyser says
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    compat: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Tabulates the latencies of a log.
pub(crate) fn run(args: &LatencyArgs) -> Outcome<()> {
    let text = !args.json && !args.csv;
    let mut out = io::stdout().lock();
    let mut print = |words: &str| out.write_all(words.as_bytes());
    let path = args.log.display();
    if text {
        print(&arguments()).map_err(writing)?;
    }
    let options = args.options();
    let thresholds = options.thresholds();
    if let Err(sentence) = thresholds {
        return args.refuse(sentence);
    }
    let bytes = match fs::read(&args.log) {
        Ok(bytes) => bytes,
        Err(_) if args.compat => return args.refuse(format!("log file {path} not found")),
        Err(error) => {
            if text {
                print(&format!("log file {path} not found\n")).map_err(writing)?;
            }
            let next = match error.kind() {
                io::ErrorKind::NotFound => "; `entresol act storage CONFIG > LOG` writes one",
                _ => "",
            };
            let sentence = format!("cannot read the log {path}: {error}{next}");
            return Err(Failure::CannotRun(sentence));
        }
    };
    let content = String::from_utf8_lossy(&bytes);
    let log = match Log::read(&content) {
        Ok(log) => log,
        Err(error @ (LogError::NoVersion | LogError::Incompatible(_))) => {
            return args.refuse(format!("{path} {error}"));
        }
        Err(error) => return args.refuse(error.to_string()),
    };
    let table = LatencyTable::new(&options, log.unit.unwrap_or(BucketUnit::Milliseconds))
        .map_err(Failure::CannotRun)?;
    let heading = latency::heading(&log, &path.to_string(), &options) + &table.header();
    let analysis = match latency::analyse(&log, &options) {
        Ok(analysis) => analysis,
        Err(error) => return args.without_histogram(&log, &heading, &error),
    };
    if text {
        print(&heading).map_err(writing)?;
    }
    match () {
        () if args.json => print_json(&log, &analysis)?,
        () if args.csv => print_csv(&analysis)?,
        () => print(&table.body(&analysis)).map_err(writing)?,
    }
    args.conclude(&analysis)
}

impl LatencyArgs {
    fn options(&self) -> LatencyOptions {
        LatencyOptions {
            histograms: self.histogram.clone(),
            slice_sec: self.slice,
            start_bucket: self.start_bucket,
            buckets: self.num_buckets,
            every_nth: self.every_nth,
            extra: if self.extra { Extra::Rates } else { Extra::None },
        }
    }

    /// Ends without a table.
    fn refuse(&self, sentence: String) -> Outcome<()> {
        if self.json || self.csv {
            return Err(Failure::CannotRun(sentence));
        }
        println!("{sentence}");
        if self.compat { Err(Failure::Told(ACT_STATUS)) } else { Err(Failure::CannotRun(sentence)) }
    }

    /// A histogram is not there: where none of them is, ACT's analyser finds no data, below the
    /// head of a table.
    fn without_histogram(
        &self,
        log: &Log<'_>,
        heading: &str,
        error: &AnalysisError,
    ) -> Outcome<()> {
        let sentence = format!("log {}: {error}", self.log.display());
        if !self.compat {
            return Err(Failure::CannotRun(sentence));
        }
        let has = |name: &String| log.names.iter().any(|one| one.starts_with(name.as_str()));
        if self.histogram.iter().any(has) {
            println!("ERROR: {sentence}");
        } else {
            let seconds = latency::slice_seconds(log, &self.options());
            println!("{heading}could not find {seconds} seconds of data");
        }
        Err(Failure::Told(ACT_STATUS))
    }

    /// Says what else the log holds, and ends accordingly.
    fn conclude(&self, analysis: &Analysis) -> Outcome<()> {
        let path = self.log.display();
        if !self.compat {
            show("note", &path.to_string(), &analysis.remarks);
            show("error", &path.to_string(), &analysis.faults);
        }
        if analysis.slices.is_empty() {
            let sentence = format!("could not find {} seconds of data", analysis.slice_sec);
            return self.refuse(sentence);
        }
        match analysis.faults.first() {
            None => Ok(()),
            Some(fault) if self.compat => {
                println!("ERROR: {path}: {fault}");
                Err(Failure::Told(ACT_STATUS))
            }
            Some(_) => Err(Failure::Failed(format!(
                "{path} is incomplete or holds errors ({} above); do not trust the table",
                analysis.faults.len()
            ))),
        }
    }
}

/// With which ACT's analyser ends where it fails.
const ACT_STATUS: u8 = 255;

/// More of a kind are counted.
const FINDINGS_SHOWN: usize = 10;

fn show(kind: &str, path: &str, findings: &[Finding]) {
    for finding in findings.iter().take(FINDINGS_SHOWN) {
        say!("{kind}: {path} {finding}");
    }
    if let Some(more) = findings.len().checked_sub(FINDINGS_SHOWN).filter(|more| *more > 0) {
        say!("{kind}: {path}: {more} more");
    }
}

/// The line in which the analyser repeats its arguments; it knows no `--compat`.
fn arguments() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let given = match &words[..] {
        [act, latency, given @ ..] if act == "act" && latency == "latency" => given,
        // A link calls itself by the name of the analyser.
        given => given,
    };
    let given: Vec<&str> =
        given.iter().map(String::as_str).filter(|word| *word != "--compat").collect();
    format!("act_latency.py {}\n", given.join(" "))
}

fn print_json(log: &Log<'_>, analysis: &Analysis) -> Outcome<()> {
    let thresholds: Vec<u64> = analysis.thresholds.iter().map(|power| 1 << power).collect();
    let mut histograms = Map::new();
    for (index, name) in analysis.histograms.iter().enumerate() {
        let slices = analysis.slices.iter().map(|slice| {
            let column = &slice.columns[index];
            json!({
                "slice": slice.number,
                "total": column.total,
                "percent_over": column.percent_over,
                "ops_per_sec": column.rate,
            })
        });
        histograms.insert(name.clone(), Value::Array(slices.collect()));
    }
    let sentences = |findings: &[Finding]| -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    };
    let object = json!({
        "version": log.version,
        "unit": analysis.unit.sign(),
        "slice_sec": analysis.slice_sec,
        "thresholds": thresholds,
        "histograms": histograms,
        "faults": sentences(&analysis.faults),
        "remarks": sentences(&analysis.remarks),
    });
    println!("{object:#}");
    Ok(())
}

fn print_csv(analysis: &Analysis) -> Outcome<()> {
    let mut writer = csv::Writer::from_writer(io::stdout().lock());
    let mut titles = vec!["slice".to_owned(), "histogram".to_owned(), "total".to_owned()];
    let unit = analysis.unit.sign();
    titles.extend(
        analysis.thresholds.iter().map(|power| format!("percent_over_{}{unit}", 1u64 << power)),
    );
    titles.push("ops_per_sec".to_owned());
    writer.write_record(&titles).map_err(writing)?;
    for Slice { number, columns } in &analysis.slices {
        for (column, name) in columns.iter().zip(&analysis.histograms) {
            let mut record = vec![number.to_string(), name.clone(), column.total.to_string()];
            record.extend(column.percent_over.iter().map(|percent| format!("{percent:.2}")));
            record.push(format!("{:.1}", column.rate));
            writer.write_record(&record).map_err(writing)?;
        }
    }
    writer.flush().map_err(writing)
}

fn writing(error: impl std::fmt::Display) -> Failure {
    Failure::doing("writing the table", error)
}
