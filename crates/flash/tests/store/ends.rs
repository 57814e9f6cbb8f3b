//! What has ended is removed all the same.

use super::*;

/// When the entries of these tests end: in the midst of a second.
const END: Timestamp = Timestamp(NOW.0 + 1500);

fn ending() -> PutOptions {
    let expiry = Expiry { at: Some(END), idle_seconds: None };
    PutOptions { expiry, ..PutOptions::default() }
}

fn remove_at(session: &mut Session, k: &[u8], now: Timestamp, condition: Condition) -> String {
    let mut told = String::new();
    let operation = Operation::Remove { key: key(k), condition };
    session.run(now, operation, &mut |outcome| told = format!("{outcome:?}")).unwrap();
    told
}

// The entry was left in the index until all of its last second was over, or let go without a
// tombstone: it was there again after the clock went back.
#[test]
fn what_was_removed_after_it_ended_stays_away_when_the_clock_goes_back() {
    for (later_ms, large) in [(0, 0), (300, 0), (9000, 0), (300, 200_000), (9000, 200_000)] {
        let device = device(16 << 20);
        let (store, mut session) = open(&device, small());
        let value = value_of(1, 100 + large);
        put(&mut session, b"ended", &value, ending()).unwrap();
        let later = Timestamp(END.0 + later_ms);
        assert_eq!(get_at(&mut session, b"ended", END), None);
        let told = remove_at(&mut session, b"ended", later, Condition::Always);
        assert_eq!(told, "Missing", "{later_ms} ms later");
        assert_eq!(store.count(SPACE), 0);
        assert_eq!(get(&mut session, b"ended"), None, "{later_ms} ms later");
        store.sync().unwrap();
        drop((session, store));
        let (store, mut session) = open(&device, small());
        assert_eq!(get(&mut session, b"ended"), None, "{later_ms} ms later, recovered");
        assert_eq!(store.count(SPACE), 0);
    }
}

#[test]
fn what_ended_is_not_removed_where_another_version_was_meant() {
    let device = device(16 << 20);
    let (_store, mut session) = open(&device, small());
    let version = put(&mut session, b"ended", b"value", ending()).unwrap();
    let other = Condition::Version(Version(version.0 + 1));
    assert_eq!(remove_at(&mut session, b"ended", END, other), "Missing");
    assert!(get(&mut session, b"ended").is_some());
}

// It was taken for absent, while another key in whose place the index could not tell it apart had
// not been looked at; and so again and again until the removal was given up as `Busy`.
#[test]
fn a_cache_removes_what_has_just_ended_among_keys_that_look_alike() {
    const KEYS: u64 = 40;
    let options = StoreOptions { reclaim: Reclaim::Evict, index_hash_bits: 3, ..small() };
    let device = device(16 << 20);
    let (store, mut session) = open(&device, options.clone());
    for n in 0..KEYS {
        put(&mut session, &n.to_be_bytes(), &value_of(n, 300), ending()).unwrap();
    }
    store.close(NOW).unwrap();
    drop((session, store));
    let (store, mut session) = open(&device, options);
    for n in 0..KEYS {
        let told = remove_at(&mut session, &n.to_be_bytes(), END, Condition::Always);
        assert_eq!(told, "Missing");
        assert_eq!(store.count(SPACE), KEYS - n - 1);
    }
}

fn put_at(session: &mut Session, k: &[u8], value: &[u8], now: Timestamp, at: Option<Timestamp>) {
    let expiry = Expiry { at, idle_seconds: None };
    let options = PutOptions { expiry, ..PutOptions::default() };
    let operation = Operation::Put { key: key(k), value, options };
    session.run(now, operation, &mut |_| ()).unwrap();
}

/// Overwrites entries until all segments but those that are full of other ones were reclaimed.
fn overwrite(store: &Store, session: &mut Session, now: Timestamp) {
    for n in 0..4000_u64 {
        put_at(session, &(n % 40).to_be_bytes(), &value_of(n, 1000), now, None);
        store.maintain(now, Budget { segments: 2 }).unwrap();
    }
}

