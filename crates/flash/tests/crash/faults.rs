//! Device errors: what failed is never acknowledged, reads go on, and reopening works.

use entresol_device::Device;
use entresol_flash::Durability;
use entresol_sim::{Call, CrashChoice, Persistence};

use crate::explore::{recover, seeds};
use crate::model::{Name, Put};
use crate::setup::{Ending, Setup};
use crate::world::World;

/// Faults tried in each run.
const FAULTS_MAX: usize = 60;

fn setups() -> [Setup; 2] {
    [Setup::of("synced", Durability::Synced), Setup::of("memory", Durability::Memory)]
}

/// The workload with one fault for each call that `strikes`; then power fails as well.
fn strike(strikes: fn(&Call) -> bool, order: impl Fn(&World, u64)) {
    for (setup, seed) in setups().iter().flat_map(|setup| seeds().map(move |seed| (setup, seed))) {
        let mut whole = World::new(setup, seed);
        whole.run().unwrap();
        let log = whole.device.call_log();
        let calls = log.iter().enumerate().filter(|(_, call)| strikes(call));
        let calls: Vec<u64> = calls.map(|(number, _)| number as u64).collect();
        for call in calls.iter().step_by(calls.len().div_ceil(FAULTS_MAX)) {
            let mut world = World::new(setup, seed);
            order(&world, *call);
            let ended = world.run();
            let context = format!("{} seed {seed}, fault at call {call}: {ended:?}", setup.name);
            if world.open.is_some() {
                for name in world.model.names() {
                    let found = world.get(name);
                    assert!(found.is_ok(), "{context}; a read of {name:?}: {found:?}");
                }
            }
            world.open = None;
            world.device.crash_now();
            for choice in [CrashChoice::DropAll, CrashChoice::KeepAll, CrashChoice::Random(*call)] {
                let device = world.device.reopened(choice);
                device.heal();
                let mut after = world.after(device, Ending::PowerLoss);
                if let Err(why) = recover(&mut after, Ending::PowerLoss) {
                    panic!("{why}\n{context}, then power loss with {choice:?}");
                }
            }
        }
    }
}

#[test]
fn a_failed_sync_acknowledges_nothing_and_reads_go_on() {
    strike(
        |call| matches!(call, Call::Sync),
        |world, call| world.device.fail_sync(call, Persistence::Transient),
    );
}

#[test]
fn a_failed_write_acknowledges_nothing_and_reads_go_on() {
    strike(
        |call| matches!(call, Call::Write { .. }),
        |world, call| world.device.fail_write(call, Persistence::Transient),
    );
}

#[test]
fn a_device_that_fills_up_refuses_writes_and_keeps_what_it_has() {
    strike(|call| matches!(call, Call::Write { .. }), |world, call| world.device.fill_up(call));
}

/// Puts every key of a group in turn, so that a segment that is used again holds the same keys at
/// the
/// same places as before. Returns what each key is.
fn cycle(world: &mut World, rounds: u32, keys: u8) -> Vec<Put> {
    let mut last = Vec::new();
    for round in 0..rounds {
        for key in 0..keys {
            let id = round * u32::from(keys) + u32::from(key) + 1;
            let put = Put { id: 1_000_000 + id, length: 9_900, ends_ms: None };
            world.put_one((0, key), put).unwrap();
            last.resize(last.len().max(usize::from(key) + 1), put);
            last[usize::from(key)] = put;
        }
        world.maintain().unwrap();
    }
    world.sync().unwrap();
    last
}

const GROUPS: u8 = 12;
/// Records of 9,900 bytes in a segment.
const GROUP: u8 = 6;

#[test]
fn a_write_that_the_device_lost_is_never_answered_with_what_stood_there_before() {
    let setup = Setup { segments: 32, ..Setup::of("memory", Durability::Memory) };
    let keys = GROUPS * GROUP;
    let rounds = 12;
    let mut whole = World::new(&setup, 3);
    whole.open().unwrap();
    cycle(&mut whole, rounds, keys);
    let log = whole.device.call_log();
    let is_seal = |call: &Call| matches!(call, Call::Write { length, .. } if *length > 40_000);
    let seals = log.iter().enumerate().filter(|(_, call)| is_seal(call)).map(|(n, _)| n as u64);
    let seals: Vec<u64> = seals.collect();
    let mut found_out = 0;
    for call in seals.iter().rev().take(14) {
        let mut world = World::new(&setup, 3);
        world.device.misdirect_write(*call, 0);
        world.open().unwrap();
        let last = cycle(&mut world, rounds, keys);
        for (key, put) in last.iter().enumerate() {
            let name: Name = (0, key as u8);
            match world.get(name) {
                Ok(Some(found)) => assert!(found.is_of(name, *put), "{name:?} is {found:?}"),
                Ok(None) => panic!("{name:?} is missing"),
                Err(why) => {
                    assert!(why.contains("Corrupt"), "{why}");
                    found_out += 1;
                }
            }
        }
    }
    assert!(found_out > 0, "no lost write was read");
}

#[test]
fn an_unreadable_sector_fails_the_reads_that_need_it_and_no_others() {
    let setup = Setup { segments: 32, ..Setup::of("memory", Durability::Memory) };
    let mut world = World::new(&setup, 5);
    world.open().unwrap();
    let last = cycle(&mut world, 1, GROUPS * GROUP);
    let base = 128 << 10;
    world.device.fail_reads(base + 30_000..base + 30_512);
    let mut failed = 0;
    for (key, put) in last.iter().enumerate() {
        let name: Name = (0, key as u8);
        match world.get(name) {
            Ok(found) => assert!(found.is_some_and(|found| found.is_of(name, *put)), "{name:?}"),
            Err(why) => {
                assert!(why.contains("Io"), "{why}");
                failed += 1;
            }
        }
    }
    assert!((1..=2).contains(&failed), "{failed} reads failed");
    world.device.heal();
    for (key, put) in last.iter().enumerate() {
        let found = world.get((0, key as u8)).unwrap();
        assert!(found.is_some_and(|found| found.is_of((0, key as u8), *put)), "{key}");
    }
    assert!(world.device.counters().reads.load(std::sync::atomic::Ordering::Relaxed) > 0);
}
