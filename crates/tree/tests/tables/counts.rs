//! Tables that keep counts say how many rows they have, exactly, in every state.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::sync::Arc;

use entresol_flash::{Budget, Durability, ErrorKind, Timestamp};
use entresol_sim::CrashChoice;
use entresol_tree::{
    Action, CountRange, Folded, MergeFunction, Order, Outcome, RankRange, RowAt, RowCounts,
    RowRange, TableOptions, Write, WriteBatch,
};
use entresol_workload::Random;

use crate::history::Rows;
use crate::open::{Open, Row};
use crate::world::{Form, NOW, World};
use crate::{BATCHES, crash_here_and_there, live, number_of, seeds};

pub(crate) const KEPT: TableOptions = TableOptions { counts: RowCounts::Kept };

/// Which rows are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between<'a> {
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
}

/// Which rows are read by their ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct From {
    pub rank: u64,
    pub limit: usize,
    pub order: Order,
}

impl Open {
    pub(crate) fn count(&mut self, table: usize, keys: Between<'_>) -> Result<u64, String> {
        let Open { session, tables, .. } = self;
        let mut found = Err("a count was not visited".to_string());
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            found = match outcome {
                Ok(Outcome::Count(rows)) => Ok(rows),
                Ok(other) => Err(format!("a count ended as {other:?}")),
                Err(error) => Err(error.to_string()),
            };
        };
        let Between { low, high } = keys;
        if let (true, Some(key)) = (low.is_empty(), high) {
            session.rank(1, NOW, RowAt { table: &tables[table], key }, &mut visit);
        } else {
            session.count(1, NOW, CountRange { table: &tables[table], low, high }, &mut visit);
        }
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).map_err(|error| error.to_string())?;
        }
        found
    }

    pub(crate) fn select(&mut self, table: usize, from: From) -> Result<Vec<Row>, String> {
        let Open { session, tables, .. } = self;
        let mut found = Err("a selection was not visited".to_string());
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            found = match outcome {
                Ok(Outcome::Rows(rows)) => {
                    Ok(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
                }
                Ok(other) => Err(format!("a selection ended as {other:?}")),
                Err(error) => Err(error.to_string()),
            };
        };
        let From { rank, limit, order } = from;
        let range = RankRange { table: &tables[table], rank, limit, order };
        session.select(1, NOW, range, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).map_err(|error| error.to_string())?;
        }
        found
    }
}

/// Compares counts, ranks and rows by their ranks with a model.
pub(crate) fn check_counts(
    open: &mut Open,
    model: &[Rows; 3],
    random: &mut Random,
) -> Result<(), String> {
    for (table, rows) in model.iter().enumerate() {
        let keys: Vec<&Vec<u8>> = rows.keys().collect();
        for turn in 0..5 {
            let mut key = || match (random.below(3), random.below(keys.len().max(1) as u64)) {
                (0, _) | (1, 0) => vec![random.below(256) as u8],
                (1, at) => keys[at as usize - 1].clone(),
                (_, at) => keys.get(at as usize).map_or(vec![7], |key| [&key[..], &[0]].concat()),
            };
            let (low, high) = match turn {
                0 => (Vec::new(), None),
                1 => (key(), None),
                2 => (Vec::new(), Some(key())),
                _ => (key(), Some(key())),
            };
            let found = open.count(table, Between { low: &low, high: high.as_deref() })?;
            let within = |key: &&Vec<u8>| **key >= low && high.as_ref().is_none_or(|h| **key < *h);
            let expected = rows.keys().filter(within).count() as u64;
            if found != expected {
                return Err(format!(
                    "count of {table} from {low:?} to {high:?}: {found}, expected {expected}"
                ));
            }
        }
        let rank = random.below(rows.len() as u64 + 3);
        let order = if random.below(2) == 0 { Order::Ascending } else { Order::Descending };
        let limit = random.below(4) as usize;
        let found = open.select(table, From { rank, limit, order })?;
        let all: Vec<Row> = rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let at = rank as usize;
        let expected: Vec<Row> = match order {
            Order::Ascending => all.iter().skip(at).take(limit).cloned().collect(),
            Order::Descending if at >= all.len() => Vec::new(),
            Order::Descending => all[..=at].iter().rev().take(limit).cloned().collect(),
        };
        if found != expected {
            let keys = |rows: &[Row]| rows.iter().map(|row| row.0.clone()).collect::<Vec<_>>();
            let (found, expected) = (keys(&found), keys(&expected));
            return Err(format!(
                "{from:?} of {table}: {found:?}, expected {expected:?}",
                from = From { rank, limit, order }
            ));
        }
    }
    Ok(())
}

