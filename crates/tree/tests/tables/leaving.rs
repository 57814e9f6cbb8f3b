//! Tables leave memory, and come back as they were.

use entresol_flash::Durability;

use super::seeds;
use super::world::World;

/// A table whose changes wait stays, one whose changes are merged leaves, and both have all rows.
#[test]
fn tables_that_nobody_has_leave_memory_and_come_back_with_all_their_rows() {
    for seed in seeds(3) {
        let mut world = World::new(seed);
        let ended = come_and_go(&mut world);
        ended.unwrap_or_else(|why| panic!("{why}; ENTRESOL_SEED={seed}"));
    }
}

fn come_and_go(world: &mut World) -> Result<(), String> {
    world.open()?;
    let mut left = 0;
    for round in 0..60 {
        for _ in 0..20 {
            world.write(Durability::Memory)?;
        }
        if round % 2 == 0 {
            world.settle()?;
            let gone = world.let_tables_leave()?;
            if gone != 3 {
                return Err(format!("{gone} of 3 tables left memory once they were merged"));
            }
        } else {
            left += world.let_tables_leave()?;
        }
        world.check_some()?;
    }
    if left > 60 {
        return Err(format!("{left} tables left memory although their changes waited"));
    }
    world.durable = world.history.len();
    world.check_prefix().map(drop)
}
