//! The inner nodes of a table, loaded as they are asked for.
//!
//! Invariants:
//! 1. Node 0 is the root. While page 1 is a leaf the root is a node of level 1 with that one child.
//! 2. What is loaded is never behind what is on flash: each leaf that a merge makes is entered
//!    before the changes that it holds leave memory.
//! 3. After a crash nodes may lack leaves: whoever meets one enters it by `learn`.

use crate::format::{Child, Damage, Header, PageKind, Root};
use crate::node::{Last, Node, NodeId, UNKNOWN};
use crate::sequence::Sequence;

/// Number of a table's first page.
pub(crate) const ROOT_PAGE: u32 = 1;
/// Numbers of pages that one write of the root sets apart.
const RESERVED_PAGES: u32 = 1024;

/// Where a key's leaf is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Here.
    Leaf(LeafAt),
    /// Behind a node that is not in memory.
    Missing(Missing),
}

/// A leaf, as the directory knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeafAt {
    pub node: NodeId,
    pub index: usize,
    pub child: Child,
    /// Below which key its keys are.
    pub high: Option<Vec<u8>>,
    /// As of the directory: a table that was dropped meanwhile has other nodes.
    pub created: Sequence,
}

/// A node to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    page: u32,
    parent: NodeId,
    /// The child that it is, or right of which it is.
    index: usize,
    is_right: bool,
    created: Sequence,
}

/// What a way down through the nodes leads to.
enum Wanted<'k> {
    /// The page that has the key.
    At(&'k [u8]),
    /// The page that has the keys right below this one; `None`: the last page.
    Before(Option<&'k [u8]>),
}

impl Wanted<'_> {
    /// Whether it is right of a page whose keys are below `high`.
    fn is_beyond(&self, high: &[u8]) -> bool {
        match self {
            Wanted::At(key) => high <= *key,
            Wanted::Before(key) => key.is_none_or(|key| high < key),
        }
    }
}

/// Inner nodes, and the numbers of pages.
#[derive(Debug)]
pub(crate) struct Directory {
    nodes: Vec<Node>,
    /// Page 1 is a leaf.
    is_small: bool,
    next_page: u32,
    /// Numbers below this one may be used.
    reserved: u32,
    /// Changes up to this one belong to a table that had the name before and was dropped.
    created: Sequence,
    /// So do pages with numbers below this one.
    first: u32,
}

impl Missing {
    /// The page to read.
    pub(crate) fn page(&self) -> u32 {
        self.page
    }
}

impl Default for Directory {
    /// Of a table without rows, which has no page.
    fn default() -> Directory {
        let mut root = Node::new(ROOT_PAGE, 1);
        let child = Child { page: ROOT_PAGE, base_bytes: 1, ..Child::default() };
        root.insert(0, b"", child, None);
        Directory {
            nodes: vec![root],
            is_small: true,
            next_page: ROOT_PAGE + 1,
            reserved: ROOT_PAGE + 1,
            created: Sequence(0),
            first: 0,
        }
    }
}

impl Directory {
    /// Of the table whose page 1 is `root`.
    pub(crate) fn of_root(root: &Root<'_>, is_exact: bool) -> Result<Directory, Damage> {
        let is_small = Header::decode(root.page)?.kind == PageKind::Leaf;
        let nodes = match is_small {
            true => Directory::default().nodes,
            false => vec![Node::from_page(ROOT_PAGE, root.page, is_exact)?],
        };
        let (created, first) = (Sequence(root.created), root.first);
        let fresh = Directory::default();
        let mut directory = Directory { nodes, is_small, created, first, ..fresh };
        directory.use_from(first);
        Ok(directory)
    }

    /// Begins anew: the table was dropped by the change `created`. Numbers of pages go on, so that
    /// no page of the new table is one of the old table.
    pub(crate) fn restart(&mut self, created: Sequence) {
        let (next_page, reserved) = (self.next_page, self.reserved);
        let fresh = Directory::default();
        *self = Directory { next_page, reserved, created, first: next_page, ..fresh };
    }

    pub(crate) fn created(&self) -> Sequence {
        self.created
    }