fn counted(world: World) -> World {
    World { keeps_counts: true, ..world }
}

#[test]
fn counts_and_ranks_are_those_of_a_map() {
    for seed in seeds(8) {
        let late = seed.is_multiple_of(3);
        let mut world = counted(if late { World::late(seed) } else { World::new(seed) });
        let lived = world.open().and_then(|()| live(&mut world, 2 * BATCHES)).and_then(|()| {
            world.durable = world.history.len();
            world.check_prefix().map(drop)
        });
        lived.and_then(|()| world.settle_and_close()).unwrap_or_else(|why| {
            panic!("ENTRESOL_SEED={seed}: {why}");
        });
        assert!(late || world.leaf_writes > 20, "{} leaves of seed {seed}", world.leaf_writes);
    }
}

#[test]
fn after_a_crash_counts_and_ranks_are_those_of_the_rows() {
    for seed in seeds(2) {
        crash_here_and_there(16, || counted(World::new(seed)));
    }
    if number_of("ENTRESOL_SEED").is_none() {
        crash_here_and_there(6, || counted(World { form: Form::Sealed, ..World::new(3) }));
    }
}

/// Parts fold into no row where one of them is this.
const END: &[u8] = b"end";

struct Ends;

impl MergeFunction for Ends {
    fn fold(&self, _: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        out.extend_from_slice(base.unwrap_or_default());
        for part in parts {
            if *part == END {
                return Folded::Gone;
            }
            out.extend_from_slice(part);
        }
        if base.is_none() && out.is_empty() { Folded::Base } else { Folded::Row }
    }
}

fn write(open: &mut Open, rows: &[(Vec<u8>, Action<'_>)]) {
    let Open { session, tables, tree, .. } = open;
    loop {
        let writes: Vec<Write<'_>> = rows
            .iter()
            .map(|(key, action)| Write { table: &tables[0], key, action: *action })
            .collect();
        let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
        let mut ended = None;
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            ended = Some(outcome.map(drop));
        };
        session.write(1, NOW, batch, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).unwrap();
        }
        match ended.unwrap() {
            Ok(()) => return,
            Err(error) => assert!(matches!(error.kind(), ErrorKind::Busy | ErrorKind::Full)),
        }
        tree.maintain(NOW, Budget { segments: 2 }).unwrap();
    }
}

fn scanned(open: &mut Open) -> u64 {
    let Open { session, tables, .. } = open;
    let mut rows = 0;
    let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
        let Outcome::Rows(found) = outcome.unwrap() else { panic!("rows") };
        rows = found.len() as u64;
    };
    let range = RowRange {
        table: &tables[0],
        low: &[],
        high: None,
        limit: usize::MAX,
        order: Order::Ascending,
    };
    session.scan(1, NOW, range, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).unwrap();
    }
    rows
}

const ALL: Between<'static> = Between { low: &[], high: None };

#[test]
fn a_row_whose_parts_fold_into_none_does_not_count() {
    let mut world = counted(World::new(5));
    world.open().unwrap();
    let mut random = Random::new(5);
    for turn in 0..60 {
        let open = world.open.as_mut().unwrap();
        open.tree.set_merge(b"first", Arc::new(Ends));
        let rows: Vec<_> = (0..20)
            .map(|_| {
                let key = format!("row {:04}", random.below(600)).into_bytes();
                let action = match random.below(6) {
                    0 => Action::Add(END),
                    1 => Action::Add(b""),
                    2 => Action::Add(b"more"),
                    3 => Action::Remove,
                    _ => Action::Put(b"a value"),
                };
                (key, action)
            })
            .collect();
        write(open, &rows);
        if random.below(3) == 0 {
            open.tree.maintain(NOW, Budget { segments: 2 }).unwrap();
        }
        let expected = scanned(open);
        assert_eq!(open.count(0, ALL), Ok(expected), "turn {turn}");
        if turn % 20 == 19 {
            world.settle_and_close().unwrap();
            world.open().unwrap();
            world.open.as_mut().unwrap().tree.set_merge(b"first", Arc::new(Ends));
            assert_eq!(world.open.as_mut().unwrap().count(0, ALL), Ok(expected), "after {turn}");
        }
    }
}

