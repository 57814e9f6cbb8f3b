//! Openings after a kill with the journal full: what the store takes, what the tables take, also
//! in processor time, and when the first row is there.
//!
//! `cargo bench -p entresol-tree --bench recovery [-- ROWS]`. The file is in the directory that the
//! variable `TMPDIR` names, and vanishes at the end. The journal has the same size whatever the
//! number of rows.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

use entresol_device::{FileDevice, FileOptions, Preparation};
use entresol_flash::{Budget, Durability, StoreOptions, Timestamp};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{Action, Outcome, RowAt, Session, Table, Tree, TreeOptions, Write, WriteBatch};
use entresol_workload::mix64;

const NOW: Timestamp = Timestamp(1_000);
const VALUE: [u8; 100] = [7; 100];
const ROW_BYTES: u64 = 116;
/// Of all lanes; the tables use one of two.
const JOURNAL_BYTES: u64 = 256 << 20;
const WAITING_BYTES: u64 = 64 << 20;
const OPENINGS: usize = 5;

fn main() {
    let rows = env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let rows: u64 = rows.unwrap_or(1_000_000);
    let path = env::temp_dir().join(format!("entresol-recovery-{}", std::process::id()));
    let mut bench = Bench::open(&path, rows);
    (0..rows).for_each(|number| assert!(bench.put(number, true), "merges make room"));
    bench.tree.settle(NOW).expect("all changes are merged");
    // Then as many as may wait, which no merge takes out again.
    let mut waiting = 0;
    while bench.put(mix64(waiting) % rows, false) {
        waiting += 1;
    }
    bench.tiered.sync().expect("what waits is durable");
    let journal = bench.tiered.store().journal_state(0).expect("a journal");
    println!("rows {rows}, of which {waiting} wait; {journal:?}");
    drop(bench);
    for _ in 0..OPENINGS {
        let mut bench = Bench::open(&path, rows);
        let found = (0..100).filter(|number| bench.get(mix64(*number) % rows)).count();
        assert_eq!(found, 100, "all rows are there");
        let Bench { times, first, .. } = bench;
        println!(
            "store {:.0?}  tables {:.0?} ({:.0} MB/s, CPU {:.2} s)  first row {:.2?}  100: {:.2?}",
            times.store,
            times.tables,
            journal.bytes as f64 / times.tables.as_secs_f64() / 1e6,
            times.tables_processor,
            first.expect("a row was read"),
            bench.gets,
        );
    }
    fs::remove_file(&path).expect("the file is there");
}

struct Times {
    store: Duration,
    tables: Duration,
    /// Seconds.
    tables_processor: f64,
}

struct Bench {
    tiered: Arc<Tiered>,
    tree: Tree,
    session: Session,
    table: Arc<Table>,
    times: Times,
    /// From the beginning of the opening on.
    first: Option<Duration>,
    begun: Instant,
    gets: Duration,
}

impl Bench {
    fn open(path: &Path, rows: u64) -> Bench {
        let data = rows * ROW_BYTES;
        let capacity = (data * 10 / 7 + data / 4 + 3 * JOURNAL_BYTES + (128 << 20)) >> 20 << 20;
        let options = FileOptions {
            capacity_bytes: Some(capacity),
            preparation: Preparation::Written,
            ..FileOptions::default()
        };
        let begun = Instant::now();
        let device = Arc::new(FileDevice::open(path, &options).expect("a file"));
        let store = StoreOptions {
            durability: Durability::Memory,
            journal_bytes: JOURNAL_BYTES,
            ..StoreOptions::default()
        };
        let memory_bytes = (128 << 20) + data / 10 + WAITING_BYTES;
        let admission = Admission::Always;
        let options = TieredOptions { store, memory_bytes, cache_bytes: Some(0), admission };
        let tiered = Tiered::open(device, options, NOW).expect("a store");
        let (store, processor) = (begun.elapsed(), processor_seconds());
        let options = TreeOptions { waiting_bytes_max: WAITING_BYTES, ..TreeOptions::default() };
        let tree = Tree::open(Arc::clone(&tiered), options, NOW).expect("tables");
        let tables_processor = processor_seconds() - processor;
        let times = Times { store, tables: begun.elapsed() - store, tables_processor };
        let options = SessionOptions { read_buffer_bytes: 16 << 10, ..SessionOptions::default() };
        let mut session = tree.session(options).expect("a session");
        let table = session.table(NOW, b"rows").expect("a table");
        Bench { tiered, tree, session, table, times, first: None, begun, gets: Duration::ZERO }
    }

    /// Whether there was room.
    fn put(&mut self, number: u64, merges: bool) -> bool {
        let key = key(number);
        let write = Write { table: &self.table, key: &key, action: Action::Put(&VALUE) };
        loop {
            let mut was_done = true;
            let batch = WriteBatch { writes: &[write], durability: Some(Durability::Memory) };
            self.session.write(0, NOW, batch, &mut |_, outcome| was_done = outcome.is_ok());
            while self.session.in_flight() > 0 {
                let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                    was_done = outcome.is_ok();
                };
                self.session.poll(1, NOW, &mut visit).expect("writes");
            }
            if merges && (number.is_multiple_of(64) || !was_done) {
                self.tree.maintain(NOW, Budget { segments: 1 }).expect("maintenance");
            }
            if was_done || !merges {
                return was_done;
            }
        }
    }

    fn get(&mut self, number: u64) -> bool {
        let Bench { session, table, first, begun, gets, .. } = self;
        let (key, start, mut found) = (key(number), Instant::now(), false);
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            found = matches!(outcome, Ok(Outcome::Found(_)));
        };
        session.get(0, NOW, RowAt { table, key: &key }, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("reads");
        }
        *gets += start.elapsed();
        first.get_or_insert_with(|| begun.elapsed());
        found
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix64(number).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn processor_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    (ticks(12).unwrap_or(0.0) + ticks(13).unwrap_or(0.0)) / 100.0
}
