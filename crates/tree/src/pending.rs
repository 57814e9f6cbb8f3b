//! The changes of a table that are in the log and in no page.
//!
//! All of them are in one ordered map: a leaf's part is what lies below its high key, so that a
//! split of a leaf moves nothing here, scans merge by range, and recovery fills the same map. A
//! merge takes its part out again, up to the newest change that it saw.
//!
//! The map is a B+ tree. Its nodes, its keys and the changes lie in cells of an arena that all
//! tables share and that has a cap. A table without changes has nothing there; one with a single
//! change has a cell for it and one for the leaf. A map that is dropped does not give back its
//! cells: `clear` does.
//!
//! No time, no threads, no locks: whoever owns the arena has them.

mod arena;
mod cells;
mod draft;
mod entry;
mod gathered;
mod growth;
mod node;
mod path;
mod range;
mod removal;
mod runs;
mod weight;

use std::ops::Bound;

pub use arena::{Arena, BLOCK_BYTES, CLASSES, Full, Lent, Names};
pub use entry::Changes;
pub use gathered::{Gathered, Sorted};
pub use range::{Entry, Range, RangeBack};
pub use runs::Runs;

use crate::format::{INLINE_VALUE_BYTES_MAX, ROW_KEY_BYTES_MAX};
use crate::merge::Change;
use crate::sequence::Sequence;
use arena::Cell;
use node::Node;
use path::Step;
use removal::Cut;
use weight::Weight;

/// The changes of a table that are in no page.
pub struct Pending {
    root: Cell,
    weight: Weight,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending::new()
    }
}

impl Pending {
    /// No changes.
    pub fn new() -> Pending {
        Pending { root: Cell::NONE, weight: Weight::default() }
    }

    /// Number of changes.
    pub fn len(&self) -> u64 {
        self.weight.changes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.weight.changes == 0
    }

    /// Whether there are changes of `key`.
    pub fn holds(&self, arena: &Arena, key: &[u8]) -> bool {
        self.root != Cell::NONE && path::find(arena, self.root, key).1
    }

    /// Bytes of keys and values. A key counts once, however many changes it has.
    pub fn bytes(&self) -> u64 {
        self.weight.bytes
    }

    /// Adds a change.
    ///
    /// All but parts take the place of the key's changes that are older, and a change older than
    /// such a one is dropped: changes may come in any order. A change of the same key and sequence
    /// as one that is here is that one, and changes nothing. An error leaves everything as it was.
    ///
    /// # Panics
    /// If the key is empty, or if the key or the value is too long for a page.
    pub fn insert(&mut self, arena: &mut Arena, change: Change<'_>) -> Result<(), Full> {
        let Change { key, value, .. } = change;
        assert!(!key.is_empty() && key.len() <= ROW_KEY_BYTES_MAX, "a key that a page holds");
        assert!(value.len() <= INLINE_VALUE_BYTES_MAX, "a value that a page holds");
        if self.root == Cell::NONE {
            let entry = cells::new_single(arena, change)?;
            self.root = growth::plant(arena, entry).inspect_err(|_| arena.free(entry))?;
        } else {
            let (step, found) = path::find(arena, self.root, key);
            if found {
                return self.amend(arena, step, change);
            }
            let entry = cells::new_single(arena, change)?;
            growth::insert(arena, &mut self.root, step, entry)
                .inspect_err(|_| arena.free(entry))?;
        }
        self.weight.add(Weight { changes: 1, bytes: (key.len() + value.len()) as u64 });
        Ok(())
    }

    /// Adds a change to the entry of a key that has changes.
    fn amend(&mut self, arena: &mut Arena, at: Step, change: Change<'_>) -> Result<(), Full> {
        let before = Node::at(arena, at.node).cell(at.index);
        let amended = entry::add(arena, before, change)?;
        if amended.cell != before {
            node::set_cell(arena, at.node, at.index, amended.cell);
        }
        self.weight.add(amended.added);
        self.weight.subtract(amended.dropped);
        Ok(())
    }

    /// The changes of a key, newest first.
    pub fn get<'a>(&self, arena: &'a Arena, key: &[u8]) -> Changes<'a> {
        if self.root == Cell::NONE {
            return Changes::none(arena);
        }
        match path::find(arena, self.root, key) {
            (step, true) => Changes::of(arena, Node::at(arena, step.node).cell(step.index)),
            (_, false) => Changes::none(arena),
        }
    }

    /// The entries between two bounds, in order of their keys.
    pub fn range<'a, 'b>(
        &self,
        arena: &'a Arena,
        low: Bound<&[u8]>,
        high: Bound<&'b [u8]>,
    ) -> Range<'a, 'b> {
        Range::new(arena, self.root, low, high)
    }

    /// The entries between two bounds, against the order of their keys.
    pub fn range_back<'a, 'b>(
        &self,
        arena: &'a Arena,
        low: Bound<&'b [u8]>,
        high: Bound<&[u8]>,
    ) -> RangeBack<'a, 'b> {
        RangeBack::new(arena, self.root, low, high)
    }

    /// Bytes of keys and values from `low` to below `high`. Looks at each of these entries.
    pub fn bytes_in(&self, arena: &Arena, low: &[u8], high: Option<&[u8]>) -> u64 {
        let high = high.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.range(arena, Bound::Included(low), high);
        entries.map(|entry| entry.weight().bytes).sum()
    }

    /// Drops what a merge has brought to pages: the changes from `low` to below `high` whose
    /// sequence is at most `through`. The answer is the bytes of keys and values that are gone.
    pub fn remove_through(
        &mut self,
        arena: &mut Arena,
        low: &[u8],
        high: Option<&[u8]>,
        through: Sequence,
    ) -> u64 {
        if self.root == Cell::NONE {
            return 0;
        }
        let cut = Cut { low: Some(low), high, through };
        let dropped = removal::remove(arena, &mut self.root, &cut);
        self.weight.subtract(dropped);
        dropped.bytes
    }

    /// Drops all changes.
    pub fn clear(&mut self, arena: &mut Arena) {
        if self.root != Cell::NONE {
            removal::clear(arena, self.root);
        }
        *self = Pending::new();
    }
}
