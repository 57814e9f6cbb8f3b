//! A store on a device in memory does what it says.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod caches;
mod caps;
mod closing;
mod damaged;
mod drops;
mod ends;
mod erasures;
mod found;
mod full;
mod ground;
mod identity;
mod journal;
mod keys;
mod last;
mod late;
mod lifespans;
mod listing;
mod promises;
mod quiet;
mod reads;
mod reuse;
mod rounds;
mod samples;
mod secrets;
mod slots;
mod snapshots;
mod steps;
mod superblocks;
mod versions;
mod waiting;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use entresol_device::{Device, FileDevice, FileOptions, Geometry, MemoryDevice};
use entresol_flash::{
    Budget, Compression, Condition, Durability, EncryptionKey, ErrorKind, Expiry, Key, OpenMode,
    Operation, Outcome, PutOptions, Reclaim, Session, SessionOptions, SpaceId, Store, StoreOptions,
    Timestamp, Version,
};
use entresol_sim::{CrashChoice, SimDevice, SimOptions};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const SPACE: SpaceId = SpaceId(0);

fn device(bytes: u64) -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(bytes).unwrap())
}

fn small() -> StoreOptions {
    StoreOptions {
        segment_bytes: 64 << 10,
        durability: Durability::Memory,
        ..StoreOptions::default()
    }
}

fn open(device: &Arc<dyn Device>, options: StoreOptions) -> (Store, Session) {
    let store = Store::open(Arc::clone(device), options, NOW).unwrap();
    let session = store.session(SessionOptions::default()).unwrap();
    (store, session)
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key::new(SPACE, bytes)
}

fn put(session: &mut Session, k: &[u8], value: &[u8], options: PutOptions) -> Option<Version> {
    let mut version = None;
    let operation = Operation::Put { key: key(k), value, options };
    session
        .run(NOW, operation, &mut |outcome| {
            if let Outcome::Stored { version: v } = outcome {
                version = Some(v);
            }
        })
        .unwrap();
    version
}

fn get_at(session: &mut Session, k: &[u8], now: Timestamp) -> Option<Vec<u8>> {
    let mut value = None;
    session
        .run(now, Operation::Get { key: key(k) }, &mut |outcome| match outcome {
            Outcome::Found(entry) => {
                assert_eq!(entry.key, k);
                value = Some(entry.value.to_vec());
            }
            Outcome::Missing => {}
            other => panic!("{other:?}"),
        })
        .unwrap();
    value
}

fn get(session: &mut Session, k: &[u8]) -> Option<Vec<u8>> {
    get_at(session, k, NOW)
}

fn remove(session: &mut Session, k: &[u8]) -> bool {
    let mut removed = false;
    let operation = Operation::Remove { key: key(k), condition: Condition::Always };
    session.run(NOW, operation, &mut |o| removed = matches!(o, Outcome::Removed { .. })).unwrap();
    removed
}

fn value_of(n: u64, length: usize) -> Vec<u8> {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x as u8
        })
        .collect()
}

#[test]
fn what_is_put_is_got_until_it_is_removed() {
    let device = device(16 << 20);
    let (store, mut session) = open(&device, small());
    assert_eq!(get(&mut session, b"a"), None);
    put(&mut session, b"a", b"one", PutOptions::default());
    put(&mut session, b"b", b"", PutOptions::default());
    assert_eq!(get(&mut session, b"a").as_deref(), Some(&b"one"[..]));
    assert_eq!(get(&mut session, b"b").as_deref(), Some(&b""[..]));
    put(&mut session, b"a", b"two", PutOptions::default());
    assert_eq!(get(&mut session, b"a").as_deref(), Some(&b"two"[..]));
    assert_eq!(store.count(SPACE), 2);
    assert!(remove(&mut session, b"a"));
    assert!(!remove(&mut session, b"a"));
    assert_eq!(get(&mut session, b"a"), None);
    assert_eq!(store.count(SPACE), 1);
}

#[test]
fn conditions_are_tested_and_applied_as_one_step() {
    let device = device(16 << 20);
    let (_store, mut session) = open(&device, small());
    let when = |condition| PutOptions { condition, ..PutOptions::default() };
    assert_eq!(put(&mut session, b"k", b"1", when(Condition::Present)), None);
    let first = put(&mut session, b"k", b"1", when(Condition::Absent)).unwrap();
    assert_eq!(put(&mut session, b"k", b"2", when(Condition::Absent)), None);
    let second = put(&mut session, b"k", b"2", when(Condition::Version(first))).unwrap();
    assert_eq!(put(&mut session, b"k", b"3", when(Condition::Version(first))), None);
    assert!(second > first);
    assert_eq!(get(&mut session, b"k").as_deref(), Some(&b"2"[..]));
}

