//! Stores that were made by each version of the format open for ever, after a clean stop and
//! after a crash.
//!
//! An image is its sectors that are not zero: offset, eight bytes, little-endian, then 512 bytes;
//! the first eight bytes are the capacity. `ENTRESOL_GOLDEN=write` makes the images that are not
//! there: those of a new version of the format.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::path::PathBuf;
use std::sync::Arc;

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_flash::{
    Compression, Condition, Durability, Expiry, JournalAppend, JournalContinuation, JournalRoom,
    JournalSequence, Key, Lifespan, Opened, Operation, Outcome, PutOptions, Session,
    SessionOptions, SpaceId, Store, StoreOptions, Timestamp,
};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const CAPACITY_BYTES: u64 = (128 << 10) + 17 * (64 << 10);
const SECTOR: usize = 512;
const KEYS: u64 = 24;
/// Records of the journal that are superseded.
const TRIMMED: u64 = 9;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images").join(name)
}

/// What a version of the format is the first to know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Format {
    First,
    /// Marks of lifespans, and the journal.
    Second,
    /// Records of the journal that are continued.
    Third,
}

fn options(format: Format) -> StoreOptions {
    StoreOptions {
        journal_bytes: if format >= Format::Second { 3 * (64 << 10) } else { 0 },
        shards: 1,
        segment_bytes: 64 << 10,
        durability: Durability::Synced,
        compression: Compression::Lz4,
        boot: 5,
        ..StoreOptions::default()
    }
}

fn value_of(number: u64) -> Vec<u8> {
    let length = if number == 5 { 20_000 } else { 40 + number as usize * 17 };
    let random = |at: usize| (at as u64).wrapping_mul(number * 2 + 0x9e37_79b9).to_le_bytes()[3];
    (0..length).map(random).collect()
}

fn key_of(number: u64) -> Vec<u8> {
    format!("golden key {number}").into_bytes()
}

/// Even keys are in space 0, odd ones in space 9; every seventh is removed; every fifth ends.
fn fill(session: &mut Session, format: Format) {
    for round in 0..2 {
        for number in 0..KEYS {
            let bytes = key_of(number);
            let key = Key::new(space_of(number), &bytes);
            let value = if round == 0 { b"before".to_vec() } else { value_of(number) };
            let at = (number % 5 == 0).then_some(Timestamp(NOW.0 + 10_000));
            let expiry = Expiry { at, idle_seconds: None };
            let lifespan = match (format, number % 3) {
                (Format::First, _) | (_, 0) => Lifespan::Learned,
                (_, 1) => Lifespan::Short,
                _ => Lifespan::Long,
            };
            let label = number as u8;
            let options = PutOptions { expiry, label, lifespan, ..PutOptions::default() };
            session.run(NOW, Operation::Put { key, value: &value, options }, &mut |_| {}).unwrap();
            if round == 1 && number % 7 == 0 {
                let remove = Operation::Remove { key, condition: Condition::Always };
                session.run(NOW, remove, &mut |_| {}).unwrap();
            }
        }
    }
}

/// Appends to the journal; the sequence of each record. Those of odd numbers continue the one
/// before, where the format knows that.
fn append_all(session: &mut Session, format: Format) -> Vec<JournalSequence> {
    let mut sequences = Vec::new();
    for number in 0..KEYS {
        let bytes = value_of(number);
        let after = sequences.last().filter(|_| format >= Format::Third && number % 2 == 1);
        let continues = after.map(|after| JournalContinuation { after: *after, bytes: &bytes });
        let owner = number - u64::from(continues.is_some());
        let durability = continues.map(|_| Durability::Flushed).or(Some(Durability::Memory));
        let append = JournalAppend {
            lane: 0,
            owner,
            bytes: &bytes,
            durability,
            continues,
            room: JournalRoom::Leaving(0),
        };
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            if let Ok(Outcome::Journaled { sequence, .. }) = outcome {
                sequences.push(sequence);
            }
        };
        session.submit_journal(number, NOW, append, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).unwrap();
        }
    }
    sequences
}

fn space_of(number: u64) -> SpaceId {
    SpaceId(if number.is_multiple_of(2) { 0 } else { 9 })
}

