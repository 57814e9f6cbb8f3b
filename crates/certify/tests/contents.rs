//! Checks of reads: on a target whose contents somebody changes, and on a target that is written as
//! fast as possible.

#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use entresol_certify::load::{
    self, Durability, Ending, Engine, Interval, Manner, Observer, Plan, Target, TargetOptions,
    Trouble,
};
use entresol_certify::{Storage, StorageRates};
use entresol_sim::{SimDevice, SimOptions};

const TARGET_BYTES: usize = 2 << 20;
const BLOCK_BYTES: usize = 128 << 10;

/// A file of the test's own.
struct Owned(PathBuf);

impl Owned {
    fn new(name: &str) -> Owned {
        Owned(std::env::temp_dir().join(format!("certify-{name}-{}", std::process::id())))
    }

    fn targets(&self) -> Arc<[Target]> {
        let options = TargetOptions {
            manner: Manner::Strict,
            file_mbytes: (TARGET_BYTES >> 20) as u32,
            durability: Durability::Flushed,
            destroy: Vec::new(),
        };
        [Target::open(&self.0.display().to_string(), &options, &mut |_| {}).unwrap()].into()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_file(&self.0);
    }
}

/// Reads of records and writes of blocks on a small target, so that each block is written often.
fn plan(seconds: u32, (reads, blocks): (u32, f64), commits: bool) -> Plan {
    let mut config = Storage {
        device_names: vec!["/target".to_owned()],
        test_duration_sec: seconds,
        read_reqs_per_sec: reads,
        write_reqs_per_sec: 300,
        disable_odsync: !commits,
        commit_to_device: commits,
        ..Storage::default()
    };
    config.test.verify = true;
    config.test.seed = Some(11);
    let rates = StorageRates { large_writes: blocks, ..config.derive().unwrap() };
    Plan::storage(&config, &rates, Manner::Strict).unwrap()
}

/// Wrong reads of each interval, and what was said of them.
#[derive(Default)]
struct Found {
    wrong: Vec<u64>,
    texts: Vec<String>,
}

/// Keeps what it is told; does something to the target at the end of each interval.
struct Meddler<'a> {
    found: Found,
    meddle: &'a mut dyn FnMut(u64),
}

impl Observer for Meddler<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.found.wrong.push(interval.series.iter().map(|one| one.wrong).sum());
        (self.meddle)(interval.number);
    }

    fn trouble(&mut self, trouble: &Trouble) {
        if let Trouble::Wrong { text, .. } = trouble {
            self.found.texts.push(text.clone());
        }
    }
}

fn run(plan: Plan, targets: &Arc<[Target]>, meddle: &mut dyn FnMut(u64)) -> Found {
    let mut meddler = Meddler { found: Found::default(), meddle };
    let ending = load::run(plan, targets, &AtomicBool::new(false), &mut meddler).unwrap();
    assert_eq!(ending, Ending::Completed);
    meddler.found
}

#[test]
fn blocks_that_are_rolled_back_to_an_older_write_of_the_run_are_wrong() {
    let owned = Owned::new("rolled-back");
    let targets = owned.targets();
    let file = OpenOptions::new().read(true).write(true).open(&owned.0).unwrap();
    let mut older = vec![0; TARGET_BYTES];
    let found = run(plan(3, (300, 100.0), false), &targets, &mut |interval| match interval {
        1 => file.read_exact_at(&mut older, 0).unwrap(),
        2 => file.write_all_at(&older, 0).unwrap(),
        _ => {}
    });
    assert_eq!(found.wrong[..2], [0, 0], "{:?}", found.texts);
    assert!(found.wrong[2] > 0);
    let text = &found.texts[0];
    for part in [&owned.0.display().to_string(), " at offset ", "expected write ", "found write "] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn blocks_that_were_written_and_hold_nothing_of_a_load_are_wrong() {
    let owned = Owned::new("emptied");
    let targets = owned.targets();
    let file = OpenOptions::new().write(true).open(&owned.0).unwrap();
    let found = run(plan(2, (300, 100.0), false), &targets, &mut |interval| {
        if interval == 1 {
            file.write_all_at(&vec![0; TARGET_BYTES - BLOCK_BYTES], BLOCK_BYTES as u64).unwrap();
        }
    });
    assert_eq!(found.wrong[0], 0, "{:?}", found.texts);
    assert!(found.texts.iter().any(|text| text.contains("found bytes that no load wrote")));
}

#[test]
fn writes_that_are_acknowledged_and_lost_are_wrong() {
    let device = SimDevice::new(SimOptions::new(4, 16 << 20));
    let targets: Arc<[Target]> = [Target::of(Arc::new(device.clone()))].into();
    // All of them land in one place: of every other place they are lost.
    (0..2000).for_each(|call| device.misdirect_write(device.calls() + call, 8 << 20));
    let found = run(plan(2, (300, 100.0), false), &targets, &mut |_| {});
    let lost = |text: &String| text.contains("found bytes that no load wrote");
    assert!(found.texts.iter().any(lost), "{:?}", found.texts);
}

#[test]
fn no_read_is_wrong_on_a_target_that_is_written_as_fast_as_it_goes() {
    let owned = Owned::new("hot");
    let targets = owned.targets();
    for engine in [Engine::Psync, Engine::Uring { threads: 2, depth: 32 }] {
        for commits in [false, true] {
            let mut plan = plan(1, (2000, 800.0), commits);
            plan.timing.lag_ns_max = None;
            plan.engine = engine;
            let found = run(plan, &targets, &mut |_| {});
            assert_eq!(found.texts, Vec::<String>::new(), "{engine:?}, commits: {commits}");
        }
    }
}
