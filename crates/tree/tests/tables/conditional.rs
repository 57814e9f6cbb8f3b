//! Conditional writes beside changes that come while they read.

use std::sync::Arc;

use entresol_flash::{Budget, Durability, ErrorKind, Result};
use entresol_tier::SessionOptions;
use entresol_tree::{
    Action, ConditionalBatch, Expected, Outcome, RowAt, RowCondition, Session, Table, Write,
    WriteBatch,
};

use crate::open::Open;
use crate::world::{NOW, World};

const KEY: &[u8] = b"the key";

/// How a conditional write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    Done,
    Refused(Option<Vec<u8>>),
    Failed(ErrorKind),
}

fn ended(outcome: Result<Outcome<'_>>) -> Ended {
    match outcome {
        Ok(Outcome::Done(_)) => Ended::Done,
        Ok(Outcome::Refused { found, .. }) => Ended::Refused(found.map(<[u8]>::to_vec)),
        Ok(other) => panic!("a conditional write ended as {other:?}"),
        Err(error) => Ended::Failed(error.kind()),
    }
}

fn run(session: &mut Session, table: &Arc<Table>, action: Action<'_>) {
    run_at(session, table, KEY, action);
}

fn run_at(session: &mut Session, table: &Arc<Table>, key: &[u8], action: Action<'_>) {
    let writes = [Write { table, key, action }];
    let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
    session.write(9, NOW, batch, &mut |_, outcome| assert!(outcome.is_ok(), "{outcome:?}"));
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut |_, outcome| assert!(outcome.is_ok())).expect("a poll");
    }
}

/// Puts `value` if the row is as expected. How it ended, if it did at once.
fn begin(
    session: &mut Session,
    table: &Arc<Table>,
    expected: Expected<'_>,
    value: &[u8],
) -> Option<Ended> {
    let writes = [Write { table, key: KEY, action: Action::Put(value) }];
    let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
    let conditions = [RowCondition { table, key: KEY, expected }];
    let conditional = ConditionalBatch { conditions: &conditions, batch };
    let mut answer = None;
    session.write_if(1, NOW, conditional, &mut |_, outcome| answer = Some(ended(outcome)));
    answer
}

fn finish(session: &mut Session) -> Ended {
    let mut answer = None;
    while session.in_flight() > 0 {
        let polled = session.poll(1, NOW, &mut |_, outcome| answer = Some(ended(outcome)));
        polled.expect("a poll");
    }
    answer.expect("a conditional write that ends")
}

/// A world whose row is in a page that is not in memory.
fn settled(value: &[u8]) -> World {
    let mut world = World::new(1);
    world.open().expect("a world");
    let Some(Open { session, tables, .. }) = &mut world.open else { unreachable!() };
    run(session, &tables[0], Action::Put(value));
    // Page 1 is read when the table is opened: the row must be in another one.
    for number in 0..50_u32 {
        run_at(session, &tables[0], &number.to_be_bytes(), Action::Put(&[b'v'; 50]));
    }
    world.settle_and_close().expect("a world that closes");
    // Each look at the row goes to the device.
    world.cache_bytes = Some(0);
    world.open().expect("a world");
    world
}

/// Begins to put `new` over `old`, makes a change meanwhile, and looks how it ends.
fn beside(change: Action<'_>, merged: bool) -> Ended {
    let mut world = settled(b"old");
    let Some(Open { session, tables, tree, .. }) = &mut world.open else { unreachable!() };
    let table = &tables[0];
    let early = begin(session, table, Expected::Value(b"old"), b"new");
    assert_eq!(early, None, "the row is read from the device");
    let mut other = tree.session(SessionOptions::default()).expect("a session");
    run(&mut other, table, change);
    if merged {
        tree.settle(NOW).expect("all that waits in pages");
    }
    let ended = finish(session);
    let mut row = Vec::new();
    let mut visit = |_, outcome: Result<Outcome<'_>>| {
        if let Ok(Outcome::Found(value)) = outcome {
            row = value.to_vec();
        }
    };
    session.get(1, NOW, RowAt { table, key: KEY }, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).expect("a poll");
    }
    assert_eq!(row == b"new", ended == Ended::Done, "{row:?} after {ended:?}");
    ended
}

#[test]
fn a_conditional_write_sees_changes_that_come_while_it_reads() {
    for merged in [false, true] {
        let found = |value: &[u8]| Ended::Refused(Some(value.to_vec()));
        assert_eq!(beside(Action::Put(b"other"), merged), found(b"other"));
        assert_eq!(beside(Action::Add(b"er"), merged), found(b"older"));
        assert_eq!(beside(Action::Remove, merged), Ended::Refused(None));
        assert_eq!(beside(Action::Put(b"old"), merged), Ended::Done);
    }
}

/// Parts in memory do not say all of a row: its page is read again after each one.
#[test]
fn a_conditional_write_ends_however_often_its_row_changes() {
    let mut world = settled(b"old");
    let Some(Open { session, tables, tree, .. }) = &mut world.open else { unreachable!() };
    let mut other = tree.session(SessionOptions::default()).expect("a session");
    let mut answer = begin(session, &tables[0], Expected::Present, b"new");
    let mut polls = 0;
    while session.in_flight() > 0 {
        run(&mut other, &tables[0], Action::Add(b"x"));
        let polled = session.poll(0, NOW, &mut |_, outcome| answer = Some(ended(outcome)));
        polled.expect("a poll");
        polls += 1;
        assert!(polls < 1000, "it ends");
    }
    assert_eq!(answer, Some(Ended::Failed(ErrorKind::Busy)));
    assert!(world.get(0, KEY).expect("a get").expect("a row").starts_with(b"oldxx"));
}

/// Adds one to the number in the row, which others do at the same time.
fn step(session: &mut Session, table: &Arc<Table>) {
    loop {
        let mut row: Option<Vec<u8>> = None;
        let mut visit = |_, outcome: Result<Outcome<'_>>| match outcome {
            Ok(Outcome::Found(value)) => row = Some(value.to_vec()),
            other => assert!(matches!(other, Ok(Outcome::Missing)), "{other:?}"),
        };
        session.get(1, NOW, RowAt { table, key: KEY }, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("a poll");
        }
        let number = row.as_deref().map_or(0, number);
        let expected = row.as_deref().map_or(Expected::Absent, Expected::Value);
        let next = (number + 1).to_le_bytes();
        let ended = begin(session, table, expected, &next).unwrap_or_else(|| finish(session));
        match ended {
            Ended::Done => return,
            Ended::Refused(_) | Ended::Failed(ErrorKind::Busy | ErrorKind::Full) => {}
            Ended::Failed(kind) => panic!("{kind:?}"),
        }
    }
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("a number"))
}

#[test]
fn conditional_writes_of_several_threads_lose_no_step() {
    const THREADS: u64 = 3;
    const STEPS: u64 = 400;
    let mut world = World::new(1);
    world.open().expect("a world");
    let Some(Open { tree, tables, .. }) = &world.open else { unreachable!() };
    let table = &tables[0];
    std::thread::scope(|scope| {
        let work = || {
            let mut session = tree.session(SessionOptions::default()).expect("a session");
            (0..STEPS).for_each(|_| step(&mut session, table));
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        // The row goes to its page again and again, so that it is read from there, too.
        while threads.iter().any(|thread| !thread.is_finished()) {
            tree.settle(NOW).expect("all that waits in pages");
            tree.maintain(NOW, Budget { segments: 2 }).expect("maintenance");
        }
    });
    let row = world.get(0, KEY).expect("a get").expect("a row");
    assert_eq!(number(&row), THREADS * STEPS);
}
