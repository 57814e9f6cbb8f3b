//! Nodes of the tree of a table, as they lie in cells of the arena.
//!
//! ```text
//! count 1, capacity 1, skip 12 bits, level 4 bits, first child 4; groups of up to 8 slots:
//! prefix 8 for each slot, cell 4 for each, and above level 0 the child to its right 4 for each
//! ```
//! The cells of a leaf, level 0, are entries. Those of other nodes are bounds: keys below the
//! first bound are in the first child, the others in the child to the right of the last bound that
//! is not above them. A node may be empty.
//!
//! **Prefixes.** All keys of a node begin with the same `skip` bytes. The eight bytes that follow
//! are the key's prefix, as a number that compares as they do, and mostly tell where a key belongs
//! without a look at any other key. For all of this a key goes on with zeros beyond its end: such
//! keys compare as the keys do, but for equal ones, and among these the keys themselves decide.
//!
//! **Groups** put all bytes that a search may need at places that do not depend on the capacity, so
//! that a processor fetches them at once.

use std::cmp::Ordering;
use std::hint::black_box;

use crate::pending::arena::{Arena, Cell};
use crate::pending::cells;

/// The most keys of a node.
pub(super) const KEYS_MAX: usize = 64;
const HEADER_BYTES: usize = 8;
const FIRST_CHILD: usize = 4;
const PREFIX_BYTES: usize = 8;
const CELL_BYTES: usize = 4;
/// Slots of a group.
const GROUP: usize = 8;

/// With how many equal bytes all keys of a node begin, as the bounds on both sides of it tell; or
/// `None` where a node has a bound on one side at most.
pub(super) type Fence = Option<usize>;

/// Where the parts of a node are in its cell.
#[derive(Clone, Copy)]
struct Places {
    capacity: usize,
    slot_bytes: usize,
}

impl Places {
    fn new(level: usize, capacity: usize) -> Places {
        let slot_bytes = PREFIX_BYTES + CELL_BYTES + if level == 0 { 0 } else { CELL_BYTES };
        Places { capacity, slot_bytes }
    }

    fn group(self, group: usize) -> usize {
        HEADER_BYTES + group * GROUP * self.slot_bytes
    }

    /// How many slots a group has: the last one may have fewer.
    fn slots(self, group: usize) -> usize {
        (self.capacity - group * GROUP).min(GROUP)
    }

    fn prefix(self, slot: usize) -> usize {
        self.group(slot / GROUP) + slot % GROUP * PREFIX_BYTES
    }

    fn cell(self, slot: usize) -> usize {
        let group = slot / GROUP;
        self.group(group) + self.slots(group) * PREFIX_BYTES + slot % GROUP * CELL_BYTES
    }

    fn child(self, child: usize) -> usize {
        match child.checked_sub(1) {
            None => FIRST_CHILD,
            Some(slot) => self.cell(slot) + self.slots(slot / GROUP) * CELL_BYTES,
        }
    }
}

/// A node to read.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    arena: &'a Arena,
    bytes: &'a [u8],
    places: Places,
    pub(super) count: usize,
    pub(super) skip: usize,
    pub(super) level: usize,
}

impl<'a> Node<'a> {
    pub(super) fn at(arena: &'a Arena, cell: Cell) -> Node<'a> {
        let level = usize::from(arena.bytes(cell)[3] >> 4);
        Node::at_level(arena, cell, level)
    }

    /// A node whose level is known from its parent's. A processor fetches its groups, whose size
    /// depends on the level, before it has the header.
    pub(super) fn at_level(arena: &'a Arena, cell: Cell, level: usize) -> Node<'a> {
        let bytes = arena.bytes(cell);
        let (count, capacity) = (usize::from(bytes[0]), usize::from(bytes[1]));
        let skip = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]) & 0xfff);
        Node { arena, bytes, places: Places::new(level, capacity), count, skip, level }
    }

    pub(super) fn capacity(&self) -> usize {
        self.places.capacity
    }

    pub(super) fn prefix(&self, slot: usize) -> u64 {
        self.prefix_at(self.places.prefix(slot))
    }

    fn prefix_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(*self.bytes[at..].first_chunk().expect("nodes have room for prefixes"))
    }

    pub(super) fn cell(&self, slot: usize) -> Cell {
        self.cell_at(self.places.cell(slot))
    }

    pub(super) fn child(&self, child: usize) -> Cell {
        self.cell_at(self.places.child(child))
    }

    fn cell_at(&self, at: usize) -> Cell {
        Cell::from_bytes(*self.bytes[at..].first_chunk().expect("nodes have room for all cells"))
    }

    pub(super) fn key(&self, slot: usize) -> &'a [u8] {
        cells::key(self.arena, self.cell(slot))
    }

    /// Where a key is, or where it belongs.
    pub(super) fn search(&self, key: &[u8], fence: Fence) -> Result<usize, usize> {
        if self.skip > fence.unwrap_or(0) && self.count > 0 {
            match compare_start(key, self.key(0), self.skip) {
                Ordering::Less => return Err(0),
                Ordering::Greater => return Err(self.count),
                Ordering::Equal => {}
            }
        }
        let target = prefix_of(key, self.skip);
        let mut low = self.below(target);
        let same = |slot: &usize| self.prefix(*slot) == target;
        let mut high = low + (low..self.count).take_while(same).count();
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// How many prefixes are below a target. The ends of all groups are read first, and at once: a
    /// search by halves would wait for one line of memory after another.
    fn below(&self, target: u64) -> usize {
        let group_bytes = GROUP * self.places.slot_bytes;
        let mut group = HEADER_BYTES;
        let (mut groups, mut ends) = (0, 0);
        for _ in 0..self.count / GROUP {
            let last = self.prefix_at(group + (GROUP - 1) * PREFIX_BYTES);
            groups += usize::from(last < target);
            group += group_bytes;
            ends ^= self.bytes[group - 1];
        }
        // What these bytes are does not matter: their lines have the cells that are read next.
        black_box(ends);
        let group = self.places.group(groups);
        let slots = GROUP.min(self.count - groups * GROUP);
        let (prefixes, _) = self.bytes[group..group + slots * PREFIX_BYTES].as_chunks();
        let below = prefixes.iter().filter(|prefix| u64::from_le_bytes(**prefix) < target);
        groups * GROUP + below.count()
    }

    /// Which child has a key.
    pub(super) fn child_of(&self, key: &[u8], fence: Fence) -> usize {
        match self.search(key, fence) {
            Ok(index) => index + 1,
            Err(index) => index,
        }
    }

    /// What the bounds of a child say of the keys in it.
    pub(super) fn fence(&self, child: usize, own: Fence) -> Fence {
        if child == 0 || child == self.count {
            return own;
        }
        let difference = self.prefix(child - 1) ^ self.prefix(child);
        let same = self.skip + difference.leading_zeros() as usize / 8;
        Some(own.map_or(same, |known| known.max(same)))
    }
}

