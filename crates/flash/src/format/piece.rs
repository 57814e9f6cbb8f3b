//! What a piece of a large value is called: in the key of its record, and in the footer.

use super::{u32_at, u64_at};
use crate::types::{Key, SpaceId};

/// The space of pieces; callers cannot use it.
pub(crate) const PIECE_SPACE: SpaceId = SpaceId(u16::MAX);
/// Bytes of a piece's key: the value it belongs to (8), its number (4).
const KEY_BYTES: usize = 12;

/// Which value a piece belongs to, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PieceName {
    /// The sequence of the value's manifest.
    pub value: u64,
    pub number: u32,
}

impl PieceName {
    /// The bytes of the key of its record.
    pub(crate) fn key_bytes(self) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&self.value.to_le_bytes());
        key[8..].copy_from_slice(&self.number.to_le_bytes());
        key
    }

    /// The key of which these are the bytes.
    pub(crate) fn key(bytes: &[u8]) -> Key<'_> {
        Key { space: PIECE_SPACE, partition: 0, bytes }
    }

    /// The name that the bytes of a key are.
    pub(crate) fn of_key(bytes: &[u8]) -> Option<PieceName> {
        Some(PieceName { value: u64_at(bytes, 0)?, number: u32_at(bytes, 8)? })
    }

    /// What a footer says in place of a key's hash.
    pub(crate) fn hash(self) -> u128 {
        u128::from(self.value) << 32 | u128::from(self.number)
    }

    /// The name that a footer's hash is.
    pub(crate) fn of_hash(hash: u128) -> PieceName {
        PieceName { value: (hash >> 32) as u64, number: hash as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_by_its_key_and_by_its_hash() {
        for (value, number) in [(1, 0), (1 << 61, u32::MAX), (0x0123_4567_89ab_cdef, 7)] {
            let name = PieceName { value, number };
            assert_eq!(PieceName::of_key(&name.key_bytes()), Some(name));
            assert_eq!(PieceName::of_hash(name.hash()), name);
        }
        assert_eq!(PieceName::of_key(&[0; KEY_BYTES - 1]), None);
    }
}
