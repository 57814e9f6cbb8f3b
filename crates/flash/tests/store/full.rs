//! A store that has no room left.

use std::sync::Arc;

use entresol_device::{Device, FileDevice, FileOptions};
use entresol_flash::{
    Budget, Compression, Condition, Durability, EncryptionKey, Error, ErrorKind, Expiry, Opened,
    Operation, Outcome, PutOptions, Session, Store, StoreOptions, Timestamp,
};

use crate::{NOW, SPACE, device, get, get_at, key, open, put, remove, small, value_of};

#[test]
fn a_full_store_refuses_puts_but_still_reads_and_removes() {
    let device = device(4 << 20);
    let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
    let mut stored = 0u64;
    let error = loop {
        let name = format!("key {stored}");
        let operation = Operation::Put {
            key: key(name.as_bytes()),
            value: &value_of(stored, 1000),
            options: PutOptions::default(),
        };
        match session.run(NOW, operation, &mut |_| {}) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 10_000);
    };
    assert_eq!(error.kind(), ErrorKind::Full);
    for n in 0..stored {
        let found = get(&mut session, format!("key {n}").as_bytes());
        assert_eq!(found, Some(value_of(n, 1000)), "key {n} of {stored}");
    }
    for n in 0..stored / 2 {
        assert!(remove(&mut session, format!("key {n}").as_bytes()));
    }
    put(&mut session, b"again", b"room", PutOptions::default());
    assert_eq!(store.count(SPACE), stored - stored / 2 + 1);
}

#[test]
fn a_full_store_takes_what_is_no_larger_than_what_it_replaces() {
    let plain = StoreOptions { shards: 1, ..small() };
    let stores = [
        plain.clone(),
        StoreOptions { compression: Compression::Lz4, ..plain.clone() },
        StoreOptions { encryption: Some(EncryptionKey([9; 32])), ..plain },
    ];
    for options in stores {
        // The last are of several pieces.
        for length in [50, 1000, 9000, 40_000] {
            for segments in [33, 65, 257] {
                replaced_when_full(options.clone(), segments, length);
            }
        }
    }
}

fn replaced_when_full(options: StoreOptions, segments: u64, length: usize) {
    let bytes = segments * u64::from(options.segment_bytes);
    let (_store, mut session) = open(&device(bytes), options);
    let stored = fill(&mut session, 0, length);
    replace_all(&mut session, stored, length);
    let grown = |session: &mut Session, n| {
        put_packed(session, n, (n + 9, 8 * length)).map_err(|e| e.kind())
    };
    let refused = (0..stored).filter(|n| grown(&mut session, *n).is_err()).collect::<Vec<_>>();
    // A few may grow into what one more would have taken.
    assert!(refused.len() as u64 + 9 > stored, "{} of {stored}, {length}", refused.len());
    for n in refused {
        assert_eq!(get(&mut session, &n.to_be_bytes()), Some(packed(n + 3, length)), "{n}");
    }
    for n in 0..stored / 2 {
        put_packed(&mut session, n, (n, 1)).unwrap();
    }
    put_packed(&mut session, stored, (stored, 1)).unwrap();
}

// Tombstones were all that reclaim had left, and it went on with none: they hide what a use of a
// segment held whose end was not durable, or an open segment that nothing was appended to any more.
// A store of small entries that had all been removed, or had ended, was full again at three fifths,
// and stayed so.
#[test]
fn a_store_whose_entries_all_went_takes_as_many_again() {
    for (segments, length) in [(33, 50), (65, 50), (65, 300), (257, 100)] {
        for ends in [false, true] {
            refilled(&device(segments << 16), (segments, length), ends);
        }
    }
    // On a device that answers later.
    let path = std::env::temp_dir().join(format!("entresol-refilled-{}", std::process::id()));
    let options = FileOptions { capacity_bytes: Some(65 << 16), ..FileOptions::default() };
    let file: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &options).unwrap());
    refilled(&file, (65, 50), true);
    std::fs::remove_file(&path).unwrap();
}

