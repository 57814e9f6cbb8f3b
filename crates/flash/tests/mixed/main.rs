//! A store with everything at once: features that seldom meet are mixed by seed, and every answer
//! is compared with a model.
//!
//! Ends and idle times, touches, conditions, pinned keys, values of several segments, keys that no
//! segment has room for, compression, encryption, keys that look alike in the index, all levels of
//! durability, shared write buffers, drops of partitions and spaces under what is in flight, scans
//! while entries are moved, clean stops, kills, losses of power also during recovery, openings with
//! other options, with more of the device, for reading only and as the other kind, and a clock that
//! leaps and goes back, on one device or a stripe. They work: faults are the matter of
//! `simulation.rs`.
//!
//! One run is a function of its seed. `ENTRESOL_SEED` replaces the seeds. A failure prints its
//! seed, the options, and what happened to the key that is wrong.

mod devices;
mod finish;
mod history;
mod judge;
mod plan;
mod races;
mod requests;
mod restarts;
mod scans;
mod steps;
mod world;

use world::World;

const SEEDS: u64 = 40;
const STEPS: u32 = 800;

#[test]
fn features_that_seldom_meet_keep_their_promises_together() {
    let seeds = match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..SEEDS).collect(),
    };
    for seed in seeds {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.finish();
    }
}
