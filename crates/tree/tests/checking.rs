//! A check of ordered tables finds each kind of damage and says where it is, and takes for damage
//! nothing that a crash may leave.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::sync::{Arc, OnceLock};

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_flash::{
    Condition, Durability, JournalAppend, JournalRoom, Operation, Outcome as Stored, PutOptions,
    StoreOptions, Timestamp,
};
use entresol_tier::{Admission, Session, SessionOptions, Tiered, TieredOptions};
use entresol_tree::format::{
    Children, PAGE_KEY_BYTES, PageKind, PageRole, Root, Rows, Side, ValueName, page_key, record_key,
};
use entresol_tree::{
    Action, CheckedTable, CheckedTables, RowCounts, TableEntry, TableOptions, Told, Tree,
    TreeOptions, Write, WriteBatch, check_tables, extent_of_tables, list_tables,
};

const NOW: Timestamp = Timestamp(1_000);
const BYTES: u64 = 32 << 20;
const ROWS: u32 = 6000;
const NAME: &[u8] = b"rows";

fn options() -> TreeOptions {
    TreeOptions { leaf_bytes_max: 512, ..TreeOptions::default() }
}

fn open(device: &Arc<dyn Device>) -> Arc<Tiered> {
    let store = StoreOptions {
        durability: Durability::Memory,
        segment_bytes: 256 << 10,
        journal_bytes: 4 << 20,
        ..StoreOptions::default()
    };
    let options = TieredOptions {
        store,
        memory_bytes: 64 << 20,
        cache_bytes: Some(0),
        admission: Admission::Always,
    };
    Tiered::open(Arc::clone(device), options, NOW).unwrap()
}

fn write(session: &mut entresol_tree::Session, name: &[u8], key: &[u8], action: Action<'_>) {
    let table = session.table(NOW, name).unwrap();
    let batch = WriteBatch { writes: &[Write { table: &table, key, action }], durability: None };
    let mut visit =
        |_, outcome: entresol_flash::Result<entresol_tree::Outcome<'_>>| assert!(outcome.is_ok());
    session.write(1, NOW, batch, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).unwrap();
    }
}

/// A store with a large table of three levels whose leaves have delta pages, and a small one.
fn image() -> &'static [u8] {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(BYTES).unwrap());
        let tiered = open(&device);
        let tree = Tree::open(Arc::clone(&tiered), options(), NOW).unwrap();
        let mut session = tree.session(SessionOptions::default()).unwrap();
        let counts = TableOptions { counts: RowCounts::Kept };
        let _counted = session.table_with(NOW, NAME, counts).unwrap();
        for number in 0..ROWS {
            write(&mut session, NAME, format!("{number:06}").as_bytes(), Action::Put(&[7; 40]));
        }
        tree.settle(NOW).unwrap();
        for number in (0..ROWS).step_by(13) {
            let action = if number % 2 == 0 { Action::Remove } else { Action::Put(b"new") };
            write(&mut session, NAME, format!("{number:06}").as_bytes(), action);
        }
        write(&mut session, b"small", b"only", Action::Put(b"row"));
        tree.settle(NOW).unwrap();
        drop((session, tree));
        tiered.close(NOW).unwrap();
        let mut image = IoBuffer::aligned(BYTES as usize);
        device.read_at(0, &mut image).unwrap();
        image.to_vec()
    })
}

/// A store whose records can be changed, and its large table.
struct Subject {
    device: Arc<dyn Device>,
    tiered: Arc<Tiered>,
    session: Session,
    id: u64,
    root: Vec<u8>,
}

