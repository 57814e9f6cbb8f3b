//! A string as the value of one entry: its bytes, as they are.

use entresol_tier::Entry;

use super::STRING;
use crate::failure::Failure;

/// The value of `entry` if it is a string; `None` if there is no entry.
pub(crate) fn string_of<'a>(entry: Option<&Entry<'a>>) -> Result<Option<&'a [u8]>, Failure> {
    match entry {
        None => Ok(None),
        Some(entry) if entry.label == STRING => Ok(Some(entry.value)),
        Some(_) => Err(Failure::WRONG_TYPE),
    }
}
