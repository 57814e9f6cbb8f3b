//! The promises of every backing, shown for each.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod file;
mod memory;
mod model;
mod nbd;
mod nbdkit;
mod scratch;
mod server;
