//! A table as a queue, on a file: rows are pushed at the upper end and popped at the lower one,
//! round after round. Nothing may grow from round to round.
//!
//! `cargo bench -p entresol-tree --bench queue [-- PUSHES]`. The file is in the directory that the
//! variable `TMPDIR` names, and vanishes at the end. Counters mean something on any machine, rates
//! only on this one.

use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use entresol_device::{FileDevice, FileOptions, Preparation};
use entresol_flash::{Budget, Durability, StoreOptions, Timestamp};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{
    Action, Order, Outcome, RowRange, Session, Table, Tree, TreeOptions, Write, WriteBatch,
};

const NOW: Timestamp = Timestamp(1_000);
const ROUNDS: u64 = 10;
const VALUE: [u8; 100] = [7; 100];
/// Rows that the queue has all the time.
const DEPTH: u64 = 20_000;
/// Rows that one look at the lower end finds.
const POPS: usize = 100;

fn main() {
    let pushes = env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let pushes: u64 = pushes.unwrap_or(1_000_000) / ROUNDS;
    let path = env::temp_dir().join(format!("entresol-queue-{}", std::process::id()));
    let mut queue = Queue::open(&path);
    (0..DEPTH).for_each(|_| queue.push());
    println!("{pushes} pushes and as many pops a round, {DEPTH} rows in the queue");
    for round in 1..=ROUNDS {
        queue.round(round, pushes);
    }
    drop(queue);
    fs::remove_file(&path).expect("the file is there");
}

struct Queue {
    tiered: Arc<Tiered>,
    tree: Tree,
    session: Session,
    table: Arc<Table>,
    next: u64,
}

impl Queue {
    fn open(path: &std::path::Path) -> Queue {
        let options = FileOptions {
            capacity_bytes: Some(512 << 20),
            preparation: Preparation::Written,
            ..FileOptions::default()
        };
        let device = Arc::new(FileDevice::open(path, &options).expect("a file"));
        let store = StoreOptions {
            durability: Durability::Memory,
            journal_bytes: 32 << 20,
            ..StoreOptions::default()
        };
        let options = TieredOptions {
            store,
            memory_bytes: 128 << 20,
            cache_bytes: Some(0),
            admission: Admission::Always,
        };
        let tiered = Tiered::open(device, options, NOW).expect("a store");
        let options = TreeOptions { waiting_bytes_max: 4 << 20, ..TreeOptions::default() };
        let tree = Tree::open(Arc::clone(&tiered), options, NOW).expect("tables");
        let options = SessionOptions { read_buffer_bytes: 16 << 10, ..SessionOptions::default() };
        let mut session = tree.session(options).expect("a session");
        let table = session.table(NOW, b"queue").expect("a table");
        Queue { tiered, tree, session, table, next: 0 }
    }

    fn round(&mut self, round: u64, pushes: u64) {
        let (tree, store) = (self.tree.statistics(), self.tiered.statistics());
        let (start, cpu) = (Instant::now(), processor_seconds());
        for _ in 0..pushes / POPS as u64 {
            (0..POPS).for_each(|_| self.push());
            self.pop_some();
        }
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), processor_seconds() - cpu);
        let (trees, stores) = (self.tree.statistics(), self.tiered.statistics());
        let operations = (2 * pushes) as f64;
        let per = |value: u64| value as f64 / operations;
        print!(
            "round {round:2} {:8.0}/s {:5.2} us CPU",
            operations / seconds,
            cpu * 1e6 / operations
        );
        print!("  device reads {:.4}", per(stores.device_reads - store.device_reads));
        let pages = |all: &entresol_tree::TreeStatistics| all.get_reads + all.merge_reads;
        print!("  pages read {:.4}", per(pages(&trees) - pages(&tree)));
        let written = stores.device_written_bytes - store.device_written_bytes;
        print!("  written {:.1} B", per(written));
        print!("  leaves absorbed {}", trees.leaves_absorbed - tree.leaves_absorbed);
        println!("  inner nodes {} B", trees.directory_bytes);
    }

    fn push(&mut self) {
        let key = self.next.to_be_bytes();
        self.next += 1;
        self.write(&key, Action::Put(&VALUE));
    }

    fn pop_some(&mut self) {
        let Queue { session, table, .. } = self;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| match outcome
            .expect("a scan, or a write that waited for its buffer")
        {
            Outcome::Rows(rows) => {
                keys.extend((0..rows.len()).map(|index| rows.row(index).0.to_vec()));
            }
            other => assert!(matches!(other, Outcome::Done(_)), "{other:?}"),
        };
        let range = RowRange { table, low: b"", high: None, limit: POPS, order: Order::Ascending };
        session.scan(0, NOW, range, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("reads");
        }
        assert_eq!(keys.len(), POPS, "the queue has rows");
        keys.iter().for_each(|key| self.write(key, Action::Remove));
    }

    fn write(&mut self, key: &[u8], action: Action<'_>) {
        let writes = [Write { table: &self.table, key, action }];
        loop {
            let mut was_done = true;
            let batch = WriteBatch { writes: &writes, durability: Some(Durability::Memory) };
            self.session.write(0, NOW, batch, &mut |_, outcome| was_done = outcome.is_ok());
            if self.next.is_multiple_of(64) || !was_done {
                self.tree.maintain(NOW, Budget { segments: 1 }).expect("maintenance");
            }
            if was_done {
                return;
            }
        }
    }
}

/// Processor time of this process.
fn processor_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    (ticks(12).unwrap_or(0.0) + ticks(13).unwrap_or(0.0)) / 100.0
}
