//! Values that are records of their own: how rows name them, and the keys of their records.
//!
//! A value has one of two *sides*. A new one takes the side that the old one does not have, so that
//! both are there until the batch of the new one is durable.

use super::{Damage, ROW_KEY_BYTES_MAX, u32_at, u64_at};
use crate::sequence::Sequence;

/// Longest value that is a record of its own, bytes.
pub const SEPARATE_VALUE_BYTES_MAX: usize = 16 << 20;
/// Bytes by which a row names its value.
pub const REFERENCE_BYTES: usize = 12;
const SIDE_BIT: u32 = 1 << 31;
/// Roles of value records, beside those of pages: of a table that was never dropped, and of one
/// whose sequence stands before the role.
const ROLE: u8 = 2;
const ROLE_WITH_CREATED: u8 = 4;
const MARKER_VERSION: u8 = 2;

/// What the record of a table says whose rows may have values that are records of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// Pages have other rows, too, or may have them.
    AnyRows,
    /// All rows of the pages have such values, and no parts.
    LargeRowsOnly,
}

impl Marker {
    /// The record.
    pub fn encode(self) -> [u8; 2] {
        [MARKER_VERSION, u8::from(self == Marker::LargeRowsOnly)]
    }

    /// What the record says. One of version 1 says nothing of other rows.
    pub fn decode(bytes: &[u8]) -> Marker {
        match bytes {
            [MARKER_VERSION, 1] => Marker::LargeRowsOnly,
            _ => Marker::AnyRows,
        }
    }
}

/// One of the two records that a row's value may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    First,
    /// The other one.
    Second,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::First, Side::Second];

    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }
}

/// Which value a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The version that the store gave the record.
    pub version: u64,
    /// Bytes of the value.
    pub bytes: u32,
    /// Which record it is.
    pub side: Side,
}

impl Reference {
    /// What stands in the row.
    pub fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let side = if self.side == Side::Second { SIDE_BIT } else { 0 };
        let mut out = [0; REFERENCE_BYTES];
        out[..8].copy_from_slice(&self.version.to_le_bytes());
        out[8..].copy_from_slice(&(self.bytes | side).to_le_bytes());
        out
    }

    /// What a row says.
    pub fn decode(value: &[u8]) -> Result<Reference, Damage> {
        let damage = || Damage::new("bytes of a reference", value.len(), REFERENCE_BYTES);
        if value.len() != REFERENCE_BYTES {
            return Err(damage());
        }
        let word = u32_at(value, 8).ok_or_else(damage)?;
        let side = if word & SIDE_BIT == 0 { Side::First } else { Side::Second };
        let (version, bytes) = (u64_at(value, 0).ok_or_else(damage)?, word & !SIDE_BIT);
        Ok(Reference { version, bytes, side })
    }
}

/// Whose value a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueName<'a> {
    /// The table's number.
    pub table: u64,
    /// As of the table's first record: rows of a table that was dropped have other values.
    pub created: Sequence,
    /// The row's key.
    pub key: &'a [u8],
    /// Which of its two records.
    pub side: Side,
}

impl<'a> ValueName<'a> {
    /// The key of the record: table (8), the row's key, created (8, unless it is 0), role (1). The
    /// role tells it from that of a page.
    pub fn record_key(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(17 + self.key.len());
        out.extend_from_slice(&self.table.to_le_bytes());
        out.extend_from_slice(self.key);
        let mut role = ROLE;
        if self.created != Sequence(0) {
            out.extend_from_slice(&self.created.0.to_le_bytes());
            role = ROLE_WITH_CREATED;
        }
        out.push(role + u8::from(self.side == Side::Second));
        out
    }

    /// The name of the value whose record has the key `bytes`; `None`: it is no value's.
    pub fn parse(bytes: &'a [u8]) -> Option<ValueName<'a>> {
        let (role, rest) = bytes.split_last()?;
        let (table, key) = rest.split_first_chunk()?;
        let (key, created) = match role & !1 {
            ROLE => (key, 0),
            ROLE_WITH_CREATED => {
                let (key, created) = key.split_last_chunk()?;
                (key, u64::from_le_bytes(*created))
            }
            _ => return None,
        };
        let side = Side::BOTH[usize::from(role & 1)];
        let table = u64::from_le_bytes(*table);
        let is_key = !key.is_empty() && key.len() <= ROW_KEY_BYTES_MAX;
        is_key.then_some(ValueName { table, created: Sequence(created), key, side })
    }
}
