//! Openings under a memory cap.

use entresol_flash::{ErrorKind, Opened, PutOptions, Session, Store, StoreOptions};

use crate::{NOW, SPACE, device, get, open, put, remove, small, value_of};

const KEYS: u64 = 50_000;
const HOT: u64 = 60_000;

fn name(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Keys put once, twice, or removed, and one that is put more often than claims fit in memory.
fn fill(session: &mut Session) {
    for n in 0..HOT {
        put(session, b"hot", &value_of(n, 20), PutOptions::default());
        if n < KEYS {
            put(session, &name(n), &value_of(n, 10), PutOptions::default());
        }
        if n % 3 == 0 && n < KEYS {
            put(session, &name(n / 2), &value_of(n, 12), PutOptions::default());
        }
        if n % 5 == 0 && n < KEYS {
            remove(session, &name(n / 5));
        }
    }
    put(session, b"large", &value_of(7, 100_000), PutOptions::default());
}

fn same(found: &mut Session, wanted: &mut Session) {
    for key in (0..KEYS).map(name).step_by(7) {
        assert_eq!(get(found, &key), get(wanted, &key), "{key:?}");
    }
    for key in [&b"hot"[..], b"large"] {
        assert_eq!(get(found, key), get(wanted, key));
        assert!(get(found, key).is_some());
    }
}

fn opened(of: &Store) -> (Opened, u64) {
    (of.statistics().opened, of.count(SPACE))
}

// Recovery took 80 bytes a record beside the index, whatever the memory cap was: 20 million records
// at a cap of 512 MiB took 918 MB.
#[test]
fn a_recovery_finds_the_same_in_little_memory_as_in_much() {
    // With another boot every record is checked, and footers are not believed as they are read.
    for boot in [1, 2] {
        let device = device(64 << 20);
        let plenty = StoreOptions { shards: 1, boot: 1, ..small() };
        let (store, mut session) = open(&device, plenty.clone());
        fill(&mut session);
        store.sync().unwrap();
        drop((session, store));
        let tight = StoreOptions {
            index_bytes_max: 700 << 10,
            scratch_bytes_max: 0,
            mode: entresol_flash::OpenMode::ReadOnly,
            boot,
            ..plenty.clone()
        };
        let (little, mut in_little) = open(&device, tight);
        let (much, mut in_much) = open(&device, StoreOptions { boot, ..plenty });
        assert_eq!(opened(&little), opened(&much));
        same(&mut in_little, &mut in_much);
        let index_bytes = little.statistics().index_bytes;
        assert!(index_bytes <= 700 << 10, "{index_bytes}");
    }
}

// An index that its share of the cap does not hold was filled all the same, most of its entries at
// many times the memory each, for as long as the process ran.
#[test]
fn a_cap_too_small_for_the_index_is_refused_with_the_number_that_is_enough() {
    for clean in [true, false] {
        let device = device(64 << 20);
        let plenty = StoreOptions { shards: 2, ..small() };
        let (store, mut session) = open(&device, plenty.clone());
        for n in 0..KEYS {
            put(&mut session, &name(n), b"v", PutOptions::default());
        }
        if clean {
            store.close(NOW).unwrap()
        } else {
            store.sync().unwrap()
        }
        drop((session, store));
        let few = StoreOptions { index_bytes_max: 300 << 10, ..plenty.clone() };
        let refused = Store::open(std::sync::Arc::clone(&device), few, NOW).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        let needed = refused.needed_bytes().unwrap();
        assert!(needed < 16 * KEYS, "{needed}");
        assert!(refused.to_string().contains(&needed.to_string()), "{refused}");
        let enough = StoreOptions { index_bytes_max: needed, ..plenty };
        let (store, mut session) = open(&device, enough);
        assert_eq!(store.count(SPACE), KEYS, "clean: {clean}");
        assert!(store.statistics().index_bytes <= needed);
        assert_eq!(get(&mut session, &name(KEYS - 1)), Some(b"v".to_vec()));
    }
}

#[test]
fn a_checkpoint_is_loaded_into_a_smaller_index_under_a_smaller_cap_or_with_few_entries_left() {
    let device = device(64 << 20);
    let plenty = StoreOptions { shards: 1, ..small() };
    let (store, mut session) = open(&device, plenty.clone());
    for n in 0..KEYS {
        put(&mut session, &name(n), &value_of(n, 9), PutOptions::default());
    }
    let full_bytes = store.statistics().index_bytes;
    for n in KEYS / 2..KEYS {
        remove(&mut session, &name(n));
    }
    store.close(NOW).unwrap();
    drop((session, store));
    let half = StoreOptions { index_bytes_max: full_bytes / 4 * 3, ..plenty.clone() };
    let (store, mut session) = open(&device, half.clone());
    assert_eq!(opened(&store), (Opened::Checkpoint, KEYS / 2));
    assert!(store.statistics().index_bytes <= half.index_bytes_max);
    for n in 0..KEYS / 2 {
        assert_eq!(get(&mut session, &name(n)), Some(value_of(n, 9)), "key {n}");
    }
    for n in 100..KEYS / 2 {
        remove(&mut session, &name(n));
    }
    store.close(NOW).unwrap();
    drop((session, store));
    let (store, mut session) = open(&device, plenty);
    assert_eq!(opened(&store), (Opened::Checkpoint, 100));
    assert!(store.statistics().index_bytes < full_bytes / 8);
    for n in 0..200 {
        let wanted = (n < 100).then(|| value_of(n, 9));
        assert_eq!(get(&mut session, &name(n)), wanted, "key {n}");
    }
}
