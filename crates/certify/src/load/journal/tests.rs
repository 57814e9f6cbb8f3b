//! Power cuts on simulated devices.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use entresol_device::WriteMode;
use entresol_sim::{CrashChoice, SimDevice, SimOptions};

use super::*;
use crate::load::interval::Interval;
use crate::load::{
    Arrival, Engine, Judging, Kind, Manner, Marking, Pacing, Plan, Shape, Stream, Timing, Writing,
    run,
};

const SIZE: u64 = 1 << 20;
const SEEDS: [u64; 6] = [1, 2, 3, 4, 5, 6];

fn plan(directory: &Path, mode: WriteMode, seed: u64) -> Plan {
    let stream = |kind, per_sec, bytes| Stream {
        kind,
        device: None,
        pacing: Pacing::Open(per_sec),
        shape: Shape::Blocks { bytes },
    };
    Plan {
        streams: vec![stream(Kind::LargeWrite, 4000.0, 16_384), stream(Kind::Write, 4000.0, 1024)],
        loops: Vec::new(),
        series: Vec::new(),
        block_bytes: 16_384,
        timing: Timing { duration_ns: 50_000_000, interval_ns: 50_000_000, lag_ns_max: None },
        engine: Engine::Uring { threads: 1, depth: 8 },
        manner: Manner::Strict,
        arrival: Arrival::Poisson,
        writing: Writing {
            compress_pct: 100,
            marking: Marking::Described { run: seed },
            judging: Judging::Ignored,
            mode,
            journal: Some(directory.to_owned()),
        },
        seed,
    }
}

/// Runs a load that power cuts short, and checks what the device then holds. How much was
/// acknowledged by then depends on the machine: a load that was late did much at once, and told the
/// journal little of it.
fn cut(mode: WriteMode, seed: u64, choice: CrashChoice) -> JournalReport {
    let directory = std::env::temp_dir()
        .join(format!("certify-journal-{mode:?}-{seed}-{}", std::process::id()));
    let device = SimDevice::new(SimOptions::new(seed, SIZE));
    device.crash_after(60 + seed * 7);
    let targets: Arc<[Target]> = [Target::of(Arc::new(device.clone()))].into();
    let stop = AtomicBool::new(false);
    let mut ignore = |_: &Interval| {};
    let _broken = run(plan(&directory, mode, seed), &targets, &stop, &mut ignore);
    assert!(device.is_crashed(), "seed {seed}: the load was long enough");
    let reopened = device.reopened(choice);
    let targets = [Target::of(Arc::new(reopened))];
    let report = check_journal(&directory, &targets);
    let _left_behind = std::fs::remove_dir_all(&directory);
    report.unwrap()
}

#[test]
fn every_acknowledged_write_is_found_after_a_power_cut() {
    let mut acknowledged = 0;
    for seed in SEEDS {
        let report = cut(WriteMode::Durable, seed, CrashChoice::Random(seed));
        assert_eq!((report.lost, &report.first), (0, &None), "seed {seed}");
        acknowledged += report.acknowledged;
    }
    assert!(acknowledged > 20, "{acknowledged} writes were acknowledged");
}

#[test]
fn a_device_that_acknowledges_what_it_does_not_keep_is_found_out() {
    // Of one load it may be all that counts that was begun again, and may be half written.
    let reports = SEEDS.map(|seed| cut(WriteMode::Flushed, seed, CrashChoice::DropAll));
    let lost: u64 = reports.iter().map(|report| report.lost).sum();
    assert!(lost > 0, "{reports:?}");
}

#[test]
fn targets_that_nothing_tells_apart_are_checked_each_by_itself() {
    let directory =
        std::env::temp_dir().join(format!("certify-journal-alike-{}", std::process::id()));
    let target = |seed| Target::of(Arc::new(SimDevice::new(SimOptions::new(seed, SIZE))));
    let targets: Arc<[Target]> = [target(1), target(2)].into();
    assert_eq!(targets[0].identity(), targets[1].identity());
    let stop = AtomicBool::new(false);
    let mut ignore = |_: &Interval| {};
    run(plan(&directory, WriteMode::Durable, 1), &targets, &stop, &mut ignore).unwrap();
    let report = check_journal(&directory, &targets);
    let _left_behind = std::fs::remove_dir_all(&directory);
    let report = report.unwrap();
    assert_eq!((report.lost, &report.first), (0, &None));
    assert!(report.acknowledged > 0);
}

#[test]
fn misdirected_and_flipped_writes_are_lost_writes() {
    for (seed, fault) in [(1, "misdirected"), (2, "flipped")] {
        let directory =
            std::env::temp_dir().join(format!("certify-journal-{fault}-{}", std::process::id()));
        let device = SimDevice::new(SimOptions::new(seed, SIZE));
        if fault == "misdirected" {
            device.misdirect_write(3, SIZE - 16_384);
        }
        let targets: Arc<[Target]> = [Target::of(Arc::new(device.clone()))].into();
        let mut load = plan(&directory, WriteMode::Durable, seed);
        load.streams.truncate(1);
        // So few that hardly any block is written twice.
        load.streams[0].pacing = Pacing::Open(200.0);
        let stop = AtomicBool::new(false);
        let mut ignore = |_: &Interval| {};
        run(load, &targets, &stop, &mut ignore).unwrap();
        if fault == "flipped" {
            (0..SIZE / 512).for_each(|unit| device.flip_bits(unit * 512 + 17, 1));
        }
        let report = check_journal(&directory, &targets);
        let _left_behind = std::fs::remove_dir_all(&directory);
        let report = report.unwrap();
        assert!(report.lost > 0, "{fault}: {report:?}");
    }
}