fn write_image(name: &str, device: &dyn Device) {
    let mut buffer = IoBuffer::aligned(CAPACITY_BYTES as usize);
    device.read_at(0, &mut buffer).unwrap();
    let mut out = CAPACITY_BYTES.to_le_bytes().to_vec();
    for (number, sector) in buffer.chunks(SECTOR).enumerate() {
        if sector.iter().any(|byte| *byte != 0) {
            out.extend_from_slice(&((number * SECTOR) as u64).to_le_bytes());
            out.extend_from_slice(sector);
        }
    }
    std::fs::write(path(name), out).unwrap();
}

fn read_image(name: &str) -> Arc<dyn Device> {
    let bytes = std::fs::read(path(name)).unwrap();
    let (capacity, sectors) = bytes.split_at(8);
    let capacity = u64::from_le_bytes(capacity.try_into().unwrap());
    let mut buffer = IoBuffer::aligned(capacity as usize);
    for sector in sectors.chunks_exact(8 + SECTOR) {
        let at = u64::from_le_bytes(sector[..8].try_into().unwrap()) as usize;
        buffer[at..at + SECTOR].copy_from_slice(&sector[8..]);
    }
    let device = MemoryDevice::new(capacity).unwrap();
    device.write_at(0, &buffer).unwrap();
    Arc::new(device)
}

fn make(name: &str, format: Format, close: bool) {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(CAPACITY_BYTES).unwrap());
    let store = Store::open(Arc::clone(&device), options(format), NOW).unwrap();
    let mut session = store.session(SessionOptions::default()).unwrap();
    fill(&mut session, format);
    if format >= Format::Second {
        let sequences = append_all(&mut session, format);
        store.trim_journal(0, sequences[TRIMMED as usize]).unwrap();
    }
    if close {
        store.close(NOW).unwrap();
    }
    write_image(name, device.as_ref());
}

fn check(name: &str, format: Format, close: bool) {
    if std::env::var("ENTRESOL_GOLDEN").is_ok_and(|wish| wish == "write") && !path(name).exists() {
        make(name, format, close);
    }
    let device = read_image(name);
    let store = Store::open(device, options(format), NOW).unwrap();
    let expected = if close { Opened::Checkpoint } else { Opened::Recovered };
    assert_eq!(store.statistics().opened, expected);
    if format >= Format::Second {
        let mut found = Vec::new();
        let mut visit = |record: entresol_flash::JournalRecord<'_>| {
            found.push((record.owner, record.bytes.to_vec()));
        };
        store.replay_journal(0, &mut visit).unwrap();
        // A crash forgets what was trimmed since its segment was opened.
        let first = if close { TRIMMED } else { 0 };
        let owner_of = |number| match format {
            // As of the record that it continues.
            Format::Third => number / 2 * 2,
            _ => number,
        };
        let expected = (first..KEYS).map(|number| (owner_of(number), value_of(number)));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
    let mut session = store.session(SessionOptions::default()).unwrap();
    for number in 0..KEYS {
        let bytes = key_of(number);
        let get = Operation::Get { key: Key::new(space_of(number), &bytes) };
        let mut found = None;
        session
            .run(NOW, get, &mut |outcome| {
                if let Outcome::Found(entry) = outcome {
                    found = Some((entry.value.to_vec(), entry.label, entry.expiry.at.is_some()));
                }
            })
            .unwrap();
        let put = (value_of(number), number as u8, number % 5 == 0);
        let expected = (number % 7 != 0).then_some(put);
        assert_eq!(found, expected, "key {number}");
    }
    assert_eq!(store.verify().unwrap().damaged, Vec::<String>::new());
}

#[test]
fn a_store_of_format_1_opens_from_its_checkpoint() {
    check("v1-closed.sparse", Format::First, true);
}

#[test]
fn a_store_of_format_1_is_recovered_from_its_segments() {
    check("v1-crashed.sparse", Format::First, false);
}

#[test]
fn a_store_of_format_2_opens_from_its_checkpoint() {
    check("v2-closed.sparse", Format::Second, true);
}

#[test]
fn a_store_of_format_2_is_recovered_from_its_segments() {
    check("v2-crashed.sparse", Format::Second, false);
}

#[test]
fn a_store_of_format_3_opens_from_its_checkpoint() {
    check("v3-closed.sparse", Format::Third, true);
}

#[test]
fn a_store_of_format_3_is_recovered_from_its_segments() {
    check("v3-crashed.sparse", Format::Third, false);
}
