//! What operations cost in fences, lines and syncs: counted, not timed.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::path::PathBuf;
use std::sync::Barrier;

use entresol_heap::{CreateOptions, Durability, Heap, Medium, Statistics};

/// A heap that goes with the test.
struct Scratch {
    heap: Heap,
    path: PathBuf,
}

impl Scratch {
    fn new(name: &str, medium: Medium) -> Scratch {
        let name = format!("entresol-heap-costs-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Longer ago than this process an equal number may have ended badly.
        drop(std::fs::remove_file(&path));
        let options = CreateOptions { bytes: 64 << 20, medium, ..CreateOptions::default() };
        Scratch { heap: Heap::create(&path, &options).unwrap(), path }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }
}

/// Fences and lines of each of `count` runs of `operation`, the most there were.
fn most(heap: &Heap, count: usize, mut operation: impl FnMut()) -> (u64, u64) {
    let mut most = (0, 0);
    for _ in 0..count {
        let before = heap.statistics();
        operation();
        let after = heap.statistics();
        let spent = |of: fn(&Statistics) -> u64| of(&after) - of(&before);
        let (fences, lines) = (spent(|s| s.syncs), spent(|s| s.lines));
        most = (most.0.max(fences), most.1.max(lines));
    }
    most
}

#[test]
fn small_transactions_cost_one_fence_and_few_lines() {
    let scratch = Scratch::new("lines", Medium::Bytes);
    let heap = &scratch.heap;
    let mut transaction = heap.begin();
    let blocks: Vec<u64> = (0..10).map(|_| transaction.allocate(64).unwrap()).collect();
    transaction.commit().unwrap();
    let mut number = 0_u8;
    let one = most(heap, 200, || {
        number = number.wrapping_add(1) | 1;
        let mut transaction = heap.begin();
        transaction.write(blocks[0], &[number; 64]).unwrap();
        transaction.commit().unwrap();
    });
    println!("64 bytes: fences, lines {one:?}");
    assert!(one.0 <= 1 && one.1 <= 3, "{one:?}");
    let ten = most(heap, 200, || {
        number = number.wrapping_add(1) | 1;
        let mut transaction = heap.begin();
        for block in &blocks {
            transaction.write(*block, &[number; 64]).unwrap();
        }
        transaction.commit().unwrap();
    });
    println!("10 x 64 bytes: fences, lines {ten:?}");
    assert!(ten.0 <= 1 && ten.1 <= 14, "{ten:?}");
}

#[test]
fn an_allocation_and_its_free_cost_a_fence_each() {
    let scratch = Scratch::new("allocations", Medium::Bytes);
    let heap = &scratch.heap;
    let mut transaction = heap.begin();
    let root = transaction.allocate(8).unwrap();
    let keeps_the_span = transaction.allocate(64).unwrap();
    transaction.write_u64(keeps_the_span, 1).unwrap();
    transaction.commit().unwrap();
    let cost = most(heap, 100, || {
        let mut transaction = heap.begin();
        let block = transaction.allocate(64).unwrap();
        transaction.write_u64(root, block).unwrap();
        transaction.commit().unwrap();
        let mut transaction = heap.begin();
        transaction.free(block).unwrap();
        transaction.write_u64(root, 0).unwrap();
        transaction.commit().unwrap();
    });
    println!("allocation and free, two transactions: fences, lines {cost:?}");
    assert!(cost.0 <= 2 && cost.1 <= 7, "{cost:?}");
}

#[test]
fn threads_share_syncs() {
    const THREADS: u64 = 64;
    const COMMITS: u64 = 20;
    let scratch = Scratch::new("syncs", Medium::Pages);
    let heap = &scratch.heap;
    let mut transaction = heap.begin();
    let table = transaction.allocate(THREADS * 64).unwrap();
    transaction.commit().unwrap();
    let before = heap.statistics();
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for number in 0..COMMITS {
                    let mut transaction = heap.begin();
                    transaction.write_u64(table + thread * 64, number).unwrap();
                    // Long enough for others to come, however slow the machine.
                    let durability = Durability::Group { delay_us: 2000 };
                    transaction.commit_with(durability).unwrap();
                }
            });
        }
    });
    let after = heap.statistics();
    let (syncs, commits) = (after.syncs - before.syncs, after.commits - before.commits);
    println!("{commits} commits, {syncs} syncs");
    assert_eq!(commits, THREADS * COMMITS);
    assert!(syncs * 4 <= commits, "{syncs} syncs for {commits} commits");
}
