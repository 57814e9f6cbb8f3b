//! Power fails before every sync and fence of seeded workloads, and the writes that are still not
//! covered are kept, dropped, torn or reordered. Each result must open, hold exactly the state
//! after some prefix of the commits, with all acknowledged ones, leak nothing, and go on; also when
//! power fails again during the opening.
//!
//! `ENTRESOL_SEED` replaces the seeds.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod explore;
mod pages;
mod recorder;
mod words;
mod workload;

use crate::explore::{Bed, explore};

const SEEDS: u64 = 3;
/// One of so many states is opened under a second crash.
const NESTED: usize = 23;

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..SEEDS).collect(),
    }
}

fn survive(bed: Bed) {
    let mut count = 0;
    for seed in seeds() {
        match explore(bed, seed, None, NESTED) {
            Ok(states) => count += states,
            Err(error) => panic!("ENTRESOL_SEED={seed} {bed:?}: {error}"),
        }
    }
    println!("{bed:?}: {count} crash states");
    assert!(count > 1000, "the workload is explored: {count} states");
}

#[test]
fn committed_transactions_survive_power_loss_on_pages() {
    survive(Bed::Pages);
}

#[test]
fn committed_transactions_survive_power_loss_on_encrypted_pages() {
    survive(Bed::EncryptedPages);
}

#[test]
fn committed_transactions_survive_power_loss_on_words() {
    survive(Bed::Words);
}
