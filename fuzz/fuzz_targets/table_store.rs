//! Records of ordered tables changed under their checksums, and all that is asked of the tables.
#![no_main]

#[path = "../../crates/tree/tests/arbitrary/stores.rs"]
mod stores;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    stores::tables(bytes);
});