#[test]
fn entries_end_by_age_and_by_idle_time() {
    let device = device(16 << 20);
    let (store, mut session) = open(&device, small());
    let at = Expiry { at: Some(Timestamp(NOW.0 + 5000)), idle_seconds: None };
    put(&mut session, b"age", b"x", PutOptions { expiry: at, ..PutOptions::default() });
    let idle = Expiry { at: None, idle_seconds: NonZeroU32::new(80) };
    put(&mut session, b"idle", b"y", PutOptions { expiry: idle, ..PutOptions::default() });
    assert!(get_at(&mut session, b"age", Timestamp(NOW.0 + 4999)).is_some());
    assert!(get_at(&mut session, b"age", Timestamp(NOW.0 + 5000)).is_none());
    assert_eq!(store.count(SPACE), 1);
    for step in 1..10 {
        assert!(get_at(&mut session, b"idle", Timestamp(NOW.0 + step * 60_000)).is_some());
    }
    assert!(get_at(&mut session, b"idle", Timestamp(NOW.0 + 9 * 60_000 + 81_000)).is_none());
}

#[test]
fn values_of_every_size_come_back_also_after_reopening() {
    for (compression, encryption) in [
        (Compression::None, None),
        (Compression::Lz4, None),
        (Compression::Zstd, Some(EncryptionKey([7; 32]))),
    ] {
        let device = device(64 << 20);
        let options = StoreOptions { compression, encryption, ..small() };
        let (store, mut session) = open(&device, options.clone());
        let sizes = [0, 1, 63, 64, 1000, 16_000, 17_000, 65_536, 300_000, 3_000_000];
        for (n, size) in sizes.into_iter().enumerate() {
            let name = format!("key {n}");
            put(&mut session, name.as_bytes(), &value_of(9, size), PutOptions::default());
            put(&mut session, name.as_bytes(), &value_of(n as u64, size), PutOptions::default());
        }
        let check = |session: &mut Session| {
            for (n, size) in sizes.into_iter().enumerate() {
                let name = format!("key {n}");
                let found = get(session, name.as_bytes());
                assert_eq!(found, Some(value_of(n as u64, size)), "size {size}");
            }
        };
        check(&mut session);
        store.sync().unwrap();
        drop(session);
        drop(store);
        let (store, mut session) = open(&device, options.clone());
        check(&mut session);
        store.close(NOW).unwrap();
        let (store, mut session) = open(&device, options);
        check(&mut session);
        assert_eq!(store.count(SPACE), sizes.len() as u64);
    }
}

/// Random operations against a map, with reopenings; the device is small so that reclaim runs.
fn model_run(seed: u64, options: StoreOptions, steps: u64) {
    let device = device(8 << 20);
    let (mut store, mut session) = open(&device, options.clone());
    let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut x = seed;
    let mut random = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x >> 33
    };
    let mut reclaimed = 0;
    for step in 0..steps {
        let name = format!("k{}", random() % 900).into_bytes();
        match random() % 20 {
            0..=10 => {
                let value = value_of(step, (random() % 4000) as usize);
                put(&mut session, &name, &value, PutOptions::default());
                model.insert(name, value);
            }
            11..=13 => {
                assert_eq!(
                    remove(&mut session, &name),
                    model.remove(&name).is_some(),
                    "seed {seed}"
                );
            }
            14..=18 => {
                assert_eq!(
                    get(&mut session, &name),
                    model.get(&name).cloned(),
                    "seed {seed} step {step}"
                );
            }
            _ if random() % 40 == 0 => {
                if random() % 2 == 0 {
                    store.close(NOW).unwrap();
                } else {
                    store.sync().unwrap();
                }
                reclaimed += store.statistics().segments_reclaimed;
                drop((session, store));
                (store, session) = open(&device, options.clone());
            }
            _ => {
                store.maintain(NOW, Budget { segments: 2 }).unwrap();
            }
        }
        assert_eq!(store.count(SPACE), model.len() as u64, "seed {seed} step {step}");
    }
    for (name, value) in &model {
        assert_eq!(get(&mut session, name).as_ref(), Some(value), "seed {seed}");
    }
    reclaimed += store.statistics().segments_reclaimed;
    assert!(reclaimed > 0, "the run must reclaim");
}

