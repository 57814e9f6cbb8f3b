//! Cost of transactions: nanoseconds of processor time an operation, and commits a second.
//!
//! `cargo bench -p entresol-heap --bench transactions [-- FOLDER]`: stores and fences on a file in
//! `/dev/shm`, pages and syncs on one in FOLDER (the current folder unless told otherwise), in the
//! clear and encrypted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_heap::{Aes256Gcm, Cipher, CreateOptions, Durability, Heap, Medium};

/// Operations of a measurement of processor time.
const OPERATIONS: u64 = 200_000;
/// How long commits a second are measured.
const SPAN: Duration = Duration::from_secs(3);
/// Measurements of processor time, of which the least counts.
const TURNS: u64 = 5;

struct Scratch {
    heap: Heap,
    path: PathBuf,
}

impl Scratch {
    fn new(folder: &Path, medium: Medium, cipher: Option<Arc<dyn Cipher>>) -> Scratch {
        let path = folder.join(format!("entresol-heap-bench-{}", std::process::id()));
        let bytes = 256 << 20;
        let options = CreateOptions { bytes, medium, cipher, ..CreateOptions::default() };
        let heap = Heap::create(&path, &options).expect("a heap of 256 MiB can be made");
        Scratch { heap, path }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.path).expect("it was made above");
    }
}

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = PathBuf::from(folder.unwrap_or_else(|| ".".to_owned()));
    let scratch = Scratch::new(Path::new("/dev/shm"), Medium::Bytes, None);
    let heap = &scratch.heap;
    println!("stores and fences, /dev/shm: processor time an operation");
    let blocks = allocate(heap, 10);
    report("transaction of 64 B", |_| write(heap, &blocks[..1]));
    report("transaction of 10 x 64 B", |_| write(heap, &blocks));
    report("allocation and free of 64 B, one transaction each", |_| {
        let mut transaction = heap.begin();
        let block = transaction.allocate(64).expect("there is room");
        transaction.commit().expect("it commits");
        let mut transaction = heap.begin();
        transaction.free(block).expect("it is live");
        transaction.commit().expect("it commits");
    });
    report("allocation and free of 64 B in one transaction", |_| {
        let mut transaction = heap.begin();
        let block = transaction.allocate(64).expect("there is room");
        transaction.free(block).expect("it is live");
        transaction.commit().expect("it commits");
    });
    drop(scratch);
    let aes: Arc<dyn Cipher> = Arc::new(Aes256Gcm::new([7; 32]));
    for (kind, cipher) in [("in the clear", None), ("encrypted", Some(aes))] {
        let scratch = Scratch::new(&folder, Medium::Pages, cipher);
        let place = folder.display();
        println!("pages and syncs, {place}, {kind}: transactions of 64 B a second");
        for threads in [1, 4, 16, 64] {
            rate(&scratch.heap, threads);
        }
        let heap = &scratch.heap;
        let blocks = allocate(heap, 10);
        println!("pages, {kind}, commits that wait for nothing: processor time an operation");
        report("transaction of 64 B", |_| write_with(heap, &blocks[..1], Durability::None));
        report("transaction of 10 x 64 B", |_| write_with(heap, &blocks, Durability::None));
    }
}

fn allocate(heap: &Heap, count: u64) -> Vec<u64> {
    let mut transaction = heap.begin();
    let blocks = (0..count).map(|_| transaction.allocate(64).expect("there is room")).collect();
    transaction.commit().expect("it commits");
    blocks
}

fn write(heap: &Heap, blocks: &[u64]) {
    write_with(heap, blocks, Durability::Sync);
}

fn write_with(heap: &Heap, blocks: &[u64], durability: Durability) {
    let mut transaction = heap.begin();
    for block in blocks {
        transaction.write(*block, &[7; 64]).expect("it is a block");
    }
    transaction.commit_with(durability).expect("it commits");
}

fn report(what: &str, mut operation: impl FnMut(u64)) {
    let turn = |_| {
        let before = processor_ns();
        (0..OPERATIONS).for_each(&mut operation);
        (processor_ns() - before) as f64 / OPERATIONS as f64
    };
    let least = (0..TURNS).map(turn).fold(f64::MAX, f64::min);
    println!("  {what:52} {least:8.1} ns");
}

/// Commits a second of so many threads, each with a block of its own.
fn rate(heap: &Heap, threads: u64) {
    let blocks = allocate(heap, threads);
    let before = heap.statistics();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for block in &blocks {
            scope.spawn(move || {
                while start.elapsed() < SPAN {
                    write(heap, &[*block]);
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let after = heap.statistics();
    let commits = (after.commits - before.commits) as f64;
    let syncs = (after.syncs - before.syncs) as f64;
    println!("  {threads:3} threads {:10.0}/s, {:6.1} a sync", commits / seconds, commits / syncs);
}

/// Processor time of this thread, nanoseconds.
fn processor_ns() -> u64 {
    let times = fs::read_to_string("/proc/thread-self/schedstat").expect("the system counts it");
    let first = times.split_whitespace().next().and_then(|ns| ns.parse().ok());
    first.expect("the first number is the time on a processor")
}