fn refilled(device: &Arc<dyn Device>, (segments, length): (u64, usize), ends: bool) {
    let (store, mut session) = open(device, StoreOptions { shards: 1, ..small() });
    let at = ends.then_some(Timestamp(NOW.0 + 1000));
    let mut put = |n: u64| put_ending(&mut session, n, length, (NOW, at));
    let mut stored = 0;
    while put(stored).is_ok() {
        stored += 1;
    }
    for n in (0..6).flat_map(|_| 0..stored) {
        put(n).unwrap();
    }
    for n in (0..stored).filter(|_| !ends) {
        assert!(remove(&mut session, &n.to_be_bytes()));
    }
    let later = Timestamp(NOW.0 + 10_000);
    while store.maintain(later, Budget { segments: 64 }).unwrap().more {}
    let told = |n| format!("{n} of {stored}, {length}, {segments} segments, ends: {ends}");
    for n in 0..stored {
        let put = put_ending(&mut session, n, length, (later, None));
        put.unwrap_or_else(|error| panic!("{}: {error}", told(n)));
    }
    for n in 0..stored {
        assert_eq!(get(&mut session, &n.to_be_bytes()), Some(packed(n, length)), "{}", told(n));
    }
}

// Only maintenance let ended entries go: puts were refused until it came round to them.
#[test]
fn a_full_store_takes_new_entries_in_place_of_ended_ones_that_nobody_swept() {
    for (segments, length) in [(33, 50), (65, 300), (65, 9000), (129, 40_000)] {
        let device = device(segments << 16);
        let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
        let ends = Some(Timestamp(NOW.0 + 1000));
        let mut put = |n: u64, now, ends| put_ending(&mut session, n, length, (now, ends));
        let stored = (0..).take_while(|n| put(*n, NOW, ends).is_ok()).count() as u64;
        let later = Timestamp(NOW.0 + 10_000);
        // Entries of segments that are open yet are let go with those.
        let again = (stored..2 * stored).take_while(|n| put(*n, later, None).is_ok()).count();
        let told = format!("{again} of {stored}, {length}, {segments} segments");
        assert!(again as u64 * 20 >= stored * 17, "{told}");
        assert!(store.count(SPACE) < stored + stored / 5, "{told}");
    }
}

fn put_ending(
    session: &mut Session,
    n: u64,
    length: usize,
    (now, at): (Timestamp, Option<Timestamp>),
) -> Result<(), Error> {
    let expiry = Expiry { at, idle_seconds: None };
    let options = PutOptions { expiry, ..PutOptions::default() };
    let (name, value) = (n.to_be_bytes(), packed(n, length_of(n, length)));
    session.run(now, Operation::Put { key: key(&name), value: &value, options }, &mut |_| {})
}

// The first end of an entry takes eight bytes, and was refused where they made its record larger:
// what would have made room could not be said.
#[test]
fn a_full_store_takes_first_ends_and_is_filled_again_once_they_have_passed() {
    let plain = StoreOptions { shards: 1, ..small() };
    let encrypted = StoreOptions { encryption: Some(EncryptionKey([9; 32])), ..plain.clone() };
    for options in [plain, encrypted] {
        // Eight bytes make records of the second and the fourth length larger, the second by an
        // eighteenth, and all where they are encrypted; the last but one are of several pieces.
        for length in [50, 1048, 9000, 9176, 40_000, MIXED] {
            for segments in [33, 65, 129, 257] {
                ended_when_full(options.clone(), segments, length);
            }
        }
    }
}

