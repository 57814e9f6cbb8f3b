//! Power fails, or the process dies, after every prefix of the device's calls; whatever the medium
//! then holds, recovery keeps what was acknowledged and shows nothing that was not written.
//!
//! For each setup and seed: one run without a crash counts the calls; then, for every prefix, a run
//! that ends there, and for every choice of what the unsynced writes became, a recovery that is
//! compared with the model. Recovery itself is crashed at its calls, and stores that recovered live
//! on and crash again. `ENTRESOL_SEED` replaces the seeds, `ENTRESOL_SEEDS` says how many there
//! are, `ENTRESOL_PREFIX` restricts a run to one prefix: each failure prints all it takes to replay
//! it.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod damage;
mod explore;
mod faults;
mod journal;
mod model;
mod setup;
mod world;

use entresol_flash::{Compression, Durability, EncryptionKey, Reclaim};
use std::num::NonZeroU32;

use explore::{explore, explore_prefix};
use setup::Setup;

fn periodic() -> Durability {
    Durability::Periodic(NonZeroU32::MIN.saturating_add(999))
}

#[test]
fn memory_keeps_what_was_synced() {
    explore(&Setup::of("memory", Durability::Memory));
}

#[test]
fn process_keeps_all_through_a_kill_and_what_was_synced_through_power_loss() {
    explore(&Setup { shards: 2, segments: 32, ..Setup::of("process", Durability::Process) });
}

#[test]
fn flushed_keeps_all_through_a_kill_and_what_was_synced_through_power_loss() {
    explore(&Setup::of("flushed", Durability::Flushed));
}

#[test]
fn periodic_keeps_all_through_a_kill_and_what_was_synced_through_power_loss() {
    explore(&Setup::of("periodic", periodic()));
}

#[test]
fn synced_keeps_every_acknowledged_write() {
    explore(&Setup::of("synced", Durability::Synced));
}

#[test]
fn entries_replaced_and_removed_where_they_were_found_keep_every_acknowledged_write() {
    explore(&Setup { finds_first: true, ..Setup::of("found", Durability::Synced) });
}

#[test]
fn entries_replaced_where_they_were_found_keep_all_through_a_kill() {
    explore(&Setup { finds_first: true, ..Setup::of("found-process", Durability::Process) });
}

#[test]
fn a_store_that_grows_with_each_opening_keeps_every_acknowledged_write() {
    let setup = Setup::of("growing", Durability::Synced);
    explore(&Setup { shards: 2, segments: 48, grows_from: Some(32), ..setup });
}

#[test]
fn synced_keeps_every_acknowledged_write_compressed_and_encrypted_in_two_shards() {
    explore(&Setup {
        shards: 2,
        segments: 32,
        segment_bytes: 128 << 10,
        compression: Compression::Lz4,
        encryption: Some(EncryptionKey([9; 32])),
        ..Setup::of("encrypted", Durability::Synced)
    });
}

#[test]
fn a_store_of_which_snapshots_hold_segments_keeps_every_acknowledged_write() {
    explore(&Setup { holds: true, ..Setup::of("held", Durability::Synced) });
}

#[test]
fn a_cache_never_answers_with_less_than_what_was_durable() {
    explore(&Setup { reclaim: Reclaim::Evict, ..Setup::of("cache", Durability::Synced) });
}

#[test]
fn a_cache_in_shared_memory_never_goes_back() {
    explore(&Setup { reclaim: Reclaim::Evict, ..Setup::of("cache-process", Durability::Process) });
}

// Found with another seed: the removal of a key without an entry was acknowledged before the
// tombstone was durable that its evicted one needed.
#[test]
fn what_was_removed_after_it_was_evicted_stays_away() {
    let cache = Setup { reclaim: Reclaim::Evict, ..Setup::of("cache", Durability::Synced) };
    explore_prefix(&cache, 34_902_485_674_247_034, 89);
}

// Found with other seeds than those of every run: caches that refused a put after a crash.
#[test]
fn caches_that_recovered_take_what_they_took_before() {
    let cache = Setup { reclaim: Reclaim::Evict, ..Setup::of("cache", Durability::Synced) };
    explore_prefix(&cache, 2_104_229_822, 116);
    let shared =
        Setup { reclaim: Reclaim::Evict, ..Setup::of("cache-process", Durability::Process) };
    explore_prefix(&shared, 2_104_229_870, 35);
    explore_prefix(&shared, 2_104_229_918, 73);
    // The removal of a key without an entry, whose tombstone found no segment.
    explore_prefix(&shared, 12_909_668_073_531_468, 72);
}

// Found with another seed: the touch of an entry that was evicted, and that a kill brought back.
#[test]
fn what_a_touch_missed_comes_back_as_it_was() {
    let shared =
        Setup { reclaim: Reclaim::Evict, ..Setup::of("cache-process", Durability::Process) };
    explore_prefix(&shared, 8_030_013_198_394_148, 63);
}
