//! Device errors: what failed is never acknowledged, reads go on, and reopening works.

use entresol_device::Device;
use entresol_flash::{Budget, Durability, Opened, Reclaim, SpaceId};
use entresol_sim::{Call, CrashChoice, Persistence, Stall};

use crate::explore::{recover, seeds};
use crate::model::{Name, Put};
use crate::setup::{Ending, Setup};
use crate::world::World;

/// Faults tried in each run.
const FAULTS_MAX: usize = 60;
/// A run in which a write fails while a segment is opened that waited for a buffer: it took that of
/// the failed write, and what was acknowledged from there could be read no more.
const FAILS_WHILE_A_BUFFER_IS_TAKEN: u64 = 6_654_152_623_761_618;
/// One in which a write fails, and the process is killed and started before it hears of it.
const KILLED_BEFORE_IT_HEARS: u64 = 2;
/// One in which a cache cannot erase an evicted segment, and erased a younger one all the same: the
/// older value of a key came back.
const FAILS_TO_ERASE: u64 = 60_948_496_239_438_199;

fn setups() -> [Setup; 5] {
    let synced = Setup::of("synced", Durability::Synced);
    let process = Setup::of("process", Durability::Process);
    [
        Setup { name: "cache", reclaim: Reclaim::Evict, ..synced.clone() },
        Setup { name: "cache-process", reclaim: Reclaim::Evict, ..process.clone() },
        Setup { shards: 2, segments: 32, ..process },
        Setup::of("memory", Durability::Memory),
        synced,
    ]
}

/// The workload with one fault for each call that `strikes`; then power fails as well.
fn strike(strikes: fn(&Call) -> bool, order: impl Fn(&World, u64)) {
    for setup in &setups() {
        seeds().for_each(|seed| strike_run((setup, seed), strikes, &order));
    }
}

fn strike_run(
    (setup, seed): (&Setup, u64),
    strikes: fn(&Call) -> bool,
    order: &impl Fn(&World, u64),
) {
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
        let rewritten = setup.shares_memory() && writes_records(&log[*call as usize], setup);
        if setup.shares_memory() && ended.is_ok() && !rewritten {
            // The process ended before it heard of it, and another was started; what is read then
            // is taken to become durable: assumption 9.
            continue;
        }
        if world.open.is_some() {
            for name in world.model.names() {
                let found = world.get(name);
                assert!(found.is_ok(), "{context}; a read of {name:?}: {found:?}");
            }
        }
        world.open = None;
        world.device.crash_now();
        for (ending, choice) in [
            (Ending::Kill, CrashChoice::KeepAll),
            (Ending::PowerLoss, CrashChoice::DropAll),
            (Ending::PowerLoss, CrashChoice::KeepAll),
            (Ending::PowerLoss, CrashChoice::Random(*call)),
        ] {
            let device = world.device.reopened(choice);
            device.heal();
            let mut after = world.after(device, ending);
            if let Err(why) = recover(&mut after, ending) {
                panic!("{why}\n{context}, then {ending:?} with {choice:?}");
            }
        }
        if rewritten {
            killed_after((setup, seed), order, *call, &context);
        }
    }
}

/// Whether the call writes what stands in a write buffer, and is not one that erases a header.
fn writes_records(call: &Call, setup: &Setup) -> bool {
    let at_start = |offset: u64| offset.is_multiple_of(u64::from(setup.segment_bytes));
    matches!(call, Call::Write { offset, length } if *length > 4096 || !at_start(*offset))
}

