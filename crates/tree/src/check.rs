//! A check of all ordered tables of a store, which changes nothing.
//!
//! It reads every page of every table once: each one decodes, its rows are in order, separators,
//! high keys and right links agree, children are there, and delta pages belong to their leaves. So
//! are values that rows name, and no others. What a crash may leave behind is no damage and is
//! counted: parents that do not name a page so far, pages and values that nothing names, pages of
//! dropped tables.
//!
//! Memory is bounded by one inner node's leaves, two bits for each number of a page of the table
//! that is looked at, some bytes a table, and eight bytes for each value that is a record of its
//! own and each change of the journal.

mod journal;
mod leftovers;
mod pages;
mod reader;
mod rows;
mod values;
mod walk;

use std::sync::Arc;

use entresol_flash::{EntryName, Listing, Result, Timestamp};
use entresol_tier::Tiered;

use crate::format::{DELTA_PAGES, FIRST_RECORDS, PAGES, Root, u32_at, u64_at};
use crate::options::TreeOptions;
use crate::recovery::closed_key;
use crate::sequence::Sequence;
use journal::Journaled;
use leftovers::Leftovers;
use reader::Reader;
use values::Values;
use walk::Walk;

/// First records that are read together.
const TOGETHER: usize = 512;

/// What a check tells while it goes on.
#[derive(Debug)]
pub enum Told<'t> {
    /// A table was looked at.
    Table(&'t CheckedTable),
    /// Something is not as it should be.
    Damage(&'t TableDamage),
    /// So many pages were read since it was told before.
    Pages(u64),
}

/// Who is told.
pub type Tell<'t> = &'t mut dyn FnMut(Told<'_>);

/// What is not as it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDamage {
    /// The table's name, if it is known.
    pub table: Option<Vec<u8>>,
    /// Which record of it.
    pub place: String,
    /// What of it.
    pub what: String,
    /// What should be there.
    pub expected: String,
    /// What is.
    pub found: String,
}

impl std::fmt::Display for TableDamage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TableDamage { table, place, what, expected, found } = self;
        match table {
            Some(name) => write!(f, "ordered table `{}`, ", shown(name))?,
            None => f.write_str("ordered tables, ")?,
        }
        write!(f, "{place}: {what}: expected {expected}, found {found}")
    }
}

/// What a check found of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedTable {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// It was dropped, and nothing was written since: its rows are gone, its pages not all.
    pub is_dropped: bool,
    /// Rows in its pages; changes of the journal are not counted.
    pub rows: u64,
    /// Leaves, page 1 of a small table included.
    pub leaves: u64,
    /// Delta pages that count.
    pub delta_pages: u64,
    /// Inner nodes, page 1 of a large table included.
    pub inner_nodes: u64,
    /// Bytes of all of these.
    pub page_bytes: u64,
    /// Changes of it in the journal, those that are in pages as well included.
    pub journaled_changes: u64,
    /// Pages that no inner node names so far: right links lead to them.
    pub pages_behind: u64,
    /// Pages that nothing leads to, and delta pages that count no more: a crash left them.
    pub pages_left: u64,
    /// Pages of a table that had the name and was dropped, which maintenance has still to remove.
    pub pages_dropped: u64,
}

/// What a check found of all tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedTables {
    /// Tables, dropped ones included.
    pub tables: u64,
    /// Those that are dropped.
    pub dropped: u64,
    /// The sums of all tables.
    pub sums: CheckedTable,
    /// Batches of the journal.
    pub batches: u64,
    /// Their changes.
    pub changes: u64,
    /// Bytes of batches.
    pub batch_bytes: u64,
    /// Values that no row names, which maintenance or the next opening has still to remove.
    pub values_left: u64,
    /// What was damaged.
    pub damaged: u64,
    /// The tables were closed after their last change: nothing waits for a merge.
    pub is_settled: bool,
}

/// Tables and their pages, without a look into them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TablesExtent {
    /// Tables that have a first record.
    pub tables: u64,
    /// Leaves and inner nodes without those in first records.
    pub pages: u64,
    /// Delta pages.
    pub delta_pages: u64,
    /// Bytes of the records of all of these on flash.
    pub record_bytes: u64,
    /// As [`CheckedTables::is_settled`].
    pub is_settled: bool,
}

/// The part of a key or a name that a sentence has room for.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let text = bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
    if bytes.len() > MOST { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}

/// How many tables there are, and what their pages take. Reads the footers of segments, and tells
/// of each.
///
/// # Errors
/// The device's.
pub fn extent_of_tables(
    store: &Arc<Tiered>,
    options: &TreeOptions,
    now: Timestamp,
    read: &mut dyn FnMut(),
) -> Result<TablesExtent> {
    let closed = closed(&mut Reader::new(store, options.space, now)?)?;
    let is_settled = Journaled::read(store, options, &mut |_| {})?.ends_by(closed);
    let mut extent = TablesExtent { is_settled, ..TablesExtent::default() };
    store.store().list(options.space, &mut |listing| match listing {
        Listing::Segment => read(),
        Listing::Entry(entry) => {
            match entry.partition {
                PAGES => extent.pages += 1,
                DELTA_PAGES => extent.delta_pages += 1,
                FIRST_RECORDS => extent.tables += 1,
                _ => {}
            }
            extent.record_bytes += u64::from(entry.record_bytes);
        }
    })?;
    Ok(extent)
}

/// A table as its first record or the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// It was dropped, and nothing was written since.
    pub is_dropped: bool,
    /// Changes of it in the journal.
    pub journaled_changes: u64,
}

