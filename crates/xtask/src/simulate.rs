//! Crash points and simulated faults, run with seeds from the command line.

use std::ops::Range;

use crate::Verdict;
use crate::seeded::{Speed, Target};

/// Every prefix of device calls as a crash point.
pub(crate) const CRASH: Target = Target { package: "entresol-flash", test: "crash" };
/// The same of heaps: what commits, checkpoints and recovery write.
pub(crate) const HEAP_CRASH: Target = Target { package: "entresol-heap", test: "crash" };
/// The same of the collections in a heap.
pub(crate) const COLLECTIONS_CRASH: Target =
    Target { package: "entresol-heap", test: "collections_crash" };
/// A store under seeded faults against a model.
pub(crate) const SIMULATION: Target = Target { package: "entresol-flash", test: "simulation" };

/// A store with features that seldom meet, against a model.
pub(crate) const MIXED: Target = Target { package: "entresol-flash", test: "mixed" };

const SEEDS: u64 = 200;

/// `cargo x crash [SEED]`.
pub(crate) fn perform_crash(arguments: &[String]) -> Result<Verdict, String> {
    let seed = match arguments {
        [] => None,
        [seed] => Some(parse_seed(seed)?),
        _ => return Err("it takes one seed or nothing".to_string()),
    };
    let mut passed = true;
    for target in [CRASH, HEAP_CRASH, COLLECTIONS_CRASH] {
        passed &= target.build(Speed::Optimised)?.run(seed)?;
    }
    Ok(verdict(passed))
}

/// `cargo x simulate [SEED | --seeds N]`.
pub(crate) fn perform_simulation(arguments: &[String]) -> Result<Verdict, String> {
    let seeds = match arguments {
        [seed] if !seed.starts_with("--") => {
            let seed = parse_seed(seed)?;
            seed..seed + 1
        }
        other => 0..crate::number_option(other, "--seeds", SEEDS)?,
    };
    Ok(verdict(simulate(seeds, Speed::Optimised)?))
}

/// Runs both simulations once for each seed; stops at the first that fails.
pub(crate) fn simulate(seeds: Range<u64>, speed: Speed) -> Result<bool, String> {
    for target in [SIMULATION, MIXED] {
        let built = target.build(speed)?;
        for seed in seeds.clone() {
            if !built.run(Some(seed))? {
                println!("or with: cargo x simulate {seed}");
                return Ok(false);
            }
        }
    }
    println!("{} seeds passed", seeds.count());
    Ok(true)
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a seed: a whole number below 2^64"))
}

fn verdict(passed: bool) -> Verdict {
    if passed { Verdict::Passed } else { Verdict::Failed }
}
