//! Tables that are dropped, and their pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_flash::{Budget, Durability, ErrorKind, Result};
use entresol_tier::SessionOptions;
use entresol_tree::{Action, Order, Outcome, RowAt, RowRange, Session, Table, Write, WriteBatch};

use crate::history::{Change, Owned};
use crate::open::Open;
use crate::world::{NOW, World};
use crate::{crash, number_of, seeds};

/// Fills the tables, and drops all of them.
fn dropped() -> World {
    let mut world = World::new(7);
    world.open().expect("a world");
    for _ in 0..600 {
        world.write(Durability::Memory).expect("a write");
        world.maintain(2).expect("maintenance");
    }
    world.settle_and_close().expect("a world that closes");
    world.open().expect("a world");
    (0..3).for_each(|table| world.drop_table(table).expect("a drop"));
    world
}

fn cleared(world: &World) -> u64 {
    let Some(Open { tree, .. }) = &world.open else { unreachable!() };
    tree.statistics().pages_cleared
}

#[test]
fn pages_of_a_dropped_table_are_removed_by_maintenance() {
    let mut world = dropped();
    assert!(world.scan_all().expect("scans").iter().all(|rows| rows.is_empty()));
    world.maintain(40).expect("maintenance");
    assert!(cleared(&world) > 50, "{} pages", cleared(&world));
    world.settle_and_close().expect("a world that closes");
    world.open().expect("a world");
    world.check_prefix().expect("no rows");
    world.maintain(40).expect("maintenance");
    assert_eq!(cleared(&world), 0, "the journal has let go of the drops, or they say nothing");
}

#[test]
fn pages_of_a_dropped_table_are_removed_after_an_opening() {
    let mut world = dropped();
    world.settle_and_close().expect("a world that closes");
    world.open().expect("a world");
    world.maintain(40).expect("maintenance");
    assert!(cleared(&world) > 50, "{} pages", cleared(&world));
    world.write(Durability::Synced).expect("a write");
    world.check_prefix().expect("the new rows alone");
}

/// A sweep ended between a drop and the first step that cleared the table. The journal must not
/// let go of the drop then: the table's old first record is still there.
#[test]
fn a_drop_stays_in_the_journal_until_the_table_is_cleared() {
    let mut world = dropped();
    world.settle_and_close().expect("a world that closes");
    // Its values stand in the journal.
    world.options.separate_bytes_min = usize::MAX;
    world.open().expect("a world");
    let Some(Open { session, tables, tree, .. }) = &mut world.open else { unreachable!() };
    let value = [b'v'; 4000];
    // Several segments of the journal, all of a table that has rows again.
    for round in 0..35 {
        let writes = [Write { table: &tables[1], key: b"key", action: Action::Put(&value) }];
        let batch = WriteBatch { writes: &writes, durability: Some(Durability::Synced) };
        // A journal that keeps the drop is full after a while: maintenance would clear the table.
        let mut visit = |_: u64, outcome: Result<Outcome<'_>>| {
            let error = outcome.err().map(|error| error.kind());
            assert!(matches!(error, None | Some(ErrorKind::Full)), "{error:?}");
        };
        session.write(1, NOW, batch, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("a poll");
        }
        if round % 10 == 9 {
            tree.settle(NOW).expect("all that waits in pages");
        }
    }
    world.settle_and_close().expect("a world that closes");
    world.open().expect("a world");
    let found = world.scan_all().expect("scans");
    assert_eq!(found.each_ref().map(|rows| rows.len()), [0, 1, 0]);
}

/// Drops tables that have pages, fills them again, and drops them once more.
fn drop_and_fill(world: &mut World) -> std::result::Result<(), String> {
    for _ in 0..250 {
        world.write(Durability::Memory)?;
    }
    world.settle()?;
    for round in 0..4 {
        world.drop_table(round % 3)?;
        if round == 2 {
            world.settle()?;
        }
        for _ in 0..12 {
            world.write(Durability::Memory)?;
            world.maintain(2)?;
        }
    }
    world.settle_and_close()?;
    world.open()?;
    world.drop_table(0)?;
    world.maintain(10)
}

#[test]
fn a_dropped_table_has_none_of_its_old_rows_after_any_crash() {
    for seed in seeds(4) {
        let mut whole = World::new(seed);
        whole.open().unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let first = whole.device.calls();
        let lived = drop_and_fill(&mut whole);
        lived.unwrap_or_else(|why| panic!("ENTRESOL_SEED={seed}: {why}"));
        let pages = whole.pages_cleared + cleared(&whole);
        let calls = first..whole.device.calls();
        println!("{calls:?} calls, {pages} pages");
        assert!(pages > 5, "{pages} pages of dropped tables are removed");
        let only = number_of("ENTRESOL_PREFIX");
        for prefix in calls.filter(|at| only.is_none_or(|one| one == *at)) {
            crash(World::new(seed), prefix, drop_and_fill);
        }
    }
}

/// Waits for what a session has in flight; the error's kind, where it ended as one.
fn ended(session: &mut Session, begun: Option<Ended>) -> Ended {
    let mut ended = begun;
    while session.in_flight() > 0 {
        let mut visit = |_, outcome: Result<Outcome<'_>>| ended = Some(end_of(outcome));
        session.poll(1, NOW, &mut visit).expect("a poll");
    }
    ended.expect("an operation that ends")
}

/// The values that an operation found, or the kind of its error.
type Ended = std::result::Result<Vec<Vec<u8>>, ErrorKind>;

