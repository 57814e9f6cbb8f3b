//! A store over any image, used a bit of everything. Shared with the targets of cargo-fuzz.

use entresol_flash::{Budget, Key, Operation, Outcome, PutOptions, Reclaim, SessionOptions, Store};

use crate::images::{KEYS, NOW, SPACE, device_of, key_of, options, value_of, was_put};

/// Opens `image` and does a bit of everything; errors are fine, `trusted` values must have been
/// put.
pub(crate) fn exercise(image: &[u8], reclaim: Reclaim, trusted: bool) {
    let device = device_of(image);
    let Ok(store) = Store::open(device, options(reclaim), NOW) else { return };
    let Ok(mut session) = store.session(SessionOptions::default()) else { return };
    for number in 0..KEYS {
        let key = key_of(number);
        let get = Operation::Get { key: Key::new(SPACE, &key) };
        let _ = session.run(NOW, get, &mut |outcome| {
            if let (true, Outcome::Found(entry)) = (trusted, outcome) {
                assert!(was_put(number, entry.value), "key {number} has a value nobody put");
            }
        });
    }
    let _ = store.maintain(NOW, Budget { segments: 8 });
    for number in 0..KEYS / 4 {
        let key = key_of(number);
        let value = value_of(number, 99, 700);
        let key = Key::new(SPACE, &key);
        let put = Operation::Put { key, value: &value, options: PutOptions::default() };
        if session.run(NOW, put, &mut |_| {}).is_ok() {
            let mut found = false;
            let get = session.run(NOW, Operation::Get { key }, &mut |outcome| {
                found = matches!(outcome, Outcome::Found(entry) if entry.value == value);
            });
            assert!(!trusted || (get.is_ok() && found), "key {number} was put and is not there");
        }
    }
    let mut cursor = 0;
    for _ in 0..KEYS {
        let scan = session.scan(SPACE, (cursor, 32), NOW, &mut |entry| {
            if let (true, Ok(entry)) = (trusted, entry) {
                assert!(is_known(entry.key, entry.value), "a scan found what nobody put");
            }
        });
        cursor = scan.unwrap_or_default();
        if cursor == 0 {
            break;
        }
    }
    let _ = store.verify();
    let _ = store.maintain(NOW, Budget { segments: 8 });
    drop(session);
    let _ = store.close(NOW);
}

/// Whether `value` was ever put under `key`.
fn is_known(key: &[u8], value: &[u8]) -> bool {
    let text = key.strip_prefix(b"key ").and_then(|number| std::str::from_utf8(number).ok());
    let number = text.and_then(|text| text.parse::<u64>().ok());
    number.is_some_and(|number| key == key_of(number) && was_put(number, value))
}
