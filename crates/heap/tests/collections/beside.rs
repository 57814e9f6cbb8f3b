//! Changes of several threads, one beside another.

use std::sync::atomic::{AtomicBool, Ordering};

use entresol_heap::collections::RadixTree;

use crate::bed::{Bed, committed};

const KEYS: u32 = 4000;

/// How many entries move was counted before the transaction held the tree: entries that another one
/// put or removed meanwhile were in neither count.
#[test]
fn trees_that_are_divided_beside_changes_count_what_they_hold() {
    let heap = Bed::of(16 << 20);
    let tree = committed(&heap, |tx| RadixTree::create(tx).unwrap());
    committed(&heap, |tx| {
        for number in 0..KEYS {
            tree.put(tx, &number.to_be_bytes(), 1).unwrap();
        }
    });
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number = (number + 1) % KEYS;
                let key = (KEYS + number).to_be_bytes();
                let mut transaction = heap.begin();
                if tree.remove(&mut transaction, &key).unwrap().is_none() {
                    tree.put(&mut transaction, &key, 2).unwrap();
                }
                transaction.commit().unwrap();
            }
        });
        let right = (0..40).all(|round| {
            let mut transaction = heap.begin();
            let other = match round % 2 {
                0 => tree.split_off(&mut transaction, &1_u32.to_be_bytes()).unwrap(),
                _ => tree.split(&mut transaction).unwrap().unwrap(),
            };
            let right = other.verify().is_ok() && tree.verify().is_ok();
            transaction.abort();
            right
        });
        done.store(true, Ordering::Relaxed);
        assert!(right, "a tree that counts other entries than it has");
    });
    tree.verify().unwrap();
}
