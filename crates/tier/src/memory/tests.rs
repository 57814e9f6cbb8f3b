//! The memory cache against a model, at its cap, and under concurrent writes.

use std::collections::HashMap;
use std::num::NonZeroU32;

use entresol_flash::{Expiry, Pinning, SpaceId, Timestamp, Version};

use super::*;

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const SEEDS: [u64; 3] = [1, 2, 0x5eed];

pub(crate) fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

pub(super) fn hash(number: u64) -> u128 {
    u128::from(mix(number)) << 64 | u128::from(mix(!number))
}

pub(super) fn item<'a>(number: u64, key: &'a [u8], value: &'a [u8], version: u64) -> Cached<'a> {
    Cached {
        key: CacheKey { hash: hash(number), space: SpaceId(number as u16 % 3), bytes: key },
        partition: number as u16 % 5,
        value,
        version: Version(version),
        label: version as u8,
        expiry: Expiry::default(),
        pinning: if number.is_multiple_of(2) { Pinning::Pinned } else { Pinning::Evictable },
        extra: number,
    }
}

fn put(cache: &MemoryCache, item: &Cached<'_>) {
    let ticket = cache.begin_write(item.key.hash);
    cache.insert(ticket, item, NOW);
}

/// What the cache says of the key, as value and version.
fn read(cache: &MemoryCache, key: CacheKey<'_>) -> Option<(Vec<u8>, u64)> {
    let mut found = None;
    cache.get(key, NOW, &mut |item| {
        assert_eq!(item.key, key);
        found = Some((item.value.to_vec(), item.version.0));
    });
    found
}

#[test]
fn whatever_is_found_is_what_was_put_last() {
    for seed in SEEDS {
        let cache = MemoryCache::new(2 << 20, 2).unwrap();
        let mut model: HashMap<u64, (Vec<u8>, u64)> = HashMap::new();
        let mut hits = 0;
        for step in 0..60_000u64 {
            let draw = mix(seed << 32 | step);
            let number = mix(draw) % 1500;
            let key = number.to_be_bytes();
            let value = vec![draw as u8; (draw >> 8) as usize % 3000];
            let fresh = item(number, &key, &value, step);
            match draw % 10 {
                0..3 => {
                    put(&cache, &fresh);
                    model.insert(number, (value, step));
                }
                3 => {
                    let ticket = cache.begin_write(fresh.key.hash);
                    cache.update(ticket, &fresh, NOW);
                    model.insert(number, (value, step));
                }
                4 => {
                    let ticket = cache.begin_write(fresh.key.hash);
                    cache.invalidate(ticket, &fresh.key);
                    model.remove(&number);
                }
                _ => {
                    let found = read(&cache, fresh.key);
                    hits += u32::from(found.is_some());
                    let expected = model.get(&number);
                    assert!(found.is_none() || found.as_ref() == expected, "seed {seed}");
                    if let (None, Some((value, version))) = (found, expected) {
                        let Looked::Miss(ticket) = cache.get(fresh.key, NOW, &mut |_| {}) else {
                            panic!("it was not there a moment ago")
                        };
                        cache.fill(ticket, &item(number, &key, value, *version), NOW);
                    }
                }
            }
            assert!(cache.bytes() <= 2 << 20, "seed {seed}, step {step}");
        }
        assert!(hits > 5_000, "seed {seed}: {hits}");
        let statistics = cache.statistics();
        assert!(statistics.evicted_small > 0 && statistics.evicted_main > 0);
    }
}

#[test]
fn the_cap_is_kept_whatever_the_sizes_and_used_well() {
    for value_bytes in [0usize, 10, 100, 1_700, 10_000, 30_000] {
        let capacity = 16 << 20;
        let cache = MemoryCache::new(capacity, 1).unwrap();
        let value = vec![7; value_bytes];
        for number in 0..(3 * capacity / (value_bytes as u64 + 100)) {
            put(&cache, &item(number, &number.to_be_bytes(), &value, 1));
            assert!(cache.bytes() <= capacity, "{value_bytes} bytes: {number}");
        }
        let statistics = cache.statistics();
        let payload =
            statistics.entries * ((8 + value_bytes as u64 + 64).next_multiple_of(32) + 10);
        assert!(payload > capacity * 8 / 10, "{value_bytes} bytes: {statistics:?}");
    }
}

#[test]
fn a_smaller_cap_holds_at_once_and_a_larger_one_is_used() {
    let cache = MemoryCache::new(32 << 20, 2).unwrap();
    let value = [1; 1700];
    let fill = |range: std::ops::Range<u64>| {
        range.for_each(|n| put(&cache, &item(n, &n.to_be_bytes(), &value, 1)));
    };
    fill(0..40_000);
    assert!(cache.bytes() > 30 << 20);
    for capacity in [31 << 20, 20 << 20, 3 << 20, 100 << 10, 0] {
        cache.resize(capacity);
        assert!(cache.bytes() <= capacity.max(90 << 10), "{capacity}: {}", cache.bytes());
    }
    fill(0..100);
    assert_eq!(cache.statistics().entries, 0, "nothing fits into nothing");
    cache.resize(32 << 20);
    fill(0..40_000);
    assert!(cache.bytes() > 28 << 20 && cache.bytes() <= 32 << 20, "{}", cache.bytes());
}

