//! What an opening after a crash reads.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use entresol_device::{Device, on_all_processors};
use entresol_flash::{Budget, Durability, StoreOptions};
use entresol_sim::{SimDevice, SimOptions};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{Action, Outcome, RowAt, Session, Table, Tree, TreeOptions, Write, WriteBatch};
use entresol_workload::mix64;

use super::world::NOW;

const SEGMENT_BYTES: u64 = 256 << 10;
const CAPACITY: u64 = 64 << 20;
const ROWS: u64 = 40_000;
const ROW_BYTES: u64 = 16 + 100;

/// What a device has read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Read {
    requests: u64,
    bytes: u64,
}

impl Read {
    fn by(device: &SimDevice) -> Read {
        let counters = device.counters();
        Read { requests: counters.reads.load(Relaxed), bytes: counters.read_bytes.load(Relaxed) }
    }

    fn since(self, before: Read) -> Read {
        let Read { requests, bytes } = before;
        Read { requests: self.requests - requests, bytes: self.bytes - bytes }
    }
}

fn store(device: &SimDevice) -> Arc<Tiered> {
    let store = StoreOptions {
        durability: Durability::Memory,
        shards: 1,
        segment_bytes: SEGMENT_BYTES as u32,
        journal_bytes: 8 << 20,
        boot: 1,
        parallel: on_all_processors,
        ..StoreOptions::default()
    };
    let admission = Admission::Always;
    let options =
        TieredOptions { store, memory_bytes: 64 << 20, cache_bytes: Some(1 << 20), admission };
    let device: Arc<dyn Device> = Arc::new(device.clone());
    Tiered::open(device, options, NOW).expect("a store")
}

fn tables(store: &Arc<Tiered>) -> Tree {
    let options = TreeOptions { waiting_bytes_max: 6 << 20, ..TreeOptions::default() };
    Tree::open(Arc::clone(store), options, NOW).expect("tables")
}

fn key(number: u64) -> Vec<u8> {
    [mix64(number), number].map(u64::to_be_bytes).concat()
}

/// Puts a row; false where too much waits for merges.
fn put(session: &mut Session, table: &Arc<Table>, number: u64) -> bool {
    put_value(session, table, number, &[7; 100])
}

fn put_value(session: &mut Session, table: &Arc<Table>, number: u64, value: &[u8]) -> bool {
    let key = key(number);
    let write = Write { table, key: &key, action: Action::Put(value) };
    let batch = WriteBatch { writes: &[write], durability: Some(Durability::Memory) };
    let mut was_done = true;
    session.write(0, NOW, batch, &mut |_, outcome| was_done = outcome.is_ok());
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut |_, outcome| was_done = outcome.is_ok()).expect("writes");
    }
    was_done
}

/// What the store and what the tables read at an opening after a kill, while `waiting` changes wait
/// for a merge.
fn opened_with(waiting: u64) -> [Read; 2] {
    let device = SimDevice::new(SimOptions::new(1, CAPACITY));
    let tiered = store(&device);
    let tree = tables(&tiered);
    let mut session = tree.session(SessionOptions::default()).expect("a session");
    let table = session.table(NOW, b"rows").expect("a table");
    for number in 0..ROWS {
        while !put(&mut session, &table, number) {
            tree.maintain(NOW, Budget { segments: 1 }).expect("maintenance");
        }
    }
    tree.settle(NOW).expect("all is merged");
    drop((table, session, tree));
    tiered.close(NOW).expect("a clean stop");
    drop(tiered);
    let tiered = store(&device);
    let tree = tables(&tiered);
    let mut session = tree.session(SessionOptions::default()).expect("a session");
    let table = session.table(NOW, b"rows").expect("a table");
    for number in 0..waiting {
        assert!(put(&mut session, &table, mix64(number) % ROWS), "there is room");
    }
    tiered.sync().expect("all is durable");
    drop((table, session, tree, tiered));
    let first = Read::by(&device);
    let tiered = store(&device);
    let second = Read::by(&device);
    let tree = tables(&tiered);
    let third = Read::by(&device);
    assert!(tree.statistics().waiting_bytes >= waiting / 2 * ROW_BYTES, "they are there");
    [second.since(first), third.since(second)]
}

