//! Many changes at once, which are brought to their places in the order of keys.
//!
//! An insert looks for the place of its key in memory that is in no cache of the processor, and
//! does so for each change. Changes that are gathered are sorted, and go into a tree that is built
//! anew from its leaves on: where the map has not many times as many, that visits each node once.
//! Threads can sort parts of them at the same time, each in an arena that is lent to it.
//!
//! The arena must have no cap.

use crate::format::{INLINE_VALUE_BYTES_MAX, ROW_KEY_BYTES_MAX};
use crate::merge::Change;
use crate::pending::arena::{Arena, Cell, Full, Names};
use crate::pending::draft::Draft;
use crate::pending::node::{self, Node};
use crate::pending::weight::Weight;
use crate::pending::{Pending, cells, entry, growth, path};

/// Keys that nodes get: some more will come, as well as removals.
const FILL: usize = node::KEYS_MAX * 3 / 4;
/// A map with more times as many entries as there are new ones is not built anew.
const FEW_PART: u64 = 16;
/// Prefixes that agree in so many bytes are made anew, from what follows.
const SKIP_LEAST: usize = 4;
const NO_CAP: &str = "an arena without a cap";

/// Changes of a table that go into its map together.
#[derive(Default)]
pub struct Gathered {
    items: Vec<Item>,
    weight: Weight,
    /// So many bytes all keys begin with, and prefixes leave them out, once they are sorted.
    skip: usize,
}

/// A prefix of a key, and the cell with the key, which decides nothing: they compare by prefixes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item(u128);

impl Item {
    fn new(prefix: u64, cell: Cell) -> Item {
        Item(u128::from(prefix) << 32 | u128::from(u32::from_le_bytes(cell.to_bytes())))
    }

    fn prefix(self) -> u64 {
        (self.0 >> 32) as u64
    }

    fn cell(self) -> Cell {
        Cell::from_bytes((self.0 as u32).to_le_bytes())
    }

    fn key(self, arena: &Arena) -> &[u8] {
        cells::key(arena, self.cell())
    }

    fn is_below(self, arena: &Arena, other: Item) -> bool {
        let same = || self.prefix() == other.prefix() && self.key(arena) < other.key(arena);
        self.prefix() < other.prefix() || same()
    }

    fn has_key_of(self, arena: &Arena, other: Item) -> bool {
        self.prefix() == other.prefix() && self.key(arena) == other.key(arena)
    }
}

impl Gathered {
    /// Adds a change.
    ///
    /// # Panics
    /// If the key is empty, if the key or the value is too long for a page, or if the arena is
    /// full.
    pub fn push(&mut self, arena: &mut Arena, change: Change<'_>) {
        let Change { key, value, .. } = change;
        assert!(!key.is_empty() && key.len() <= ROW_KEY_BYTES_MAX, "a key that a page holds");
        assert!(value.len() <= INLINE_VALUE_BYTES_MAX, "a value that a page holds");
        let cell = cells::new_single(arena, change).expect(NO_CAP);
        self.items.push(Item::new(node::prefix_of(key, 0), cell));
        self.weight.add(Weight { changes: 1, bytes: (key.len() + value.len()) as u64 });
    }

    /// Brings them in order; none come any more.
    pub fn sort(&mut self, arena: &Arena) {
        self.skip = self.common(arena);
        self.sort_by(arena, self.skip);
    }

    /// Their cells were in an arena that was lent, and have these names now.
    pub fn rename(&mut self, names: &Names) {
        for item in &mut self.items {
            *item = Item::new(item.prefix(), names.of(item.cell()));
        }
    }

    /// Makes one entry of the changes of each key, once they are sorted: entries name other cells,
    /// so that none is made in an arena that was lent.
    pub fn folded(self, arena: &mut Arena) -> Sorted {
        let Gathered { items, mut weight, skip } = self;
        let items = fold(arena, &mut weight, items);
        Sorted { items, weight, skip }
    }

