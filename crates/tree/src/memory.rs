//! What ordered tables take of the store's memory cap.
//!
//! Changes that wait are bounded by `waiting_bytes_max`, and writers are refused beyond it. Tables
//! that are open and their inner nodes are bounded by `directory_bytes_max`: what can leave memory
//! does so before, and who would open one more table beyond it is refused. Where the store was
//! opened with a part of its cap to reserve, it is told what of that is in use, and its cache has
//! the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use entresol_flash::{Error, ErrorKind, Result};
use entresol_tier::Tiered;

use crate::options::TreeOptions;
use crate::pending::Arena;
use crate::table::{State, Table};

/// What the list of open tables takes for each, beside the table.
const LISTED_BYTES: u64 = 48;
/// What a small table takes, about.
const TABLE_BYTES: u64 = 512;
/// Changes of what is in use that the store need not be told.
const STEP_BYTES: u64 = 1 << 20;

/// What is in use, bytes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Open tables and their inner nodes.
    directories: AtomicU64,
    tables: AtomicU64,
    /// What the journal had of tables that nobody has opened, beside their changes.
    recovered: AtomicU64,
    /// What the store was told.
    told: AtomicU64,
}

impl Memory {
    /// Counts a table, anew where it was counted.
    pub(crate) fn count(&self, table: &Table, state: &State) {
        let fixed = size_of::<Table>() as u64 + LISTED_BYTES + table.name().len() as u64;
        let bytes = fixed + state.directory.memory_bytes() as u64;
        let before = table.counted.swap(bytes, Ordering::Relaxed);
        if before == 0 {
            self.tables.fetch_add(1, Ordering::Relaxed);
        }
        self.directories.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// A table that was counted has left.
    pub(crate) fn discount(&self, table: &Table) {
        let before = table.counted.swap(0, Ordering::Relaxed);
        self.tables.fetch_sub(u64::from(before > 0), Ordering::Relaxed);
        self.directories.fetch_sub(before, Ordering::Relaxed);
    }

    pub(crate) fn set_recovered(&self, bytes: usize) {
        self.recovered.store(bytes as u64, Ordering::Relaxed);
    }

    /// Open tables and their inner nodes.
    pub(crate) fn directory_bytes(&self) -> u64 {
        self.directories.load(Ordering::Relaxed)
    }

    /// Whether so many tables are open that most of the memory of tables is theirs.
    pub(crate) fn are_tables_many(&self, options: &TreeOptions) -> bool {
        self.tables() * TABLE_BYTES > options.directory_bytes_max / 4 * 3
    }

    /// Refuses to open one more table where the memory for tables is full of them.
    pub(crate) fn check_tables(&self, options: &TreeOptions) -> Result<()> {
        let tables = self.tables();
        if tables * TABLE_BYTES < options.directory_bytes_max {
            return Ok(());
        }
        let detail = format!(
            "{tables} ordered tables are open, which fill the {} bytes that tables may take; \
             maintain, give up tables that are not used, then try again",
            options.directory_bytes_max
        );
        Err(Error::new(ErrorKind::Busy, detail))
    }

    /// How many tables are open.
    pub(crate) fn tables(&self) -> u64 {
        self.tables.load(Ordering::Relaxed)
    }

    pub(crate) fn recovered_bytes(&self) -> u64 {
        self.recovered.load(Ordering::Relaxed)
    }

    /// Tells the store what is in use, where that is another size than it was told.
    pub(crate) fn tell(&self, store: &Tiered, arena_bytes: u64) {
        let most = store.reservable_bytes();
        let used = arena_bytes + self.directory_bytes() + self.recovered_bytes();
        let told = self.told.load(Ordering::Relaxed);
        // Beyond what may be reserved writers and openings are refused until merges make room.
        let used = used.min(most);
        if used.abs_diff(told) < STEP_BYTES.min(most) {
            return;
        }
        self.told.store(used, Ordering::Relaxed);
        store.reserve(used).expect("no more than may be reserved");
    }
}

/// Refuses a store that may reserve less than the options say.
pub(crate) fn check_reservable(store: &Tiered, options: &TreeOptions) -> Result<()> {
    let (may, wanted) = (store.reservable_bytes(), options.memory_bytes_max());
    if may == 0 || may >= wanted {
        return Ok(());
    }
    let detail = format!(
        "{may} bytes of the memory cap may be reserved for ordered tables, which take up to \
         {wanted}: open the store with so many to reserve, or let fewer changes wait"
    );
    Err(Error::new(ErrorKind::InvalidInput, detail))
}

/// Whether so many changes wait that merges are due.
pub(crate) fn are_merges_due(arena: &Arena, options: &TreeOptions) -> bool {
    let most = options.waiting_bytes_max;
    arena.bytes_in_use() > most / 8 * 7 || arena.bytes_taken() > most.max(Arena::LEAST_BYTES)
}

/// Whether memory has room for a change.
pub(crate) fn has_room(arena: &Arena, options: &TreeOptions) -> bool {
    arena.bytes_in_use() < options.waiting_bytes_max
        && arena.bytes_taken() < options.arena_bytes_max()
}

/// Refuses a change where too many wait.
pub(crate) fn check_waiting(arena: &Arena, options: &TreeOptions) -> Result<()> {
    if has_room(arena, options) {
        return Ok(());
    }
    let (waiting, most) = (arena.bytes_in_use(), options.waiting_bytes_max);
    let detail =
        format!("{waiting} bytes of changes wait for merges, {most} may; maintain, then try again");
    Err(Error::new(ErrorKind::Busy, detail))
}