#[test]
fn a_fill_loses_against_a_write_that_came_between() {
    let cache = MemoryCache::new(1 << 20, 1).unwrap();
    let key = 5u64.to_be_bytes();
    let old = item(5, &key, b"old", 1);
    let new = item(5, &key, b"new", 2);
    let look = || match cache.get(old.key, NOW, &mut |_| {}) {
        Looked::Miss(ticket) => ticket,
        Looked::Hit => panic!("the cache should not hold it"),
    };
    // The write began and ended after the lookup.
    let ticket = look();
    let write = cache.begin_write(old.key.hash);
    cache.invalidate(write, &old.key);
    cache.fill(ticket, &old, NOW);
    // The write began before the lookup and has not ended.
    look();
    let write = cache.begin_write(old.key.hash);
    let ticket = look();
    cache.fill(ticket, &old, NOW);
    let during = look();
    cache.end_write(write);
    cache.fill(during, &old, NOW);
    // Two writes at once: nobody knows which is the later, so neither stays.
    let (first, second) = (cache.begin_write(old.key.hash), cache.begin_write(old.key.hash));
    cache.insert(second, &new, NOW);
    assert_eq!(read(&cache, old.key), None);
    cache.insert(first, &old, NOW);
    let ticket = match cache.get(old.key, NOW, &mut |_| {}) {
        Looked::Miss(ticket) => ticket,
        Looked::Hit => panic!("an overlapped write must leave nothing behind"),
    };
    cache.fill(ticket, &new, NOW);
    assert_eq!(read(&cache, old.key), Some((b"new".to_vec(), 2)));
    // An earlier version never replaces a later one.
    put(&cache, &old);
    assert_eq!(read(&cache, old.key), Some((b"new".to_vec(), 2)));
}

#[test]
fn entries_end_by_age_and_by_idle_time() {
    let cache = MemoryCache::new(1 << 20, 1).unwrap();
    let key = [9; 8];
    let at = |seconds: u64| Timestamp(NOW.0 + seconds * 1000);
    let mut aging = item(1, &key, b"aging", 1);
    aging.expiry.at = Some(at(10));
    put(&cache, &aging);
    assert_eq!(cache.get(aging.key, at(9), &mut |item| assert_eq!(item, aging)), Looked::Hit);
    assert_ne!(cache.get(aging.key, at(10), &mut |_| panic!("over")), Looked::Hit);
    let mut idle = item(2, &key, b"idle", 1);
    idle.expiry.idle_seconds = NonZeroU32::new(10);
    put(&cache, &idle);
    for seconds in [9, 18, 27] {
        assert_eq!(cache.get(idle.key, at(seconds), &mut |_| {}), Looked::Hit);
    }
    assert_ne!(cache.get(idle.key, at(37), &mut |_| panic!("over")), Looked::Hit);
    let statistics = cache.statistics();
    assert_eq!((statistics.expired, statistics.entries), (2, 0));
}

#[test]
fn clearing_takes_a_space_or_a_partition_and_refuses_fills_under_way() {
    let cache = MemoryCache::new(4 << 20, 2).unwrap();
    let keys: Vec<[u8; 8]> = (0..900u64).map(u64::to_be_bytes).collect();
    let entry = |n: u64| item(n, &keys[n as usize], b"value", 1);
    (0..899).for_each(|n| put(&cache, &entry(n)));
    let Looked::Miss(ticket) = cache.get(entry(899).key, NOW, &mut |_| {}) else { panic!() };
    cache.clear_space(SpaceId(1));
    cache.clear_partition(SpaceId(2), 4);
    cache.fill(ticket, &entry(899), NOW);
    for n in 0..900 {
        let gone = n % 3 == 1 || n % 3 == 2 && n % 5 == 4 || n == 899;
        assert_eq!(read(&cache, entry(n).key).is_none(), gone, "{n}");
    }
}

#[test]
fn equal_hashes_of_different_keys_are_told_apart() {
    let cache = MemoryCache::new(1 << 20, 1).unwrap();
    let keys: Vec<[u8; 1]> = (0..30).map(|n| [n]).collect();
    for key in &keys {
        put(&cache, &item(7, key, key, 1));
    }
    for key in &keys {
        assert_eq!(read(&cache, item(7, key, key, 1).key), Some((key.to_vec(), 1)));
    }
}

#[test]
fn an_entry_too_long_for_the_cache_passes_by_and_takes_the_old_one_out() {
    let cache = MemoryCache::new(1 << 20, 1).unwrap();
    let long = vec![1; 60_000];
    put(&cache, &item(1, b"key", b"short", 1));
    put(&cache, &item(1, b"key", &long, 2));
    assert_eq!(read(&cache, item(1, b"key", b"", 0).key), None);
}
