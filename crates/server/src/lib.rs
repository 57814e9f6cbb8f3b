//! The server of RESP: threads, configuration, users, commands and the HTTP interface.
//!
//! [`serve`] runs a server until it is asked to stop; [`Server::start`] runs one inside a program.
//! Each worker thread runs one event loop over its clients' sockets and its own
//! queue of flash reads; commands only decide what to do, the worker does it.
//!
//! `config` has the keys, `users` who may do what, `worker` the event loop, `command` the commands,
//! `admin` the HTTP interface.

mod absences;
mod admin;
mod backup;
mod certificates;
mod client;
mod client_memory;
mod command;
mod config;
mod connection;
mod copying;
mod data;
mod engine_session;
mod error;
mod failure;
mod figures;
mod history;
mod listen;
mod loading;
mod lock;
mod meter;
mod modification;
mod monitors;
mod operations;
mod pause;
mod recent;
mod reload;
mod server;
mod shared;
mod slot_token;
mod slow;
mod stale_buffers;
mod survey;
mod transaction_gate;
mod users;
mod watch;
mod worker;

pub use command::reference as command_reference;
pub use config::{Config, ConfigError, KeySpec, format_size, parse_duration, parse_size};
pub use error::ServeError;
pub use server::{RunningServer, Server, serve};
pub use shared::Ports;
pub use stale_buffers::{LeftoverBuffers, leftover_buffers};
pub use users::user_line;