/// Puts so many rows, and merges them.
fn filled(rows: u32) -> World {
    let mut world = counted(World::new(4));
    world.options.waiting_bytes_max = 64 << 10;
    world.options.leaf_bytes_max = 256;
    world.open().unwrap();
    let open = world.open.as_mut().unwrap();
    for row in 0..rows {
        write(open, &[(format!("row {row:06}").into_bytes(), Action::Put(b"some value"))]);
    }
    world
}

#[test]
fn a_rank_among_many_leaves_reads_those_at_the_ends() {
    const ROWS: u32 = 9_000;
    let mut world = filled(ROWS);
    world.settle_and_close().unwrap();
    assert!(world.leaf_writes > 900, "{} leaves", world.leaf_writes);
    world.open().unwrap();
    let open = world.open.as_mut().unwrap();
    let reads = |open: &Open| open.tree.statistics().get_reads;
    // Nobody has read anything: inner nodes say all. The journal still has the last changes, so
    // the node of their leaf is looked at.
    let before = reads(open);
    assert_eq!(open.count(0, ALL), Ok(ROWS.into()));
    assert!(reads(open) - before <= 1, "the root says how many rows there are");
    for row in [5, 1_000, 4_567, 8_999] {
        let key = format!("row {row:06}").into_bytes();
        let before = reads(open);
        assert_eq!(open.count(0, Between { low: &[], high: Some(&key) }), Ok(row));
        let nodes_and_leaf = reads(open) - before;
        assert!(nodes_and_leaf <= 3, "{nodes_and_leaf} reads of the rank of row {row}");
        let before = reads(open);
        let (limit, order) = (1, Order::Ascending);
        let rows = open.select(0, From { rank: row, limit, order }).unwrap();
        assert_eq!(rows[0].0, key);
        assert!(reads(open) - before <= 4, "the leaf for its key, and for its row");
    }
    // A change that waits is counted once.
    write(
        open,
        &[(b"row 000500a".to_vec(), Action::Put(b"new")), (b"row 005000".to_vec(), Action::Remove)],
    );
    let before = reads(open);
    assert_eq!(open.count(0, ALL), Ok(ROWS.into()));
    assert!(reads(open) - before <= 4, "two leaves and their nodes");
    let before = reads(open);
    assert_eq!(open.count(0, Between { low: b"row 000400", high: Some(b"row 008000") }), Ok(7_600));
    assert!(reads(open) - before <= 4, "two leaves and their nodes");
    let before = reads(open);
    assert_eq!(open.count(0, ALL), Ok(ROWS.into()));
    assert_eq!(reads(open) - before, 0, "nothing changed since");
}

#[test]
fn a_table_is_opened_as_it_was_made() {
    let mut world = World::new(9);
    world.open().unwrap();
    let Open { session, tables, .. } = world.open.as_mut().unwrap();
    let refusal = |result: entresol_flash::Result<Arc<entresol_tree::Table>>| {
        let error = result.expect_err("a table of another kind");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    // Nothing was written so far: each says what it wants.
    let counted = session.table_with(NOW, b"counted", KEPT).unwrap();
    assert!(counted.keeps_counts());
    drop(counted);
    let none = TableOptions::default();
    let mut count_of_plain = None;
    session.count(1, NOW, CountRange { table: &tables[0], low: &[], high: None }, &mut |_, o| {
        count_of_plain = Some(o.map(drop).unwrap_err().to_string());
    });
    let expected = "ordered table `first` keeps no counts; expected one that keeps them";
    assert!(count_of_plain.unwrap().contains(expected));
    let why = refusal(session.table_with(NOW, b"counted", none));
    assert!(why.contains("`counted` keeps counts; expected one that keeps none"), "{why}");
    tables[0] = session.table_with(NOW, b"counted", KEPT).unwrap();
    write(world.open.as_mut().unwrap(), &[(b"row".to_vec(), Action::Put(b"value"))]);
    world.put(1, b"row", b"value", Durability::Synced).unwrap();
    for settles in [false, true, true] {
        // By the journal alone, then by the first record.
        if settles {
            world.settle_and_close().unwrap();
        } else {
            world.close().unwrap();
        }
        world.open().unwrap();
        let Open { session, tables, .. } = world.open.as_mut().unwrap();
        let why = refusal(session.table_with(NOW, b"counted", none));
        assert!(why.contains("`counted` keeps counts; expected one that keeps none"), "{why}");
        let why = refusal(session.table_with(NOW, b"second", KEPT));
        assert!(why.contains("`second` keeps no counts; expected one that keeps them"), "{why}");
        tables[0] = session.table(NOW, b"counted").unwrap();
        assert_eq!(world.open.as_mut().unwrap().count(0, ALL), Ok(1));
    }
    let Open { session, tables, .. } = world.open.as_mut().unwrap();
    let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
        outcome.map(drop).unwrap();
    };
    session.drop_table(1, NOW, &tables[0], &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).unwrap();
    }
    assert_eq!(world.open.as_mut().unwrap().count(0, ALL), Ok(0));
    let Open { tree, tiered, .. } = world.open.as_mut().unwrap();
    for _ in 0..20 {
        tree.maintain(Timestamp(2_000), Budget { segments: 2 }).unwrap();
        tiered.sync().unwrap();
    }
    world.settle_and_close().unwrap();
    world.open().unwrap();
    let Open { session, .. } = world.open.as_mut().unwrap();
    assert!(session.table(NOW, b"counted").unwrap().keeps_counts(), "a dropped table stays so");
}

