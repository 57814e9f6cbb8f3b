//! One table in memory: where its leaves are, and the changes that wait for them.
//!
//! Lock order: a table is locked before the arena of changes. Nothing outside of this crate is
//! called while one of them is.

mod copied;
mod directory;
mod ends;
mod figures;
mod joins;
mod nodes;
mod place;
mod sides;
mod watches;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use entresol_flash::Timestamp;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use copied::{Copied, Keys, Quota, next_key};
pub(crate) use directory::{Counted, CountedLeaf, Directory, Estimated, Span, Uncounted};
pub(crate) use ends::{EndBound, Ends, Side};
pub use figures::TableFigures;
pub(crate) use joins::{Group, LeafKeys, Member, Replacement, is_empty};
pub(crate) use nodes::{Departing, NodePage};
pub(crate) use place::{Detours, LeafAt, LeafToCount, Learnt, Missing, NewChild, Place, ROOT_PAGE};
pub(crate) use sides::{RowOf, Sides, Takes};
pub(crate) use watches::{Watch, Watches};

use crate::format::Marker;
use crate::pending::Pending;
use figures::Written;

/// A table that was opened. Shared by all sessions.
#[derive(Debug)]
pub struct Table {
    id: u64,
    name: Box<[u8]>,
    /// Whether its first record is durable, and with it its name.
    is_durable: AtomicBool,
    /// When somebody asked for it last.
    used_at: AtomicU64,
    /// Bytes of memory that were counted of it last.
    pub(crate) counted: AtomicU64,
    pub(crate) written: Written,
    /// Whether it says how many rows there are.
    keeps_counts: AtomicBool,
    /// Whether values of its rows may be records of their own.
    has_values: AtomicBool,
    /// Whether pages may have rows that have their value, or parts, in them.
    has_small_rows: AtomicBool,
    /// What the store's record says of these; 0: there is none.
    marker: AtomicU8,
    state: RwLock<State>,
}

/// What the lock of a table protects.
#[derive(Default)]
pub(crate) struct State {
    pub directory: Directory,
    /// Changes that are in the journal and in no page.
    pub pending: Pending,
    /// It was changed in this opening, or the journal has changes of it.
    pub was_changed: bool,
    /// Keys that conditional writes wait to change.
    pub watches: Watches,
    /// Where rows begin and end.
    pub ends: Ends,
    /// Values of rows that are being written or removed.
    pub sides: Sides,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl Table {
    pub(crate) fn new(id: u64, name: &[u8], directory: Directory) -> Table {
        let state = State { directory, ..State::default() };
        Table {
            id,
            name: Box::from(name),
            is_durable: AtomicBool::new(false),
            keeps_counts: AtomicBool::new(false),
            has_values: AtomicBool::new(false),
            has_small_rows: AtomicBool::new(false),
            marker: AtomicU8::new(0),
            used_at: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            written: Written::default(),
            state: RwLock::new(state),
        }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.is_durable.load(Ordering::Acquire)
    }

    pub(crate) fn set_durable(&self) {
        self.is_durable.store(true, Ordering::Release);
    }

    /// Its name goes with its changes again.
    pub(crate) fn set_dropped(&self) {
        self.is_durable.store(false, Ordering::Release);
    }

    /// Somebody asks for it.
    pub(crate) fn touch(&self, now: Timestamp) {
        self.used_at.store(now.0, Ordering::Relaxed);
    }

    /// When somebody asked for it last.
    pub(crate) fn used_at(&self) -> Timestamp {
        Timestamp(self.used_at.load(Ordering::Relaxed))
    }

    /// What it takes and what was written of it.
    pub(crate) fn figures(&self) -> TableFigures {
        let state = self.read();
        let bytes = size_of::<Table>() + self.name.len() + state.directory.memory_bytes();
        self.written.figures(&self.name, bytes as u64, state.pending.len())
    }

    /// Whether it keeps counts: [`Session::count`](crate::Session::count) answers exactly.
    pub fn keeps_counts(&self) -> bool {
        self.keeps_counts.load(Ordering::Acquire)
    }

    /// It keeps counts from now on.
    pub(crate) fn set_keeps_counts(&self) {
        self.keeps_counts.store(true, Ordering::Release);
        self.lock().directory.keep_counts();
    }

    /// Makes it a table that keeps counts, if it has no row and never had one. Whether it is one.
    pub(crate) fn begin_counts(&self) -> bool {
        if self.keeps_counts() {
            return true;
        }
        let mut state = self.lock();
        if self.is_durable() || state.was_changed {
            return false;
        }
        state.directory.keep_counts();
        self.keeps_counts.store(true, Ordering::Release);
        true
    }

    pub(crate) fn has_values(&self) -> bool {
        self.has_values.load(Ordering::Acquire)
    }

    pub(crate) fn set_has_values(&self) {
        self.has_values.store(true, Ordering::Release);
    }

    /// Whether pages may have rows that have their value, or parts, in them. If not, the values
    /// that the store has tell all of rows that nothing waits of.
    pub(crate) fn has_small_rows(&self) -> bool {
        self.has_small_rows.load(Ordering::Acquire)
    }

    /// Pages get such rows, or may have them.
    pub(crate) fn set_has_small_rows(&self) {
        self.has_small_rows.store(true, Ordering::Release);
    }

    /// What the store's record says of the table's rows, if it was read or written.
    pub(crate) fn marker(&self) -> Option<Marker> {
        match self.marker.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Marker::LargeRowsOnly),
            _ => Some(Marker::AnyRows),
        }
    }

    pub(crate) fn set_marker(&self, marker: Marker) {
        let number = 1 + u8::from(marker == Marker::AnyRows);
        self.marker.store(number, Ordering::Release);
    }

    /// Its state, to be changed.
    pub(crate) fn lock(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Its state. Gets of several threads do not wait for each other.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }
}
