//! The persistent heap, the flash store, its ordered tables and a console of stores for C and Java:
//! functions that take and give longs only (numbers, addresses, addresses of texts), each under a C
//! name and under the one that Java's native interface looks for. `include/entresol.h` is their
//! reference.
//!
//! Invariants:
//! 1. A result below 0 is a failure: its negation is the address of a text (`text.rs`). No panic
//!    crosses the boundary.
//! 2. Whoever passes an address got it from here and did not release it; Java's classes see to it.
//!    A heap's address may be used by several threads, a transaction's by one at a time.
//! 3. Nothing is kept between calls except behind the addresses given out: no thread-local state,
//!    so that virtual threads may move from thread to thread.
#![expect(unsafe_code, reason = "addresses from another language")]

#[macro_use]
mod export;
mod address;
pub mod blocks;
pub mod buffer;
pub mod console;
mod dirty;
pub mod heap;
pub mod pool;
pub mod store;
pub mod tables;
pub mod text;
pub mod transaction;
pub mod tree;