/// The eight bytes of a key after the first `skip`, as a number that compares as they do.
pub(super) fn prefix_of(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    match rest.first_chunk() {
        Some(prefix) => u64::from_be_bytes(*prefix),
        None => {
            let mut prefix = [0; PREFIX_BYTES];
            prefix[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(prefix)
        }
    }
}

/// Compares the first bytes of two keys, which go on with zeros beyond their ends.
fn compare_start(left: &[u8], right: &[u8], bytes: usize) -> Ordering {
    if let (Some(left), Some(right)) = (left.get(..bytes), right.get(..bytes)) {
        return left.cmp(right);
    }
    let padded = |key: &[u8], at: usize| key.get(at).copied().unwrap_or(0);
    let mut orders = (0..bytes).map(|at| padded(left, at).cmp(&padded(right, at)));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// With how many equal bytes two keys begin.
pub(super) fn common(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// The size of a node.
pub(super) fn node_bytes(level: usize, capacity: usize) -> usize {
    HEADER_BYTES + capacity * Places::new(level, capacity).slot_bytes
}

/// How many keys a cell of some size has room for.
pub(super) fn capacity_of(level: usize, bytes: usize) -> usize {
    ((bytes - HEADER_BYTES) / Places::new(level, 0).slot_bytes).min(KEYS_MAX)
}

/// What a node is to have, but for its prefixes and cells.
pub(super) struct Header {
    pub(super) level: usize,
    pub(super) skip: usize,
    pub(super) count: usize,
}

/// Gives a cell the header of a node, with the capacity that its size allows.
pub(super) fn write_header(arena: &mut Arena, node: Cell, header: &Header) {
    let capacity = capacity_of(header.level, arena.cell_bytes(node));
    assert!(header.count <= capacity, "the cell has room for all keys");
    let field = (header.skip | header.level << 12) as u16;
    let bytes = arena.bytes_mut(node);
    (bytes[0], bytes[1]) = (header.count as u8, capacity as u8);
    bytes[2..4].copy_from_slice(&field.to_le_bytes());
}

/// Writes one slot.
pub(super) fn set_slot(arena: &mut Arena, node: Cell, slot: usize, prefix: u64, cell: Cell) {
    let at = Node::at(arena, node).places.prefix(slot);
    arena.bytes_mut(node)[at..at + PREFIX_BYTES].copy_from_slice(&prefix.to_le_bytes());
    set_cell(arena, node, slot, cell);
}

/// Puts another cell in the place of an entry of the same key.
pub(super) fn set_cell(arena: &mut Arena, node: Cell, slot: usize, entry: Cell) {
    let at = Node::at(arena, node).places.cell(slot);
    arena.bytes_mut(node)[at..at + CELL_BYTES].copy_from_slice(&entry.to_bytes());
}

/// Says in which cell a child lies.
pub(super) fn set_child(arena: &mut Arena, node: Cell, child: usize, to: Cell) {
    let at = Node::at(arena, node).places.child(child);
    arena.bytes_mut(node)[at..at + CELL_BYTES].copy_from_slice(&to.to_bytes());
}

/// Inserts an entry into a leaf that has room and whose `skip` bytes the key shares.
pub(super) fn insert(arena: &mut Arena, leaf: Cell, slot: usize, prefix: u64, entry: Cell) {
    let Node { count, places, level, .. } = Node::at(arena, leaf);
    assert!(level == 0 && count < places.capacity && slot <= count, "a leaf with room");
    let bytes = arena.bytes_mut(leaf);
    bytes[0] = count as u8 + 1;
    for group in (slot / GROUP..=count / GROUP).rev() {
        let first = slot.max(group * GROUP);
        let last = count.min(group * GROUP + GROUP - 1);
        let (from, to) = (places.prefix(first), places.prefix(last));
        bytes.copy_within(from..to, from + PREFIX_BYTES);
        let (from, to) = (places.cell(first), places.cell(last));
        bytes.copy_within(from..to, from + CELL_BYTES);
        if first > slot {
            let carried = places.prefix(first - 1);
            bytes.copy_within(carried..carried + PREFIX_BYTES, places.prefix(first));
            let carried = places.cell(first - 1);
            bytes.copy_within(carried..carried + CELL_BYTES, places.cell(first));
        }
    }
    set_slot(arena, leaf, slot, prefix, entry);
}
