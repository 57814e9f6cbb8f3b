//! Which values of rows are being written or removed.
//!
//! Whoever writes or removes a value holds its side of the row meanwhile. So nobody removes what
//! another one has just written and not entered, and nobody writes where another one removes.
//!
//! A writer looks whether something is on a side before it holds it. Whoever removes a value does
//! not wait for that look, and the writer finds the side held then: no value is left because
//! somebody looked at it.
//!
//! A get that reads no leaf takes what the store has on the sides of its row for what the row is.
//! [`Takes`] tell it whether somebody held one of them meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::format::Side;

/// Rows share so many counters: a get that meets the change of another row's looks at its leaf.
const COUNTERS: usize = 1024;

/// How often sides of rows were taken, of all tables.
#[derive(Debug)]
pub(crate) struct Takes {
    counters: Box<[AtomicU32]>,
}

impl Default for Takes {
    fn default() -> Takes {
        Takes { counters: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect() }
    }
}

impl Takes {
    fn counter(&self, row: RowOf<'_>) -> &AtomicU32 {
        &self.counters[xxh3_64_with_seed(row.key, row.table) as usize % COUNTERS]
    }

    /// It grows each time that somebody takes a side of the row.
    pub(crate) fn count(&self, row: RowOf<'_>) -> u32 {
        self.counter(row).load(Ordering::Acquire)
    }
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowOf<'a> {
    /// The table's number.
    pub table: u64,
    pub key: &'a [u8],
}

/// The sides of a table's rows that are held, or looked at by a writer.
#[derive(Debug, Default)]
pub(crate) struct Sides {
    rows: HashMap<Box<[u8]>, u8>,
}

fn held(side: Side) -> u8 {
    1 << side as u8
}

fn looked_at(side: Side) -> u8 {
    4 << side as u8
}

impl Sides {
    /// Whether nobody holds a side of any row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether nobody holds a side of the row, or is about to.
    pub(crate) fn is_free(&self, key: &[u8]) -> bool {
        !self.rows.contains_key(key)
    }

    /// Takes a side of the row, unless somebody holds it.
    pub(crate) fn take(&mut self, row: RowOf<'_>, side: Side, takes: &Takes) -> bool {
        takes.counter(row).fetch_add(1, Ordering::AcqRel);
        let bits = self.rows.entry(Box::from(row.key)).or_default();
        let is_free = *bits & held(side) == 0;
        *bits |= held(side);
        is_free
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&mut self, key: &[u8], side: Side) {
        self.clear(key, held(side));
    }

    /// A writer looks whether something is on a side. Whether it may: nobody holds the side, and no
    /// other writer looks.
    pub(crate) fn look(&mut self, key: &[u8], side: Side) -> bool {
        let bits = self.rows.entry(Box::from(key)).or_default();
        let is_free = *bits & (held(side) | looked_at(side)) == 0;
        if is_free {
            *bits |= looked_at(side);
        }
        is_free
    }

    /// The writer has looked, and takes the side if nothing is there. Whether it has it.
    pub(crate) fn look_ends(&mut self, row: RowOf<'_>, side: Side, takes: Option<&Takes>) -> bool {
        let has_it = takes.is_some_and(|takes| {
            let is_free = self.rows.get(row.key).is_some_and(|bits| *bits & held(side) == 0);
            is_free && self.take(row, side, takes)
        });
        self.clear(row.key, looked_at(side));
        has_it
    }

    fn clear(&mut self, key: &[u8], bit: u8) {
        if let Some(bits) = self.rows.get_mut(key) {
            *bits &= !bit;
            if *bits == 0 {
                self.rows.remove(key);
            }
        }
    }
}