    /// How many bytes all keys begin with that are equal, if these are some.
    fn common(&self, arena: &Arena) -> usize {
        let [first, .., _] = self.items[..] else { return 0 };
        let differ = self.items.iter().fold(0, |all, item| all | (item.prefix() ^ first.prefix()));
        if (differ.leading_zeros() as usize) < 8 * SKIP_LEAST {
            return 0;
        }
        let shared = self.items.iter().map(|item| node::common(first.key(arena), item.key(arena)));
        shared.min().unwrap_or(0)
    }

    /// Brings the changes in the order of their keys, those of one key in that of their sequences.
    /// Prefixes leave out the first `skip` bytes.
    fn sort_by(&mut self, arena: &Arena, skip: usize) {
        if skip > 0 {
            for item in &mut self.items {
                *item = Item::new(node::prefix_of(item.key(arena), skip), item.cell());
            }
        }
        self.items.sort_unstable();
        let sequence = |item: &Item| cells::sequence(arena, item.cell());
        for equal in self.items.chunk_by_mut(|left, right| left.prefix() == right.prefix()) {
            if equal.len() > 1 {
                equal.sort_unstable_by(|left, right| {
                    let keys = left.key(arena).cmp(right.key(arena));
                    keys.then_with(|| sequence(left).cmp(&sequence(right)))
                });
            }
        }
    }
}

/// Changes of a table in the order of their keys, with one entry for each key.
pub struct Sorted {
    items: Vec<Item>,
    weight: Weight,
    /// So many bytes all keys begin with, and prefixes leave them out.
    skip: usize,
}

impl Sorted {
    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.items.len()
    }

    /// All changes of both.
    pub fn with(mut self, arena: &mut Arena, mut other: Sorted) -> Sorted {
        let ([first, ..], [others, ..]) = (&self.items[..], &other.items[..]) else {
            return if self.items.is_empty() { other } else { self };
        };
        let shared = node::common(first.key(arena), others.key(arena));
        let shared = if shared < SKIP_LEAST { 0 } else { shared };
        let skip = shared.min(self.skip_max()).min(other.skip_max());
        self.leave_out(arena, skip);
        other.leave_out(arena, skip);
        let mut items = Vec::with_capacity(self.items.len() + other.items.len());
        let mut weight = self.weight;
        weight.add(other.weight);
        let mut others = other.items.into_iter().peekable();
        for item in self.items {
            while let Some(other) = others.next_if(|other| other.is_below(arena, item)) {
                items.push(other);
            }
            let cell = match others.next_if(|other| other.has_key_of(arena, item)) {
                Some(other) => absorb(arena, &mut weight, item.cell(), other.cell()),
                None => item.cell(),
            };
            items.push(Item::new(item.prefix(), cell));
        }
        items.extend(others);
        Sorted { items, weight, skip }
    }

    /// How many bytes prefixes may leave out. A key is all that it has in common with itself.
    fn skip_max(&self) -> usize {
        if self.items.len() == 1 { usize::MAX } else { self.skip }
    }

    /// Prefixes leave the first `skip` bytes out from now on, which all keys begin with.
    fn leave_out(&mut self, arena: &Arena, skip: usize) {
        if skip != self.skip {
            for item in &mut self.items {
                *item = Item::new(node::prefix_of(item.key(arena), skip), item.cell());
            }
            self.skip = skip;
        }
    }
}

/// Makes one entry of the changes of each key.
fn fold(arena: &mut Arena, weight: &mut Weight, mut items: Vec<Item>) -> Vec<Item> {
    let mut kept = 0usize;
    for at in 0..items.len() {
        let item = items[at];
        match kept.checked_sub(1).map(|last| items[last]) {
            Some(last) if last.has_key_of(arena, item) => {
                let cell = absorb(arena, weight, last.cell(), item.cell());
                items[kept - 1] = Item::new(last.prefix(), cell);
            }
            _ => {
                items[kept] = item;
                kept += 1;
            }
        }
    }
    items.truncate(kept);
    items
}

