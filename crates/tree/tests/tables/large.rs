//! Rows of 1.7 KB, whose values are records of their own: what puts and gets cost, and how values
//! that waited in the journal become such records.

use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::Durability::{Memory, Synced};
use entresol_flash::{Budget, ErrorKind, StoreOptions};
use entresol_sim::{SimDevice, SimOptions};
use entresol_tier::{Admission, SessionOptions, Statistics, Tiered, TieredOptions};
use entresol_tree::{Action, Outcome, RowAt, Session, Table, Tree, TreeOptions, TreeStatistics};
use entresol_tree::{Write, WriteBatch};
use entresol_workload::Random;

use crate::world::{NOW, World};
use crate::{crash, number_of, seeds};

const ROWS: u64 = 16_000;
const VALUE_BYTES: usize = 1700;
const CAPACITY: u64 = 58 << 20;

/// A table of large rows in a store of which live records take a little more than half.
struct Large {
    tiered: Arc<Tiered>,
    tree: Tree,
    session: Session,
    table: Arc<Table>,
    value: Vec<u8>,
    puts: u64,
}

/// What was counted so far.
struct Counted {
    store: Statistics,
    tables: TreeStatistics,
}

impl Large {
    fn new() -> Large {
        Large::of(VALUE_BYTES)
    }

    fn of(value_bytes: usize) -> Large {
        let store = StoreOptions {
            durability: Memory,
            shards: 1,
            segment_bytes: 128 << 10,
            journal_bytes: 2 << 20,
            ..StoreOptions::default()
        };
        let (memory_bytes, admission) = (16 << 20, Admission::Always);
        let options = TieredOptions { store, memory_bytes, cache_bytes: Some(0), admission };
        let device: Arc<dyn Device> = Arc::new(SimDevice::new(SimOptions::new(1, CAPACITY)));
        let tiered = Tiered::open(device, options, NOW).expect("a store");
        let options = TreeOptions { waiting_bytes_max: 192 << 10, ..TreeOptions::default() };
        let tree = Tree::open(Arc::clone(&tiered), options, NOW).expect("tables");
        let mut session = tree.session(SessionOptions::default()).expect("a session");
        let table = session.table(NOW, b"large").expect("a table");
        Large { tiered, tree, session, table, value: vec![7; value_bytes], puts: 0 }
    }

