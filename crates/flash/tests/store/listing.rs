//! A list of a space names all its live entries.

use std::collections::BTreeMap;

use entresol_flash::{EntryName, Listing};

use super::*;

const KEYS: u64 = 3000;
const OTHER: SpaceId = SpaceId(3);

/// The live entries by their names, and bytes of all.
fn listed(store: &Store, space: SpaceId) -> (BTreeMap<EntryName, u16>, u64) {
    let (mut found, mut bytes) = (BTreeMap::new(), 0);
    store
        .list(space, &mut |listing| {
            if let Listing::Entry(entry) = listing {
                assert_eq!(found.insert(entry.name, entry.partition), None, "listed once");
                bytes += u64::from(entry.record_bytes);
            }
        })
        .unwrap();
    (found, bytes)
}

fn demand_all(store: &Store, expected: &BTreeMap<Vec<u8>, u16>, space: SpaceId) {
    let (found, bytes) = listed(store, space);
    let named = expected.iter().map(|(bytes, partition)| {
        (store.name(Key { space, partition: *partition, bytes }), *partition)
    });
    assert_eq!(found, named.collect(), "of {space:?}");
    assert!(bytes > 500 * found.len() as u64 && bytes < 700 * (found.len() as u64 + 1), "{bytes}");
}

#[test]
fn a_list_names_all_live_entries_of_a_space_in_every_state_of_a_store() {
    let device = Arc::new(SimDevice::new(SimOptions::new(7, 16 << 20)));
    let on: Arc<dyn Device> = Arc::<SimDevice>::clone(&device);
    let (store, mut session) = open(&on, small());
    let (mut live, mut others) = (BTreeMap::new(), BTreeMap::new());
    for n in 0..KEYS {
        // Later ones replace and remove some that came before.
        let bytes = format!("key {}", n * 7 % 2000).into_bytes();
        let partition = (n * 7 % 2000 % 3) as u16;
        let (space, model) = match n % 4 {
            0 => (OTHER, &mut others),
            _ => (SPACE, &mut live),
        };
        let key = Key { space, partition, bytes: &bytes };
        let operation = match n % 10 {
            9 => Operation::Remove { key, condition: Condition::Always },
            _ => Operation::Put { key, value: &[7; 540], options: PutOptions::default() },
        };
        session.run(NOW, operation, &mut |_| {}).unwrap();
        match n % 10 {
            9 => drop(model.remove(&bytes)),
            _ => drop(model.insert(bytes, partition)),
        }
    }
    demand_all(&store, &live, SPACE);
    demand_all(&store, &others, OTHER);
    store.sync().unwrap();
    drop((session, store));
    device.crash_now();
    let after: Arc<dyn Device> = Arc::new(device.reopened(CrashChoice::KeepAll));
    for mode in [OpenMode::ReadOnly, OpenMode::OpenOrCreate, OpenMode::ReadOnly] {
        let (store, session) = open(&after, StoreOptions { mode, ..small() });
        demand_all(&store, &live, SPACE);
        demand_all(&store, &others, OTHER);
        drop(session);
        if mode != OpenMode::ReadOnly {
            store.close(NOW).unwrap();
        }
    }
    assert_eq!(listed(&open(&after, small()).0, SpaceId(9)).0.len(), 0);
}
