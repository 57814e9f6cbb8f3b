//! The one gate: every check in a row. Also the documentation check, which is one of them.

use crate::Verdict;
use crate::invocation::Invocation;
use crate::java;
use crate::kill;
use crate::report::{self, Report};
use crate::seeded::Speed;
use crate::{bench, book, deny, fuzz, kubernetes, metadata, python, s3, simulate, tidy};

/// Seconds of arbitrary bytes for each decoder in the gate; the soak has more of everything.
const FUZZ_SECONDS: u64 = 5;
/// Simulation seeds in the gate, besides those that the tests have.
const SIMULATION_SEEDS: u64 = 4;

/// Kills at each level of durability that the gate waits for.
const KILLS: u64 = 3;

/// Kills of a JVM on each path.
const JVM_KILLS: u64 = 3;

/// `cargo x ci [--fast]`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut report = Report::default();
    match words.as_slice() {
        ["--fast"] => {
            run_static(&mut report)?;
            let tests = "test --workspace --lib --bins --no-fail-fast";
            report.run("unit tests", &Invocation::cargo(tests))?;
        }
        [] => {
            // JVMs of a cluster wait for one another most of their time.
            let java = java::begin(JVM_KILLS)?;
            let others = run_others(&mut report);
            java.end(&mut report)?;
            others?;
        }
        other => {
            return Err(format!("unexpected `{}`; it takes --fast or nothing", other.join(" ")));
        }
    }
    Ok(report.close())
}

/// `cargo x docs`.
pub(crate) fn perform_docs(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, |report| report.run("docs", &documentation()).map(drop))
}

fn run_static(report: &mut Report) -> Result<(), String> {
    report.run("format", &Invocation::cargo("fmt --all --check"))?;
    let lints = "clippy --quiet --workspace --all-targets -- -D warnings";
    report.run("lints", &Invocation::cargo(lints))?;
    // It looks at what the lints were built from.
    report.perform("tidy", "cargo x tidy", &mut || tidy::check())?;
    deny::check(report)
}

/// All but what is Java's.
fn run_others(report: &mut Report) -> Result<(), String> {
    run_static(report)?;
    deny::check_advisories(report)?;
    // The crash states of every prefix are among the tests.
    report.run("tests", &Invocation::cargo("test --workspace --no-fail-fast"))?;
    let repeat = format!("cargo x kill --rounds {KILLS}");
    report.perform("kill", &repeat, &mut || kill::check(KILLS))?;
    let clients = "conformance/nbd/run.py PROGRAM";
    report.perform("NBD clients", clients, &mut fuzz::nbd_clients)?;
    python::check(report)?;
    kubernetes::check(report)?;
    s3::check(report)?;
    metadata::check(report)?;
    report.run("docs", &documentation())?;
    report.perform("book", "cargo x book", &mut book::render)?;
    run_long(report)
}

fn run_long(report: &mut Report) -> Result<(), String> {
    let speed = Speed::AsTests;
    let repeat = format!("cargo x simulate --seeds {SIMULATION_SEEDS}");
    report.perform("simulate", &repeat, &mut || simulate::simulate(0..SIMULATION_SEEDS, speed))?;
    let repeat = format!("cargo x fuzz --seconds {FUZZ_SECONDS}");
    report.perform("fuzz", &repeat, &mut || fuzz::fuzz(FUZZ_SECONDS, speed))?;
    report.run("planted", &Invocation::cargo("x planted"))?;
    report.perform("bench smoke", "cargo x bench --smoke", &mut || bench::smoke())?;
    Ok(())
}

fn documentation() -> Invocation {
    Invocation::cargo("doc --quiet --workspace --no-deps")
        .with_variable("RUSTDOCFLAGS", "-Dwarnings")
}
