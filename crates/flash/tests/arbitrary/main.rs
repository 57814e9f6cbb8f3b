//! Whatever the medium holds, opening it and using what opened neither panics nor runs on nor takes
//! memory without bound; and damage that checksums can see never turns into a value.
//!
//! Two kinds of damage: *plain*, as a medium makes it, and *sealed*, where the checksum of the
//! structure that was hit is computed anew, so that implausible fields reach the code behind the
//! checksums. Each seed runs in a process that the system gives little memory and time.
//! `ENTRESOL_SEED` replaces the seeds.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod exercise;
mod images;
mod made_up;

use std::process::Command;

use entresol_flash::{Reclaim, fuzzing};
use entresol_random::SplitMix;

use exercise::exercise;
use images::{
    CAPACITY_BYTES, EDIT_BYTES, Kind, Origin, SUPERBLOCK_BYTES, apply_sealed, origin, seal,
};

const IMAGES_PER_SEED: usize = 16;
/// Set in the process that has limits.
const CONFINED: &str = "ENTRESOL_CONFINED";
/// What a process may have of memory that is its own: 64 MiB, and for each byte of the image two of
/// the origins, one of the damaged copy, one of the device it stands on, and four of tables.
const MEMORY_KIB_MAX: usize = (64 << 10) + 8 * (CAPACITY_BYTES >> 10);
/// Many times what the images of a seed take.
const PROCESSOR_SECONDS_MAX: u64 = 60;

/// Damage as a medium makes it.
fn damage_plainly(image: &mut [u8], random: &mut SplitMix) {
    for _ in 0..1 + random.index(20) {
        // Superblocks and the first segments are hit as often as all the rest.
        let reach = if random.index(2) == 0 { 512 << 10 } else { image.len() };
        let sector = random.index(reach / 512) * 512;
        let other = random.index(image.len() / 512) * 512;
        match random.index(5) {
            0 => image[sector + random.index(512)] ^= 1 << random.index(8),
            1 => image[sector..sector + 512].fill(0),
            2 => image.copy_within(other..other + 512, sector),
            3 => image[sector..sector + 512].fill_with(|| random.next_u64() as u8),
            _ => {
                let (from, to) = (other & !0xffff, sector & !0xffff);
                image.copy_within(from..from + (64 << 10), to);
            }
        }
    }
}

/// Implausible fields under a checksum that holds.
fn damage_sealed(base: &Origin, image: &mut [u8], random: &mut SplitMix) {
    let mut edits = vec![0; (1 + random.index(12)) * EDIT_BYTES];
    edits.fill_with(|| random.next_u64() as u8);
    apply_sealed(base, image, &edits);
}

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..4).collect(),
    }
}

/// Exercises images with `damage`, for each seed in a process of its own that the system lets have
/// no more than `MEMORY_KIB_MAX` of memory, touched or not, and `PROCESSOR_SECONDS_MAX`.
fn for_each_image(
    test: &str,
    damage: &mut dyn FnMut(&Origin, &mut [u8], &mut SplitMix),
    trusted: bool,
) {
    if std::env::var_os(CONFINED).is_some() {
        return seeds().into_iter().for_each(|seed| exercise_seed(seed, damage, trusted));
    }
    for seed in seeds() {
        let limits = format!(
            "ulimit -c 0 && ulimit -d {MEMORY_KIB_MAX} && ulimit -t {PROCESSOR_SECONDS_MAX} && \
             exec \"$0\" \"$@\""
        );
        let confined = Command::new("sh")
            .args(["-c", &limits])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(CONFINED, "1")
            .env("ENTRESOL_SEED", seed.to_string())
            // The symbols of a backtrace take more memory than an image.
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&confined.stdout);
        let failed = String::from_utf8_lossy(&confined.stderr);
        let whole = confined.status.success() && said.contains("1 passed");
        assert!(whole, "ENTRESOL_SEED={seed}: {}\n{said}{failed}", confined.status);
    }
}

fn exercise_seed(
    seed: u64,
    damage: &mut dyn FnMut(&Origin, &mut [u8], &mut SplitMix),
    trusted: bool,
) {
    let bases = [origin(true), origin(false)];
    let mut random = SplitMix::new(seed);
    for number in 0..IMAGES_PER_SEED {
        println!("seed {seed}, image {number}");
        let base = &bases[number % bases.len()];
        let mut image = base.image.clone();
        damage(base, &mut image, &mut random);
        let reclaim = if number % 4 < 2 { Reclaim::Compact } else { Reclaim::Evict };
        exercise(&image, reclaim, trusted);
    }
}

#[test]
fn an_undamaged_image_opens_and_serves_what_was_put() {
    for base in [origin(true), origin(false)] {
        exercise(&base.image, Reclaim::Compact, true);
    }
}

#[test]
fn a_damaged_medium_never_yields_a_value_that_nobody_put() {
    for_each_image(
        "a_damaged_medium_never_yields_a_value_that_nobody_put",
        &mut |_, image, random| damage_plainly(image, random),
        true,
    );
}

#[test]
fn implausible_fields_under_valid_checksums_neither_panic_nor_run_on() {
    for_each_image(
        "implausible_fields_under_valid_checksums_neither_panic_nor_run_on",
        &mut |base, image, random| damage_sealed(base, image, random),
        false,
    );
}

#[test]
fn random_bytes_behind_a_sound_root_are_refused_or_open_without_harm() {
    for_each_image(
        "random_bytes_behind_a_sound_root_are_refused_or_open_without_harm",
        &mut |base, image, random| {
            // Both copies of the superblock up to the counts of their lists.
            image[80..SUPERBLOCK_BYTES].fill_with(|| random.next_u64() as u8);
            image[2 * SUPERBLOCK_BYTES..].fill_with(|| random.next_u64() as u8);
            for structure in base.structures.iter().filter(|s| s.kind == Kind::Superblock) {
                image.copy_within(0..SUPERBLOCK_BYTES - 4, structure.body.start);
                seal(base, image, structure);
            }
        },
        false,
    );
}

#[test]
fn decoders_take_any_bytes_and_hold_to_what_they_read() {
    for_each_image(
        "decoders_take_any_bytes_and_hold_to_what_they_read",
        &mut |base, image, random| {
            match random.index(2) {
                0 => damage_plainly(image, random),
                _ => damage_sealed(base, image, random),
            }
            for structure in &base.structures {
                let start = structure.body.start.min(structure.checksum);
                match structure.kind {
                    Kind::Superblock => fuzzing::superblock(&image[start..]),
                    Kind::Record => fuzzing::record(&image[start..]),
                    Kind::HeaderOrTrailer => {
                        let end = (start + (64 << 10)).min(image.len());
                        fuzzing::segment(&image[start..end]);
                    }
                    Kind::Footer | Kind::Checkpoint => {}
                }
            }
        },
        false,
    );
}
