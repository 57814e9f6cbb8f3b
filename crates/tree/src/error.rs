//! Errors that the crate makes of what it finds.

use entresol_flash::{Error, ErrorKind};

/// A page that is not what was written, although its record is.
pub(crate) fn corrupt(damage: &dyn std::fmt::Display, table: u64) -> Error {
    let detail = format!("a page of ordered table {table:016x} is damaged: {damage}");
    Error::new(ErrorKind::Corrupt, detail)
}
