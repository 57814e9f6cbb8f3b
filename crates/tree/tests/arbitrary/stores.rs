//! Stores whose records of tables were changed under their checksums: whatever pages say, an
//! opening and all that is asked of the tables end, with answers or with errors.

use std::sync::{Arc, OnceLock};

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_flash::{
    Budget, Condition, Durability, Operation, Outcome as Stored, PutOptions, Result, StoreOptions,
    Timestamp,
};
use entresol_tier::{Admission, Session as StoreSession, SessionOptions, Tiered, TieredOptions};
use entresol_tree::format::{PageRole, Side, ValueName, page_key, record_key};
use entresol_tree::{
    Action, CountRange, Order, Outcome, RankRange, RowAt, RowCounts, RowRange, Sequence, Session,
    Table, TableOptions, Told, Tree, TreeOptions, Visit, Write, WriteBatch, check_tables,
    list_tables,
};

const NOW: Timestamp = Timestamp(1_000);
const BYTES: u64 = 16 << 20;
const ROWS: u32 = 2600;
const NAMES: [&[u8]; 3] = [b"counted", b"plain", b"small"];
/// Bytes of an edit.
pub(crate) const EDIT_BYTES: usize = 6;
/// Turns of a session's poll that an operation takes at most: far more than there are pages.
const POLLS_MAX: usize = 20_000;

/// A store, and the keys of all records of its tables.
struct Origin {
    image: Vec<u8>,
    keys: Vec<Vec<u8>>,
}

fn options() -> TreeOptions {
    TreeOptions { leaf_bytes_max: 512, absent_filter_bits: 10, ..TreeOptions::default() }
}

fn open(device: &Arc<dyn Device>) -> Arc<Tiered> {
    let store = StoreOptions {
        durability: Durability::Memory,
        segment_bytes: 256 << 10,
        journal_bytes: 3 << 20,
        ..StoreOptions::default()
    };
    let options = TieredOptions {
        store,
        memory_bytes: 32 << 20,
        cache_bytes: Some(0),
        admission: Admission::Always,
    };
    Tiered::open(Arc::clone(device), options, NOW).unwrap()
}

fn row_key(number: u32) -> Vec<u8> {
    format!("row {number:06}").into_bytes()
}

/// Lets an operation end.
fn run(session: &mut Session, begin: impl FnOnce(&mut Session, Visit<'_>)) {
    let mut visit = |_: u64, _: Result<Outcome<'_>>| {};
    begin(session, &mut visit);
    let mut polls = 0;
    while session.in_flight() > 0 && session.poll(1, NOW, &mut visit).is_ok() {
        polls += 1;
        assert!(polls < POLLS_MAX, "an operation that does not end");
    }
}

fn write(session: &mut Session, table: &Arc<Table>, key: &[u8], action: Action<'_>) {
    let batch = WriteBatch { writes: &[Write { table, key, action }], durability: None };
    run(session, |session, visit| session.write(1, NOW, batch, visit));
}

/// With a large table of each kind, a small one, and rows whose values are records of their own;
/// in one of two all is merged, in the other changes wait in the journal.
fn origin(is_settled: bool) -> &'static Origin {
    static ORIGINS: [OnceLock<Origin>; 2] = [OnceLock::new(), OnceLock::new()];
    ORIGINS[usize::from(is_settled)].get_or_init(|| {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(BYTES).unwrap());
        let tiered = open(&device);
        let tree = Tree::open(Arc::clone(&tiered), options(), NOW).unwrap();
        let mut session = tree.session(SessionOptions::default()).unwrap();
        let counts = TableOptions { counts: RowCounts::Kept };
        let counted = session.table_with(NOW, NAMES[0], counts).unwrap();
        let plain = session.table(NOW, NAMES[1]).unwrap();
        let small = session.table(NOW, NAMES[2]).unwrap();
        for number in 0..ROWS {
            write(&mut session, &counted, &row_key(number), Action::Put(&[7; 30]));
            if number % 4 == 0 {
                write(&mut session, &plain, &row_key(number), Action::Put(&[8; 40]));
            }
        }
        for number in [3, 17, 403] {
            write(&mut session, &plain, &row_key(number), Action::Put(&[9; 900]));
        }
        write(&mut session, &small, b"only", Action::Put(b"row"));
        tree.settle(NOW).unwrap();
        for number in (0..ROWS).step_by(13) {
            let action = if number % 2 == 0 { Action::Remove } else { Action::Put(b"new") };
            write(&mut session, &counted, &row_key(number), action);
            write(&mut session, &plain, &row_key(number), action);
        }
        if is_settled {
            tree.settle(NOW).unwrap();
        }
        drop((session, counted, plain, small, tree));
        let mut ids = Vec::new();
        list_tables(&tiered, &options(), NOW, &mut |table| ids.push(table.id)).unwrap();
        let keys = keys(&tiered, &ids);
        tiered.close(NOW).unwrap();
        let mut image = IoBuffer::aligned(BYTES as usize);
        device.read_at(0, &mut image).unwrap();
        Origin { image: image.to_vec(), keys }
    })
}

/// The keys of all records of these tables, and of those of all.
fn keys(tiered: &Arc<Tiered>, ids: &[u64]) -> Vec<Vec<u8>> {
    let mut session = tiered.session(SessionOptions::default()).unwrap();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for &id in ids.iter().chain(&[0]) {
        for number in (0..600).chain([u32::MAX]) {
            for role in [PageRole::Page, PageRole::Delta] {
                keys.push(page_key(id, number, role).to_vec());
            }
        }
        for number in [3, 17, 403] {
            let key = row_key(number);
            for side in Side::BOTH {
                let name = ValueName { table: id, created: Sequence(0), key: &key, side };
                keys.push(name.record_key());
            }
        }
    }
    keys.retain(|key| get(&mut session, key).is_some());
    assert!(keys.len() > 300, "{} records", keys.len());
    keys
}

