//! The ordered map to words against `BTreeMap`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::time::Duration;

use entresol_heap::collections::{RadixTree, TreeView};
use entresol_heap::{ErrorKind, Heap, Transaction};
use entresol_sim::Random;

use crate::bed::{Bed, committed, for_seeds, key};

type Model = BTreeMap<Vec<u8>, u64>;

fn created(heap: &Heap) -> RadixTree {
    let mut transaction = heap.begin();
    let tree = RadixTree::create(&mut transaction).unwrap();
    transaction.commit().unwrap();
    tree
}

fn entries(view: &TreeView) -> Vec<(Vec<u8>, u64)> {
    let range = view.range(Bound::Unbounded, Bound::Unbounded);
    range.map(|entry| entry.map(|(key, value)| (key.to_vec(), value)).unwrap()).collect()
}

fn same(view: &TreeView, model: &Model) {
    let expected: Vec<_> = model.iter().map(|(key, value)| (key.clone(), *value)).collect();
    assert_eq!(entries(view), expected);
    assert_eq!(view.entries(), model.len() as u64);
    let mut backwards: Vec<_> = view
        .range(Bound::Unbounded, Bound::Unbounded)
        .rev()
        .map(|entry| entry.map(|(key, value)| (key.to_vec(), value)).unwrap())
        .collect();
    backwards.reverse();
    assert_eq!(backwards, expected);
    let owned = |entry: Option<(&[u8], u64)>| entry.map(|(key, value)| (key.to_vec(), value));
    assert_eq!(owned(view.first().unwrap()), expected.first().cloned());
    assert_eq!(owned(view.last().unwrap()), expected.last().cloned());
}

/// The trees are all that the heap holds, and a crash now would leave them as they are.
fn recovers(heap: &Bed, trees: &[(&RadixTree, &Model)]) {
    let checked: Vec<_> = trees.iter().map(|(tree, _)| tree.verify().unwrap()).collect();
    let blocks = checked.iter().map(|checked| checked.blocks).sum();
    heap.check(blocks, |recovered| {
        for ((tree, model), checked) in trees.iter().zip(checked) {
            let tree = RadixTree::open(recovered, tree.handle()).unwrap();
            assert_eq!(tree.verify().unwrap(), checked);
            same(&tree.view().unwrap(), model);
        }
    });
}

/// One random change, made to both.
fn change(tree: &RadixTree, model: &mut Model, transaction: &mut Transaction, random: &mut Random) {
    let key = key(random);
    match random.below(10) {
        0..=4 => {
            let value = random.below(3);
            let old = tree.put(transaction, &key, value).unwrap();
            assert_eq!(old, model.insert(key, value));
        }
        5 => {
            let value = random.below(100);
            let merge = |old: Option<u64>| value + old.unwrap_or(7);
            let old = tree.merge(transaction, &key, merge).unwrap();
            assert_eq!(old, model.get(&key).copied());
            model.insert(key, merge(old));
        }
        6..=7 => {
            let old = tree.remove(transaction, &key).unwrap();
            assert_eq!(old, model.remove(&key));
        }
        _ => {
            let Some(there) = model.keys().nth(random.below(model.len() as u64) as usize) else {
                return;
            };
            let there = there.clone();
            assert_eq!(tree.remove(transaction, &there).unwrap(), model.remove(&there));
        }
    }
}

fn bound(random: &mut Random, key: &[u8]) -> Bound<Vec<u8>> {
    match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key.to_vec()),
        _ => Bound::Excluded(key.to_vec()),
    }
}

/// A range with random bounds, taken from both ends in random turns.
fn check_range(view: &TreeView, model: &Model, random: &mut Random) {
    let (lower, upper) = (key(random), key(random));
    let (lower, upper) = (bound(random, &lower), bound(random, &upper));
    let within = |key: &[u8]| {
        let above = match &lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
        };
        let below = match &upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= upper.as_slice(),
            Bound::Excluded(upper) => key < upper.as_slice(),
        };
        above && below
    };
    let mut expected: std::collections::VecDeque<_> =
        model.iter().filter(|(key, _)| within(key)).map(|(k, v)| (k.clone(), *v)).collect();
    let mut range =
        view.range(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
    loop {
        let (found, wanted) = match random.one_in(2) {
            true => (range.next(), expected.pop_front()),
            false => (range.next_back(), expected.pop_back()),
        };
        let found = found.map(|entry| entry.map(|(key, value)| (key.to_vec(), value)).unwrap());
        assert_eq!(found, wanted);
        if wanted.is_none() {
            return;
        }
    }
}

