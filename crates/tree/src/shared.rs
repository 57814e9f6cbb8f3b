//! What sessions and maintenance of ordered tables share, and how they read and write pages.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_flash::{
    Condition, Durability, Entry, Error, ErrorKind, FoundAt, Key, Lifespan, OpenMode, Operation,
    Outcome, PutOptions, Result, Timestamp,
};
use entresol_tier::Tiered;
use parking_lot::{Mutex, RwLock};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::corrupt;
use crate::format::{
    Marker, PAGE_KEY_BYTES, PageRole, ROW_KEY_BYTES_MAX, Root, is_delta, page_key, record_key,
};
use crate::journal::Journal;
use crate::memory::Memory;
use crate::merge::{LeafLimits, MergeFunction};
use crate::options::{RowCounts, TableOptions, TreeOptions};
use crate::pending::Arena;
use crate::recovery::Recovered;
use crate::sequence::Sequence;
use crate::statistics::Counters;
use crate::table::{Directory, ROOT_PAGE, Table};
use crate::values::{Values, marker_key};

/// A merge function that threads share.
pub type SharedMerge = Arc<dyn MergeFunction + Send + Sync>;

/// A table that was dropped, and whose pages are still there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// The change that dropped it last.
    pub sequence: Sequence,
    /// What *created* of its first record was each time.
    pub created: Vec<Sequence>,
}

/// The tables in memory.
#[derive(Default)]
pub(crate) struct Tables {
    /// By their numbers, the order in which sweeps merge them.
    pub open: BTreeMap<u64, Arc<Table>>,
    /// How often tables left memory. What was read of a table before one left may be old.
    pub departures: u64,
}

