//! Benchmarks of this project, the comparison with other stores, and the soak.

use std::time::{Duration, Instant};

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::Report;
use crate::{seeded, simulate};

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
const SOAK_MINUTES: u64 = 60;

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

/// `cargo x soak [--minutes N]`: `kill -9` rounds and simulation seeds in turn.
pub(crate) fn perform_soak(arguments: &[String]) -> Result<Verdict, String> {
    let minutes = crate::number_option(arguments, "--minutes", SOAK_MINUTES)?;
    let start = Instant::now();
    let mut report = Report::default();
    for round in 0.. {
        let first = 10_000 + round * 100;
        let repeat = format!("cargo x simulate {first} # and the 99 seeds after it");
        let seeds = first..first + 100;
        report.perform("simulate", &repeat, &mut || simulate::simulate(seeds.clone()))?;
        let kill = Invocation::cargo("test --quiet --profile checked -p entresol --test kill")
            .with_variable(seeded::SEED, first.to_string());
        report.run("kill -9", &kill)?;
        if start.elapsed() >= Duration::from_secs(minutes * 60) {
            break;
        }
    }
    Ok(report.close())
}

fn benchmark(name: &str) -> Invocation {
    Invocation::cargo(&format!("run --quiet --release -p entresol -- bench {name}"))
}
