//! Real runs of a second or so on files: counts, intervals and contents, never times.

#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_certify::config::LoadModel;
use entresol_certify::load::{
    self, Durability, Ending, Engine, Interval, Judging, Kind, Manner, Observer, Plan, Target,
    TargetOptions, Trouble,
};
use entresol_certify::{Index, Storage, StorageRates, prepare};
use entresol_sim::{SimDevice, SimOptions};

/// A directory of the test's own.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("certify-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

fn options() -> TargetOptions {
    TargetOptions {
        manner: Manner::Strict,
        file_mbytes: 16,
        durability: Durability::Flushed,
        destroy: Vec::new(),
    }
}

fn open(names: &[String]) -> Arc<[Target]> {
    names.iter().map(|name| Target::open(name, &options(), &mut |_| {}).unwrap()).collect()
}

fn storage(names: &[String]) -> Storage {
    Storage {
        device_names: names.to_vec(),
        test_duration_sec: 2,
        read_reqs_per_sec: 100,
        write_reqs_per_sec: 100,
        disable_odsync: true,
        commit_to_device: true,
        ..Storage::default()
    }
}

fn rates() -> StorageRates {
    let config = Storage { service_threads: 4, ..storage(&["/dev/a".to_owned()]) };
    let rates = config.derive().unwrap();
    StorageRates { large_reads: 20.0, large_writes: 20.0, ..rates }
}

fn run(plan: Plan, targets: &Arc<[Target]>) -> (Ending, Vec<Interval>) {
    let mut intervals = Vec::new();
    let stop = AtomicBool::new(false);
    let mut keep = |interval: &Interval| intervals.push(interval.clone());
    let ending = load::run(plan, targets, &stop, &mut keep).unwrap();
    (ending, intervals)
}

fn total(plan: &Plan, intervals: &[Interval], name: &str) -> u64 {
    let at = plan.series.iter().position(|series| series.name == name).unwrap();
    intervals.iter().map(|interval| interval.series[at].service.count()).sum()
}

fn due(plan: &Plan, intervals: &[Interval], name: &str) -> u64 {
    let at = plan.series.iter().position(|series| series.name == name).unwrap();
    intervals.iter().map(|interval| interval.series[at].due).sum()
}

/// The reads of the device whose file has this name.
fn part(plan: &Plan, intervals: &[Interval], file: &str) -> u64 {
    let name = format!("/{file}-reads");
    let of = plan.series.iter().find(|series| series.name.ends_with(&name)).unwrap();
    total(plan, intervals, &of.name)
}

/// Runs until the counts of series are those expected, each within its slack. A busy machine does
/// less than is due, but not five times; a wrong rate does so each time. More than is due is wrong
/// at once.
fn run_until_exact(plan: &Plan, targets: &Arc<[Target]>, expected: &[(&[&str], u64, u64)]) {
    let mut short = String::new();
    for _ in 0..5 {
        let (ending, intervals) = run(plan.clone(), targets);
        assert_eq!(ending, Ending::Completed, "{:?}", plan.engine);
        assert_eq!(intervals.len(), 2);
        let all = intervals.iter().flat_map(|interval| &interval.series);
        assert!(all.clone().all(|one| one.errors == 0 && one.wrong == 0));
        assert!(all.clone().all(|one| one.response.count() == one.service.count()));
        short.clear();
        for &(names, count, slack) in expected {
            let found: u64 = names.iter().map(|name| total(plan, &intervals, name)).sum();
            let due: u64 = names.iter().map(|name| due(plan, &intervals, name)).sum();
            assert!(due.abs_diff(count) <= slack, "{:?}: {due} due of {names:?}", plan.engine);
            assert!(found <= count + slack, "{:?}: {found} of {names:?}", plan.engine);
            if found + slack < count {
                short = format!("{:?}: {found} of {names:?} for {count}", plan.engine);
            }
        }
        let parts = ["a", "b"].map(|name| part(plan, &intervals, name));
        assert!(parts[0] + parts[1] == total(plan, &intervals, "reads"), "{parts:?}");
        if short.is_empty() {
            return;
        }
    }
    panic!("less than is due in five runs: {short}");
}

#[test]
fn both_engines_do_what_the_rates_make_due_and_find_their_own_writes() {
    let directory = Directory::new("engines");
    let names = [directory.file("a"), directory.file("b")];
    let targets = open(&names);
    for engine in [Engine::Psync, Engine::Uring { threads: 2, depth: 32 }] {
        let mut plan = Plan::storage(&storage(&names), &rates(), Manner::Strict).unwrap();
        plan.engine = engine;
        plan.writing.judging = Judging::Verified;
        // Which of reads and writes a service thread does is chance; their sum is not.
        let expected: [(&[&str], u64, u64); 5] = [
            (&["reads"], 200, 60),
            (&["writes"], 200, 60),
            (&["reads", "writes"], 400, 4),
            (&["large-block-reads"], 40, 4),
            (&["large-block-writes"], 40, 4),
        ];
        run_until_exact(&plan, &targets, &expected);
    }
}

