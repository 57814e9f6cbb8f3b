//! Benchmarks of this project, the comparison with other stores, and the soak.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Verdict;
use crate::deb;
use crate::fixed;
use crate::image;
use crate::invocation::Invocation;
use crate::java;
use crate::kill;
use crate::library;
use crate::metadata;
use crate::outside;
use crate::peers;
use crate::report::Report;
use crate::seeded::{Speed, Target};
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
    "ordered-get",
    "ordered-scan",
    "ordered-put",
    "ordered-overwrite",
    "ordered-load",
    "ordered-recovery",
    "grid",
    "bigmemory",
    "ram-per-record",
];

/// The benchmarks of heaps, by the names of their targets.
const HEAP_BENCHMARKS: &[&str] = &["transactions", "collections"];
/// Entries of the map in a short turn.
const SMOKE_ENTRIES: u32 = 20_000;

/// The comparison with other stores; with `resp`, of the server with redis-server.
const COMPARISON: &str = "benches-compare/run.sh";
/// What the soak runs; a failure prints the line that replays its seed.
const SOAKED: &[Target] = &[
    simulate::SIMULATION,
    simulate::MIXED,
    simulate::CRASH,
    simulate::HEAP_CRASH,
    simulate::COLLECTIONS_CRASH,
    Target { package: "entresol-flash", test: "collisions" },
    Target { package: "entresol-flash", test: "arbitrary" },
    Target { package: "entresol-volume", test: "consistency" },
    Target { package: "entresol-volume", test: "backing" },
    Target { package: "entresol-heap", test: "encryption" },
    Target { package: "entresol-heap", test: "collections" },
    Target { package: "entresol-tree", test: "tables" },
    Target { package: "entresol-tree", test: "pending" },
    Target { package: "entresol-server", test: "differential" },
    Target { package: "entresol-wire", test: "arbitrary" },
    Target { package: "entresol-certify", test: "arbitrary" },
];
const SOAK_MINUTES: u64 = 60;
/// Kills of a JVM on each path.
const JVM_KILLS: u64 = 20;

/// `cargo x bench [NAME | --smoke]`.
pub(crate) fn perform_bench(arguments: &[String]) -> Result<Verdict, String> {
    let mut report = Report::default();
    match arguments {
        [] => {
            for name in BENCHMARKS {
                report.run(name, &benchmark(name))?;
            }
            for name in HEAP_BENCHMARKS {
                report.run(name, &heap_benchmark(name))?;
            }
            java::measure(&mut report)?;
            report.run("comparison", &Invocation::new(COMPARISON))?;
            report.run("resp", &servers())?;
        }
        [flag] if flag == "--smoke" => {
            report.perform("bench smoke", "cargo x bench --smoke", &mut || smoke())?;
        }
        [name] if HEAP_BENCHMARKS.contains(&name.as_str()) => {
            report.run(name, &heap_benchmark(name))?;
        }
        [name] if name == "java" => java::measure(&mut report)?,
        [name] if name == "resp" => {
            report.run(name, &servers())?;
        }
        [name] => {
            report.run(name, &benchmark(name))?;
        }
        _ => return Err("it takes one name or nothing".to_string()),
    }
    Ok(report.close())
}

/// One short turn of benchmarks, built as tests are: shows that they still run, measures nothing
/// worth quoting.
pub(crate) fn smoke() -> Result<bool, String> {
    let turn = "bench flash-get --keys 20000 --value-size 1700 --seconds 1 --json";
    let program = kill::build()?.display().to_string();
    let text = Invocation::new(&format!("{program} {turn}")).read()?;
    println!("{}", text.trim_end());
    let heap =
        format!("bench --quiet --profile test --workspace --bench collections -- {SMOKE_ENTRIES}");
    let figures = Invocation::cargo(&heap).read()?;
    println!("{}", figures.trim_end());
    Ok(text.contains("\"device_reads_per_get\"") && figures.contains("get under one guard"))
}

/// `cargo x soak [--minutes N] [--seed S]`: kills at every level, then the seeded tests in turn,
/// with seeds from S on, then the C library and the packages, then Java on every JDK, then volumes
/// and Cassandra against what others wrote. Without S no soak runs the seeds of another.
pub(crate) fn perform_soak(arguments: &[String]) -> Result<Verdict, String> {
    let (minutes, first) = soak_options(arguments)?;
    let share = Duration::from_secs(minutes * 60 / SOAKED.len() as u64);
    let mut report = Report::default();
    report.perform("kill", "cargo x kill", &mut || kill::check(kill::ROUNDS))?;
    for target in SOAKED {
        let built = target.build(Speed::Optimised)?;
        let repeat = format!("cargo x soak --minutes {minutes} --seed {first}");
        report.perform(target.test, &repeat, &mut || built.run_for(first, share))?;
    }
    library::check(&mut report)?;
    deb::check(&mut report)?;
    fixed::check(&mut report)?;
    image::check(&mut report)?;
    metadata::check_jars(&mut report)?;
    java::check_everything(&mut report, JVM_KILLS)?;
    outside::run_all(&mut report)?;
    peers::run_all(&mut report)?;
    Ok(report.close())
}

/// Minutes, and the first seed.
fn soak_options(arguments: &[String]) -> Result<(u64, u64), String> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    let (mut minutes, mut first) = (SOAK_MINUTES, clock.map_or(0, |since| since.as_secs()) << 20);
    for pair in arguments.chunks(2) {
        match pair.first().map(String::as_str) {
            Some("--seed") => first = crate::number_option(pair, "--seed", first)?,
            _ => minutes = crate::number_option(pair, "--minutes", minutes)?,
        }
    }
    Ok((minutes, first))
}

fn heap_benchmark(name: &str) -> Invocation {
    Invocation::cargo(&format!("bench --quiet -p entresol-heap --bench {name}"))
}

/// The server beside redis-server.
fn servers() -> Invocation {
    Invocation::new(COMPARISON).with_argument("resp")
}

fn benchmark(name: &str) -> Invocation {
    Invocation::cargo(&format!("run --quiet --release -p entresol -- bench {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_takes_minutes_and_a_seed_in_any_order_and_else_one_of_its_own() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(soak_options(&words("--minutes 5 --seed 9")), Ok((5, 9)));
        assert_eq!(soak_options(&words("--seed 9 --minutes 5")), Ok((5, 9)));
        let (minutes, first) = soak_options(&[]).unwrap();
        assert!(minutes == SOAK_MINUTES && first > 1 << 40, "{first}");
        assert!(soak_options(&words("--minutes")).is_err());
        assert!(soak_options(&words("--seeds 9")).is_err());
    }
}