fn ended_when_full(options: StoreOptions, segments: u64, length: usize) {
    let bytes = segments * u64::from(options.segment_bytes);
    let (store, mut session) = open(&device(bytes), options.clone());
    let stored = fill(&mut session, 0, length);
    let (ended, refused): (Vec<_>, Vec<_>) =
        (0..stored).partition(|n| touch(&mut session, *n, 1).is_ok());
    let told = format!("{} of {stored}, {length}, {segments} segments", ended.len());
    if segments > 200 || segments > 64 && length == 1048 {
        // A third of what the full mark leaves is 1.7 percent; records grow by 5.9, or by 11.
        assert!(ended.len() as u64 * 8 > stored, "{told}");
    }
    for n in &refused {
        assert_eq!(touch(&mut session, *n, 1).unwrap_err().kind(), ErrorKind::Full, "{told}");
    }
    // At the later mark, too, what is no larger than what it replaces always has a place.
    for (round, n) in (2..5).flat_map(|round| ended.iter().map(move |n| (round, *n))) {
        touch(&mut session, n, round).unwrap_or_else(|error| panic!("{told}: {n}: {error}"));
    }
    replace_all(&mut session, stored, length);
    for n in refused.iter().take(refused.len() / 2) {
        assert!(remove(&mut session, &n.to_be_bytes()), "{told}");
    }
    for n in &ended {
        touch(&mut session, *n, 1).unwrap_or_else(|error| panic!("{told}: {n}: {error}"));
    }
    let later = Timestamp(NOW.0 + 10_000);
    while store.maintain(later, Budget { segments: 64 }).unwrap().more {}
    for n in &ended {
        assert_eq!(get_at(&mut session, &n.to_be_bytes(), later), None, "{told}");
    }
    // What filled segments lose is a mean, so that a few less may fit.
    let put = |n: &&u64| put_ending(&mut session, **n, length, (later, None)).is_ok();
    let again = ended.iter().take_while(put).count();
    assert!(again * 10 >= ended.len() * 9, "{told}: {again}");
}

/// Gives entry `n` an end, so many seconds from now.
fn touch(session: &mut Session, n: u64, seconds: u64) -> Result<(), Error> {
    let at = Some(Timestamp(NOW.0 + seconds * 1000));
    let expiry = Expiry { at, idle_seconds: None };
    let (name, condition) = (n.to_be_bytes(), Condition::Always);
    let mut touched = false;
    let operation = Operation::Touch { key: key(&name), expiry, condition };
    session.run(NOW, operation, &mut |o| touched = matches!(o, Outcome::Touched { .. }))?;
    assert!(touched, "entry {n} is there");
    Ok(())
}

/// Puts entries from number `stored` on until the store is full; how many there are then.
fn fill(session: &mut Session, mut stored: u64, length: usize) -> u64 {
    while put_packed(session, stored, (stored, length)).is_ok() {
        stored += 1;
    }
    stored
}

/// Puts other values of the same length, three times over.
fn replace_all(session: &mut Session, stored: u64, length: usize) {
    for (round, n) in (1..4).flat_map(|round| (0..stored).map(move |n| (round, n))) {
        let replaced = put_packed(session, n, (n + round, length));
        replaced
            .unwrap_or_else(|error| panic!("{n} of {stored}, {length}, round {round}: {error}"));
    }
}

// What filled segments lose was forgotten with each opening: values of which few fit a segment then
// took what reclaim needs, and nothing was taken any more.
#[test]
fn a_store_that_is_full_again_after_each_opening_takes_what_is_no_larger() {
    for (segments, length, closes) in [(257, 13_100), (257, 9_000), (129, 13_100), (65, 10_000)]
        .into_iter()
        .flat_map(|(segments, length)| [true, false].map(|closes| (segments, length, closes)))
    {
        let options = StoreOptions { shards: 1, ..small() };
        let device = device(segments * u64::from(options.segment_bytes));
        let mut stored = 0;
        for _ in 0..2 {
            let (store, mut session) = open(&device, options.clone());
            stored = fill(&mut session, stored, length);
            if closes { store.close(NOW).unwrap() } else { store.sync().unwrap() }
        }
        let (_store, mut session) = open(&device, options.clone());
        let stored = fill(&mut session, stored, length);
        replace_all(&mut session, stored, length);
    }
}

/// Half of it is noise, so that a compressor has something to do.
fn packed(n: u64, length: usize) -> Vec<u8> {
    let mut value = value_of(n, length / 2);
    value.resize(length, 7);
    value
}

