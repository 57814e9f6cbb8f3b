//! Known bugs, planted one at a time: the net is trusted only after it caught fish.
//!
//! The bugs stand in the sources as `if planted!("NAME")`. All are in one build, made with
//! `--cfg planted` in a directory of its own; the variable `ENTRESOL_PLANTED` says which is there.
//!
//! Invariants:
//! 1. A bug counts as caught only if the tests were built, ran and failed.
//! 2. The same tests pass without the bug.

use std::path::PathBuf;

use crate::Verdict;
use crate::invocation::{Ending, Invocation};
use crate::seeded::Target;
use crate::simulate::CRASH;

/// A bug and the test that must catch it.
struct Bug {
    name: &'static str,
    caught_by: Target,
}

/// Proves that a bug gets planted and that a failure is seen.
const CANARY: Bug = Bug { name: "canary", caught_by: Target { package: "xtask", test: "canary" } };

const BUGS: &[Bug] = &[
    CANARY,
    Bug { name: "superblock-flipped-before-sync", caught_by: CRASH },
    Bug { name: "generation-not-compared", caught_by: CRASH },
    Bug { name: "checksum-not-verified", caught_by: CRASH },
    Bug { name: "index-before-append", caught_by: CRASH },
    Bug { name: "segment-released-before-copies-synced", caught_by: CRASH },
    Bug { name: "begun-unit-reported-durable", caught_by: STORE },
    Bug { name: "dropped-in-flight", caught_by: STORE },
    Bug { name: "location-by-address", caught_by: STORE },
    Bug { name: "erasure-not-awaited", caught_by: STORE },
    Bug { name: "erasure-torn", caught_by: STORE },
    Bug { name: "tombstone-dropped-early", caught_by: CRASH },
    Bug { name: "sync-error-swallowed", caught_by: CRASH },
    Bug { name: "partial-flush-reported-durable", caught_by: CRASH },
    Bug { name: "unreadable-record-left-out", caught_by: CRASH },
    Bug { name: "unconfirmed-believed", caught_by: CRASH },
    Bug { name: "victim-released-half-decided", caught_by: STORE },
    Bug { name: "evicted-out-of-turn", caught_by: STORE },
    Bug { name: "dropped-while-open", caught_by: STORE },
    Bug { name: "damaged-for-good", caught_by: STORE },
    Bug { name: "index-full-for-ever", caught_by: STORE },
    Bug { name: "nonce-used-twice", caught_by: STORE },
    Bug { name: "buffers-by-identity-alone", caught_by: STORE },
    Bug { name: "buffers-not-missed", caught_by: STORE },
    Bug { name: "reclaimed-instead-of-awaited", caught_by: STORE },
    Bug { name: "write-through-keeps-old-blocks", caught_by: VOLUMES },
    Bug { name: "ahead-outlives-writes", caught_by: VOLUME_STREAMS },
    Bug { name: "regions-not-opened", caught_by: VOLUMES },
    Bug { name: "write-back-before-sync", caught_by: VOLUMES },
    Bug { name: "write-back-across-epochs", caught_by: VOLUMES },
    Bug { name: "log-of-other-incarnation", caught_by: VOLUME_FAULTS },
    Bug { name: "overlapping-writes-together", caught_by: VOLUMES },
    Bug { name: "trusted-after-passing-through", caught_by: VOLUME_TRUST },
    Bug { name: "heap-checksum-ignored", caught_by: HEAP_CRASH },
    Bug { name: "heap-record-position-not-compared", caught_by: HEAP_CRASH },
    Bug { name: "heap-generation-ignored", caught_by: HEAP_CRASH },
    Bug { name: "heap-damage-passed-over", caught_by: HEAP_DAMAGE },
    Bug { name: "heap-freed-under-guard", caught_by: HEAP_USE },
    Bug { name: "heap-nonce-reused", caught_by: HEAP_ENCRYPTION },
    Bug { name: "heap-page-tag-ignored", caught_by: HEAP_ENCRYPTION },
    Bug { name: "collection-store-not-logged", caught_by: COLLECTION_CRASH },
    Bug { name: "view-changed-in-place", caught_by: COLLECTIONS },
    Bug { name: "absent-key-removed", caught_by: COLLECTIONS },
];

/// Stores on a device in memory.
const STORE: Target = Target { package: "entresol-flash", test: "store" };

/// The tests that hold volumes against a model of every write.
const VOLUMES: Target = Target { package: "entresol-volume", test: "consistency" };

/// Collections in a heap against models.
const COLLECTIONS: Target = Target { package: "entresol-heap", test: "collections" };

