//! `cargo x python`: the wheel built, installed into an empty environment outside of the tree, and
//! tested there, the programs of the guide with it.

use std::path::{Path, PathBuf};

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::{self, Report};
use crate::scratch::{Scratch, shown};

const MANIFEST: &str = "crates/python/Cargo.toml";
const TESTS: &str = "-m unittest discover --start-directory crates/python/tests";
/// What builds wheels, as the package's own manifest asks for it.
const BUILDER: &str = "maturin>=1.9,<2";

/// `cargo x python`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Builds, installs and tests the wheel.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let places = crate::target_directory().join("python");
    let Some(builder) = builder(&places.join("tools"))? else {
        println!("skipped: Python's package: maturin is not here, and pip cannot fetch it");
        return Ok(());
    };
    let wheels = places.join("wheels");
    if wheels.exists() {
        let removed = std::fs::remove_dir_all(&wheels);
        removed.map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    let build = Invocation::new(&shown(&builder))
        .with_argument("build")
        .with_argument("--quiet")
        .with_argument("--locked")
        .with_argument("--manifest-path")
        .with_argument(MANIFEST)
        .with_argument("--out")
        .with_argument(shown(&wheels));
    if !report.run("wheel", &build)? {
        return Ok(());
    }
    let wheel = crate::only_file(&wheels)?;
    test(report, &wheel, Scratch::of("python").path())
}

/// Installs the wheel, and nothing beside it, into an environment at `empty`; tests it there.
fn test(report: &mut Report, wheel: &Path, empty: &Path) -> Result<(), String> {
    environment(empty)?;
    let python = shown(&empty.join("bin/python"));
    let install = Invocation::new(&format!("{python} -m pip install --quiet --no-index"))
        .with_argument("--disable-pip-version-check")
        .with_argument(shown(wheel));
    if report.run("install", &install)? {
        report.run("python", &Invocation::new(&format!("{python} {TESTS}")))?;
    }
    Ok(())
}

/// The program that builds wheels, in an environment of its own, which stays for the next time.
fn builder(tools: &Path) -> Result<Option<PathBuf>, String> {
    let program = tools.join("bin/maturin");
    if !program.is_file() {
        return Ok(install(tools, &[BUILDER])?.then_some(program));
    }
    Ok(Some(program))
}

/// A Python that has a module, in an environment that stays for the next time; none if pip cannot
/// fetch what `requirements` names.
pub(crate) fn with(module: &str, requirements: &str) -> Result<Option<String>, String> {
    let place = crate::target_directory().join("python").join(module);
    let python = shown(&place.join("bin/python"));
    let import = Invocation::new(&python).with_argument("-c");
    let import = import.with_argument(format!("import {module}"));
    if !import.run_quietly().is_ok_and(|ending| ending.passed) {
        return Ok(install(&place, &["--requirement", requirements])?.then_some(python));
    }
    Ok(Some(python))
}

/// Makes an environment at `place` with what is `wanted` of pip; whether pip could fetch it.
fn install(place: &Path, wanted: &[&str]) -> Result<bool, String> {
    environment(place)?;
    let pip = format!("{} -m pip install --quiet", shown(&place.join("bin/python")));
    let fetch = Invocation::new(&pip);
    Ok(wanted.iter().fold(fetch, |fetch, word| fetch.with_argument(*word)).run_quietly()?.passed)
}

/// An empty environment of Python at `place`, with `pip`.
pub(crate) fn environment(place: &Path) -> Result<(), String> {
    let made = Invocation::new("python3 -m venv --clear").with_argument(shown(place));
    let ending = made.run_quietly()?;
    let advice = "apt-get install python3-venv";
    if ending.passed { Ok(()) } else { Err(format!("{made}: {}{advice}", ending.output)) }
}
