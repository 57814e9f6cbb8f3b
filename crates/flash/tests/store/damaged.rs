//! A segment with a record that the medium damaged is out of use for as long as the record counts.

use super::*;

const KEYS: u64 = 300;
const LENGTH: usize = 2000;
const DAMAGED: u64 = 7;
const END: Timestamp = Timestamp(NOW.0 + 1000);

/// What lets go of the damaged record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Removed,
    Replaced,
    Dropped,
    Ended,
}

fn is_damaged(store: &Store) -> bool {
    store.segments().iter().any(|segment| segment.state == "damaged")
}

/// Replaces others until reclaim has seen every segment.
fn churn(session: &mut Session, space: SpaceId, now: Timestamp) {
    for n in 0..8 * KEYS {
        let (key_bytes, value) = ((n * n % 101).to_be_bytes(), value_of(n, LENGTH));
        let key = Key::new(space, &key_bytes);
        let operation = Operation::Put { key, value: &value, options: PutOptions::default() };
        session.run(now, operation, &mut |_| {}).unwrap();
    }
}

fn refused(session: &mut Session) -> Option<ErrorKind> {
    let name = DAMAGED.to_be_bytes();
    let operation = Operation::Get { key: key(&name) };
    session.run(NOW, operation, &mut |_| {}).err().map(|error| error.kind())
}

// Such a segment was out of use for good, also once nothing in it counted any more, and tombstones
// that were younger were kept for it.
#[test]
fn a_segment_with_a_damaged_record_is_used_again_once_the_record_has_gone() {
    let options = StoreOptions { shards: 1, ..small() };
    for (case, way) in (0..4).flat_map(|case| {
        [Way::Removed, Way::Replaced, Way::Dropped, Way::Ended].map(|way| (case, way))
    }) {
        let (reopens, unreadable) = (case % 2 == 1, case / 2 == 1);
        let sim = SimDevice::new(SimOptions::new(1, 24 << 16));
        let device: Arc<dyn Device> = Arc::new(sim.clone());
        let (store, mut session) = open(&device, options.clone());
        let expiry = Expiry { at: (way == Way::Ended).then_some(END), idle_seconds: None };
        for n in 0..KEYS {
            let put_options = PutOptions { expiry, ..PutOptions::default() };
            put(&mut session, &n.to_be_bytes(), &value_of(n, LENGTH), put_options);
        }
        store.close(NOW).unwrap();
        drop((session, store));
        let value = value_of(DAMAGED, LENGTH);
        let image = sim.image().to_vec();
        let at = image.windows(LENGTH).position(|bytes| bytes == value).unwrap();
        let at = at as u64 + 1000;
        if unreadable {
            sim.fail_reads(at..at + 1)
        } else {
            sim.flip_bits(at, 4)
        }
        let kind = if unreadable { ErrorKind::Io } else { ErrorKind::Corrupt };

        let (mut store, mut session) = open(&device, options.clone());
        assert_eq!(refused(&mut session), Some(kind));
        for n in (0..KEYS).filter(|n| *n != DAMAGED && n % 30 != 0) {
            remove(&mut session, &n.to_be_bytes());
        }
        churn(&mut session, SpaceId(1), NOW);
        assert!(is_damaged(&store), "{way:?}, {case}");
        assert_eq!(refused(&mut session), Some(kind));
        if reopens {
            store.close(NOW).unwrap();
            drop((session, store));
            (store, session) = open(&device, options.clone());
        }
        let name = DAMAGED.to_be_bytes();
        let mut now = NOW;
        match way {
            Way::Removed => assert!(remove(&mut session, &name)),
            Way::Replaced => drop(put(&mut session, &name, b"new", PutOptions::default())),
            Way::Dropped => store.drop_space(SPACE).unwrap(),
            Way::Ended => now = Timestamp(END.0 + 2000),
        }
        for _ in 0..200 {
            store.maintain(now, Budget { segments: 8 }).unwrap();
        }
        churn(&mut session, SpaceId(1), now);
        assert!(!is_damaged(&store), "{way:?}, {case}");
        assert!(store.verify().unwrap().damaged.is_empty(), "{way:?}, {case}");
    }
}

#[test]
fn keys_that_look_like_that_of_a_damaged_record_are_read() {
    let options = StoreOptions { shards: 1, index_hash_bits: 6, ..small() };
    let sim = SimDevice::new(SimOptions::new(1, 24 << 16));
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let (store, mut session) = open(&device, options.clone());
    for n in 0..KEYS {
        put(&mut session, &n.to_be_bytes(), &value_of(n, LENGTH), PutOptions::default());
    }
    store.close(NOW).unwrap();
    drop((session, store));
    let value = value_of(DAMAGED, LENGTH);
    let at = sim.image().to_vec().windows(LENGTH).position(|bytes| bytes == value).unwrap();
    sim.flip_bits(at as u64 + 1000, 4);
    let (_store, mut session) = open(&device, options);
    for n in (0..2 * KEYS).filter(|n| *n != DAMAGED) {
        let there = (n < KEYS).then(|| value_of(n, LENGTH));
        assert_eq!(get(&mut session, &n.to_be_bytes()), there, "key {n}");
    }
    assert_eq!(refused(&mut session), Some(ErrorKind::Corrupt));
    assert!(remove(&mut session, &DAMAGED.to_be_bytes()));
    assert_eq!(get(&mut session, &DAMAGED.to_be_bytes()), None);
}
