//! Any bytes as a page of an ordered table, and under the header of each kind of pages.
#![no_main]

#[path = "../../crates/tree/tests/arbitrary/exercise.rs"]
#[expect(dead_code, reason = "other targets call the rest")]
mod exercise;

use entresol_tree::format::PageKind;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::page(bytes);
    for kind in [PageKind::Leaf, PageKind::Delta, PageKind::Inner] {
        exercise::page(&exercise::under_a_header(kind, bytes));
    }
});
