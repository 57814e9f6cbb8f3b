//! Whatever bytes pages, first records, values and batches of ordered tables have, they are read or
//! are damage: nothing panics, and what reads as sound can be written and reads the same again.
//!
//! Bytes are golden images with damage, pieces of others in them, and noise. `ENTRESOL_SEED`
//! replaces the seeds; `ENTRESOL_INPUTS` says how many inputs a seed has for each decoder.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod exercise;
mod stores;

use std::path::PathBuf;

use entresol_tree::format::PageKind;
use entresol_workload::Random;

const INPUTS_PER_SEED: usize = 20_000;
/// A store takes as long as so many pages.
const INPUTS_PER_STORE: usize = 10_000;

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..4).collect(),
    }
}

fn inputs() -> usize {
    let given = std::env::var("ENTRESOL_INPUTS").ok();
    given.map_or(INPUTS_PER_SEED, |text| text.parse().expect("ENTRESOL_INPUTS is a whole number"))
}

/// The golden images.
fn images() -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Some bytes of an image, or noise.
fn piece(images: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if random.below(8) == 0 {
        let mut noise = vec![0; random.below(40) as usize];
        random.fill(&mut noise);
        return noise;
    }
    let image = &images[random.below(images.len() as u64) as usize];
    let start = random.below(image.len() as u64) as usize;
    let end = start + random.below((image.len() - start) as u64 + 1) as usize;
    image[start..end].to_vec()
}

/// Numbers that code forgets.
const NUMBERS: [u64; 8] = [0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff, u64::MAX];

fn damage(bytes: &mut Vec<u8>, images: &[Vec<u8>], random: &mut Random) {
    for _ in 0..1 + random.below(5) {
        let length = bytes.len() as u64;
        let at = random.below(length + 1) as usize;
        let end = (at + random.below(16) as usize).min(bytes.len());
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 | 2 if at < bytes.len() => bytes[at] = random.next() as u8,
            3 | 4 => {
                let number = NUMBERS[random.below(8) as usize].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4) as usize].min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            5 => drop(bytes.drain(at..end)),
            6 => drop(bytes.splice(at..end, piece(images, random))),
            _ => bytes.truncate(length.max(at as u64) as usize - (end - at).min(bytes.len())),
        }
    }
}

/// Gives inputs made of images to a decoder.
fn with_damaged(make: fn(&[Vec<u8>], &mut Random) -> Vec<u8>, exercise: fn(&[u8])) {
    let images = images();
    images.iter().for_each(|image| exercise(image));
    for seed in seeds() {
        println!("ENTRESOL_SEED={seed}");
        let mut random = Random::new(seed);
        for _ in 0..inputs() {
            let mut bytes = make(&images, &mut random);
            damage(&mut bytes, &images, &mut random);
            exercise(&bytes);
        }
    }
}

fn one(images: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    images[random.below(images.len() as u64) as usize].clone()
}

/// Two of them, and the length of the first.
fn two(images: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let (mut first, second) = (one(images, random), one(images, random));
    let length = first.len() as u16;
    first.extend(second);
    first.extend(length.to_le_bytes());
    first
}

/// Several, each behind its length.
fn several(images: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..1 + random.below(4) {
        let image = one(images, random);
        all.extend((image.len() as u16).to_le_bytes());
        all.extend(image);
    }
    all
}

#[test]
fn arbitrary_pages_are_read_or_are_damage() {
    with_damaged(one, |bytes| {
        exercise::page(bytes);
        for kind in [PageKind::Leaf, PageKind::Delta, PageKind::Inner] {
            exercise::page(&exercise::under_a_header(kind, bytes));
        }
    });
}

#[test]
fn arbitrary_leaves_are_merged_or_are_damage() {
    with_damaged(two, |bytes| {
        exercise::merge(bytes);
        exercise::merge(&exercise::under_a_header(PageKind::Leaf, bytes));
    });
}

#[test]
fn arbitrary_first_records_are_read_or_are_damage() {
    with_damaged(one, exercise::root);
}

#[test]
fn arbitrary_values_of_rows_are_read_or_are_damage() {
    with_damaged(piece, exercise::value);
}

#[test]
fn arbitrary_batches_are_read_or_are_damage() {
    with_damaged(several, exercise::batches);
}

#[test]
fn tables_whose_pages_were_changed_under_their_checksums_give_answers_or_errors() {
    for seed in seeds() {
        println!("ENTRESOL_SEED={seed}");
        let mut random = Random::new(seed);
        for input in 0..inputs().div_ceil(INPUTS_PER_STORE) {
            let mut edits = vec![0; 1 + stores::EDIT_BYTES * (1 + random.below(12) as usize)];
            random.fill(&mut edits);
            println!("input {input}: {edits:?}");
            stores::tables(&edits);
        }
    }
}

/// A get of a row whose leaf says that it ends below its own range read that leaf again and again,
/// and never ended: the leaf taught the directory nothing.
#[test]
fn a_page_that_leads_to_itself_is_damage() {
    const EDITS: [u8; 67] = [
        255, 240, 137, 35, 160, 160, 125, 75, 22, 76, 66, 192, 88, 252, 0, 19, 104, 153, 193, 6,
        50, 132, 132, 80, 252, 77, 170, 233, 61, 7, 234, 16, 193, 12, 150, 67, 67, 85, 174, 26, 32,
        231, 250, 16, 159, 19, 4, 24, 250, 16, 172, 184, 231, 144, 215, 16, 247, 150, 20, 221, 255,
        43, 125, 102, 168, 4, 252,
    ];
    stores::tables(&EDITS);
}
