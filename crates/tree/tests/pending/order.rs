//! Which changes of a key stay, and in which order keys and changes come.

use std::ops::Bound::{Excluded, Included, Unbounded};

use entresol_tree::Sequence;
use entresol_tree::format::{Effect, INLINE_VALUE_BYTES_MAX, ROW_KEY_BYTES_MAX};
use entresol_tree::pending::{Arena, Gathered, Pending};

use crate::{Owned, owned, part, put};

fn pending(changes: &[(&[u8], Owned)]) -> (Arena, Pending) {
    let (mut arena, mut pending) = (Arena::new(1 << 24), Pending::new());
    for (key, change) in changes {
        pending.insert(&mut arena, change.of_key(key)).expect("there is room");
    }
    (arena, pending)
}

fn of_key(arena: &Arena, pending: &Pending, key: &[u8]) -> Vec<Owned> {
    pending.get(arena, key).map(Owned::of).collect()
}

fn sequences(arena: &Arena, pending: &Pending, key: &[u8]) -> Vec<u64> {
    pending.get(arena, key).map(|change| change.sequence.0).collect()
}

#[test]
fn put_and_removal_replace_what_is_older() {
    let removal = owned(Effect::Remove, 3, b"");
    let (arena, pending) =
        pending(&[(b"k", part(1, b"p")), (b"k", put(2, b"v")), (b"k", removal.clone())]);
    assert_eq!(of_key(&arena, &pending, b"k"), [removal]);
    assert_eq!((pending.len(), pending.bytes()), (1, 1));
}

#[test]
fn parts_add_to_what_is_there() {
    let (arena, pending) =
        pending(&[(b"k", put(1, b"v")), (b"k", part(2, b"p")), (b"k", part(3, b"q"))]);
    assert_eq!(of_key(&arena, &pending, b"k"), [part(3, b"q"), part(2, b"p"), put(1, b"v")]);
    let entry = pending.range(&arena, Unbounded, Unbounded).next().expect("one key");
    let oldest_first: Vec<_> = entry.oldest_first().map(|change| change.sequence.0).collect();
    assert_eq!(oldest_first, [1, 2, 3]);
}

#[test]
fn sequence_decides_in_whatever_order_changes_come() {
    let changes = [put(4, b"a"), part(9, b"b"), part(2, b"c"), put(3, b"d"), part(6, b"e")];
    let mut order = [0, 1, 2, 3, 4];
    // All orders, by Heap's algorithm without its recursion.
    let mut turns = [0; 5];
    let mut at = 0;
    while at < order.len() {
        let listed: Vec<_> =
            order.iter().map(|number| (&b"k"[..], changes[*number].clone())).collect();
        let (arena, pending) = pending(&listed);
        assert_eq!(sequences(&arena, &pending, b"k"), [9, 6, 4], "{order:?}");
        while at < order.len() && turns[at] >= at {
            turns[at] = 0;
            at += 1;
        }
        if at < order.len() {
            order.swap(if at % 2 == 0 { 0 } else { turns[at] }, at);
            turns[at] += 1;
            at = 0;
        }
    }
}

#[test]
fn many_parts_of_one_key_come_together_into_a_map_without_any() {
    let (mut arena, mut pending) = (Arena::new(1 << 24), Pending::new());
    for turn in 0..2 {
        let mut gathered = Gathered::default();
        for number in 0..200 {
            let part = part(1 + turn * 200 + number, b"p");
            gathered.push(&mut arena, part.of_key(b"k"));
        }
        gathered.sort(&arena);
        let sorted = gathered.folded(&mut arena);
        pending.insert_sorted(&mut arena, sorted);
    }
    assert_eq!(sequences(&arena, &pending, b"k"), (1..=400).rev().collect::<Vec<u64>>());
}

#[test]
fn change_that_comes_again_changes_nothing() {
    let all = [put(5, b"a"), part(6, b"b"), part(7, b"c")];
    for again in &all {
        let listed: Vec<_> =
            all.iter().chain([again]).map(|one| (&b"k"[..], one.clone())).collect();
        let (arena, pending) = pending(&listed);
        assert_eq!(sequences(&arena, &pending, b"k"), [7, 6, 5]);
        assert_eq!((pending.len(), pending.bytes()), (3, 4));
    }
}

#[test]
fn keys_that_begin_another_come_before_it() {
    let keys: [&[u8]; 7] = [b"\0", b"\0\0", b"a", b"a\0", b"a\0\0\0\0\0\0\0\0\0", b"a\0b", b"ab"];
    let mut listed: Vec<_> = keys.iter().map(|key| (*key, put(1, key))).collect();
    for _ in 0..listed.len() {
        listed.rotate_left(1);
        let (arena, pending) = pending(&listed);
        let found = pending.range(&arena, Unbounded, Unbounded).map(|entry| entry.key());
        assert!(found.eq(keys));
        for key in keys {
            assert_eq!(of_key(&arena, &pending, key), [put(1, key)]);
        }
        let found = pending.range(&arena, Excluded(b"a"), Included(b"a\0b"));
        assert!(found.map(|entry| entry.key()).eq(keys[3..6].iter().copied()));
        assert!(pending.get(&arena, b"a\0\0").next().is_none());
    }
}

#[test]
fn merge_leaves_newer_changes_and_other_keys() {
    let (mut arena, mut pending) = pending(&[
        (b"a", put(1, b"1")),
        (b"b", put(2, b"2")),
        (b"b", part(5, b"55")),
        (b"c", put(6, b"6")),
        (b"d", put(3, b"3")),
    ]);
    assert_eq!(pending.bytes_in(&arena, b"b", Some(b"d")), 6);
    let freed = pending.remove_through(&mut arena, b"b", Some(b"d"), Sequence(4));
    assert_eq!((freed, pending.len()), (1, 4));
    assert_eq!(sequences(&arena, &pending, b"b"), [5]);
    let freed = pending.remove_through(&mut arena, b"", None, Sequence(9));
    assert_eq!((freed, pending.len(), pending.bytes()), (9, 0, 0));
    assert_eq!(arena.bytes_in_use(), 0);
}

#[test]
fn longest_keys_and_values_are_taken() {
    let key = vec![0xff; ROW_KEY_BYTES_MAX];
    let value = vec![7; INLINE_VALUE_BYTES_MAX];
    let (arena, pending) = pending(&[(&key, part(1, &value)), (&key, part(2, &value))]);
    assert_eq!(of_key(&arena, &pending, &key), [part(2, &value), part(1, &value)]);
}

#[test]
#[should_panic(expected = "a key that a page holds")]
fn empty_key_is_refused() {
    pending(&[(b"", put(1, b"v"))]);
}

#[test]
#[should_panic(expected = "a value that a page holds")]
fn value_of_eight_kibibytes_is_refused() {
    pending(&[(b"k", put(1, &[0; 8192]))]);
}