#[test]
fn random_changes_equal_those_of_a_model() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let tree = created(&heap);
        let mut model = Model::new();
        for round in 0..400 {
            let mut transaction = heap.begin();
            let before = model.clone();
            for _ in 0..random.below(12) {
                change(&tree, &mut model, &mut transaction, &mut random);
            }
            if random.one_in(4) {
                let savepoint = transaction.savepoint();
                let kept = model.clone();
                for _ in 0..random.below(6) {
                    change(&tree, &mut model, &mut transaction, &mut random);
                }
                if random.one_in(2) {
                    transaction.rollback(savepoint).unwrap();
                    model = kept;
                }
            }
            if random.one_in(4) {
                transaction.abort();
                model = before;
            } else {
                transaction.commit().unwrap();
            }
            let probe = key(&mut random);
            assert_eq!(tree.get(&probe).unwrap(), model.get(&probe).copied());
            check_range(&tree.view().unwrap(), &model, &mut random);
            if round % 20 == 0 {
                same(&tree.view().unwrap(), &model);
            }
            if round % 100 == 0 {
                recovers(&heap, &[(&tree, &model)]);
            }
        }
        same(&tree.view().unwrap(), &model);
        committed(&heap, |transaction| tree.destroy(transaction).unwrap());
        heap.check(0, |_| {});
    });
}

#[test]
fn every_live_block_is_one_of_a_tree_or_of_the_program() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let trees = [created(&heap), created(&heap)];
        let mut models = [Model::new(), Model::new()];
        let mut own = Vec::new();
        for _ in 0..40 {
            committed(&heap, |transaction| {
                let bytes = [8, 100, 3000, 40_000][random.below(4) as usize];
                own.push(transaction.allocate(bytes).unwrap());
                let chosen = random.below(2) as usize;
                for _ in 0..random.below(20) {
                    change(&trees[chosen], &mut models[chosen], transaction, &mut random);
                }
            });
        }
        for tree in &trees {
            let mut blocks = tree.blocks().unwrap();
            let mut count = 0;
            while let Some(handle) = blocks.next_block().unwrap() {
                own.push(handle);
                count += 1;
            }
            assert_eq!(count, tree.verify().unwrap().blocks);
        }
        own.sort_unstable();
        let most = 1 + random.below(100) as usize;
        let mut listed = Vec::new();
        let mut from = 0;
        loop {
            let piece = heap.live_from(from, most);
            let Some(last) = piece.last() else { break };
            from = last + 1;
            listed.extend(piece);
        }
        assert_eq!(listed, own);
    });
}

#[test]
fn a_view_never_changes_and_nothing_it_sees_is_reused() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let tree = created(&heap);
        let mut model = Model::new();
        let mut views: Vec<(TreeView, Model)> = Vec::new();
        for _ in 0..200 {
            let mut transaction = heap.begin();
            let before = model.clone();
            for _ in 0..random.below(12) {
                change(&tree, &mut model, &mut transaction, &mut random);
            }
            match random.one_in(5) {
                true => {
                    transaction.abort();
                    model = before;
                }
                false => transaction.commit().unwrap(),
            }
            if random.one_in(5) {
                views.push((tree.view().unwrap(), model.clone()));
            }
            if !views.is_empty() && random.one_in(6) {
                let (view, then) = views.swap_remove(random.below(views.len() as u64) as usize);
                same(&view, &then);
            }
            if let Some((view, then)) = views.first() {
                check_range(view, then, &mut random);
            }
        }
        views.iter().for_each(|(view, then)| same(view, then));
        drop(views);
        recovers(&heap, &[(&tree, &model)]);
    });
}

