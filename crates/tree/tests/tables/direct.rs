//! Gets of tables whose rows are large: what they read, and what they find once others come.

use entresol_flash::Durability::{Memory, Synced};
use entresol_sim::CrashChoice;

use crate::world::World;
use crate::{crash, number_of, seeds};

const ROWS: u8 = 60;

fn key(row: u8) -> [u8; 3] {
    [b'r', b'0' + row / 10, b'0' + row % 10]
}

/// A world whose first table has large rows under even numbers.
fn large(seed: u64) -> World {
    let mut world = World::new(seed);
    world.open().expect("a world");
    for row in (0..ROWS).step_by(2) {
        world.put(0, &key(row), &[row; 900], Memory).expect("a put");
    }
    world.settle().expect("merges");
    world
}

/// Reads that gets of all numbers take: of rows that are there, and of others.
fn reads(world: &mut World) -> (u64, u64) {
    let model = world.model(world.history.len());
    let (mut present, mut absent) = (0, 0);
    for row in 0..ROWS {
        let before = world.opened().tree.statistics().get_reads;
        let found = world.get(0, &key(row)).expect("a get");
        let reads = world.opened().tree.statistics().get_reads - before;
        let expected = model[0].get(&key(row)[..]);
        assert_eq!(found.as_ref(), expected, "row {row}");
        *(if expected.is_some() { &mut present } else { &mut absent }) += reads;
    }
    (present, absent)
}

#[test]
fn a_large_row_takes_one_read_and_an_absent_one_none() {
    let mut world = large(1);
    assert_eq!(reads(&mut world), (30, 0));
    // Rows that are written again, and removed, before and after merges.
    for row in (0..ROWS).step_by(6) {
        world.put(0, &key(row), &[row + 1; 700], Memory).expect("a put");
        world.put_all(0, &[(key(row + 2).to_vec(), None)], Memory).expect("a remove");
    }
    assert_eq!(reads(&mut world), (20, 0));
    world.settle().expect("merges");
    assert_eq!(reads(&mut world), (20, 0));
    world.settle_and_close().expect("a close");
    world.open().expect("a world again");
    assert_eq!(reads(&mut world), (20, 0));
    // Nothing is known of pages after a crash, and nothing need be.
    world.open = None;
    world.device.crash_now();
    let mut after = world.after(world.device.reopened(CrashChoice::DropAll), 1);
    after.open().expect("a world after a crash");
    assert_eq!(reads(&mut after), (20, 0));
}

#[test]
fn small_rows_and_parts_are_found_beside_large_ones() {
    for part in [false, true] {
        let mut world = large(2);
        match part {
            true => world.add(0, &key(4), b"part", Memory).expect("an addition"),
            false => world.put(0, &key(5), b"small", Memory).expect("a put"),
        }
        let (_, absent) = reads(&mut world);
        assert_eq!(absent, 0, "nothing small is in a page so far");
        world.settle().expect("merges");
        let (present, absent) = reads(&mut world);
        assert!(present > 30 && absent > 0, "{present} and {absent} reads");
        world.settle_and_close().expect("a close");
        world.open().expect("a world again");
        let (_, absent) = reads(&mut world);
        assert!(absent > 0, "the store has it that rows may be small");
    }
}

/// Tables of large rows get small ones and parts, and are merged in between.
fn mix(world: &mut World) -> Result<(), String> {
    for round in 0..3_u8 {
        for row in (0..ROWS).step_by(3) {
            let durability = if row % 9 == 0 { Synced } else { Memory };
            world.put(usize::from(round), &key(row), &[row + round; 600], durability)?;
        }
        world.settle()?;
        for row in (0..ROWS).step_by(7) {
            match row % 3 {
                0 => world.add(usize::from(round), &key(row), b"part", Memory)?,
                1 => world.put(usize::from(round), &key(row), b"small", Memory)?,
                _ => world.put_all(usize::from(round), &[(key(row).to_vec(), None)], Synced)?,
            }
            world.maintain(3)?;
        }
        world.check_gets(world.history.len())?;
        match round {
            1 => world.settle_and_close().and_then(|()| world.open())?,
            _ => world.settle()?,
        }
        world.check_gets(world.history.len())?;
    }
    world.drop_table(0)?;
    world.put(0, &key(1), &[9; 600], Synced)?;
    world.check_gets(world.history.len())?;
    world.maintain(20)?;
    world.check_gets(world.history.len())
}

#[test]
fn after_a_crash_gets_find_what_scans_find_among_large_rows() {
    for seed in seeds(1) {
        let mut whole = World::new(seed);
        let lived = whole.open().and_then(|()| mix(&mut whole));
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let calls = whole.device.calls();
        let only = number_of("ENTRESOL_PREFIX");
        let is_wanted = |at: &u64| only.map_or(at % 7 == seed, |one| one == *at);
        for prefix in (1..calls).filter(is_wanted) {
            crash(World::new(seed), prefix, mix);
        }
    }
}