/// Instead of a length: one of twenty is large, the others are small.
const MIXED: usize = usize::MAX;

fn length_of(name: u64, length: usize) -> usize {
    match length {
        MIXED if name.is_multiple_of(20) => 9176,
        MIXED => 60,
        length => length,
    }
}

fn put_packed(session: &mut Session, name: u64, (seed, length): (u64, usize)) -> Result<(), Error> {
    let length = length_of(name, length);
    let name = name.to_be_bytes();
    let value = packed(seed, length);
    let options = PutOptions::default();
    session.run(NOW, Operation::Put { key: key(&name), value: &value, options }, &mut |_| {})
}

// Each of them is padded to the unit of a sync. What is padding was never gained back: a store of
// values of 2.5 KB was full at three fifths, with nothing dead in it.
#[test]
fn entries_synced_one_by_one_fill_a_store_as_others_do() {
    let filled = |synced: bool| {
        let durability = if synced { Durability::Synced } else { Durability::Memory };
        let options = StoreOptions { shards: 1, durability, ..small() };
        let device = device(32 << 20);
        let (mut store, mut session) = open(&device, options.clone());
        let mut stored = 0;
        while put_packed(&mut session, stored, (stored, 2500)).is_ok() {
            stored += 1;
            // Also after a crash and after a clean stop it is known what is padding.
            if stored == 3000 || stored == 6000 {
                if stored == 6000 {
                    store.close(NOW).unwrap();
                } else {
                    store.sync().unwrap();
                }
                drop((session, store));
                (store, session) = open(&device, options.clone());
            }
        }
        for n in 0..stored {
            assert_eq!(get(&mut session, &n.to_be_bytes()), Some(packed(n, 2500)), "{n}");
        }
        stored
    };
    let (synced, others) = (filled(true), filled(false));
    assert!(synced * 100 > others * 95, "{synced} against {others}");
}

#[test]
fn a_store_grows_to_the_capacity_that_it_is_opened_with() {
    // Within the addresses that its index has bits for, and beyond.
    for (grown, opened) in [(24 << 20, Opened::Checkpoint), (80 << 20, Opened::Recovered)] {
        let device = device(96 << 20);
        let sized = |bytes| StoreOptions { capacity_bytes: bytes, ..small() };
        let fill = |store: &Store, session: &mut Session| {
            let mut stored = store.count(SPACE);
            while put_packed(session, stored, (stored, 9000)).is_ok() {
                stored += 1;
            }
            store.close(NOW).unwrap();
            stored
        };
        let (store, mut session) = open(&device, sized(Some(16 << 20)));
        let before = fill(&store, &mut session);
        drop((store, session));
        let (store, mut session) = open(&device, sized(None));
        assert_eq!(fill(&store, &mut session), before, "as it was made");
        drop((store, session));
        let (store, mut session) = open(&device, sized(Some(grown)));
        assert_eq!(store.statistics().opened, opened);
        let after = fill(&store, &mut session);
        assert!(after * (16 << 20) > before * grown * 9 / 10, "{before}, then {after}");
        drop((store, session));
        // It does not shrink.
        let (store, mut session) = open(&device, sized(Some(16 << 20)));
        assert_eq!(store.count(SPACE), after);
        for n in 0..after {
            assert_eq!(get(&mut session, &n.to_be_bytes()), Some(packed(n, 9000)), "{n}");
        }
        drop((store, session));
    }
}

// A put gave up after 64 segments, whatever they gave: one that needs more of them free was
// refused, however much was dead.
#[test]
fn a_put_makes_all_the_room_it_needs_where_so_much_is_dead() {
    let device = device(64 << 20);
    let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
    let few = 40_000;
    for round in 0..3 {
        for n in 0..few {
            put_packed(&mut session, n, (n + round, 1000)).unwrap();
        }
    }
    for n in (0..few).filter(|n| n % 8 != 0) {
        assert!(remove(&mut session, &n.to_be_bytes()));
    }
    let before = store.statistics().segments_free;
    assert!(before < 96, "{before} segments are free: there is nothing to make room for");
    put_packed(&mut session, few, (7, 6 << 20)).unwrap();
    assert_eq!(get(&mut session, &few.to_be_bytes()), Some(packed(7, 6 << 20)));
    for n in (0..few).filter(|n| n % 8 == 0) {
        assert_eq!(get(&mut session, &n.to_be_bytes()), Some(packed(n + 2, 1000)), "{n}");
    }
}

