//! Reading ahead of gets that follow the log.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::HashMap;
use std::sync::Arc;

use entresol_device::MemoryDevice;
use entresol_tier::{
    Admission, Condition, Durability, Key, Operation, Outcome, PutOptions, Session, SessionOptions,
    SpaceId, StoreOptions, Tiered, TieredOptions, Timestamp,
};
use entresol_workload::Random;

const KEYS: u64 = 16_000;
const VALUE_BYTES: usize = 4000;
const NOW: Timestamp = Timestamp(1_000);
const SPACE: SpaceId = SpaceId(0);

fn open() -> Arc<Tiered> {
    let device = MemoryDevice::new(160 << 20).unwrap();
    let store = StoreOptions {
        durability: Durability::Memory,
        segment_bytes: 256 << 10,
        shards: 2,
        ..StoreOptions::default()
    };
    let options = TieredOptions {
        store,
        memory_bytes: 32 << 20,
        cache_bytes: Some(12 << 20),
        admission: Admission::Always,
    };
    Tiered::open(Arc::new(device), options, NOW).unwrap()
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key { space: SPACE, partition: 0, bytes }
}

fn value(id: u64, version: u64) -> Vec<u8> {
    let mut value = vec![(id ^ version) as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&id.to_le_bytes());
    value[8..16].copy_from_slice(&version.to_le_bytes());
    value
}

fn put(session: &mut Session, id: u64, version: u64) {
    let (bytes, value) = (id.to_be_bytes(), value(id, version));
    let options = PutOptions::default();
    let operation = Operation::Put { key: key(&bytes), value: &value, options };
    session.run(NOW, operation, &mut |_| {}).unwrap();
}

/// Gets `ids`, all of them in flight together; the value of each, `None` where there is none.
fn get(session: &mut Session, ids: &[u64]) -> Vec<Option<Vec<u8>>> {
    let mut found = vec![None; ids.len()];
    let mut visit = |token: u64, outcome: entresol_tier::Result<Outcome<'_>>| {
        if let Outcome::Found(entry) = outcome.unwrap() {
            found[token as usize] = Some(entry.value.to_vec());
        }
    };
    for (token, id) in ids.iter().enumerate() {
        let bytes = id.to_be_bytes();
        session.submit(token as u64, NOW, Operation::Get { key: key(&bytes) }, &mut visit);
    }
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).unwrap();
    }
    found
}

fn filled() -> (Arc<Tiered>, Session) {
    let tiered = open();
    let mut session = tiered.session(SessionOptions::default()).unwrap();
    (0..KEYS).for_each(|id| put(&mut session, id, 0));
    tiered.sync().unwrap();
    (tiered, session)
}

#[test]
fn readers_that_follow_the_log_find_most_entries_in_memory() {
    for readers in [1u64, 7] {
        let (tiered, mut session) = filled();
        let before = tiered.statistics();
        let each = KEYS / readers;
        // Written in turns: each reader's entries are every so many of the log.
        for step in 0..each {
            let ids: Vec<u64> = (0..readers).map(|reader| step * readers + reader).collect();
            for (id, found) in ids.iter().zip(get(&mut session, &ids)) {
                assert_eq!(found, Some(value(*id, 0)), "entry {id}");
            }
        }
        let after = tiered.statistics();
        let reads = after.device_reads - before.device_reads;
        assert!(reads < KEYS / 5, "{readers} readers: {reads} reads for {KEYS} gets");
        let bytes = after.device_read_bytes - before.device_read_bytes;
        let wanted = KEYS * VALUE_BYTES as u64;
        assert!(bytes < wanted * 3 / 2, "{readers} readers: {bytes} bytes read for {wanted}");
    }
}

