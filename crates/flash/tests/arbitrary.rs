//! Whatever the medium holds, opening it and using what opened neither panics nor runs on nor takes
//! memory without bound; and damage that checksums can see never turns into a value.
//!
//! Two kinds of damage: *plain*, as a medium makes it, and *sealed*, where the checksum of the
//! structure that was hit is computed anew, so that implausible fields reach the code behind the
//! checksums. Each seed runs in a process that the system gives little memory and time.
//! `ENTRESOL_SEED` replaces the seeds.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::ops::Range;
use std::process::Command;
use std::sync::Arc;

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_flash::{
    Budget, Condition, Durability, Key, Operation, Outcome, PutOptions, Reclaim, SessionOptions,
    SpaceId, Store, StoreOptions, Timestamp,
};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const SPACE: SpaceId = SpaceId(0);
const CAPACITY_BYTES: usize = 4 << 20;
const SUPERBLOCK_BYTES: usize = 64 << 10;
const KEYS: u64 = 400;
const IMAGES_PER_SEED: usize = 16;
/// Set in the process that has limits.
const CONFINED: &str = "ENTRESOL_CONFINED";
/// What a process may have of memory that is its own: 64 MiB, and for each byte of the image two of
/// the origins, one of the damaged copy, one of the device it stands on, and four of tables.
const MEMORY_KIB_MAX: usize = (64 << 10) + 8 * (CAPACITY_BYTES >> 10);
/// Many times what the images of a seed take.
const PROCESSOR_SECONDS_MAX: u64 = 60;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// What a store left on its medium, and where structures with a checksum stand in it.
struct Origin {
    image: Vec<u8>,
    structures: Vec<Structure>,
}

/// Bytes whose checksum is known: `body` is covered by the four bytes at `checksum`, which may lie
/// in
/// a structure themselves.
#[derive(Clone)]
struct Structure {
    body: Range<usize>,
    checksum: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Superblock,
    Record,
    HeaderOrTrailer,
    Footer,
    Checkpoint,
}

const KINDS: [Kind; 5] =
    [Kind::Superblock, Kind::Record, Kind::HeaderOrTrailer, Kind::Footer, Kind::Checkpoint];

fn options(reclaim: Reclaim) -> StoreOptions {
    StoreOptions {
        segment_bytes: 64 << 10,
        durability: Durability::Memory,
        reclaim,
        ..StoreOptions::default()
    }
}

fn key_of(number: u64) -> Vec<u8> {
    format!("key {number:06}").into_bytes()
}

/// A value names its key and its round, and the rest follows from both.
fn value_of(number: u64, round: u64, length: usize) -> Vec<u8> {
    let mut random = Random(number << 20 | round);
    let mut value = format!("{number}/{round}/{length}/").into_bytes();
    value.extend((0..length).map(|_| random.next() as u8));
    value
}

/// Whether `value` was ever put under the key of `number`.
fn was_put(number: u64, value: &[u8]) -> bool {
    let mut parts = value.splitn(4, |&byte| byte == b'/');
    let mut part = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
    match (part(), part(), part()) {
        (Some(key), Some(round), Some(length)) => {
            key == number && value == value_of(number, round, length as usize)
        }
        _ => false,
    }
}

fn image_of(device: &dyn Device) -> Vec<u8> {
    let mut buffer = IoBuffer::aligned(CAPACITY_BYTES);
    device.read_at(0, &mut buffer).unwrap();
    buffer.to_vec()
}

fn device_of(image: &[u8]) -> Arc<dyn Device> {
    let device = MemoryDevice::new(CAPACITY_BYTES as u64).unwrap();
    let mut buffer = IoBuffer::aligned(CAPACITY_BYTES);
    buffer.copy_from_slice(image);
    device.write_at(0, &buffer).unwrap();
    Arc::new(device)
}