/// A write comes while the leaf of its key is read for a count.
#[test]
fn a_count_that_a_write_overtakes_is_not_kept() {
    let mut overtaken = 0;
    for seed in seeds(6) {
        let mut world = counted(World::late(seed));
        world.cache_bytes = Some(0);
        world.open().unwrap();
        let key = |row: u32| format!("row {row:04}").into_bytes();
        for row in 0..400 {
            write(world.open.as_mut().unwrap(), &[(key(2 * row), Action::Put(b"some value"))]);
        }
        world.settle_and_close().unwrap();
        world.open().unwrap();
        let open = world.open.as_mut().unwrap();
        for row in (0..400).step_by(20) {
            write(open, &[(key(2 * row), Action::Remove)]);
            let Open { session, tables, .. } = &mut *open;
            let mut ended = 0;
            let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                ended += 1;
                outcome.map(drop).unwrap();
            };
            let range = CountRange { table: &tables[0], low: &[], high: None };
            session.count(1, NOW, range, &mut visit);
            overtaken += session.in_flight();
            let (table, key) = (&tables[0], key(2 * row + 1));
            let writes = [Write { table, key: &key, action: Action::Put(b"one more") }];
            let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
            session.write(2, NOW, batch, &mut visit);
            while session.in_flight() > 0 {
                session.poll(1, NOW, &mut visit).unwrap();
            }
            assert_eq!(ended, 2);
            assert_eq!(open.count(0, ALL), Ok(400), "ENTRESOL_SEED={seed}: row {row}");
        }
    }
    assert!(overtaken > 10, "{overtaken} counts waited for a read");
}

/// Its inner node was written before a few rows came, and the journal has let go of these.
#[test]
fn after_a_crash_rows_that_inner_nodes_do_not_know_count() {
    for seed in seeds(3) {
        let mut world = counted(World::new(seed));
        world.open().unwrap();
        for row in 0..300 {
            let key = format!("row {row:04}").into_bytes();
            world.put(0, &key, b"some value", Durability::Memory).unwrap();
        }
        world.settle().unwrap();
        for row in 0..4 {
            let key = format!("row 0100 {row}").into_bytes();
            world.put(0, &key, b"new", Durability::Memory).unwrap();
        }
        let opened = |world: &World| world.open.as_ref().unwrap().tiered.store().journal_state(0);
        let first = opened(&world).unwrap().segments;
        for row in 0..6_000_u32 {
            let key = (row % 300).to_be_bytes();
            world.put(1, &key, &[7; 60], Durability::Memory).unwrap();
            world.maintain(1).unwrap();
        }
        assert!(first < 8 && opened(&world).unwrap().segments < 8, "the journal was cut");
        let Open { tiered, .. } = world.open.as_ref().unwrap();
        tiered.sync().unwrap();
        world.durable = world.history.len();
        world.open = None;
        world.device.crash_now();
        let device = world.device.reopened(CrashChoice::Random(seed));
        let mut after = world.after(device, seed);
        after.open().unwrap();
        assert_eq!(after.open.as_mut().unwrap().count(0, ALL), Ok(304), "ENTRESOL_SEED={seed}");
        after.check_prefix().unwrap();
    }
}