/// The process is killed after the fault; what the next one finds and syncs is there for good.
fn killed_after(
    (setup, seed): (&Setup, u64),
    order: &impl Fn(&World, u64),
    call: u64,
    context: &str,
) {
    let mut world = World::new(setup, seed);
    order(&world, call);
    let _ended = world.run();
    world.open = None;
    world.device.heal();
    let mut next = world.after(world.device.clone(), Ending::Kill);
    if let Err(why) = recover(&mut next, Ending::Kill) {
        panic!("{why}\n{context}, then a kill");
    }
    next.sync().unwrap();
    next.open = None;
    next.device.crash_now();
    let mut last = next.after(next.device.reopened(CrashChoice::DropAll), Ending::PowerLoss);
    if let Err(why) = recover(&mut last, Ending::PowerLoss) {
        panic!("{why}\n{context}, then a kill, a sync, and power loss");
    }
}

#[test]
fn a_failed_sync_acknowledges_nothing_and_reads_go_on() {
    strike(
        |call| matches!(call, Call::Sync),
        |world, call| world.device.fail_sync(call, Persistence::Transient),
    );
}

fn is_write(call: &Call) -> bool {
    matches!(call, Call::Write { .. })
}

fn fail_write(world: &World, call: u64) {
    world.device.fail_write(call, Persistence::Transient);
}

fn fill_up(world: &World, call: u64) {
    world.device.fill_up(call);
}

#[test]
fn a_failed_write_acknowledges_nothing_and_reads_go_on() {
    strike(is_write, fail_write);
}

// Found with other seeds than those of every run.
#[test]
fn faults_of_writes_that_lost_something_once_lose_nothing() {
    for setup in &setups()[3..] {
        strike_run((setup, FAILS_WHILE_A_BUFFER_IS_TAKEN), is_write, &fill_up);
    }
    strike_run((&setups()[2], KILLED_BEFORE_IT_HEARS), is_write, &fail_write);
    strike_run((&setups()[1], FAILS_TO_ERASE), is_write, &fail_write);
}

#[test]
fn a_device_that_fills_up_refuses_writes_and_keeps_what_it_has() {
    strike(is_write, fill_up);
}

/// Puts every key of a group in turn, so that a segment that is used again holds the same keys at
/// the same places as before. Returns what each key is.
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

/// A world with `shards` in which every second entry that was put first is dead, and what is left
/// of them is on the device alone.
fn half_dead(reclaim: Reclaim, shards: u16) -> World {
    let memory = Setup::of("memory", Durability::Memory);
    let mut world = World::new(&Setup { reclaim, shards, segments: 64, ..memory }, 11);
    world.open().unwrap();
    let put = |id| Put { id, length: 5_000, ends_ms: None };
    (0..HALF_DEAD).for_each(|key| world.put_one((0, key), put(1 + u32::from(key))).unwrap());
    // The write buffers hold what was put last.
    (0..60).for_each(|key| world.put_one((1, key), put(1000 + u32::from(key))).unwrap());
    for key in (0..HALF_DEAD).step_by(2) {
        world.put_one((0, key), put(500 + u32::from(key))).unwrap();
    }
    world.sync().unwrap();
    world
}

const HALF_DEAD: u8 = 120;

/// Where the sealed segments on the device that have dead records start.
fn victims(world: &World) -> Vec<u64> {
    let (store, _) = world.open.as_ref().unwrap();
    let segments = store.segments();
    let victims = segments.iter().filter(|s| s.state == "sealed" && s.live_bytes < s.used_bytes);
    victims.map(|segment| segment.offset).collect()
}