    /// Pages with numbers below this one are of a table that was dropped.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    pub(crate) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.0 as usize]
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.0 as usize]
    }

    /// The leaf whose range has `key`.
    pub(crate) fn locate(&self, key: &[u8]) -> Place {
        self.descend(&Wanted::At(key))
    }

    /// The leaf whose range has the keys right below `key`; the last leaf where there is none.
    pub(crate) fn locate_before(&self, key: Option<&[u8]>) -> Place {
        self.descend(&Wanted::Before(key))
    }

    fn descend(&self, wanted: &Wanted<'_>) -> Place {
        let mut at = NodeId(0);
        loop {
            let node = self.node(at);
            let index = match wanted {
                Wanted::At(key) => node.position(key),
                Wanted::Before(Some(key)) => node.position_before(key),
                Wanted::Before(None) => node.count() - 1,
            };
            if node.level == 1 {
                let high = node.high_of(index).map(<[u8]>::to_vec);
                let (child, created) = (*node.child(index), self.created);
                return Place::Leaf(LeafAt { node: at, index, child, high, created });
            }
            let Some(below) = node.loaded(index) else {
                let page = node.child(index).page;
                return Place::Missing(self.missing(page, at, index, false));
            };
            // The parent may not know the right neighbour: it was written before.
            if self.node(below).high.as_deref().is_some_and(|high| wanted.is_beyond(high)) {
                let page = self.node(below).right;
                return Place::Missing(self.missing(page, at, index, true));
            }
            at = below;
        }
    }

    fn missing(&self, page: u32, parent: NodeId, index: usize, is_right: bool) -> Missing {
        Missing { page, parent, index, is_right, created: self.created }
    }

    /// Enters the page `bytes` of the node `missing`, unless somebody else was faster.
    pub(crate) fn load(
        &mut self,
        missing: Missing,
        bytes: &[u8],
        is_exact: bool,
    ) -> Result<(), Damage> {
        let Missing { page, parent, index, is_right, created } = missing;
        if created != self.created {
            return Ok(());
        }
        let node = Node::from_page(page, bytes, is_exact)?;
        let above = self.node(parent);
        if node.level + 1 != above.level {
            let expected = usize::from(above.level) - 1;
            return Err(Damage::new("level of an inner node", node.level.into(), expected));
        }
        let separator = is_right.then(|| self.high_below(parent, index)).flatten();
        let id = NodeId(self.nodes.len() as u32);
        let above = self.node_mut(parent);
        if let Some(separator) = separator {
            let is_entered =
                index + 1 < above.count() && above.separator(index + 1) == &separator[..];
            if !is_entered {
                above.insert(index + 1, &separator, Child { page, ..UNKNOWN }, Some(id));
                self.nodes.push(node);
                self.split_if_large(parent, index + 1);
            }
        } else if !is_right
            && index < above.count()
            && above.child(index).page == page
            && above.loaded(index).is_none()
        {
            above.set_loaded(index, id);
            self.nodes.push(node);
        }
        Ok(())
    }

    fn high_below(&self, parent: NodeId, index: usize) -> Option<Vec<u8>> {
        let above = self.node(parent);
        let below = (index < above.count()).then(|| above.loaded(index)).flatten()?;
        self.node(below).high.as_deref().map(<[u8]>::to_vec)
    }

    /// A leaf says that its keys end at `high` and that page `right` follows, which the directory
    /// does not know. Whether it was entered: the leaf was located before, and may have changed.
    pub(crate) fn learn(&mut self, leaf: &LeafAt, high: &[u8], right: u32) -> bool {
        if leaf.created != self.created {
            return false;
        }
        let node = self.node(leaf.node);
        let is_there = leaf.index < node.count() && node.child(leaf.index).page == leaf.child.page;
        let is_new = is_there
            && high > node.separator(leaf.index)
            && node.high_of(leaf.index).is_none_or(|known| high < known);
        if is_new {
            self.enter(leaf.node, leaf.index + 1, high, Child { page: right, ..UNKNOWN });
        }
        is_new
    }

    /// Puts what a merge made in place of the leaf at `leaf`: the leaf itself, and those right of
    /// it with their separators.
    ///
    /// # Panics
    /// Where the leaf is no longer there: only merges change leaves, one at a time.
    pub(crate) fn replace(&mut self, key: &[u8], leaf: Child, others: Vec<NewChild>) {
        let Place::Leaf(at) = self.locate(key) else { panic!("a leaf that is merged is known") };
        let node = self.node_mut(at.node);
        assert_eq!(node.child(at.index).page, leaf.page, "a leaf is merged by one at a time");
        *node.child_mut(at.index) = leaf;
        for NewChild { separator, child } in others {
            let Place::Leaf(at) = self.locate(&separator) else { panic!("its node is known") };
            if self.low_of(&at) == separator {
                // A reader met the new leaf to the left and was faster.
                assert_eq!(at.child.page, child.page, "a separator has one leaf");
                *self.node_mut(at.node).child_mut(at.index) = child;
            } else {
                self.enter(at.node, at.index + 1, &separator, child);
            }
        }
    }

    /// From which key on a leaf has rows.
    pub(crate) fn low_of(&self, at: &LeafAt) -> &[u8] {
        self.node(at.node).separator(at.index)
    }

    /// Changes what is known of a leaf and its delta page, unless it changed meanwhile.
    pub(crate) fn set_child(&mut self, at: &LeafAt, child: Child) {
        if at.created != self.created {
            return;
        }
        let node = self.node_mut(at.node);
        if at.index < node.count() && node.child(at.index) == &at.child {
            *node.child_mut(at.index) = child;
        }
    }

    /// Page 1, which was a leaf, becomes the root over that leaf, now page `page`.
    pub(crate) fn grow(&mut self, page: u32) {
        assert!(self.is_small, "a table grows once");
        self.is_small = false;
        let root = &mut self.nodes[0];
        root.is_written = false;
        root.child_mut(0).page = page;
    }

    fn enter(&mut self, node: NodeId, index: usize, separator: &[u8], child: Child) {
        self.node_mut(node).insert(index, separator, child, None);
        self.split_if_large(node, index);
    }

    /// Splits `node`, into which child `entered` came, and those above it, as far as they are too
    /// large.
    fn split_if_large(&mut self, node: NodeId, entered: usize) {
        if !self.node(node).is_too_large() {
            return;
        }
        let node = if node == NodeId(0) { self.move_root_down() } else { node };
        let last = match entered + 1 == self.node(node).count() {
            true => Last::CameLast,
            false => Last::IsOld,
        };
        let page = self.take_number();
        let right = self.node_mut(node).split(page, last);
        let separator = right.separator(0).to_vec();
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(right);
        let parent = self.parent_of(node, &separator);
        let index = self.node(parent).position(&separator) + 1;
        self.node_mut(parent).insert(index, &separator, Child { page, ..UNKNOWN }, Some(id));
        self.split_if_large(parent, index);
    }

    /// Copies the root away, so that it can be split: the root itself stays page 1.
    fn move_root_down(&mut self) -> NodeId {
        let page = self.take_number();
        let id = NodeId(self.nodes.len() as u32);
        let mut moved = Node::new(page, 0);
        let root = &mut self.nodes[0];
        let level = root.level;
        moved.take_from(root);
        moved.is_written = false;
        root.level = level + 1;
        root.insert(0, b"", Child { page, ..UNKNOWN }, Some(id));
        self.nodes.push(moved);
        id
    }

    /// The node whose child `node` is, on the way to `key`.
    fn parent_of(&self, node: NodeId, key: &[u8]) -> NodeId {
        let mut at = NodeId(0);
        loop {
            let above = self.node(at);
            let below = above.loaded(above.position(key)).expect("the way to a node is loaded");
            if below == node {
                return at;
            }
            at = below;
        }
    }

    /// A number that no page has had.
    pub(crate) fn take_number(&mut self) -> u32 {
        let number = self.next_page;
        self.next_page += 1;
        number
    }

    /// Whether the root must be written before pages with the numbers taken so far are.
    pub(crate) fn lacks_numbers(&self) -> bool {
        self.next_page > self.reserved
    }

    /// Sets numbers apart; what the root then says of them.
    pub(crate) fn reserve_numbers(&mut self) -> u32 {
        self.reserved = self.next_page + RESERVED_PAGES;
        self.reserved
    }

    /// Whether numbers that are set apart were not taken.
    pub(crate) fn has_spare_numbers(&self) -> bool {
        self.reserved > self.next_page
    }

    /// Gives numbers back that are set apart and were not taken; what the root then says of them.
    pub(crate) fn give_numbers_back(&mut self) -> Option<u32> {
        let has_spare = self.has_spare_numbers();
        self.reserved = self.reserved.min(self.next_page);
        has_spare.then_some(self.reserved)
    }

    /// Whether all that it knows is in pages on flash.
    pub(crate) fn is_written(&self) -> bool {
        self.is_small || self.nodes.iter().all(|node| node.is_written && node.changes == 0)
    }

    /// No number below `number` is new.
    pub(crate) fn use_from(&mut self, number: u32) {
        self.next_page = self.next_page.max(number);
        self.reserved = self.reserved.max(number);
    }

    /// Nodes to write next, with their pages: first those that have none and that no other waits
    /// for, then those with `changes_min` changes.
    pub(crate) fn to_write(&self, changes_min: u32, sequence: Sequence) -> Vec<NodePage> {
        let ids = || (0..self.nodes.len() as u32).map(NodeId);
        let page = |id: NodeId| {
            let node = self.node(id);
            let bytes = node.page_bytes(sequence, |below| self.node(below).is_written)?;
            let (page, changes, created) = (node.page, node.changes, self.created);
            Some(NodePage { node: id, page, changes, bytes, created, first: self.first })
        };
        let unwritten = ids().skip(1).filter(|&id| !self.node(id).is_written);
        let first: Vec<NodePage> = unwritten.filter_map(page).collect();
        if !first.is_empty() {
            return first;
        }
        let is_due = |id: &NodeId| {
            let node = self.node(*id);
            !(*id == NodeId(0) && self.is_small)
                && (node.changes >= changes_min || !node.is_written)
        };
        ids().filter(is_due).filter_map(page).collect()
    }

    /// The page of a node is durable. Whether the node is still there.
    pub(crate) fn set_written(&mut self, written: &NodePage) -> bool {
        if written.created != self.created {
            return false;
        }
        let node = self.node_mut(written.node);
        node.is_written = true;
        node.changes = node.changes.saturating_sub(written.changes);
        true
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.iter().map(Node::memory_bytes).sum()
    }
}

