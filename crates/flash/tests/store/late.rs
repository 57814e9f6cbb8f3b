//! A cache on a device that takes longer than whoever uses it.

use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{
    Durability, ErrorKind, Key, Operation, Outcome, Pinning, PutOptions, Reclaim, Session,
    SessionOptions, SpaceId, Store, StoreOptions,
};
use entresol_sim::{CrashChoice, Ordering, Random, SimDevice, SimOptions};

use crate::{NOW, SPACE, small, value_of};

const LOG: SpaceId = SpaceId(7);
const SEGMENTS: u64 = 160;
const SEGMENT: u64 = 64 << 10;

fn cache() -> StoreOptions {
    StoreOptions {
        shards: 1,
        reclaim: Reclaim::Evict,
        durability: Durability::Flushed,
        buffers_per_shard: 16,
        ..small()
    }
}

fn late(seed: u64) -> SimDevice {
    let mut options = SimOptions::new(seed, (128 << 10) + SEGMENTS * SEGMENT);
    options.ordering = Ordering::Late { looks_max: 60 };
    SimDevice::new(options)
}

fn open(device: &SimDevice) -> (Store, Session) {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let store = Store::open(device, cache(), NOW).unwrap();
    let session = store.session(SessionOptions::default()).unwrap();
    (store, session)
}

fn pinned() -> PutOptions {
    let durability = Some(Durability::Memory);
    PutOptions { pinning: Pinning::Pinned, durability, ..PutOptions::default() }
}

fn logged(number: u64) -> ([u8; 8], u16) {
    (number.to_be_bytes(), (number / 16 % 64) as u16)
}

/// Puts a value of 16 KiB under a number, in partitions that are dropped as a whole.
fn append(session: &mut Session, number: u64) -> entresol_flash::Result<()> {
    let (bytes, partition) = logged(number);
    let key = Key { space: LOG, partition, bytes: &bytes };
    let value = &value_of(number, 16 << 10);
    let operation = Operation::Put { key, value, options: pinned() };
    session.run(NOW, operation, &mut |_| {})
}

// Segments were released faster than the device erased them, one after the other. Each write took
// the next victim meanwhile instead of waiting: what was pinned was copied round and round, each
// copy took the segment that the device had just given back, and the cache was full for good while
// a quarter of it was live.
#[test]
fn a_cache_on_a_device_slower_than_its_reclaim_never_runs_out_of_room() {
    for seed in 0..3 {
        let device = late(seed);
        let (store, mut session) = open(&device);
        let mut random = Random::new(seed);
        let (mut first, mut next, mut written) = (0, 0, 0u64);
        for step in 0..4000u64 {
            if random.one_in(4) {
                append(&mut session, next)
                    .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
                next += 1;
                written += 16 << 10;
            } else {
                let name = random.below(4000).to_be_bytes();
                let options =
                    PutOptions { durability: Some(Durability::Memory), ..PutOptions::default() };
                let value = &value_of(step, 4 << 10);
                let operation = Operation::Put { key: Key::new(SPACE, &name), value, options };
                session
                    .run(NOW, operation, &mut |_| {})
                    .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
                written += 4 << 10;
            }
            // A quarter of the cache is pinned, in a stretch of the log.
            if next - first > 160 {
                store.drop_partition(LOG, logged(first).1).unwrap();
                first += 16;
            }
        }
        let moved = store.statistics().moved_bytes;
        assert!(moved < written, "seed {seed}: {moved} bytes were moved for {written} written");
    }
}

// Whoever opened such a cache to save what was in it wrote first that it was open, and found no
// room for that: the owner's records take the place of what they replace.
#[test]
fn a_cache_that_was_killed_in_want_of_room_takes_its_owners_records_and_has_all_that_is_pinned() {
    for seed in 0..3 {
        let mut device = late(seed);
        let mut random = Random::new(seed);
        let (mut first, mut next) = (0, 0);
        for round in 0..5u64 {
            let (store, mut session) = open(&device);
            let record = |session: &mut Session, value: u64| {
                let key = Key::new(SPACE, b"record");
                let operation =
                    Operation::Put { key, value: &value_of(value, 60), options: pinned() };
                session.run(NOW, operation, &mut |_| {})
            };
            record(&mut session, round).unwrap_or_else(|e| panic!("seed {seed}, {round}: {e}"));
            for number in first..next {
                let (bytes, partition) = logged(number);
                let key = Key { space: LOG, partition, bytes: &bytes };
                let mut found = None;
                let visit = &mut |outcome: Outcome<'_>| {
                    if let Outcome::Found(entry) = outcome {
                        found = Some(entry.value.to_vec());
                    }
                };
                session.run(NOW, Operation::Get { key }, visit).unwrap();
                let whole = found == Some(value_of(number, 16 << 10));
                assert!(whole, "seed {seed}, round {round}: {number} of {first} to {next}");
            }
            for step in 0..200 + random.below(500) {
                if next - first > 160 && random.one_in(2) {
                    store.drop_partition(LOG, logged(first).1).unwrap();
                    first += 16;
                }
                match append(&mut session, next) {
                    Ok(()) => next += 1,
                    // More is pinned than there is room for.
                    Err(error) if error.kind() == ErrorKind::Full => {}
                    Err(error) => panic!("seed {seed}, round {round}, step {step}: {error}"),
                }
            }
            store.sync().unwrap();
            device.crash_now();
            drop((session, store));
            device = device.reopened(CrashChoice::KeepAll);
        }
    }
}
