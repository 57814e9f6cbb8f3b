//! Cost of the ordered map: puts and gets of random keys of eight bytes, in nanoseconds of
//! processor time an operation; beside a probe, one read that misses the caches as theirs do.
//!
//! `cargo bench -p entresol-heap --bench collections [-- ENTRIES]`

use std::path::Path;
use std::{env, fs, process};

use entresol_heap::collections::RadixTree;
use entresol_heap::{CreateOptions, Heap, Medium};

fn main() {
    let entries = env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let entries: u64 = entries.unwrap_or(1_000_000);
    let path = Path::new("/dev/shm").join(format!("entresol-heap-{}", process::id()));
    let options =
        CreateOptions { bytes: 1 << 30, medium: Medium::Bytes, ..CreateOptions::default() };
    let heap = Heap::create(&path, &options).expect("a gigabyte of memory as a file");
    fs::remove_file(&path).expect("made above");
    let mut transaction = heap.begin();
    let tree = RadixTree::create(&mut transaction).expect("room for a header");
    transaction.commit().expect("memory takes everything");
    report("put, a transaction each", entries, |number| {
        let mut transaction = heap.begin();
        tree.put(&mut transaction, &mixed(number).to_be_bytes(), number).expect("room");
        transaction.commit().expect("memory takes everything");
    });
    let statistics = heap.statistics();
    let each = |count: u64| count as f64 / entries as f64;
    println!("{:34} {:7.2}", "record bytes of a put", each(statistics.record_bytes));
    println!("{:34} {:7.2}", "lines of a put", each(statistics.lines));
    println!("{:34} {:7.2}", "fences of a put", each(statistics.syncs));
    report("put over, a transaction each", entries, |number| {
        let mut transaction = heap.begin();
        tree.put(&mut transaction, &mixed(number).to_be_bytes(), number).expect("room");
        transaction.commit().expect("memory takes everything");
    });
    let gets = entries.max(1_000_000);
    let block = probe(entries);
    report("probe: a read that waits for another", gets, {
        let mut at = 0;
        move |_| at = block[at] as usize
    });
    report("get", gets, |number| {
        let number = mixed(number) % entries;
        assert_eq!(tree.get(&mixed(number).to_be_bytes()).expect("sound"), Some(number));
    });
    let reader = tree.reader();
    report("get under one guard", gets, |number| {
        let number = mixed(number) % entries;
        assert_eq!(reader.get(&mixed(number).to_be_bytes()).expect("sound"), Some(number));
    });
    drop(reader);
    let view = tree.view().expect("no transaction");
    let bound = std::ops::Bound::Unbounded;
    let mut range = view.range(bound, bound);
    report("next in order", entries, |_| {
        range.next().expect("as many").expect("sound");
    });
}

/// Memory of about the tree's size, in which each word tells where to read next.
fn probe(entries: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..entries * 6).collect();
    // One cycle through all of it, in random order (S. Sattolo, 1986).
    for at in (1..order.len()).rev() {
        order.swap(at, (mixed(at as u64) % at as u64) as usize);
    }
    order
}

fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn report(what: &str, count: u64, mut operation: impl FnMut(u64)) {
    let before = processor_nanoseconds();
    (0..count).for_each(&mut operation);
    println!("{what:34} {:7.1} ns", (processor_nanoseconds() - before) / count as f64);
}

/// What this thread used of a processor.
fn processor_nanoseconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}
