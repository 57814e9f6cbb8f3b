//! Errors that the crate makes of what it finds.

use std::fmt::Display;

use entresol_flash::{Error, ErrorKind};

use crate::merge::MergeError;
use crate::table::Table;

/// A page that is not what was written, although its record is.
pub(crate) fn corrupt(damage: &dyn Display, table: u64) -> Error {
    let detail = format!("a page of ordered table {table:016x} is damaged: {damage}");
    Error::new(ErrorKind::Corrupt, detail)
}

/// As `corrupt`, of a table that is open.
pub(crate) fn damaged(table: &Table, damage: &dyn Display) -> Error {
    corrupt(damage, table.id())
}

/// Rows could not be put together.
pub(crate) fn refused(table: &Table, error: &MergeError) -> Error {
    let name = String::from_utf8_lossy(table.name()).into_owned();
    let kind = match error {
        MergeError::Damage(_) => ErrorKind::Corrupt,
        MergeError::NoMergeFunction
        | MergeError::LargeValue(_)
        | MergeError::ManyParts { .. }
        | MergeError::Refused(_) => ErrorKind::InvalidInput,
    };
    Error::new(kind, format!("ordered table `{name}`: {error}"))
}