#[test]
fn a_store_answers_like_a_map_through_reclaim_and_reopening() {
    for seed in 1..=6 {
        model_run(seed, StoreOptions { shards: 1, ..small() }, 20_000);
        model_run(
            seed + 100,
            StoreOptions { shards: 2, durability: Durability::Synced, ..small() },
            6_000,
        );
    }
}

#[test]
fn tombstones_that_hide_nothing_give_their_room_back() {
    let device = device(8 << 20);
    let (mut store, mut session) = open(&device, small());
    for n in 0..1000u64 {
        put(&mut session, &n.to_be_bytes(), &value_of(n, 1000), PutOptions::default()).unwrap();
    }
    // Some tombstone takes 64 bytes: as many as fill the device twice, each of another key.
    for n in 1000..300_000u64 {
        let stored = put(&mut session, &n.to_be_bytes(), b"short", PutOptions::default());
        assert!(stored.is_some() && remove(&mut session, &n.to_be_bytes()), "{n}");
        if n == 100_000 {
            store.close(NOW).unwrap();
        }
        if n == 100_000 || n == 200_000 {
            drop((session, store));
            (store, session) = open(&device, small());
        }
    }
    assert_eq!(store.count(SPACE), 1000);
    for n in 0..1000u64 {
        assert_eq!(get(&mut session, &n.to_be_bytes()), Some(value_of(n, 1000)));
    }
}

#[test]
fn writers_never_reclaim_where_maintenance_keeps_up() {
    let device = device(8 << 20);
    let (store, mut session) = open(&device, small());
    let mut random = 1u64;
    for n in 0..40_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let name = (random >> 33) % 4000;
        put(&mut session, &name.to_be_bytes(), &value_of(n, 1000), PutOptions::default()).unwrap();
        if n % 16 == 0 {
            while store.maintain(NOW, Budget { segments: 1 }).unwrap().more {}
        }
    }
    let statistics = store.statistics();
    assert!(statistics.segments_reclaimed > 100, "{}", statistics.segments_reclaimed);
    assert_eq!(statistics.reclaims_by_writers, 0);
}

#[test]
fn dropping_a_space_takes_its_entries_and_no_others_at_once_and_for_good() {
    let device = device(16 << 20);
    let (store, mut session) = open(&device, small());
    let other = SpaceId(3);
    for n in 0..500u64 {
        let name = format!("key {n}");
        for space in [SPACE, other] {
            let operation = Operation::Put {
                key: Key::new(space, name.as_bytes()),
                value: &value_of(n, 500),
                options: PutOptions::default(),
            };
            session.run(NOW, operation, &mut |_| {}).unwrap();
        }
    }
    let reads = device.counters().reads.load(std::sync::atomic::Ordering::Relaxed);
    store.drop_space(SPACE).unwrap();
    assert_eq!((store.count(SPACE), store.count(other)), (0, 500));
    assert_eq!(get(&mut session, b"key 1"), None);
    assert_eq!(reads, device.counters().reads.load(std::sync::atomic::Ordering::Relaxed));
    put(&mut session, b"key 1", b"new", PutOptions::default());
    assert_eq!(store.count(SPACE), 1);
    store.sync().unwrap();
    drop((session, store));
    let (store, mut session) = open(&device, small());
    assert_eq!((store.count(SPACE), store.count(other)), (1, 500));
    assert_eq!(get(&mut session, b"key 1").as_deref(), Some(&b"new"[..]));
    assert_eq!(get(&mut session, b"key 2"), None);
}

#[test]
fn a_wrong_key_and_a_reformat_are_told_apart() {
    let device = device(16 << 20);
    let encrypted = StoreOptions { encryption: Some(EncryptionKey([1; 32])), ..small() };
    let (store, mut session) = open(&device, encrypted.clone());
    put(&mut session, b"a", b"secret secret secret", PutOptions::default());
    store.close(NOW).unwrap();
    drop((session, store));
    for options in [small(), StoreOptions { encryption: Some(EncryptionKey([2; 32])), ..small() }] {
        let error = Store::open(Arc::clone(&device), options, NOW).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongKey);
    }
    let (_store, mut session) = open(&device, encrypted);
    assert!(get(&mut session, b"a").is_some());
    drop(session);
    let (store, mut session) = open(&device, StoreOptions { mode: OpenMode::Reformat, ..small() });
    assert_eq!(get(&mut session, b"a"), None);
    assert_eq!(store.count(SPACE), 0);
}

