//! Ordered tables of a hosted store on a device in memory.

use entresol_device::{Device, MemoryDevice};
use entresol_tier::{Admission, Durability, Result, StoreOptions, TieredOptions};
use entresol_tree::{Action, Outcome, RowAt, Write, WriteBatch};

use super::*;
use crate::clock::ForeignClock;
use crate::hosted::HostedStore;

fn hosted(tiered: Arc<Tiered>) -> Arc<HostedStore<()>> {
    let tables = Tables::new(TreeOptions::default());
    HostedStore::over(tiered, tables, ForeignClock::default()).unwrap()
}

fn tiered(device: &Arc<MemoryDevice>, journal_bytes: u64) -> Arc<Tiered> {
    let device = Arc::clone(device) as Arc<dyn Device>;
    let durability = Durability::Memory;
    let store = StoreOptions { durability, journal_bytes, ..StoreOptions::default() };
    let options = TieredOptions {
        store,
        memory_bytes: 64 << 20,
        cache_bytes: None,
        admission: Admission::Always,
    };
    Tiered::open(device, options, Timestamp(1)).unwrap()
}

/// Puts a row into the ordered table `rows`.
fn put_row(host: &HostedStore<()>, number: u32) -> Result<()> {
    host.with_tables(|session| put(session, number)).unwrap()
}

fn put(session: &mut Session, number: u32) -> Result<()> {
    let table = session.table(Timestamp(1), b"rows")?;
    let key = number.to_be_bytes();
    let write = Write { table: &table, key: &key, action: Action::Put(&[7; 100]) };
    let batch = WriteBatch { writes: &[write], durability: None };
    let mut ended = Ok(());
    let mut visit = |_, outcome: Result<Outcome<'_>>| {
        ended = outcome.map(drop);
    };
    session.write(1, Timestamp(1), batch, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, Timestamp(1), &mut visit)?;
    }
    ended
}

fn has_row(host: &HostedStore<()>, number: u32) -> bool {
    let get = |session: &mut Session| {
        let table = session.table(Timestamp(1), b"rows").unwrap();
        let mut found = false;
        let mut visit = |_, outcome: Result<Outcome<'_>>| {
            found = matches!(outcome, Ok(Outcome::Found(value)) if value == [7; 100]);
        };
        let row = RowAt { table: &table, key: &number.to_be_bytes() };
        session.get(1, Timestamp(1), row, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, Timestamp(1), &mut visit).unwrap();
        }
        found
    };
    host.with_tables(get).unwrap()
}

#[test]
fn ordered_tables_are_opened_when_asked_for_and_settled_when_the_store_is_closed() {
    const ROWS: u32 = 80_000;
    let device = Arc::new(MemoryDevice::new(256 << 20).unwrap());
    let host = hosted(tiered(&device, 16 << 20));
    assert_eq!(host.figures().unwrap().tree, None);
    for number in 0..ROWS {
        // More waits than the journal holds: the upkeep or the writer itself makes room.
        while let Err(error) = put_row(&host, number) {
            assert!(matches!(error.kind(), ErrorKind::Busy | ErrorKind::Full), "{error}");
            host.relieve_tables().unwrap();
        }
    }
    let figures = host.figures().unwrap().tree.unwrap();
    assert_eq!(figures.changes, u64::from(ROWS));
    // The lane of one of two shards.
    assert!(figures.journal_bytes > 8 << 20, "{figures:?}");
    host.close().unwrap();
    assert!(
        matches!(host.tree(), Err(Failure::Store(error)) if error.kind() == ErrorKind::Poisoned)
    );
    let host = hosted(tiered(&device, 16 << 20));
    assert!((0..ROWS).step_by(100).all(|number| has_row(&host, number)));
    assert!(!has_row(&host, ROWS));
    // All was merged before the store was closed; the journal keeps its last batch.
    let waiting = host.figures().unwrap().tree.unwrap().waiting_bytes;
    assert!(waiting < 1000, "{waiting}");
    host.close().unwrap();
}

/// Each of many writers merged, or looked whether it could: threads were switched more than rows
/// were merged.
#[test]
fn one_writer_without_room_merges_and_the_others_wait_for_it() {
    let device = Arc::new(MemoryDevice::new(64 << 20).unwrap());
    let tiered = tiered(&device, 4 << 20);
    let tables = Tables::new(TreeOptions { waiting_bytes_max: 64 << 10, ..TreeOptions::default() });
    let tree = tables.open(&tiered, Timestamp(1)).unwrap();
    let mut rows = 0;
    while tables.with_session(&tree, |session| put(session, rows)).unwrap().is_ok() {
        rows += 1;
    }
    assert!(!tree.has_room());
    let written = |tree: &Tree| tree.statistics().page_bytes;
    let merging = tables.relieving.lock();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..4).for_each(|_| tables.relieve(Timestamp(1)).unwrap()));
        }
    });
    assert_eq!(written(&tree), 0, "another one merged");
    drop(merging);
    while !tree.has_room() {
        tables.relieve(Timestamp(1)).unwrap();
    }
    assert!(written(&tree) > 0);
    tables.with_session(&tree, |session| put(session, rows)).unwrap().unwrap();
}

#[test]
fn a_store_without_a_journal_says_what_ordered_tables_need() {
    let device = Arc::new(MemoryDevice::new(64 << 20).unwrap());
    let host = hosted(tiered(&device, 0));
    let refused = host.tree().unwrap_err().to_string();
    assert!(refused.contains("ordered tables need `journal_bytes` above 0"), "{refused}");
    host.close().unwrap();
}
