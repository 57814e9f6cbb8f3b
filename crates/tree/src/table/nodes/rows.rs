//! What pages of inner nodes say of the rows below them, in tables that keep counts.
//!
//! A leaf's rows are entered with each merge. Those of inner nodes are entered in their parents
//! before all of a table is written, and before a node leaves memory: more often would write nodes
//! high up with each round.

use super::Nodes;
use crate::format::Child;
use crate::node::{NodeId, Stamp, Totals};
use crate::table::joins::known_rows;

impl Nodes {
    /// All nodes get totals, none of which is known.
    pub(in crate::table) fn keep_counts(&mut self, since: Stamp) {
        self.stamp = Some(since);
        for id in self.ids() {
            let node = self.get_mut(id);
            node.totals = Totals::new(node.count(), since);
        }
    }

    /// The next change of what is counted, if rows are.
    pub(in crate::table) fn next_stamp(&mut self) -> Option<Stamp> {
        let stamp = self.stamp.as_mut()?;
        stamp.0 += 1;
        Some(*stamp)
    }

    /// Whether the table keeps counts.
    pub(in crate::table) fn are_counted(&self) -> bool {
        self.stamp.is_some()
    }

    /// Whether each node says how many rows are below it.
    pub(super) fn say_rows(&self) -> bool {
        self.stamp.is_none() || self.ids().all(|id| self.unsaid(id).is_empty())
    }

    /// Enters in each node how many rows are below it.
    pub(super) fn enter_rows(&mut self) {
        if self.stamp.is_none() {
            return;
        }
        for id in self.ids() {
            for Unsaid { index, child } in self.unsaid(id) {
                *self.get_mut(id).child_mut(index) = child;
            }
        }
    }

    /// Children of a node that are inner nodes in memory, and of which it says something else than
    /// what is so.
    fn unsaid(&self, id: NodeId) -> Vec<Unsaid> {
        let node = self.get(id);
        if node.level < 2 {
            return Vec::new();
        }
        let unsaid = |index| {
            let said = *node.child(index);
            let rows = node.loaded(index).map(|_| self.rows_at(id, index))?;
            let rows = rows.and_then(|rows| u32::try_from(rows).ok());
            let base_bytes = u16::from(rows.is_some());
            let child = Child { base_bytes, rows: rows.unwrap_or(0), ..said };
            (child != said).then_some(Unsaid { index, child })
        };
        (0..node.count()).filter_map(unsaid).collect()
    }

    /// Rows of pages at or below child `index` of a node, where they are known.
    fn rows_at(&self, id: NodeId, index: usize) -> Option<u64> {
        let node = self.get(id);
        let Some(below) = (node.level > 1).then(|| node.loaded(index)).flatten() else {
            return known_rows(node.child(index));
        };
        let child = self.get(below);
        if child.high.as_deref() != node.high_of(index) {
            return None;
        }
        (0..child.count()).map(|index| self.rows_at(below, index)).sum()
    }
}

/// What a node does not say of a child.
struct Unsaid {
    index: usize,
    child: Child,
}
