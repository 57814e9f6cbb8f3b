//! Pending changes against a model, and the memory that they take.
//!
//! A run is a function of its seed. `ENTRESOL_SEED` replaces the seeds.

mod memory;
mod model;
mod order;

use entresol_tree::format::Effect;
use entresol_tree::{Change, Sequence};

/// What a change is, but for its key: comparable.
#[derive(Clone, Debug, PartialEq)]
struct Owned {
    sequence: u64,
    effect: Effect,
    value: Vec<u8>,
}

impl Owned {
    fn of(change: Change<'_>) -> Owned {
        let Change { effect, sequence: Sequence(sequence), value, .. } = change;
        Owned { sequence, effect, value: value.to_vec() }
    }

    fn of_key<'a>(&'a self, key: &'a [u8]) -> Change<'a> {
        let Owned { sequence, effect, ref value } = *self;
        Change { key, effect, sequence: Sequence(sequence), value }
    }
}

fn owned(effect: Effect, sequence: u64, value: &[u8]) -> Owned {
    Owned { sequence, effect, value: value.to_vec() }
}

fn put(sequence: u64, value: &[u8]) -> Owned {
    owned(Effect::Put, sequence, value)
}

fn part(sequence: u64, value: &[u8]) -> Owned {
    owned(Effect::Part, sequence, value)
}

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..count).collect(),
    }
}
