//! The NBD server: volumes, exported to any number of clients by one thread.
//!
//! [`NbdServer::open`] opens the sockets, [`NbdServer::serve`] serves the volumes it is lent until
//! a [`Stopper`] says otherwise. What is spoken stands in `docs/reference/nbd.md`.
//!
//! `service` is the event loop, `connection` one client, `ruling` what a request deserves,
//! `pending` the requests that volumes have not answered yet, `held` what a client makes the server
//! hold, `control` the socket for administrators, `deputy` what watches the devices.

mod board;
mod connection;
mod control;
mod deputy;
mod doors;
mod figures;
mod held;
mod output;
mod pending;
mod ruling;
mod service;
mod status;

pub use deputy::DeviceWatch;
pub use entresol_net::TlsFiles;

pub use doors::{Access, Listen, NbdOptions, NbdPorts, TlsDemand};
pub use figures::metrics;
pub use service::{NbdServer, Stopper};

/// The metadata context of what is cached: bit 0, cached; bit 1, dirty.
pub const RESIDENCY_CONTEXT: &str = "x-entresol:residency";
