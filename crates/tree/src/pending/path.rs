//! The way from the root of a table's tree to a leaf.

use crate::pending::arena::{Arena, Cell};
use crate::pending::node::{Fence, Node};

/// A tree grows by a level when its root has 64 keys. Each of these took a split below, of a node
/// that had begun with 32 keys or fewer, so that twelve levels take more than 2⁵⁰ inserts.
const LEVELS_MAX: usize = 12;

/// A node on the way.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) node: Cell,
    /// The child that the way takes, or the entry in the leaf.
    pub(super) index: usize,
    pub(super) fence: Fence,
}

/// The way from the root to a leaf.
#[derive(Clone, Copy)]
pub(super) struct Path {
    steps: [Step; LEVELS_MAX],
    length: usize,
}

impl Path {
    pub(super) fn new() -> Path {
        let step = Step { node: Cell::NONE, index: 0, fence: None };
        Path { steps: [step; LEVELS_MAX], length: 0 }
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.length]
    }

    /// The step to the leaf.
    pub(super) fn last(&self) -> Step {
        self.steps[self.length - 1]
    }

    pub(super) fn last_mut(&mut self) -> &mut Step {
        &mut self.steps[self.length - 1]
    }

    pub(super) fn push(&mut self, node: Cell, index: usize, fence: Fence) {
        self.steps[self.length] = Step { node, index, fence };
        self.length += 1;
    }

    pub(super) fn pop(&mut self) -> Option<Step> {
        self.length = self.length.checked_sub(1)?;
        Some(self.steps[self.length])
    }

    /// The way to a key that the tree has, or to its place.
    pub(super) fn to(arena: &Arena, root: Cell, key: &[u8]) -> Path {
        let mut path = Path::new();
        let (mut node, mut cell, mut fence) = (Node::at(arena, root), root, None);
        while node.level > 0 {
            let index = node.child_of(key, fence);
            path.push(cell, index, fence);
            (cell, fence) = (node.child(index), node.fence(index, fence));
            node = Node::at_level(arena, cell, node.level - 1);
        }
        path.push(cell, node.search(key, fence).unwrap_or_else(|index| index), fence);
        path
    }
}

/// The last step of the way to a key, and whether the leaf has it. Does not write down the way,
/// which most callers can do without.
pub(super) fn find(arena: &Arena, root: Cell, key: &[u8]) -> (Step, bool) {
    let (mut node, mut cell, mut fence) = (Node::at(arena, root), root, None);
    while node.level > 0 {
        let index = node.child_of(key, fence);
        (cell, fence) = (node.child(index), node.fence(index, fence));
        node = Node::at_level(arena, cell, node.level - 1);
    }
    let found = node.search(key, fence);
    (Step { node: cell, index: found.unwrap_or_else(|index| index), fence }, found.is_ok())
}