#[test]
fn a_store_whose_superblocks_were_wiped_is_not_made_anew_unless_forced() {
    // Found wherever the first segment in use is, and whatever the sizes of segments.
    for (was, wanted, wiped) in [(64, 64, 2), (64, 1024, 2), (1024, 64, 16), (64, 64, 5)] {
        let sized =
            |kib: u32, mode| StoreOptions { segment_bytes: kib << 10, shards: 1, mode, ..small() };
        let device = device(32 << 20);
        let (store, mut session) = open(&device, sized(was, OpenMode::OpenOrCreate));
        (0..300u32).for_each(|i| {
            put(&mut session, &i.to_le_bytes(), &[7; 2000], PutOptions::default());
        });
        store.sync().unwrap();
        drop((session, store));
        let mut before = entresol_device::IoBuffer::aligned(32 << 20);
        device.write_at(0, &before[..wiped * (64 << 10)]).unwrap();
        device.read_at(0, &mut before).unwrap();

        for mode in [OpenMode::OpenOrCreate, OpenMode::ReadOnly] {
            let refused = Store::open(Arc::clone(&device), sized(wanted, mode), NOW).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
            let sentence = refused.to_string();
            assert!(sentence.contains("holds a segment of store"), "{sentence}");
            assert!(sentence.contains("force a new store"), "{sentence}");
        }
        let mut after = entresol_device::IoBuffer::aligned(32 << 20);
        device.read_at(0, &mut after).unwrap();
        assert!(before[..] == after[..], "a refusal changes nothing");

        let (_, mut session) = open(&device, sized(wanted, OpenMode::OpenOrOverwrite));
        assert_eq!(get(&mut session, &5u32.to_le_bytes()), None);
        put(&mut session, b"new", b"value", PutOptions::default());
        assert_eq!(get(&mut session, b"new").unwrap(), b"value");
    }
}

#[test]
fn forcing_neither_overwrites_a_sound_store_nor_spares_a_damaged_root() {
    let device = device(8 << 20);
    let forced = || StoreOptions { mode: OpenMode::OpenOrOverwrite, ..small() };
    let (store, mut session) = open(&device, forced());
    put(&mut session, b"kept", b"value", PutOptions::default());
    drop(session);
    store.close(NOW).unwrap();
    drop(store);
    let (store, mut session) = open(&device, forced());
    assert_eq!(get(&mut session, b"kept").unwrap(), b"value");
    drop((session, store));

    let mut root = entresol_device::IoBuffer::aligned(128 << 10);
    device.read_at(0, &mut root).unwrap();
    (root[100], root[(64 << 10) + 100]) = (0xff, 0xff);
    device.write_at(0, &root).unwrap();
    let refused = Store::open(Arc::clone(&device), small(), NOW).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    let (_, mut session) = open(&device, forced());
    assert_eq!(get(&mut session, b"kept"), None);
}