// What a run had dropped as ended was no more than dead to the next one where the clock had gone
// back between them: reclaim let it go without a tombstone, and an older value of the key came
// back.
#[test]
fn what_ended_hides_older_values_when_the_clock_goes_back_between_runs() {
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, ..small() };
    let (store, mut session) = open(&device, options.clone());
    put_at(&mut session, b"name", b"older", NOW, None);
    // They keep the segment of the older value where it is.
    for n in 1000..1060_u64 {
        put_at(&mut session, &n.to_be_bytes(), &value_of(n, 1000), NOW, None);
    }
    put_at(&mut session, b"name", b"newer", NOW, Some(END));
    overwrite(&store, &mut session, NOW);
    put_at(&mut session, b"name", b"newest", NOW, Some(END));
    assert_eq!(get_at(&mut session, b"name", Timestamp(END.0 + 2000)), None);
    store.close(NOW).unwrap();
    drop((session, store));
    let (store, mut session) = open(&device, options.clone());
    assert_eq!(get(&mut session, b"name"), None);
    overwrite(&store, &mut session, NOW);
    store.sync().unwrap();
    drop((session, store));
    let (_store, mut session) = open(&device, options);
    assert_eq!(get(&mut session, b"name"), None, "an older value came back");
}

// Once something had been dropped as ended, all that ended no later counted as over, although the
// clock had gone back since and its time had not come.
#[test]
fn an_entry_lives_to_its_end_after_a_clock_that_ran_ahead_was_put_right() {
    const HOUR_MS: u64 = 3_600_000;
    const ENTRIES: u64 = 1000;
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, ..small() };
    let (store, mut session) = open(&device, options);
    put_at(&mut session, b"first", b"value", NOW, Some(Timestamp(NOW.0 + 24 * HOUR_MS)));
    assert_eq!(get_at(&mut session, b"first", Timestamp(NOW.0 + 25 * HOUR_MS)), None);
    let later = Timestamp(NOW.0 + HOUR_MS);
    let name = |n: u64| (1000 + n).to_be_bytes();
    let mut random = entresol_sim::Random::new(7);
    for n in 0..8 * ENTRIES {
        if n < ENTRIES {
            put_at(&mut session, &name(n), &value_of(n, 1000), NOW, Some(later));
        }
        // Reclaim has to do with the segments of all of them.
        let other = random.below(ENTRIES).to_le_bytes();
        put_at(&mut session, &other, &value_of(n, 1000), NOW, None);
        store.maintain(NOW, Budget { segments: 2 }).unwrap();
    }
    let found = (0..ENTRIES).filter(|n| get(&mut session, &name(*n)).is_some()).count();
    assert_eq!(found as u64, ENTRIES, "the others went an hour too early");
    assert!((0..ENTRIES).all(|n| get_at(&mut session, &name(n), later).is_none()));
}

// What had been dropped as ended by a clock that ran ahead left no tombstone when it was removed
// after the clock was put right: a recovery found it, and its end was yet to come.
#[test]
fn what_was_removed_after_a_clock_was_put_right_stays_away() {
    for reclaim in [Reclaim::Compact, Reclaim::Evict] {
        let device = device(16 << 20);
        let options = StoreOptions { reclaim, ..small() };
        let (store, mut session) = open(&device, options.clone());
        put(&mut session, b"ended", b"value", ending()).unwrap();
        assert_eq!(get_at(&mut session, b"ended", Timestamp(END.0 + 9000)), None);
        assert_eq!(remove_at(&mut session, b"ended", NOW, Condition::Always), "Missing");
        store.sync().unwrap();
        drop((session, store));
        let (_store, mut session) = open(&device, options);
        assert_eq!(get(&mut session, b"ended"), None, "{reclaim:?}");
    }
}

// What the index had yet counted as over where its record did not verify, once something had been
// dropped that ended later: a put that wanted no entry there was taken.
#[test]
fn a_damaged_entry_lives_to_its_end_after_a_clock_that_ran_ahead_was_put_right() {
    let sim = SimDevice::new(SimOptions::new(1, 16 << 20));
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let options = StoreOptions { shards: 1, ..small() };
    let (store, mut session) = open(&device, options.clone());
    let tomorrow = Timestamp(NOW.0 + 86_400_000);
    put_at(&mut session, b"first", b"value", NOW, Some(tomorrow));
    assert_eq!(get_at(&mut session, b"first", Timestamp(tomorrow.0 + 5000)), None);
    let value = value_of(1, 2000);
    put_at(&mut session, b"damaged", &value, NOW, Some(Timestamp(NOW.0 + 3_600_000)));
    store.close(NOW).unwrap();
    drop((session, store));
    let image = sim.image().to_vec();
    let at = image.windows(value.len()).position(|bytes| bytes == value).unwrap();
    sim.flip_bits(at as u64 + 1000, 4);
    let (_store, mut session) = open(&device, options);
    let absent = PutOptions { condition: Condition::Absent, ..PutOptions::default() };
    assert_eq!(put(&mut session, b"damaged", b"new", absent), None, "it is there");
    assert!(remove(&mut session, b"damaged"));
    assert_eq!(get(&mut session, b"damaged"), None);
}

