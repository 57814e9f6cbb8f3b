//! The record that a table is opened with: its name, and page 1. And where all records are.

use std::borrow::Cow;

use entresol_flash::{Key, SpaceId};

use super::{
    Damage, Effect, FORMAT_VERSION, ROW_KEY_BYTES_MAX, array_at, short, u16_at, u32_at, u64_at,
};

/// The table of all tables' names: a change of it says which number a name has.
pub(crate) const NAMES: u64 = 0;

/// Bytes before the fields that may be absent.
const FIXED_BYTES: usize = 4;

const HAS_CREATED: u8 = 1;
const HAS_FIRST: u8 = 2;
const IS_SHORT: u8 = 4;
const KEEPS_COUNTS: u8 = 8;
/// In the change that names a table, behind its number: it keeps counts.
const NAMED_WITH_COUNTS: u8 = 1;

/// A table's first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root<'a> {
    /// Changes up to this one belong to a table that had the name before.
    pub created: u64,
    /// Pages with numbers below this one, but page 1, belong to such a table, too; 0: none do.
    pub first: u32,
    /// Whether inner nodes say how many rows there are.
    pub keeps_counts: bool,
    /// The name.
    pub name: &'a [u8],
    /// Page 1: a leaf while the table is small, else the highest inner node.
    pub page: Cow<'a, [u8]>,
}

impl<'a> Root<'a> {
    /// The bytes of the record.
    ///
    /// # Panics
    /// Where the name is longer than a key may be.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.name.len() <= ROW_KEY_BYTES_MAX, "a name that a record holds");
        let short = short::shorten(&self.page);
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        let flags = flag(HAS_CREATED, self.created != 0)
            | flag(HAS_FIRST, self.first != 0)
            | flag(IS_SHORT, short.is_some())
            | flag(KEEPS_COUNTS, self.keeps_counts);
        let mut out = vec![FORMAT_VERSION, flags];
        out.extend_from_slice(&(self.name.len() as u16).to_le_bytes());
        if self.created != 0 {
            out.extend_from_slice(&self.created.to_le_bytes());
        }
        if self.first != 0 {
            out.extend_from_slice(&self.first.to_le_bytes());
        }
        out.extend_from_slice(self.name);
        out.extend_from_slice(short.as_deref().unwrap_or(&self.page));
        out
    }

    /// The record `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Root<'a>, Damage> {
        let lacks = |expected| Damage::new("bytes of a table", bytes.len(), expected);
        let fixed: [u8; FIXED_BYTES] = array_at(bytes, 0).ok_or_else(|| lacks(FIXED_BYTES))?;
        if fixed[0] != FORMAT_VERSION {
            let expected = FORMAT_VERSION.into();
            return Err(Damage::new("version of a table", fixed[0].into(), expected));
        }
        let flags = fixed[1];
        if flags > HAS_CREATED | HAS_FIRST | IS_SHORT | KEEPS_COUNTS {
            return Err(Damage::new("flags of a table", flags.into(), 15));
        }
        let (mut at, mut created, mut first) = (FIXED_BYTES, 0, 0);
        if flags & HAS_CREATED != 0 {
            created = u64_at(bytes, at).ok_or_else(|| lacks(at + 8))?;
            at += 8;
        }
        if flags & HAS_FIRST != 0 {
            first = u32_at(bytes, at).ok_or_else(|| lacks(at + 4))?;
            at += 4;
        }
        let name_bytes = usize::from(u16_at(&fixed, 2).unwrap_or_default());
        let rest = &bytes[at..];
        let (name, page) = rest
            .split_at_checked(name_bytes)
            .ok_or_else(|| Damage::new("name of a table", name_bytes, rest.len()))?;
        let page = match flags & IS_SHORT {
            0 => Cow::Borrowed(page),
            _ => Cow::Owned(short::lengthen(page)?),
        };
        let keeps_counts = flags & KEEPS_COUNTS != 0;
        Ok(Root { created, first, keeps_counts, name, page })
    }
}

/// What a change says of the table that it names: its number, and the first record that it had
/// where the change drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    /// The table's number.
    pub id: u64,
    /// *Created* of its first record, where the change drops it.
    pub dropped: Option<u64>,
    /// Whether it keeps counts.
    pub keeps_counts: bool,
}

impl Naming {
    /// The value of the change.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.id.to_le_bytes().to_vec();
        out.extend(self.dropped.into_iter().flat_map(u64::to_le_bytes));
        out.extend(self.keeps_counts.then_some(NAMED_WITH_COUNTS));
        out
    }

    /// What `value`, of a change with the effect `effect`, says. `None`: no number.
    pub fn decode(effect: Effect, value: &[u8]) -> Option<Naming> {
        let id = u64_at(value, 0)?;
        let is_drop = effect == Effect::Remove;
        let dropped = is_drop.then(|| u64_at(value, 8).unwrap_or(0));
        let keeps_counts = value.get(if is_drop { 16 } else { 8 }) == Some(&NAMED_WITH_COUNTS);
        Some(Naming { id, dropped, keeps_counts })
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
    key.len() == PAGE_KEY_BYTES && key.get(12) == Some(&1)
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
/// Values of rows.
pub const VALUES: u16 = 4;

/// The partition of the record with the key `key`.
pub fn partition_of(key: &[u8]) -> u16 {
    // The last byte is the role, which no value has in common with a page.
    if key.len() != PAGE_KEY_BYTES || key[12] > 1 {
        return VALUES;
    }
    match (is_delta(key), u32_at(key, 8)) {
        _ if u64_at(key, 0) == Some(NAMES) => NOTES,
        (false, Some(u32::MAX)) => NOTES,
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
