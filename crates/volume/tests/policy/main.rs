//! The policies, each compared with its promises, in virtual time.

mod admission;
mod qos;
mod rate;
mod readahead;
mod sequential;
