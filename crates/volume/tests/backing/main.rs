//! What every backing keeps, shown for each of them.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod file;
mod memory;
mod model;
mod nbd;
mod nbdkit;
mod scratch;
mod server;
