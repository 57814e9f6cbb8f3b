//! RESP, the protocol of Redis: versions 2 and 3.
//!
//! [`Decoder`] turns bytes into commands without copying them, however they were chunked;
//! [`Reply`] appends replies in the version a connection speaks. Source of the formats: the
//! protocol's public specification; texts of protocol errors are those of redis-server 7.0.

mod decoder;
mod number;
mod reply;

pub use decoder::{Arguments, Decoded, Decoder, Limits, OwnedArguments, ProtocolError, Span};
pub use number::{format_double, parse_double, parse_integer};
pub use reply::{Protocol, Reply};