// The segment went back to where it was taken from, and was the best victim again: no other one was
// reclaimed any more, and every put of a store at its reserve failed.
#[test]
fn an_unreadable_sector_stops_reclaim_of_no_other_segment() {
    // In the segment's header, among its records, and in its footer.
    for (at, reclaim) in [0, 20_000, 65_000]
        .into_iter()
        .flat_map(|at| [Reclaim::Compact, Reclaim::Evict].map(|reclaim| (at, reclaim)))
    {
        let mut world = half_dead(reclaim, 1);
        let bad: Vec<u64> =
            victims(&world).into_iter().step_by(4).map(|start| start + at).collect();
        assert!(bad.len() > 1, "{} victims", bad.len());
        bad.iter().for_each(|bad| world.device.fail_reads(*bad..*bad + 1));
        for round in 0..40 {
            for key in 0..60 {
                let put =
                    Put { id: 10_000 + round * 60 + u32::from(key), length: 5_000, ends_ms: None };
                world.put_one((1, key), put).unwrap();
            }
            world.maintain().unwrap();
        }
        let mut failed = 0;
        for key in 0..HALF_DEAD {
            match world.get((0, key)) {
                Ok(Some(_)) => {}
                Ok(None) => assert_eq!(reclaim, Reclaim::Evict, "{key} is missing"),
                Err(why) => {
                    assert!(why.contains("Io") && reclaim == Reclaim::Compact, "{why}");
                    failed += 1;
                }
            }
        }
        assert!(
            failed <= 2 * bad.len(),
            "{failed} entries are unreadable for {} sectors",
            bad.len()
        );
        let (store, _) = world.parts();
        let damaged = store.segments().iter().filter(|s| s.state == "damaged").count();
        assert!(damaged <= bad.len() && (reclaim == Reclaim::Compact || damaged == 0), "{damaged}");
        assert!(store.verify().unwrap().damaged.len() <= bad.len());
        // What the medium gives again is there again.
        world.device.heal();
        for key in (0..HALF_DEAD).filter(|_| reclaim == Reclaim::Compact) {
            assert!(world.get((0, key)).unwrap().is_some(), "{key}");
        }
    }
}

#[test]
fn a_device_that_gives_nothing_takes_no_segment_out_of_use() {
    let mut world = half_dead(Reclaim::Compact, 1);
    let end = world.device.geometry().capacity_bytes;
    world.device.fail_reads(0..end);
    let now = world.now();
    let (store, _) = world.parts();
    for _ in 0..20 {
        let _ended = store.maintain(now, Budget { segments: 2 });
    }
    assert!(store.segments().iter().all(|s| s.state != "damaged"));
    world.device.heal();
    for key in 0..HALF_DEAD {
        assert!(world.get((0, key)).unwrap().is_some(), "{key}");
    }
}

// The sweep read the footer from the device while the write that seals the segment was under way,
// found that of a former use, and took the segment out of use for damaged.
#[test]
fn entries_that_end_before_their_segment_is_written_cost_no_segment() {
    let first = seeds().start;
    for seed in first..first + 6 {
        let setup = Setup { segments: 32, ..Setup::of("memory", Durability::Memory) };
        let mut world = World::new(&setup, seed);
        world.open().unwrap();
        // Segments that are used again have the footers of their former use.
        for id in 0..400 {
            let put = Put { id: 1 + id, length: 5_000, ends_ms: None };
            world.put_one((0, (id % 7) as u8), put).unwrap();
        }
        // No reclaim is left to do that would wait for a write buffer.
        (0..40).for_each(|_| world.maintain().unwrap());
        world.sync().unwrap();
        world.device.stall(Stall::Endless);
        let ends_ms = Some(world.now_ms + 1_000);
        for key in 0..16 {
            // The last ones are of several pieces.
            let length = if key < 14 { 5_000 } else { 20_000 };
            let put = Put { id: 1_000 + u32::from(key), length, ends_ms };
            world.put_one((7, key), put).unwrap();
        }
        world.now_ms += 5_000;
        let now = world.now();
        let (store, _) = world.parts();
        store.maintain(now, Budget { segments: 16 }).unwrap();
        let states: Vec<String> = store.segments().into_iter().map(|s| s.state).collect();
        assert!(states.iter().all(|state| state != "damaged"), "seed {seed}: {states:?}");
        assert!(store.count(SpaceId(7)) < 8, "seed {seed}: what ended and is sealed is dropped");
        world.device.stall(Stall::None);
        for key in 0..7 {
            assert!(world.get((0, key)).unwrap().is_some(), "seed {seed}, {key}");
        }
    }
}