#[test]
fn removing_an_absent_key_removes_nothing() {
    let heap = Bed::new();
    let tree = created(&heap);
    committed(&heap, |transaction| {
        tree.put(transaction, b"key1", 1).unwrap();
        tree.put(transaction, b"key2", 2).unwrap();
        assert_eq!(tree.remove(transaction, b"key3").unwrap(), None);
        assert_eq!(tree.remove(transaction, b"kex1").unwrap(), None);
        assert_eq!(tree.remove(transaction, b"key").unwrap(), None);
        assert_eq!(tree.remove(transaction, b"key11").unwrap(), None);
    });
    assert_eq!(tree.entries().unwrap(), 2);
    assert_eq!(tree.get(b"key1").unwrap(), Some(1));
    assert_eq!(tree.get(b"key2").unwrap(), Some(2));
}

#[test]
fn every_prefix_of_a_key_is_a_key_of_its_own() {
    let heap = Bed::new();
    let tree = created(&heap);
    let whole = vec![b'x'; 300];
    committed(&heap, |transaction| {
        for length in (0..=300).rev() {
            assert_eq!(tree.put(transaction, &whole[..length], 0).unwrap(), None);
        }
    });
    let view = tree.view().unwrap();
    let lengths: Vec<usize> = entries(&view).iter().map(|(key, _)| key.len()).collect();
    assert_eq!(lengths, (0..=300).collect::<Vec<_>>());
    assert_eq!(tree.get(&whole).unwrap(), Some(0), "a value of 0 is there");
    committed(&heap, |transaction| {
        for length in 0..=300 {
            assert_eq!(tree.remove(transaction, &whole[..length]).unwrap(), Some(0));
            tree.verify().unwrap();
        }
    });
    assert_eq!(tree.entries().unwrap(), 0);
}

#[test]
fn keys_may_agree_beyond_what_a_link_can_tell() {
    let heap = Bed::new();
    let tree = created(&heap);
    let mut model = Model::new();
    let lengths = [65_533, 65_534, 65_535, 65_536, 65_537, 70_000];
    committed(&heap, |transaction| {
        for length in lengths {
            for last in [0, 1, 2, 200, 255] {
                let mut key = vec![9; length];
                key.push(last);
                tree.put(transaction, &key, length as u64).unwrap();
                model.insert(key, length as u64);
            }
        }
    });
    same(&tree.view().unwrap(), &model);
    for (key, value) in &model {
        assert_eq!(tree.get(key).unwrap(), Some(*value));
    }
    recovers(&heap, &[(&tree, &model)]);
    for key in model.keys() {
        committed(&heap, |transaction| tree.remove(transaction, key).unwrap().unwrap());
    }
    assert_eq!(tree.verify().unwrap().blocks, 1);
}

#[test]
fn splits_move_exactly_the_upper_half() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let tree = created(&heap);
        let mut model = Model::new();
        for _ in 0..random.below(60) {
            committed(&heap, |tx| change(&tree, &mut model, tx, &mut random));
        }
        // With and without a view, which must go on seeing all of it.
        let view = random.one_in(2).then(|| tree.view().unwrap());
        let then = model.clone();
        let other = committed(&heap, |transaction| tree.split(transaction).unwrap());
        let Some(other) = other else {
            assert!(model.len() < 2);
            return;
        };
        let middle = model.keys().nth(model.len() - model.len() / 2).unwrap().clone();
        let mut upper = model.split_off(&middle);
        for _ in 0..30 {
            committed(&heap, |tx| change(&other, &mut upper, tx, &mut random));
            committed(&heap, |tx| change(&tree, &mut model, tx, &mut random));
        }
        same(&tree.view().unwrap(), &model);
        same(&other.view().unwrap(), &upper);
        if let Some(view) = view {
            same(&view, &then);
        }
        let at = key(&mut random);
        let third = committed(&heap, |transaction| other.split_off(transaction, &at).unwrap());
        let highest = upper.split_off(&at);
        same(&other.view().unwrap(), &upper);
        same(&third.view().unwrap(), &highest);
        recovers(&heap, &[(&tree, &model), (&other, &upper), (&third, &highest)]);
    });
}

