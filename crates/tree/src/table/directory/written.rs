//! What of a directory is written, and what leaves memory.

use super::Directory;
use crate::node::With;
use crate::sequence::Sequence;
use crate::table::nodes::{Departing, Due, NodePage};

impl Directory {
    /// Nodes to write next, with their pages: first those that have none and that no other waits
    /// for, then those with `changes_min` changes.
    pub(crate) fn pages_to_write(&mut self, changes_min: u32, sequence: Sequence) -> Vec<NodePage> {
        // Filters would be much of what is written, and count after a close only, and for nodes
        // that leave memory.
        let with = if changes_min <= 1 { With::Filters } else { With::Facts };
        let due = Due { changes_min, sequence, has_root: !self.is_small, with };
        self.nodes.pages_to_write(due, self.life)
    }

    /// The page of a node is durable. Whether the node is still there.
    pub(crate) fn set_written(&mut self, written: &NodePage) -> bool {
        let is_there = written.life == self.life;
        if is_there {
            self.nodes.set_written(written);
        }
        is_there
    }

    /// Lets inner nodes leave memory; how many left.
    pub(crate) fn let_nodes_leave(&mut self, which: Departing) -> usize {
        self.nodes.let_leave(which)
    }
}