// Each opening read 20 times what the store's footers are, and the journal one segment after the
// other.
#[test]
fn an_opening_reads_little_more_than_what_waits() {
    let segments = CAPACITY / SEGMENT_BYTES;
    for waiting in [0, 4_000, 24_000] {
        let [by_store, by_tables] = opened_with(waiting);
        let bytes = waiting * ROW_BYTES;
        println!("{waiting} changes: the store reads {by_store:?}, the tables {by_tables:?}");
        assert!(by_tables.bytes <= bytes * 3 / 2 + 2 * SEGMENT_BYTES, "{by_tables:?}");
        assert!(by_tables.requests <= 2 * bytes / SEGMENT_BYTES + 16, "{by_tables:?}");
        // Heads and footers, and what was in no whole segment.
        assert!(by_store.bytes <= segments * (16 << 10) + 16 * SEGMENT_BYTES, "{by_store:?}");
        assert!(by_store.requests <= 3 * segments + 128, "{by_store:?}");
    }
}

fn get(session: &mut Session, table: &Arc<Table>, number: u64) -> Option<Vec<u8>> {
    let mut found = None;
    let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
        if let Outcome::Found(value) = outcome.expect("a get") {
            found = Some(value.to_vec());
        }
    };
    session.get(0, NOW, RowAt { table, key: &key(number) }, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).expect("a poll");
    }
    found
}

/// Some rows are put again in other segments, and a table is dropped and made again between them.
#[test]
fn rows_of_a_journal_that_threads_decode_are_as_they_were_put_last() {
    const KEYS: u64 = 6_000;
    let device = SimDevice::new(SimOptions::new(1, CAPACITY));
    let tiered = store(&device);
    let tree = tables(&tiered);
    let mut session = tree.session(SessionOptions::default()).expect("a session");
    let kept = session.table(NOW, b"kept").expect("a table");
    let mut others = session.table(NOW, b"others").expect("a table");
    let value = |turn: u64| [turn.to_be_bytes(); 12].concat();
    let mut last = std::collections::BTreeMap::new();
    for turn in 0..4 * KEYS {
        let number = mix64(turn) % KEYS;
        assert!(put_value(&mut session, &kept, number, &value(turn)), "there is room");
        last.insert(number, turn);
        if turn % 8 == 0 {
            assert!(put_value(&mut session, &others, turn, &value(turn)), "there is room");
        }
        if turn == 2 * KEYS {
            session.drop_table(1, NOW, &others, &mut |_, _| {});
            while session.in_flight() > 0 {
                session.poll(1, NOW, &mut |_, _| {}).expect("a drop");
            }
            others = session.table(NOW, b"others").expect("a table");
        }
    }
    let state = tiered.store().journal_state(0).expect("a journal");
    assert!(state.segments >= 8, "{state:?}: several are decoded at the same time");
    tiered.sync().expect("all is durable");
    drop((kept, others, session, tree, tiered));
    let tiered = store(&device);
    let tree = tables(&tiered);
    let mut session = tree.session(SessionOptions::default()).expect("a session");
    let kept = session.table(NOW, b"kept").expect("a table");
    let others = session.table(NOW, b"others").expect("a table");
    for number in 0..KEYS {
        let expected = last.get(&number).map(|turn| value(*turn));
        assert_eq!(get(&mut session, &kept, number), expected, "row {number}");
    }
    for turn in (0..4 * KEYS).step_by(8) {
        let expected = (turn > 2 * KEYS).then(|| value(turn));
        assert_eq!(get(&mut session, &others, turn), expected, "the other row {turn}");
    }
}
