//! The block cache: volumes over slow backing devices, their blocks cached on flash.
//!
//! A [`Volume`](VolumeId) has the size of its backing. The cache device keeps recently read and
//! written blocks: clean blocks as entries that may be evicted, dirty blocks in a log. The log is
//! written back in order, so that at every moment the backing is a consistent, earlier state of the
//! volume.

mod ahead;
pub mod backing;
mod cache;
mod counts;
mod devices;
mod dirty;
mod error;
mod held;
mod meta;
pub mod policy;
mod ranges;
mod regions;
mod request;
mod tasks;
mod types;
mod volumes;

pub use cache::{Adoption, Cache, CacheOptions, CheckReport, Dirty, Distrust, OpenBacking};
pub use counts::Counts;
pub use devices::{Devices, Unanswered};
pub use error::{Error, ErrorKind, Result};
pub use request::{Completion, Cost, Durable, Hole, Request};
pub use types::{Mode, Moment, Qos, Tuning, VolumeId, VolumeOptions};
pub use volumes::{Context, Run, VolumeInfo, Volumes};