/// Adds what waits of a key to what is here of it, where `weight` has both. Where it is then.
fn absorb(arena: &mut Arena, weight: &mut Weight, entry: Cell, newcomer: Cell) -> Cell {
    let (cell, dropped) = entry::absorb(arena, entry, newcomer).expect(NO_CAP);
    weight.subtract(dropped);
    cell
}

impl Pending {
    /// Adds changes as [`Pending::insert`] does.
    ///
    /// # Panics
    /// If the arena is full.
    pub fn insert_sorted(&mut self, arena: &mut Arena, mut sorted: Sorted) {
        let skip = self.skip_with(arena, &sorted);
        sorted.leave_out(arena, skip);
        self.weight.add(sorted.weight);
        let items = sorted.items;
        // Parts of one key may be many, and are one entry.
        let are_few = (items.len() as u64).saturating_mul(FEW_PART) < self.weight.changes;
        if !are_few || self.root == Cell::NONE {
            self.build_with(arena, &items, skip);
            return;
        }
        for item in items {
            self.enter(arena, item).expect(NO_CAP);
        }
    }

    /// How many bytes all keys begin with, here and there.
    fn skip_with(&self, arena: &Arena, sorted: &Sorted) -> usize {
        let Some(item) = sorted.items.first().filter(|_| sorted.skip > 0) else { return 0 };
        let all = || (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let ((low, high), (from, to)) = (all(), all());
        let first = self.range(arena, low, high).next().map(|entry| entry.key());
        let last = self.range_back(arena, from, to).next().map(|entry| entry.key());
        let key = item.key(arena);
        let shared = first.into_iter().chain(last).map(|other| node::common(key, other));
        shared.chain([sorted.skip]).min().unwrap_or(0)
    }

    /// Puts one of a few entries in its place.
    fn enter(&mut self, arena: &mut Arena, item: Item) -> Result<(), Full> {
        let (step, is_there) = path::find(arena, self.root, item.key(arena));
        if !is_there {
            return growth::insert(arena, &mut self.root, step, item.cell());
        }
        let before = Node::at(arena, step.node).cell(step.index);
        let cell = absorb(arena, &mut self.weight, before, item.cell());
        if cell != before {
            node::set_cell(arena, step.node, step.index, cell);
        }
        Ok(())
    }

    /// Builds the tree anew, with `items` among its entries. One part of it after the other is
    /// taken apart, so that little memory is in use twice.
    fn build_with(&mut self, arena: &mut Arena, items: &[Item], skip: usize) {
        let mut leaves = Leaves { skip, draft: Draft::new(0), left: Cell::NONE, done: Vec::new() };
        let mut items = items.iter().copied().peekable();
        let (mut before, mut parts) = (Vec::new(), vec![self.root]);
        if self.root != Cell::NONE && Node::at(arena, self.root).level > 0 {
            parts = take_root_apart(arena, self.root);
        }
        for part in parts.into_iter().filter(|part| *part != Cell::NONE) {
            take_apart(arena, part, skip, &mut before);
            for old in before.drain(..) {
                while let Some(item) = items.next_if(|item| item.is_below(arena, old)) {
                    leaves.push(arena, item);
                }
                let cell = match items.next_if(|item| item.has_key_of(arena, old)) {
                    Some(item) => absorb(arena, &mut self.weight, old.cell(), item.cell()),
                    None => old.cell(),
                };
                leaves.push(arena, Item::new(old.prefix(), cell));
            }
        }
        items.for_each(|item| leaves.push(arena, item));
        self.root = leaves.finish(arena);
    }
}

/// The children of a node above the leaves, which is freed with its bounds.
fn take_root_apart(arena: &mut Arena, cell: Cell) -> Vec<Cell> {
    let draft = Draft::of(arena, cell);
    draft.cells[..draft.count].iter().for_each(|bound| arena.free(*bound));
    arena.free(cell);
    draft.children[..=draft.count].to_vec()
}

/// Adds the entries below a node to `entries`, and frees all nodes and bounds.
fn take_apart(arena: &mut Arena, cell: Cell, skip: usize, entries: &mut Vec<Item>) {
    let leaf = Node::at(arena, cell);
    if leaf.level > 0 {
        for child in take_root_apart(arena, cell) {
            take_apart(arena, child, skip, entries);
        }
        return;
    }
    let prefix = |slot| match leaf.skip == skip {
        true => leaf.prefix(slot),
        false => node::prefix_of(leaf.key(slot), skip),
    };
    entries.extend((0..leaf.count).map(|slot| Item::new(prefix(slot), leaf.cell(slot))));
    arena.free(cell);
}

/// The leaves of a tree that is being built.
struct Leaves {
    skip: usize,
    /// The next one.
    draft: Draft,
    /// The bound to its left.
    left: Cell,
    done: Vec<Child>,
}

/// A node and the bound to its left, which the first one of a level does not have.
#[derive(Clone, Copy)]
struct Child {
    left: Cell,
    node: Cell,
}

impl Leaves {
    /// Adds the entry of a key that is above all others.
    fn push(&mut self, arena: &mut Arena, item: Item) {
        if self.draft.count == FILL {
            let last = self.draft.key(arena, FILL - 1);
            let key = item.key(arena);
            let bound = key[..node::common(last, key) + 1].to_vec();
            let bound = cells::new_bound(arena, &bound).expect(NO_CAP);
            self.place(arena, bound);
        }
        let at = self.draft.count;
        (self.draft.prefixes[at], self.draft.cells[at]) = (item.prefix(), item.cell());
        (self.draft.skip, self.draft.count) = (self.skip, at + 1);
    }

