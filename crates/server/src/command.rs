//! The commands: one table that names them all, and a file for each group.

pub(crate) mod arguments;
mod bits;
pub(crate) mod clients;
pub(crate) mod connection;
mod decimal;
mod hash_value;
mod hashes;
pub(crate) mod information;
pub(crate) mod introspection;
mod keys;
pub(crate) mod pattern;
pub(crate) mod plan;
mod reference;
mod scans;
mod server;
mod strings;
pub(crate) mod table;
pub(crate) mod transactions;

pub use reference::reference;
