//! A store that evicts.

use std::collections::HashMap;
use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{
    Condition, Durability, Expiry, Key, Operation, Outcome, Pinning, PutOptions, Reclaim,
    SessionOptions, SpaceId, StoreOptions, Timestamp,
};
use entresol_sim::{CrashChoice, Random, SimDevice, SimOptions};

use crate::{NOW, SPACE, device, get, get_at, key, open, put, small, value_of};

#[test]
fn a_cache_evicts_instead_of_filling_up_and_never_answers_with_an_old_value() {
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
    let (store, mut session) = open(&device, options);
    for n in 0..20_000u64 {
        let name = format!("key {}", n % 5000);
        put(&mut session, name.as_bytes(), &value_of(n, 900), PutOptions::default());
    }
    let mut hits = 0;
    for n in 15_000..20_000u64 {
        let name = format!("key {}", n % 5000);
        if let Some(found) = get(&mut session, name.as_bytes()) {
            assert_eq!(found, value_of(n, 900));
            hits += 1;
        }
    }
    assert!(hits > 2000, "{hits}");
    assert!(store.statistics().evicted > 0);
}

/// A block of 4 KiB with its header counts for 4608 bytes, so a full cache of them was said to have
/// more in use than it has room for.
#[test]
fn a_full_cache_has_no_more_stored_than_its_segments_have_room_for() {
    for value_bytes in [4096, 900, 30] {
        let device = device(4 << 20);
        let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
        let (store, mut session) = open(&device, options);
        let value = value_of(7, value_bytes);
        for n in 0..(6 << 20) / value_bytes {
            put(&mut session, format!("{n:08}").as_bytes(), &value, PutOptions::default());
        }
        let found = store.statistics();
        assert!(found.evicted > 0);
        assert!(found.stored_live_bytes <= found.allocated_bytes, "{found:?}");
        // What the entries have themselves, and not much more: heads, and what segments lose.
        let least = found.entries * (value_bytes as u64 + 8);
        assert!(found.stored_live_bytes >= least, "{least} {found:?}");
        assert!(
            found.stored_live_bytes <= least * 16 / 15 + found.entries * 100,
            "{least} {found:?}"
        );
    }
}

// Only what was read while it stood in a write buffer got its second chance: a cache whose hot
// entries lay on the device evicted them in order, however often they were read.
#[test]
fn a_cache_keeps_what_is_read_from_the_device_again_and_again() {
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
    let (store, mut session) = open(&device, options);
    let hot = |n: u64| format!("hot {n}").into_bytes();
    for n in 0..1000 {
        put(&mut session, &hot(n), &value_of(n, 900), PutOptions::default());
    }
    for n in 0..20_000u64 {
        let (wanted, cold) = (n % 1000, format!("cold {n}"));
        put(&mut session, cold.as_bytes(), &value_of(n, 900), PutOptions::default());
        if let Some(found) = get(&mut session, &hot(wanted)) {
            assert_eq!(found, value_of(wanted, 900));
        }
    }
    // A few go with the segment of copies that was open while reclaim came round.
    let kept = (0..1000).filter(|n| get(&mut session, &hot(*n)).is_some()).count();
    assert!(kept > 850, "{kept} of 1000");
    assert!(store.statistics().gets_flash > 10_000);
}

#[test]
fn a_cache_all_of_which_is_read_copies_no_more_than_three_times_what_it_lets_go() {
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
    let (store, mut session) = open(&device, options);
    let name = |n: u64| format!("key {n}").into_bytes();
    let mut read = 0;
    for n in 0..12_000u64 {
        put(&mut session, &name(n), &value_of(n, 900), PutOptions::default());
        for _ in 0..40 {
            read = (read + 1).max(n.saturating_sub(4000)) % (n + 1);
            get(&mut session, &name(read));
        }
    }
    let statistics = store.statistics();
    let (put, moved) = (12_000 * 950, statistics.moved_bytes);
    assert!(moved > put, "reads count: {moved} of {put}");
    assert!(moved < 3 * put + (2 << 20), "{moved} bytes were copied for {put}");
}

