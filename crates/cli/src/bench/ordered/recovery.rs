//! `ordered-recovery`: how fast a table is there again after `kill -9`, and after a clean stop.
//!
//! A child loads the table and goes on overwriting it until it is killed. Each round then opens it,
//! takes the time until the first row is answered, and drops it without closing it, which leaves
//! what a crash leaves.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use entresol_device::Preparation;
use entresol_workload::{Distribution, KeyLayout, Mix, Random};
use serde_json::json;

use super::begin;
use super::store::{Opening, OrderedStore, Sizing};
use crate::bench::driver::{Shared, Until};
use crate::bench::probe::ReadProbe;
use crate::bench::recovery::fill_and_kill;
use crate::bench::setup::{BENCH_FILE, Setup, prepared_file};
use crate::bench::target::{Answer, Connection, Request};
use crate::engine::open_file;
use crate::failure::{Failure, Outcome};
use crate::report::{Report, median, rounded};

/// Part of the rows that are put again before the kill: more than may wait for a merge.
const AGAIN: u64 = 4;

/// Fills, kills, opens; stops cleanly, opens.
pub(crate) fn recovery(setup: &Setup) -> Outcome<Report> {
    let scratch = setup.scratch()?;
    let (_buffers, setup) = &setup.with_buffers()?;
    let path = scratch.fresh(BENCH_FILE);
    drop(prepared_file(&path, Sizing::of(setup).capacity)?);
    fill_and_kill("ordered-recovery", setup, scratch.path())?;
    let mut report = begin("ordered-recovery", setup);
    let mut crashed = Openings::default();
    for round in 0..setup.rounds {
        let store = crashed.open(setup, &path)?;
        if round + 1 < setup.rounds {
            continue;
        }
        report.set("waiting_bytes", store.tree_statistics().waiting_bytes);
        report.figure("device_mb_per_second", read_rate(&store)? / 1e6);
        report.set("lost_keys", store.missing(setup, &Shared::new(setup.keys))?);
        store.close()?;
    }
    let mut clean = Openings::default();
    for _ in 0..setup.rounds {
        clean.open(setup, &path)?.close()?;
    }
    report.figure("seconds_to_first_answer", median(&crashed.answered));
    report.figure("seconds_to_open", median(&crashed.opened));
    report.figure("clean_seconds_to_first_answer", median(&clean.answered));
    report.figure("clean_seconds_to_open", median(&clean.opened));
    let each = |seconds: &[f64]| json!(seconds.iter().map(|s| rounded(*s)).collect::<Vec<_>>());
    report.set("first_answer_seconds", each(&crashed.answered));
    report.set("clean_first_answer_seconds", each(&clean.answered));
    let of = |part: fn(&Opening) -> f64| crashed.parts.iter().map(part).collect::<Vec<_>>();
    let journal_bytes = median(&of(|part| part.journal_bytes as f64));
    report.set("journal_bytes", journal_bytes as u64);
    report.figure("store_seconds", median(&of(|part| part.store_seconds)));
    report.figure("replay_seconds", median(&of(|part| part.tables_seconds)));
    report.figure("device_reads_to_first_answer", crashed.reads());
    report.figure("device_bytes_to_first_answer", crashed.read_bytes());
    report.figure("clean_device_reads_to_first_answer", clean.reads());
    Ok(report)
}

/// How fast the device reads what a replay reads, bytes a second.
fn read_rate(store: &OrderedStore) -> Outcome<f64> {
    let device = &store.engine.device;
    let probe = ReadProbe {
        bytes: 1 << 20,
        extent: device.geometry().capacity_bytes,
        depth: 4,
        threads: 1,
        time: Duration::from_millis(500),
    };
    Ok(probe.run(device, 0)?.bytes_per_second)
}

/// Openings one after the other, seconds each.
#[derive(Default)]
struct Openings {
    opened: Vec<f64>,
    answered: Vec<f64>,
    device_reads: Vec<f64>,
    device_bytes: Vec<f64>,
    parts: Vec<Opening>,
}

impl Openings {
    /// Opens the store and gets one row.
    fn open(&mut self, setup: &Setup, path: &Path) -> Outcome<OrderedStore> {
        // Another row each time: nothing of it is in any cache.
        let row = Random::new(self.opened.len() as u64).below(setup.keys);
        let began = Instant::now();
        let store = OrderedStore::open(setup, path, KeyLayout::Scattered)?;
        self.opened.push(began.elapsed().as_secs_f64());
        let mut rows = store.connect(1)?;
        let key = KeyLayout::Scattered.key(row);
        let mut is_there = false;
        let mut visit = |_: u64, answer: Answer<'_>| is_there = matches!(answer, Answer::Value(_));
        rows.begin(0, Request::Get(&key), &mut visit);
        rows.wait(1, &mut visit)?;
        self.answered.push(began.elapsed().as_secs_f64());
        self.parts.push(store.opening());
        let counted = store.counted();
        self.device_reads.push(counted.device_reads as f64);
        self.device_bytes.push(counted.device_read_bytes as f64);
        match is_there {
            true => Ok(store),
            false => Err(Failure::Failed(format!("row {row} was put and is not there"))),
        }
    }

    fn reads(&self) -> f64 {
        median(&self.device_reads)
    }

    fn read_bytes(&self) -> f64 {
        median(&self.device_bytes)
    }
}

/// The child's part: fills the table, overwrites some of it, says so, and waits to be killed.
pub(crate) fn fill(setup: &Setup) -> Outcome<()> {
    let directory = setup.scratch()?;
    let path = directory.path().join(BENCH_FILE);
    drop(open_file(&path, None, Preparation::Allocated)?);
    let store = OrderedStore::open(setup, &path, KeyLayout::Scattered)?;
    let shared = Shared::new(setup.keys);
    store.fill(setup, &shared)?;
    let until = Until::Operations(setup.keys / AGAIN);
    let job = setup.fast_job(Mix::updating(0, Distribution::Uniform), until);
    store.drive(setup, &job, &shared)?;
    println!("filled");
    // The parent kills this process whether or not the line left it.
    drop(std::io::stdout().flush());
    loop {
        std::thread::park();
    }
}
