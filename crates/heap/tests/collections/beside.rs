//! Changes of several threads, one beside another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use entresol_heap::ErrorKind;
use entresol_heap::collections::{LinkedList, RadixTree};

use crate::bed::{Bed, committed};

const KEYS: u32 = 4000;

/// Ends what runs beside it, though it be by a panic.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// It waited for what its own thread held.
#[test]
fn whoever_visits_live_blocks_may_use_the_heap_and_its_collections() {
    let heap = Bed::new();
    let tree = committed(&heap, |tx| RadixTree::create(tx).unwrap());
    committed(&heap, |tx| (tree.put(tx, b"a", 1).unwrap(), tree.put(tx, b"b", 1).unwrap()));
    let _view = tree.view().unwrap();
    committed(&heap, |tx| tree.put(tx, b"a", 2).unwrap());
    let mut visited = 0;
    heap.visit_live(|handle, bytes| {
        assert_eq!(tree.get(b"a").unwrap(), Some(2));
        visited += usize::from(heap.usable_bytes(handle) == Some(bytes));
    });
    assert_eq!(visited as u64, heap.statistics().live);
}

/// It ended with a panic as soon as there was something to wait for.
#[test]
fn patience_may_be_as_long_as_time_goes_on() {
    let heap = Bed::new();
    let tree = committed(&heap, |tx| RadixTree::create(tx).unwrap());
    let mut first = heap.begin();
    tree.put(&mut first, b"a", 1).unwrap();
    let (begun, begins) = mpsc::channel();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = heap.begin().with_patience(Duration::MAX);
            begun.send(()).unwrap();
            tree.put(&mut second, b"b", 1).unwrap();
            second.commit().unwrap();
        });
        begins.recv().unwrap();
        (0..10_000).for_each(|_| std::thread::yield_now());
        first.commit().unwrap();
        second.join().unwrap();
    });
    assert_eq!(tree.get(b"b").unwrap(), Some(1));
}

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
        let _ending = Ending(&done);
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
        assert!(right, "a tree that counts other entries than it has");
    });
    tree.verify().unwrap();
}

/// Changes never wait in a circle. Views that see a transaction's own changes did, until both had
/// lost their patience.
#[test]
fn a_view_of_a_younger_transaction_does_not_wait_for_an_older_one_in_a_circle() {
    let heap = Bed::new();
    let tree = committed(&heap, |tx| RadixTree::create(tx).unwrap());
    let list = committed(&heap, |tx| LinkedList::create(tx).unwrap());
    std::thread::scope(|scope| {
        // Both are ended by a panic, too.
        let (put, was_put) = mpsc::channel();
        let (seen, was_seen) = mpsc::channel::<()>();
        let (heap, tree) = (&heap, &tree);
        scope.spawn(move || {
            let mut older = heap.begin();
            tree.put(&mut older, b"key", 1).unwrap();
            put.send(()).unwrap();
            let _nobody_looks = was_seen.recv();
            older.abort();
        });
        was_put.recv().unwrap();
        let patience = Duration::from_millis(200);
        let mut younger = heap.begin().with_patience(patience);
        // With nothing that the other could wait for, it may wait.
        let free = tree.view_in(&younger).map(drop).unwrap_err();
        list.push_back(&mut younger, 2).unwrap();
        let holding = tree.view_in(&younger).map(drop).unwrap_err();
        drop(seen);
        assert_eq!((free.kind(), holding.kind()), (ErrorKind::Held, ErrorKind::Busy));
    });
}
