//! Openings again and again, with a few changes each and without any merge.

use entresol_flash::Durability;
use entresol_sim::CrashChoice;

use super::world::World;
use super::{crash, number_of, seeds};

/// Each opening began a segment of the journal, so that a program that was restarted again and
/// again, and wrote little, found its journal full of segments that were all but empty.
#[test]
fn openings_with_few_changes_each_do_not_fill_the_journal() {
    for seed in seeds(2) {
        let mut world = World::new(seed);
        let ended = restart(&mut world, 200);
        ended.unwrap_or_else(|why| panic!("{why}; ENTRESOL_SEED={seed}"));
    }
}

fn restart(world: &mut World, openings: usize) -> Result<(), String> {
    for opening in 0..openings {
        world.open().map_err(|why| format!("opening {opening}: {why}"))?;
        let found = world.check_prefix().map_err(|why| format!("opening {opening}: {why}"))?;
        world.history.truncate(found);
        for _ in 0..world.random.below(3) {
            world.write_at_once(Durability::Synced).map_err(|why| format!("{opening}: {why}"))?;
        }
        if world.random.below(4) == 0 {
            world.close()?;
            continue;
        }
        if world.random.below(2) == 0 {
            world.write_at_once(Durability::Memory)?;
        }
        world.open = None;
        world.device.crash_now();
        let choice = CrashChoice::Random(world.random.next());
        world.device = world.device.reopened(choice);
    }
    Ok(())
}

/// The copies of what is gathered, the cut behind them and the erasures, up to each call of the
/// device.
#[test]
fn a_crash_while_the_journal_is_gathered_loses_nothing() {
    for seed in seeds(1) {
        let mut whole = World::new(seed);
        whole.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let first = whole.device.calls();
        let ended = kill_again_and_again(&mut whole);
        ended.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let only = number_of("ENTRESOL_PREFIX");
        for prefix in (first..whole.device.calls()).filter(|at| only.is_none_or(|one| one == *at)) {
            crash(World::new(seed), prefix, kill_again_and_again);
        }
    }
}

fn kill_again_and_again(world: &mut World) -> Result<(), String> {
    for _ in 0..6 {
        world.write_at_once(Durability::Synced)?;
        world.write_at_once(Durability::Memory)?;
        world.open = None;
        world.open()?;
        let found = world.check_prefix()?;
        world.history.truncate(found);
    }
    Ok(())
}
