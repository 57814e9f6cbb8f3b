//! Ordered tables against a map, in one life and over crashes.
//!
//! After a crash the tables are what a prefix of the batches makes of them, and no batch that was
//! acknowledged as synced is missing from it. `ENTRESOL_SEED` and `ENTRESOL_PREFIX` replay a
//! failure.

mod absent;
mod beside;
mod cached;
mod conditional;
mod counts;
mod direct;
mod dropping;
mod estimates;
mod figures;
mod full;
mod history;
mod joining;
mod large;
mod leaving;
mod loading;
mod meanwhile;
mod moments;
mod nodes;
mod open;
mod queue;
mod replay;
mod restarts;
mod snapshots;
mod unfolded;
mod unmerged;
mod values;
mod world;

use entresol_flash::Durability;
use entresol_sim::CrashChoice;
use entresol_workload::Random;

use world::{Form, World};

const BATCHES: usize = 400;
/// What became of unsynced writes is tried in so many ways for each crash.
const CHOICES_MAX: usize = 14;

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn seeds(count: u64) -> Vec<u64> {
    number_of("ENTRESOL_SEED").map_or_else(|| (1..=count).collect(), |seed| vec![seed])
}

/// Writes, looks, maintains, and sometimes closes and opens again.
fn live(world: &mut World, batches: usize) -> Result<(), String> {
    for _ in 0..batches {
        let durability = match world.random.below(8) {
            0 => Durability::Synced,
            _ => Durability::Memory,
        };
        match world.random.below(6) {
            0 if world.random.below(8) == 0 => {
                let table = world.random.below(3) as usize;
                world.drop_table(table)?;
            }
            0 => world.write_if(durability)?,
            _ => world.write(durability)?,
        }
        match world.random.below(12) {
            0 | 1 => world.check_some()?,
            2..5 => world.maintain(3)?,
            5 => {
                if world.random.below(8) == 0 {
                    world.settle()?;
                }
                world.let_tables_leave()?;
            }
            6 if world.random.below(20) == 0 => {
                world.settle_and_close()?;
                world.open()?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn tables_hold_what_a_map_holds() {
    let mut delta_writes = 0;
    for seed in seeds(12) {
        let mut world = World::new(seed);
        world.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let lived = live(&mut world, 3 * BATCHES).and_then(|()| {
            world.durable = world.history.len();
            world.check_prefix().map(drop)
        });
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        world.settle_and_close().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        assert!(world.leaf_writes > 20, "{} leaves of seed {seed}", world.leaf_writes);
        delta_writes += world.delta_writes;
    }
    // One seed alone may write few of them.
    assert!(delta_writes > 20 || number_of("ENTRESOL_SEED").is_some(), "{delta_writes}");
}

#[test]
fn after_a_crash_tables_are_what_a_prefix_of_the_batches_makes() {
    for seed in seeds(2) {
        crash_here_and_there(80, || World::new(seed));
    }
}

#[test]
fn after_a_crash_encrypted_tables_are_what_a_prefix_of_the_batches_makes() {
    for seed in seeds(1) {
        crash_here_and_there(12, || World { form: Form::Sealed, ..World::new(seed) });
    }
}

/// Lives in a world, and ends the same life after some calls of the device, about so many times.
fn crash_here_and_there(crashes: u64, new: impl Fn() -> World) {
    let mut whole = new();
    let seed = whole.seed;
    whole.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
    let first = whole.device.calls();
    let lived = live(&mut whole, BATCHES);
    lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
    let calls = first..whole.device.calls();
    let step = ((calls.end - calls.start) / crashes).max(1);
    let only = number_of("ENTRESOL_PREFIX");
    for prefix in calls.filter(|at| only.map_or(at % step == seed % step, |one| one == *at)) {
        crash(new(), prefix, |world| live(world, BATCHES));
    }
}

/// What a world does until it crashes.
type Scene = fn(&mut World) -> Result<(), String>;

/// Ends the scene after `prefix` calls of the device, and looks at what is left.
fn crash(mut world: World, prefix: u64, scene: Scene) {
    let seed = world.seed;
    world.device.crash_after(prefix);
    let stopped = world.open().and_then(|()| scene(&mut world));
    drop(stopped);
    world.open = None;
    world.device.crash_now();
    let mut random = Random::new(seed ^ prefix << 20);
    let mut choices = world.device.crash_choices();
    while choices.len() > CHOICES_MAX {
        choices.swap_remove(random.below(choices.len() as u64) as usize);
    }
    choices.extend((0..4).map(|_| CrashChoice::Random(random.next())));
    for choice in choices {
        let mut after = world.after(world.device.reopened(choice), seed + prefix);
        let opened = after.open().and_then(|()| after.opened().check_pages().map(drop));
        let checked = opened.and_then(|()| after.check_prefix()).and_then(|batches| {
            after.check_gets(batches)?;
            if random.below(6) > 0 {
                return Ok(());
            }
            // Maintenance changes no row.
            after.maintain(20)?;
            if after.check_prefix()? != batches {
                return Err("maintenance after the crash changed rows".to_string());
            }
            after.history.truncate(batches);
            after.durable = 0;
            live(&mut after, 60)?;
            let found = after.scan_all()?;
            let is_same = found == after.model(after.history.len());
            if is_same { Ok(()) } else { Err("rows differ after a second life".to_string()) }
        });
        checked.unwrap_or_else(|why| {
            panic!("{why}\nafter {choice:?}; ENTRESOL_SEED={seed} ENTRESOL_PREFIX={prefix}")
        });
    }
}

#[test]
fn a_table_without_a_name_is_refused() {
    let mut world = World::new(1);
    world.open().unwrap_or_else(|why| panic!("{why}"));
    let refused = world.open_named(b"").map_or_else(|why| why, |()| "it was opened".to_string());
    assert!(refused.contains("a table's name has 0 bytes; expected 1 to 2048"), "{refused}");
}
