//! Workloads for stores, and summaries of their results: generators of keys, sizes, values and
//! arrivals, the mixes of known benchmarks as data, and latency summaries.
//!
//! Everything here is a pure function of its arguments and a seed. Nothing reads a clock, starts a
//! thread or does I/O; the driver of a workload does.

mod arrivals;
mod keys;
mod mix;
pub mod oltp;
mod plan;
mod sizes;
mod summary;
mod values;

pub use arrivals::{Arrivals, Schedule};
pub use entresol_random::{Random, mix64};
pub use keys::{Distribution, KeyChooser, KeyLayout, Permutation, key_bytes, key_id};
pub use mix::{Action, Mix, YCSB};
pub use plan::{BIGMEMORY, BigMemory, Extrapolation, Grid, Slopes};
pub use sizes::Sizes;
pub use summary::{Recorder, Summary};
pub use values::{Values, VerifyError};

#[cfg(test)]
mod tests;
