//! `entresol act certify`.

use clap::Args;
use comfy_table::Table;
use entresol_certify::report::{certificate_json, certificate_line, certificate_page};
use entresol_certify::verdict::{Run, SteadyRule};
use entresol_certify::{
    Certificate, Configured, Preparation, Procedure, Settling, Stress, certify,
};

use super::subject::{self, Live, SubjectArgs};
use super::tester;
use crate::failure::{Failure, Outcome};
use crate::report::plain_table;
use crate::units;

/// Options of `entresol act certify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 pass, 1 fail, 2 could not run, 130 stopped before a verdict.

Examples:
  entresol act certify act_storage.conf --report report.html
  entresol act certify act_storage.conf --json --skip-prepare > certificate.json")]
pub(crate) struct CertifyArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Take the devices as they are, whether they were filled before or not
    #[arg(long)]
    skip_prepare: bool,
    /// Fill devices anew that were filled before
    #[arg(long, conflicts_with = "skip_prepare")]
    prepare_again: bool,
    /// Do not wait until the devices are steady
    #[arg(long, conflicts_with_all = ["round_sec", "rounds_max"])]
    skip_steady: bool,
    /// Length of a round before the test
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    round_sec: u32,
    /// Rounds after which the test begins even if the devices are not steady
    #[arg(long, value_name = "N", default_value_t = 25)]
    rounds_max: usize,
    /// No stress after the test
    #[arg(long, conflicts_with_all = ["stress", "stress_sec"])]
    skip_stress: bool,
    /// Stress: how many times the configured load
    #[arg(long, value_name = "TIMES", default_value_t = 2.0, value_parser = factor)]
    stress: f64,
    /// Stress: how long; as long as the test unless given
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    stress_sec: Option<u32>,
}

/// Prepare, test and stress devices, and give a verdict.
pub(crate) fn run(args: &CertifyArgs) -> Outcome<()> {
    let configured = args.subject.configured()?;
    args.subject.check_report()?;
    let stop = tester::stop_on_signals()?;
    let mut rig = args.subject.rig(&configured, &stop);
    let mut head = args.subject.subject(&configured, &rig);
    let certificate = certify(&mut rig, &args.procedure(&configured), &mut Live::new())
        .map_err(|error| Failure::CannotRun(error.to_string()))?;
    head.machine = entresol_certify::machine::Machine::look(configured.devices());
    head.errors = rig.troubles().to_vec();
    args.subject.deliver(
        || certificate_page(&head, &certificate),
        || certificate_json(&head, &certificate),
        || text(&certificate, &head.errors),
    )?;
    subject::ended(certificate.verdict)
}

impl CertifyArgs {
    fn preparation(&self) -> Option<Preparation> {
        match (self.skip_prepare, self.prepare_again) {
            (true, _) => None,
            (false, true) => Some(Preparation::Again),
            (false, false) => Some(Preparation::IfNeeded),
        }
    }

    fn procedure(&self, configured: &Configured) -> Procedure {
        let (test_seconds, _) = configured.seconds();
        let settle = (!self.skip_steady).then(|| Settling {
            rule: SteadyRule::default(),
            round_seconds: self.round_sec,
            rounds_max: self.rounds_max,
        });
        let stress = (!self.skip_stress).then(|| Stress {
            factor: self.stress,
            seconds: self.stress_sec.unwrap_or(test_seconds),
        });
        Procedure {
            rules: configured.rules(),
            prepare: self.preparation(),
            settle,
            test_seconds,
            stress,
            rest_seconds: configured.rest_seconds(),
        }
    }
}

/// A load as a multiple of the configured one.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.001..=1e6).contains(number));
    number.ok_or_else(|| "expected a number from 0.001 to 1000000".to_owned())
}

/// What people read: tables, what went wrong, notes, reasons, and the line that says it all.
fn text(certificate: &Certificate, errors: &[String]) -> String {
    let mut lines = Vec::new();
    for (name, judged) in [("test", &certificate.test), ("stress", &certificate.stress)] {
        if let Some(judged) = judged {
            lines.push(format!("{name} at {}x", judged.run.factor));
            lines.push(slices(&judged.run).to_string());
        }
    }
    lines.extend(subject::first_errors(errors));
    lines.extend(certificate.notes.iter().map(|note| format!("* {note}")));
    lines.extend(certificate.reasons().iter().map(|reason| format!("- {reason}")));
    lines.push(certificate_line(certificate));
    lines.join("\n") + "\n"
}

/// The slices of a run: shares over the bounds by response and by service time, and percentiles.
pub(crate) fn slices(run: &Run) -> Table {
    let mut headings = vec!["slice".to_owned(), "due/s".to_owned(), "done/s".to_owned()];
    for time in ["response", "service"] {
        let name = |bound: &entresol_certify::verdict::Bound| {
            format!("{time} % ≥ {} ms", bound.threshold_ms())
        };
        headings.extend(run.bounds.iter().map(name));
    }
    headings.extend(["p50", "p99", "max"].map(str::to_owned));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = plain_table(&headings);
    let Some(judged) = run.judged_series() else { return table };
    for slice in &run.slices {
        let figures = &slice.series[judged];
        let mut row = vec![
            slice.number.to_string(),
            units::number(slice.due_per_second(judged)),
            units::number(slice.done_per_second(judged)),
        ];
        for latency in [&figures.response, &figures.service] {
            let shares = 0..run.bounds.len();
            row.extend(shares.map(|index| format!("{:.2}", latency.percent_over(index))));
        }
        let summary = &figures.response.summary;
        let times = [summary.p50, summary.p99, summary.max];
        row.extend(times.map(|ns| units::seconds(ns as f64 / 1e9)));
        table.add_row(row);
    }
    table
}
