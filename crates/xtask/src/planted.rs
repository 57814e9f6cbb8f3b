//! Known bugs, planted one at a time: the net is trusted only after it caught fish.
//!
//! The bugs stand in the sources as `if planted!("NAME")`. All are in one build, in which only the
//! project's own crates have `--cfg planted`; the variable `ENTRESOL_PLANTED` says which bug is
//! there.
//!
//! Invariants:
//! 1. A bug counts as caught only if its test was built, ran and failed.
//! 2. The same test passes without the bug.

mod bugs;

use std::collections::BTreeSet;

use crate::Verdict;
use crate::invocation::{Ending, Invocation};
use crate::seeded::{Speed, Target};
use crate::tally::Tally;
use bugs::{BUGS, Bug};

const VARIABLE: &str = "ENTRESOL_PLANTED";
/// What stands in the variable where no bug is to be there.
const NOTHING: &str = "nothing";

/// How the line of a test ends that failed.
const FAILED: &str = " ... FAILED";

/// The compiler of the project's own crates: it adds `--cfg planted`.
const BUILD: (&str, &str) = ("RUSTC_WORKSPACE_WRAPPER", "scripts/planted-rustc");

/// How the line of a bug begins that no test saw.
pub(crate) const NOT_CAUGHT: &str = "NOT CAUGHT";
/// How the line of tests begins that fail without a bug.
pub(crate) const UNSOUND: &str = "fails with nothing planted";

/// A planted bug may make a test run on for ever.
const SECONDS_MAX: u64 = 600;

/// Names of all bugs in the table.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUGS.iter().map(|bug| bug.name)
}

/// Where the sources of each bug's test begin, and the last word of the test's path.
pub(crate) fn tests() -> impl Iterator<Item = (String, &'static str)> {
    BUGS.iter().map(|bug| {
        let Target { package, test } = bug.caught_by;
        let folder = package.trim_start_matches("entresol-");
        let last = bug.test.rsplit("::").next().unwrap_or_default();
        (format!("crates/{folder}/tests/{test}"), last)
    })
}

/// `cargo x planted [NAME]`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let name = match arguments {
        [] => None,
        [name] => Some(name.as_str()),
        _ => return Err("it takes one name or nothing".to_string()),
    };
    Ok(if check(name)? { Verdict::Passed } else { Verdict::Failed })
}

/// Plants every bug, or the one called `name`; returns whether all were caught.
fn check(name: Option<&str>) -> Result<bool, String> {
    let bugs: Vec<&Bug> = BUGS.iter().filter(|bug| name.is_none_or(|n| n == bug.name)).collect();
    if bugs.is_empty() {
        let known: Vec<&str> = names().collect();
        return Err(format!("there is no planted bug of that name; known: {}", known.join(", ")));
    }
    let build = build(&bugs);
    let messages = build.clone().with_argument("--message-format=json").read()?;
    let mut passed = true;
    for target in targets(&bugs) {
        let executable = target.executable_among(&messages)?;
        let here: Vec<&Bug> = bugs.iter().copied().filter(|bug| bug.caught_by == target).collect();
        let tests: BTreeSet<&str> = here.iter().map(|bug| bug.test).collect();
        let ending = run(&executable, NOTHING, &tests)?;
        if !is_sound(&ending, tests.len()) {
            println!("{}\n{UNSOUND}: {target:?}", tail(&ending.output));
            return Ok(false);
        }
        for bug in here {
            let ending = run(&executable, bug.name, &BTreeSet::from([bug.test]))?;
            let caught = is_caught(&ending);
            let word = if caught { "caught" } else { NOT_CAUGHT };
            println!("{word:<10}  {:<40} {}", bug.name, replay(bug));
            if !caught {
                println!("{}", tail(&ending.output));
            }
            passed &= caught;
        }
    }
    Ok(passed)
}

/// Each target once, in the order in which the bugs name them.
fn targets(bugs: &[&Bug]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for bug in bugs {
        if !targets.contains(&bug.caught_by) {
            targets.push(bug.caught_by);
        }
    }
    targets
}

/// One build of all targets: in turns, each would wait for the last crate of the one before it.
fn build(bugs: &[&Bug]) -> Invocation {
    let targets = targets(bugs);
    let packages: BTreeSet<&str> = targets.iter().map(|target| target.package).collect();
    let tests: BTreeSet<&str> = targets.iter().map(|target| target.test).collect();
    let mut invocation = Invocation::cargo("test --quiet --no-run").with_variable(BUILD.0, BUILD.1);
    for package in packages {
        invocation = invocation.with_argument("-p").with_argument(package);
    }
    for test in tests {
        invocation = invocation.with_argument("--test").with_argument(test);
    }
    invocation
}

fn replay(bug: &Bug) -> Invocation {
    bug.caught_by
        .invocation(Speed::AsTests)
        .with_argument(bug.test)
        .with_variable(VARIABLE, bug.name)
        .with_variable(BUILD.0, BUILD.1)
}

/// Runs the tests named with `bug` planted, until one of them fails.
fn run(executable: &str, bug: &str, tests: &BTreeSet<&str>) -> Result<Ending, String> {
    let line = format!("timeout {SECONDS_MAX} {executable} --exact");
    let mut invocation = Invocation::new(&line).with_variable(VARIABLE, bug);
    for test in tests {
        invocation = invocation.with_argument(*test);
    }
    invocation.run_until(&|line| line.ends_with(FAILED))
}

/// As many tests ran as were named, and passed.
fn is_sound(ending: &Ending, tests: usize) -> bool {
    let mut tally = Tally::default();
    ending.output.lines().for_each(|line| tally.watch(line));
    ending.passed && tally.passed == tests as u64
}

/// Caught: a test began to run, and the run failed before `timeout` ended it.
fn is_caught(ending: &Ending) -> bool {
    let failed = |mark| ending.output.contains(mark);
    !ending.passed && (failed("test result: FAILED") || failed("panicked at") || failed(FAILED))
}

fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines.split_at(lines.len().saturating_sub(25)).1.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::bugs::CANARY;

    #[test]
    fn only_a_failed_test_counts_as_caught() {
        let ending = |passed, output: &str| Ending { passed, output: output.to_string() };
        assert!(is_caught(&ending(false, "running 1 test\ntest result: FAILED. 0 passed")));
        assert!(!is_caught(&ending(true, "test result: ok. 1 passed")));
        assert!(!is_caught(&ending(false, "error: no such target")));
        assert!(!is_caught(&ending(false, "running 1 test\nTerminated")));
    }

    #[test]
    fn the_replay_line_names_bug_and_test() {
        assert_eq!(
            replay(&CANARY).to_string(),
            "ENTRESOL_PLANTED=canary RUSTC_WORKSPACE_WRAPPER=scripts/planted-rustc \
             cargo test --quiet --profile test -p entresol-planted --test canary \
             canary_dies_only_when_planted"
        );
    }

    #[test]
    fn a_test_that_is_not_there_proves_nothing() {
        let ending = |output: &str| Ending { passed: true, output: output.to_string() };
        assert!(is_sound(&ending("test result: ok. 2 passed; 0 failed"), 2));
        assert!(!is_sound(&ending("test result: ok. 1 passed; 0 failed"), 2));
    }
}
