//! Collections whose words were overwritten answer with errors or with something, and never read
//! outside the heap, go on for ever or panic.

use std::ops::Bound;

use entresol_heap::collections::{AppendLog, Deque, HashMap, LinkedList, RadixTree};
use entresol_heap::{Heap, Transaction};
use entresol_sim::Random;

use crate::bed::{Bed, committed, for_seeds, key};

/// Overwrites a word of some live block with something random or nearly right.
fn damage(heap: &Heap, random: &mut Random) {
    let mut blocks = Vec::new();
    heap.visit_live(|handle, bytes| blocks.push((handle, bytes)));
    let pick = |random: &mut Random| blocks[random.below(blocks.len() as u64) as usize];
    let (handle, bytes) = pick(random);
    let offset = handle + random.below(bytes / 8) * 8;
    let value = match random.below(5) {
        0 => random.next_u64(),
        1 => pick(random).0,
        2 => heap.load_u64(offset).unwrap() ^ (1 << random.below(64)),
        3 => 0,
        _ => u64::MAX - random.below(64),
    };
    committed(heap, |tx| tx.write_u64(offset, value).unwrap());
}

/// What a collection is filled with, and everything that can be asked of one afterwards.
fn survives(fill: impl Fn(&mut Transaction) -> u64, ask: impl Fn(&Heap, u64, &mut Random)) {
    for_seeds(6, |seed| {
        let mut random = Random::new(seed);
        let bed = Bed::of(1 << 20);
        let handle = committed(&bed, |tx| fill(tx));
        for _ in 0..150 {
            damage(&bed, &mut random);
            ask(&bed, handle, &mut random);
        }
    });
}

/// Makes a change and takes it back, so that only the damage stays.
fn tried<T>(heap: &Heap, change: impl FnOnce(&mut Transaction) -> T) {
    let mut transaction = heap.begin();
    change(&mut transaction);
    transaction.abort();
}

#[test]
fn a_damaged_tree_gives_errors() {
    let fill = |tx: &mut Transaction| {
        let tree = RadixTree::create(tx).unwrap();
        let mut random = Random::new(1);
        for number in 0..400 {
            tree.put(tx, &key(&mut random), number).unwrap();
        }
        tree.handle()
    };
    survives(fill, |heap, handle, random| {
        let Ok(tree) = RadixTree::open(heap, handle) else { return };
        let (one, other) = (key(random), key(random));
        let _ = tree.get(&one);
        let _ = tree.verify();
        tried(heap, |tx| tree.put(tx, &one, 1));
        tried(heap, |tx| tree.remove(tx, &other));
        tried(heap, |tx| tree.split_off(tx, &one).map(drop));
        tried(heap, |tx| tree.clear(tx, |_, _| {}));
        if let Ok(view) = tree.view() {
            let (lower, upper) = (Bound::Included(one.as_slice()), Bound::Unbounded);
            view.range(lower, upper).count();
            view.range(lower, upper).rev().count();
            tried(heap, |tx| tree.put(tx, &other, 1));
        }
    });
}

#[test]
fn a_damaged_hash_map_gives_errors() {
    let fill = |tx: &mut Transaction| {
        let map = HashMap::create(tx, 3).unwrap();
        let mut random = Random::new(1);
        for _ in 0..200 {
            map.put(tx, &key(&mut random), b"some value").unwrap();
        }
        map.handle()
    };
    survives(fill, |heap, handle, random| {
        let Ok(map) = HashMap::open(heap, handle) else { return };
        let key = key(random);
        let _ = map.get(&key);
        tried(heap, |tx| map.put(tx, &key, b"another"));
        tried(heap, |tx| map.remove(tx, &key));
        if let Ok(view) = map.view() {
            view.iter().count();
        }
    });
}

#[test]
fn a_damaged_list_gives_errors() {
    let fill = |tx: &mut Transaction| {
        let list = LinkedList::create(tx).unwrap();
        (0..100).for_each(|value| list.push_back(tx, value).unwrap());
        list.handle()
    };
    survives(fill, |heap, handle, random| {
        let Ok(list) = LinkedList::open(heap, handle) else { return };
        let index = random.below(110);
        let _ = list.get(index);
        let _ = list.copy();
        let _ = list.verify();
        tried(heap, |tx| list.insert(tx, index, 1));
        tried(heap, |tx| list.remove(tx, index));
        tried(heap, |tx| list.pop_back(tx));
        tried(heap, |tx| list.clear(tx));
    });
}

#[test]
fn a_damaged_deque_gives_errors() {
    let fill = |tx: &mut Transaction| {
        let deque = Deque::create(tx).unwrap();
        (0..700).for_each(|value| deque.push_back(tx, value).unwrap());
        deque.handle()
    };
    survives(fill, |heap, handle, random| {
        let Ok(deque) = Deque::open(heap, handle) else { return };
        let index = random.below(800);
        let _ = deque.get(index);
        let _ = deque.back();
        let _ = deque.verify();
        tried(heap, |tx| deque.push_front(tx, 1));
        tried(heap, |tx| deque.set(tx, index, 1));
        tried(heap, |tx| deque.pop_back(tx));
        tried(heap, |tx| deque.clear(tx));
        if let Ok(view) = deque.view() {
            view.range(0..1000).rev().count();
        }
    });
}

#[test]
fn a_damaged_log_gives_errors() {
    let fill = |tx: &mut Transaction| {
        let log = AppendLog::create(tx).unwrap();
        for number in 0..200 {
            assert_eq!(log.append(tx, b"an entry").unwrap(), number);
        }
        log.handle()
    };
    survives(fill, |heap, handle, random| {
        let Ok(log) = AppendLog::open(heap, handle) else { return };
        let number = random.below(220);
        let _ = log.get(number);
        let _ = log.verify();
        tried(heap, |tx| log.append(tx, b"more"));
        tried(heap, |tx| log.truncate_front(tx, number));
        if let Ok(view) = log.view() {
            view.range(0..1000).count();
        }
    });
}