/// Fills a store with overwrites, removes and a value in pieces, and stops it, `closed` or not.
fn origin(closed: bool) -> Origin {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(CAPACITY_BYTES as u64).unwrap());
    let store = Store::open(Arc::clone(&device), options(Reclaim::Compact), NOW).unwrap();
    let mut session = store.session(SessionOptions::default()).unwrap();
    for round in 0..4 {
        for number in 0..KEYS {
            let key = key_of(number);
            let length = if number == 7 { 150_000 } else { (number * 13 % 1500) as usize };
            let value = value_of(number, round, length);
            let key = Key::new(SPACE, &key);
            let put = Operation::Put { key, value: &value, options: PutOptions::default() };
            session.run(NOW, put, &mut |_| {}).unwrap();
            if number % 11 == round {
                let remove = Operation::Remove { key, condition: Condition::Always };
                session.run(NOW, remove, &mut |_| {}).unwrap();
            }
        }
        store.sync().unwrap();
        store.maintain(NOW, Budget { segments: 4 }).unwrap();
    }
    drop(session);
    if closed {
        store.close(NOW).unwrap();
    }
    drop(store);
    let image = image_of(device.as_ref());
    let structures = structures_in(&image);
    for kind in KINDS.into_iter().filter(|kind| closed || *kind != Kind::Checkpoint) {
        let count = structures.iter().filter(|structure| structure.kind == kind).count();
        assert!(count > 0, "found nothing of kind {kind:?}: has the format changed?");
    }
    Origin { image, structures }
}

/// Superblocks have their checksum at the end; headers and trailers, at multiples of 32, begin with
/// it; a footer's stands in the trailer behind it, a checkpoint's in the header before it.
fn structures_in(image: &[u8]) -> Vec<Structure> {
    let mut found = Vec::new();
    let mut add = |kind, body: Range<usize>, checksum| {
        // A segment is the most that one checksum covers.
        let covered = image.get(body.clone()).filter(|body| body.len() <= 64 << 10);
        let expected = word(image, checksum);
        let holds = expected != 0 && covered.is_some_and(|body| expected == crc(body));
        if holds {
            found.push(Structure { body, checksum, kind });
        }
        holds
    };
    for start in [0, SUPERBLOCK_BYTES] {
        let checksum = start + SUPERBLOCK_BYTES - 4;
        add(Kind::Superblock, start..checksum, checksum);
    }
    for start in (2 * SUPERBLOCK_BYTES..image.len() - 64).step_by(32) {
        // 32 bytes, then what the last of them says follows.
        let lengths = [8, 4, 8, 8, 4].into_iter().enumerate();
        let extras = lengths.filter(|(bit, _)| image[start + 31] >> bit & 1 == 1);
        let end = start + 32 + extras.map(|(_, length)| length).sum::<usize>();
        add(Kind::Record, start + 4..end, start);
        if add(Kind::HeaderOrTrailer, start + 4..start + 64, start) {
            let footer_bytes = word(image, start + 16) as usize * 40;
            add(Kind::Footer, start.saturating_sub(footer_bytes)..start, start + 24);
        }
        if start % 4096 == 0 {
            let payload_bytes = word(image, start + 24) as usize;
            add(Kind::Checkpoint, start + 64..start + 64 + payload_bytes, start + 4);
        }
    }
    found
}

fn word(image: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(image[at..at + 4].try_into().unwrap())
}

/// Makes the checksum of `structure` hold again, and that of the structure it stands in.
fn seal(base: &Origin, image: &mut [u8], structure: &Structure) {
    let sum = crc(&image[structure.body.clone()]);
    image[structure.checksum..structure.checksum + 4].copy_from_slice(&sum.to_le_bytes());
    let around = base.structures.iter().find(|other| other.body.contains(&structure.checksum));
    if let Some(around) = around {
        seal(base, image, around);
    }
}

fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Damage as a medium makes it.
fn damage_plainly(image: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(20) {
        // Superblocks and the first segments are hit as often as all the rest.
        let reach = if random.below(2) == 0 { 512 << 10 } else { image.len() };
        let sector = random.below(reach / 512) * 512;
        let other = random.below(image.len() / 512) * 512;
        match random.below(5) {
            0 => image[sector + random.below(512)] ^= 1 << random.below(8),
            1 => image[sector..sector + 512].fill(0),
            2 => image.copy_within(other..other + 512, sector),
            3 => image[sector..sector + 512].fill_with(|| random.next() as u8),
            _ => {
                let (from, to) = (other & !0xffff, sector & !0xffff);
                image.copy_within(from..from + (64 << 10), to);
            }
        }
    }
}

/// Implausible fields under a checksum that holds.
fn damage_sealed(base: &Origin, image: &mut [u8], random: &mut Random) {
    const EXTREMES: [u64; 8] =
        [0, 1, 0x7f, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];
    for _ in 0..1 + random.below(12) {
        let kind = KINDS[random.below(KINDS.len())];
        let of_kind: Vec<&Structure> =
            base.structures.iter().filter(|structure| structure.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let structure = of_kind[random.below(of_kind.len())];
        let body = structure.body.clone();
        // What matters most stands in the first bytes.
        let span = if random.below(2) == 0 { body.len() } else { body.len().min(128) };
        let at = body.start + random.below(span);
        let width = [1, 2, 4, 8][random.below(4)].min(body.end - at);
        let value = match random.below(3) {
            0 => random.next(),
            1 => EXTREMES[random.below(EXTREMES.len())],
            _ => u64::from(image[at]).wrapping_add(random.below(3) as u64).wrapping_sub(1),
        };
        image[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        seal(base, image, structure);
    }
}

/// Opens `image` and does a bit of everything; errors are fine, `trusted` values must have been
/// put.
fn exercise(image: &[u8], reclaim: Reclaim, trusted: bool) {
    let device = device_of(image);
    let Ok(store) = Store::open(device, options(reclaim), NOW) else { return };
    let Ok(mut session) = store.session(SessionOptions::default()) else { return };
    for number in 0..KEYS {
        let key = key_of(number);
        let get = Operation::Get { key: Key::new(SPACE, &key) };
        let _ = session.run(NOW, get, &mut |outcome| {
            if let (true, Outcome::Found(entry)) = (trusted, outcome) {
                assert!(was_put(number, entry.value), "key {number} has a value nobody put");
            }
        });
    }
    let _ = store.maintain(NOW, Budget { segments: 8 });
    for number in 0..KEYS / 4 {
        let key = key_of(number);
        let value = value_of(number, 99, 700);
        let key = Key::new(SPACE, &key);
        let put = Operation::Put { key, value: &value, options: PutOptions::default() };
        if session.run(NOW, put, &mut |_| {}).is_ok() {
            let mut found = false;
            let get = session.run(NOW, Operation::Get { key }, &mut |outcome| {
                found = matches!(outcome, Outcome::Found(entry) if entry.value == value);
            });
            assert!(!trusted || (get.is_ok() && found), "key {number} was put and is not there");
        }
    }
    let _ = store.maintain(NOW, Budget { segments: 8 });
    drop(session);
    let _ = store.close(NOW);
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
    damage: &mut dyn FnMut(&Origin, &mut [u8], &mut Random),
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
    damage: &mut dyn FnMut(&Origin, &mut [u8], &mut Random),
    trusted: bool,
) {
    let bases = [origin(true), origin(false)];
    let mut random = Random(seed);
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
            image[80..SUPERBLOCK_BYTES].fill_with(|| random.next() as u8);
            image[2 * SUPERBLOCK_BYTES..].fill_with(|| random.next() as u8);
            for structure in base.structures.iter().filter(|s| s.kind == Kind::Superblock) {
                image.copy_within(0..SUPERBLOCK_BYTES - 4, structure.body.start);
                seal(base, image, structure);
            }
        },
        false,
    );
}