/// Sound devices fell short: of what chance had made writes, some were due as reads.
#[test]
fn as_many_reads_and_writes_are_due_as_chance_makes_of_them() {
    let directory = Directory::new("chance");
    let names = [directory.file("a"), directory.file("b")];
    let targets = open(&names);
    for seed in [1, 2] {
        let config = Storage { test_duration_sec: 1, ..storage(&names) };
        let mut plan = Plan::storage(&config, &rates(), Manner::Strict).unwrap();
        (plan.engine, plan.seed) = (Engine::Psync, seed);
        let (ending, intervals) = run(plan.clone(), &targets);
        assert_eq!(ending, Ending::Completed);
        let [reads, writes] = ["reads", "writes"].map(|name| due(&plan, &intervals, name));
        assert!((reads + writes).abs_diff(200) <= 4, "{reads} and {writes} due");
        for (name, due) in [("reads", reads), ("writes", writes)] {
            let done = total(&plan, &intervals, name);
            assert!(done <= due + 1, "seed {seed}: {done} of {due} {name}");
        }
    }
}

#[test]
fn index_devices_get_their_derived_cache_load_however_many_there_are() {
    let directory = Directory::new("index");
    let names = [directory.file("a"), directory.file("b")];
    let targets = open(&names);
    let config = Index {
        device_names: names.to_vec(),
        test_duration_sec: 2,
        read_reqs_per_sec: 100,
        write_reqs_per_sec: 100,
        ..Index::default()
    };
    let rates = config.derive().unwrap();
    for engine in [Engine::Psync, Engine::Uring { threads: 1, depth: 32 }] {
        let mut plan = Plan::index(&config, &rates, Manner::Strict).unwrap();
        plan.engine = engine;
        run_until_exact(&plan, &targets, &[(&["writes"], 400, 8), (&["reads"], 800, 13)]);
    }
}

#[test]
fn a_load_that_is_stopped_reports_what_it_did() {
    let directory = Directory::new("stopped");
    let names = [directory.file("a")];
    let targets = open(&names);
    let config = Storage { test_duration_sec: 3600, ..storage(&names) };
    for engine in [Engine::Psync, Engine::Uring { threads: 1, depth: 32 }] {
        let mut plan = Plan::storage(&config, &rates(), Manner::Strict).unwrap();
        plan.engine = engine;
        let stop = AtomicBool::new(false);
        let mut seen = Vec::new();
        let mut observer = |interval: &Interval| {
            seen.push(interval.series.iter().map(|one| one.service.count()).sum::<u64>());
            stop.store(true, Ordering::Relaxed);
        };
        let ending = load::run(plan, &targets, &stop, &mut observer).unwrap();
        assert_eq!(ending, Ending::Interrupted, "{engine:?}");
        assert_eq!(seen.len(), 2, "a whole interval and the rest");
        assert!(seen[0] > 0);
    }
}

#[test]
fn a_load_that_cannot_keep_up_stops_and_says_what_lagged() {
    let directory = Directory::new("lagging");
    let names = [directory.file("a")];
    let targets = open(&names);
    let config = Storage { test_duration_sec: 3600, max_lag_sec: 1, ..storage(&names) };
    let rates = StorageRates { large_writes: 10_000_000.0, ..rates() };
    for engine in [Engine::Psync, Engine::Uring { threads: 1, depth: 32 }] {
        let mut plan = Plan::storage(&config, &rates, Manner::Strict).unwrap();
        plan.engine = engine;
        let (ending, intervals) = run(plan, &targets);
        let lagged = matches!(
            ending,
            Ending::Lagged { kind: Kind::LargeWrite, lag_ns } if lag_ns > 1_000_000_000
        );
        assert!(lagged, "{engine:?}: {ending:?}");
        assert!(!intervals.is_empty());
    }
}

#[test]
fn targets_of_others_are_refused_until_named() {
    let directory = Directory::new("foreign");
    let name = directory.file("a");
    let mut bytes = vec![0; 16 << 20];
    bytes[..4].copy_from_slice(b"XFSB");
    std::fs::write(&name, &bytes).unwrap();
    let strict = TargetOptions { file_mbytes: 0, ..options() };
    let refused = Target::open(&name, &strict, &mut |_| {}).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("XFS") && text.contains(&format!("--destroy {name}")), "{text}");
    let allowed = TargetOptions { destroy: vec![name.clone()], ..strict.clone() };
    Target::open(&name, &allowed, &mut |_| {}).unwrap();
    let missing = Target::open(&directory.file("none"), &strict, &mut |_| {}).unwrap_err();
    assert!(missing.compat_line().contains("errno 2 'No such file or directory'"));
}

