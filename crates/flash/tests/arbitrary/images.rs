//! Sound images of stores, where their structures stand, and edits of these that checksums do not
//! see. Shared with the targets of cargo-fuzz.

use std::ops::Range;
use std::sync::Arc;

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_flash::{
    Budget, Condition, Durability, Key, Operation, PutOptions, Reclaim, SessionOptions, SpaceId,
    Store, StoreOptions, Timestamp,
};
use entresol_random::SplitMix;

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);
pub(crate) const SPACE: SpaceId = SpaceId(0);
pub(crate) const CAPACITY_BYTES: usize = 4 << 20;
pub(crate) const SUPERBLOCK_BYTES: usize = 64 << 10;
pub(crate) const KEYS: u64 = 400;

/// What a store left on its medium, and where structures with a checksum stand in it.
pub(crate) struct Origin {
    pub(crate) image: Vec<u8>,
    pub(crate) structures: Vec<Structure>,
}

/// Bytes whose checksum is known: `body` is covered by the four bytes at `checksum`, which may lie
/// in a structure themselves.
#[derive(Clone)]
pub(crate) struct Structure {
    pub(crate) body: Range<usize>,
    pub(crate) checksum: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Superblock,
    Record,
    HeaderOrTrailer,
    Footer,
    Checkpoint,
}

pub(crate) const KINDS: [Kind; 5] =
    [Kind::Superblock, Kind::Record, Kind::HeaderOrTrailer, Kind::Footer, Kind::Checkpoint];

pub(crate) fn options(reclaim: Reclaim) -> StoreOptions {
    StoreOptions {
        segment_bytes: 64 << 10,
        durability: Durability::Memory,
        reclaim,
        ..StoreOptions::default()
    }
}

pub(crate) fn key_of(number: u64) -> Vec<u8> {
    format!("key {number:06}").into_bytes()
}

/// A value names its key and its round, and the rest follows from both.
pub(crate) fn value_of(number: u64, round: u64, length: usize) -> Vec<u8> {
    let mut random = SplitMix::new(number << 20 | round);
    let mut value = format!("{number}/{round}/{length}/").into_bytes();
    value.extend((0..length).map(|_| random.next_u64() as u8));
    value
}

/// Whether `value` was ever put under the key of `number`.
pub(crate) fn was_put(number: u64, value: &[u8]) -> bool {
    let mut parts = value.splitn(4, |&byte| byte == b'/');
    let mut part = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
    match (part(), part(), part()) {
        (Some(key), Some(round), Some(length)) => {
            key == number && value == value_of(number, round, length as usize)
        }
        _ => false,
    }
}

pub(crate) fn image_of(device: &dyn Device) -> Vec<u8> {
    let mut buffer = IoBuffer::aligned(CAPACITY_BYTES);
    device.read_at(0, &mut buffer).unwrap();
    buffer.to_vec()
}

pub(crate) fn device_of(image: &[u8]) -> Arc<dyn Device> {
    let device = MemoryDevice::new(CAPACITY_BYTES as u64).unwrap();
    let mut buffer = IoBuffer::aligned(CAPACITY_BYTES);
    buffer.copy_from_slice(image);
    device.write_at(0, &buffer).unwrap();
    Arc::new(device)
}

/// Fills a store with overwrites, removes and a value in pieces, and stops it, `closed` or not.
pub(crate) fn origin(closed: bool) -> Origin {
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
pub(crate) fn structures_in(image: &[u8]) -> Vec<Structure> {
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
        add(Kind::Record, start + 4..start + record_header_bytes(image[start + 31]), start);
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

/// Bytes of a record's header with these extras.
fn record_header_bytes(extras: u8) -> usize {
    let lengths = [8, 4, 8, 8, 4].into_iter().enumerate();
    32 + lengths.filter(|(bit, _)| extras >> bit & 1 == 1).map(|(_, bytes)| bytes).sum::<usize>()
}

pub(crate) fn word(image: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(image[at..at + 4].try_into().unwrap())
}

/// Makes the checksum of `structure` hold again, and that of the structure it stands in.
pub(crate) fn seal(base: &Origin, image: &mut [u8], structure: &Structure) {
    let sum = crc(&image[structure.body.clone()]);
    image[structure.checksum..structure.checksum + 4].copy_from_slice(&sum.to_le_bytes());
    let around = base.structures.iter().find(|other| other.body.contains(&structure.checksum));
    if let Some(around) = around {
        seal(base, image, around);
    }
}

pub(crate) fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Bytes of one edit.
pub(crate) const EDIT_BYTES: usize = 16;

/// Writes implausible fields under checksums that hold, as `edits` say, `EDIT_BYTES` each: kind of
/// structure, form, which structure (2), where in it (4), value (8).
pub(crate) fn apply_sealed(base: &Origin, image: &mut [u8], edits: &[u8]) {
    const EXTREMES: [u64; 8] =
        [0, 1, 0x7f, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];
    for edit in edits.chunks_exact(EDIT_BYTES) {
        let number = |range: Range<usize>| {
            let bytes = edit[range].iter().rev();
            bytes.fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let kind = KINDS[edit[0] as usize % KINDS.len()];
        let of_kind: Vec<&Structure> =
            base.structures.iter().filter(|structure| structure.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let structure = of_kind[number(2..4) as usize % of_kind.len()];
        let body = structure.body.clone();
        let form = edit[1] as usize;
        // What matters most stands in the first bytes.
        let span = if form.is_multiple_of(2) { body.len() } else { body.len().min(128) };
        let at = body.start + number(4..8) as usize % span;
        let width = [1, 2, 4, 8][form / 2 % 4].min(body.end - at);
        let drawn = number(8..16);
        let value = match form / 8 % 3 {
            0 => drawn,
            1 => EXTREMES[drawn as usize % EXTREMES.len()],
            _ => u64::from(image[at]).wrapping_add(drawn % 3).wrapping_sub(1),
        };
        image[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        seal(base, image, structure);
    }
}
