//! How often a store asks to be maintained.

use std::time::Duration;

use entresol_flash::{Budget, Maintenance, WriteMode};

use super::*;

const BUDGET: Budget = Budget { segments: 4 };
/// More calls than an overwritten store has work for.
const CALLS: usize = 50;

#[test]
fn a_store_that_is_not_written_to_rests_longer_until_the_next_write() {
    let device: Arc<dyn Device> = Arc::new(SimDevice::new(SimOptions::new(7, 64 << 16)));
    let (store, mut session) = open(&device, small());
    assert_eq!(rest_after_calls(&store), Some(Maintenance::QUIET));
    // Two rounds: the second leaves notes on the first, which are work.
    for round in 0..2 {
        for number in 0..200_u64 {
            put(&mut session, &number.to_le_bytes(), &value_of(round, 900), PutOptions::default());
        }
        let done = store.maintain(NOW, BUDGET).unwrap();
        assert!(!done.quiet && done.rest() != Some(Maintenance::QUIET), "round {round}: {done:?}");
        assert_eq!(rest_after_calls(&store), Some(Maintenance::QUIET));
        assert_eq!(store.statistics().notes, 0);
    }
    assert!(remove(&mut session, &1_u64.to_le_bytes()));
    assert!(!store.maintain(NOW, BUDGET).unwrap().quiet, "a removal is a write");
}

#[test]
fn a_short_period_of_syncs_is_kept_after_a_rest_too() {
    for (milliseconds, rest) in [(50, Maintenance::IDLE), (5_000, Maintenance::QUIET)] {
        let device: Arc<dyn Device> = Arc::new(SimDevice::new(SimOptions::new(7, 64 << 16)));
        let period = NonZeroU32::new(milliseconds).unwrap();
        let options = StoreOptions { durability: Durability::Periodic(period), ..small() };
        let (store, _session) = open(&device, options);
        assert_eq!(rest_after_calls(&store), Some(rest), "{milliseconds} ms");
    }
    let device: Arc<dyn Device> = Arc::new(SimDevice::new(SimOptions::new(7, 64 << 16)));
    let (durability, write_mode) = (Durability::Synced, WriteMode::Behind);
    let (store, _session) = open(&device, StoreOptions { durability, write_mode, ..small() });
    assert_eq!(rest_after_calls(&store), Some(Maintenance::IDLE), "written behind");
}

fn rest_after_calls(store: &Store) -> Option<Duration> {
    for _ in 1..CALLS {
        store.maintain(NOW, BUDGET).unwrap();
    }
    store.maintain(NOW, BUDGET).unwrap().rest()
}
