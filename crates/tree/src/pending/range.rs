//! Walks over the entries of a table, in order of keys and against it.

use std::ops::Bound;

use crate::merge::Change;
use crate::pending::arena::{Arena, Cell};
use crate::pending::cells;
use crate::pending::entry::{self, Changes};
use crate::pending::node::Node;
use crate::pending::path::Path;
use crate::pending::weight::Weight;

/// A key and the changes that wait for it.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    arena: &'a Arena,
    cell: Cell,
}

impl<'a> Entry<'a> {
    /// The key.
    pub fn key(&self) -> &'a [u8] {
        cells::key(self.arena, self.cell)
    }

    /// The changes, newest first.
    pub fn newest_first(&self) -> Changes<'a> {
        Changes::of(self.arena, self.cell)
    }

    /// The changes, oldest first. Takes memory for a list if there are several.
    pub fn oldest_first(&self) -> impl Iterator<Item = Change<'a>> + use<'a> {
        let mut newer = self.newest_first();
        let only = newer.next();
        let mut older: Vec<Change<'a>> = newer.collect();
        older.reverse();
        older.into_iter().chain(only)
    }

    /// Bytes of the key and of the values.
    pub(crate) fn bytes(&self) -> u64 {
        self.weight().bytes
    }

    pub(super) fn weight(&self) -> Weight {
        entry::weight(self.arena, self.cell)
    }
}

/// The entries between two bounds, in order of their keys.
pub struct Range<'a, 'b> {
    walk: Walk<'a>,
    high: Bound<&'b [u8]>,
}

impl<'a, 'b> Range<'a, 'b> {
    pub(super) fn new(
        arena: &'a Arena,
        root: Cell,
        low: Bound<&[u8]>,
        high: Bound<&'b [u8]>,
    ) -> Range<'a, 'b> {
        let walk = match low {
            Bound::Unbounded => Walk::to(arena, root, &[], Side::Before),
            Bound::Included(low) => Walk::to(arena, root, low, Side::Before),
            Bound::Excluded(low) => Walk::to(arena, root, low, Side::Behind),
        };
        Range { walk, high }
    }
}

impl<'a> Iterator for Range<'a, '_> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let entry = self.walk.next()?;
        let within = match self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => entry.key() <= high,
            Bound::Excluded(high) => entry.key() < high,
        };
        within.then_some(entry)
    }
}

/// The entries between two bounds, against the order of their keys.
pub struct RangeBack<'a, 'b> {
    walk: Walk<'a>,
    low: Bound<&'b [u8]>,
}

impl<'a, 'b> RangeBack<'a, 'b> {
    pub(super) fn new(
        arena: &'a Arena,
        root: Cell,
        low: Bound<&'b [u8]>,
        high: Bound<&[u8]>,
    ) -> RangeBack<'a, 'b> {
        let walk = match high {
            Bound::Unbounded => Walk::to_end(arena, root),
            Bound::Included(high) => Walk::to(arena, root, high, Side::Behind),
            Bound::Excluded(high) => Walk::to(arena, root, high, Side::Before),
        };
        RangeBack { walk, low }
    }
}

impl<'a> Iterator for RangeBack<'a, '_> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let entry = self.walk.previous()?;
        let within = match self.low {
            Bound::Unbounded => true,
            Bound::Included(low) => entry.key() >= low,
            Bound::Excluded(low) => entry.key() > low,
        };
        within.then_some(entry)
    }
}

/// On which side of a key a walk begins.
#[derive(PartialEq, Eq)]
enum Side {
    Before,
    Behind,
}

/// A place between two entries of a tree.
struct Walk<'a> {
    arena: &'a Arena,
    /// The index of the last step counts the entries of the leaf before the place.
    path: Path,
    leaf: Option<Node<'a>>,
}

impl<'a> Walk<'a> {
    fn to(arena: &'a Arena, root: Cell, key: &[u8], side: Side) -> Walk<'a> {
        if root == Cell::NONE {
            return Walk { arena, path: Path::new(), leaf: None };
        }
        let mut path = Path::to(arena, root, key);
        let step = path.last_mut();
        let leaf = Node::at(arena, step.node);
        if side == Side::Behind && step.index < leaf.count && leaf.key(step.index) == key {
            step.index += 1;
        }
        Walk { arena, path, leaf: Some(leaf) }
    }

    fn to_end(arena: &'a Arena, root: Cell) -> Walk<'a> {
        let mut walk = Walk { arena, path: Path::new(), leaf: None };
        if root != Cell::NONE {
            walk.descend(root, |node| node.count);
        }
        walk
    }

    /// Takes the way down from a node by the child that is asked for each time.
    fn descend(&mut self, mut cell: Cell, index: impl Fn(&Node<'_>) -> usize) {
        loop {
            let node = Node::at(self.arena, cell);
            let index = index(&node);
            self.path.push(cell, index, None);
            if node.level == 0 {
                self.leaf = Some(node);
                return;
            }
            cell = node.child(index);
        }
    }

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let leaf = self.leaf?;
            let step = self.path.last_mut();
            if step.index < leaf.count {
                step.index += 1;
                return Some(Entry { arena: self.arena, cell: leaf.cell(step.index - 1) });
            }
            self.leaf = None;
            self.path.pop();
            while let Some(step) = self.path.pop() {
                let node = Node::at(self.arena, step.node);
                if step.index < node.count {
                    self.path.push(step.node, step.index + 1, None);
                    self.descend(node.child(step.index + 1), |_| 0);
                    break;
                }
            }
        }
    }

    fn previous(&mut self) -> Option<Entry<'a>> {
        loop {
            let leaf = self.leaf?;
            let step = self.path.last_mut();
            if step.index > 0 {
                step.index -= 1;
                return Some(Entry { arena: self.arena, cell: leaf.cell(step.index) });
            }
            self.leaf = None;
            self.path.pop();
            while let Some(step) = self.path.pop() {
                if let Some(index) = step.index.checked_sub(1) {
                    let node = Node::at(self.arena, step.node);
                    self.path.push(step.node, index, None);
                    self.descend(node.child(index), |node| node.count);
                    break;
                }
            }
        }
    }
}
