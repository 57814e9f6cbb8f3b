//! The record that a table is opened with: its name, and page 1. And where all records are.

use entresol_flash::{Key, SpaceId};

use super::{Damage, FORMAT_VERSION, ROW_KEY_BYTES_MAX, array_at, u16_at, u32_at, u64_at};

/// Bytes before the name.
const FIXED_BYTES: usize = 20;

/// A table's first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root<'a> {
    /// Changes up to this one belong to a table that had the name before.
    pub created: u64,
    /// Pages with numbers below this one, but page 1, belong to such a table, too; 0: none do.
    pub first: u32,
    /// The name.
    pub name: &'a [u8],
    /// Page 1: a leaf while the table is small, else the highest inner node.
    pub page: &'a [u8],
}

impl<'a> Root<'a> {
    /// The bytes of the record.
    ///
    /// # Panics
    /// Where the name is longer than a key may be.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.name.len() <= ROW_KEY_BYTES_MAX, "a name that a record holds");
        let mut out = vec![0; FIXED_BYTES];
        out[0] = FORMAT_VERSION;
        out[2..4].copy_from_slice(&(self.name.len() as u16).to_le_bytes());
        out[8..16].copy_from_slice(&self.created.to_le_bytes());
        out[16..20].copy_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(self.name);
        out.extend_from_slice(self.page);
        out
    }

    /// The record `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Root<'a>, Damage> {
        let fixed: [u8; FIXED_BYTES] = array_at(bytes, 0)
            .ok_or_else(|| Damage::new("bytes of a table", bytes.len(), FIXED_BYTES))?;
        if fixed[0] != FORMAT_VERSION {
            let expected = FORMAT_VERSION.into();
            return Err(Damage::new("version of a table", fixed[0].into(), expected));
        }
        let name_bytes = usize::from(u16_at(&fixed, 2).unwrap_or_default());
        let rest = &bytes[FIXED_BYTES..];
        let (name, page) = rest
            .split_at_checked(name_bytes)
            .ok_or_else(|| Damage::new("name of a table", name_bytes, rest.len()))?;
        let created = u64_at(&fixed, 8).unwrap_or_default();
        let first = u32_at(&fixed, 16).unwrap_or_default();
        Ok(Root { created, first, name, page })
    }
}

/// What a tree page is, in the key of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRole {
    /// A leaf or an inner node; page 1 is the table's first record.
    Page,
    /// The delta page of a leaf.
    Delta,
}

/// Bytes of the key of a tree page's record.
pub const PAGE_KEY_BYTES: usize = 13;

/// Whether a record of this key holds a delta page.
pub(crate) fn is_delta(key: &[u8]) -> bool {
    key.get(12) == Some(&1)
}

/// Partitions of the space: what the key's record holds. So the store counts each kind by itself,
/// and a list of a kind needs no read of the others.
pub const PAGES: u16 = 0;
/// Delta pages.
pub const DELTA_PAGES: u16 = 1;
/// First records of tables.
pub const FIRST_RECORDS: u16 = 2;
/// What is said of a table's numbers, or of all tables.
pub const NOTES: u16 = 3;

/// The partition of the record with the key `key`.
pub fn partition_of(key: &[u8]) -> u16 {
    match (is_delta(key), u32_at(key, 8)) {
        (true, _) => DELTA_PAGES,
        (false, Some(0)) => NOTES,
        (false, Some(1)) => FIRST_RECORDS,
        (false, _) => PAGES,
    }
}

/// The key of the record of page `number` of a table: table (8), number (4), role (1).
pub fn page_key(table: u64, number: u32, role: PageRole) -> [u8; PAGE_KEY_BYTES] {
    let mut key = [0; PAGE_KEY_BYTES];
    key[..8].copy_from_slice(&table.to_le_bytes());
    key[8..12].copy_from_slice(&number.to_le_bytes());
    key[12] = u8::from(role == PageRole::Delta);
    key
}

/// The key of a record of tables in the space `space`.
pub fn record_key(space: SpaceId, bytes: &[u8]) -> Key<'_> {
    Key { space, partition: partition_of(bytes), bytes }
}
