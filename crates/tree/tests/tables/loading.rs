//! A leaf for which more changes wait than one merge takes.

use entresol_flash::Durability;

use crate::world::World;
use crate::{crash, number_of, seeds};

/// Puts rows of one leaf, in no order, and merges them; puts more between them, and merges those.
fn load(world: &mut World) -> std::result::Result<(), String> {
    for step in 0..2 {
        for batch in 0..20_u64 {
            let number = |row: u64| (row * 20 + batch) * 7919 % 4001 * 2 + step;
            let rows: Vec<_> = (0..12)
                .map(|row| (format!("{:06}", number(row)).into_bytes(), Some(vec![b'v'; 40])))
                .collect();
            let durability = match batch % 5 {
                4 => Durability::Synced,
                _ => Durability::Memory,
            };
            world.put_all(0, &rows, durability)?;
        }
        if step == 0 {
            world.settle()?;
        }
    }
    world.settle()?;
    world.durable = world.history.len();
    world.check_prefix().map(drop)
}

fn world_of(seed: u64) -> World {
    let mut world = World::new(seed);
    world.options.leaf_bytes_max = 300;
    world
}

#[test]
fn a_leaf_with_many_changes_is_a_prefix_of_the_batches_after_any_crash() {
    for seed in seeds(1) {
        let mut whole = world_of(seed);
        whole.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let first = whole.device.calls();
        load(&mut whole).unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let calls = first..whole.device.calls();
        println!("{calls:?} calls");
        let only = number_of("ENTRESOL_PREFIX");
        for prefix in calls.filter(|at| only.map_or(at % 2 == seed % 2, |one| one == *at)) {
            crash(world_of(seed), prefix, load);
        }
    }
}
