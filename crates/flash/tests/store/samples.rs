//! A sample tells what entries are, without their values.

use std::collections::BTreeMap;

use entresol_flash::{SamplePlace, Sampled};

use super::*;

const OTHER: SpaceId = SpaceId(3);
const LARGE: usize = 200_000;

/// What all entries are at `now`.
fn everything(store: &Store, session: &mut Session, now: Timestamp) -> Vec<Sampled> {
    let mut found = Vec::new();
    for shard in 0..u64::from(store.options().shards) {
        let mut hash = 0;
        loop {
            let place = SamplePlace { hash, shard };
            hash = session.sample(place, 100, now, &mut |one| found.push(one)).unwrap();
            if hash == 0 {
                break;
            }
        }
    }
    found
}

/// Puts an entry of which every fourth ends, and every second has another label.
fn put_in(session: &mut Session, space: SpaceId, number: usize, value: &[u8]) {
    let end = Timestamp(NOW.0 + 1_000_000);
    let expiry = Expiry { at: number.is_multiple_of(4).then_some(end), idle_seconds: None };
    let options = PutOptions { expiry, label: (number % 2) as u8, ..PutOptions::default() };
    let bytes = format!("{number:08}");
    let key = Key::new(space, bytes.as_bytes());
    session.run(NOW, Operation::Put { key, value, options }, &mut |_| {}).unwrap();
}

#[test]
fn a_sample_of_everything_has_each_live_entry_once_and_says_what_it_is() {
    let secret = StoreOptions {
        compression: Compression::Lz4,
        encryption: Some(EncryptionKey([7; 32])),
        ..small()
    };
    for options in [small(), secret] {
        let device = device(16 << 20);
        let (store, mut session) = open(&device, options);
        for number in 0..2000 {
            let space = if number % 5 == 0 { OTHER } else { SPACE };
            put_in(&mut session, space, number, &vec![7; number]);
            // Some are replaced by others of the same size.
            if number % 3 == 0 {
                put_in(&mut session, space, number, &vec![8; number]);
            }
        }
        put_in(&mut session, OTHER, 9999, &vec![9; LARGE]);
        for number in (1..2000).step_by(100) {
            assert!(remove(&mut session, format!("{number:08}").as_bytes()));
        }
        let found = everything(&store, &mut session, NOW);
        let of = |space: SpaceId| found.iter().filter(move |one| one.space == space);
        assert_eq!(of(SPACE).count() as u64, store.count(SPACE));
        assert_eq!(of(OTHER).count() as u64, store.count(OTHER));
        assert_eq!(found.len(), 2001 - 20);
        let sizes: BTreeMap<u64, &Sampled> =
            found.iter().map(|one| (one.value_bytes, one)).collect();
        assert_eq!(sizes.len(), found.len(), "each has another size");
        for (bytes, one) in sizes {
            let number = if bytes == LARGE as u64 { 9999 } else { bytes };
            assert_eq!(one.key_bytes, 8);
            assert_eq!(u64::from(one.label), number % 2, "{one:?}");
            assert_eq!(one.ends, number % 4 == 0, "{one:?}");
            assert_eq!(one.space == OTHER, number % 5 == 0 || number == 9999, "{one:?}");
            let is_plain = store.options().encryption.is_none();
            assert!(!is_plain || one.record_bytes > bytes, "{one:?}");
            assert!(one.record_bytes < bytes + 400, "{one:?}");
        }
    }
}

#[test]
fn a_sample_is_about_as_large_as_asked_for_wherever_it_begins_and_has_nothing_that_ended() {
    let device = device(16 << 20);
    let (store, mut session) = open(&device, small());
    (0..8000).for_each(|number| put_in(&mut session, SPACE, number, b"value"));
    let (mut all, shards) = (0, u64::from(store.options().shards));
    for place in 0..64 {
        // Any number is a place, and any shard.
        let place = SamplePlace { hash: (place << 58) + 12_345, shard: place };
        let mut found = 0;
        session.sample(place, 12, NOW, &mut |_| found += 1).unwrap();
        all += found;
        assert!(found < 60, "{found} at {place:?} of {shards} shards");
    }
    assert!(all > 64 * 4, "{all}");
    assert_eq!(everything(&store, &mut session, NOW).len(), 8000);
    let later = Timestamp(NOW.0 + 2_000_000);
    let left = everything(&store, &mut session, later);
    assert!(left.len() == 6000 && left.iter().all(|one| !one.ends), "{}", left.len());
}
