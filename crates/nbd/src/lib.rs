//! The NBD server: volumes, exported to any number of clients by one thread.
//!
//! [`NbdServer::open`] opens the sockets, [`NbdServer::serve`] serves the volumes it is lent until
//! a [`Stopper`] says otherwise. What is spoken stands in `docs/reference/nbd.md`.
//!
//! `service` is the event loop, `connection` one client, `validate` what a request deserves,
//! `pending` the requests that volumes have not answered, `quota` what a client may make the server
//! hold, `control` the socket for administrators, `stall_watch` what watches the devices,
//! `published` the figures for other threads, `stats` and `metrics` figures as programs read them,
//! `console` a page of them, `history` what its charts are drawn of.

mod connection;
mod console;
mod control;
mod error;
mod figures;
mod history;
mod listen;
mod metrics;
mod output;
mod pending;
mod published;
mod quota;
mod service;
mod stall_watch;
mod stats;
mod status;
mod unanswered;
mod validate;

pub use connection::RESIDENCY_CONTEXT;
pub use entresol_net::{AdminAccess, SettingError, Tls, TlsFiles, TlsPort};
pub use error::NbdError;
pub use listen::{Access, Listen, NbdOptions, NbdPorts, TlsDemand};
pub use metrics::metrics;
pub use service::{NbdServer, Stopper};
pub use stall_watch::{DEVICE_WAIT_MAX, DeviceWatch};
