//! What stands on the medium of an encrypted store gives nothing away.

use std::collections::HashMap;

use super::*;

/// Record kinds of the data file's format.
const VALUE: u8 = 1;
const TOMBSTONE: u8 = 2;

/// A record as it stands on the medium.
struct Sealed {
    kind: u8,
    sequence: u64,
    key_bytes: usize,
    payload: Vec<u8>,
}

#[test]
fn a_tombstone_and_what_it_stands_for_are_not_encrypted_alike() {
    let device = device(8 << 20);
    let options = StoreOptions { encryption: Some(EncryptionKey([7; 32])), ..small() };
    let (store, mut session) = open(&device, options);
    let name = |n: u64| format!("the key number {n:08}").into_bytes();
    let ends = Expiry { at: Some(Timestamp(NOW.0 + 1000)), idle_seconds: None };
    for expiry in [Expiry::default(), ends] {
        for n in 0..3000 {
            // Every other one is written once only, so that each segment has to be copied.
            if expiry.at.is_none() || n % 2 == 0 {
                let options = PutOptions { expiry, ..PutOptions::default() };
                put(&mut session, &name(n), &value_of(n, 300), options);
            }
        }
    }
    let mut records = scan(&*device);
    let later = Timestamp(NOW.0 + 10_000);
    for n in 3000..30_000 {
        let (name, value) = (name(3000 + n % 1000), value_of(n, 300));
        let options = PutOptions::default();
        let operation = Operation::Put { key: key(&name), value: &value, options };
        session.run(later, operation, &mut |_| ()).unwrap();
        if n % 50 == 0 {
            store.maintain(later, Budget { segments: 1 }).unwrap();
        }
        if n % 3000 == 0 {
            store.sync().unwrap();
            records.extend(scan(&*device));
        }
    }
    let entries: HashMap<u64, &Sealed> =
        records.iter().filter(|r| r.kind == VALUE).map(|r| (r.sequence, r)).collect();
    let mut pairs = 0;
    for tombstone in records.iter().filter(|r| r.kind == TOMBSTONE) {
        if let Some(entry) = entries.get(&tombstone.sequence) {
            let key = ..entry.key_bytes.min(tombstone.key_bytes);
            assert_ne!(entry.payload[key], tombstone.payload[key], "{}", entry.sequence);
            pairs += 1;
        }
    }
    assert!(pairs > 100, "{pairs} tombstones stand for entries that ended");
}

/// All records on the device, those that were left behind too.
fn scan(device: &dyn Device) -> Vec<Sealed> {
    let mut bytes = entresol_device::IoBuffer::aligned(device.geometry().capacity_bytes as usize);
    device.read_at(0, &mut bytes).unwrap();
    (0..bytes.len()).step_by(32).filter_map(|at| sealed(&bytes[at..])).collect()
}

fn sealed(bytes: &[u8]) -> Option<Sealed> {
    let number = |at: usize, length: usize| {
        bytes
            .get(at..at + length)?
            .iter()
            .rev()
            .try_fold(0u64, |n, byte| Some(n << 8 | u64::from(*byte)))
    };
    let extras = number(31, 1)?;
    let lengths = [8, 4, 8, 8, 4].iter().enumerate();
    let header = 32 + lengths.map(|(bit, n)| (extras >> bit & 1) as usize * n).sum::<usize>();
    let crc = number(0, 4)?;
    let key_bytes = number(28, 2)? as usize + 1;
    let payload = bytes.get(header..header + key_bytes + number(20, 4)? as usize)?;
    (crc != 0 && crc == u64::from(crc32c::crc32c(bytes.get(4..header)?))).then(|| Sealed {
        kind: (bytes[30] & 7),
        sequence: number(8, 8).unwrap_or_default(),
        key_bytes,
        payload: payload.to_vec(),
    })
}

// The records of each new store were numbered from 1 on, and with them the nonces: two stores of
// one key, or one that was made over another, encrypted different entries with the same.
#[test]
fn stores_of_one_key_encrypt_nothing_with_the_same_nonces() {
    let options = StoreOptions { shards: 1, ..small() };
    let options = StoreOptions { encryption: Some(EncryptionKey([7; 32])), ..options };
    let (first, second) = (device(4 << 20), device(4 << 20));
    let mut seen = HashMap::new();
    let made = [(&first, 1), (&second, 2), (&first, 3)];
    for (round, (device, seed)) in (0..).zip(made) {
        let options = StoreOptions { mode: OpenMode::Reformat, seed, ..options.clone() };
        let (store, mut session) = open(device, options);
        for n in 0..100_u64 {
            let name = n.to_be_bytes();
            put(&mut session, &name, &value_of(n + seed, 300), PutOptions::default());
            assert!(n % 3 != 0 || remove(&mut session, &name));
        }
        store.close(NOW).unwrap();
        for record in scan(&**device) {
            let nonce = (record.sequence, record.kind == TOMBSTONE);
            let before = seen.insert(nonce, record.payload.clone());
            assert!(before.is_none_or(|payload| payload == record.payload), "store {round}");
        }
    }
    assert!(seen.len() >= 3 * 133, "{} nonces", seen.len());
}
