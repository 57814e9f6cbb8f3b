//! The memory of the arena: how much of it changes take, and that it comes back.

use std::collections::VecDeque;

use entresol_tree::format::Effect;
use entresol_tree::pending::{Arena, BLOCK_BYTES, CLASSES, Gathered, Pending};
use entresol_tree::{Change, Sequence};
use entresol_workload::{Random, mix64};

use crate::seeds;

fn put<'a>(key: &'a [u8], sequence: u64, value: &'a [u8]) -> Change<'a> {
    Change { key, effect: Effect::Put, sequence: Sequence(sequence), value }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix64(number).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

#[test]
fn change_takes_less_than_thirty_percent_more_than_its_bytes() {
    for in_order in [false, true] {
        let (mut arena, mut pending) = (Arena::new(1 << 30), Pending::new());
        for number in 0..1_000_000_u64 {
            let key = if in_order { [0; 16] } else { key(number) };
            let key = (u128::from_be_bytes(key) + u128::from(number)).to_be_bytes();
            pending.insert(&mut arena, put(&key, number, &[7; 100])).expect("there is room");
        }
        assert_eq!(pending.bytes(), 116_000_000);
        let taken = arena.bytes_taken();
        assert!(taken * 100 <= pending.bytes() * 130, "{taken} bytes taken, in order: {in_order}");
    }
}

#[test]
fn sizes_of_all_kinds_take_little_more_than_their_bytes() {
    let (mut arena, mut pending) = (Arena::new(1 << 30), Pending::new());
    let mut random = Random::new(1);
    for number in 0..300_000 {
        let value = vec![0; random.below(400) as usize];
        pending.insert(&mut arena, put(&key(number), number, &value)).expect("there is room");
    }
    let over = arena.bytes_taken() - pending.bytes();
    assert!(over <= 44 * pending.len(), "{} bytes a change", over / pending.len());
}

#[test]
fn tables_of_a_change_or_two_take_little() {
    assert!(size_of::<Pending>() <= 32);
    let mut arena = Arena::new(1 << 30);
    let mut tables: Vec<Pending> = (0..100_000).map(|_| Pending::new()).collect();
    assert_eq!(arena.bytes_taken(), 0);
    for (number, table) in tables.iter_mut().enumerate() {
        let number = number as u64;
        for key in [&b"field"[..], b"other"].iter().take(1 + number as usize % 2) {
            table.insert(&mut arena, put(key, number, &[7; 20])).expect("there is room");
        }
    }
    let bytes: u64 = tables.iter().map(Pending::bytes).sum();
    let each = (arena.bytes_taken() - bytes) / tables.len() as u64;
    assert!(each <= 64, "{each} bytes a table");
    tables.iter_mut().for_each(|table| table.clear(&mut arena));
    assert_eq!(arena.bytes_in_use(), 0);
    assert!(arena.bytes_taken() <= 8 * BLOCK_BYTES as u64, "memory goes back");
}

#[test]
fn full_arena_keeps_what_it_has_and_takes_changes_after_a_merge() {
    let (mut arena, mut pending) = (Arena::new(4 << 20), Pending::new());
    let mut number = 0;
    let refused = loop {
        match pending.insert(&mut arena, put(&key(number), number, &[7; 100])) {
            Ok(()) => number += 1,
            Err(full) => break full,
        }
    };
    assert_eq!(refused.cap_bytes, 4 << 20);
    assert!(refused.to_string().contains("4194304 bytes"), "{refused}");
    assert_eq!((pending.len(), arena.bytes_taken()), (number, 4 << 20));
    assert!(pending.bytes() * 10 > 7 * (4 << 20), "{} bytes at a cap of 4 MiB", pending.bytes());
    let [low, high] = [[0x40], [0x60]];
    assert!(pending.remove_through(&mut arena, &low, Some(&high), Sequence(u64::MAX)) > 0);
    pending.insert(&mut arena, put(&key(number), number, &[7; 100])).expect("room again");
    for number in (0..=number).filter(|number| !(0x40..0x60).contains(&key(*number)[0])) {
        assert!(pending.get(&arena, &key(number)).next().is_some(), "change {number}");
    }
}

#[test]
fn refused_part_leaves_the_others_of_its_key() {
    let (mut arena, mut pending) = (Arena::new(1 << 20), Pending::new());
    let mut count = 0;
    let part = |number| Change { effect: Effect::Part, ..put(b"k", number, &[7; 3000]) };
    while pending.insert(&mut arena, part(count)).is_ok() {
        count += 1;
    }
    assert!(count > 250, "{count} parts");
    assert!(pending.get(&arena, b"k").map(|change| change.sequence.0).eq((0..count).rev()));
    assert_eq!(pending.bytes(), 1 + 3000 * count);
}

/// Merges take ranges of keys at once, the oldest first. What is freed is used again: with values
/// of mixed sizes, the arena does not grow beyond a quarter more than the bytes in use and a block
/// for each class.
#[test]
fn steady_mix_of_sizes_does_not_grow_the_arena() {
    for seed in seeds(3) {
        println!("seed {seed}");
        let (mut arena, mut pending) = (Arena::new(1 << 30), Pending::new());
        let mut random = Random::new(seed);
        let mut ranges: VecDeque<u8> = (0..=255).collect();
        let limit = 8 << 20;
        let mut in_use_most = 0;
        let value = [7; 8191];
        for number in 0..400_000 {
            let bytes = match random.below(50) {
                0 => random.below(8192),
                1..30 => 20 + random.below(100),
                _ => random.below(1000),
            };
            let key = key(random.next());
            let change = put(&key, number, &value[..bytes as usize]);
            pending.insert(&mut arena, change).expect("there is room");
            while pending.bytes() > limit {
                let first = ranges.pop_front().expect("as many as there were");
                ranges.push_back(first);
                let high = first.checked_add(1).map(|high| [high]);
                let high = high.as_ref().map(<[u8; 1]>::as_slice);
                pending.remove_through(&mut arena, &[first], high, Sequence(number));
            }
            in_use_most = arena.bytes_in_use().max(in_use_most);
        }
        let bound = in_use_most + in_use_most / 4 + (CLASSES * BLOCK_BYTES) as u64;
        let taken = arena.bytes_taken();
        assert!(taken <= bound, "{taken} bytes taken, {in_use_most} in use at most");
        println!("{taken} bytes taken, {in_use_most} in use at most, {} put", pending.bytes());
    }
}

/// Each part of each round would leave a block of each class half empty.
#[test]
fn parts_of_a_load_go_on_in_the_blocks_that_others_left() {
    const PARTS: usize = 4;
    let (mut arena, mut pending) = (Arena::new(1 << 30), Pending::new());
    let mut random = Random::new(1);
    let mut sequence = 0;
    for _ in 0..100 {
        let mut parts: Vec<_> =
            arena.lend(PARTS).into_iter().map(|lent| (lent, Gathered::default())).collect();
        for (lent, gathered) in &mut parts {
            for _ in 0..300 {
                sequence += 1;
                let value = vec![0; random.below(2000) as usize];
                gathered.push(&mut lent.arena, put(&key(sequence), sequence, &value));
            }
        }
        let back = parts.into_iter().map(|(lent, mut gathered)| {
            gathered.sort(&lent.arena);
            gathered.rename(&arena.take_back(lent));
            gathered
        });
        for gathered in back.collect::<Vec<_>>() {
            let sorted = gathered.folded(&mut arena);
            pending.insert_sorted(&mut arena, sorted);
        }
    }
    assert_eq!(pending.len(), sequence);
    let idle = arena.bytes_taken() - arena.bytes_in_use();
    let most = ((PARTS + 1) * CLASSES * BLOCK_BYTES) as u64 + arena.bytes_taken() / 50;
    assert!(idle <= most, "{idle} of {} bytes lie idle", arena.bytes_taken());
    pending.clear(&mut arena);
    assert_eq!(arena.bytes_in_use(), 0);
    assert!(arena.bytes_taken() <= 8 * BLOCK_BYTES as u64, "{} bytes stay", arena.bytes_taken());
}
