//! What every socket of the project needs, whatever is spoken over it.
//!
//! A [`Listener`] takes clients, a [`Stream`] is one, plain or with the TLS of [`TlsFiles`]. An
//! [`Admin`] shows the pages of a [`Site`] over HTTP. A [`PolledSocket`] is a socket in an event
//! loop, of a server or of a client.
//!
//! Nothing here knows what clients ask for, where settings come from, or who may do what: callers
//! pass what they were given, and a [`SettingError`] says what of it cannot be.

mod admin;
mod error;
mod listener;
mod polled;
mod stream;
mod tls;

pub use admin::{Admin, AdminAccess, Answer, Asked, Site, Standing, Token};
pub use error::SettingError;
pub use listener::{Address, Listener};
pub use polled::PolledSocket;
pub use stream::{Addresses, Stream};
pub use tls::{Tls, TlsFiles, TlsPort};
