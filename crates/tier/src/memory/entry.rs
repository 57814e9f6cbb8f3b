//! An entry's bytes in a chunk: a header of fixed width, the key, the value, zeros up to 32.
//!
//! The bytes never leave the process, so they carry neither version nor checksum.

use entresol_flash::{Expiry, Pinning, SpaceId, Timestamp, Version};

use super::{CacheKey, Cached};

/// Entries start at multiples of this, bytes.
pub(super) const ALIGNMENT: usize = 32;
const HEADER_BYTES: usize = 64;

const HASH: usize = 0;
const VERSION: usize = 16;
const EXTRA: usize = 24;
const EXPIRES: usize = 32;
const IDLE: usize = 40;
const ACCESSED: usize = 44;
const VALUE_BYTES: usize = 48;
const KEY_BYTES: usize = 52;
const SPACE: usize = 56;
const PARTITION: usize = 58;
const LABEL: usize = 60;
const PINNED: usize = 61;
const DEAD: usize = 62;
const FREQUENCY: usize = 63;

/// Most hits that are remembered.
const FREQUENCY_MAX: u8 = 3;

/// Bytes an entry takes in a chunk.
pub(super) fn stored_bytes(item: &Cached<'_>) -> usize {
    (HEADER_BYTES + item.key.bytes.len() + item.value.len()).next_multiple_of(ALIGNMENT)
}

/// Writes `item` to `bytes`, which is at least `stored_bytes` long.
pub(super) fn write(bytes: &mut [u8], item: &Cached<'_>, now: Timestamp, frequency: u8) {
    let mut header = [0; HEADER_BYTES];
    let mut put = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
    put(HASH, &item.key.hash.to_le_bytes());
    put(VERSION, &item.version.0.to_le_bytes());
    put(EXTRA, &item.extra.to_le_bytes());
    put(EXPIRES, &item.expiry.at.map_or(u64::MAX, |at| at.0).to_le_bytes());
    put(IDLE, &item.expiry.idle_seconds.map_or(0, |seconds| seconds.get()).to_le_bytes());
    put(ACCESSED, &seconds(now).to_le_bytes());
    put(VALUE_BYTES, &(item.value.len() as u32).to_le_bytes());
    put(KEY_BYTES, &(item.key.bytes.len() as u32).to_le_bytes());
    put(SPACE, &item.key.space.0.to_le_bytes());
    put(PARTITION, &item.partition.to_le_bytes());
    put(LABEL, &[item.label]);
    put(PINNED, &[u8::from(item.pinning == Pinning::Pinned)]);
    put(FREQUENCY, &[frequency]);
    let key_end = HEADER_BYTES + item.key.bytes.len();
    bytes[..HEADER_BYTES].copy_from_slice(&header);
    bytes[HEADER_BYTES..key_end].copy_from_slice(item.key.bytes);
    bytes[key_end..key_end + item.value.len()].copy_from_slice(item.value);
}

/// An entry in a chunk, from its first byte to at least its last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored<'a>(pub(super) &'a [u8]);

impl<'a> Stored<'a> {
    /// Bytes it takes in the chunk.
    pub(super) fn bytes(&self) -> usize {
        (HEADER_BYTES + self.key_bytes() + self.value_bytes()).next_multiple_of(ALIGNMENT)
    }

    #[inline]
    pub(super) fn hash(&self) -> u128 {
        u128::from_le_bytes(self.field(HASH))
    }

    #[inline]
    pub(super) fn is(&self, key: &CacheKey<'_>) -> bool {
        self.hash() == key.hash && self.space() == key.space && self.key() == key.bytes
    }

    pub(super) fn space(&self) -> SpaceId {
        SpaceId(u16::from_le_bytes(self.field(SPACE)))
    }

    pub(super) fn partition(&self) -> u16 {
        u16::from_le_bytes(self.field(PARTITION))
    }

    pub(super) fn version(&self) -> Version {
        Version(u64::from_le_bytes(self.field(VERSION)))
    }

    pub(super) fn is_live(&self) -> bool {
        self.0[DEAD] == 0
    }

    pub(super) fn frequency(&self) -> u8 {
        self.0[FREQUENCY]
    }

    #[inline]
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        let idle = u32::from_le_bytes(self.field(IDLE));
        let accessed = u32::from_le_bytes(self.field(ACCESSED));
        now.0 >= u64::from_le_bytes(self.field(EXPIRES))
            || idle > 0 && seconds(now).saturating_sub(accessed) >= idle
    }

    #[inline]
    pub(super) fn item(&self) -> Cached<'a> {
        let expires = u64::from_le_bytes(self.field(EXPIRES));
        let idle = u32::from_le_bytes(self.field(IDLE));
        let value = HEADER_BYTES + self.key_bytes();
        Cached {
            key: CacheKey { hash: self.hash(), space: self.space(), bytes: self.key() },
            partition: self.partition(),
            value: &self.0[value..value + self.value_bytes()],
            version: self.version(),
            label: self.0[LABEL],
            expiry: Expiry {
                at: (expires != u64::MAX).then_some(Timestamp(expires)),
                idle_seconds: idle.try_into().ok(),
            },
            pinning: if self.0[PINNED] == 1 { Pinning::Pinned } else { Pinning::Evictable },
            extra: u64::from_le_bytes(self.field(EXTRA)),
        }
    }

    fn key(&self) -> &'a [u8] {
        &self.0[HEADER_BYTES..HEADER_BYTES + self.key_bytes()]
    }

    fn key_bytes(&self) -> usize {
        u32::from_le_bytes(self.field(KEY_BYTES)) as usize
    }

    fn value_bytes(&self) -> usize {
        u32::from_le_bytes(self.field(VALUE_BYTES)) as usize
    }

    #[inline]
    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[at..at + N]);
        field
    }
}

/// Notes a hit.
#[inline]
pub(super) fn hit(bytes: &mut [u8], now: Timestamp) {
    bytes[FREQUENCY] = (bytes[FREQUENCY] + 1).min(FREQUENCY_MAX);
    bytes[ACCESSED..ACCESSED + 4].copy_from_slice(&seconds(now).to_le_bytes());
}

/// Sets how many hits are remembered.
pub(super) fn set_frequency(bytes: &mut [u8], frequency: u8) {
    bytes[FREQUENCY] = frequency;
}

/// Marks the entry as no longer there; its bytes are passed over when the chunk is freed.
pub(super) fn bury(bytes: &mut [u8]) {
    bytes[DEAD] = 1;
}

/// Seconds since the epoch; enough until the year 2106.
fn seconds(now: Timestamp) -> u32 {
    (now.0 / 1000) as u32
}
