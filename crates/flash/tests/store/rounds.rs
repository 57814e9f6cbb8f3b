//! What a sync covers while segments are released.

use entresol_sim::CrashChoice;

use super::*;

const KEYS: u64 = 220;
const VALUE_BYTES: usize = 3900;

/// Overwrites the keys of a store two thirds full, maintained after each put, so that segments are
/// released all the time; syncs after `puts` of them, and looks at what a loss of power leaves that
/// keeps nothing unsynced.
fn sync_after(puts: u64) {
    let sim = SimDevice::new(SimOptions::new(puts, 30 << 16));
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let options = StoreOptions { shards: 1, ..small() };
    let (store, mut session) = open(&device, options.clone());
    let mut last = HashMap::new();
    let mut random = entresol_sim::Random::new(3);
    for n in 0..puts {
        let name = if n < KEYS { n } else { random.below(KEYS) };
        let value = value_of(n, VALUE_BYTES);
        put(&mut session, &name.to_be_bytes(), &value, PutOptions::default());
        last.insert(name, n);
        store.maintain(NOW, Budget { segments: 1 }).unwrap();
    }
    assert!(store.statistics().segments_reclaimed > 0);
    store.sync().unwrap();
    sim.crash_now();
    drop((session, store));
    let device: Arc<dyn Device> = Arc::new(sim.reopened(CrashChoice::DropAll));
    let (_store, mut session) = open(&device, options);
    for (name, n) in last {
        let found = get(&mut session, &name.to_be_bytes());
        assert!(found == Some(value_of(n, VALUE_BYTES)), "key {name}, synced after {puts} puts");
    }
}

#[test]
fn a_sync_beside_a_release_covers_what_has_begun_a_unit() {
    (500..620).for_each(sync_after);
}
