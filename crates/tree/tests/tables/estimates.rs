//! Estimates of how many rows there are, against how many there are.

use entresol_tree::{CountRange, Order, RowEstimate};

use crate::history::Rows;
use crate::open::{Bounds, Open};
use crate::world::World;
use crate::{live, seeds};

fn estimate(world: &World, table: usize, low: &[u8], high: Option<&[u8]>) -> RowEstimate {
    let Some(Open { session, tables, .. }) = &world.open else { unreachable!() };
    session.estimate(CountRange { table: &tables[table], low, high })
}

fn between(rows: &Rows, low: &[u8], high: Option<&[u8]>) -> u64 {
    let is_in = |key: &[u8]| key >= low && high.is_none_or(|high| key < high);
    rows.keys().filter(|key| is_in(key)).count() as u64
}

/// Demands that estimates of ranges between rows are not farther off than they say. How many said.
fn check(world: &mut World, seed: u64) -> usize {
    let model = world.model(world.history.len());
    let mut told = 0;
    for (table, rows) in model.iter().enumerate() {
        let keys: Vec<&Vec<u8>> = rows.keys().collect();
        let mut bounds = vec![(Vec::new(), None)];
        for _ in 0..8 {
            if keys.len() < 2 {
                break;
            }
            let mut key = || keys[world.random.below(keys.len() as u64) as usize].clone();
            let (low, high) = (key(), key());
            bounds.push((low, Some(high)));
        }
        for (low, high) in bounds {
            let RowEstimate { rows: about, error } = estimate(world, table, &low, high.as_deref());
            let Some(error) = error else { continue };
            let found = between(rows, &low, high.as_deref());
            assert!(
                about.abs_diff(found) <= error,
                "{found} rows, estimated as {about} with an error of {error}; ENTRESOL_SEED={seed}"
            );
            told += 1;
        }
    }
    told
}

#[test]
fn an_estimate_is_as_far_off_as_it_says_at_most() {
    let mut told = 0;
    for seed in seeds(4) {
        let mut world = World::new(seed);
        world.open().expect("a world");
        for _ in 0..30 {
            live(&mut world, 20).unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
            told += check(&mut world, seed);
        }
        world.settle_and_close().expect("a world that closes");
        world.open().expect("a world");
        told += check(&mut world, seed);
    }
    assert!(told > 300, "{told} estimates");
}

#[test]
fn an_estimate_of_rows_that_nobody_changes_is_close() {
    let mut world = World::new(5);
    world.open().expect("a world");
    let key = |number: u64| format!("k{number:05}").into_bytes();
    for first in (0..4000).step_by(50) {
        let row = |number| (key(number), Some(vec![b'v'; 20]));
        let rows: Vec<_> = (first..first + 50).map(row).collect();
        world.put_all(0, &rows, entresol_flash::Durability::Memory).expect("a batch");
    }
    world.settle_and_close().expect("a world that closes");
    world.open().expect("a world");
    // Its inner nodes are not in memory so far.
    assert_eq!(estimate(&world, 0, b"", None).error, None);
    let all = Bounds { low: b"", high: None, limit: usize::MAX, order: Order::Ascending };
    let Some(open) = &mut world.open else { unreachable!() };
    assert_eq!(open.scan(0, all).map(|rows| rows.len()), Ok(4000));
    let about = estimate(&world, 0, b"", None);
    assert!(about.rows.abs_diff(4000) <= about.error.unwrap_or(u64::MAX), "{about:?}");
    assert!(about.rows.abs_diff(4000) < 200, "{about:?}");
}
