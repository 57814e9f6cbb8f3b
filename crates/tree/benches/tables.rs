//! Counters and costs of ordered tables on a file: rows of 16 random bytes and 100 of value.
//!
//! `cargo bench -p entresol-tree --bench tables [-- ROWS]`. The file is in the directory that the
//! variable `TMPDIR` names, and vanishes at the end. Ratios and counters mean something on any
//! machine, rates only on this one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use entresol_device::{FileDevice, FileOptions, Preparation};
use entresol_flash::{Budget, Durability, StoreOptions, Timestamp};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{
    Action, Order, Outcome, RowAt, RowRange, Session, Table, Tree, TreeOptions, TreeStatistics,
    Write, WriteBatch,
};
use entresol_workload::mix64;

const NOW: Timestamp = Timestamp(1_000);
const VALUE: [u8; 100] = [7; 100];
const ROW_BYTES: u64 = 116;
/// Gets in flight at once.
const IN_FLIGHT: usize = 32;

fn main() {
    let rows = env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let rows: u64 = rows.unwrap_or(1_000_000);
    let path = env::temp_dir().join(format!("entresol-tables-{}", std::process::id()));
    let data = rows * ROW_BYTES;
    let mut bench = Bench::open(&path, rows);
    bench.phase("load, random", rows, |bench, number| bench.put(number));
    bench.phase("overwrite, uniform", rows, |bench, number| bench.put(mix64(number) % rows));
    bench.phase("overwrite again", rows, |bench, number| bench.put(mix64(!number) % rows));
    bench.tree.settle(NOW).expect("all changes are merged");
    bench.phase("get", rows / 2, |bench, number| bench.get(mix64(number ^ 5) % rows));
    bench.phase("get, absent", rows / 4, |bench, number| bench.get(rows + number));
    bench.phase("scan of 100", rows / 200, |bench, number| bench.scan(mix64(number) % rows));
    let tree = bench.tree.statistics();
    println!("rows {rows}, data {} MiB", data >> 20);
    println!("memory of inner nodes a row {:.2} B", tree.directory_bytes as f64 / rows as f64);
    let index = bench.tiered.statistics().index_bytes as f64 / rows as f64;
    println!("memory of the store's index a row {index:.2} B");
    drop(bench);
    fs::remove_file(&path).expect("the file is there");
}

struct Bench {
    tiered: Arc<Tiered>,
    tree: Tree,
    session: Session,
    table: Arc<Table>,
    found: u64,
}

impl Bench {
    fn open(path: &std::path::Path, rows: u64) -> Bench {
        let data = rows * ROW_BYTES;
        // The changes of a sweep, 1.33 times their bytes, below three quarters of it.
        let journal_bytes = (data / 5).max(16 << 20);
        // Pages of the rows take 1.33 times their bytes after many overwrites: 70 % of it.
        let capacity = (data * 19 / 10 + journal_bytes + (8 << 20)) >> 20 << 20;
        let options = FileOptions {
            capacity_bytes: Some(capacity),
            preparation: Preparation::Written,
            ..FileOptions::default()
        };
        let device = Arc::new(FileDevice::open(path, &options).expect("a file"));
        let store = StoreOptions {
            durability: Durability::Memory,
            // The journal has a part in each shard, and tables use that of one.
            shards: 1,
            journal_bytes,
            ..StoreOptions::default()
        };
        let memory_bytes = (128 << 20) + data / 10;
        let admission = Admission::Always;
        let options = TieredOptions { store, memory_bytes, cache_bytes: Some(0), admission };
        let tiered = Tiered::open(device, options, NOW).expect("a store");
        let waiting_bytes_max = data / 20;
        let options = TreeOptions { waiting_bytes_max, ..TreeOptions::default() };
        let tree = Tree::open(Arc::clone(&tiered), options, NOW).expect("tables");
        let options = SessionOptions { read_buffer_bytes: 16 << 10, ..SessionOptions::default() };
        let mut session = tree.session(options).expect("a session");
        let table = session.table(NOW, b"rows").expect("a table");
        Bench { tiered, tree, session, table, found: 0 }
    }

