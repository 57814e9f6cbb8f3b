//! The inner nodes of a table that are in memory, and what of them is on flash.
//!
//! A node is *settled* where its page on flash has the children that it has, or names fewer of
//! them: it has a page, and no child has moved from it or to it since.

mod rows;

use std::collections::BTreeSet;

use entresol_planted::planted;

use crate::node::{Edition, Facts, Node, NodeId, Stamp, Totals, With};
use crate::sequence::Sequence;

/// The nodes. Number 0 is the root.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// Places of nodes that are gone.
    vacant: Vec<NodeId>,
    unsettled: BTreeSet<u32>,
    /// Of the last page that was made.
    edition: Edition,
    /// Pages of nodes that were absorbed. They are named until their absorbers are settled.
    absorbed: Vec<u32>,
    /// How many nodes left memory.
    departures: u32,
    /// The last change of what is counted, if rows are.
    pub(super) stamp: Option<Stamp>,
}

/// The page of an inner node.
#[derive(Debug)]
pub(crate) struct NodePage {
    pub node: NodeId,
    pub page: u32,
    pub bytes: Vec<u8>,
    /// As of the directory that it is from.
    pub life: Life,
    changes: u32,
    edition: Edition,
    with: With,
}

/// Which of the tables that had a name one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Life {
    /// Changes up to this one belong to a table that had the name before and was dropped.
    pub created: Sequence,
    /// So do pages with numbers below this one.
    pub first: u32,
}

/// Which pages are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    /// Those of nodes with so many changes.
    pub changes_min: u32,
    /// What they say is so when this change is the last.
    pub sequence: Sequence,
    /// Whether the root is a node at all.
    pub has_root: bool,
    /// What they say.
    pub with: With,
}

/// Which nodes leave memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departing {
    /// Those that no search came through lately.
    Unused,
    /// All that can.
    All,
}

/// Whether the page of a node says all that memory knows of it.
fn is_on_flash(node: &Node) -> bool {
    let is_same = node.changes == 0 || planted!("node-left-with-changes");
    is_same
        && node.is_written
        && node.stale.is_none()
        && node.leaving.is_empty()
        && !node.lacks_filters
}

impl Nodes {
    pub(super) fn new(root: Node) -> Nodes {
        Nodes {
            nodes: vec![root],
            vacant: Vec::new(),
            unsettled: BTreeSet::new(),
            edition: Edition::default(),
            absorbed: Vec::new(),
            departures: 0,
            stamp: None,
        }
    }

    pub(super) fn get(&self, node: NodeId) -> &Node {
        &self.nodes[node.0 as usize]
    }

