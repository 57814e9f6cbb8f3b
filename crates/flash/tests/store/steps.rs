//! Writes pay for the room that they take, a few records at a time.

use super::*;

const SEGMENT_BYTES: u64 = 256 << 10;
const ENTRIES: u64 = 42_000;
const VALUE_BYTES: usize = 1000;

/// Overwrites all entries of a store 70 % full thrice, at random; what each write had reclaim move.
fn overwrite(device: &Arc<dyn Device>, options: StoreOptions) -> (Store, Vec<u64>) {
    let (store, mut session) = open(device, options);
    let mut random = entresol_sim::Random::new(7);
    let mut moved = Vec::new();
    let mut before = 0;
    for n in 0..4 * ENTRIES {
        let name = if n < ENTRIES { n } else { random.below(ENTRIES) };
        let value = value_of(n, VALUE_BYTES);
        put(&mut session, &name.to_be_bytes(), &value, PutOptions::default()).unwrap();
        let after = store.statistics().moved_bytes;
        moved.push(after - before);
        before = after;
    }
    (store, moved)
}

#[test]
fn a_write_decides_a_few_records_and_never_waits_where_nobody_maintains() {
    let device = device(64 << 20);
    let options = StoreOptions { segment_bytes: SEGMENT_BYTES as u32, shards: 1, ..small() };
    let (store, moved) = overwrite(&device, options);
    let statistics = store.statistics();
    assert!(statistics.segments_reclaimed > 500, "{}", statistics.segments_reclaimed);
    assert_eq!(statistics.reclaims_by_writers, 0);
    assert!(statistics.steps_by_writers > ENTRIES / 2, "{}", statistics.steps_by_writers);
    let most = moved.iter().max().copied().unwrap_or_default();
    assert!(most <= 16 << 10, "one write moved {most} bytes");
}

#[test]
fn a_victim_that_lies_half_decided_is_brought_to_its_end_once_nobody_writes() {
    let device = device(64 << 20);
    let options = StoreOptions { segment_bytes: SEGMENT_BYTES as u32, shards: 1, ..small() };
    let (store, _) = overwrite(&device, options.clone());
    let states = |store: &Store| {
        let all = store.segments();
        all.iter().filter(|segment| segment.state == "reclaiming").count()
    };
    assert_eq!(states(&store), 1, "a victim is under way");
    for _ in 0..20 {
        while store.maintain(NOW, Budget { segments: 1 }).unwrap().more {}
    }
    assert_eq!(states(&store), 0);
    store.close(NOW).unwrap();
    drop(store);
    let (store, mut session) = open(&device, options);
    assert_eq!(store.count(SPACE), ENTRIES);
    assert!((0..ENTRIES).all(|n| get(&mut session, &n.to_be_bytes()).is_some()));
}