/// A world that ended so, with all it was given durable, after every key was put twice.
fn ended(ending: Ending) -> (World, Vec<Put>) {
    let setup = Setup { segments: 48, ..Setup::of("memory", Durability::Memory) };
    let mut world = World::new(&setup, 7);
    world.open().unwrap();
    let last = cycle(&mut world, 2, GROUPS * GROUP);
    world.open = None;
    let device = match ending {
        Ending::Kill => world.device.clone(),
        Ending::PowerLoss => {
            world.device.crash_now();
            world.device.reopened(CrashChoice::DropAll)
        }
    };
    (world.after(device, ending), last)
}

/// Every entry is the one put last, or cannot be read; how many cannot.
fn unread(world: &mut World, last: &[Put], context: &str) -> usize {
    let mut failed = 0;
    for (key, put) in last.iter().enumerate() {
        match world.get((0, key as u8)) {
            Ok(found) => {
                let right = found.as_ref().is_some_and(|found| found.is_of((0, key as u8), *put));
                assert!(right, "{context}: {key} is {found:?}");
            }
            Err(why) => {
                assert!(why.contains("Io"), "{context}: {why}");
                failed += 1;
            }
        }
    }
    failed
}

// One bad sector in the head or the footer of any segment kept the whole store from being opened
// after a crash; one in a record that had to be checked, too.
#[test]
fn an_unreadable_sector_hides_no_acknowledged_entry_from_a_recovery_unnoticed() {
    for ending in [Ending::Kill, Ending::PowerLoss] {
        let (mut sound, last) = ended(ending);
        sound.open().unwrap();
        assert_eq!(unread(&mut sound, &last, "sound"), 0);
        let segments = sound.open.as_ref().unwrap().0.segments();
        let used: Vec<u64> =
            segments.iter().filter(|s| s.sequence != 0).map(|s| s.offset).collect();
        let (mut refused, mut opened) = (0, 0);
        for (start, at) in used
            .iter()
            .step_by(5)
            .flat_map(|start| [0, 3_000, 30_000, 65_100, 65_535].map(|at| (*start, at)))
        {
            let context = format!("{ending:?}, byte {at} of the segment at {start}");
            let (mut world, last) = ended(ending);
            world.device.fail_reads(start + at..start + at + 1);
            match world.open() {
                Ok(()) => {
                    // Two records may share a sector.
                    assert!(unread(&mut world, &last, &context) <= 2, "{context}");
                    opened += 1;
                }
                Err(why) => {
                    let named = why.contains("cannot be read")
                        && why.contains(&format!("bytes {start} to"));
                    assert!(named && at == 0, "{context}: {why}");
                    refused += 1;
                }
            }
            world.open = None;
            world.device.heal();
            world.open().unwrap();
            assert_eq!(unread(&mut world, &last, &context), 0, "{context}, healed");
        }
        assert!(refused > 0 && opened > 3 * refused, "{refused} refused, {opened} opened");
    }
}

#[test]
fn an_unreadable_root_or_checkpoint_costs_time_alone() {
    let setup = Setup { segments: 32, ..Setup::of("memory", Durability::Memory) };
    let mut recovered = 0;
    for segment in 0..34 {
        let mut world = World::new(&setup, 7);
        world.open().unwrap();
        let last = cycle(&mut world, 1, GROUPS * GROUP);
        let now = world.now();
        world.parts().0.close(now).unwrap();
        world.open = None;
        // Both copies of the root stand before the segments.
        let start = segment * (64 << 10);
        world.device.fail_reads(start + 8..start + 9);
        world.open().unwrap();
        let reads = unread(&mut world, &last, &format!("segment {segment}"));
        assert!(reads <= 2, "{segment}: {reads}");
        let opened = world.parts().0.statistics().opened;
        recovered += u32::from(opened == Opened::DamagedCheckpoint);
    }
    assert!(recovered > 0, "no checkpoint was hit");
}
