//! `recovery`: how fast a store opens after `kill -9`, and after a clean stop.
//!
//! A child process fills the store and is killed; nothing of it is left but the file and what the
//! durability level promises. Each round then opens the store and drops it without closing it,
//! which leaves what a crash leaves.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use entresol_device::Preparation;
use entresol_workload::{Distribution, Mix};
use serde_json::json;

use super::driver::{Job, Shared, Until};
use super::rounds::head;
use super::setup::{BENCH_FILE, Setup, Store, Subject, prepared_file};
use crate::cleanup::{self, forget_child};
use crate::engine::{Engine, open_file};
use crate::failure::{Failure, Outcome};
use crate::meter::own_cpu_us;
use crate::progress;
use crate::report::{Report, median, rounded};

/// Fills, kills, opens; stops cleanly, opens.
pub(crate) fn recovery(setup: &Setup) -> Outcome<Report> {
    let scratch = setup.scratch()?;
    let (_buffers, setup) = &setup.with_buffers()?;
    let path = scratch.fresh(BENCH_FILE);
    drop(prepared_file(&path, setup.capacity_bytes())?);
    fill_and_kill("recovery", setup, scratch.path())?;
    let mut report = head("recovery", setup);
    let mut crash = Vec::new();
    let cpu = own_cpu_us();
    for _ in 1..setup.rounds {
        let (seconds, engine) = timed_open(setup, &path)?;
        crash.push(seconds);
        drop(engine);
    }
    let (seconds, engine) = timed_open(setup, &path)?;
    crash.push(seconds);
    let cpu = (own_cpu_us() - cpu) / setup.rounds as f64;
    let entries = engine.tiered.count(Default::default());
    report.set("entries", entries);
    let store = Store::new(engine, path.clone());
    let lost = sample(setup, store, entries, &mut report)?;
    let mut clean = Vec::new();
    for _ in 0..setup.rounds {
        let (seconds, engine) = timed_open(setup, &path)?;
        clean.push(seconds);
        if engine.tiered.count(Default::default()) != entries {
            return Err(Failure::Failed(format!(
                "{} entries after a clean restart, {entries} before",
                engine.tiered.count(Default::default())
            )));
        }
        engine.close()?;
    }
    let rate = |seconds: &[f64]| entries as f64 / median(seconds);
    report.figure("records_per_second", rate(&crash));
    report.figure("cpu_us_per_record", cpu / entries.max(1) as f64);
    report.set("open_seconds", json!(crash.iter().map(|s| rounded(*s)).collect::<Vec<_>>()));
    report.figure("clean_records_per_second", rate(&clean));
    report.set("clean_open_seconds", json!(clean.iter().map(|s| rounded(*s)).collect::<Vec<_>>()));
    report.set("lost_keys", lost);
    Ok(report)
}

/// Gets a sample of the keys, closes the store cleanly, and returns how many were lost.
fn sample(setup: &Setup, store: Store, entries: u64, report: &mut Report) -> Outcome<u64> {
    const SAMPLE: u64 = 200_000;
    let subject = Subject::Embedded(Box::new(store));
    let shared = Shared::new(setup.keys);
    let until = Until::Operations(SAMPLE.min(setup.keys));
    let job: Job = setup.fast_job(Mix::gets(Distribution::Uniform), until);
    let tally = subject.drive(setup, &job, &shared)?.sound()?;
    report.set("keys_sampled", tally.operations());
    report.set("keys_missing_in_sample", tally.misses);
    if let Subject::Embedded(store) = subject {
        store.engine.close()?;
    }
    Ok(setup.keys.saturating_sub(entries).max(tally.misses))
}

fn timed_open(setup: &Setup, path: &Path) -> Outcome<(f64, Engine)> {
    let began = Instant::now();
    let device = open_file(path, None, Preparation::Allocated)?;
    let engine = Engine::open(device, setup.options(Some(0)))?;
    Ok((began.elapsed().as_secs_f64(), engine))
}

/// Lets a child fill the store of `bench` in `directory`, then kills it.
pub(crate) fn fill_and_kill(bench: &str, setup: &Setup, directory: &Path) -> Outcome<()> {
    let spinner = progress::spinner("a child fills the store and is killed");
    let program = std::env::current_exe()
        .map_err(|e| Failure::doing("cannot find this program's own file", e))?;
    let mut command = Command::new(program);
    command.arg("fill-until-killed");
    if let Some(buffers) = &setup.buffers {
        command.arg("--buffer-directory").arg(buffers);
    }
    command
        .arg(bench)
        .args(["--keys", &setup.keys.to_string()])
        .args(["--value-size", &setup.sizes.to_string()])
        .args(["--shards", &setup.shards.to_string()])
        .args(["--durability", &setup.durability_name()])
        .args(setup.memory.iter().flat_map(|bytes| ["--memory".to_owned(), bytes.to_string()]))
        .arg("--dir")
        .arg(directory)
        .stdout(Stdio::piped());
    let child = cleanup::spawn(&mut command)
        .map_err(|e| Failure::doing("cannot start the filling child", e))?;
    let mut child = Killed(child);
    let mut line = String::new();
    if let Some(output) = child.0.stdout.take() {
        BufReader::new(output)
            .read_line(&mut line)
            .map_err(|e| Failure::doing("cannot read from the filling child", e))?;
    }
    spinner.finish_and_clear();
    match line.trim() {
        "filled" => Ok(()),
        _ => Err(Failure::CannotRun("the filling child ended before it was done".into())),
    }
}

/// The child's part: fills, says so, and goes on overwriting until it is killed.
pub(crate) fn fill_until_killed(args: &super::BenchArgs) -> Outcome<()> {
    let setup = args.setup()?;
    if args.name == super::Name::OrderedRecovery {
        return super::ordered::fill(&setup);
    }
    let directory = setup.scratch()?;
    let path = directory.path().join(BENCH_FILE);
    let device = open_file(&path, None, Preparation::Allocated)?;
    let engine = Engine::open(device, setup.options(Some(0)))?;
    let subject = Subject::Embedded(Box::new(Store::new(engine, path)));
    let shared = Shared::new(setup.keys);
    subject.fill(&setup, &shared, 0..setup.keys)?;
    println!("filled");
    // The parent kills this process whether or not the line left it.
    drop(std::io::stdout().flush());
    loop {
        std::thread::park();
    }
}

/// A child that does not outlive its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // A child that is gone already needs no killing.
        drop(self.0.kill());
        drop(self.0.wait());
        forget_child(self.0.id());
    }
}
