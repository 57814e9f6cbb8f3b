//! Encryption and compression of a store apply to its ordered tables, the journal included.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::sync::Arc;

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_flash::{Compression, Durability, EncryptionKey, StoreOptions, Timestamp};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{
    Action, Outcome, RowAt, Session, Tree, TreeOptions, Write, WriteBatch, check_tables,
};

const NOW: Timestamp = Timestamp(1_000);
const BYTES: u64 = 64 << 20;
const ROWS: u32 = 4000;
const NAME: &[u8] = b"a name that nobody may see";
/// What all keys and values hold.
const KEY: &[u8] = b"plain text of a key";
const VALUE: &[u8] = b"plain text of a value";

struct Subject {
    device: Arc<dyn Device>,
    tiered: Arc<Tiered>,
    tree: Tree,
    session: Session,
}

impl Subject {
    fn open(device: &Arc<dyn Device>, store: &StoreOptions) -> Subject {
        let store = StoreOptions {
            durability: Durability::Synced,
            journal_bytes: 8 << 20,
            ..store.clone()
        };
        let options = TieredOptions {
            store,
            memory_bytes: 64 << 20,
            cache_bytes: Some(0),
            admission: Admission::Always,
        };
        let tiered = Tiered::open(Arc::clone(device), options, NOW).unwrap();
        let tree = Tree::open(Arc::clone(&tiered), TreeOptions::default(), NOW).unwrap();
        let session = tree.session(SessionOptions::default()).unwrap();
        Subject { device: Arc::clone(device), tiered, tree, session }
    }

    fn write(&mut self, numbers: std::ops::Range<u32>) {
        let table = self.session.table(NOW, NAME).unwrap();
        let keys: Vec<_> = numbers.map(|number| [KEY, &number.to_be_bytes()].concat()).collect();
        for some in keys.chunks(50) {
            let action = Action::Put(VALUE);
            let put = |key| Write { table: &table, key, action };
            let writes: Vec<_> = some.iter().map(|key| put(&key[..])).collect();
            let batch = WriteBatch { writes: &writes, durability: None };
            let mut visit = |_, outcome: entresol_flash::Result<Outcome<'_>>| {
                assert!(outcome.is_ok(), "{outcome:?}");
            };
            self.session.write(1, NOW, batch, &mut visit);
            while self.session.in_flight() > 0 {
                self.session.poll(1, NOW, &mut visit).unwrap();
            }
        }
    }

    fn has(&mut self, number: u32) -> bool {
        let table = self.session.table(NOW, NAME).unwrap();
        let key = [KEY, &number.to_be_bytes()].concat();
        let mut found = false;
        let mut visit = |_, outcome: entresol_flash::Result<Outcome<'_>>| {
            found = matches!(outcome, Ok(Outcome::Found(value)) if value == VALUE);
        };
        self.session.get(1, NOW, RowAt { table: &table, key: &key }, &mut visit);
        while self.session.in_flight() > 0 {
            self.session.poll(1, NOW, &mut visit).unwrap();
        }
        found
    }

    /// How often one of the texts stands on the device.
    fn plain_texts(&self) -> usize {
        let mut bytes = IoBuffer::aligned(BYTES as usize);
        self.device.read_at(0, &mut bytes).unwrap();
        let is_one = |at: usize| {
            [NAME, KEY, VALUE].iter().any(|text| bytes.get(at..at + text.len()) == Some(*text))
        };
        let starts = (0..bytes.len()).filter(|at| matches!(bytes[*at], b'a' | b'p'));
        starts.filter(|at| is_one(*at)).count()
    }
}

fn device() -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(BYTES).unwrap())
}

#[test]
fn neither_pages_nor_the_journal_of_an_encrypted_store_show_plain_text() {
    let sealed =
        StoreOptions { encryption: Some(EncryptionKey([9; 32])), ..StoreOptions::default() };
    for (options, shows) in [(StoreOptions::default(), true), (sealed, false)] {
        let device = device();
        let mut subject = Subject::open(&device, &options);
        subject.write(0..100);
        // All of that is in the journal, and on the device.
        assert_eq!(subject.tree.statistics().leaf_writes, 0);
        assert_eq!(subject.plain_texts() > 100, shows);
        subject.write(100..ROWS);
        subject.tree.settle(NOW).unwrap();
        subject.write(0..100);
        subject.tree.settle(NOW).unwrap();
        let statistics = subject.tree.statistics();
        assert!(statistics.leaf_writes > 20 && statistics.node_writes > 0, "{statistics:?}");
        assert_eq!(subject.plain_texts() > 0, shows);
        let Subject { tiered, tree, session, .. } = subject;
        drop((tree, session));
        tiered.close(NOW).unwrap();
        drop(tiered);
        let mut subject = Subject::open(&device, &options);
        assert!((0..ROWS).step_by(50).all(|number| subject.has(number)));
        let checked = check_tables(&subject.tiered, &TreeOptions::default(), NOW, &mut |_| {});
        let checked = checked.unwrap();
        assert_eq!((checked.damaged, checked.sums.rows), (0, u64::from(ROWS)));
        assert_eq!(subject.plain_texts() > 0, shows);
    }
}

#[test]
fn pages_of_a_store_that_compresses_take_less_of_the_device() {
    let live_bytes = |compression| {
        let device = device();
        let options = StoreOptions { compression, ..StoreOptions::default() };
        let mut subject = Subject::open(&device, &options);
        subject.write(0..ROWS);
        subject.tree.settle(NOW).unwrap();
        assert!((0..ROWS).step_by(50).all(|number| subject.has(number)));
        subject.tiered.statistics().flash_live_bytes
    };
    let (plain, lz4, zstd) = (
        live_bytes(Compression::None),
        live_bytes(Compression::Lz4),
        live_bytes(Compression::Zstd),
    );
    assert!(
        lz4 < plain / 2 && zstd < plain / 2,
        "{plain} bytes, {lz4} by LZ4, {zstd} by Zstandard"
    );
}