#[test]
fn clear_gives_every_entry_and_frees_all() {
    let heap = Bed::new();
    let tree = created(&heap);
    let mut model = Model::new();
    let mut random = Random::new(1);
    for _ in 0..300 {
        committed(&heap, |tx| change(&tree, &mut model, tx, &mut random));
    }
    let mut seen = Vec::new();
    committed(&heap, |tx| tree.clear(tx, |key, value| seen.push((key.to_vec(), value))).unwrap());
    assert_eq!(seen, model.into_iter().collect::<Vec<_>>());
    assert_eq!(tree.entries().unwrap(), 0);
    heap.check(1, |_| {});
}

#[test]
fn a_tree_is_found_again_by_its_handle_and_by_nothing_else() {
    let heap = Bed::new();
    let tree = created(&heap);
    committed(&heap, |transaction| tree.put(transaction, b"k", 5).unwrap());
    let again = RadixTree::open(&heap, tree.handle()).unwrap();
    assert_eq!(again.get(b"k").unwrap(), Some(5));
    let block = committed(&heap, |transaction| transaction.allocate(64).unwrap());
    for handle in [0, 8, block, tree.handle() + 8, u64::MAX, u64::MAX - 7] {
        let error = RadixTree::open(&heap, handle).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    let map = entresol_heap::collections::RadixMap::open(&heap, tree.handle());
    assert_eq!(map.err().unwrap().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_second_transaction_of_a_thread_is_refused_until_the_first_ends() {
    let heap = Bed::new();
    let tree = created(&heap);
    let mut first = heap.begin();
    tree.put(&mut first, b"a", 1).unwrap();
    let mut second = heap.begin();
    assert_eq!(tree.put(&mut second, b"b", 2).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(tree.view().err().unwrap().kind(), ErrorKind::Busy);
    assert_eq!(tree.view_in(&first).unwrap().entries(), 1);
    first.abort();
    tree.put(&mut second, b"b", 2).unwrap();
    second.commit().unwrap();
    assert_eq!(tree.get(b"a").unwrap(), None);
    assert_eq!(tree.get(b"b").unwrap(), Some(2));
}

#[test]
fn without_patience_changes_and_views_do_not_wait() {
    let heap = Bed::new();
    let tree = created(&heap);
    let mut first = heap.begin();
    tree.put(&mut first, b"a", 1).unwrap();
    let mut second = heap.begin().with_patience(Duration::ZERO);
    assert_eq!(tree.put(&mut second, b"b", 2).unwrap_err().kind(), ErrorKind::Held);
    assert_eq!(tree.try_view().err().unwrap().kind(), ErrorKind::Held);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut third = heap.begin().with_patience(Duration::from_nanos(1));
            tree.put(&mut third, b"c", 3).unwrap_err().kind()
        });
        assert_eq!(other.join().unwrap(), ErrorKind::Held);
    });
    first.commit().unwrap();
    tree.put(&mut second, b"b", 2).unwrap();
    second.commit().unwrap();
    assert_eq!(tree.try_view().unwrap().entries(), 2);
}

#[test]
fn the_version_is_odd_in_no_pause_and_tells_of_changes_and_aborts() {
    let heap = Bed::new();
    let tree = created(&heap);
    let version = || tree.version().load(Ordering::Acquire);
    let before = version();
    let mut transaction = heap.begin();
    tree.put(&mut transaction, b"a", 1).unwrap();
    let between = version();
    transaction.abort();
    let after = version();
    assert!(before < between && between < after, "{before} {between} {after}");
    assert!([before, between, after].iter().all(|version| version.is_multiple_of(2)));
}

