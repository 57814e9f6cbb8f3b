//! Inner nodes leave memory beyond their share, and come back as they were.

use std::collections::BTreeMap;
use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{Budget, Durability, StoreOptions};
use entresol_sim::{CrashChoice, SimDevice, SimOptions};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{
    Action, CountRange, Order, Outcome, RowAt, RowRange, Session, Table, TableOptions, Tree,
    TreeOptions, Write, WriteBatch,
};
use entresol_workload::Random;

use super::counts::KEPT;
use super::seeds;
use super::world::NOW;

const SEGMENT_BYTES: u32 = 64 << 10;
const DIRECTORY_BYTES: u64 = 48 << 10;
const KEYS: u64 = 9_000;

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a table is.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) absent_filter_bits: u8,
    pub(crate) table: TableOptions,
    pub(crate) cache_bytes: u64,
}

/// A table with many leaves and inner nodes.
pub(crate) struct Tall {
    pub(crate) tiered: Arc<Tiered>,
    tree: Tree,
    session: Session,
    table: Arc<Table>,
}

impl Tall {
    pub(crate) fn open(device: &SimDevice, kind: Kind) -> Tall {
        let store = StoreOptions {
            durability: Durability::Memory,
            segment_bytes: SEGMENT_BYTES,
            buffers_per_shard: 6,
            journal_bytes: 16 * u64::from(SEGMENT_BYTES),
            ..StoreOptions::default()
        };
        let (cache_bytes, admission) = (Some(kind.cache_bytes), Admission::Always);
        let options = TieredOptions { store, memory_bytes: 32 << 20, cache_bytes, admission };
        let tree = TreeOptions {
            waiting_bytes_max: 64 << 10,
            directory_bytes_max: DIRECTORY_BYTES,
            leaf_bytes_max: 512,
            absent_filter_bits: kind.absent_filter_bits,
            ..TreeOptions::default()
        };
        let device: Arc<dyn Device> = Arc::new(device.clone());
        let part = tree.memory_bytes_max();
        let tiered = Tiered::open_reserving(device, options, part, NOW).expect("a store");
        let tree = Tree::open(Arc::clone(&tiered), tree, NOW).expect("tables");
        let mut session = tree.session(SessionOptions::default()).expect("a session");
        let table = session.table_with(NOW, b"tall", kind.table).expect("a table");
        Tall { tiered, tree, session, table }
    }

    pub(crate) fn write(&mut self, key: &[u8], action: Action<'_>) {
        loop {
            let mut is_done = true;
            let writes = [Write { table: &self.table, key, action }];
            let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
            let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                is_done = outcome.is_ok();
            };
            self.session.write(0, NOW, batch, &mut visit);
            while self.session.in_flight() > 0 {
                self.session.poll(1, NOW, &mut visit).expect("a poll");
            }
            if is_done {
                return;
            }
            self.maintain();
        }
    }

    pub(crate) fn maintain(&mut self) {
        self.tree.maintain(NOW, Budget { segments: 2 }).expect("maintenance");
    }

    pub(crate) fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let mut found = None;
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            if let Outcome::Found(value) = outcome.expect("a get") {
                found = Some(value.to_vec());
            }
        };
        self.session.get(0, NOW, RowAt { table: &self.table, key }, &mut visit);
        while self.session.in_flight() > 0 {
            self.session.poll(1, NOW, &mut visit).expect("a poll");
        }
        found
    }

    fn count(&mut self, low: &[u8], high: Option<&[u8]>) -> u64 {
        let mut found = None;
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            if let Outcome::Count(rows) = outcome.expect("a count") {
                found = Some(rows);
            }
        };
        self.session.count(0, NOW, CountRange { table: &self.table, low, high }, &mut visit);
        while self.session.in_flight() > 0 {
            self.session.poll(1, NOW, &mut visit).expect("a poll");
        }
        found.expect("a count that was visited")
    }

    /// Compares counts with the model, where they are kept.
    fn check_counts(&mut self, model: &Model, random: &mut Random) {
        if !self.table.keeps_counts() {
            return;
        }
        let key = |random: &mut Random| format!("row {:06}", random.below(KEYS)).into_bytes();
        let (low, high) = (key(random), key(random));
        let within = |found: &&Vec<u8>| **found >= low && **found < high;
        let expected = model.keys().filter(within).count() as u64;
        assert_eq!(self.count(&low, Some(&high)), expected, "{low:?} to {high:?}");
        assert_eq!(self.count(&[], None), model.len() as u64);
    }

    pub(crate) fn rows(&mut self, order: Order) -> Model {
        let mut found = Model::new();
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            let Outcome::Rows(rows) = outcome.expect("a scan") else { return };
            found.extend(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        };
        let (table, limit) = (&self.table, usize::MAX);
        let range = RowRange { table, low: &[], high: None, limit, order };
        self.session.scan(0, NOW, range, &mut visit);
        while self.session.in_flight() > 0 {
            self.session.poll(1, NOW, &mut visit).expect("a poll");
        }
        found
    }
}

