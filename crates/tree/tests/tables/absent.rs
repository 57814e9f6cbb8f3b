//! Filters of leaves' keys: a get of a key without a row reads nothing, and no row is hidden.

use std::collections::BTreeSet;

use entresol_flash::Durability;
use entresol_sim::CrashChoice;

use crate::world::{Form, World};
use crate::{BATCHES, crash_here_and_there, live, seeds};

/// A world whose leaves have filters.
fn filtered(seed: u64) -> World {
    let mut world = World::new(seed);
    world.options.absent_filter_bits = 10;
    world
}

/// Gets each row of the model, and keys beside them.
fn check_gets(world: &mut World, batches: usize) -> Result<(), String> {
    let model = world.model(batches);
    let keys: BTreeSet<Vec<u8>> = model.iter().flat_map(|rows| rows.keys().cloned()).collect();
    for key in keys {
        let beside = [&key[..], b"?"].concat();
        for (table, rows) in model.iter().enumerate() {
            for key in [&key, &beside] {
                let found = world.get(table, key)?;
                if found.as_ref() != rows.get(key) {
                    let expected = rows.get(key);
                    return Err(format!("{key:?} of {table}: {found:?}, expected {expected:?}"));
                }
            }
        }
    }
    Ok(())
}

/// Lives until two tables have more rows than a first record holds, all merged.
fn grow(world: &mut World) -> Result<(), String> {
    world.open()?;
    live(world, BATCHES)?;
    for table in 0..2 {
        let row = |number: u32| (format!("k{number:05}").into_bytes(), Some(vec![b'v'; 50]));
        for first in (0..80).step_by(20) {
            let rows: Vec<_> = (first..first + 20).map(row).collect();
            world.put_all(table, &rows, Durability::Memory)?;
        }
    }
    // Tables that were dropped are cleared first.
    for _ in 0..2 {
        world.maintain(30)?;
        world.settle()?;
    }
    Ok(())
}

/// Gets of so many keys that no row has, and how many pages they read.
fn reads_of_absent(world: &mut World, gets: u32) -> Result<u64, String> {
    let before = world.opened().tree.statistics().get_reads;
    for number in 0..gets {
        let key = format!("k{:05} is not there", number % 600);
        if world.get(number as usize % 2, key.as_bytes())?.is_some() {
            return Err(format!("{key} has a row"));
        }
    }
    Ok(world.opened().tree.statistics().get_reads - before)
}

#[test]
fn tables_with_filters_hold_what_a_map_holds() {
    for seed in seeds(6) {
        let mut world = filtered(seed);
        let lived = world.open().and_then(|()| live(&mut world, 2 * BATCHES)).and_then(|()| {
            let batches = world.history.len();
            check_gets(&mut world, batches)?;
            world.durable = world.history.len();
            world.check_prefix().map(drop)
        });
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
    }
}

#[test]
fn after_a_crash_tables_with_filters_are_what_a_prefix_of_the_batches_makes() {
    for seed in seeds(1) {
        crash_here_and_there(25, || filtered(seed));
        crash_here_and_there(6, || World { form: Form::Sealed, ..filtered(seed) });
    }
}

/// Inner nodes are written with filters, leaves change, and nodes are not written again.
#[test]
fn after_a_crash_no_filter_hides_a_row() {
    for seed in seeds(4) {
        let mut world = filtered(seed);
        let lived = world.open().and_then(|()| {
            for _ in 0..6 {
                live(&mut world, 40)?;
                world.settle()?;
            }
            for _ in 0..100 {
                world.write(Durability::Synced)?;
                world.maintain(2)?;
            }
            Ok(())
        });
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        world.open = None;
        world.device.crash_now();
        for choice in [CrashChoice::Random(seed), CrashChoice::Random(seed + 100)] {
            let mut after = world.after(world.device.reopened(choice), seed);
            let checked = after.open().and_then(|()| {
                // Gets come first: scans would read all leaves.
                let batches = after.history.len();
                check_gets(&mut after, batches)?;
                after.check_prefix().map(drop)
            });
            checked.unwrap_or_else(|why| panic!("{why}; ENTRESOL_SEED={seed}"));
        }
    }
}

#[test]
fn gets_of_absent_keys_read_nothing_after_merges_and_after_a_close() {
    for seed in seeds(3) {
        let mut world = filtered(seed);
        let read = grow(&mut world).and_then(|()| {
            let merged = reads_of_absent(&mut world, 1200)?;
            world.settle_and_close()?;
            world.open()?;
            // One of them loads the nodes.
            reads_of_absent(&mut world, 1200)?;
            Ok((merged, reads_of_absent(&mut world, 1200)?))
        });
        let (merged, closed) = read.unwrap_or_else(|why| panic!("{why}; ENTRESOL_SEED={seed}"));
        assert!(merged < 48 && closed < 48, "{merged} and {closed} reads, ENTRESOL_SEED={seed}");
    }
}

/// What a crash takes of filters comes back by the first read of each leaf.
#[test]
fn filters_are_learnt_from_leaves_that_are_read() {
    for order in ["gets", "scans"] {
        let mut world = filtered(5);
        let read = grow(&mut world).and_then(|()| {
            for _ in 0..60 {
                world.write(Durability::Synced)?;
                world.maintain(4)?;
            }
            world.open = None;
            world.device.crash_now();
            let device = world.device.reopened(CrashChoice::Random(5));
            let mut after = world.after(device, 5);
            after.open()?;
            let unknown = reads_of_absent(&mut after, 10)?;
            let batches = after.history.len();
            match order {
                "gets" => check_gets(&mut after, batches)?,
                _ => after.scan_all().map(drop)?,
            }
            Ok((unknown, reads_of_absent(&mut after, 1200)?))
        });
        let (unknown, learnt) = read.unwrap_or_else(|why| panic!("{why}"));
        assert!(unknown > 0 && learnt < 48, "{unknown} and {learnt} reads after {order}");
    }
}

/// A store whose tables had filters is opened without, and with them again.
#[test]
fn filters_of_another_opening_hide_no_row() {
    for seed in seeds(3) {
        let mut world = filtered(seed);
        let lived = world.open().and_then(|()| {
            for round in 0..6 {
                live(&mut world, BATCHES / 4)?;
                world.settle_and_close()?;
                world.options.absent_filter_bits = if round % 2 == 0 { 0 } else { 12 };
                world.open()?;
                let batches = world.history.len();
                check_gets(&mut world, batches)?;
            }
            Ok(())
        });
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
    }
}