// Its bytes before compression were compared with what the store has.
#[test]
fn a_value_that_compression_makes_fit_is_stored() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let device = device(4 << 20);
        let options = StoreOptions { shards: 1, compression, ..small() };
        let (store, mut session) = open(&device, options.clone());
        for n in 0..400 {
            put_packed(&mut session, n, (n, 1000)).unwrap();
        }
        let value = vec![5; 8 << 20];
        put(&mut session, b"one byte", &value, PutOptions::default());
        // As a new one and in place of another.
        put(&mut session, b"one byte", &value, PutOptions::default());
        assert_eq!(get(&mut session, b"one byte").as_ref(), Some(&value));
        store.close(NOW).unwrap();
        drop((session, store));
        let (_store, mut session) = open(&device, options);
        assert_eq!(get(&mut session, b"one byte"), Some(value));
        let noise = value_of(1, 8 << 20);
        let operation =
            Operation::Put { key: key(b"noise"), value: &noise, options: PutOptions::default() };
        let refused = session.run(NOW, operation, &mut |_| {}).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    }
}

// What was dropped counted as live until reclaim came round to it: a full store refused puts after
// all of it was dropped.
#[test]
fn a_full_store_takes_as_many_entries_again_once_all_were_dropped() {
    for (segments, length) in [(33, 50), (65, 300), (65, 9000), (129, 40_000)] {
        let device = device(segments << 16);
        let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
        let first = fill(&mut session, 0, length);
        for round in 0..4 {
            store.drop_space(SPACE).unwrap();
            let stored = fill(&mut session, 0, length);
            assert_eq!(store.count(SPACE), stored);
            let told = format!("{stored} of {first}, {length}, {segments} segments, round {round}");
            // What filled segments lose is a mean, so that a few less may fit.
            assert!(stored * 20 >= first * 19, "{told}");
        }
    }
}

// What had gone and was in an open segment counted as live, for good where nothing more came for
// its stream: an emptied store of sixteen segments took two thirds of what a fresh one takes.
#[test]
fn a_full_store_takes_as_many_entries_again_once_what_its_open_segments_had_is_gone() {
    const LENGTH: usize = 3000;
    let end = Timestamp(NOW.0 + 1000);
    for ends in [false, true] {
        let options = StoreOptions { shards: 1, ..small() };
        let (store, mut session) = open(&device(18 << 16), options.clone());
        let (fresh, mut fresh_session) = open(&device(18 << 16), options);
        let expiry = Expiry { at: ends.then_some(end), idle_seconds: None };
        // Those that replace young ones have a segment of their own, and nothing fills it up.
        for n in (0..16u64).chain(0..16) {
            let put_options = PutOptions { expiry, ..PutOptions::default() };
            put(&mut session, &n.to_be_bytes(), &value_of(n, LENGTH), put_options);
        }
        if !ends {
            store.drop_space(SPACE).unwrap();
        }
        let fill = |session: &mut Session| {
            let fits = |n: &u64| {
                let (key_bytes, value) = (n.to_be_bytes(), value_of(*n, LENGTH));
                let options = PutOptions::default();
                let operation = Operation::Put { key: key(&key_bytes), value: &value, options };
                session.run(end, operation, &mut |_| {}).is_ok()
            };
            (100..).take_while(fits).count()
        };
        let (stored, first) = (fill(&mut session), fill(&mut fresh_session));
        assert!(stored * 20 >= first * 19, "{stored} of {first}, ended: {ends}");
        assert_eq!((store.count(SPACE), fresh.count(SPACE)), (stored as u64, first as u64));
    }
}
