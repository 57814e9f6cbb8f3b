//! Records that no table has.

use std::collections::BTreeMap;

use entresol_flash::{EntryName, Listing, Result};
use entresol_tier::Tiered;

use super::reader::Reader;
use super::{TOGETHER, TableDamage, Tell, Told, key_parts};
use crate::format::{Header, NAMES, PageKind, VALUES};
use crate::options::TreeOptions;
use crate::table::ROOT_PAGE;

/// Tables that were looked at.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// Below which number the pages of each are.
    tables: BTreeMap<u64, u32>,
    /// Records that were met.
    held: u64,
}

/// Records of a table without a first record.
#[derive(Debug, Clone, Copy, Default)]
struct Stray {
    records: u64,
    /// Those that are written only once a first record or the journal has the table.
    later: u64,
}

impl Leftovers {
    /// All records of a table with numbers below `numbers` were looked at, `held` in all.
    pub(super) fn add(&mut self, id: u64, numbers: u32, held: u64) {
        self.tables.insert(id, numbers);
        self.held += held;
    }

    /// So many records are of no table.
    pub(super) fn add_others(&mut self, held: u64) {
        self.held += held;
    }

    pub(super) fn knows(&self, id: u64) -> bool {
        self.tables.contains_key(&id)
    }

    /// Looks for records that no table that was looked at has, and tells of those that no crash can
    /// have left. How many others there are.
    ///
    /// Shards lose what was not durable independently: right leaves may be there although the
    /// batch, or the record of the table's numbers, is not. Nothing names them, and their numbers
    /// are given to other pages.
    pub(super) fn find(
        &self,
        store: &Tiered,
        options: &TreeOptions,
        reader: &mut Reader,
        tell: Tell<'_>,
    ) -> Result<u64> {
        // Values are looked for by the rows that name them.
        let values = store.store().count_partition(options.space, VALUES);
        if store.count(options.space) <= self.held + values {
            return Ok(0);
        }
        let (mut strays, mut left, mut failed) = (BTreeMap::new(), 0, Ok(()));
        let mut names: Vec<EntryName> = Vec::new();
        let mut look = |names: &mut Vec<EntryName>| {
            let mut judge = |key: &[u8], value: &[u8]| left += self.judge(key, value, &mut strays);
            let looked = reader.visit(names, &mut judge);
            names.clear();
            looked
        };
        store.store().list(options.space, &mut |listing| {
            if let Listing::Entry(entry) = listing
                && failed.is_ok()
                && entry.partition != VALUES
            {
                names.push(entry.name);
                if names.len() == TOGETHER {
                    failed = look(&mut names);
                }
            }
        })?;
        failed?;
        look(&mut names)?;
        for (id, Stray { records, later }) in strays {
            if later == 0 {
                left += records;
                continue;
            }
            tell(Told::Damage(&TableDamage {
                table: None,
                place: format!("table {id:016x}"),
                what: "its first record".to_owned(),
                expected: "one, or the table's name in the journal".to_owned(),
                found: format!("{records} records of the table without it"),
            }));
        }
        Ok(left)
    }

    /// Takes a record. 1 where it is one that a crash left of a table that is there.
    fn judge(&self, key: &[u8], value: &[u8], strays: &mut BTreeMap<u64, Stray>) -> u64 {
        // A key of another form is of no table.
        let (id, number) = key_parts(key).unwrap_or_default();
        // What is said of all tables, and of values.
        if id == NAMES && !key.is_empty() || number == u32::MAX {
            return 0;
        }
        if let Some(numbers) = self.tables.get(&id) {
            return u64::from(number >= *numbers);
        }
        let kind = Header::decode(value).map(|header| header.kind);
        let stray = strays.entry(id).or_default();
        stray.records += 1;
        let is_first = number == ROOT_PAGE;
        stray.later += u64::from(is_first || matches!(kind, Ok(PageKind::Inner | PageKind::Delta)));
        0
    }
}