// Copies of what was read stand in a segment younger than the one that new entries go to: where
// that one was evicted first, the older value that had been copied came back after a crash.
#[test]
fn a_cache_that_lost_its_memory_never_answers_with_an_old_value() {
    let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
    for seed in 0..40u64 {
        let device = device(2 << 20);
        let mut random = entresol_sim::Random::new(seed);
        let mut newest = HashMap::new();
        let mut number = 0;
        for _ in 0..8 {
            let (store, mut session) = open(&device, options.clone());
            for (name, value) in &newest {
                let found = get(&mut session, format!("{name}").as_bytes());
                assert!(
                    found.is_none_or(|found| found == value_of(*value, 900)),
                    "seed {seed}: entry {name}, put as {value}"
                );
            }
            for _ in 0..random.below(4000) {
                let name = random.below(1800);
                if random.one_in(2) {
                    get(&mut session, format!("{name}").as_bytes());
                } else {
                    number += 1;
                    let value = value_of(number, 900);
                    put(&mut session, format!("{name}").as_bytes(), &value, PutOptions::default());
                    newest.insert(name, number);
                }
            }
            store.sync().unwrap();
        }
    }
}

// Segments of pinned entries go before their turn once little in them is live, and dropping a
// partition seals none.
#[test]
fn a_cache_that_lost_its_memory_has_the_pinned_entries_of_the_partitions_that_were_not_dropped() {
    const LOG: SpaceId = SpaceId(7);
    const PARTITION: u64 = 60;
    const PARTITIONS: u64 = 8;
    let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
    let named = |number: u64| (number.to_be_bytes(), (number / PARTITION % PARTITIONS) as u16);
    for seed in 0..20u64 {
        let device = device(3 << 20);
        let mut random = entresol_sim::Random::new(seed);
        let (mut first, mut next) = (0, 0);
        let mut cold = 0;
        for _ in 0..6 {
            let (store, mut session) = open(&device, options.clone());
            assert_eq!(store.count(LOG), next - first, "seed {seed}: {first} to {next}");
            let lowest = first.saturating_sub(PARTITION * 2);
            for number in lowest..next {
                let (bytes, partition) = named(number);
                let key = Key { space: LOG, partition, bytes: &bytes };
                let mut found = None;
                session
                    .run(NOW, Operation::Get { key }, &mut |outcome| {
                        if let Outcome::Found(entry) = outcome {
                            found = Some(entry.value.to_vec());
                        }
                    })
                    .unwrap();
                let expected = (number >= first).then(|| value_of(number, 900));
                assert!(found == expected, "seed {seed}: {number} of {first} to {next}");
            }
            for _ in 0..random.below(3000) {
                if random.one_in(3) {
                    cold += 1;
                    put(
                        &mut session,
                        format!("cold {cold}").as_bytes(),
                        &[1; 900],
                        PutOptions::default(),
                    );
                    continue;
                }
                let (bytes, partition) = named(next);
                if next.is_multiple_of(PARTITION) && next - first >= PARTITION * (PARTITIONS - 2) {
                    store.drop_partition(LOG, named(first).1).unwrap();
                    first += PARTITION;
                }
                let key = Key { space: LOG, partition, bytes: &bytes };
                let options = PutOptions { pinning: Pinning::Pinned, ..PutOptions::default() };
                let operation = Operation::Put { key, value: &value_of(next, 900), options };
                session.run(NOW, operation, &mut |_| {}).unwrap();
                next += 1;
            }
            store.sync().unwrap();
        }
    }
}

#[test]
fn a_cache_moves_little_of_what_was_pinned_and_dropped() {
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
    let (store, mut session) = open(&device, options);
    for number in 0..500 {
        put(&mut session, &[number as u8, 1], &value_of(number, 900), PutOptions::default());
    }
    let kept = store.count(SPACE);
    // A log ten times the size of the cache goes by.
    for number in 0..40_000u64 {
        if number.is_multiple_of(100) && number >= 300 {
            store.drop_partition(SpaceId(7), ((number / 100 - 3) % 8) as u16).unwrap();
        }
        let key = Key {
            space: SpaceId(7),
            partition: (number / 100 % 8) as u16,
            bytes: &number.to_be_bytes(),
        };
        let options = PutOptions { pinning: Pinning::Pinned, ..PutOptions::default() };
        let operation = Operation::Put { key, value: &[2; 900], options };
        session.run(NOW, operation, &mut |_| {}).unwrap();
    }
    let statistics = store.statistics();
    assert_eq!(store.count(SPACE), kept, "the log took the place of what is cached");
    assert!(statistics.moved_bytes < 40_000 * 900 / 10, "{}", statistics.moved_bytes);
}

