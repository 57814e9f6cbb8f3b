//! An entry's bytes in a chunk: a header of fixed width, the key, the value, zeros up to 32.
//!
//! The bytes never leave the process, so they carry neither version nor checksum.

use super::Cached;

/// Entries start at multiples of this, bytes.
pub(super) const ALIGNMENT: usize = 32;
const HEADER_BYTES: usize = 52;

const HASH: usize = 0;
const VERSION: usize = 16;
const EXPIRES: usize = 24;
const IDLE: usize = 32;
const VALUE_BYTES: usize = 36;
const KEY_BYTES: usize = 40;
const SPACE: usize = 44;
const LABEL: usize = 46;
const PINNED: usize = 47;
const DEAD: usize = 48;
const FREQUENCY: usize = 49;
const NEWCOMER: usize = 50;

/// Most hits that are remembered.
const FREQUENCY_MAX: u8 = 3;
/// In place of a frequency: read ahead, and not asked for yet. The first hit makes it 0, for many
/// such entries are asked for once.
pub(super) const UNASKED: u8 = u8::MAX;

/// What the queues know of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// Hits that are remembered.
    pub(super) frequency: u8,
    /// Whether a get put it in, at its first time.
    pub(super) newcomer: bool,
}

/// Bytes an entry takes in a chunk.
pub(super) fn stored_bytes(item: &Cached<'_>) -> usize {
    (HEADER_BYTES + item.key.len() + item.value.len()).next_multiple_of(ALIGNMENT)
}

/// Writes an entry to `bytes`, which is at least `stored_bytes` long.
pub(super) fn write(bytes: &mut [u8], hash: u128, item: &Cached<'_>, state: State) {
    let mut header = [0; HEADER_BYTES];
    let mut put = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
    put(HASH, &hash.to_le_bytes());
    put(VERSION, &item.version.to_le_bytes());
    put(EXPIRES, &item.expiry_ms.to_le_bytes());
    put(IDLE, &item.idle_seconds.to_le_bytes());
    put(VALUE_BYTES, &(item.value.len() as u32).to_le_bytes());
    put(KEY_BYTES, &(item.key.len() as u32).to_le_bytes());
    put(SPACE, &item.space.to_le_bytes());
    put(LABEL, &[item.label]);
    put(PINNED, &[u8::from(item.pinned)]);
    put(FREQUENCY, &[state.frequency, u8::from(state.newcomer)]);
    let key_end = HEADER_BYTES + item.key.len();
    bytes[..HEADER_BYTES].copy_from_slice(&header);
    bytes[HEADER_BYTES..key_end].copy_from_slice(item.key);
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
    pub(super) fn is(&self, hash: u128, space: u16, key: &[u8]) -> bool {
        self.hash() == hash && self.space() == space && self.key() == key
    }

    pub(super) fn space(&self) -> u16 {
        u16::from_le_bytes(self.field(SPACE))
    }

    pub(super) fn version(&self) -> u64 {
        u64::from_le_bytes(self.field(VERSION))
    }

    pub(super) fn is_live(&self) -> bool {
        self.0[DEAD] == 0
    }

    pub(super) fn state(&self) -> State {
        let frequency = match self.0[FREQUENCY] {
            UNASKED => 0,
            frequency => frequency,
        };
        State { frequency, newcomer: self.0[NEWCOMER] == 1 }
    }

    #[inline]
    pub(super) fn item(&self) -> Cached<'a> {
        let value = HEADER_BYTES + self.key_bytes();
        Cached {
            space: self.space(),
            key: self.key(),
            value: &self.0[value..value + self.value_bytes()],
            version: self.version(),
            label: self.0[LABEL],
            expiry_ms: u64::from_le_bytes(self.field(EXPIRES)),
            idle_seconds: u32::from_le_bytes(self.field(IDLE)),
            pinned: self.0[PINNED] == 1,
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
pub(super) fn hit(bytes: &mut [u8]) {
    // Where it stays as it is, it is not written: processors would take it from each other.
    if bytes[FREQUENCY] != FREQUENCY_MAX {
        bytes[FREQUENCY] = bytes[FREQUENCY].wrapping_add(1).min(FREQUENCY_MAX);
    }
}

/// Sets how many hits are remembered.
pub(super) fn set_frequency(bytes: &mut [u8], frequency: u8) {
    bytes[FREQUENCY] = frequency;
}

/// Marks the entry as no longer there; its bytes are passed over when the chunk is freed.
pub(super) fn bury(bytes: &mut [u8]) {
    bytes[DEAD] = 1;
}