impl Subject {
    fn new() -> Subject {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(BYTES).unwrap());
        let mut bytes = IoBuffer::aligned(BYTES as usize);
        bytes.copy_from_slice(image());
        device.write_at(0, &bytes).unwrap();
        let tiered = open(&device);
        let session = tiered.session(SessionOptions::default()).unwrap();
        let mut id = 0;
        let mut visit = |table: TableEntry| {
            if table.name == NAME {
                id = table.id;
            }
        };
        list_tables(&tiered, &options(), NOW, &mut visit).unwrap();
        let mut subject = Subject { device, tiered, session, id, root: Vec::new() };
        let record = subject.get(&page_key(id, 1, PageRole::Page)).unwrap();
        subject.root = Root::decode(&record).unwrap().page.to_vec();
        subject
    }

    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let key = record_key(options().space, key);
        let mut found = None;
        self.session
            .run(NOW, Operation::Get { key }, &mut |outcome| {
                if let Stored::Found(entry) = outcome {
                    found = Some(entry.value.to_vec());
                }
            })
            .unwrap();
        found
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let (key, options) = (record_key(options().space, key), PutOptions::default());
        self.session.run(NOW, Operation::Put { key, value, options }, &mut |_| {}).unwrap();
    }

    fn remove(&mut self, key: &[u8]) {
        let (key, condition) = (record_key(options().space, key), Condition::Always);
        self.session.run(NOW, Operation::Remove { key, condition }, &mut |_| {}).unwrap();
    }

    /// The first inner node above leaves.
    fn node(&self) -> u32 {
        Children::parse(&self.root).unwrap().child(0).unwrap().page
    }

    fn key(&self, page: u32, role: PageRole) -> [u8; PAGE_KEY_BYTES] {
        page_key(self.id, page, role)
    }

    /// A leaf that has a delta page, and is neither the first nor the last of its node.
    fn leaf(&mut self) -> u32 {
        let node = self.get(&self.key(self.node(), PageRole::Page)).unwrap();
        let children = Children::parse(&node).unwrap();
        let pages = (1..children.count() - 1).map(|at| children.child(at).unwrap().page);
        let has_delta = |page: &u32| self.get(&self.key(*page, PageRole::Delta)).is_some();
        pages.collect::<Vec<_>>().into_iter().find(has_delta).unwrap()
    }

    /// Changes the bytes of a page.
    fn change(&mut self, key: [u8; PAGE_KEY_BYTES], change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.get(&key).unwrap();
        change(&mut bytes);
        self.put(&key, &bytes);
    }

    fn check(&self) -> (CheckedTables, Vec<String>, Vec<CheckedTable>) {
        let (mut damage, mut tables) = (Vec::new(), Vec::new());
        let found = check_tables(&self.tiered, &options(), NOW, &mut |told| match told {
            Told::Damage(found) => damage.push(found.to_string()),
            Told::Table(table) => tables.push(table.clone()),
            Told::Pages(_) => {}
        });
        let found = found.unwrap();
        assert_eq!(found.damaged, damage.len() as u64);
        (found, damage, tables)
    }

    /// Demands that the check names the damage.
    #[track_caller]
    fn demand(&self, expected: &str) {
        let damage = self.check().1;
        assert!(damage.iter().any(|one| one.contains(expected)), "{expected}: {damage:#?}");
    }
}

#[test]
fn sound_tables_are_counted_and_nothing_of_them_is_damage() {
    let subject = Subject::new();
    let (found, damage, tables) = subject.check();
    assert_eq!(damage, [""; 0]);
    let removed = u64::from((0..ROWS).step_by(13).filter(|number| number % 2 == 0).count() as u32);
    assert!(found.is_settled && found.dropped == 0);
    assert_eq!((found.tables, found.sums.rows), (2, u64::from(ROWS) - removed + 1));
    assert_eq!(found.sums.pages_left + found.sums.pages_behind + found.sums.pages_dropped, 0);
    let rows = tables.iter().find(|table| table.name == NAME).unwrap();
    assert!(rows.inner_nodes > 3 && rows.leaves > 500 && rows.delta_pages > 100, "{rows:?}");
    let small = tables.iter().find(|table| table.name == b"small").unwrap();
    assert_eq!((small.rows, small.leaves, small.inner_nodes), (1, 1, 0));
    let mut segments = 0;
    let extent = extent_of_tables(&subject.tiered, &options(), NOW, &mut || segments += 1).unwrap();
    assert_eq!(extent.tables, 2);
    assert_eq!(extent.pages + 2, found.sums.leaves + found.sums.inner_nodes);
    assert_eq!(extent.delta_pages, found.sums.delta_pages);
    assert!(extent.record_bytes > found.sums.page_bytes && segments > 1, "{extent:?}");
}