    fn phase(&mut self, name: &str, count: u64, mut step: impl FnMut(&mut Bench, u64)) {
        let (tree, store) = (self.tree.statistics(), self.tiered.statistics());
        let (start, cpu) = (Instant::now(), processor_seconds());
        for number in 0..count {
            step(self, number);
        }
        self.drain(0);
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), processor_seconds() - cpu);
        let after = (self.tree.statistics(), self.tiered.statistics());
        let per = |value: u64| value as f64 / count as f64;
        let put = after.0.change_bytes - tree.change_bytes;
        let written = after.1.device_written_bytes - store.device_written_bytes;
        print!("{name:20} {:9.0}/s", count as f64 / seconds);
        print!("  {:6.2} us CPU", cpu * 1e6 / count as f64);
        print!("  device reads {:.3}", per(after.1.device_reads - store.device_reads));
        print!("  pages {:.3}", per(after.0.get_reads - tree.get_reads));
        if put > 0 {
            print!("  merge reads {:.3}", per(after.0.merge_reads - tree.merge_reads));
            print!("  amplification {:.2}", written as f64 / put as f64);
            print_parts(&after.0, &tree, put);
            let moved = after.1.reclaim_moved_bytes - store.reclaim_moved_bytes;
            print!(" moved {:.2}", moved as f64 / put as f64);
        }
        println!();
    }

    fn put(&mut self, number: u64) {
        let key = key(number);
        let write = Write { table: &self.table, key: &key, action: Action::Put(&VALUE) };
        loop {
            let mut was_done = true;
            let batch = WriteBatch { writes: &[write], durability: Some(Durability::Memory) };
            self.session.write(0, NOW, batch, &mut |_, outcome| was_done = outcome.is_ok());
            if number.is_multiple_of(64) || !was_done {
                self.tree.maintain(NOW, Budget { segments: 1 }).expect("maintenance");
            }
            if was_done {
                return;
            }
        }
    }

    fn get(&mut self, number: u64) {
        let Bench { session, table, found, .. } = self;
        let key = key(number);
        session.get(0, NOW, RowAt { table, key: &key }, &mut |_, outcome| {
            *found += u64::from(matches!(outcome, Ok(Outcome::Found(_))));
        });
        self.drain(IN_FLIGHT);
    }

    fn scan(&mut self, number: u64) {
        let Bench { session, table, found, .. } = self;
        let low = key(number);
        let range = RowRange { table, low: &low, high: None, limit: 100, order: Order::Ascending };
        session.scan(0, NOW, range, &mut |_, outcome| {
            if let Ok(Outcome::Rows(rows)) = outcome {
                *found += rows.len() as u64;
            }
        });
        self.drain(IN_FLIGHT);
    }

    fn drain(&mut self, most: usize) {
        while self.session.in_flight() > most {
            let found = &mut self.found;
            let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                *found += u64::from(outcome.is_ok());
            };
            self.session.poll(1, NOW, &mut visit).expect("reads");
        }
    }
}

fn print_parts(after: &TreeStatistics, before: &TreeStatistics, put: u64) {
    let share = |bytes: u64| bytes as f64 / put as f64;
    print!("  (journal {:.2}", share(after.journal_bytes - before.journal_bytes));
    print!(", pages {:.2}", share(after.page_bytes - before.page_bytes));
    print!(", leaves {}", after.leaf_writes - before.leaf_writes);
    print!(", delta pages {})", after.delta_writes - before.delta_writes);
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix64(number).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Processor time of this process.
fn processor_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: VecDeque<&str> = text.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    (ticks(12).unwrap_or(0.0) + ticks(13).unwrap_or(0.0)) / 100.0
}