/// Segments that became free are used again in the order they became so, which is not that of their
/// numbers: what was written next may stand anywhere.
#[test]
fn readers_follow_a_log_that_has_been_rewritten_many_times() {
    let (tiered, mut session) = filled();
    for version in 1..=6 {
        (0..KEYS).for_each(|id| put(&mut session, id, version));
        tiered.sync().unwrap();
        let before = tiered.statistics();
        for first in (0..KEYS).step_by(4) {
            let ids: Vec<u64> = (first..first + 4).collect();
            for (id, found) in ids.iter().zip(get(&mut session, &ids)) {
                assert_eq!(found, Some(value(*id, version)), "entry {id}");
            }
        }
        let after = tiered.statistics();
        let reads = after.device_reads - before.device_reads;
        let segments = after.segments_ahead - before.segments_ahead;
        println!("version {version}: {reads} reads, {segments} segments ahead");
        assert!(reads < KEYS / 5, "version {version}: {reads} reads for {KEYS} gets");
    }
}

#[test]
fn readers_in_no_order_make_no_reads_ahead() {
    let (tiered, mut session) = filled();
    let mut random = Random::new(5);
    for _ in 0..5_000 {
        let ids: Vec<u64> = (0..4).map(|_| random.below(KEYS)).collect();
        get(&mut session, &ids);
    }
    let ahead = tiered.statistics().segments_ahead;
    assert!(ahead <= 2, "{ahead} segments read ahead of random gets");
}

// Each session has up to four segments, and with many sessions that is much: nobody counted them,
// and the cache gave no room for them.
#[test]
fn segments_read_ahead_count_as_memory_until_they_are_taken() {
    let (tiered, mut session) = filled();
    let before = tiered.store().memory_bytes();
    let mut most = 0;
    for first in (0..KEYS / 4).step_by(4) {
        for id in first..first + 4 {
            let bytes = u64::to_be_bytes(id);
            session.submit(id, NOW, Operation::Get { key: key(&bytes) }, &mut |_, _| {});
        }
        let held = tiered.store().memory_bytes() - before;
        most = held.max(most);
        assert_eq!(held > 0, session.is_reading_ahead(), "entry {first}");
        let used = tiered.statistics();
        let counted = used.index_bytes + used.buffer_bytes + used.other_bytes;
        assert_eq!(counted, before + held, "entry {first}");
        while session.in_flight() > 0 || session.is_reading_ahead() {
            session.poll(session.in_flight(), NOW, &mut |_, _| {}).unwrap();
        }
    }
    assert!(most >= 256 << 10, "{most} bytes at most");
    assert_eq!(tiered.store().memory_bytes(), before);
}

#[test]
fn what_was_read_ahead_never_hides_a_newer_state() {
    for seed in [1, 2, 3] {
        let (tiered, mut session) = filled();
        let mut other = tiered.session(SessionOptions::default()).unwrap();
        let mut random = Random::new(seed);
        let mut model: HashMap<u64, Option<u64>> = HashMap::new();
        for step in 0..KEYS / 4 {
            // Writers change what lies just ahead of the readers, while it is read ahead.
            let near = (step * 4 + random.below(400)) % KEYS;
            match random.below(3) {
                0 => {
                    put(&mut other, near, step + 1);
                    model.insert(near, Some(step + 1));
                }
                1 => {
                    let bytes = near.to_be_bytes();
                    let operation =
                        Operation::Remove { key: key(&bytes), condition: Condition::Always };
                    other.run(NOW, operation, &mut |_| {}).unwrap();
                    model.insert(near, None);
                }
                _ => {}
            }
            let ids: Vec<u64> = (0..4).map(|reader| step * 4 + reader).chain([near]).collect();
            for (id, found) in ids.iter().zip(get(&mut session, &ids)) {
                let expected = model.get(id).copied().unwrap_or(Some(0));
                let expected = expected.map(|version| value(*id, version));
                assert_eq!(found, expected, "seed {seed}, step {step}, entry {id}");
            }
        }
        assert!(tiered.statistics().segments_ahead > 0, "seed {seed}");
    }
}