    /// Gives the next leaf its cell; `right` is the bound to its right.
    fn place(&mut self, arena: &mut Arena, right: Cell) {
        let node = place(arena, &mut self.draft, [self.left, right]);
        self.done.push(Child { left: self.left, node });
        (self.draft.count, self.left) = (0, right);
    }

    /// Builds what is above the leaves; the root.
    fn finish(mut self, arena: &mut Arena) -> Cell {
        if self.draft.count > 0 {
            self.place(arena, Cell::NONE);
        }
        let (mut level, mut children) = (1, self.done);
        while children.len() > 1 {
            children = above(arena, &children, Draft { skip: self.skip, ..Draft::new(level) });
            level += 1;
        }
        children.first().map_or(Cell::NONE, |root| root.node)
    }
}

/// The nodes above `children`, as `empty` is.
fn above(arena: &mut Arena, children: &[Child], empty: Draft) -> Vec<Child> {
    let (count, nodes) = (children.len(), children.len().div_ceil(FILL + 1));
    let start = |number: usize| number * count / nodes;
    let mut done = Vec::with_capacity(nodes);
    let mut draft = empty;
    let (level, skip) = (draft.level, draft.skip);
    for number in 0..nodes {
        draft = Draft { level, skip, count: 0, ..draft };
        let own = &children[start(number)..start(number + 1)];
        draft.children[0] = own[0].node;
        for (at, child) in own[1..].iter().enumerate() {
            let prefix = node::prefix_of(cells::key(arena, child.left), skip);
            (draft.prefixes[at], draft.cells[at]) = (prefix, child.left);
            draft.children[at + 1] = child.node;
            draft.count = at + 1;
        }
        let right = children.get(start(number + 1)).map_or(Cell::NONE, |next| next.left);
        let node = place(arena, &mut draft, [own[0].left, right]);
        done.push(Child { left: own[0].left, node });
    }
    done
}

/// Gives a node its cell. `bounds` are those on both sides of it.
fn place(arena: &mut Arena, draft: &mut Draft, [left, right]: [Cell; 2]) -> Cell {
    let fence = (left != Cell::NONE && right != Cell::NONE)
        .then(|| node::common(cells::key(arena, left), cells::key(arena, right)));
    draft.raise_skip(arena, fence);
    draft.place(arena).expect(NO_CAP)
}