#[test]
fn each_kind_of_damage_of_a_leaf_is_named() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change); 6] = [
        ("version of a page: expected 1 or less, found 9", |page| page[24] = 9),
        ("kind of a page: expected 3 or less, found 8", |page| page[0] = 8),
        ("order of rows", |page| {
            // Behind header, high key and prefix are the offsets of entries.
            let at = 32 + usize::from(page[6]) + usize::from(page[4]);
            page.swap(at, at + 2);
            page.swap(at + 1, at + 3);
        }),
        ("right link: expected ", |page| page[16] ^= 1),
        ("separator: expected '", |page| {
            // The high key becomes a longer one that is above all rows still.
            page.insert(32 + usize::from(page[6]), b'0');
            page[6] += 1;
        }),
        ("sequence that its parent says: expected ", |page| page[8] += 1),
    ];
    for (expected, change) in cases {
        let mut subject = Subject::new();
        let leaf = subject.leaf();
        subject.change(subject.key(leaf, PageRole::Page), change);
        subject.demand(expected);
        let named = subject.check().1;
        assert!(named.iter().all(|one| one.starts_with("ordered table `rows`, ")), "{named:?}");
        assert!(named.iter().any(|one| one.contains(&format!("page {leaf}"))), "{named:?}");
    }
}

#[test]
fn a_page_that_is_missing_or_does_not_verify_is_named() {
    let mut subject = Subject::new();
    let leaf = subject.leaf();
    subject.remove(&subject.key(leaf, PageRole::Page));
    let expected = "its record: expected a page, found none";
    subject.demand(&format!("ordered table `rows`, page {leaf}: {expected}"));

    let mut subject = Subject::new();
    let leaf = subject.leaf();
    let page = subject.get(&subject.key(leaf, PageRole::Page)).unwrap();
    let mut bytes = IoBuffer::aligned(BYTES as usize);
    subject.device.read_at(0, &mut bytes).unwrap();
    let at = bytes.windows(page.len()).position(|window| window == page).unwrap();
    bytes[at + 40] ^= 1;
    subject.device.write_at(0, &bytes).unwrap();
    let said = format!("page {leaf}: its bytes: expected those that were written, found ");
    subject.demand(&said);
}

#[test]
fn each_kind_of_damage_of_an_inner_node_is_named() {
    /// Where the entry of a child is in the page of a node.
    fn entry(page: &[u8], index: usize) -> usize {
        let word = |at: usize| usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
        let offsets = 32 + word(6) + word(4);
        offsets + 2 * word(2) + word(offsets + 2 * index)
    }
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change); 7] = [
        ("ways to it: expected one, found two", |page| {
            let (one, other) = (entry(page, 2), entry(page, 3));
            page.copy_within(one + 2..one + 6, other + 2);
        }),
        ("right link: expected ", |page| {
            let (one, other) = (entry(page, 2) + 2, entry(page, 3) + 2);
            (0..4).for_each(|at| page.swap(one + at, other + at));
        }),
        ("number: expected 2 to ", |page| {
            let at = entry(page, 2);
            page[at + 5] = 0x7f;
        }),
        ("level: expected 1, found 2", |page| page[25] = 2),
        ("bytes that its parent says: expected ", |page| {
            let at = entry(page, 2);
            page[at + 6] ^= 1;
        }),
        ("rows that its parent says: expected ", |page| {
            let at = entry(page, 2);
            page[at + 10] += 1;
        }),
        ("separator: expected '", |page| {
            // The last byte of its suffix: it is below the next one still.
            let at = entry(page, 2);
            let last = at + 29 + usize::from(page[at]);
            page[last] += 1;
        }),
    ];
    for (expected, change) in cases {
        let mut subject = Subject::new();
        let node = subject.node();
        subject.change(subject.key(node, PageRole::Page), change);
        subject.demand(expected);
    }
    let mut subject = Subject::new();
    let node = subject.node();
    subject.change(subject.key(node, PageRole::Page), |page| page.truncate(100));
    subject.demand(&format!("page {node}: "));
    // What the root says of the rows below a node.
    let mut subject = Subject::new();
    let node = subject.node();
    subject.change(subject.key(1, PageRole::Page), |record| {
        let page = record.len() - subject_root_bytes(record);
        let at = page + entry(&record[page..], 0);
        record[at + 10] += 1;
    });
    subject.demand(&format!("page {node}: rows that its parent says: expected "));
}