fn live(tall: &mut Tall, model: &mut Model, random: &mut Random, steps: usize) {
    for _ in 0..steps {
        let key = format!("row {:06}", random.below(KEYS)).into_bytes();
        match random.below(8) {
            0 => {
                assert_eq!(tall.get(&key).as_ref(), model.get(&key), "{key:?}");
            }
            1 => {
                tall.write(&key, Action::Remove);
                model.remove(&key);
            }
            _ => {
                let value = vec![b'a' + random.below(26) as u8; 20 + random.below(30) as usize];
                tall.write(&key, Action::Put(&value));
                model.insert(key, value);
            }
        }
        if random.below(8) == 0 {
            tall.maintain();
        }
        if tall.table.keeps_counts() && random.below(100) == 0 {
            tall.check_counts(model, random);
        }
    }
}

#[test]
fn inner_nodes_beyond_their_share_leave_memory_and_come_back_as_they_were() {
    come_and_go(0);
}

#[test]
fn inner_nodes_with_filters_leave_memory_and_come_back_as_they_were() {
    come_and_go(4);
}

fn come_and_go(absent_filter_bits: u8) {
    for seed in seeds(2) {
        let kind = Kind { absent_filter_bits, table: TableOptions::default(), cache_bytes: 0 };
        live_and_leave(seed, kind);
    }
}

#[test]
fn inner_nodes_that_leave_memory_say_how_many_rows_are_below() {
    for seed in seeds(1) {
        live_and_leave(seed, Kind { absent_filter_bits: 4, table: KEPT, cache_bytes: 0 });
    }
}

fn live_and_leave(seed: u64, kind: Kind) {
    let mut random = Random::new(seed);
    let capacity = 160 * u64::from(SEGMENT_BYTES);
    let mut device = SimDevice::new(SimOptions { place: 1, ..SimOptions::new(seed, capacity) });
    let mut model = Model::new();
    let mut departed = 0;
    for life in 0..3 {
        let mut tall = Tall::open(&device, kind);
        tall.check_counts(&model, &mut random);
        live(&mut tall, &mut model, &mut random, 8_000);
        assert!(tall.rows(Order::Ascending) == model, "ENTRESOL_SEED={seed}: life {life}");
        for _ in 0..20 {
            tall.maintain();
            tall.tiered.sync().expect("a sync");
        }
        let statistics = tall.tree.statistics();
        let bytes = statistics.directory_bytes;
        assert!(bytes <= DIRECTORY_BYTES, "ENTRESOL_SEED={seed}: {bytes} bytes of nodes");
        departed += statistics.nodes_departed;
        assert!(tall.rows(Order::Descending) == model, "ENTRESOL_SEED={seed}: life {life}");
        tall.check_counts(&model, &mut random);
        let Tall { tiered, tree, session, table, .. } = tall;
        drop((session, table));
        if life == 1 {
            tree.settle(NOW).expect("all is merged");
            drop(tree);
            tiered.close(NOW).expect("a store that closes");
        } else {
            tiered.sync().expect("all is durable");
            drop((tree, tiered));
            device.crash_now();
            device = device.reopened(CrashChoice::Random(random.next()));
        }
    }
    assert!(departed > 20, "ENTRESOL_SEED={seed}: {departed} nodes left memory");
}
