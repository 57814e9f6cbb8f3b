//! Any bytes as what names a value, a table or a row.
#![no_main]

#[path = "../../crates/tree/tests/arbitrary/exercise.rs"]
#[expect(dead_code, reason = "other targets call the rest")]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::value(bytes);
});
