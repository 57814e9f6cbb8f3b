//! Any bytes as a log of device certification.
#![no_main]

#[path = "../../crates/certify/tests/arbitrary/exercise.rs"]
#[expect(dead_code, reason = "each target exercises one reader")]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::log(bytes));
