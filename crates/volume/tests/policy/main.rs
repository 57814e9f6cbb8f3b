//! The policies, each held against what it promises, in virtual time.

mod admission;
mod qos;
mod rate;
mod readahead;
mod sequential;