#[test]
fn what_outlived_a_kill_is_found_by_a_run_of_another_durability() {
    let directory = std::env::temp_dir().join(format!("entresol-reopened-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let others = [Durability::Memory, Durability::Flushed, Durability::Synced];
    for (number, other) in others.into_iter().enumerate() {
        let device = device(8 << 20);
        let options = |durability| StoreOptions {
            durability,
            buffer_directory: Some(directory.clone()),
            seed: number as u64,
            boot: 7,
            ..small()
        };
        let (store, mut session) = open(&device, options(Durability::Process));
        for n in 0..50 {
            put(&mut session, format!("k{n}").as_bytes(), b"kept", PutOptions::default());
        }
        drop((session, store));
        let (store, mut session) = open(&device, options(other));
        for n in 0..50 {
            let found = get(&mut session, format!("k{n}").as_bytes());
            assert_eq!(found.as_deref(), Some(&b"kept"[..]), "k{n} under {other:?}");
        }
        drop(session);
        store.close(NOW).unwrap();
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_store_is_not_made_over_a_file_with_other_contents() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("letters");
    let letters = vec![b'x'; 4 << 20];
    std::fs::write(&path, &letters).unwrap();
    let made = |mode| {
        let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
        Store::open(Arc::new(device), StoreOptions { mode, ..small() }, NOW).map(drop)
    };
    let refused = made(OpenMode::OpenOrCreate).unwrap_err().to_string();
    assert!(refused.contains("letters") && refused.contains("force"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), letters);
    made(OpenMode::OpenOrOverwrite).unwrap();
    made(OpenMode::OpenOrCreate).unwrap();
    std::fs::remove_file(&path).unwrap();
}

// The erasure of a segment wrote a whole unit, and so over the head of the next one.
#[test]
fn a_device_whose_units_are_too_large_for_the_segments_is_refused() {
    let device_of = |sync_unit_bytes: u32| -> Arc<dyn Device> {
        let options = SimOptions::new(1, 128 << 20);
        let geometry = Geometry { sync_unit_bytes, ..options.geometry };
        Arc::new(SimDevice::new(SimOptions { geometry, ..options }))
    };
    let sized = |segment_bytes| StoreOptions { segment_bytes, shards: 1, ..small() };
    for (unit, refused, taken) in
        [(128 << 10, 64 << 10, 512 << 10), (64 << 10, 64 << 10, 256 << 10)]
    {
        let device = device_of(unit);
        for segment_bytes in [refused, taken / 2] {
            let error = Store::open(Arc::clone(&device), sized(segment_bytes), NOW).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            let sentence = error.to_string();
            let names = [device.name(), unit.to_string(), segment_bytes.to_string()];
            assert!(names.iter().all(|name| sentence.contains(name)), "{sentence}");
        }
        let (store, mut session) = open(&device, sized(taken));
        for n in 0..2000 {
            put(&mut session, &[n as u8, 7], &value_of(n, 40_000), PutOptions::default());
        }
        store.sync().unwrap();
        for n in 2000 - 256..2000u64 {
            assert_eq!(get(&mut session, &[n as u8, 7]), Some(value_of(n, 40_000)));
        }
    }
    // A store that was made where units were smaller.
    let smaller = device_of(4096);
    let (store, mut session) = open(&smaller, sized(64 << 10));
    put(&mut session, b"here", b"before", PutOptions::default());
    store.close(NOW).unwrap();
    let mut image = entresol_device::IoBuffer::aligned(16 << 20);
    smaller.read_at(0, &mut image).unwrap();
    let larger = device_of(128 << 10);
    larger.write_at(0, &image).unwrap();
    let error = Store::open(larger, StoreOptions::default(), NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error}");
}

// The shards had dropped it by the time the root was found to have no room for it: then the store
// was poisoned, with an error that says to try again.
#[test]
fn dropping_more_partitions_than_the_root_has_room_for_changes_nothing() {
    let device = device(32 << 20);
    let other = SpaceId(3);
    let (store, mut session) = open(&device, small());
    let put_into = |session: &mut Session, partition: u16| {
        let key = Key { space: other, partition, bytes: &partition.to_be_bytes() };
        let operation = Operation::Put { key, value: b"value", options: PutOptions::default() };
        session.run(NOW, operation, &mut |_| {})
    };
    // Older than all that is dropped, and never in the way of reclaim.
    put(&mut session, b"cold", b"stays", PutOptions::default());
    store.sync().unwrap();
    let mut refused = None;
    for partition in 0..5_000 {
        put_into(&mut session, partition).unwrap();
        if let Err(error) = store.drop_partition(other, partition) {
            refused = Some((partition, error));
            break;
        }
        assert_eq!(store.count(other), 0);
    }
    let (partition, error) = refused.expect("there is no room for 5,000");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    for repeated in 0..2 {
        assert_eq!(store.count_partition(other, partition), 1, "{repeated}");
        let again = store.drop_partition(other, partition).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Busy, "{again}");
    }
    let found = |session: &mut Session, partition: u16| {
        let key = Key { space: other, partition, bytes: &partition.to_be_bytes() };
        let mut found = false;
        let operation = Operation::Get { key };
        session.run(NOW, operation, &mut |o| found = matches!(o, Outcome::Found(_))).unwrap();
        found
    };
    assert!(found(&mut session, partition) && !found(&mut session, partition - 1));
    put_into(&mut session, 6_000).unwrap();
    store.sync().unwrap();
    store.close(NOW).unwrap();
    drop((session, store));
    let (store, mut session) = open(&device, small());
    assert_eq!(get(&mut session, b"cold").as_deref(), Some(&b"stays"[..]));
    assert!(found(&mut session, partition) && !found(&mut session, partition - 1));
    assert_eq!(store.count(other), 2);
    // A whole space takes the place of its partitions.
    store.drop_space(other).unwrap();
    assert_eq!((store.count(other), store.count(SPACE)), (0, 1));
    put_into(&mut session, 1).unwrap();
    store.drop_partition(other, 1).unwrap();
}
