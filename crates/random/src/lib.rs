//! Randomness from a seed: the same seed gives the same stream on every machine, and kept seeds
//! keep their streams. None of it is fit for secrets.
//!
//! Two generators, since seeds of both are kept: [`Random`] for loads, [`SplitMix`] for faults and
//! tests.

mod split_mix;
mod xoshiro;

pub use split_mix::{SplitMix, mix64};
pub use xoshiro::Random;

#[cfg(test)]
mod tests;