    pub(super) fn get_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.0 as usize]
    }

    /// Adds a node.
    pub(super) fn add(&mut self, mut node: Node) -> NodeId {
        let is_written = node.is_written;
        if let Some(since) = self.next_stamp().filter(|_| !node.totals.are_kept()) {
            // Changes may have come while nobody saw their leaves.
            node.totals = Totals::new(node.count(), since);
        }
        let id = match self.vacant.pop() {
            Some(id) => {
                *self.get_mut(id) = node;
                id
            }
            None => {
                self.nodes.push(node);
                NodeId(self.nodes.len() as u32 - 1)
            }
        };
        if !is_written {
            self.unsettled.insert(id.0);
        }
        id
    }

    /// Takes out a node whose children go to another one.
    pub(super) fn take(&mut self, node: NodeId) -> Node {
        let taken = self.vacate(node);
        self.absorbed.push(taken.page);
        taken
    }

    fn vacate(&mut self, node: NodeId) -> Node {
        let mut gone = Node::new(0, 0);
        gone.is_written = true;
        let taken = std::mem::replace(self.get_mut(node), gone);
        self.vacant.push(node);
        self.unsettled.remove(&node.0);
        taken
    }

    /// Children moved from the node or to it.
    pub(super) fn unsettle(&mut self, node: NodeId) {
        let edition = self.edition;
        let moved = self.get_mut(node);
        moved.stale = Some(edition);
        // What its page says was not said of all its children.
        moved.edition = Edition::default();
        self.unsettled.insert(node.0);
    }

    /// The next page of the node is due, whatever changed.
    pub(super) fn make_due(&mut self, node: NodeId) {
        let edition = self.edition;
        self.get_mut(node).stale = Some(edition);
        self.unsettled.insert(node.0);
    }

    /// Whether all nodes are settled.
    pub(super) fn are_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Whether all that is known is on flash, and no page is left to be removed.
    pub(super) fn are_written(&self) -> bool {
        let is_written = self.nodes.iter().all(|node| node.changes == 0 && !node.lacks_filters);
        let is_whole = is_written && self.are_settled() && self.absorbed.is_empty();
        is_whole && (self.say_rows() || planted!("rows-below-nodes-left-unsaid"))
    }

    /// Lets nodes above leaves leave memory whose pages say all that is known of them: those that
    /// no search came through since the last time, or all. How many left. Nodes higher up stay:
    /// they are few, and keep the way.
    pub(super) fn let_leave(&mut self, which: Departing) -> usize {
        let mut left = 0;
        self.enter_rows();
        // Nodes that are to join their neighbours stay.
        let may_leave = |id: &NodeId| {
            let above = self.get(*id);
            above.level == 2 && above.leaving.is_empty()
        };
        for above in self.ids().filter(may_leave).collect::<Vec<_>>() {
            for index in 0..self.get(above).count() {
                let Some(id) = self.get(above).loaded(index) else { continue };
                let node = self.get(id);
                let was_used = node.take_used() && which == Departing::Unused;
                if was_used || !is_on_flash(node) {
                    continue;
                }
                // It was written in this opening, and nobody changed it since.
                let is_new = node.edition != Edition::default();
                let facts = if is_new { Facts::Exact } else { Facts::Old };
                self.departures = self.departures.wrapping_add(1);
                let departure = self.departures;
                self.get_mut(above).let_leave(index, facts, departure);
                self.vacate(id);
                left += 1;
            }
        }
        left
    }

    /// Of the last page that was made.
    pub(super) fn edition(&self) -> Edition {
        self.edition
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Nodes to write next, with their pages: first those that have none and that no other waits
    /// for, then those that are due.
    pub(super) fn pages_to_write(&mut self, due: Due, life: Life) -> Vec<NodePage> {
        if due.changes_min <= 1 && !planted!("rows-below-nodes-left-unsaid") {
            self.enter_rows();
        }
        self.edition.0 += 1;
        let edition = self.edition;
        let page = |id: NodeId| {
            let node = self.get(id);
            let with = due.with;
            let bytes = node.page_bytes(due.sequence, with, |below| self.get(below).is_written)?;
            let (page, changes) = (node.page, node.changes);
            Some(NodePage { node: id, page, bytes, life, changes, edition, with })
        };
        let others = self.unsettled.iter().filter(|&&id| id != 0).map(|&id| NodeId(id));
        let first: Vec<NodePage> =
            others.filter(|&id| !self.get(id).is_written).filter_map(page).collect();
        if !first.is_empty() {
            return first;
        }
        let is_due = |id: &NodeId| {
            let node = self.get(*id);
            let is_node = id.0 > 0 || due.has_root;
            let has_changed = node.changes >= due.changes_min && node.count() > 0;
            let lacks_filters = node.lacks_filters && due.with == With::Filters;
            let must_be = !node.is_written || node.stale.is_some() || lacks_filters;
            is_node && (has_changed || must_be)
        };
        self.ids().filter(is_due).filter_map(page).collect()
    }

    /// The page of a node is durable.
    pub(super) fn set_written(&mut self, written: &NodePage) {
        let node = self.get_mut(written.node);
        if node.page != written.page {
            return;
        }
        node.is_written = true;
        node.changes = node.changes.saturating_sub(written.changes);
        node.lacks_filters = written.with == With::Facts && node.has_filters();
        if node.stale.is_none_or(|since| since < written.edition) {
            node.stale = None;
            node.edition = written.edition;
            self.unsettled.remove(&written.node.0);
        }
    }

    /// Pages of absorbed nodes that nothing names any more.
    pub(super) fn take_unnamed(&mut self) -> Vec<u32> {
        if self.are_settled() { std::mem::take(&mut self.absorbed) } else { Vec::new() }
    }

    /// Whether pages of absorbed nodes are still there.
    pub(super) fn has_absorbed(&self) -> bool {
        !self.absorbed.is_empty()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.iter().map(Node::memory_bytes).sum()
    }
}
