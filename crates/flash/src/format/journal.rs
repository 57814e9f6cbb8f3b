//! The key of a record of the journal: the caller's number.

use super::u64_at;

/// Bytes of the key.
pub(crate) const OWNER_BYTES: usize = 8;

/// The key of a record that is the caller's `owner`.
pub(crate) fn owner_key(owner: u64) -> [u8; OWNER_BYTES] {
    owner.to_le_bytes()
}

/// The caller's number that a key is.
pub(crate) fn owner_of_key(key: &[u8]) -> Option<u64> {
    u64_at(key, 0).filter(|_| key.len() == OWNER_BYTES)
}
