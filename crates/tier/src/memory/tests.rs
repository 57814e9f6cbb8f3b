//! The memory cache against a model, at its cap, and under concurrent writes.

use super::*;
use std::collections::HashMap;

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
        space: number as u16 % 3,
        key,
        value,
        version,
        label: version as u8,
        expiry_ms: number << 20,
        idle_seconds: number as u32,
        pinned: number.is_multiple_of(2),
    }
}

/// What the cache says of the key, as value and version.
fn read(cache: &MemoryCache, number: u64, key: &[u8]) -> Option<(Vec<u8>, u64)> {
    let mut found = None;
    let expected = item(number, key, b"", 0);
    let hit = cache.get(hash(number), expected.space, key, &mut |got| {
        assert_eq!(got, item(number, key, got.value, got.version));
        found = Some((got.value.to_vec(), got.version));
    });
    assert_eq!(hit, found.is_some());
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
                    cache.insert(hash(number), fresh);
                    model.insert(number, (value, step));
                }
                3 => {
                    let present = read(&cache, number, &key).is_some();
                    cache.replace(hash(number), fresh, false, &|| true);
                    assert!(present || read(&cache, number, &key).is_none());
                    model.insert(number, (value, step));
                }
                4 => {
                    cache.invalidate(hash(number), fresh.space, &key);
                    model.remove(&number);
                }
                _ => {
                    let found = read(&cache, number, &key);
                    hits += u32::from(found.is_some());
                    let expected = model.get(&number);
                    assert!(found.is_none() || found.as_ref() == expected, "seed {seed}");
                    if let (None, Some((value, version))) = (found, expected) {
                        cache.insert(hash(number), item(number, &key, value, *version));
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
            cache.insert(hash(number), item(number, &number.to_be_bytes(), &value, 1));
            assert!(cache.bytes() <= capacity, "{value_bytes} bytes: {number}");
        }
        let statistics = cache.statistics();
        let payload =
            statistics.entries * ((8 + value_bytes as u64 + 52).next_multiple_of(32) + 10);
        assert!(payload > capacity * 8 / 10, "{value_bytes} bytes: {statistics:?}");
    }
}

#[test]
fn a_smaller_cap_holds_at_once_and_a_larger_one_is_used() {
    let cache = MemoryCache::new(32 << 20, 2).unwrap();
    let value = [1; 1700];
    let fill = |range: std::ops::Range<u64>| {
        range.for_each(|n| cache.insert(hash(n), item(n, &n.to_be_bytes(), &value, 1)));
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

/// Chunks of entries that stayed lay scattered among pages of 2 MiB that the system could not take
/// back.
#[test]
fn what_stays_under_a_smaller_cap_is_whole_and_lies_together() {
    let cache = MemoryCache::new(96 << 20, 2).unwrap();
    let value = [1; 1700];
    let put = |n: u64| cache.insert(hash(n), item(n, &n.to_be_bytes(), &value, n));
    (0..58_000).for_each(put);
    let before = cache.bytes();
    cache.resize(48 << 20);
    let reaches = cache.arena_bytes();
    assert!(before > 90 << 20 && reaches <= 48 << 20, "{before} bytes, then up to {reaches}");
    let held = (0..58_000u64).filter(|n| {
        let found = read(&cache, *n, &n.to_be_bytes());
        found.as_ref().inspect(|found| assert_eq!(**found, (value.to_vec(), *n))).is_some()
    });
    let held = held.count();
    assert!(held > 24_000, "{held}");
}

#[test]
fn an_earlier_version_never_replaces_a_later_one() {
    let cache = MemoryCache::new(1 << 20, 1).unwrap();
    cache.insert(hash(5), item(5, b"key", b"later", 2));
    cache.insert(hash(5), item(5, b"key", b"earlier, and longer than a unit of memory", 1));
    cache.replace(hash(5), item(5, b"key", b"early", 1), false, &|| true);
    assert_eq!(read(&cache, 5, b"key"), Some((b"later".to_vec(), 2)));
}

#[test]
fn clearing_takes_one_space() {
    let cache = MemoryCache::new(4 << 20, 2).unwrap();
    let keys: Vec<[u8; 8]> = (0..900u64).map(u64::to_be_bytes).collect();
    for (key, n) in keys.iter().zip(0..) {
        cache.insert(hash(n), item(n, key, b"value", 1));
    }
    cache.clear_space(1);
    for (key, n) in keys.iter().zip(0..) {
        assert_eq!(read(&cache, n, key).is_none(), n % 3 == 1, "{n}");
    }
}

#[test]
fn equal_hashes_of_different_keys_are_told_apart() {
    let cache = MemoryCache::new(1 << 20, 1).unwrap();
    let keys: Vec<[u8; 1]> = (0..30).map(|n| [n]).collect();
    for key in &keys {
        cache.insert(hash(7), item(7, key, key, 1));
    }
    for key in &keys {
        assert_eq!(read(&cache, 7, key), Some((key.to_vec(), 1)));
    }
}

#[test]
fn an_entry_too_long_for_the_cache_passes_by_and_takes_the_old_one_out() {
    let cache = MemoryCache::new(1 << 20, 1).unwrap();
    let long = vec![1; 60_000];
    cache.insert(hash(1), item(1, b"key", b"short", 1));
    cache.insert(hash(1), item(1, b"key", &long, 2));
    assert_eq!(read(&cache, 1, b"key"), None);
}

#[test]
fn what_is_not_the_latest_is_not_put_in_and_takes_out_what_is_there() {
    let cache = MemoryCache::new(16 << 20, 2).unwrap();
    let held = || cache.get(hash(1), item(1, b"key", b"", 1).space, b"key", &mut |_| ());
    let old = item(1, b"key", b"old", 1);
    cache.insert_found_if(hash(1), old, &|| false);
    cache.insert_ahead_if(hash(1), old, &|| false);
    cache.replace(hash(1), old, false, &|| true);
    assert!(!held());
    cache.replace(hash(1), old, true, &|| true);
    assert!(held());
    cache.replace(hash(1), item(1, b"key", b"new", 2), true, &|| false);
    assert!(!held());
}