// An entry put over one that a clock ran ahead of, with an earlier end, was taken for the first of
// its key: reclaim let it go without a tombstone, and the older value came back.
#[test]
fn what_ended_hides_a_value_that_was_dropped_before_a_clock_was_put_right() {
    let device = device(4 << 20);
    let options = StoreOptions { shards: 1, ..small() };
    let (store, mut session) = open(&device, options.clone());
    let tomorrow = Timestamp(NOW.0 + 86_400_000);
    put_at(&mut session, b"name", b"older", NOW, Some(tomorrow));
    let put_others = |session: &mut Session, names: std::ops::Range<u64>| {
        for n in names {
            put_at(session, &n.to_be_bytes(), &value_of(n, 1000), NOW, None);
        }
    };
    // The first keep the segment of the older value where it is; the rest go with the newer one's.
    put_others(&mut session, 1000..1070);
    assert_eq!(get_at(&mut session, b"name", Timestamp(tomorrow.0 + 5000)), None);
    put_at(&mut session, b"name", b"newer", NOW, Some(END));
    put_others(&mut session, 2000..2070);
    put_others(&mut session, 2000..2070);
    put_others(&mut session, 1050..1070);
    let later = Timestamp(END.0 + 2000);
    assert_eq!(get_at(&mut session, b"name", later), None);
    overwrite(&store, &mut session, later);
    store.sync().unwrap();
    drop((session, store));
    let store = Store::open(Arc::clone(&device), options, later).unwrap();
    let mut session = store.session(SessionOptions::default()).unwrap();
    assert_eq!(get_at(&mut session, b"name", later), None, "an older value came back");
}

// A get of a large value that had ended left a tombstone in a store that was to be read only, and a
// sync wrote it.
#[test]
fn a_store_that_is_opened_for_reading_writes_nothing_for_what_has_ended() {
    for closes in [true, false] {
        let sim = SimDevice::new(SimOptions::new(1, 16 << 20));
        let device: Arc<dyn Device> = Arc::new(sim.clone());
        let (store, mut session) = open(&device, small());
        put(&mut session, b"ended", &value_of(1, 200_000), ending()).unwrap();
        store.sync().unwrap();
        if closes {
            store.close(NOW).unwrap();
        }
        drop((session, store));
        let before = sim.calls();
        let (store, mut session) =
            open(&device, StoreOptions { mode: OpenMode::ReadOnly, ..small() });
        assert!(get(&mut session, b"ended").is_some());
        assert_eq!(get_at(&mut session, b"ended", Timestamp(END.0 + 5000)), None);
        store.sync().unwrap();
        drop((session, store));
        assert_eq!(sim.calls(), before, "closes: {closes}");
    }
}

// Only sealed segments were swept, so that what ended in one that is open was counted for as long
// as little was appended: DBSIZE of a server told of entries that had ended days before.
#[test]
fn what_ends_in_an_open_segment_is_no_longer_counted_after_a_look() {
    for reclaim in [Reclaim::Compact, Reclaim::Evict] {
        let device = device(8 << 20);
        let (store, mut session) = open(&device, StoreOptions { reclaim, ..small() });
        for n in 0..100u64 {
            let at = Some(Timestamp(NOW.0 + 1000 * (n % 10 + 1)));
            let expiry = Expiry { at, idle_seconds: None };
            let options = PutOptions { expiry, ..PutOptions::default() };
            put(&mut session, &n.to_be_bytes(), b"v", options);
        }
        put(&mut session, b"stays", b"v", PutOptions::default());
        for seconds in 1..=10 {
            let now = Timestamp(NOW.0 + 1000 * seconds);
            store.maintain(now, Budget { segments: 4 }).unwrap();
            assert_eq!(store.count(SPACE), 101 - 10 * seconds, "after {seconds} s");
            assert_eq!(store.statistics().expired, 10 * seconds);
        }
        assert_eq!(get(&mut session, b"stays"), Some(b"v".to_vec()));
        // What they hid stays hidden, also where the machine stops and the clock goes back.
        store.sync().unwrap();
        drop((session, store));
        let (store, _session) = open(&device, StoreOptions { reclaim, ..small() });
        assert!(store.count(SPACE) <= 101);
    }
}