#[test]
fn a_multiple_of_a_load_has_that_multiple_of_every_rate_whatever_the_model() {
    // Modelled engines once kept their rate of writes, so that a search found loads sustained that
    // were never issued.
    for model in [LoadModel::Act, LoadModel::Engine, LoadModel::Entresol] {
        let mut config = storage(&["/dev/a".to_owned()]);
        config.test.model = model;
        let rates = config.derive().unwrap();
        let per_sec = |factor: f64| -> Vec<(Kind, f64)> {
            let plan = Plan::storage(&config, &rates.times(factor), Manner::Strict).unwrap();
            plan.streams.iter().map(|stream| (stream.kind, stream.per_sec())).collect()
        };
        for ((kind, once), (_, thrice)) in per_sec(1.0).into_iter().zip(per_sec(3.0)) {
            assert!((thrice - 3.0 * once).abs() < 1e-9, "{model:?} {kind:?}: {once}, {thrice}");
        }
        assert!(per_sec(1.0).iter().any(|(kind, rate)| *kind == Kind::LargeWrite && *rate > 0.0));
        let series =
            |factor| Plan::storage(&config, &rates.times(factor), Manner::Strict).unwrap().series;
        assert_eq!(series(1.0), series(0.001), "{model:?}: reports list the same");
    }
}

#[test]
fn plans_that_fit_no_target_are_errors() {
    let directory = Directory::new("plans");
    let names = [directory.file("a")];
    let targets = open(&names);
    let config = storage(&names);
    let endless = StorageRates { large_writes: f64::INFINITY, ..rates() };
    assert!(Plan::storage(&config, &endless, Manner::Strict).is_err());
    let huge = Storage { large_block_op_kbytes: 4_194_304, ..config.clone() };
    assert!(Plan::storage(&huge, &rates(), Manner::Strict).is_err());
    let stop = AtomicBool::new(false);
    let mut ignore = |_: &Interval| {};
    let idle = StorageRates {
        internal_reads: 0,
        internal_writes: 0,
        large_reads: 0.0,
        large_writes: 0.0,
        ..rates()
    };
    let plan = Plan::storage(&config, &idle, Manner::Strict).unwrap();
    assert!(load::run(plan, &targets, &stop, &mut ignore).is_err());
    let mut both = Storage { large_block_ops_per_sec: 5, ..config.clone() };
    both.test.model = LoadModel::Engine;
    assert!(Plan::storage(&both, &rates(), Manner::Strict).is_err());
    let large = StorageRates { stored_bytes_max: 32 << 20, ..rates() };
    let plan = Plan::storage(&config, &large, Manner::Strict).unwrap();
    let error = load::run(plan, &targets, &stop, &mut ignore).unwrap_err().to_string();
    for part in [&names[0], "has 16777216 bytes", "blocks of 131072", "record of 33554432 bytes"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn failed_reads_are_counted_and_told_and_are_in_no_histogram() {
    let device = SimDevice::new(SimOptions::new(3, 16 << 20));
    device.fail_reads(0..4 << 20);
    let targets: Arc<[Target]> = [Target::of(Arc::new(device))].into();
    let config = Storage { test_duration_sec: 1, ..storage(&["sim".to_owned()]) };
    let plan = Plan::storage(&config, &rates(), Manner::Strict).unwrap();
    let mut heard = Heard::default();
    let stop = AtomicBool::new(false);
    assert_eq!(load::run(plan, &targets, &stop, &mut heard).unwrap(), Ending::Completed);
    let reads = &heard.intervals[0].series[0];
    assert!((1..=99).contains(&reads.errors), "{} of 100", reads.errors);
    assert_eq!(reads.due, reads.errors + reads.service.count());
    assert!(heard.troubles.iter().all(|one| matches!(one, Trouble::Failed { .. })));
    assert!(heard.troubles.len() as u64 >= reads.errors);
}

#[test]
fn reads_that_bring_what_belongs_elsewhere_are_wrong() {
    let device = SimDevice::new(SimOptions::new(4, 16 << 20));
    let targets: Arc<[Target]> = [Target::of(Arc::new(device.clone()))].into();
    prepare::prepare(&targets[0], &AtomicBool::new(false), &mut |_| {}).unwrap();
    let mut config = Storage { test_duration_sec: 1, ..storage(&["sim".to_owned()]) };
    config.test.verify = true;
    config.test.seed = Some(5);
    // A write that lands elsewhere leaves units there that say where they belong.
    (0..400).for_each(|call| device.misdirect_write(device.calls() + call, 8 << 20));
    let plan = Plan::storage(&config, &rates(), Manner::Strict).unwrap();
    let mut heard = Heard::default();
    let stop = AtomicBool::new(false);
    load::run(plan, &targets, &stop, &mut heard).unwrap();
    let wrong: u64 = heard.intervals.iter().flat_map(|i| &i.series).map(|one| one.wrong).sum();
    assert!(wrong > 0, "{:?}", heard.troubles);
    assert!(heard.troubles.iter().any(
        |one| matches!(one, Trouble::Wrong { text, .. } if text.contains("was written to offset"))
    ));
}

/// Everything that an observer is told.
#[derive(Default)]
struct Heard {
    intervals: Vec<Interval>,
    troubles: Vec<Trouble>,
}

impl Observer for Heard {
    fn interval(&mut self, interval: &Interval) {
        self.intervals.push(interval.clone());
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.troubles.push(trouble.clone());
    }
}
