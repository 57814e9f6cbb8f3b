//! `entresol act search`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use entresol_certify::report::{search_json, search_line, search_page};
use entresol_certify::search::{
    Found, Outcome as SearchOutcome, Search, Try, tries_json, tries_of,
};
use entresol_certify::verdict::Span;
use entresol_certify::{Configured, Observer, Phase, search};
use entresol_wire::json::Json;

use super::certify::{self, factor};
use super::subject::{self, Live, SubjectArgs};
use super::tester;
use crate::failure::{Failure, Outcome};
use crate::report::plain_table;
use crate::units;

/// Options of `entresol act search`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 a load passed, 1 none did, 2 could not run, 130 stopped.

Examples:
  entresol act search act_storage.conf --report search.html
  entresol act search act_storage.conf --step 0.1 --first 1 --seconds 60 --json")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Loads are multiples of this many times the configured one
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = factor)]
    step: f64,
    /// The first load, in times the configured one
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = factor)]
    first: f64,
    /// The largest load, in times the configured one
    #[arg(long, value_name = "TIMES", default_value_t = 1000.0, value_parser = factor)]
    most: f64,
    /// How long each load is tried; as long as the configured test unless given
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// How long the largest load that passed is tried once more; 0: not
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    confirm_sec: u32,
    /// Devices are left alone between loads for so long; `rest-sec` unless given
    #[arg(long, value_name = "SECONDS")]
    rest: Option<u32>,
    /// Loads tried at most
    #[arg(long, value_name = "N", default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// No further load begins after so long
    #[arg(long, value_name = "SECONDS", default_value_t = 7 * 86_400)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    max_sec: u64,
    /// Keep what was tried in this file, and go on from there if it exists
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

/// Find the largest load that passes.
pub(crate) fn run(args: &SearchArgs) -> Outcome<()> {
    args.demand_range()?;
    let configured = args.subject.configured()?;
    args.subject.check_report()?;
    let how = args.search(&configured);
    // Not the echo, which has ACT's items alone.
    let configuration = configured.text();
    let before = match &args.state {
        Some(path) => kept(path, &how, &configuration)?,
        None => Vec::new(),
    };
    if let Some(path) = &args.state {
        subject::check_writable(path)?;
    }
    let stop = tester::stop_on_signals()?;
    let mut rig = args.subject.rig(&configured, &stop);
    let mut head = args.subject.subject(&configured, &rig);
    let state = args.state.as_deref();
    let mut keeper =
        Keeper { live: Live::new(), state, how: &how, configuration: &configuration, failed: None };
    let found = search(&mut rig, &how, before, &mut keeper)
        .map_err(|error| Failure::CannotRun(error.to_string()))?;
    let not_kept = keeper.failed.map_or(Ok(()), Err);
    head.machine = entresol_certify::machine::Machine::look(configured.devices());
    head.errors = rig.troubles().to_vec();
    args.subject.deliver(
        || search_page(&head, &found, &how.rules),
        || search_json(&head, &found, &how.rules),
        || text(&found, &how, &head.errors),
    )?;
    not_kept?;
    match found.outcome {
        SearchOutcome::Interrupted => Err(Failure::Told(subject::STOPPED)),
        _ => subject::ended(found.verdict()),
    }
}

impl SearchArgs {
    /// Refuses a search that would begin above the largest load that it may try.
    fn demand_range(&self) -> Outcome<()> {
        let (first, most) = (self.first, self.most);
        if first <= most {
            return Ok(());
        }
        Err(Failure::CannotRun(format!(
            "--first {first} is more than --most {most}; expected the first load to be at most the \
             largest"
        )))
    }

    fn search(&self, configured: &Configured) -> Search {
        let steps = |times: f64| (times / self.step).round().clamp(1.0, 1e9) as u32;
        Search {
            rules: configured.rules(),
            step: self.step,
            first: steps(self.first),
            most: steps(self.most),
            seconds: self.seconds.unwrap_or(configured.seconds().0),
            confirm_seconds: self.confirm_sec,
            rest_seconds: self.rest.unwrap_or(configured.rest_seconds()),
            tries_max: self.tries as usize,
            seconds_max: self.max_sec,
        }
    }
}

/// What an earlier search of the same left in `path`.
fn kept(path: &Path, how: &Search, configuration: &str) -> Outcome<Vec<Try>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let at = path.display();
    let text = fs::read_to_string(path).map_err(|error| Failure::doing(&at, error))?;
    Json::parse(&text).map_err(|error| Failure::doing(&at, error))?;
    let value = serde_json::from_str(&text).map_err(|error| Failure::doing(&at, error))?;
    tries_of(how, configuration, &value).map_err(|problem| {
        Failure::CannotRun(format!("{at}: {problem}; remove the file to begin anew"))
    })
}

/// Shows how it goes on, and keeps what was tried.
struct Keeper<'a> {
    live: Live,
    state: Option<&'a Path>,
    how: &'a Search,
    configuration: &'a str,
    failed: Option<Failure>,
}

impl Observer for Keeper<'_> {
    fn begin(&mut self, phase: Phase, seconds: Option<u32>, factor: f64) {
        self.live.begin(phase, seconds, factor);
    }

    fn advance(&mut self, seconds: f64) {
        self.live.advance(seconds);
    }

    fn slice(&mut self, slice: &Span) {
        self.live.slice(slice);
    }

    fn tried(&mut self, tries: &[Try]) {
        self.live.tried(tries);
        if let Some(path) = self.state {
            let text = tries_json(self.how, self.configuration, tries).to_string();
            self.failed = subject::write_whole(path, &text).err();
        }
    }
}

/// What people read.
fn text(found: &Found, how: &Search, errors: &[String]) -> String {
    let mut headings = vec!["load".to_owned(), "verdict".to_owned(), "done/s".to_owned()];
    headings
        .extend(how.rules.bounds.iter().map(|bound| format!("% ≥ {} ms", bound.threshold_ms())));
    headings.extend(["p50", "p99", "max"].map(str::to_owned));
    let mut table = plain_table(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for tried in &found.tries {
        let load = format!("{}x", rounded(f64::from(tried.steps) * found.step));
        let mut row = vec![load, tried.judgement.verdict.word().to_owned()];
        if let Some(point) = &tried.point {
            row.push(units::number(point.done_per_second));
            row.extend(point.worst_percents.iter().map(|percent| format!("{percent:.2}")));
            let times = [point.p50_ns, point.p99_ns, point.longest_ns];
            row.extend(times.map(|ns| units::seconds(ns as f64 / 1e9)));
        }
        table.add_row(row);
    }
    let mut lines = vec![table.to_string()];
    lines.extend(subject::first_errors(errors));
    for tried in &found.tries {
        let reasons = tried.judgement.reasons.iter().take(1);
        let load = rounded(f64::from(tried.steps) * found.step);
        lines.extend(reasons.map(|reason| format!("- {load}x: {reason}")));
    }
    let notes = found.tries.last().map(|tried| &tried.judgement.notes).into_iter().flatten();
    lines.extend(notes.map(|note| format!("* {note}")));
    let best = found.tries.iter().rev().find(|tried| Some(tried.steps) == found.largest);
    let run = best.and_then(|tried| tried.run.as_ref());
    lines.extend(run.map(|run| certify::slices(run).to_string()));
    lines.push(search_line(found));
    lines.join("\n") + "\n"
}

fn rounded(factor: f64) -> f64 {
    (factor * 1000.0).round() / 1000.0
}