/// Bytes of page 1 in a first record.
fn subject_root_bytes(record: &[u8]) -> usize {
    Root::decode(record).unwrap().page.len()
}

#[test]
fn a_delta_page_that_does_not_fit_its_leaf_is_named() {
    let mut subject = Subject::new();
    let leaf = subject.leaf();
    let key = subject.key(leaf, PageRole::Delta);
    // It names a leaf that is newer than the one that is there.
    subject.change(key, |page| page[16 + 4] = 1);
    subject.demand(&format!("delta page of page {leaf}: sequence of its leaf: expected "));

    let mut subject = Subject::new();
    let after = subject.leaf_after(leaf);
    let other = subject.get(&subject.key(after, PageRole::Delta)).unwrap();
    let link = subject.get(&key).unwrap()[16..24].to_vec();
    let mut moved = other;
    moved[16..24].copy_from_slice(&link);
    subject.put(&key, &moved);
    subject.demand(&format!("delta page of page {leaf}: last key: expected below '"));

    // One of a leaf that is older is what a crash leaves: the leaf has all that it says.
    let mut subject = Subject::new();
    subject.change(key, |page| page[16..24].fill(0));
    let (found, damage, _) = subject.check();
    assert_eq!(found.sums.pages_left, 1);
    assert!(damage.iter().all(|one| one.contains("bytes of its delta page that its parent")));
}

impl Subject {
    /// A leaf with a delta page to the right of another one.
    fn leaf_after(&mut self, leaf: u32) -> u32 {
        let mut page = leaf;
        loop {
            let bytes = self.get(&self.key(page, PageRole::Page)).unwrap();
            let rows = Rows::parse(&bytes).unwrap();
            assert_eq!(rows.header().kind, PageKind::Leaf);
            page = rows.header().link as u32;
            if self.get(&self.key(page, PageRole::Delta)).is_some() {
                return page;
            }
        }
    }
}

#[test]
fn damage_of_first_records_is_named() {
    let mut subject = Subject::new();
    let key = subject.key(1, PageRole::Page);
    subject.change(key, |record| record[0] = 9);
    subject.demand("version of a table: expected 1 or less, found 9");

    let mut subject = Subject::new();
    subject.remove(&key);
    let id = subject.id;
    subject.demand(&format!("table {id:016x}: its first record: expected one, or the table's "));
}

#[test]
fn a_batch_of_the_journal_that_does_not_decode_is_named() {
    let mut subject = Subject::new();
    let append = JournalAppend {
        lane: 0,
        owner: 0,
        bytes: b"no batch at all",
        durability: None,
        continues: None,
        room: JournalRoom::Leaving(0),
    };
    subject.session.submit_journal(1, NOW, append, &mut |_, outcome| assert!(outcome.is_ok()));
    subject.demand("of the journal: version of a batch: expected 3 or less, found 110");
}

#[test]
fn pages_that_nothing_leads_to_are_counted_and_are_no_damage() {
    let mut subject = Subject::new();
    let leaf = subject.leaf();
    let bytes = subject.get(&subject.key(leaf, PageRole::Page)).unwrap();
    let reserved = subject.get(&subject.key(0, PageRole::Page)).unwrap();
    let numbers = u32::from_le_bytes(reserved.try_into().unwrap());
    // One with a number that was set apart, one whose number's record was lost with a shard's tail,
    // and one of a table that never got so far.
    subject.put(&subject.key(numbers - 1, PageRole::Page), &bytes);
    subject.put(&subject.key(numbers + 3, PageRole::Page), &bytes);
    subject.put(&page_key(77, 5, PageRole::Page), &bytes);
    let (found, damage, _) = subject.check();
    assert_eq!((damage, found.sums.pages_left), (Vec::new(), 3));
}

