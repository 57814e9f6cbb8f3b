//! A node taken out of its cell, to be changed as a whole and put back.

use crate::pending::arena::{Arena, Cell, Full};
use crate::pending::cells;
use crate::pending::node::{self, Fence, Header, KEYS_MAX, Node};

/// New prefixes are made once the old ones agree in this many of their bytes. Making them reads
/// all keys of a node.
const SKIP_STEP: usize = 4;

/// A node out of its cell.
pub(super) struct Draft {
    pub(super) level: usize,
    pub(super) skip: usize,
    pub(super) count: usize,
    pub(super) prefixes: [u64; KEYS_MAX],
    pub(super) cells: [Cell; KEYS_MAX],
    pub(super) children: [Cell; KEYS_MAX + 1],
}

impl Draft {
    pub(super) fn new(level: usize) -> Draft {
        Draft {
            level,
            skip: 0,
            count: 0,
            prefixes: [0; KEYS_MAX],
            cells: [Cell::NONE; KEYS_MAX],
            children: [Cell::NONE; KEYS_MAX + 1],
        }
    }

    /// A copy of the node in a cell.
    pub(super) fn of(arena: &Arena, cell: Cell) -> Draft {
        let node = Node::at(arena, cell);
        let mut draft = Draft::new(node.level);
        draft.skip = node.skip;
        draft.count = node.count;
        for index in 0..node.count {
            draft.prefixes[index] = node.prefix(index);
            draft.cells[index] = node.cell(index);
        }
        if node.level > 0 {
            for index in 0..=node.count {
                draft.children[index] = node.child(index);
            }
        }
        draft
    }

    /// Puts the node into a new cell, with some room for more.
    pub(super) fn place(&self, arena: &mut Arena) -> Result<Cell, Full> {
        let capacity = self.count.next_multiple_of((self.count / 4).clamp(1, 8));
        let cell = arena.allocate(node::node_bytes(self.level, capacity))?;
        self.write(arena, cell);
        Ok(cell)
    }

    /// Puts the node back into its cell, or into a smaller one if half of it would be empty.
    pub(super) fn put_back(&self, arena: &mut Arena, cell: Cell) -> Cell {
        if node::capacity_of(self.level, arena.cell_bytes(cell)) / 2 > self.count
            && let Ok(smaller) = self.place(arena)
        {
            arena.free(cell);
            return smaller;
        }
        self.write(arena, cell);
        cell
    }

    /// Puts the node into a cell that has room for it.
    pub(super) fn write(&self, arena: &mut Arena, cell: Cell) {
        let Draft { level, skip, count, .. } = *self;
        node::write_header(arena, cell, &Header { level, skip, count });
        for slot in 0..count {
            node::set_slot(arena, cell, slot, self.prefixes[slot], self.cells[slot]);
        }
        if level > 0 {
            for child in 0..=count {
                node::set_child(arena, cell, child, self.children[child]);
            }
        }
    }

    pub(super) fn key<'a>(&self, arena: &'a Arena, index: usize) -> &'a [u8] {
        cells::key(arena, self.cells[index])
    }

    /// Inserts a cell where its key belongs, and above a leaf the child to its right.
    pub(super) fn insert(&mut self, arena: &Arena, index: usize, cell: Cell, right: Cell) {
        let key = cells::key(arena, cell);
        let skip = match self.count.min(self.skip) {
            0 => 0,
            _ => node::common(&key[..key.len().min(self.skip)], self.key(arena, 0)),
        };
        if skip < self.skip {
            self.make_prefixes(arena, skip);
        }
        self.prefixes.copy_within(index..self.count, index + 1);
        self.cells.copy_within(index..self.count, index + 1);
        self.prefixes[index] = node::prefix_of(key, self.skip);
        self.cells[index] = cell;
        if self.level > 0 {
            self.children.copy_within(index + 1..=self.count, index + 2);
            self.children[index + 1] = right;
        }
        self.count += 1;
    }

    /// Skips more bytes of all keys if that helps, and if it costs no look at a key for each
    /// search: bounds on both sides must tell that the bytes are equal.
    pub(super) fn raise_skip(&mut self, arena: &Arena, fence: Fence) {
        let ends = self.prefixes[0] ^ self.prefixes[self.count.saturating_sub(1)];
        if self.count > 1 && ends.leading_zeros() as usize / 8 >= SKIP_STEP {
            let most = fence.unwrap_or(usize::MAX).min(self.common(arena));
            if most >= self.skip + SKIP_STEP {
                self.make_prefixes(arena, most);
            }
        }
    }

    /// With how many equal bytes all keys begin.
    pub(super) fn common(&self, arena: &Arena) -> usize {
        node::common(self.key(arena, 0), self.key(arena, self.count - 1))
    }

    /// Makes all prefixes anew.
    pub(super) fn make_prefixes(&mut self, arena: &Arena, skip: usize) {
        self.skip = skip;
        for index in 0..self.count {
            self.prefixes[index] = node::prefix_of(self.key(arena, index), skip);
        }
    }
}
