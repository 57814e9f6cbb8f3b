//! Benchmarks of this project, the comparison with other stores, and the soak.

use std::time::Duration;

use crate::Verdict;
use crate::invocation::Invocation;
use crate::kill;
use crate::outside;
use crate::report::Report;
use crate::seeded::Target;
use crate::simulate;

/// The benchmarks of `entresol bench`, cheapest first.
const BENCHMARKS: &[&str] = &[
    "device",
    "flash-get",
    "zipf-get",
    "load",
    "synced",
    "overwrite",
    "recovery",
    "grid",
    "bigmemory",
    "ram-per-record",
];

const COMPARISON: &str = "benches-compare/run.sh";
/// What the soak runs; a failure prints the line that replays its seed.
const SOAKED: &[Target] = &[
    simulate::SIMULATION,
    simulate::CRASH,
    Target { package: "entresol-flash", test: "collisions" },
];
const SOAK_MINUTES: u64 = 60;
/// Beyond the seeds that the gate runs.
const FIRST_SEED: u64 = 10_000;

/// `cargo x bench [NAME | --smoke]`.
pub(crate) fn perform_bench(arguments: &[String]) -> Result<Verdict, String> {
    let mut report = Report::default();
    match arguments {
        [] => {
            for name in BENCHMARKS {
                report.run(name, &benchmark(name))?;
            }
            report.run("comparison", &Invocation::new(COMPARISON))?;
        }
        [flag] if flag == "--smoke" => {
            report.perform("bench smoke", "cargo x bench --smoke", &mut || smoke())?;
        }
        [name] => {
            report.run(name, &benchmark(name))?;
        }
        _ => return Err("it takes one name or nothing".to_string()),
    }
    Ok(report.close())
}

/// One short turn of a benchmark: shows that it still runs, measures nothing worth quoting.
pub(crate) fn smoke() -> Result<bool, String> {
    let turn = "run --quiet --profile checked -p entresol -- bench flash-get \
                --keys 20000 --value-size 1700 --seconds 1 --json";
    let text = Invocation::cargo(turn).read()?;
    println!("{}", text.trim_end());
    Ok(text.contains("\"device_reads_per_get\""))
}

/// `cargo x soak [--minutes N]`: kills at every level, then the seeded tests in turn, each with
/// seeds of its own, then volumes against what others wrote.
pub(crate) fn perform_soak(arguments: &[String]) -> Result<Verdict, String> {
    let minutes = crate::number_option(arguments, "--minutes", SOAK_MINUTES)?;
    let share = Duration::from_secs(minutes * 60 / SOAKED.len() as u64);
    let mut report = Report::default();
    report.perform("kill", "cargo x kill", &mut || kill::check(kill::ROUNDS))?;
    for target in SOAKED {
        let built = target.build()?;
        let repeat = format!("cargo x soak --minutes {minutes}");
        report.perform(target.test, &repeat, &mut || built.run_for(FIRST_SEED, share))?;
    }
    outside::run_all(&mut report)?;
    Ok(report.close())
}

fn benchmark(name: &str) -> Invocation {
    Invocation::cargo(&format!("run --quiet --release -p entresol -- bench {name}"))
}
