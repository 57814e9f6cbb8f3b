//! Entries replaced and removed where a get has just found them.

use std::sync::atomic::Ordering;

use entresol_flash::FoundAt;

use super::*;

const KEYS: u64 = 200;
const LENGTH: usize = 3000;

fn name(n: u64) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

/// A store in which no entry is in a write buffer any more.
fn filled(device: &Arc<dyn Device>) -> (Store, Session) {
    let (store, mut session) = open(device, StoreOptions { shards: 1, ..small() });
    for n in 0..KEYS {
        put(&mut session, &name(n), &value_of(n, LENGTH), PutOptions::default());
        put(&mut session, b"filler", &value_of(n, LENGTH), PutOptions::default());
    }
    for n in 0..60 {
        put(&mut session, b"filler", &value_of(n, 10_000), PutOptions::default());
    }
    while store.maintain(NOW, Budget { segments: 8 }).unwrap().more {}
    (store, session)
}

fn find(session: &mut Session, k: &[u8]) -> Option<FoundAt> {
    let mut found = None;
    let mut visit = |outcome: Outcome<'_>| {
        if let Outcome::Found(entry) = outcome {
            found = entry.found;
        }
    };
    session.run(NOW, Operation::Get { key: key(k) }, &mut visit).unwrap();
    found
}

fn replace(session: &mut Session, k: &[u8], value: &[u8], found: FoundAt) -> Version {
    let options = PutOptions::default();
    let mut stored = None;
    let operation = Operation::Replace { key: key(k), value, options, found };
    session
        .run(NOW, operation, &mut |outcome| match outcome {
            Outcome::Stored { version } => stored = Some(version),
            other => panic!("{other:?}"),
        })
        .unwrap();
    stored.unwrap()
}

fn remove_found(session: &mut Session, k: &[u8], found: FoundAt) -> bool {
    let mut removed = false;
    let operation = Operation::RemoveFound { key: key(k), found };
    session.run(NOW, operation, &mut |o| removed = matches!(o, Outcome::Removed { .. })).unwrap();
    removed
}

fn reads(device: &Arc<dyn Device>) -> u64 {
    device.counters().reads.load(Ordering::Relaxed)
}

#[test]
fn what_a_get_found_is_replaced_and_removed_without_a_read_or_a_note() {
    let device = device(16 << 20);
    let (store, mut session) = filled(&device);
    let notes = store.statistics().notes;
    for n in 0..KEYS {
        let found = find(&mut session, &name(n)).unwrap();
        let before = reads(&device);
        if n % 3 == 0 {
            assert!(remove_found(&mut session, &name(n), found));
        } else {
            replace(&mut session, &name(n), &value_of(n + 1000, LENGTH), found);
        }
        assert_eq!(reads(&device), before, "key {n}");
    }
    assert_eq!(store.statistics().notes, notes);
    for n in 0..KEYS {
        let expected = (n % 3 != 0).then(|| value_of(n + 1000, LENGTH));
        assert_eq!(get(&mut session, &name(n)), expected, "key {n}");
    }
    assert_eq!(store.count(SPACE), KEYS - KEYS.div_ceil(3) + 1);
}

