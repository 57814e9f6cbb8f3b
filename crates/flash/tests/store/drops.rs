//! A space or partition is dropped while operations on it wait for the device.

use super::*;

const KEYS: u64 = 500;
const NAME: &[u8] = b"key 7";

/// A store whose entries can be read from the device alone.
fn filled(expiry: Expiry) -> (Arc<dyn Device>, Store, Session) {
    let device = device(16 << 20);
    let (store, mut session) = open(&device, small());
    for n in 0..KEYS {
        let options = PutOptions { expiry, ..PutOptions::default() };
        put(&mut session, format!("key {n}").as_bytes(), &value_of(n, 500), options);
    }
    store.close(NOW).unwrap();
    drop((session, store));
    let (store, session) = open(&device, small());
    (device, store, session)
}

/// What `operation` comes to that was submitted before its space was dropped and is answered after.
fn across_a_drop(
    store: &Store,
    session: &mut Session,
    (operation, now): (Operation<'_>, Timestamp),
) -> String {
    let mut told = String::new();
    let mut visit = |_, outcome: entresol_flash::Result<Outcome<'_>>| {
        told = match outcome.unwrap() {
            Outcome::Found(entry) => format!("found {} bytes", entry.value.len()),
            other => format!("{other:?}"),
        };
    };
    session.submit(1, now, operation, &mut visit);
    session.flush().unwrap();
    store.drop_space(SPACE).unwrap();
    while session.in_flight() > 0 {
        session.poll(1, now, &mut visit).unwrap();
    }
    told
}

#[test]
fn an_operation_that_meets_a_drop_changes_nothing_of_what_was_dropped() {
    let idle = Expiry { at: None, idle_seconds: NonZeroU32::new(100) };
    let never = Expiry { at: None, idle_seconds: None };
    let ends = Expiry { at: Some(Timestamp(NOW.0 + 1000)), idle_seconds: None };
    let later = Timestamp(NOW.0 + 60_000);
    let present = PutOptions { condition: Condition::Present, ..PutOptions::default() };
    let condition = Condition::Always;
    let touch = Operation::Touch { key: key(NAME), expiry: never, condition };
    let replace = Operation::Put { key: key(NAME), value: b"new", options: present };
    let cases = [
        ("touch", never, touch, NOW, "Missing"),
        ("get that renews an idle time", idle, Operation::Get { key: key(NAME) }, later, "found"),
        ("replace", never, replace, NOW, "Refused"),
        ("remove", never, Operation::Remove { key: key(NAME), condition }, NOW, "Missing"),
        ("get of what ended", ends, Operation::Get { key: key(NAME) }, later, "Missing"),
    ];
    for (case, expiry, operation, now, expected) in cases {
        let (device, store, mut session) = filled(expiry);
        let told = across_a_drop(&store, &mut session, (operation, now));
        assert!(told.starts_with(expected), "{case}: {told}");
        assert_eq!(get(&mut session, NAME), None, "{case}");
        // It went below zero, where it stayed.
        put(&mut session, b"another", b"entry", PutOptions::default());
        assert_eq!(store.count(SPACE), 1, "{case}");
        store.close(NOW).unwrap();
        drop((session, store));
        let (store, mut session) = open(&device, small());
        assert_eq!(get(&mut session, NAME), None, "{case}, opened again");
        assert_eq!(store.count(SPACE), 1, "{case}, opened again");
        assert!(get(&mut session, b"another").is_some(), "{case}");
    }
}

// Keys in it were refused, and a drop of it was not.
#[test]
fn the_space_of_large_values_pieces_is_not_dropped() {
    let device = device(4 << 20);
    let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
    let value = value_of(1, 300_000);
    put(&mut session, b"large", &value, PutOptions::default());
    let own = SpaceId(u16::MAX);
    for refused in [store.drop_space(own), store.drop_partition(own, 0)] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    store.sync().unwrap();
    drop((session, store));
    let (_store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
    assert_eq!(get(&mut session, b"large"), Some(value));
}
