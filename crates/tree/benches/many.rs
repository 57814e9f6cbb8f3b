//! Very many small tables: what each takes on flash and in memory once it is idle, and what opening
//! one costs.
//!
//! `cargo bench -p entresol-tree --bench many [-- TABLES]`. Each table has five rows of 16 and 20
//! bytes. The file is in the directory that the variable `TMPDIR` names, and vanishes at the end.

use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use entresol_device::{FileDevice, FileOptions, Preparation};
use entresol_flash::{Budget, Durability, ErrorKind, StoreOptions, Timestamp};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{
    Action, Order, Outcome, RowRange, Session, Table, Tree, TreeOptions, Write, WriteBatch,
};
use entresol_workload::mix64;

const NOW: Timestamp = Timestamp(1_000);
const LATER: Timestamp = Timestamp(1_000_000);
const ROWS: u64 = 5;
const KEY_BYTES: u64 = 16;
const VALUE: [u8; 20] = [7; 20];
const ROWS_BYTES: u64 = ROWS * (KEY_BYTES + 20);
const OPENED: u64 = 2_000;

fn main() {
    let tables = env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let tables: u64 = tables.unwrap_or(1_000_000);
    let path = env::temp_dir().join(format!("entresol-many-{}", std::process::id()));
    let mut bench = Bench::open(&path, tables);
    let before = resident_bytes();
    let start = Instant::now();
    (0..tables).for_each(|number| bench.fill(number));
    println!("{tables} tables of {ROWS} rows made in {:.1?}", start.elapsed());
    println!("resident, a table: {:.1} B more than before", per(resident_bytes() - before, tables));
    let start = Instant::now();
    bench.tree.settle(NOW).expect("all changes are merged");
    println!("settled in {:.1?}", start.elapsed());
    bench.rest();
    bench.print(tables);
    bench.print_opening(tables);
    drop(bench);
    let start = Instant::now();
    let mut bench = Bench::open(&path, tables);
    println!("opened again without a close in {:.1?}", start.elapsed());
    bench.print(tables);
    bench.print_opening(tables);
    println!("resident {} MiB", resident_bytes() >> 20);
    fs::remove_file(&path).expect("the file is there");
}

fn per(value: u64, count: u64) -> f64 {
    value as f64 / count as f64
}

fn name(number: u64) -> String {
    format!("table {number:08}")
}

struct Bench {
    tiered: Arc<Tiered>,
    tree: Tree,
    session: Session,
}

impl Bench {
    fn open(path: &std::path::Path, tables: u64) -> Bench {
        let capacity = (tables * 512 + (512 << 20)) >> 20 << 20;
        let options = FileOptions {
            capacity_bytes: Some(capacity),
            preparation: Preparation::Written,
            ..FileOptions::default()
        };
        let device = Arc::new(FileDevice::open(path, &options).expect("a file"));
        let store = StoreOptions {
            durability: Durability::Memory,
            journal_bytes: 128 << 20,
            ..StoreOptions::default()
        };
        let tree = TreeOptions { directory_bytes_max: 16 << 20, ..TreeOptions::default() };
        let (memory_bytes, admission) = ((128 << 20) + 16 * tables, Admission::Always);
        let options = TieredOptions { store, memory_bytes, cache_bytes: Some(0), admission };
        let part = tree.memory_bytes_max();
        let tiered = Tiered::open_reserving(device, options, part, NOW).expect("a store");
        let tree = Tree::open(Arc::clone(&tiered), tree, NOW).expect("tables");
        let session = tree.session(SessionOptions::default()).expect("a session");
        Bench { tiered, tree, session }
    }

    /// Opens a table; where too many are open, merges make room.
    fn table(&mut self, number: u64) -> Arc<Table> {
        loop {
            match self.session.table(NOW, name(number).as_bytes()) {
                Ok(table) => return table,
                Err(error) if error.kind() == ErrorKind::Busy => self.maintain(),
                Err(error) => panic!("a table: {error}"),
            }
        }
    }

    fn maintain(&self) {
        self.tree.maintain(NOW, Budget { segments: 1 }).expect("maintenance");
    }

    fn fill(&mut self, number: u64) {
        let table = self.table(number);
        let keys: Vec<[u8; 16]> = (0..ROWS).map(|row| key(number, row)).collect();
        let write = |key| Write { table: &table, key, action: Action::Put(&VALUE) };
        let writes: Vec<Write<'_>> = keys.iter().map(|key| write(&key[..])).collect();
        loop {
            let mut was_done = true;
            let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
            self.session.write(0, NOW, batch, &mut |_, outcome| was_done = outcome.is_ok());
            if number.is_multiple_of(16) || !was_done {
                self.maintain();
            }
            while self.session.in_flight() > 0 {
                self.session
                    .poll(1, NOW, &mut |_, outcome| assert!(outcome.is_ok(), "a write"))
                    .expect("writes");
            }
            if was_done {
                return;
            }
        }
    }

    /// Lets all tables leave that can.
    fn rest(&self) {
        let open = || self.tree.statistics().open_tables;
        let mut before = u64::MAX;
        while open() < before {
            before = open();
            for _ in 0..=before / 256 + 1 {
                self.tree.maintain(LATER, Budget { segments: 1 }).expect("maintenance");
            }
        }
    }

    fn print(&self, tables: u64) {
        let (store, tree) = (self.tiered.statistics(), self.tree.statistics());
        let rows_bytes = tables * ROWS_BYTES;
        println!(
            "flash, a table, beside its rows: {:.1} B",
            per(store.flash_live_bytes - rows_bytes, tables)
        );
        println!("memory of the store's index, a table: {:.2} B", per(store.index_bytes, tables));
        let rest = tree.arena_bytes + tree.directory_bytes + tree.recovered_bytes;
        println!(
            "memory of {} open tables and changes: {:.2} B a table ({rest} B)",
            tree.open_tables,
            per(rest, tables)
        );
    }

    fn print_opening(&mut self, tables: u64) {
        let reads = |bench: &Bench| bench.tiered.statistics().device_reads;
        let (before, start) = (reads(self), Instant::now());
        for number in 0..OPENED {
            drop(self.table(mix64(number) % tables));
        }
        let opened = per(reads(self) - before, OPENED);
        let cpu = start.elapsed().as_secs_f64() * 1e6 / OPENED as f64;
        println!("open: {opened:.3} device reads, {cpu:.1} us");
        self.rest();
        let before = reads(self);
        let mut rows = 0;
        for number in 0..OPENED {
            let table = self.table(mix64(!number) % tables);
            let (low, order) = (&[][..], Order::Ascending);
            let range = RowRange { table: &table, low, high: None, limit: 100, order };
            let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                if let Ok(Outcome::Rows(found)) = outcome {
                    rows += found.len() as u64;
                }
            };
            self.session.scan(0, NOW, range, &mut visit);
            while self.session.in_flight() > 0 {
                self.session.poll(1, NOW, &mut visit).expect("reads");
            }
        }
        assert_eq!(rows, OPENED * ROWS, "all rows are there");
        println!("open and scan: {:.3} device reads", per(reads(self) - before, OPENED));
    }
}

fn key(table: u64, row: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix64(table ^ row << 40).to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

/// Memory of this process that is resident.
fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
