//! Certification of storage devices: how many reads and writes a second does a device sustain under
//! a bound on latency, for hours, when a database loads it?
//!
//! A configuration ([`Storage`] or [`Index`]) in the language of Aerospike's ACT 6 derives the
//! rates of small and large transfers; [`load`] issues them and reports [`load::Interval`]s;
//! [`verdict`] interprets these; [`certify`] and [`search()`] drive a [`Rig`].
//!
//! Unlike the engine's crates, this crate starts threads and reads the clock, because it measures
//! time.

mod buckets;
mod certification;
pub mod config;
pub mod derive;
pub mod dialogue;
pub mod import;
pub mod latency;
pub mod load;
pub mod log;
pub mod machine;
pub mod prepare;
pub mod report;
mod rig;
pub mod search;
pub mod sizing;
pub mod text;
pub mod verdict;

pub use buckets::{BucketUnit, Buckets};
pub use certification::{
    Certificate, Judged, Observer, Phase, Procedure, Settling, Stress, Unobserved, certify,
};
pub use config::{Index, PaperOptions, SizeHistogram, Storage};
pub use derive::{DeriveError, IndexRates, StorageRates};
pub use rig::{
    Configured, DeviceRig, Doors, Filling, Preparation, Prepared, Rig, RigError, TROUBLES_MAX,
};
pub use search::search;