/// Visits all tables of a store: those with a first record, then those that only the journal has.
///
/// # Errors
/// The device's; a damaged first record or batch.
pub fn list_tables(
    store: &Arc<Tiered>,
    options: &TreeOptions,
    now: Timestamp,
    visit: &mut dyn FnMut(TableEntry),
) -> Result<()> {
    let mut reader = Reader::new(store, options.space, now)?;
    let mut damage: Option<TableDamage> = None;
    let mut tell = |told: Told<'_>| {
        if let Told::Damage(found) = told {
            damage.get_or_insert_with(|| found.clone());
        }
    };
    let journaled = Journaled::read(store, options, &mut tell)?;
    let mut known = Vec::new();
    let names = first_records(store, options)?;
    for some in names.chunks(TOGETHER) {
        for (id, bytes) in reader.first_records(some, &mut tell)? {
            let Ok(root) = Root::decode(&bytes) else {
                let place = format!("table {id:016x}");
                let detail = format!("{place}: its first record does not decode");
                return Err(crate::error::corrupt(&detail, id));
            };
            known.push(id);
            let journaled = journaled.of(id);
            visit(TableEntry {
                id,
                name: root.name.to_vec(),
                is_dropped: journaled.is_dropped(Sequence(root.created)),
                journaled_changes: journaled.changes,
            });
        }
    }
    known.sort_unstable();
    for (id, of) in journaled.tables() {
        if known.binary_search(&id).is_err()
            && let Some(name) = &of.name
        {
            let (name, journaled_changes) = (name.clone(), of.changes);
            visit(TableEntry { id, name, is_dropped: of.changes == 0, journaled_changes });
        }
    }
    match damage {
        Some(damage) => Err(crate::error::corrupt(&damage, 0)),
        None => Ok(()),
    }
}

/// Checks all ordered tables of `store`, which nobody changes meanwhile, and tells of each of them,
/// and of all that is damaged.
///
/// # Errors
/// The device's; not what is damaged.
pub fn check_tables(
    store: &Arc<Tiered>,
    options: &TreeOptions,
    now: Timestamp,
    tell: Tell<'_>,
) -> Result<CheckedTables> {
    let mut sum = CheckedTables::default();
    let mut damaged = 0;
    let mut tell = |told: Told<'_>| {
        damaged += u64::from(matches!(told, Told::Damage(_)));
        tell(told);
    };
    let mut reader = Reader::new(store, options.space, now)?;
    let journaled = Journaled::read(store, options, &mut tell)?;
    (sum.batches, sum.changes, sum.batch_bytes) =
        (journaled.batches, journaled.changes, journaled.bytes);
    let closed = closed(&mut reader)?;
    sum.is_settled = journaled.ends_by(closed);
    let (mut leftovers, mut values) = (Leftovers::default(), Values::new(&journaled));
    leftovers.add_others(u64::from(closed.is_some()));
    let names = first_records(store, options)?;
    for some in names.chunks(TOGETHER) {
        for (id, bytes) in reader.first_records(some, &mut tell)? {
            let walk = Walk::new(id, &mut reader, &mut values, &mut tell);
            let walked = walk.closed(closed).of_record(&bytes)?;
            leftovers.add(id, walked.numbers, walked.held);
            values.add_table(id, &walked.table.name);
            sum.add(&walked.table);
            tell(Told::Table(&walked.table));
        }
    }
    for (id, _) in journaled.tables() {
        if leftovers.knows(id) {
            continue;
        }
        let walk = Walk::new(id, &mut reader, &mut values, &mut tell);
        let walked = walk.without_record()?;
        values.add_table(id, &walked.table.name);
        leftovers.add(id, walked.numbers, walked.held);
        sum.add(&walked.table);
        tell(Told::Table(&walked.table));
    }
    sum.sums.pages_left += leftovers.find(store, options, &mut reader, &mut tell)?;
    sum.values_left = values.find_leftovers(store, options, &mut reader, &mut tell)?;
    sum.damaged = damaged;
    Ok(sum)
}

/// The change after which the tables were closed, if no page has changed since.
fn closed(reader: &mut Reader) -> Result<Option<Sequence>> {
    let record = reader.read(&closed_key())?;
    Ok(record.and_then(|record| u64_at(&record, 0)).map(Sequence))
}

/// What finds the first records of all tables.
fn first_records(store: &Tiered, options: &TreeOptions) -> Result<Vec<EntryName>> {
    let mut names = Vec::new();
    store.store().list(options.space, &mut |listing| {
        if let Listing::Entry(entry) = listing
            && entry.partition == FIRST_RECORDS
        {
            names.push(entry.name);
        }
    })?;
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

impl CheckedTables {
    fn add(&mut self, table: &CheckedTable) {
        self.tables += 1;
        self.dropped += u64::from(table.is_dropped);
        let sums = &mut self.sums;
        sums.rows += table.rows;
        sums.leaves += table.leaves;
        sums.delta_pages += table.delta_pages;
        sums.inner_nodes += table.inner_nodes;
        sums.page_bytes += table.page_bytes;
        sums.journaled_changes += table.journaled_changes;
        sums.pages_behind += table.pages_behind;
        sums.pages_left += table.pages_left;
        sums.pages_dropped += table.pages_dropped;
    }
}

/// Table and number of a record's key; `None`: it is no key of tables.
fn key_parts(key: &[u8]) -> Option<(u64, u32)> {
    let is_whole = key.len() == crate::format::PAGE_KEY_BYTES;
    u64_at(key, 0).zip(u32_at(key, 8)).filter(|_| is_whole)
}

fn text(key: &[u8]) -> String {
    format!("'{}'", shown(key))
}

fn key_text(key: Option<&[u8]>) -> String {
    key.map_or_else(|| "no high key".to_owned(), text)
}
