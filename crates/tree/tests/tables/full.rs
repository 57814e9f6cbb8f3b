//! A journal that is full of parts that no leaf holds: what merges make of them is named in the
//! journal as well, which needs room there.

use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{Budget, Durability, ErrorKind, StoreOptions};
use entresol_sim::{SimDevice, SimOptions};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{
    Action, Folded, MergeFunction, Outcome, RowAt, Session, Table, Tree, TreeOptions, Write,
    WriteBatch,
};
use entresol_workload::Random;

use crate::seeds;
use crate::world::NOW;

const SEGMENT_BYTES: u32 = 64 << 10;
/// Columns of a row. A part begins with the number of its column.
const COLUMNS: usize = 7;
/// Steps of maintenance until there is room.
const STEPS_MAX: u32 = 400;

/// Folds parts by taking the last one of each column.
struct Columns;

impl MergeFunction for Columns {
    fn fold(&self, _: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        let mut columns: [&[u8]; COLUMNS] = [&[]; COLUMNS];
        let mut base = base.unwrap_or_default();
        while let Some((head, rest)) = base.split_first_chunk::<3>() {
            let bytes = usize::from(u16::from_le_bytes([head[1], head[2]]));
            columns[usize::from(head[0])] = &rest[..bytes];
            base = &rest[bytes..];
        }
        for part in parts {
            columns[usize::from(part[0])] = &part[1..];
        }
        for (column, value) in columns.iter().enumerate().filter(|(_, value)| !value.is_empty()) {
            out.push(column as u8);
            out.extend_from_slice(&(value.len() as u16).to_le_bytes());
            out.extend_from_slice(value);
        }
        Folded::Row
    }
}

/// Of each row the columns as they were added last.
type Model = Vec<[Vec<u8>; COLUMNS]>;

/// What fills the journal.
#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: usize,
    part_bytes: usize,
    /// Of the journal.
    segments: u32,
}

struct Filled {
    device: SimDevice,
    tiered: Option<Arc<Tiered>>,
    tree: Option<Tree>,
    session: Option<Session>,
    table: Option<Arc<Table>>,
    model: Model,
    shape: Shape,
}

impl Filled {
    fn new(seed: u64, shape: Shape) -> Filled {
        let device = SimDevice::new(SimOptions::new(seed, 48 << 20));
        let model = vec![Default::default(); shape.rows];
        let (tiered, tree, session, table) = (None, None, None, None);
        let mut filled = Filled { device, tiered, tree, session, table, model, shape };
        filled.open();
        filled
    }

    /// Opens the store, after a kill where it was open and all was durable.
    fn open(&mut self) {
        if let Some(tiered) = self.tiered.take() {
            tiered.sync().expect("all is durable");
        }
        (self.table, self.session, self.tree) = (None, None, None);
        let store = StoreOptions {
            durability: Durability::Memory,
            shards: 1,
            segment_bytes: SEGMENT_BYTES,
            journal_bytes: u64::from(self.shape.segments * SEGMENT_BYTES),
            ..StoreOptions::default()
        };
        let (memory_bytes, admission) = (64 << 20, Admission::Always);
        let options = TieredOptions { store, memory_bytes, cache_bytes: Some(0), admission };
        let device: Arc<dyn Device> = Arc::new(self.device.clone());
        let tiered = Tiered::open(device, options, NOW).expect("a store");
        let options = TreeOptions { waiting_bytes_max: 16 << 20, ..TreeOptions::default() };
        let tree = Tree::open(Arc::clone(&tiered), options, NOW).expect("tables");
        let mut session = tree.session(SessionOptions::default()).expect("a session");
        tree.set_merge(b"wide", Arc::new(Columns));
        let table = session.table(NOW, b"wide").expect("a table");
        self.tiered = Some(tiered);
        (self.tree, self.session, self.table) = (Some(tree), Some(session), Some(table));
    }

    /// Adds a part; false: the journal is full.
    fn add(&mut self, row: usize, column: usize, fill: u8) -> bool {
        let part = [&[column as u8][..], &vec![fill; self.shape.part_bytes]].concat();
        let (session, table) = (self.session.as_mut(), self.table.as_ref());
        let (session, table) = (session.expect("a session"), table.expect("a table"));
        let key = key(row);
        let writes = [Write { table, key: &key, action: Action::Add(&part) }];
        let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
        let mut refused = None;
        let mut visit = |_, outcome: entresol_flash::Result<Outcome<'_>>| refused = outcome.err();
        session.write(1, NOW, batch, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("a poll");
        }
        match refused {
            None => {
                self.model[row][column] = part[1..].to_vec();
                true
            }
            Some(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Busy) => false,
            Some(error) => panic!("a part: {error}"),
        }
    }

    fn check(&mut self) {
        for (row, columns) in self.model.iter().enumerate() {
            let parts: Vec<Vec<u8>> = columns
                .iter()
                .enumerate()
                .filter(|(_, value)| !value.is_empty())
                .map(|(column, value)| [&[column as u8], &value[..]].concat())
                .collect();
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let mut expected = Vec::new();
            Columns.fold(&[], None, &parts, &mut expected);
            let (session, table) = (self.session.as_mut(), self.table.as_ref());
            let (session, table) = (session.expect("a session"), table.expect("a table"));
            let mut found = Vec::new();
            let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                if let Outcome::Found(value) = outcome.expect("a get") {
                    found = value.to_vec();
                }
            };
            session.get(1, NOW, RowAt { table, key: &key(row) }, &mut visit);
            while session.in_flight() > 0 {
                session.poll(1, NOW, &mut visit).expect("a poll");
            }
            assert!(found == expected, "row {row}: {} of {}", found.len(), expected.len());
        }
    }
}

fn key(row: usize) -> [u8; 8] {
    (row as u64).to_be_bytes()
}

/// Fills the journal, and goes on with merges until there is room again, some times.
fn fill(seed: u64, shape: Shape) {
    let (mut filled, rows) = (Filled::new(seed, shape), shape.rows);
    let mut random = Random::new(seed);
    for round in 0..24_u8 {
        while filled.add(random.below(rows as u64) as usize, random.below(7) as usize, round) {}
        if round % 3 == 2 {
            filled.open();
        }
        let mut steps = 0;
        while !filled.add(random.below(rows as u64) as usize, random.below(7) as usize, round) {
            let tree = filled.tree.as_ref().expect("tables");
            let maintained = tree.maintain(NOW, Budget { segments: 4 });
            steps += 1;
            assert!(steps < STEPS_MAX, "seed {seed}, round {round}: {maintained:?}");
        }
        if round % 8 == 7 {
            filled.check();
        }
    }
}

#[test]
fn merges_make_room_in_a_journal_full_of_parts_that_no_leaf_holds() {
    for seed in seeds(2) {
        for (rows, part_bytes) in [(40, 3000), (200, 3000), (40, 1400), (4000, 1400), (3000, 200)] {
            for segments in [2, 4, 16] {
                let shape = Shape { rows, part_bytes, segments };
                println!("ENTRESOL_SEED={seed}: {shape:?}");
                fill(seed, shape);
            }
        }
    }
}