/// What all sessions and the maintenance share.
pub(crate) struct Shared {
    pub store: Arc<Tiered>,
    pub options: TreeOptions,
    pub journal: Mutex<Journal>,
    /// The memory of all changes that wait.
    pub arena: RwLock<Arena>,
    /// Those in memory.
    pub tables: Mutex<Tables>,
    /// Changes that were in the journal, of tables that nobody has opened.
    pub recovered: Mutex<Recovered>,
    /// Tables that were dropped, by their numbers. It is locked after a table and after the list of
    /// them, and nothing after it.
    pub dropped: Mutex<BTreeMap<u64, Dropped>>,
    /// Those of them whose values are removed, and by which drop. It is locked last.
    pub emptied: Mutex<BTreeMap<u64, Sequence>>,
    pub merges: RwLock<HashMap<Box<[u8]>, SharedMerge>>,
    /// Whether there are any of them: readers that find none need no lock.
    pub has_merges: AtomicBool,
    pub memory: Memory,
    /// Tables some of whose pages are to join, by their numbers. Nothing is locked after it.
    pub joining: Mutex<BTreeSet<u64>>,
    pub counters: Counters,
    /// Values that are records of their own.
    pub values: Arc<Values>,
    /// Why the last sweep let a leaf keep its changes.
    pub held_back: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn limits(&self) -> LeafLimits {
        LeafLimits { leaf_bytes_max: self.options.leaf_bytes_max }
    }

    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        record_key(self.options.space, bytes)
    }

    /// Whether nothing may be written.
    pub(crate) fn is_read_only(&self) -> bool {
        self.store.store().options().mode == OpenMode::ReadOnly
    }

    pub(crate) fn merge_of(&self, table: &Table) -> Option<SharedMerge> {
        if !self.has_merges.load(Ordering::Acquire) {
            return None;
        }
        self.merges.read().get(table.name()).cloned()
    }

    /// The table `name`, which comes into being with its first change.
    pub(crate) fn open_table(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        name: &[u8],
    ) -> Result<Arc<Table>> {
        if name.is_empty() || name.len() > ROW_KEY_BYTES_MAX {
            let found = name.len();
            let detail =
                format!("a table's name has {found} bytes; expected 1 to {ROW_KEY_BYTES_MAX}");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let mut id = xxh3_64(name).max(1);
        if !self.tables.lock().open.contains_key(&id) {
            self.memory.check_tables(&self.options)?;
        }
        loop {
            if let Some(table) = self.find_table(session, now, id, Some(name))? {
                return Ok(table);
            }
            // Another table has the number: names have numbers by their hash.
            id = id.wrapping_add(1).max(1);
        }
    }

    /// Refuses a table that was made otherwise than `options` say. A new one is made so.
    pub(crate) fn check_options(&self, table: &Table, options: TableOptions) -> Result<()> {
        let is_so = match options.counts {
            RowCounts::NotKept => !table.keeps_counts(),
            RowCounts::Kept => {
                // No batch that names the table as one without counts is on its way meanwhile.
                let _journal = self.journal.lock();
                table.begin_counts()
            }
        };
        if is_so {
            return Ok(());
        }
        let name = String::from_utf8_lossy(table.name()).into_owned();
        let (found, expected) = match options.counts {
            RowCounts::Kept => ("keeps no counts", "keeps them"),
            RowCounts::NotKept => ("keeps counts", "keeps none"),
        };
        let detail = format!("ordered table `{name}` {found}; expected one that {expected}");
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    /// The table with the number `id`, if its name is `name`. `None` for a name: whatever it is.
    pub(crate) fn find_table(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        id: u64,
        name: Option<&[u8]>,
    ) -> Result<Option<Arc<Table>>> {
        let is_named = |found: &[u8]| name.is_none_or(|name| name == found);
        loop {
            let departures = {
                let tables = self.tables.lock();
                if let Some(table) = tables.open.get(&id) {
                    table.touch(now);
                    return Ok(is_named(table.name()).then(|| Arc::clone(table)));
                }
                tables.departures
            };
            let read = TableRead {
                id,
                record: self.read(session, now, &page_key(id, ROOT_PAGE, PageRole::Page))?,
                reserved: self.read_reserved(session, now, id)?,
                marker: self.read(session, now, &marker_key(id))?.as_deref().map(Marker::decode),
            };
            let mut tables = self.tables.lock();
            if let Some(table) = tables.open.get(&id) {
                // Another thread was as fast.
                return Ok(is_named(table.name()).then(|| Arc::clone(table)));
            }
            // It may have come, changed and left meanwhile.
            let is_old = tables.departures != departures;
            if is_old {
                continue;
            }
            let mut recovered = self.recovered.lock();
            let Some(table) = read.table(name, &recovered)? else { return Ok(None) };
            if !is_named(table.name()) {
                return Ok(None);
            }
            if recovered.has_values(id) || read.marker.is_some() {
                table.set_has_values();
            }
            let mut state = table.lock();
            if let Some(pending) = recovered.take(id) {
                (state.pending, state.was_changed) = (pending, true);
                self.memory.set_recovered(recovered.memory_bytes());
            }
            self.memory.count(&table, &state);
            drop(state);
            table.touch(now);
            let table = Arc::new(table);
            tables.open.insert(id, Arc::clone(&table));
            return Ok(Some(table));
        }
    }

    /// Pages of the table from this number on were never used.
    fn read_reserved(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        id: u64,
    ) -> Result<u32> {
        let key = page_key(id, 0, PageRole::Page);
        let bytes = self.read(session, now, &key)?;
        let number = bytes.and_then(|bytes| crate::format::u32_at(&bytes, 0));
        Ok(number.unwrap_or(0))
    }

    /// Reads a record and waits for it.
    pub(crate) fn read(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        Ok(self.read_page(session, now, key)?.map(|page| page.bytes))
    }

    /// The same, with the place where it was found.
    pub(crate) fn read_page(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        key: &[u8],
    ) -> Result<Option<PageRead>> {
        if !session.may_hold(self.key(key)) {
            return Ok(None);
        }
        let mut page = None;
        session.run(now, Operation::Get { key: self.key(key) }, &mut |outcome| {
            if let Outcome::Found(entry) = outcome {
                page = Some(PageRead::of(&entry));
            }
        })?;
        Ok(page)
    }

    /// Writes a page that takes the place of the one before. It is in the store, but not durable,
    /// on return.
    pub(crate) fn write(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.write_over(session, now, key, NewPage { bytes: value, found: None })
    }

    /// The same, of a page that was read before: whose record it is need not be found out again.
    pub(crate) fn write_over(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        key: &[u8],
        page: NewPage<'_>,
    ) -> Result<()> {
        let NewPage { bytes: value, found } = page;
        // Delta pages live for a sweep or two, leaves for several: apart from each other, fewer
        // live ones stand beside dead ones and have to be copied.
        let lifespan = if is_delta(key) { Lifespan::Short } else { Lifespan::Long };
        Counters::add(&self.counters.page_bytes, value.len());
        let durability = Some(Durability::Memory);
        let options = PutOptions { durability, lifespan, ..PutOptions::default() };
        let key = self.key(key);
        let put = match found {
            Some(found) => Operation::Replace { key, value, options, found },
            None => Operation::Put { key, value, options },
        };
        session.run(now, put, &mut |_| {})
    }

    /// Removes pages that nothing names, the reads that it takes side by side.
    pub(crate) fn remove_all(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        pages: &[[u8; PAGE_KEY_BYTES]],
    ) -> Result<()> {
        let removes = pages
            .iter()
            .map(|page| Operation::Remove { key: self.key(page), condition: Condition::Always });
        submit_all(session, now, removes)
    }

    /// Removes pages that nothing names, and that may be there, without a read.
    pub(crate) fn remove_old(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        pages: &[OldPage],
    ) -> Result<()> {
        let removes = pages.iter().map(|page| {
            let key = self.key(&page.key);
            match page.found {
                Some(found) => Operation::RemoveFound { key, found },
                None => Operation::Discard { key },
            }
        });
        submit_all(session, now, removes)
    }

    /// Removes a page that nothing names.
    pub(crate) fn remove(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        key: &[u8],
    ) -> Result<()> {
        let condition = Condition::Always;
        session.run(now, Operation::Remove { key: self.key(key), condition }, &mut |_| {})
    }
}

/// Begins all `operations` and waits for them.
fn submit_all<'a>(
    session: &mut entresol_tier::Session,
    now: Timestamp,
    operations: impl Iterator<Item = Operation<'a>>,
) -> Result<()> {
    let mut ended = Ok(());
    let mut end = |_: u64, outcome: Result<Outcome<'_>>| {
        if let Err(error) = outcome {
            ended = Err(error);
        }
    };
    for operation in operations {
        session.submit(0, now, operation, &mut end);
    }
    while session.in_flight() > 0 {
        session.poll(session.in_flight(), now, &mut end)?;
    }
    ended
}

