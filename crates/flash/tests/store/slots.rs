//! A store or cache whose index has no room left, on a device that has.

use entresol_flash::{
    Budget, ErrorKind, Expiry, Operation, Pinning, PutOptions, Reclaim, Session, SessionOptions,
    Store, StoreOptions, Timestamp,
};

use crate::{NOW, SPACE, device, get, key, open, put, small};

/// A share of memory for some thousands of entries.
const INDEX_BYTES: u64 = 128 << 10;

fn options() -> StoreOptions {
    StoreOptions { shards: 1, index_bytes_max: INDEX_BYTES, ..small() }
}

fn name(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn try_put(session: &mut Session, n: u64, options: PutOptions) -> Result<(), ErrorKind> {
    let name = name(n);
    let operation = Operation::Put { key: key(&name), value: b"v", options };
    session.run(NOW, operation, &mut |_| {}).map_err(|error| error.kind())
}

/// Puts entries until the index is full; how many there are.
fn fill(session: &mut Session, options: PutOptions) -> u64 {
    let refused = (0..100_000).find(|n| match try_put(session, *n, options) {
        Ok(()) => false,
        Err(kind) => {
            assert_eq!(kind, ErrorKind::Full);
            true
        }
    });
    let stored = refused.expect("the index is full long before the device");
    assert!(stored > 5_000, "{stored} entries in {INDEX_BYTES} bytes");
    stored
}

/// Puts as many new keys as there were entries.
fn refill(session: &mut Session, stored: u64, gone: &str) {
    for n in 0..stored {
        let put = try_put(session, 1_000_000 + n, PutOptions::default());
        assert_eq!(put, Ok(()), "new key {n} of {stored} after {gone}");
    }
    assert_eq!(get(session, &name(1_000_000)), Some(b"v".to_vec()), "{gone}");
}

// The test for a full index was the size of its table, which never shrinks: once it had grown to
// its share of the memory cap, no new key was taken ever again, whatever was removed, dropped or
// over, nor after a restart.
#[test]
fn an_index_that_was_full_takes_new_keys_again_after_removals() {
    let device = device(64 << 20);
    let (_store, mut session) = open(&device, options());
    let stored = fill(&mut session, PutOptions::default());
    for round in 0..3 {
        for n in 0..stored / 2 {
            assert!(crate::remove(&mut session, &name(round * 1_000_000 + n)));
        }
        for n in 0..stored / 2 {
            let at = (round + 1) * 1_000_000 + n;
            assert_eq!(try_put(&mut session, at, PutOptions::default()), Ok(()), "{round}, {n}");
        }
        let refused = try_put(&mut session, 9_000_000, PutOptions::default());
        assert_eq!(refused, Err(ErrorKind::Full), "round {round}");
    }
}

#[test]
fn an_index_that_was_full_takes_new_keys_again_after_all_were_dropped() {
    let device = device(64 << 20);
    let (store, mut session) = open(&device, options());
    let stored = fill(&mut session, PutOptions::default());
    store.drop_space(SPACE).unwrap();
    refill(&mut session, stored, "a drop");
}

#[test]
fn an_index_that_was_full_takes_new_keys_again_after_the_others_have_ended() {
    let device = device(64 << 20);
    let (_store, mut session) = open(&device, options());
    let ends = Expiry { at: Some(Timestamp(NOW.0 + 10_000)), idle_seconds: None };
    let stored = fill(&mut session, PutOptions { expiry: ends, ..PutOptions::default() });
    let later = Timestamp(NOW.0 + 20_000);
    for n in 0..stored {
        let new = name(1_000_000 + n);
        let operation =
            Operation::Put { key: key(&new), value: b"v", options: PutOptions::default() };
        session.run(later, operation, &mut |_| {}).unwrap();
    }
}

#[test]
fn an_index_that_was_full_takes_new_keys_again_after_a_restart() {
    for clean in [true, false] {
        let device = device(64 << 20);
        let (store, mut session) = open(&device, options());
        let stored = fill(&mut session, PutOptions::default());
        let first = store.statistics().index_bytes;
        assert!(first <= INDEX_BYTES, "{first}");
        if clean {
            store.drop_space(SPACE).unwrap();
            store.close(NOW).unwrap();
        } else {
            store.sync().unwrap();
        }
        drop((session, store));
        let (store, mut session) = open(&device, options());
        if clean {
            refill(&mut session, stored, "a drop and a clean stop");
            continue;
        }
        let kept = store.count(SPACE);
        assert_eq!(kept, stored);
        for n in 0..stored / 2 {
            assert!(crate::remove(&mut session, &name(n)));
        }
        refill(&mut session, stored / 2, "a recovery");
    }
}

#[test]
fn a_cache_whose_index_is_full_evicts_and_takes_new_keys() {
    // In segments of 1 MiB all entries that there are slots for may stand in those that are open.
    for segment_bytes in [64 << 10, 1 << 20] {
        let device = device(64 << 20);
        let options = StoreOptions { reclaim: Reclaim::Evict, segment_bytes, ..options() };
        let (store, mut session) = open(&device, options.clone());
        for n in 0..40_000 {
            let taken = try_put(&mut session, n, PutOptions::default());
            assert_eq!(taken, Ok(()), "new key {n}, segments of {segment_bytes} bytes");
            assert_eq!(get(&mut session, &name(n)), Some(b"v".to_vec()), "key {n}");
        }
        let statistics = store.statistics();
        assert!(statistics.evicted > 25_000, "{}", statistics.evicted);
        assert!(statistics.index_bytes <= INDEX_BYTES, "{}", statistics.index_bytes);
        store.close(NOW).unwrap();
        drop((session, store));
        let (_store, mut session) = open(&device, options);
        assert_eq!(try_put(&mut session, 50_000, PutOptions::default()), Ok(()));
    }
}

#[test]
fn maintenance_keeps_slots_free_for_the_new_keys_of_a_cache() {
    let device = device(64 << 20);
    let (store, mut session) = open(&device, StoreOptions { reclaim: Reclaim::Evict, ..options() });
    let mut entries_most = 0;
    for n in 0..40_000 {
        assert_eq!(try_put(&mut session, n, PutOptions::default()), Ok(()));
        if n % 50 == 0 {
            store.maintain(NOW, Budget { segments: 4 }).unwrap();
        }
        entries_most = entries_most.max(store.count(SPACE));
    }
    assert_eq!(store.statistics().reclaims_by_writers, 0, "{entries_most}");
}

#[test]
fn a_cache_whose_index_is_full_of_pinned_entries_refuses_new_keys_and_says_why() {
    let device = device(64 << 20);
    let options = StoreOptions { reclaim: Reclaim::Evict, ..options() };
    let (store, mut session) = open(&device, options);
    let pinned = PutOptions { pinning: Pinning::Pinned, ..PutOptions::default() };
    let stored = fill(&mut session, pinned);
    let new = name(7_000_000);
    let operation = Operation::Put { key: key(&new), value: b"v", options: PutOptions::default() };
    let refused = session.run(NOW, operation, &mut |_| {}).unwrap_err().to_string();
    assert!(refused.contains("index of shard 0 holds"), "{refused}");
    assert_eq!(store.count(SPACE), stored);
    assert!(crate::remove(&mut session, &name(1)));
    put(&mut session, &new, b"v", PutOptions::default());
}

// A read-only look at a full store needs no more room than the store had.
#[test]
fn a_full_index_is_opened_for_reading() {
    let device = device(64 << 20);
    let (store, mut session) = open(&device, options());
    let stored = fill(&mut session, PutOptions::default());
    store.close(NOW).unwrap();
    drop((session, store));
    let reading = StoreOptions { mode: entresol_flash::OpenMode::ReadOnly, ..options() };
    let store = Store::open(device, reading, NOW).unwrap();
    let mut session = store.session(SessionOptions::default()).unwrap();
    assert_eq!(get(&mut session, &name(stored - 1)), Some(b"v".to_vec()));
}
