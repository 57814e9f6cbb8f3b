//! Images that someone made up, with checksums that hold: sums that no store reaches.

use std::sync::Arc;

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_flash::{
    Condition, ErrorKind, Key, Opened, Operation, PutOptions, Reclaim, Session, SessionOptions,
    Store, StoreOptions,
};

use crate::images::{
    KEYS, Kind, NOW, Origin, SPACE, crc, device_of, key_of, options, origin, seal, value_of, word,
};

fn put(session: &mut Session, number: u64, length: usize) -> Result<(), ErrorKind> {
    let (key, value) = (key_of(number), value_of(number, 99, length));
    let key = Key::new(SPACE, &key);
    let operation = Operation::Put { key, value: &value, options: PutOptions::default() };
    session.run(NOW, operation, &mut |_| {}).map_err(|error| error.kind())
}

fn remove(session: &mut Session, number: u64) -> Result<(), ErrorKind> {
    let key = key_of(number);
    let operation = Operation::Remove { key: Key::new(SPACE, &key), condition: Condition::Always };
    session.run(NOW, operation, &mut |_| {}).map_err(|error| error.kind())
}

// Bytes of records in a segment were added up in 32 bits, and what stands before them on top.
#[test]
fn a_footer_of_records_that_lie_upon_one_another_adds_up_to_no_panic() {
    const SEGMENT_BYTES: usize = 8 << 20;
    const SEGMENTS: usize = 20;
    let options = StoreOptions {
        segment_bytes: SEGMENT_BYTES as u32,
        shards: 1,
        // Footers are believed as they stand.
        boot: 7,
        ..options(Reclaim::Compact)
    };
    let device: Arc<dyn Device> =
        Arc::new(MemoryDevice::new((SEGMENTS * SEGMENT_BYTES) as u64).unwrap());
    let store = Store::open(Arc::clone(&device), options.clone(), NOW).unwrap();
    let mut session = store.session(SessionOptions::default()).unwrap();
    (0..KEYS * 2).for_each(|number| put(&mut session, number, 10).unwrap());
    store.sync().unwrap();
    drop((session, store));
    // Recovery seals what was open.
    drop(Store::open(Arc::clone(&device), options.clone(), NOW).unwrap());

    let mut segment = IoBuffer::aligned(SEGMENT_BYTES);
    let at = SEGMENT_BYTES as u64;
    device.read_at(at, &mut segment).unwrap();
    let trailer = SEGMENT_BYTES - 64;
    let entries = word(&segment, trailer + 16) as usize;
    assert!(entries >= 600, "{entries} records: has the format changed?");
    let footer = trailer - 40 * entries;
    for entry in (footer..trailer).step_by(40) {
        let place = word(&segment, entry + 36) as usize & 0xff_ffff;
        let record_bytes = (footer - place * 32) as u32;
        segment[entry + 24..entry + 28].copy_from_slice(&record_bytes.to_le_bytes());
    }
    let sum = crc(&segment[footer..trailer]);
    segment[trailer + 24..trailer + 28].copy_from_slice(&sum.to_le_bytes());
    let sum = crc(&segment[trailer + 4..]);
    segment[trailer..trailer + 4].copy_from_slice(&sum.to_le_bytes());
    device.write_at(at, &segment).unwrap();

    let store = Store::open(device, options, NOW).unwrap();
    let used = store.segments().iter().map(|s| s.used_bytes).max();
    assert_eq!(used, Some(u32::MAX), "the sum is as large as was made up");
    let mut session = store.session(SessionOptions::default()).unwrap();
    for number in 0..KEYS {
        let _ended = put(&mut session, number, 10);
    }
}

/// Bytes of a segment's row in the tables of a checkpoint, and where in it are what is live, what
/// of that are tombstones, and the state.
const ROW_BYTES: usize = 38;
const LIVE: usize = 16;
const USED: usize = 20;
const TOMBSTONES: usize = 24;
const STATE: usize = 33;

/// The image of a store that was stopped, with one row of its tables changed: of those of this
/// `state` the one with the most that is live and no tombstone.
fn with_row(base: &Origin, state: u8, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut image = base.image.clone();
    let first = base.structures.iter().find(|structure| {
        structure.kind == Kind::Checkpoint && word(&base.image, structure.body.start - 44) == 0
    });
    let first = first.expect("the first part of a checkpoint");
    // Behind the length of the tables and six numbers of the shard, of which the last is how many.
    let start = first.body.start + 8 + 6 * 8;
    let rows = (0..word(&image, start - 8) as usize).map(|row| start + row * ROW_BYTES);
    let entries = |row: &usize| word(&image, row + LIVE) - word(&image, row + TOMBSTONES);
    let row = rows.filter(|row| image[row + STATE] == state).max_by_key(entries);
    let row = row.expect("a row of that state");
    change(&mut image[row..row + ROW_BYTES]);
    seal(base, &mut image, first);
    image
}

// What is live less what of it are tombstones was taken to be no less than nothing.
#[test]
fn a_checkpoint_with_more_tombstones_than_there_is_live_adds_up_to_no_panic() {
    let base = origin(true);
    let image = with_row(&base, 1, |row| {
        for field in [LIVE, USED, TOMBSTONES] {
            row[field..field + 4].copy_from_slice(&4_000_000_000u32.to_le_bytes());
        }
    });
    let store = Store::open(device_of(&image), options(Reclaim::Compact), NOW).unwrap();
    assert_eq!(store.statistics().opened, Opened::Checkpoint);
    let mut session = store.session(SessionOptions::default()).unwrap();
    for number in 0..KEYS {
        let _ended = remove(&mut session, number);
    }
    for number in 0..KEYS {
        let _ended = put(&mut session, number, 700);
    }
}

// The sum of what is live kept for good what the row of a free segment said.
#[test]
fn a_checkpoint_in_which_something_is_live_in_a_free_segment_is_not_believed() {
    let base = origin(true);
    let image =
        with_row(&base, 0, |row| row[LIVE..LIVE + 4].copy_from_slice(&4_000_000u32.to_le_bytes()));
    let store = Store::open(device_of(&image), options(Reclaim::Compact), NOW).unwrap();
    assert_eq!(store.statistics().opened, Opened::DamagedCheckpoint);
    let mut session = store.session(SessionOptions::default()).unwrap();
    (0..KEYS).for_each(|number| put(&mut session, number, 700).unwrap());
}