// A pinned entry is copied ahead of reclaim, into a segment of copies. Where nothing else was worth
// copying, that one stayed open and was soon the oldest: no segment could be erased before it, and
// the cache was full for good.
#[test]
fn a_cache_with_a_pinned_entry_goes_on_evicting_for_ever() {
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
    let (store, mut session) = open(&device, options);
    let pinned = PutOptions { pinning: Pinning::Pinned, ..PutOptions::default() };
    put(&mut session, b"pinned", b"stays", pinned);
    for n in 0..20_000u64 {
        let cold = format!("cold {n}");
        put(&mut session, cold.as_bytes(), &value_of(n, 900), PutOptions::default());
    }
    assert_eq!(get(&mut session, b"pinned").as_deref(), Some(&b"stays"[..]));
    assert!(store.count(SPACE) > 2000, "{}", store.count(SPACE));
}

// Reclaim wrote the tombstones of ended entries where puts go, which had no room. And a put of a
// large value copied what was live round and round until all that was free was about to become
// free, and was refused.
#[test]
fn a_cache_takes_every_value_that_is_small_beside_it() {
    for seed in 0..60 {
        let device: Arc<dyn Device> = Arc::new(SimDevice::new(SimOptions::new(seed, 18 << 16)));
        let options = StoreOptions {
            shards: 1,
            reclaim: Reclaim::Evict,
            durability: Durability::Flushed,
            ..small()
        };
        let (_store, mut session) = open(&device, options);
        let mut random = Random::new(seed);
        for step in 0..300 {
            let now = Timestamp(NOW.0 + step * 1000);
            let name = [random.below(24) as u8];
            let size = [100, 900, 20_000, 70_000, 200_000][random.below(5) as usize];
            let ends = random.one_in(3).then(|| Timestamp(now.0 + 1000 + random.below(20_000)));
            let expiry = Expiry { at: ends, idle_seconds: None };
            let options = PutOptions { expiry, ..PutOptions::default() };
            let value = value_of(step, size);
            let operation = Operation::Put { key: Key::new(SPACE, &name), value: &value, options };
            let put = session.run(now, operation, &mut |_| {});
            assert!(put.is_ok(), "seed {seed}, put {step} of {size} bytes: {put:?}");
            let read = [random.below(24) as u8];
            let operation = Operation::Get { key: Key::new(SPACE, &read) };
            session.run(now, operation, &mut |_| {}).unwrap();
        }
    }
}

// The removal found no entry, as its time was over, and left a tombstone without looking again:
// above the put of another session, which a recovery then took for removed.
#[test]
fn a_removal_that_found_no_entry_takes_no_put_away_that_came_in_between() {
    let later = Timestamp(NOW.0 + 10_000);
    let mut met = 0;
    // With the younger ones the entry stands on the device, and is not evicted yet.
    for run in 0..320 {
        let (fill, between) = (105 + run / 8, run % 8 * 3);
        let sim = SimDevice::new(SimOptions::new(run, 20 << 16));
        let device: Arc<dyn Device> = Arc::new(sim.clone());
        let cache = StoreOptions { shards: 1, reclaim: Reclaim::Evict, ..small() };
        let (store, mut session) = open(&device, cache.clone());
        let expiry = Expiry { at: Some(Timestamp(NOW.0 + 1000)), idle_seconds: None };
        let filler = |n: u64| format!("filler {n}").into_bytes();
        for n in 0..400 {
            put(&mut session, &filler(n), &value_of(n, 4000), PutOptions::default());
        }
        put(&mut session, b"key", b"over", PutOptions { expiry, ..PutOptions::default() });
        for n in 400..400 + fill {
            put(&mut session, &filler(n), &value_of(n, 4000), PutOptions::default());
        }
        let mut removing = store.session(SessionOptions::default()).unwrap();
        let operation = Operation::Remove { key: key(b"key"), condition: Condition::Always };
        removing.submit(1, later, operation, &mut |_, outcome| assert!(outcome.is_ok()));
        for n in 0..between {
            put(&mut session, &filler(n), &value_of(n, 4000), PutOptions::default());
        }
        put(&mut session, b"key", b"stays", PutOptions::default());
        let mut removed = false;
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            removed = matches!(outcome.unwrap(), Outcome::Removed { .. });
        };
        while removing.in_flight() > 0 {
            removing.poll(1, later, &mut visit).unwrap();
        }
        let before = get_at(&mut session, b"key", later);
        store.sync().unwrap();
        sim.crash_now();
        drop((session, removing, store));
        let device: Arc<dyn Device> = Arc::new(sim.reopened(CrashChoice::KeepAll));
        let (_store, mut session) = open(&device, cache);
        let after = get_at(&mut session, b"key", later);
        met += u64::from(removed);
        assert_eq!(before, after, "after {fill} and {between} more");
    }
    assert!(met > 0, "no removal met a put");
}
