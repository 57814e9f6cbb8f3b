//! The commands: `table` describes them all, `dispatch` has what carries each out. `types` has the
//! commands of each type of value, and there is a file for each other group.

pub(crate) mod arguments;
mod backup;
pub(crate) mod clients;
pub(crate) mod connection;
mod decimal;
pub(crate) mod dispatch;
pub(crate) mod information;
pub(crate) mod introspection;
mod keys;
pub(crate) mod pattern;
pub(crate) mod plan;
mod reference;
pub(crate) mod request;
mod scans;
mod server;
pub(crate) mod spec;
pub(crate) mod table;
pub(crate) mod transactions;
pub(crate) mod types;

pub use reference::reference;