/// The page of an inner node.
#[derive(Debug)]
pub(crate) struct NodePage {
    pub node: NodeId,
    pub page: u32,
    pub bytes: Vec<u8>,
    /// As of the directory that it is from.
    pub created: Sequence,
    pub first: u32,
    changes: u32,
}

/// A leaf that a split made, and from which key on it has rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewChild {
    pub separator: Vec<u8>,
    pub child: Child,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(page: u32) -> Child {
        Child { page, base_bytes: 100, delta_bytes: 0, ..UNKNOWN }
    }

    /// A reader that came between the write of a left leaf and its entry here met the new high key
    /// and entered the right neighbour. The merge entered it again, and the page of the node had
    /// two equal separators, which no opening took.
    #[test]
    fn a_leaf_that_a_reader_entered_before_the_merge_is_entered_once() {
        let mut directory = Directory::default();
        directory.grow(2);
        let Place::Leaf(at) = directory.locate(b"a") else { panic!("a leaf") };
        assert!(directory.learn(&at, b"m", 3));
        let others = vec![
            NewChild { separator: b"m".to_vec(), child: child(3) },
            NewChild { separator: b"t".to_vec(), child: child(4) },
        ];
        directory.replace(b"a", child(2), others);
        let pages = directory.to_write(0, Sequence(9));
        let node = Node::from_page(1, &pages[0].bytes, true).expect("a node that can be read");
        let children: Vec<_> = (0..node.count()).map(|index| *node.child(index)).collect();
        assert_eq!(children, [child(2), child(3), child(4)]);
    }
}
