//! Ordered tables of a stopped store: which there are, rows in and rows out.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use entresol_flash::ErrorKind;
use entresol_tier::{SessionOptions, Tiered};
use entresol_tree::{
    Action, Order, Reading, RowForm, RowRange, Session, Table, TableEntry, Tree, TreeOptions,
    UnfoldedRow, Write, WriteBatch, list_tables,
};

use crate::engine::now;
use crate::failure::{Failure, Outcome};
use crate::units::from_hex;

/// Rows that are read at once, and bytes.
const READ_ROWS: usize = 1000;
const READ_BYTES: usize = 1 << 20;
/// Rows, and their bytes, that are written as one batch.
const BATCH_ROWS: usize = 256;
const BATCH_BYTES: usize = 128 << 10;
/// How often a write is tried again although nothing can be merged.
const ATTEMPTS: usize = 1000;
/// What the journal is given where rows are loaded: so much of a store, and no more bytes.
const JOURNAL_PART: u64 = 16;
const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// A key or a name on the command line: text, or `hex:` and digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl std::str::FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        match text.strip_prefix("hex:") {
            None => Ok(Bytes(text.as_bytes().to_vec())),
            Some(digits) => from_hex(digits).map(Bytes).ok_or_else(|| {
                format!("expected pairs of hexadecimal digits behind 'hex:', found '{digits}'")
            }),
        }
    }
}

/// Which rows of an ordered table.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RangeArgs {
    /// First key of its rows, as text or as hex:DIGITS
    #[arg(long, value_name = "KEY", value_parser = str::parse::<Bytes>, requires = "table")]
    from: Option<Bytes>,
    /// Key at which its rows end; that row does not belong to them
    #[arg(long, value_name = "KEY", value_parser = str::parse::<Bytes>, requires = "table")]
    to: Option<Bytes>,
}

/// A row: its key, its value, and what was added to it and nobody has folded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableRow {
    pub(crate) key: Vec<u8>,
    /// `None`: parts alone.
    pub(crate) value: Option<Vec<u8>>,
    /// Oldest first.
    pub(crate) parts: Vec<Vec<u8>>,
}

/// An ordered table that is open.
pub(crate) struct OpenTable {
    tree: Tree,
    session: Session,
    table: Arc<Table>,
    /// Rows that wait to be written.
    waiting: Vec<TableRow>,
    waiting_bytes: usize,
}

/// How the ordered tables of a store are kept.
pub(crate) fn options() -> TreeOptions {
    TreeOptions::default()
}

/// Whether a store has ordered tables, or changes of some.
pub(crate) fn has_some(tiered: &Tiered) -> Outcome<bool> {
    let options = options();
    let journal = tiered.store().journal_state(options.lane)?;
    Ok(tiered.count(options.space) > 0 || journal.bytes > 0)
}

/// Bytes for the journal of a store of `capacity` bytes into whose tables rows are loaded.
pub(crate) fn journal_bytes(capacity: u64) -> u64 {
    (capacity / JOURNAL_PART).min(JOURNAL_BYTES_MAX)
}

/// All tables, in the order of their names.
pub(crate) fn all(tiered: &Arc<Tiered>) -> Outcome<Vec<TableEntry>> {
    let mut tables = Vec::new();
    list_tables(tiered, &options(), now(), &mut |table| tables.push(table))?;
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tables)
}

impl OpenTable {
    /// Opens a table to write it; it comes into being with its first row.
    pub(crate) fn open(tiered: &Arc<Tiered>, name: &[u8]) -> Outcome<OpenTable> {
        let tree = Tree::open(Arc::clone(tiered), options(), now())?;
        let mut session = tree
            .session(SessionOptions { read_buffer_bytes: 16 << 10, ..SessionOptions::default() })?;
        session.set_reading(Reading { form: RowForm::Unfolded, scan_bytes_max: READ_BYTES });
        let table = session.table(now(), name)?;
        Ok(OpenTable { tree, session, table, waiting: Vec::new(), waiting_bytes: 0 })
    }

    /// Opens a table to read it.
    pub(crate) fn open_existing(tiered: &Arc<Tiered>, name: &[u8]) -> Outcome<OpenTable> {
        let is_there = has_some(tiered)? && all(tiered)?.iter().any(|table| table.name == name);
        if !is_there {
            return Err(Failure::CannotRun(format!(
                "the store has no ordered table '{}'; `entresol store tables` lists those it has",
                name.escape_ascii()
            )));
        }
        OpenTable::open(tiered, name)
    }