/// Readers beside a writer see each key's committed history and no other key's value: values carry
/// their keys, keys below 1000 are never removed.
#[test]
fn readers_beside_a_writer_see_whole_entries_only() {
    let heap = Bed::new();
    let tree = created(&heap);
    let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    committed(&heap, |tx| {
        for number in 0..1000u64 {
            tree.put(tx, &spread(number), number).unwrap();
        }
    });
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (tree, done) = (&tree, &done);
            scope.spawn(move || {
                let mut random = Random::new(reader);
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let number = random.below(3000);
                    match tree.get(&spread(number)).unwrap() {
                        Some(value) => assert_eq!(value % 1_000_000, number),
                        None => assert!(number >= 1000, "{number} was never removed"),
                    }
                    if random.one_in(200) {
                        let view = tree.view().unwrap();
                        let read = entries(&view);
                        assert_eq!(read.len() as u64, view.entries());
                        assert!(read.is_sorted_by(|a, b| a.0 < b.0));
                    }
                }
            });
        }
        let mut random = Random::new(9);
        for round in 0..20_000u64 {
            let number = random.below(3000);
            let mut transaction = heap.begin();
            if number < 1000 || random.one_in(2) {
                tree.put(&mut transaction, &spread(number), round * 1_000_000 + number).unwrap();
            } else {
                tree.remove(&mut transaction, &spread(number)).unwrap();
            }
            match number >= 1000 && random.one_in(5) {
                true => transaction.abort(),
                false => transaction.commit().unwrap(),
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    heap.check(tree.verify().unwrap().blocks, |_| {});
}

#[test]
fn no_room_in_a_put_leaves_the_transaction_usable() {
    let heap = Bed::of(1 << 20);
    let tree = created(&heap);
    let mut transaction = heap.begin();
    let mut model = Model::new();
    for number in 0u64.. {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        match tree.put(&mut transaction, &key, number) {
            Ok(_) => model.insert(key.to_vec(), number),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full);
                break;
            }
        };
    }
    let first = model.pop_first().unwrap();
    assert_eq!(tree.remove(&mut transaction, &first.0).unwrap(), Some(first.1));
    transaction.commit().unwrap();
    same(&tree.view().unwrap(), &model);
    recovers(&heap, &[(&tree, &model)]);
}

/// Exact figures of the engine, not of a clock: random keys of eight bytes, a transaction each.
#[test]
fn a_put_takes_five_fences_and_ten_lines_at_most() {
    let bed = Bed::by_stores();
    let tree = created(&bed);
    let count = 20_000;
    let mut before = bed.statistics();
    let mut cost = |what: &str| {
        let now = bed.statistics();
        assert_eq!(now.checkpoints, before.checkpoints, "the log holds all of it");
        let each = |now: u64, before: u64| (now - before) as f64 / count as f64;
        let (fences, lines) = (each(now.syncs, before.syncs), each(now.lines, before.lines));
        println!("{what}: {fences:.2} fences, {lines:.2} lines");
        assert!(fences <= 5.0 && lines <= 10.0, "{what}: {fences} fences, {lines} lines");
        before = now;
    };
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    for number in 0..count {
        committed(&bed, |tx| tree.put(tx, &key(number), number).unwrap());
    }
    cost("put");
    for number in 0..count {
        committed(&bed, |tx| tree.put(tx, &key(number), 0).unwrap());
    }
    cost("put over");
    for number in 0..count {
        committed(&bed, |tx| tree.remove(tx, &key(number)).unwrap());
    }
    cost("remove");
}

/// Two threads change two trees in opposite orders; who would close a circle of waiting is told so,
/// and everything that was committed is there.
#[test]
fn transactions_over_two_trees_never_wait_in_a_circle() {
    let heap = Bed::new();
    let trees = [created(&heap), created(&heap)];
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (heap, trees) = (&heap, &trees);
            scope.spawn(move || {
                let key = |round: u64| [thread, round].map(u64::to_be_bytes).concat();
                for round in 0..300 {
                    loop {
                        let mut transaction = heap.begin();
                        let [first, second] = [thread, 1 - thread].map(|at| &trees[at as usize]);
                        let put = first
                            .put(&mut transaction, &key(round), round)
                            .and_then(|_| second.put(&mut transaction, &key(round), round));
                        match put {
                            Ok(_) => break transaction.commit().unwrap(),
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy),
                        }
                        transaction.abort();
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    let counts = trees.each_ref().map(|tree| tree.verify().unwrap().entries);
    assert_eq!(counts, [600, 600]);
}
