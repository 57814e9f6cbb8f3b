//! A simulated world for tests: a device with faults, a clock, randomness from a seed.
//!
//! Everything here is deterministic: the same seed and the same calls give the same answers, so a
//! failure replays from its seed. Nothing here belongs in a program that people run.

mod clock;
pub mod conformance;
mod crash;
mod device;
mod fault;
mod image;
mod medium;

pub use clock::Clock;
pub use crash::{CrashChoice, Tear};
pub use device::{Ordering, SimDevice, SimOptions};
pub use entresol_random::SplitMix as Random;
pub use fault::{Call, Persistence, Stall};
pub use image::Image;