    /// Visits rows in the order of their keys; `visit` says whether it wants more.
    pub(crate) fn scan(
        &mut self,
        range: &RangeArgs,
        visit: &mut dyn FnMut(TableRow) -> Outcome<More>,
    ) -> Outcome<()> {
        let mut low = range.from.clone().map_or_else(Vec::new, |from| from.0);
        let high = range.to.as_ref().map(|to| &to.0[..]);
        loop {
            let (table, limit) = (&self.table, READ_ROWS);
            let range = RowRange { table, low: &low, high, limit, order: Order::Ascending };
            let (mut page, mut failed, mut goes_on) = (Vec::new(), None, false);
            let mut see =
                |_, outcome: entresol_flash::Result<entresol_tree::Outcome<'_>>| match outcome {
                    Ok(entresol_tree::Outcome::Rows(rows)) => {
                        goes_on = rows.goes_on();
                        page.extend(rows.iter().map(|(key, row)| row_of(key, row)));
                    }
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                };
            self.session.scan(1, now(), range, &mut see);
            while self.session.in_flight() > 0 {
                self.session.poll(1, now(), &mut see)?;
            }
            if let Some(error) = failed {
                return Err(error.into());
            }
            let Some(last) = page.last() else { return Ok(()) };
            // The key right above the last one.
            low = [&last.key[..], &[0]].concat();
            for row in page {
                if visit(row)? == More::Unwanted {
                    return Ok(());
                }
            }
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Puts a row, durably once [`OpenTable::finish`] is done.
    pub(crate) fn put(&mut self, row: TableRow) -> Outcome<()> {
        let parts = row.parts.iter().map(Vec::len).sum::<usize>();
        self.waiting_bytes += row.key.len() + row.value.as_ref().map_or(0, Vec::len) + parts;
        self.waiting.push(row);
        match self.waiting.len() >= BATCH_ROWS || self.waiting_bytes >= BATCH_BYTES {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> Outcome<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let table = &self.table;
        let mut writes = Vec::with_capacity(waiting.len());
        for TableRow { key, value, parts } in &waiting {
            // Whatever the key had goes: a row that is loaded twice is the same.
            let action = value.as_ref().map_or(Action::Remove, |value| Action::Put(value));
            writes.push(Write { table, key, action });
            writes.extend(parts.iter().map(|part| Write { table, key, action: Action::Add(part) }));
        }
        if writes.is_empty() {
            return Ok(());
        }
        let mut attempts = 0;
        loop {
            let batch = WriteBatch { writes: &writes, durability: None };
            let mut ended = Ok(());
            let mut see = |_, outcome: entresol_flash::Result<entresol_tree::Outcome<'_>>| {
                ended = outcome.map(drop_outcome);
            };
            self.session.write(1, now(), batch, &mut see);
            while self.session.in_flight() > 0 {
                self.session.poll(1, now(), &mut see)?;
            }
            let Err(error) = ended else { return Ok(()) };
            if !matches!(error.kind(), ErrorKind::Busy | ErrorKind::Full) || attempts == ATTEMPTS {
                return Err(error.into());
            }
            let merged = self.tree.maintain_tables(now())?;
            attempts = if merged.did_work { 0 } else { attempts + 1 };
            if !merged.did_work {
                std::thread::sleep(Duration::from_micros(300));
            }
        }
    }

    /// Writes what waits, and merges all changes, so that the next opening is fast.
    pub(crate) fn finish(mut self) -> Outcome<()> {
        self.write()?;
        match self.tree.settle(now()) {
            // Parts that nobody can fold here stay in the journal, and are as durable there.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            settled => Ok(settled?),
        }
    }
}

/// Whether a visitor wants more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    Wanted,
    Unwanted,
}

fn drop_outcome(_: entresol_tree::Outcome<'_>) {}

fn row_of(key: &[u8], row: &[u8]) -> TableRow {
    let row = UnfoldedRow::parse(row).expect("a session gives rows in the form that it was told");
    TableRow {
        key: key.to_vec(),
        value: row.base.map(<[u8]>::to_vec),
        parts: row.parts().map(<[u8]>::to_vec).collect(),
    }
}
