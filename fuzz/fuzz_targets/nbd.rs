//! Any bytes as both sides' handshakes, requests, replies and URIs of NBD.
#![no_main]

#[path = "../../crates/wire/tests/arbitrary/nbd.rs"]
mod nbd;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nbd::exercise(bytes));