/// Collections in a heap under every power failure.
const COLLECTION_CRASH: Target = Target { package: "entresol-heap", test: "collections_crash" };

/// Streams of a volume, what is read ahead of them and what is cached.
const VOLUME_STREAMS: Target = Target { package: "entresol-volume", test: "streams" };

/// Faults of a volume's cache and its backing, one at a time.
const VOLUME_FAULTS: Target = Target { package: "entresol-volume", test: "faults" };

/// What a cache believes after others may have written to the backing.
const VOLUME_TRUST: Target = Target { package: "entresol-volume", test: "trust" };

/// Every power failure of a heap's workload.
const HEAP_CRASH: Target = Target { package: "entresol-heap", test: "crash" };

/// Damage to a heap's file.
const HEAP_DAMAGE: Target = Target { package: "entresol-heap", test: "checking" };

/// Heaps that are encrypted.
const HEAP_ENCRYPTION: Target = Target { package: "entresol-heap", test: "encryption" };

/// Heaps as programs use them.
const HEAP_USE: Target = Target { package: "entresol-heap", test: "basics" };

const VARIABLE: &str = "ENTRESOL_PLANTED";
/// How the line of a test ends that failed.
const FAILED: &str = " ... FAILED";
/// The build that asks for it.
const BUILD: (&str, &str) = ("RUSTFLAGS", "--cfg planted");
/// A planted bug may make a test run on for ever.
const SECONDS_MAX: u64 = 900;

/// Names of all bugs in the table.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUGS.iter().map(|bug| bug.name)
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
pub(crate) fn check(name: Option<&str>) -> Result<bool, String> {
    let bugs: Vec<&Bug> = BUGS.iter().filter(|bug| name.is_none_or(|n| n == bug.name)).collect();
    if bugs.is_empty() {
        let known: Vec<&str> = names().collect();
        return Err(format!("there is no planted bug of that name; known: {}", known.join(", ")));
    }
    let mut sound: Vec<Target> = Vec::new();
    let mut passed = true;
    for bug in bugs {
        if !sound.contains(&bug.caught_by) {
            let ending = run(bug, &unplanted(bug))?;
            if !ending.passed {
                println!("{}\nfails with nothing planted: {:?}", ending.output, bug.caught_by);
                return Ok(false);
            }
            sound.push(bug.caught_by);
        }
        let ending = run(bug, &planted(bug))?;
        let caught = is_caught(&ending);
        let word = if caught { "caught" } else { "NOT CAUGHT" };
        println!("{word:<10}  {:<40} {}", bug.name, replay(bug));
        if !caught {
            println!("{}", tail(&ending.output));
        }
        passed &= caught;
    }
    Ok(passed)
}

fn replay(bug: &Bug) -> Invocation {
    bug.caught_by.invocation().with_variable(VARIABLE, bug.name).with_variable(BUILD.0, BUILD.1)
}

fn unplanted(bug: &Bug) -> Invocation {
    let Target { package, test } = bug.caught_by;
    Invocation::new(&format!(
        "timeout {SECONDS_MAX} cargo test --profile checked -p {package} --test {test}"
    ))
    .with_variable("CARGO_TARGET_DIR", target_directory().to_string_lossy())
    .with_variable(BUILD.0, BUILD.1)
    .with_variable(VARIABLE, "nothing")
}

fn planted(bug: &Bug) -> Invocation {
    unplanted(bug).with_variable(VARIABLE, bug.name)
}

fn run(bug: &Bug, invocation: &Invocation) -> Result<Ending, String> {
    // The first test that fails says it; those that go on would take most of the time.
    let ending = invocation.run_until(&|line| line.ends_with(FAILED))?;
    if ending.output.contains("could not compile") {
        return Err(format!("{}: {}", bug.name, tail(&ending.output)));
    }
    Ok(ending)
}

/// Caught: tests began to run, and the run failed before `timeout` ended it.
fn is_caught(ending: &Ending) -> bool {
    let failed = |mark| ending.output.contains(mark);
    !ending.passed && (failed("test result: FAILED") || failed("panicked at") || failed(FAILED))
}

fn target_directory() -> PathBuf {
    let base = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    base.unwrap_or_else(|| crate::root().join("target")).join("planted")
}

fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines.split_at(lines.len().saturating_sub(25)).1.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "ENTRESOL_PLANTED=canary RUSTFLAGS='--cfg planted' \
             cargo test --quiet --profile checked -p xtask --test canary"
        );
    }
}
