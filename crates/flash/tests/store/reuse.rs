//! What was read of an entry counts only while its segment is in the same use: a later entry of the
//! key may be at the same address.

use super::*;

const LENGTH: usize = 9000;
/// Puts after which an address may come round again.
const ROUND: u64 = 200;
const END: Timestamp = Timestamp(NOW.0 + 1000);
const LATER: Timestamp = Timestamp(NOW.0 + 900_000);
const NAME: &[u8] = b"name";

/// What is asked for while the entry that is there is replaced twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Replace,
    Remove,
    Touch,
    /// A get that renews an idle time.
    Renew,
    /// A get of what has ended.
    Ended,
}

impl Way {
    fn operation(self, read: Version) -> Operation<'static> {
        let (key, condition) = (key(NAME), Condition::Version(read));
        match self {
            Way::Replace => {
                let options = PutOptions { condition, ..PutOptions::default() };
                Operation::Put { key, value: b"stale", options }
            }
            Way::Remove => Operation::Remove { key, condition },
            Way::Touch => Operation::Touch { key, expiry: Expiry::default(), condition },
            Way::Renew | Way::Ended => Operation::Get { key },
        }
    }

    fn options(self) -> PutOptions {
        let expiry = match self {
            Way::Renew => Expiry { at: None, idle_seconds: NonZeroU32::new(1000) },
            Way::Ended => Expiry { at: Some(END), idle_seconds: None },
            _ => Expiry::default(),
        };
        PutOptions { expiry, ..PutOptions::default() }
    }
}

fn put_others(session: &mut Session, count: u64) {
    for n in 0..count {
        put(session, b"name of another", &value_of(n, LENGTH), PutOptions::default());
    }
}

// The address alone was compared: a put, a removal or a touch of a version was done to a later one,
// a get that renewed an idle time wrote an old value over it, and a get of an entry that had ended
// took it away.
#[test]
fn what_was_read_says_nothing_of_a_later_entry_at_the_same_address() {
    for way in [Way::Replace, Way::Remove, Way::Touch, Way::Renew, Way::Ended] {
        let device = device((128 << 10) + (16 << 16));
        let options = StoreOptions { shards: 1, buffers_per_shard: 6, ..small() };
        let (store, mut session) = open(&device, options);
        let mut asking = store.session(SessionOptions::default()).unwrap();
        // What is put over another entry shares segments with what is put over others.
        put(&mut session, NAME, b"first", PutOptions::default());
        for round in 0..ROUND {
            let first = put(&mut session, NAME, &value_of(round, LENGTH), way.options()).unwrap();
            put_others(&mut session, 60);
            let mut told = None;
            let mut visit = |_, outcome: entresol_flash::Result<Outcome<'_>>| {
                told = Some(format!("{outcome:?}"));
            };
            asking.submit(1, LATER, way.operation(first), &mut visit);
            asking.flush().unwrap();
            assert_eq!(asking.in_flight(), 1, "{way:?}: the entry is read from the device");
            let expiry = Expiry { at: None, ..way.options().expiry };
            let options = PutOptions { expiry, ..PutOptions::default() };
            put(&mut session, NAME, &value_of(round + 1, LENGTH), options);
            put_others(&mut session, round);
            let value = value_of(round + 2, LENGTH);
            let latest = put(&mut session, NAME, &value, options).unwrap();
            asking.poll(1, LATER, &mut visit).unwrap();
            if !matches!(way, Way::Renew | Way::Ended) {
                let refused = format!("{:?}", Outcome::Refused { current: Some(latest) });
                assert_eq!(told, Some(format!("Ok({refused})")), "{way:?} after {round} puts");
            }
            assert!(get(&mut session, NAME) == Some(value), "{way:?} after {round} puts");
        }
    }
}

// A scan in the order of the log showed a value that was replaced before it began, once a later one
// had come to its address.
#[test]
fn a_scan_of_the_log_shows_nothing_that_was_replaced_before_it_began() {
    let device = device((128 << 10) + (16 << 16));
    let options = StoreOptions { shards: 1, buffers_per_shard: 6, ..small() };
    let (store, mut session) = open(&device, options);
    let (replaced, latest) = (value_of(ROUND + 1, LENGTH), value_of(ROUND + 2, LENGTH));
    for round in 0..ROUND {
        put(&mut session, b"first", &value_of(round, LENGTH), PutOptions::default());
        put(&mut session, NAME, &replaced, PutOptions::default());
        put(&mut session, NAME, &value_of(round, LENGTH), PutOptions::default());
        let mut waits = true;
        let mut visit = |_, entry: entresol_flash::Entry<'_>| {
            assert!(entry.value != replaced, "after {round} puts");
            if entry.key == b"first" && std::mem::take(&mut waits) {
                put(&mut session, b"first", &value_of(round, LENGTH), PutOptions::default());
                put_others(&mut session, round);
                put(&mut session, NAME, &latest, PutOptions::default());
            }
        };
        store.scan_log(NOW, &mut visit).unwrap();
    }
}
