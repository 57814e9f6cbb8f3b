//! A command as it came, and the keys among its arguments.

use entresol_tier::{Key, SpaceId, Timestamp};
use entresol_wire::resp::{Arguments, Protocol};

use crate::failure::Failure;

/// Longest key that the engine takes, bytes.
pub(crate) const KEY_BYTES_MAX: usize = 64 << 10;
/// Longest value that the engine takes, bytes.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 20;

/// A command as it came, with what its meaning depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The command's name and arguments.
    pub(crate) arguments: Arguments<'a>,
    /// The table it works on.
    pub(crate) space: SpaceId,
    /// The moment it is carried out at.
    pub(crate) now: Timestamp,
    /// The version replies are written in.
    pub(crate) protocol: Protocol,
    /// Most bytes that its reply takes.
    pub(crate) reply_bytes_max: usize,
}

impl<'a> Request<'a> {
    /// The argument at `index` as a key of the request's space.
    pub(crate) fn key(&self, index: usize) -> Result<Key<'a>, Failure> {
        key_in(self.space, self.arguments.at(index))
    }
}

/// `bytes` as a key of `space`, if the engine can hold it.
pub(crate) fn key_in(space: SpaceId, bytes: &[u8]) -> Result<Key<'_>, Failure> {
    if bytes.is_empty() {
        return Err(Failure::fixed("ERR a key must have at least one byte"));
    }
    if bytes.len() > KEY_BYTES_MAX {
        let found = bytes.len();
        let text = format!("ERR a key has at most {KEY_BYTES_MAX} bytes, this one has {found}");
        return Err(Failure::new(text));
    }
    Ok(Key::new(space, bytes))
}