    /// Puts a row, and maintains as a thread beside would.
    fn put(&mut self, number: u64) {
        let key = key(number);
        self.value[..8].copy_from_slice(&self.puts.to_le_bytes());
        loop {
            let Large { session, table, value, .. } = self;
            let writes = [Write { table, key: &key, action: Action::Put(value) }];
            let batch = WriteBatch { writes: &writes, durability: Some(Memory) };
            let mut refused = None;
            let mut visit = |_, outcome: entresol_flash::Result<Outcome<'_>>| {
                refused = outcome.err();
            };
            session.write(1, NOW, batch, &mut visit);
            while session.in_flight() > 0 {
                session.poll(1, NOW, &mut visit).expect("a poll");
            }
            match refused {
                None => break,
                Some(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Busy) => {
                    self.maintain();
                }
                Some(error) => panic!("a put: {error}"),
            }
        }
        self.puts += 1;
        if self.puts.is_multiple_of(256) {
            self.maintain();
        }
    }

    fn maintain(&self) {
        self.tree.maintain(NOW, Budget { segments: 1 }).expect("maintenance");
    }

    fn get(&mut self, number: u64) -> bool {
        let (key, mut found) = (key(number), false);
        let Large { session, table, .. } = self;
        let mut visit = |_, outcome: entresol_flash::Result<Outcome<'_>>| {
            found = matches!(outcome.expect("a get"), Outcome::Found(_));
        };
        session.get(1, NOW, RowAt { table, key: &key }, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("a poll");
        }
        found
    }

    fn counted(&self) -> Counted {
        Counted { store: self.tiered.statistics(), tables: self.tree.statistics() }
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Random::new(number).next().to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

#[test]
fn rows_of_1700_bytes_cost_what_they_may() {
    let mut large = Large::new();
    let mut random = Random::new(3);
    (0..ROWS).for_each(|number| large.put(number));
    // The store comes to its steady state first.
    for counts in [false, true] {
        let before = large.counted();
        for _ in 0..ROWS {
            let number = random.below(ROWS);
            large.put(number);
            // Some rows are written twice between two syncs, or more often.
            for _ in 0..2 * u64::from(random.below(40) == 0) {
                large.put(number);
            }
        }
        large.tree.settle(NOW).expect("merges");
        if !counts {
            continue;
        }
        let after = large.counted();
        let moved = after.tables.values_moved - before.tables.values_moved;
        assert!(moved > 50, "{moved} values stood in the journal");
        let put = after.tables.change_bytes - before.tables.change_bytes;
        let written = after.store.device_written_bytes - before.store.device_written_bytes;
        let amplification = written as f64 / put as f64;
        assert!(amplification <= 2.0, "{amplification} bytes were written for each byte put");
        let reads = after.tables.merge_reads - before.tables.merge_reads;
        let puts = after.tables.changes - before.tables.changes;
        let reads = reads as f64 / puts as f64;
        assert!(reads <= 0.05, "{reads} pages were read in merges for each put");
    }
    let before = large.counted();
    let gets = 1000;
    for number in 0..gets {
        assert!(large.get(number * (ROWS / gets)), "row {number} is there");
    }
    let present = large.counted();
    for number in 0..gets {
        assert!(!large.get(ROWS + number), "row {number} was never put");
    }
    let absent = large.counted();
    let asked = |a: &Counted, b: &Counted| b.tables.get_reads - a.tables.get_reads;
    let read = |a: &Counted, b: &Counted| b.store.device_reads - a.store.device_reads;
    assert_eq!((asked(&before, &present), asked(&present, &absent)), (gets, 0));
    assert!(read(&before, &present) <= gets, "{} reads", read(&before, &present));
    assert_eq!(read(&present, &absent), 0);
}

/// Delta pages of leaves that are written anew were read once more when they were removed.
#[test]
fn pages_that_merges_have_read_go_without_another_read() {
    let mut small = Large::of(100);
    let (mut random, rows) = (Random::new(3), 20_000);
    (0..rows).for_each(|number| small.put(number));
    small.tree.settle(NOW).expect("merges");
    let before = small.counted();
    (0..rows).for_each(|_| small.put(random.below(rows)));
    small.tree.settle(NOW).expect("merges");
    let after = small.counted();
    let deltas = after.tables.delta_writes - before.tables.delta_writes;
    let leaves = after.tables.leaf_writes - before.tables.leaf_writes;
    assert!(deltas > 1000 && leaves > 500, "{deltas} delta pages, {leaves} leaves");
    let asked = after.tables.merge_reads - before.tables.merge_reads;
    let read = after.store.device_reads - before.store.device_reads;
    assert!(read <= asked, "{read} reads of the device for {asked} pages that merges asked for");
}

fn row(number: u8) -> [u8; 2] {
    [b'r', number]
}

/// Writes rows again and again between two syncs, while merges go on.
fn write_twice(world: &mut World) -> Result<(), String> {
    for round in 0..2_u8 {
        for number in 0..10 {
            world.put(0, &row(number), &[10 * round; 400], Memory)?;
        }
        world.put(0, b"last", &[round; 300], Synced)?;
        for number in 0..10 {
            for again in 1..4 - number % 2 {
                world.put(0, &row(number), &[10 * round + again; 500], Memory)?;
            }
            world.maintain(1)?;
            // While what was written is made durable.
            world.put(0, &row(number), &[10 * round + 8; 450], Memory)?;
        }
        world.maintain(20)?;
    }
    Ok(())
}

/// One whose device takes longer than whoever uses it, and whose merges come often.
fn late(seed: u64) -> World {
    let mut world = World::late_by(seed, 24);
    world.options.waiting_bytes_max = 2 << 10;
    world
}

#[test]
fn values_that_waited_in_the_journal_get_records_of_their_own() {
    for seed in seeds(4) {
        let mut world = late(seed);
        let lived = world.open().and_then(|()| write_twice(&mut world));
        let checked = lived.and_then(|()| world.settle()).and_then(|()| {
            world.check_gets(world.history.len())?;
            let before = world.opened().tree.statistics();
            for number in 0..10 {
                world.get(0, &row(number))?;
                world.get(0, &row(number + 100))?;
            }
            let after = world.opened().tree.statistics();
            let (reads, moved) = (after.get_reads - before.get_reads, after.values_moved);
            let is_so = reads == 10 && moved > 5;
            if is_so { Ok(()) } else { Err(format!("{reads} reads, {moved} values")) }
        });
        checked.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
    }
}

#[test]
fn rows_whose_values_get_records_of_their_own_outlive_any_crash() {
    for seed in seeds(1) {
        let mut whole = late(seed);
        whole.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let first = whole.device.calls();
        write_twice(&mut whole).unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let moved = whole.opened().tree.statistics().values_moved;
        assert!(moved > 5, "{moved} values of seed {seed}");
        let only = number_of("ENTRESOL_PREFIX");
        let calls = first..whole.device.calls();
        for prefix in calls.filter(|at| only.is_none_or(|one| one == *at)) {
            crash(late(seed), prefix, write_twice);
        }
    }
}

/// Adds parts to a large row and to a small one, more than a leaf holds, and goes on while merges
/// wait for the device.
fn add_large_parts(world: &mut World) -> Result<(), String> {
    world.put(0, b"large", &[1; 3000], Synced)?;
    world.settle()?;
    for round in 2..6 {
        for _ in 0..3 {
            world.add(0, b"large", &[round; 4000], Memory)?;
            world.maintain(1)?;
        }
        // On a value that is not durable, beside one that is.
        world.put(0, b"other", &[round; 2000], Memory)?;
        for _ in 0..4 {
            world.add(0, b"other", &[round; 5000], Memory)?;
        }
        world.add(0, b"small", &[round; 3000], Memory)?;
        world.maintain(2)?;
        world.add(0, b"large", &[round; 100], Memory)?;
        world.maintain(20)?;
    }
    world.settle()?;
    world.check_gets(world.history.len())
}

/// One that holds some of the parts in memory before merges begin.
fn late_with_room(seed: u64) -> World {
    let mut world = World::late_by(seed, 24);
    world.options.waiting_bytes_max = 24 << 10;
    world
}

#[test]
fn merges_fold_large_parts_into_large_values() {
    for seed in seeds(3) {
        let mut world = late_with_room(seed);
        let lived = world.open().and_then(|()| add_large_parts(&mut world));
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let Some(row) = world.get(0, b"large").expect("a get") else { panic!("the row is there") };
        assert_eq!(row.len(), 3000 + 4 * 12_100);
        let tree = &world.opened().tree;
        assert_eq!(tree.held_back(), None);
        assert!(tree.statistics().values_moved > 0, "{:?}", tree.statistics());
    }
}

#[test]
fn rows_with_large_parts_outlive_any_crash() {
    let mut whole = late_with_room(2);
    whole.open().expect("a world");
    let first = whole.device.calls();
    add_large_parts(&mut whole).expect("a life");
    for prefix in (first..whole.device.calls()).step_by(3) {
        if number_of("ENTRESOL_PREFIX").is_none_or(|one| one == prefix) {
            crash(late_with_room(2), prefix, add_large_parts);
        }
    }
}