#[test]
fn a_dropped_table_is_said_to_be_one_until_its_pages_are_gone() {
    let subject = Subject::new();
    let tree = Tree::open(Arc::clone(&subject.tiered), options(), NOW).unwrap();
    let mut session = tree.session(SessionOptions::default()).unwrap();
    let table = session.table(NOW, NAME).unwrap();
    let mut visit =
        |_, outcome: entresol_flash::Result<entresol_tree::Outcome<'_>>| assert!(outcome.is_ok());
    session.drop_table(1, NOW, &table, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).unwrap();
    }
    let (found, damage, tables) = subject.check();
    assert_eq!(damage, [""; 0]);
    let dropped = tables.iter().find(|table| table.name == NAME).unwrap();
    assert!(dropped.is_dropped && dropped.pages_dropped > 500, "{dropped:?}");
    assert_eq!((found.dropped, found.sums.rows), (1, 1));
    for _ in 0..100 {
        tree.maintain(NOW, entresol_flash::Budget { segments: 2 }).unwrap();
        subject.tiered.sync().unwrap();
    }
    let (found, damage, _) = subject.check();
    assert_eq!((damage, found.sums.pages_dropped), (Vec::new(), 0));
}

/// A store with a table of large rows, which was closed.
fn with_values() -> Subject {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(BYTES).unwrap());
    let tiered = open(&device);
    let tree = Tree::open(Arc::clone(&tiered), options(), NOW).unwrap();
    let mut session = tree.session(SessionOptions::default()).unwrap();
    for round in 0..3_u8 {
        for number in 0..40_u8 {
            let (key, value) = ([b'r', number], [round + number; 900]);
            write(&mut session, NAME, &key, Action::Put(&value));
        }
        tree.settle(NOW).unwrap();
    }
    let id = session.table(NOW, NAME).map(|table| table_number(&tiered, table.name())).unwrap();
    drop((session, tree));
    tiered.close(NOW).unwrap();
    drop(tiered);
    let tiered = open(&device);
    let session = tiered.session(SessionOptions::default()).unwrap();
    Subject { device, tiered, session, id, root: Vec::new() }
}

fn table_number(tiered: &Arc<Tiered>, name: &[u8]) -> u64 {
    let mut id = 0;
    let mut visit = |table: TableEntry| id = if table.name == name { table.id } else { id };
    list_tables(tiered, &options(), NOW, &mut visit).unwrap();
    id
}

impl Subject {
    /// The keys of both records that a row's value may be in, that which is there first.
    fn value_keys(&mut self, number: u8) -> [Vec<u8>; 2] {
        let created = entresol_tree::Sequence(0);
        let (table, key) = (self.id, [b'r', number]);
        let name = |side| ValueName { table, created, key: &key, side };
        let [first, second] = Side::BOTH.map(|side| name(side).record_key());
        if self.get(&first).is_some() { [first, second] } else { [second, first] }
    }
}

#[test]
fn values_that_are_missing_or_that_no_row_names_are_named() {
    let mut subject = with_values();
    let (found, damage, _) = subject.check();
    assert_eq!((damage, found.sums.rows, found.values_left), (Vec::new(), 40, 0));
    let [key, other] = subject.value_keys(7);
    let value = subject.get(&key).unwrap();
    // One that no row names: the next opening would look for it, and remove it.
    subject.put(&other, &value);
    let (found, damage, _) = subject.check();
    assert_eq!((damage, found.values_left), (Vec::new(), 1));
    // Not where it stands before the place from which on an opening looks.
    let position = subject.tiered.store().log_position();
    let words = [u64::MAX, position.segment].into_iter().chain(position.versions);
    let confirmed: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    subject.put(&page_key(0, 1, PageRole::Page), &confirmed);
    let (found, damage, _) = subject.check();
    assert_eq!(found.values_left, 0);
    assert_eq!(damage.len(), 1, "{damage:?}");
    subject.demand("ordered table `rows`, value of row 'r\\x07' on its ");
    subject.demand(" side: its row: expected one that names it, found none");
    subject.remove(&other);
    assert_eq!(subject.check().1, [""; 0]);
    // Another value in the place of that which the row names, and none.
    subject.put(&key, &value);
    subject.demand(" side: its record: expected a record with the version ");
    subject.demand(", found one with the version ");
    subject.remove(&key);
    let damage = subject.check().1;
    assert_eq!(damage.len(), 1, "{damage:?}");
    subject.demand("ordered table `rows`, value of row 'r\\x07' on its ");
    subject.demand(", found none");
}
