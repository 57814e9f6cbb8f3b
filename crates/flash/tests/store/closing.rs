//! A store that is closed while others use it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

const ROUNDS: u64 = 40;
/// Their entries take a third of the store, so that what reclaim frees was not all dead.
const KEYS: u64 = 2048;

#[test]
fn what_was_acknowledged_beside_a_close_is_there_after_it() {
    for round in 0..ROUNDS {
        let device = device(6 << 20);
        let options = StoreOptions { shards: 2, ..small() };
        let (store, session) = open(&device, options.clone());
        let store = Arc::new(store);
        let closed = Arc::new(AtomicBool::new(false));
        let (maintained, ends) = (Arc::clone(&store), Arc::clone(&closed));
        let maintains = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                match maintained.maintain(NOW, Budget { segments: 1 }) {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}"),
                }
            }
        });
        let writes = thread::spawn(move || write_until_refused(session));
        while store.statistics().puts < 12_000 + round * 100 {
            thread::yield_now();
        }
        store.close(NOW).unwrap();
        closed.store(true, Ordering::Relaxed);
        let acknowledged = writes.join().unwrap();
        maintains.join().unwrap();
        drop(store);
        let (_store, mut session) = open(&device, options);
        // What was taken for free is written over.
        for n in 0..4000 {
            put(&mut session, b"another", &value_of(n, 1000), PutOptions::default());
        }
        for (n, counter) in acknowledged.iter().enumerate() {
            let found = get(&mut session, format!("key {n}").as_bytes());
            let expected = (*counter > 0).then(|| value_of(*counter, 1000));
            assert!(found == expected, "round {round}, key {n}");
        }
    }
}

/// The number of the last value of each key whose write was acknowledged.
fn write_until_refused(mut session: Session) -> Vec<u64> {
    let mut acknowledged = vec![0; KEYS as usize];
    for counter in 1u64.. {
        let n = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & (KEYS - 1);
        let name = format!("key {n}").into_bytes();
        let value = value_of(counter, 1000);
        let operation =
            Operation::Put { key: key(&name), value: &value, options: PutOptions::default() };
        match session.run(NOW, operation, &mut |_| ()) {
            Ok(()) => acknowledged[n as usize] = counter,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
                break;
            }
        }
    }
    acknowledged
}