fn get(session: &mut StoreSession, key: &[u8]) -> Option<Vec<u8>> {
    let (key, mut found) = (record_key(options().space, key), None);
    let mut visit = |outcome: Stored<'_>| {
        if let Stored::Found(entry) = outcome {
            found = Some(entry.value.to_vec());
        }
    };
    session.run(NOW, Operation::Get { key }, &mut visit).unwrap();
    found
}

/// One change of a record.
struct Edit {
    record: usize,
    kind: u8,
    at: usize,
    value: u16,
}

impl Edit {
    fn of(bytes: &[u8; EDIT_BYTES], records: usize) -> Edit {
        let [record, kind, at, more, low, high] = *bytes;
        // The first bytes of a page are its header.
        let at = if more & 1 == 0 { usize::from(at & 63) } else { usize::from(at) * 4 };
        let number = usize::from(record) | usize::from(more >> 1) << 8;
        Edit { record: number % records, kind, at, value: u16::from_le_bytes([low, high]) }
    }

    fn apply(&self, origin: &Origin, session: &mut StoreSession) {
        let key = &origin.keys[self.record];
        let Some(mut bytes) = get(session, key) else { return };
        let at = self.at.min(bytes.len().saturating_sub(1));
        let value = self.value.to_le_bytes();
        match self.kind % 8 {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << (value[0] & 7),
            1 | 2 if !bytes.is_empty() => bytes[at] = value[0],
            3 if at + 2 <= bytes.len() => bytes[at..at + 2].copy_from_slice(&value),
            4 => bytes.truncate(at),
            5 => bytes.resize(bytes.len() + usize::from(value[0]), value[1]),
            6 => {
                let other = &origin.keys[usize::from(self.value) % origin.keys.len()];
                bytes = get(session, other).unwrap_or_default();
            }
            _ => {
                let key = record_key(options().space, key);
                let condition = Condition::Always;
                session.run(NOW, Operation::Remove { key, condition }, &mut |_| {}).unwrap();
                return;
            }
        }
        let (key, options) = (record_key(options().space, key), PutOptions::default());
        let put = Operation::Put { key, value: &bytes, options };
        session.run(NOW, put, &mut |_| {}).unwrap();
    }
}

/// Changes records of a store as `edits` say, the first byte of which chooses the store, and uses
/// its tables.
pub(crate) fn tables(edits: &[u8]) {
    let Some((first, edits)) = edits.split_first() else { return };
    let origin = origin(first & 1 == 0);
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(BYTES).unwrap());
    let mut bytes = IoBuffer::aligned(BYTES as usize);
    bytes.copy_from_slice(&origin.image);
    device.write_at(0, &bytes).unwrap();
    let tiered = open(&device);
    let mut session = tiered.session(SessionOptions::default()).unwrap();
    let mut has_numbers = true;
    for edit in edits.as_chunks().0.iter().take(16) {
        let edit = Edit::of(edit, origin.keys.len());
        edit.apply(origin, &mut session);
        has_numbers &= origin.keys[edit.record][8..] != [0; 5];
    }
    drop(session);
    // It asks for every page number that a table says it has used: of a number that is none it
    // would ask for an hour.
    if has_numbers {
        let _ = check_tables(&tiered, &options(), NOW, &mut |told| match told {
            Told::Damage(damage) => assert!(!damage.to_string().is_empty()),
            Told::Table(_) | Told::Pages(_) => {}
        });
    }
    let _ = list_tables(&tiered, &options(), NOW, &mut |_| {});
    let Ok(tree) = Tree::open(Arc::clone(&tiered), options(), NOW) else { return };
    let Ok(mut session) = tree.session(SessionOptions::default()) else { return };
    for name in NAMES {
        if let Ok(table) = session.table(NOW, name) {
            read(&mut session, &table);
        }
    }
    for name in NAMES {
        if let Ok(table) = session.table(NOW, name) {
            for number in (0..ROWS).step_by(211) {
                write(&mut session, &table, &row_key(number), Action::Put(b"later"));
                write(&mut session, &table, &row_key(number + 5), Action::Remove);
            }
        }
    }
    for _ in 0..4 {
        let _ = tree.maintain(NOW, Budget { segments: 2 });
    }
    let _ = tree.settle(NOW);
    for name in NAMES {
        if let Ok(table) = session.table(NOW, name) {
            read(&mut session, &table);
            run(&mut session, |session, visit| session.drop_table(1, NOW, &table, visit));
        }
    }
    let _ = tree.settle(NOW);
}

/// Asks everything of a table.
fn read(session: &mut Session, table: &Arc<Table>) {
    for number in (0..ROWS + 400).step_by(151) {
        let key = &row_key(number)[..];
        run(session, |session, visit| session.get(1, NOW, RowAt { table, key }, visit));
    }
    let (low, high) = (row_key(300), row_key(700));
    for order in [Order::Ascending, Order::Descending] {
        let all = RowRange { table, low: b"", high: None, limit: usize::MAX, order };
        run(session, |session, visit| session.scan(1, NOW, all, visit));
        let some = RowRange { low: &low, high: Some(&high), limit: 100, ..all };
        run(session, |session, visit| session.scan_at_one_moment(1, NOW, some, visit));
        let range = RankRange { table, rank: 77, limit: 20, order };
        run(session, |session, visit| session.select(1, NOW, range, visit));
    }
    let range = CountRange { table, low: b"", high: None };
    run(session, |session, visit| session.count(1, NOW, range, visit));
    let range = CountRange { low: &low, high: Some(&high), ..range };
    run(session, |session, visit| session.count(1, NOW, range, visit));
}
