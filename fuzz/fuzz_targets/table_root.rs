//! Any bytes as the first record of an ordered table.
#![no_main]

#[path = "../../crates/tree/tests/arbitrary/exercise.rs"]
#[expect(dead_code, reason = "other targets call the rest")]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::root(bytes);
});
