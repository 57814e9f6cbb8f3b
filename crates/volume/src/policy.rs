//! Decisions of the cache, as pure functions of past events: no device, no clock, no thread.
//!
//! Each policy stands alone, takes time as an argument where it needs it, has bounded memory that
//! it allocates when it is made, and can be tested without a cache.

pub mod admission;
pub mod qos;
pub mod rate;
pub mod readahead;
pub mod sequential;
