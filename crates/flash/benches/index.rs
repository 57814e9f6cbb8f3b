//! Cost of the index: inserts with growth, lookups one at a time and prefetched eight ahead.
//!
//! `cargo bench -p entresol-flash --bench index [-- ENTRIES]`; nanoseconds of processor time an
//! operation.

use std::time::Instant;
use std::{env, fs};

use entresol_flash::index::{Candidates, Index, Place, SizeCode};

const BATCH: u64 = 8;

fn main() {
    let entries = env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let entries: u64 = entries.unwrap_or(5_000_000);
    let size = SizeCode::covering(1700);
    let mut index = Index::new(34, 1 << 24).expect("address space for a gigabyte can be reserved");

    let mut worst = 0;
    let total = nanoseconds(entries, |i| {
        let before = Instant::now();
        index.insert(mix(i), Place { address: i, size });
        worst = worst.max(before.elapsed().as_nanos());
    });
    println!("insert, with growth and the clock  {total:7.1} ns, longest {worst} ns");
    println!("memory                             {:7.2} B an entry", ratio(&index));
    report("insert into 1 M expected", 1_000_000, {
        let mut index = Index::with_expected(34, 1 << 24, 1_000_000).expect("address space");
        move |i| index.insert(mix(i), Place { address: i, size })
    });
    report("insert, with growth", entries, {
        let mut index = Index::new(34, 1 << 24).expect("address space");
        move |i| index.insert(mix(i), Place { address: i, size })
    });

    let mut found = Candidates::default();
    report("lookup, present", entries, |i| {
        index.candidates(mix(mix(i) % entries), &mut found);
        assert!(!found.is_empty());
    });
    report("lookup, absent", entries, |i| index.candidates(mix(entries + i), &mut found));
    let total = nanoseconds(entries / BATCH, |batch| {
        let hashes = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| mix(mix(batch * BATCH + i) % entries));
        hashes.iter().for_each(|hash| index.prefetch(*hash));
        for hash in hashes {
            index.candidates(hash, &mut found);
            assert!(!found.is_empty());
        }
    });
    println!("lookup, present, batches of 8      {:7.1} ns", total / BATCH as f64);
    report("replace", entries, |i| {
        index.replace(mix(i), i, Place { address: entries + i, size });
    });
    report("contains", entries, |i| assert!(index.contains(mix(i), entries + i)));
    report("remove", entries, |i| assert!(index.remove(mix(i), entries + i)));
}

fn report(what: &str, count: u64, operation: impl FnMut(u64)) {
    println!("{what:34} {:7.1} ns", nanoseconds(count, operation));
}

/// Mean processor time of `count` calls.
fn nanoseconds(count: u64, mut operation: impl FnMut(u64)) -> f64 {
    let start = on_processor();
    (0..count).for_each(&mut operation);
    (on_processor() - start) / count as f64
}

/// Nanoseconds this thread spent on a processor so far, so that neighbours count for less.
fn on_processor() -> f64 {
    let spent = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts run time");
    let first = spent.split_whitespace().next().expect("three numbers");
    first.parse().expect("a number of nanoseconds")
}

fn ratio(index: &Index) -> f64 {
    index.bytes() as f64 / index.len() as f64
}

fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