fn end_of(outcome: Result<Outcome<'_>>) -> Ended {
    match outcome {
        Ok(Outcome::Found(value)) => Ok(vec![value.to_vec()]),
        Ok(Outcome::Rows(rows)) => Ok(rows.iter().map(|(_, value)| value.to_vec()).collect()),
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(error.kind()),
    }
}

/// Fills the table with rows of a life, drops it, and goes on with the next life.
fn live_and_drop(session: &mut Session, table: &Arc<Table>, dropped: &AtomicU64) {
    for life in 1..=LIVES {
        for number in 0..150_u32 {
            let (key, value) = (number.to_be_bytes(), [&life.to_le_bytes()[..], &[0; 40]].concat());
            let writes = [Write { table, key: &key, action: Action::Put(&value) }];
            let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
            loop {
                let mut begun = None;
                session.write(1, NOW, batch, &mut |_, outcome| begun = Some(end_of(outcome)));
                match ended(session, begun) {
                    Ok(_) => break,
                    Err(ErrorKind::Busy | ErrorKind::Full) => std::thread::yield_now(),
                    Err(kind) => panic!("{kind:?}"),
                }
            }
        }
        let mut begun = None;
        session.drop_table(1, NOW, table, &mut |_, outcome| begun = Some(end_of(outcome)));
        assert_eq!(ended(session, begun), Ok(Vec::new()));
        dropped.store(life, Ordering::Release);
    }
}

/// Reads until all lives are over.
fn look(session: &mut Session, table: &Arc<Table>, dropped: &AtomicU64) {
    for turn in 0_u32.. {
        let before = dropped.load(Ordering::Acquire);
        let key = (turn * 7 % 150).to_be_bytes();
        let mut begun = None;
        let mut visit = |_, outcome: Result<Outcome<'_>>| begun = Some(end_of(outcome));
        if turn % 2 == 0 {
            session.get(1, NOW, RowAt { table, key: &key }, &mut visit);
        } else {
            let order = if turn % 4 == 1 { Order::Ascending } else { Order::Descending };
            let range = RowRange { table, low: &key, high: None, limit: 30, order };
            session.scan(1, NOW, range, &mut visit);
        }
        for value in ended(session, begun).expect("rows") {
            let life = u64::from_le_bytes(value[..8].try_into().expect("eight bytes"));
            assert!(life > before, "a row of life {life} after the drop of life {before}");
        }
        if before == LIVES {
            return;
        }
    }
}

const LIVES: u64 = 12;

#[test]
fn readers_beside_drops_see_no_row_of_a_table_that_was_dropped_before() {
    let mut world = World::new(1);
    world.open().expect("a world");
    let Some(Open { tree, tables, .. }) = &world.open else { unreachable!() };
    let (table, dropped) = (&tables[0], &AtomicU64::new(0));
    let session = || tree.session(SessionOptions::default()).expect("a session");
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| live_and_drop(&mut session(), table, dropped)),
            scope.spawn(|| look(&mut session(), table, dropped)),
            scope.spawn(|| look(&mut session(), table, dropped)),
        ];
        for turn in 0_u32.. {
            if threads.iter().all(|thread| thread.is_finished()) {
                break;
            }
            tree.maintain(NOW, Budget { segments: 2 }).expect("maintenance");
            if turn % 8 == 0 {
                tree.settle(NOW).expect("all that waits in pages");
            }
        }
    });
    assert!(world.scan_all().expect("scans")[0].is_empty());
}

/// Writes rows of a table until the store takes no more, however often it is maintained.
fn fill(world: &mut World, table: usize, durability: Durability) -> ErrorKind {
    let mut refused = None;
    let mut tries = 0;
    for number in 0_u64.. {
        let row = Change {
            table,
            key: number.to_be_bytes().to_vec(),
            action: Owned::Put(vec![b'v'; 90]),
        };
        loop {
            match world.opened().try_write(std::slice::from_ref(&row), &[], durability) {
                Ok(_) => {
                    world.history.push(vec![row]);
                    break;
                }
                Err((kind @ (ErrorKind::Busy | ErrorKind::Full), _)) if tries < 200 => {
                    (refused, tries) = (Some(kind), tries + 1);
                    // It says why it cannot go on.
                    let _ended = world.maintain(1);
                }
                Err((kind, why)) => {
                    assert_eq!(Some(kind), refused, "{why}");
                    return kind;
                }
            }
        }
        if number.is_multiple_of(64) {
            tries = 0;
        }
    }
    unreachable!()
}

#[test]
fn a_table_that_fills_the_store_can_be_dropped_and_written_again() {
    let mut world = World::new(3);
    world.open().expect("a world");
    let kind = fill(&mut world, 0, Durability::Synced);
    assert_eq!(kind, ErrorKind::Full, "the journal is full as well");
    let rows = world.history.len();
    world.history.push(vec![Change { table: 0, key: Vec::new(), action: Owned::Drop }]);
    let Open { session, tables, .. } = world.opened();
    let mut visit = |_: u64, outcome: Result<Outcome<'_>>| {
        outcome.map(drop).expect("a drop, however full the store is");
    };
    session.drop_table(1, NOW, &tables[0], &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).expect("a poll");
    }
    for _ in 0..200 {
        let _ended = world.maintain(1);
    }
    fill(&mut world, 1, Durability::Synced);
    let again = world.history.len() - rows;
    assert!(again * 4 > rows * 3, "{rows} rows, then {again}");
}
