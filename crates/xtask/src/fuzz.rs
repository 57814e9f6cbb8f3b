//! Arbitrary bytes into every decoder; and the peers' judgement, command by command.

use std::time::Duration;

use crate::Verdict;
use crate::invocation::Invocation;
use crate::kill;
use crate::report;
use crate::seeded::{Speed, Target};

/// Tests that feed arbitrary bytes, a new stream for each seed.
const FUZZED: &[Target] = &[
    Target { package: "entresol-wire", test: "arbitrary" },
    Target { package: "entresol-certify", test: "arbitrary" },
    Target { package: "entresol-flash", test: "arbitrary" },
    Target { package: "entresol-tree", test: "arbitrary" },
];

const SECONDS: u64 = 60;

/// Other people's NBD clients, as a script that takes the program.
const NBD: &str = "conformance/nbd/run.py";

/// `cargo x fuzz [--seconds N]`: for each target, that many seconds.
pub(crate) fn perform_fuzz(arguments: &[String]) -> Result<Verdict, String> {
    let seconds = crate::number_option(arguments, "--seconds", SECONDS)?;
    Ok(if fuzz(seconds, Speed::Optimised)? { Verdict::Passed } else { Verdict::Failed })
}

/// Runs every target for `seconds`.
pub(crate) fn fuzz(seconds: u64, speed: Speed) -> Result<bool, String> {
    let mut passed = true;
    for target in FUZZED {
        // Another first seed than the simulation's: a decoder must not be tuned to a few streams.
        passed &= target.build(speed)?.run_for(1_000, Duration::from_secs(seconds))?;
    }
    Ok(passed)
}

/// `cargo x conformance`.
pub(crate) fn perform_conformance(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, |report| {
        let test = "test --quiet -p entresol-server --test differential";
        report.run("differential", &Invocation::cargo(test))?;
        report.perform("NBD clients", NBD, &mut nbd_clients)?;
        Ok(())
    })
}

/// Lets other people's NBD clients judge the volumes that the program serves.
pub(crate) fn nbd_clients() -> Result<bool, String> {
    let program = kill::build()?;
    let judge = Invocation::new("/usr/bin/python3").with_argument(NBD);
    let ending = judge.with_argument(program.display().to_string()).run_quietly()?;
    println!("{}", ending.output.trim_end());
    Ok(ending.passed)
}
