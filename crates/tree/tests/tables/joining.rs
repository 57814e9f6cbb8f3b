//! Tables that shrink: leaves and inner nodes that join.

use entresol_flash::Durability;
use entresol_tree::TreeStatistics;

use crate::open::Open;
use crate::world::World;
use crate::{crash, number_of, seeds};

/// Separators of such keys are long: an inner node has few of them.
fn key(number: u64) -> Vec<u8> {
    format!("{:0>120}{number:05}", "").into_bytes()
}

fn statistics(world: &World) -> TreeStatistics {
    let Some(Open { tree, .. }) = &world.open else { unreachable!() };
    tree.statistics()
}

/// Puts rows with these numbers in the first table, or removes them.
fn change(
    world: &mut World,
    numbers: impl Iterator<Item = u64>,
    value: Option<&[u8]>,
) -> std::result::Result<(), String> {
    let numbers: Vec<u64> = numbers.collect();
    for some in numbers.chunks(12) {
        let value = value.map(<[u8]>::to_vec);
        let rows: Vec<_> = some.iter().map(|number| (key(*number), value.clone())).collect();
        let durability = match world.random.below(6) {
            0 => Durability::Synced,
            _ => Durability::Memory,
        };
        world.put_all(0, &rows, durability)?;
        if world.random.below(3) == 0 {
            world.maintain(2)?;
        }
    }
    Ok(())
}

/// Fills a table, takes most of it away here and there, and fills it again.
fn wax_and_wane(world: &mut World) -> std::result::Result<(), String> {
    const ROWS: u64 = 260;
    change(world, 0..ROWS, Some(&[b'v'; 20]))?;
    world.settle()?;
    // All rows of a stretch in the middle, then from the lower end, each with some that stay.
    change(world, (60..200).filter(|number| number % 31 != 0), None)?;
    world.maintain(6)?;
    change(world, 100..110, Some(b"back"))?;
    change(world, (0..70).filter(|number| number % 23 != 0), None)?;
    world.settle()?;
    change(world, 30..90, Some(b"again"))?;
    world.maintain(6)?;
    world.settle_and_close()?;
    world.open()?;
    change(world, 0..ROWS - 3, None)?;
    world.maintain(6)?;
    change(world, 5..30, Some(b"once more"))?;
    world.settle()
}

fn world_of(seed: u64) -> World {
    let mut world = World::new(seed);
    world.options.leaf_bytes_max = 700;
    world
}

#[test]
fn a_table_whose_leaves_join_holds_what_a_map_holds() {
    let (mut leaves, mut nodes) = (0, 0);
    for seed in seeds(6) {
        let mut world = world_of(seed);
        let lived = world.open().and_then(|()| {
            for _ in 0..4 {
                wax_and_wane(&mut world)?;
                world.durable = world.history.len();
                world.check_prefix()?;
            }
            world.settle_and_close()
        });
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        (leaves, nodes) = (leaves + world.leaves_absorbed, nodes + world.nodes_absorbed);
    }
    println!("{leaves} leaves, {nodes} inner nodes");
    assert!(leaves > 100, "{leaves} leaves were absorbed");
    assert!(nodes > 3, "{nodes} inner nodes were absorbed");
}

#[test]
fn tables_whose_leaves_join_are_a_prefix_of_the_batches_after_any_crash() {
    for seed in seeds(1) {
        let mut whole = world_of(seed);
        whole.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let first = whole.device.calls();
        wax_and_wane(&mut whole).unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let absorbed = whole.leaves_absorbed + statistics(&whole).leaves_absorbed;
        let nodes = whole.nodes_absorbed + statistics(&whole).nodes_absorbed;
        let calls = first..whole.device.calls();
        println!("{calls:?} calls, {absorbed} leaves, {nodes} inner nodes");
        assert!(absorbed > 20, "{absorbed} leaves are absorbed");
        let only = number_of("ENTRESOL_PREFIX");
        for prefix in calls.filter(|at| only.is_none_or(|one| one == *at)) {
            crash(world_of(seed), prefix, wax_and_wane);
        }
    }
}
