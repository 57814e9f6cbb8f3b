//! A store opened on an image and used a bit of everything. The first byte chooses the image and
//! the policy; the rest are edits of it, under checksums that hold or, of every other image, do
//! not.
#![no_main]

#[path = "../../crates/flash/tests/arbitrary/exercise.rs"]
mod exercise;
#[path = "../../crates/flash/tests/arbitrary/images.rs"]
mod images;

use std::sync::OnceLock;

use entresol_flash::Reclaim;
use images::Origin;

static ORIGINS: OnceLock<[Origin; 2]> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, edits)) = bytes.split_first() else { return };
    let origins = ORIGINS.get_or_init(|| [images::origin(true), images::origin(false)]);
    let origin = &origins[usize::from(choice % 2)];
    let reclaim = if choice & 2 == 0 { Reclaim::Compact } else { Reclaim::Evict };
    let mut image = origin.image.clone();
    if choice & 4 == 0 {
        images::apply_sealed(origin, &mut image, edits);
        exercise::exercise(&image, reclaim, false);
    } else {
        // Eight bytes each: where, and what is written there.
        for edit in edits.chunks_exact(8) {
            let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
            let at = at % (image.len() - 4);
            image[at..at + 4].copy_from_slice(&edit[4..]);
        }
        exercise::exercise(&image, reclaim, true);
    }
});