/// A page as it was read.
#[derive(Debug)]
pub(crate) struct PageRead {
    pub bytes: Vec<u8>,
    /// Where it was found; `None`: memory had it.
    pub found: Option<FoundAt>,
}

impl PageRead {
    pub(crate) fn of(entry: &Entry<'_>) -> PageRead {
        PageRead { bytes: entry.value.to_vec(), found: entry.found }
    }
}

/// A page to write, and where the one was found that it takes the place of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewPage<'a> {
    pub bytes: &'a [u8],
    pub found: Option<FoundAt>,
}

/// A page to remove, and where it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OldPage {
    pub key: [u8; PAGE_KEY_BYTES],
    pub found: Option<FoundAt>,
}

/// What the store has of a table's beginning.
struct TableRead {
    id: u64,
    /// Its first record.
    record: Option<Vec<u8>>,
    /// Pages with this number and above were never used.
    reserved: u32,
    /// What is known of values of its rows.
    marker: Option<Marker>,
}

impl TableRead {
    /// The table; `None`: nobody knows its name. `name` is that of one that has no record.
    fn table(&self, name: Option<&[u8]>, recovered: &Recovered) -> Result<Option<Table>> {
        let dropped = recovered.dropped(self.id);
        let root = self.record.as_deref().map(Root::decode).transpose();
        let root = root.map_err(|damage| corrupt(&damage, self.id))?;
        let is_old = |root: &Root<'_>| dropped.is_some_and(|by| root.created < by.0);
        let table = match &root {
            Some(root) if !is_old(root) => {
                let directory = Directory::of_root(root, recovered.is_exact);
                let directory = directory.map_err(|damage| corrupt(&damage, self.id))?;
                let table = Table::new(self.id, root.name, directory);
                table.lock().directory.use_from(self.reserved);
                if root.keeps_counts {
                    table.set_keeps_counts();
                }
                table.set_durable();
                table
            }
            old => {
                let named = old.as_ref().map(|root| root.name).or(name);
                let Some(name) = named.or(recovered.name(self.id)) else { return Ok(None) };
                let table = Table::new(self.id, name, Directory::default());
                let was_counted = old.as_ref().is_some_and(|root| root.keeps_counts);
                if was_counted || recovered.keeps_counts(self.id) {
                    table.set_keeps_counts();
                }
                let mut state = table.lock();
                // All pages that may be there are of the table that was dropped.
                state.directory.use_from(self.reserved);
                if let Some(by) = dropped {
                    state.directory.restart(by);
                    state.was_changed = true;
                }
                drop(state);
                table
            }
        };
        if let Some(marker) = self.marker {
            table.set_marker(marker);
        }
        if self.marker.map_or(root.is_some(), |marker| marker == Marker::AnyRows) {
            table.set_has_small_rows();
        }
        Ok(Some(table))
    }
}
