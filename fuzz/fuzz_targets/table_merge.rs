//! Any bytes as a leaf and its delta page, which are merged with changes.
#![no_main]

#[path = "../../crates/tree/tests/arbitrary/exercise.rs"]
#[expect(dead_code, reason = "other targets call the rest")]
mod exercise;

use entresol_tree::format::PageKind;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::merge(bytes);
    exercise::merge(&exercise::under_a_header(PageKind::Leaf, bytes));
});
