//! Values that are records of their own: which of them are there, and what writing them costs.

use std::collections::BTreeMap;

use entresol_flash::Durability;
use entresol_sim::CrashChoice;

use crate::open::Open;
use crate::world::World;
use crate::{crash, live, number_of, seeds};

/// Each value record is that of a row, which has no other.
fn check_values(world: &World) -> Result<usize, String> {
    let model = world.model(world.history.len());
    let mut seen: BTreeMap<(u64, Vec<u8>), usize> = BTreeMap::new();
    for (table, (key, value)) in
        world.open.as_ref().expect("a world that is open").value_records()?
    {
        // Parts stand beside the value.
        let is_it = |row: &Vec<u8>| row.starts_with(&value);
        let is_there = model.iter().any(|rows| rows.get(&key).is_some_and(is_it));
        if !is_there {
            return Err(format!("a value of {} bytes is of no row: {key:?}", value.len()));
        }
        *seen.entry((table, key)).or_default() += 1;
    }
    match seen.iter().find(|(_, count)| **count > 1) {
        Some((row, _)) => Err(format!("row {row:?} has two values")),
        None => Ok(seen.len()),
    }
}

/// Maintains until nothing is left to be done, of tables that were dropped neither.
fn calm(world: &mut World) -> Result<(), String> {
    for _ in 0..2 {
        world.maintain(30)?;
        world.settle()?;
    }
    Ok(())
}

#[test]
fn rows_have_one_value_at_most_and_others_are_removed() {
    let mut values = 0;
    for seed in seeds(4) {
        let mut world = World::new(seed);
        let lived = world.open().and_then(|()| live(&mut world, 500));
        let checked = lived.and_then(|()| calm(&mut world)).and_then(|()| check_values(&world));
        values += checked.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
    }
    assert!(values > 40, "{values} values");
}

#[test]
fn no_value_outlives_its_row_over_crashes() {
    for seed in seeds(3) {
        let mut whole = World::new(seed);
        let lived = whole.open().and_then(|()| live(&mut whole, 200));
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let calls = whole.device.calls();
        let only = number_of("ENTRESOL_PREFIX");
        let is_wanted = |at: &u64| only.map_or(at % 11 == seed, |one| one == *at);
        for prefix in (1..calls).filter(is_wanted) {
            let mut world = World::new(seed);
            world.device.crash_after(prefix);
            let _stopped = world.open().and_then(|()| live(&mut world, 200));
            world.open = None;
            world.device.crash_now();
            for number in 0..6 {
                let choice = match number {
                    0 => CrashChoice::KeepAll,
                    number => CrashChoice::Random(seed << 32 | prefix << 8 | number),
                };
                let mut after = world.after(world.device.reopened(choice), seed);
                let checked =
                    after.open().and_then(|()| after.check_prefix()).and_then(|batches| {
                        after.history.truncate(batches);
                        calm(&mut after)?;
                        check_values(&after).map(drop)
                    });
                checked.unwrap_or_else(|why| {
                    panic!("{why}\nafter {choice:?}; ENTRESOL_SEED={seed} ENTRESOL_PREFIX={prefix}")
                });
            }
        }
    }
}

/// Rows are written again and again between two syncs, and none of their values is confirmed.
#[test]
fn rows_that_are_written_twice_between_syncs_keep_what_was_durable() {
    let mut world = World::new(3);
    world.open().expect("a world");
    for round in 0..40 {
        let durability = if round % 7 == 0 { Durability::Synced } else { Durability::Memory };
        world.put(0, b"row", &[round; 400], durability).expect("a put");
        world.maintain(4 * usize::from(round % 3 == 0)).expect("maintenance");
    }
    let Some(Open { tree, .. }) = &world.open else { unreachable!() };
    assert!(tree.statistics().values_put > 5, "{:?}", tree.statistics());
    world.open = None;
    world.device.crash_now();
    let mut after = world.after(world.device.reopened(CrashChoice::DropAll), 3);
    after.open().expect("a world after a crash");
    after.check_prefix().expect("what was durable");
}

/// Such a batch was refused for ever: the value that the row had before needed one of its sides,
/// and the batch's own first value the other one.
#[test]
fn a_batch_may_give_a_row_several_large_values() {
    let mut world = World::new(5);
    world.open().expect("a world");
    world.put(0, b"row", &[1; 20_000], Durability::Synced).expect("a put");
    let large = |byte| (b"row".to_vec(), Some(vec![byte; 20_000]));
    let gone = (b"row".to_vec(), None);
    for durability in [Durability::Memory, Durability::Synced] {
        let rows = [large(2), gone.clone(), large(3), large(4)];
        world.put_all(0, &rows, durability).expect("a batch");
        assert_eq!(world.get(0, b"row").expect("a get"), Some(vec![4; 20_000]));
        world.put_all(0, &[large(5), gone.clone()], Durability::Synced).expect("a batch");
        assert_eq!(world.get(0, b"row").expect("a get"), None);
        world.put(0, b"row", &[6; 20_000], Durability::Synced).expect("a put");
        world.maintain(30).expect("maintenance");
    }
    calm(&mut world).expect("maintenance");
    assert_eq!(check_values(&world), Ok(1));
}

/// Writes rows anew while the removal of their values before the last is under way.
fn overtake(world: &mut World) -> Result<(), String> {
    for round in 0..4_u8 {
        for row in 0..40_u8 {
            world.put(0, &[b'r', row], &[round; 2000], Durability::Memory)?;
        }
        // Half of the time nothing but maintenance makes them durable.
        let durability = if round % 2 == 0 { Durability::Synced } else { Durability::Memory };
        world.put(0, b"last", &[round; 10], durability)?;
        // Begins a confirmation, and comes back before it is durable.
        world.maintain(1)?;
        for row in 0..6_u8 {
            world.put(0, &[b'r', row], &[round + 100; 300], Durability::Memory)?;
        }
        world.maintain(12)?;
    }
    Ok(())
}

fn overtaken(seed: u64) -> World {
    let mut world = World::late_by(seed, 64);
    world.options.waiting_bytes_max = 64 << 10;
    world
}

#[test]
fn a_value_stays_until_what_replaces_it_is_durable() {
    for seed in seeds(1) {
        let mut whole = overtaken(seed);
        whole.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let first = whole.device.calls();
        overtake(&mut whole).unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let Some(Open { tree, .. }) = &whole.open else { unreachable!() };
        let removed = tree.statistics().values_removed;
        assert!(removed > 60, "{removed} values were removed");
        let only = number_of("ENTRESOL_PREFIX");
        let calls = first..whole.device.calls();
        for prefix in calls.filter(|at| only.is_none_or(|one| one == *at)) {
            crash(overtaken(seed), prefix, overtake);
        }
    }
}
