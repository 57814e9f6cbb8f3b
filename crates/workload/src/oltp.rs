//! An SPC-1-like OLTP workload: the request stream of a data store, a user store and a log, and a
//! model of the flash cache that its original benchmark put before them.
//!
//! Both are pure functions of a configuration. With the unseeded `lrand48` that the original drew
//! from, the stream is the original's request by request, and so are the counters of its cache.
//! SPC-1 is a trademark: this workload is not SPC-1, and no figure of it is an SPC-1 result.

mod cache;
mod clock;
mod layout;
mod lrand48;
mod request;
mod simulation;
mod stream;
mod tally;
mod walk;

pub use cache::{CacheCounters, CacheModel, LogCounters, SEGMENT_BYTES};
pub use clock::ClockMap;
pub use layout::{Layout, LayoutError};
pub use lrand48::Lrand48;
pub use request::{Asu, BLOCK_BYTES, Operation, Request, TICKS_PER_SECOND, TraceError};
pub use simulation::{Period, Simulation};
pub use stream::{Configuration, Mix, RequestStream, Style};
pub use tally::{AsuTally, Count, Tally};

#[cfg(test)]
mod tests;
