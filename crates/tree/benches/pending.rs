//! Cost of pending changes, in nanoseconds of processor time an operation, beside a probe: one
//! read that misses the caches as theirs do. Keys have 16 random bytes, values 100.
//!
//! `cargo bench -p entresol-tree --bench pending [-- CHANGES]`

use std::hint::black_box;
use std::ops::Bound;
use std::{env, fs};

use entresol_tree::format::Effect;
use entresol_tree::pending::{Arena, Pending};
use entresol_tree::{Change, Sequence};
use entresol_workload::mix64;

const VALUE: [u8; 100] = [7; 100];

fn main() {
    let changes = env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let changes: u64 = changes.unwrap_or(400_000);
    let probe = probe(changes);
    let mut at = 0;
    report("probe: a read that waits for another", 2_000_000, |_| at = probe[at] as usize);
    drop(probe);

    let mut arena = Arena::new(64 << 30);
    let mut pending = Pending::new();
    report("insert", changes, |number| put(&mut pending, &mut arena, number, number));
    let ratio = arena.bytes_taken() as f64 / pending.bytes() as f64;
    println!("{:38} {ratio:8.3}", "memory taken, of the bytes put");
    let gets = changes.max(2_000_000);
    let order = |number: u64| mix64(!number) % changes;
    report("put over", gets, |number| {
        put(&mut pending, &mut arena, order(number), changes + number);
    });

    report("get", gets, |number| {
        assert!(pending.get(&arena, &key(order(number))).next().is_some());
    });
    report("get, absent", gets, |number| {
        assert!(pending.get(&arena, &key(changes + number)).next().is_none());
    });
    let mut range = pending.range(&arena, Bound::Unbounded, Bound::Unbounded);
    report("next in order", changes, |_| {
        let entry = range.next().expect("as many");
        black_box(entry.key());
    });
    let leaves = changes / 50;
    let low = |leaf: u64| (((leaf << 32) / leaves) << 32).to_be_bytes();
    report("bytes in a leaf of 50 changes", leaves, |leaf| {
        let leaf = order(leaf) % leaves;
        let high = low(leaf + 1);
        pending.bytes_in(&arena, &low(leaf), (leaf + 1 < leaves).then_some(high.as_slice()));
    });
    let mut leaf = 0;
    report("remove a leaf of 50 changes", leaves, |_| {
        // Steps of a number that shares no divisor with most counts visit leaves in no order.
        leaf = (leaf + 1_000_003) % leaves;
        let high = low(leaf + 1);
        let high = (leaf + 1 < leaves).then_some(high.as_slice());
        pending.remove_through(&mut arena, &low(leaf), high, Sequence(u64::MAX));
    });
    println!("{:38} {:8}", "changes left", pending.len());
    pending.clear(&mut arena);
    report("insert, in order", changes, |number| {
        let mut key = [b'k'; 16];
        key[8..].copy_from_slice(&number.to_be_bytes());
        insert(&mut pending, &mut arena, &key, number);
    });
    let ratio = arena.bytes_taken() as f64 / pending.bytes() as f64;
    println!("{:38} {ratio:8.3}", "memory taken, of the bytes put");
    pending.clear(&mut arena);
    let mut tables: Vec<Pending> = (0..changes).map(|_| Pending::new()).collect();
    report("insert, a table each", changes, |number| {
        put(&mut tables[order(number) as usize], &mut arena, number, number);
    });
    let ratio = arena.bytes_taken() as f64 / changes as f64;
    println!("{:38} {ratio:8.1}", "memory taken, bytes a change");
}

fn put(pending: &mut Pending, arena: &mut Arena, number: u64, sequence: u64) {
    insert(pending, arena, &key(number), sequence);
}

fn insert(pending: &mut Pending, arena: &mut Arena, key: &[u8], sequence: u64) {
    let change = Change { key, effect: Effect::Put, sequence: Sequence(sequence), value: &VALUE };
    pending.insert(arena, change).expect("there is room");
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix64(number).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Memory of about the map's size, in which each word tells where to read next.
fn probe(changes: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..changes * 18).collect();
    // One cycle through all of it, in random order (S. Sattolo, 1986).
    for at in (1..order.len()).rev() {
        order.swap(at, (mix64(at as u64) % at as u64) as usize);
    }
    order
}

fn report(what: &str, count: u64, mut operation: impl FnMut(u64)) {
    let before = processor_nanoseconds();
    (0..count).for_each(&mut operation);
    println!("{what:38} {:8.1} ns", (processor_nanoseconds() - before) / count as f64);
}

/// What this thread used of a processor.
fn processor_nanoseconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}