#[test]
fn what_is_discarded_is_removed_without_a_read_and_stays_so() {
    let device = device(16 << 20);
    let (store, mut session) = filled(&device);
    for n in (0..KEYS).step_by(2) {
        let before = reads(&device);
        session.run(NOW, Operation::Discard { key: key(&name(n)) }, &mut |_| {}).unwrap();
        assert_eq!(get(&mut session, &name(n)), None, "key {n}");
        assert_eq!(reads(&device), before, "key {n}");
    }
    assert_eq!(store.count(SPACE), KEYS / 2 + 1);
    // Some are put again, and each note is settled.
    put(&mut session, &name(0), b"again", PutOptions::default());
    for n in 0..60 {
        put(&mut session, b"filler", &value_of(n, 10_000), PutOptions::default());
    }
    while store.maintain(NOW, Budget { segments: 8 }).unwrap().more {}
    let rest = |session: &mut Session| {
        assert_eq!(get(session, &name(0)).as_deref(), Some(&b"again"[..]));
        for n in 1..KEYS {
            let expected = (n % 2 == 1).then(|| value_of(n, LENGTH));
            assert_eq!(get(session, &name(n)), expected, "key {n}");
        }
    };
    rest(&mut session);
    store.sync().unwrap();
    drop((session, store));
    let (_, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
    rest(&mut session);
}

#[test]
fn a_scan_since_a_position_visits_what_was_put_since() {
    let device = device(16 << 20);
    let (store, mut session) = filled(&device);
    let position = store.log_position();
    put(&mut session, b"new", b"1", PutOptions::default());
    put(&mut session, &name(3), b"2", PutOptions::default());
    let mut seen = Vec::new();
    store.scan_log_since(&position, NOW, &mut |_, entry| seen.push(entry.key.to_vec())).unwrap();
    assert_eq!(seen, [b"new".to_vec(), name(3)]);
}

#[test]
fn what_has_moved_or_changed_since_it_was_found_is_replaced_as_by_any_put() {
    let device = device(2 << 20);
    let (store, mut session) = filled(&device);
    let found: Vec<FoundAt> = (0..KEYS).map(|n| find(&mut session, &name(n)).unwrap()).collect();
    // Reclaim moves what is left, and segments are used again.
    for n in 0..KEYS {
        if n % 4 == 1 {
            put(&mut session, &name(n), b"newer", PutOptions::default());
        }
        if n % 4 == 2 {
            remove(&mut session, &name(n));
        }
    }
    let mut random = entresol_sim::Random::new(6);
    for n in 0..900 {
        let other = format!("other {}", random.below(40)).into_bytes();
        put(&mut session, &other, &value_of(n, 9_000), PutOptions::default());
        store.maintain(NOW, Budget { segments: 8 }).unwrap();
    }
    assert!(store.statistics().moved_bytes > 0);
    for n in 0..KEYS {
        let at = found[n as usize];
        if n % 8 < 4 {
            replace(&mut session, &name(n), b"replaced", at);
        } else {
            assert_eq!(remove_found(&mut session, &name(n), at), n % 4 != 2, "key {n}");
        }
    }
    for n in 0..KEYS {
        let expected = (n % 8 < 4).then_some(&b"replaced"[..]);
        assert_eq!(get(&mut session, &name(n)).as_deref(), expected, "key {n}");
    }
    assert_eq!(store.count(SPACE), KEYS / 2 + 41);
}

#[test]
fn what_was_found_of_another_key_harms_neither() {
    let device = device(16 << 20);
    // Many keys share what the index sees of their hashes.
    let options = StoreOptions { index_hash_bits: 3, shards: 1, ..small() };
    let (_store, mut session) = open(&device, options);
    for n in 0..40 {
        put(&mut session, &name(n), &value_of(n, LENGTH), PutOptions::default());
    }
    let found = find(&mut session, &name(1)).unwrap();
    replace(&mut session, &name(2), b"of two", found);
    for n in 3..30 {
        assert!(remove_found(&mut session, &name(n), found), "key {n}");
    }
    assert_eq!(get(&mut session, &name(1)), Some(value_of(1, LENGTH)));
    assert_eq!(get(&mut session, &name(2)).as_deref(), Some(&b"of two"[..]));
    assert!((3..30).all(|n| get(&mut session, &name(n)).is_none()));
}

#[test]
fn a_large_value_is_replaced_and_removed_where_it_was_found_with_all_its_pieces() {
    let device = device(16 << 20);
    let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
    let before = store.statistics().live_bytes;
    put(&mut session, b"large", &value_of(1, 200_000), PutOptions::default());
    let found = find(&mut session, b"large").unwrap();
    replace(&mut session, b"large", &value_of(2, 300_000), found);
    assert_eq!(get(&mut session, b"large"), Some(value_of(2, 300_000)));
    let found = find(&mut session, b"large").unwrap();
    assert!(remove_found(&mut session, b"large", found));
    assert_eq!(get(&mut session, b"large"), None);
    assert!(store.statistics().live_bytes < before + 1000, "a tombstone is left");
}

#[test]
fn a_condition_holds_for_what_was_found_as_well() {
    let device = device(16 << 20);
    let (_store, mut session) = open(&device, small());
    let first = put(&mut session, b"k", b"one", PutOptions::default()).unwrap();
    let found = find(&mut session, b"k").unwrap();
    put(&mut session, b"k", b"two", PutOptions::default());
    let condition = Condition::Version(first);
    let options = PutOptions { condition, ..PutOptions::default() };
    let operation = Operation::Replace { key: key(b"k"), value: b"three", options, found };
    let mut refused = false;
    session.run(NOW, operation, &mut |o| refused = matches!(o, Outcome::Refused { .. })).unwrap();
    assert!(refused);
    assert_eq!(get(&mut session, b"k").as_deref(), Some(&b"two"[..]));
}
