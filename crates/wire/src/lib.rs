//! Protocols as pure functions over bytes.
//!
//! Nothing here knows of sockets, threads or entries: bytes come in, commands go out, and replies
//! are appended to buffers of the caller's. Whatever a peer sends, no function of this crate
//! panics, loops without progress or allocates more than the limits it was given.

#![deny(clippy::indexing_slicing)]

pub mod json;
pub mod nbd;
pub mod resp;
