//! The inner nodes of a table, loaded as they are asked for.
//!
//! Invariants:
//! 1. Node 0 is the root. While page 1 is a leaf the root is a node of level 1 with that one child.
//! 2. What is loaded is never behind what is on flash: each leaf that a merge makes is entered
//!    before the changes that it holds leave memory.
//! 3. After a crash nodes may lack leaves: whoever meets one enters it by `learn`.
//! 4. A child is absorbed by its left neighbour in the same node, and only once no page on flash
//!    names it any more: right links lead to it until then, and past it afterwards.
//! 5. A node above leaves may leave memory while its page says all that is known of it.
//! 6. What was located before a join says nothing of nodes and indices after it.
//! 7. The filter of a leaf has all keys of its page and of its delta page. What was read before a
//!    merge was entered says nothing of the keys after it.

mod counts;
mod estimates;
mod numbers;
mod written;

use entresol_planted::planted;

use super::joins::{Group, JoinLimits, LeafKeys, Member, Replacement, leaf_bytes, leaver};
use super::nodes::{Life, Nodes};
use super::place::{LeafAt, Learnt, Missing, NewChild, Place, ROOT_PAGE, Wanted};
use crate::filter::{KeyHash, leaf_may_hold};
use crate::format::{Child, Damage, Header, PageKind, Root};
use crate::node::{Facts, Last, Leaving, NODE_BYTES_MAX, Node, NodeId, UNKNOWN};
use crate::sequence::Sequence;

pub(crate) use counts::{Counted, CountedLeaf, Span, Uncounted};
pub(crate) use estimates::Estimated;

/// Inner nodes, and the numbers of pages.
#[derive(Debug)]
pub(crate) struct Directory {
    nodes: Nodes,
    /// Page 1 is a leaf.
    is_small: bool,
    next_page: u32,
    /// Numbers below this one may be used.
    reserved: u32,
    life: Life,
    /// How often pages were joined.
    joins: u64,
    /// How often a merge was entered.
    merges: u64,
}

impl Default for Directory {
    /// Of a table without rows, which has no page.
    fn default() -> Directory {
        let mut root = Node::new(ROOT_PAGE, 1);
        let child = Child { page: ROOT_PAGE, base_bytes: 1, ..Child::default() };
        root.insert(0, b"", child, None);
        Directory {
            nodes: Nodes::new(root),
            is_small: true,
            next_page: ROOT_PAGE + 1,
            reserved: ROOT_PAGE + 1,
            life: Life::default(),
            joins: 0,
            merges: 0,
        }
    }
}

impl Directory {
    /// Of the table whose page 1 is `root`.
    pub(crate) fn of_root(root: &Root<'_>, is_exact: bool) -> Result<Directory, Damage> {
        let is_small = Header::decode(&root.page)?.kind == PageKind::Leaf;
        let nodes = match is_small {
            true => Directory::default().nodes,
            false => Nodes::new(Node::from_page(ROOT_PAGE, &root.page, is_exact)?),
        };
        let life = Life { created: Sequence(root.created), first: root.first };
        let fresh = Directory::default();
        let mut directory = Directory { nodes, is_small, life, ..fresh };
        directory.use_from(life.first);
        Ok(directory)
    }

    /// Begins anew: the table was dropped by the change `created`. Numbers of pages go on, so that
    /// no page of the new table is one of the old table.
    pub(crate) fn restart(&mut self, created: Sequence) {
        let (next_page, reserved, joins) = (self.next_page, self.reserved, self.joins);
        let life = Life { created, first: next_page };
        let stamp = self.nodes.next_stamp();
        *self = Directory { next_page, reserved, life, joins, ..Directory::default() };
        if let Some(stamp) = stamp {
            self.nodes.keep_counts(stamp);
        }
    }

    pub(crate) fn created(&self) -> Sequence {
        self.life.created
    }

    /// Pages with numbers below this one are of a table that was dropped.
    pub(crate) fn first(&self) -> u32 {
        self.life.first
    }

    fn node(&self, node: NodeId) -> &Node {
        self.nodes.get(node)
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Node {
        self.nodes.get_mut(node)
    }

    /// The leaf whose range has `key`.
    pub(crate) fn locate(&self, key: &[u8]) -> Place {
        self.place(&Wanted::At(key))
    }

    /// The leaf whose range has the keys right below `key`; the last leaf where there is none.
    pub(crate) fn locate_before(&self, key: Option<&[u8]>) -> Place {
        self.place(&Wanted::Before(key))
    }

    /// What is known of the leaf whose range has `key`, and the filter of its keys, which is empty
    /// where there is none; `None`, if an inner node on the way is not in memory.
    pub(crate) fn leaf_of(&self, key: &[u8]) -> Option<(&Child, &[u8])> {
        let (node, index) = self.descend(&Wanted::At(key)).ok()?;
        let node = self.node(node);
        Some((node.child(index), node.filter(index)))
    }

    fn place(&self, wanted: &Wanted<'_>) -> Place {
        let (node, index) = match self.descend(wanted) {
            Ok(found) => found,
            Err(missing) => return Place::Missing(missing),
        };
        let of = self.node(node);
        Place::Leaf(LeafAt {
            node,
            index,
            child: *of.child(index),
            is_filtered: !of.filter(index).is_empty(),
            high: of.high_of(index).map(<[u8]>::to_vec),
            created: self.created(),
            joins: self.joins,
            merges: self.merges,
        })
    }

    /// The node right above the leaf, and the leaf's index in it; else the node that is not here.
    fn descend(&self, wanted: &Wanted<'_>) -> Result<(NodeId, usize), Missing> {
        let mut at = NodeId(0);
        loop {
            let node = self.node(at);
            node.set_used();
            let index = match wanted {
                Wanted::At(key) => node.position(key),
                Wanted::Before(Some(key)) => node.position_before(key),
                Wanted::Before(None) => node.count() - 1,
            };
            if node.level == 1 {
                return Ok((at, index));
            }
            let Some(below) = node.loaded(index) else {
                return Err(self.missing(node.child(index).page, at, index, false));
            };
            // The parent may not know the right neighbour: it was written before.
            if self.node(below).high.as_deref().is_some_and(|high| wanted.is_beyond(high)) {
                return Err(self.missing(self.node(below).right, at, index, true));
            }
            at = below;
        }
    }

    /// Whether the leaf or its delta page may hold `key`, which is in the leaf's range. As of the
    /// moment when the leaf was located: the lock was not given up since.
    pub(crate) fn may_hold(&self, at: &LeafAt, key: &[u8]) -> bool {
        !at.is_filtered || leaf_may_hold(self.node(at.node).filter(at.index), KeyHash::of(key))
    }

    fn missing(&self, page: u32, parent: NodeId, index: usize, is_right: bool) -> Missing {
        let (created, joins) = (self.created(), self.joins);
        let residence = self.node(parent).residence(index);
        Missing { page, parent, index, is_right, residence, created, joins }
    }

    /// Enters the page `bytes` of the node `missing`, unless somebody else was faster. Whether it
    /// did.
    pub(crate) fn load(
        &mut self,
        missing: Missing,
        bytes: &[u8],
        is_exact: bool,
    ) -> Result<bool, Damage> {
        let Missing { page, parent, index, is_right, residence, created, joins } = missing;
        if created != self.created() || joins != self.joins {
            return Ok(false);
        }
        let above = self.node(parent);
        let is_there = index < above.count() && above.child(index).page == page;
        let is_known = is_there && !is_right && above.facts_of(index) == Facts::Exact;
        let node = Node::from_page(page, bytes, is_exact || is_known)?;
        if node.level + 1 != above.level {
            let expected = usize::from(above.level) - 1;
            return Err(Damage::new("level of an inner node", node.level.into(), expected));
        }
        let separator = is_right.then(|| self.high_before(page, parent, index)).flatten();
        if let Some(separator) = separator {
            let is_entered =
                index + 1 < above.count() && above.separator(index + 1) == &separator[..];
            if !is_entered {
                let (id, child) = (self.nodes.add(node), Child { page, ..UNKNOWN });
                self.node_mut(parent).insert(index + 1, &separator, child, Some(id));
                self.forget_child(parent, index);
                self.split_if_large(parent, index + 1);
                self.forget_total(&separator);
            }
            return Ok(!is_entered);
        }
        let is_wanted = !is_right
            && index < above.count()
            && above.child(index).page == page
            && above.residence(index) == residence;
        if is_wanted {
            let id = self.nodes.add(node);
            self.node_mut(parent).set_loaded(index, id);
        }
        Ok(is_wanted)
    }

    /// Where the node ends that is child `index`, if page `page` follows it.
    fn high_before(&self, page: u32, parent: NodeId, index: usize) -> Option<Vec<u8>> {
        let above = self.node(parent);
        let below = (index < above.count()).then(|| above.loaded(index)).flatten()?;
        let node = self.node(below);
        node.high.as_deref().filter(|_| node.right == page).map(<[u8]>::to_vec)
    }

    /// A leaf says that its keys end at `high` and that page `right` follows, which the directory
    /// does not know. Whether it was entered: the leaf was located before, and may have changed.
    pub(crate) fn learn(&mut self, leaf: &LeafAt, high: &[u8], right: u32) -> bool {
        if !self.is_current(leaf) {
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

    /// Whether node and index of a leaf that was located are still so.
    fn is_current(&self, leaf: &LeafAt) -> bool {
        leaf.created == self.created() && leaf.joins == self.joins
    }

    /// Puts what a merge made in place of the group that begins at `key`. Whether pages are to join
    /// that were not before.
    ///
    /// # Panics
    /// Where the group is no longer there: only merges change leaves, one at a time.
    pub(crate) fn replace(&mut self, key: &[u8], made: Replacement, leaf_bytes_max: usize) -> bool {
        let Place::Leaf(at) = self.locate(key) else { panic!("a leaf that is merged is known") };
        let Replacement { leaf, keys, absorbed, others } = made;
        self.merges += 1;
        let node = self.node_mut(at.node);
        assert_eq!(node.child(at.index).page, leaf.page, "a leaf is merged by one at a time");
        *node.child_mut(at.index) = leaf;
        match keys {
            LeafKeys::Filter(filter) => node.set_filter(at.index, &filter),
            LeafKeys::More(_) if planted!("filter-without-delta-keys") => {}
            LeafKeys::More(keys) => node.add_keys(at.index, &keys),
        }
        if !absorbed.is_empty() {
            let right = at.index + 1..at.index + 1 + absorbed.len();
            let pages = right.clone().map(|index| node.child(index).page);
            assert!(pages.eq(absorbed), "leaves that were absorbed are where they were");
            node.remove(right.start, right.end);
            self.joins += 1;
        }
        for NewChild { separator, child, filter } in others {
            let Place::Leaf(at) = self.locate(&separator) else { panic!("its node is known") };
            if self.low_of(&at) == separator {
                // A reader met the new leaf to the left and was faster.
                assert_eq!(at.child.page, child.page, "a separator has one leaf");
                let node = self.node_mut(at.node);
                *node.child_mut(at.index) = child;
                node.set_filter(at.index, &filter);
                self.forget_total(&separator);
            } else {
                let (node, index) = (at.node, at.index + 1);
                self.node_mut(node).insert(index, &separator, child, None);
                self.node_mut(node).set_filter(index, &filter);
                self.forget_child(node, index - 1);
                self.split_if_large(node, index);
                self.forget_total(&separator);
            }
        }
        self.forget_total(key);
        let Place::Leaf(at) = self.locate(key) else { panic!("a leaf that is merged is known") };
        let joins = self.consider(&at, leaf_bytes_max);
        self.consider_node(at.node, key) || joins
    }

    /// Looks whether a leaf and a neighbour fit in one; then the right one of both leaves.
    fn consider(&mut self, at: &LeafAt, leaf_bytes_max: usize) -> bool {
        let (node, limits) = (self.node(at.node), JoinLimits::of(leaf_bytes_max));
        let Some(leaver) = leaver(node, at.index, limits, |index| leaf_bytes(node.child(index)))
        else {
            return false;
        };
        self.mark(at.node, leaver);
        true
    }

    /// As `consider`, of the inner node on the way to `key`.
    fn consider_node(&mut self, node: NodeId, key: &[u8]) -> bool {
        if node == NodeId(0) || self.node(node).bytes() >= NODE_BYTES_MAX / 4 {
            return false;
        }
        let parent = self.parent_of(node, key);
        let (above, limits) = (self.node(parent), JoinLimits::of(NODE_BYTES_MAX));
        let bytes = |index: usize| above.loaded(index).map(|below| self.node(below).bytes());
        let Some(leaver) = leaver(above, above.position(key), limits, bytes) else {
            return above.count() == 1;
        };
        self.mark(parent, leaver);
        self.nodes.make_due(parent);
        true
    }

    fn mark(&mut self, node: NodeId, leaver: usize) {
        let since = self.nodes.edition();
        let node = self.node_mut(node);
        let page = node.child_mut(leaver).page;
        node.leaving.add(page, since);
    }

    /// The group of a leaf: what is absorbed when it is merged next.
    pub(crate) fn group(&mut self, leaf: LeafAt, leaf_bytes_max: usize) -> Group {
        let (start, end) = self.fitting(&leaf, leaf_bytes_max);
        let node = self.node(leaf.node);
        let high = |index| node.high_of(index).map(<[u8]>::to_vec);
        let member = |index| Member { child: *node.child(index), high: high(index) };
        let members: Vec<Member> = (start..end).map(member).collect();
        let (child, high) = (members[0].child, high(end - 1));
        Group { at: LeafAt { index: start, child, high, ..leaf }, members }
    }

    /// From where to where children are absorbed together with that of `leaf`. Those that have
    /// grown since they were marked stay.
    fn fitting(&mut self, leaf: &LeafAt, leaf_bytes_max: usize) -> (usize, usize) {
        if self.node(leaf.node).leaving.is_empty() {
            return (leaf.index, leaf.index + 1);
        }
        let (is_ready, node) = (self.is_ready(leaf.node), self.node_mut(leaf.node));
        let mut start = node.absorber(leaf.index, &is_ready);
        let (mut next, mut joined) = (start, 0_usize);
        while next < node.count() {
            let bytes = leaf_bytes(node.child(next)).unwrap_or(usize::MAX);
            if next > start {
                if !is_ready(&node.leaving, node.child(next).page) {
                    break;
                }
                if joined.saturating_add(bytes) > leaf_bytes_max {
                    let page = node.child_mut(next).page;
                    node.leaving.remove(page);
                    if next > leaf.index {
                        break;
                    }
                    (start, joined) = (next, 0);
                }
            }
            joined = joined.saturating_add(bytes);
            next += 1;
        }
        (start, next)
    }

    /// Whether a child of `node` can be absorbed: no page on flash names it.
    fn is_ready(&self, node: NodeId) -> impl Fn(&Leaving, u32) -> bool + use<> {
        let (edition, settled) = (self.node(node).edition, self.nodes.are_settled());
        move |leaving, page| {
            if planted!("leaf-absorbed-while-named") {
                return leaving.contains(page);
            }
            settled && leaving.is_unnamed(page, edition)
        }
    }

    /// From which key on each group has rows that absorbs leaves when it is merged next.
    pub(crate) fn ready_groups(&self) -> Vec<Vec<u8>> {
        let mut lows = Vec::new();
        for id in self.nodes.ids().filter(|&id| self.node(id).level == 1) {
            let (node, is_ready) = (self.node(id), self.is_ready(id));
            let mut index = 1;
            while !node.leaving.is_empty() && index < node.count() {
                if is_ready(&node.leaving, node.child(index).page) {
                    lows.push(node.separator(node.absorber(index, &is_ready)).to_vec());
                    index = node.absorbs_to(index, &is_ready);
                }
                index += 1;
            }
        }
        lows
    }

    /// Joins inner nodes that no page on flash names, and lets the root take the place of an only
    /// child. Called where no page of a node is on its way to flash. How many are gone.
    pub(crate) fn join_nodes(&mut self) -> usize {
        let before = self.joins;
        if !self.nodes.are_settled() {
            return 0;
        }
        for parent in self.nodes.ids() {
            if self.node(parent).level < 2 || self.node(parent).leaving.is_empty() {
                continue;
            }
            for index in (1..self.node(parent).count()).rev() {
                let above = self.node(parent);
                let page = above.child(index).page;
                if above.leaving.is_unnamed(page, above.edition) {
                    self.join_node(parent, index);
                }
            }
        }
        while let Some(only) = self.only_child() {
            self.joins += 1;
            let mut child = self.nodes.take(only);
            self.node_mut(NodeId(0)).take_from(&mut child);
            self.nodes.unsettle(NodeId(0));
        }
        (self.joins - before) as usize
    }

    /// Child `index` of `parent` is absorbed by its left neighbour, or stays where it has grown.
    fn join_node(&mut self, parent: NodeId, index: usize) {
        let above = self.node(parent);
        let (left, right) = (above.loaded(index - 1), above.loaded(index));
        let page = above.child(index).page;
        let fits = |(left, right): (NodeId, NodeId)| {
            let (left, right) = (self.node(left), self.node(right));
            let is_next =
                left.right == page && left.high.as_deref() == Some(above.separator(index));
            is_next && left.bytes() + right.bytes() <= NODE_BYTES_MAX
        };
        let Some((left, right)) = left.zip(right).filter(|pair| fits(*pair)) else {
            let above = self.node_mut(parent);
            above.leaving.remove(page);
            above.changes += 1;
            return;
        };
        self.joins += 1;
        let taken = self.nodes.take(right);
        self.node_mut(left).absorb(taken);
        self.nodes.unsettle(left);
        self.node_mut(parent).remove(index, index + 1);
        self.forget_child(parent, index - 1);
        for node in [left, parent] {
            let low = self.node(node).separator(0).to_vec();
            self.consider_node(node, &low);
        }
    }

    /// The only node below the root.
    fn only_child(&self) -> Option<NodeId> {
        let root = self.node(NodeId(0));
        let only = (root.level > 1 && root.count() == 1).then(|| root.loaded(0)).flatten()?;
        self.node(only).high.is_none().then_some(only)
    }

    /// Whether pages can join now.
    pub(crate) fn is_ready_to_join(&self) -> bool {
        let has_unnamed = |id: NodeId| {
            let (node, is_ready) = (self.node(id), self.is_ready(id));
            (1..node.count()).any(|index| is_ready(&node.leaving, node.child(index).page))
        };
        let has_only_child = self.nodes.are_settled() && self.only_child().is_some();
        has_only_child || self.nodes.ids().any(has_unnamed)
    }

    /// Pages of inner nodes that were absorbed and that nothing names any more.
    pub(crate) fn take_unnamed(&mut self) -> Vec<u32> {
        self.nodes.take_unnamed()
    }

    /// Whether pages are to join, or were joined and are still there.
    pub(crate) fn has_joins(&self) -> bool {
        let leaves = |id: NodeId| !self.node(id).leaving.is_empty();
        self.nodes.has_absorbed() || self.nodes.ids().any(leaves) || self.only_child().is_some()
    }

    /// From which key on a leaf has rows.
    pub(crate) fn low_of(&self, at: &LeafAt) -> &[u8] {
        self.node(at.node).separator(at.index)
    }

    /// Changes what is known of a leaf and its delta page, unless it changed meanwhile. Whether
    /// pages are to join that were not before.
    pub(crate) fn teach(&mut self, at: &LeafAt, learnt: &Learnt, leaf_bytes_max: usize) -> bool {
        if !self.is_current(at) {
            return false;
        }
        // Another delta page may have the size and the word of that before.
        let has_filter = at.merges == self.merges && !learnt.filter.is_empty();
        let node = self.node_mut(at.node);
        let is_same = at.index < node.count() && node.child(at.index) == &at.child;
        if !is_same || learnt.child == at.child && !has_filter {
            return false;
        }
        *node.child_mut(at.index) = learnt.child;
        if has_filter {
            node.set_filter(at.index, &learnt.filter);
        }
        self.consider(at, leaf_bytes_max)
    }

    /// Page 1, which was a leaf, becomes the root over that leaf, now page `page`.
    pub(crate) fn grow(&mut self, page: u32) {
        assert!(self.is_small, "a table grows once");
        self.is_small = false;
        let root = self.node_mut(NodeId(0));
        root.is_written = false;
        root.child_mut(0).page = page;
        self.nodes.unsettle(NodeId(0));
    }

    fn enter(&mut self, node: NodeId, index: usize, separator: &[u8], child: Child) {
        self.node_mut(node).insert(index, separator, child, None);
        self.forget_child(node, index - 1);
        self.split_if_large(node, index);
        self.forget_total(separator);
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
        let id = self.nodes.add(right);
        self.nodes.unsettle(node);
        let parent = self.parent_of(node, &separator);
        let index = self.node(parent).position(&separator) + 1;
        self.node_mut(parent).insert(index, &separator, Child { page, ..UNKNOWN }, Some(id));
        self.forget_child(parent, index - 1);
        self.split_if_large(parent, index);
    }

    /// Copies the root away, so that it can be split: the root itself stays page 1.
    fn move_root_down(&mut self) -> NodeId {
        let page = self.take_number();
        let mut moved = Node::new(page, 0);
        let root = self.node_mut(NodeId(0));
        let level = root.level;
        moved.take_from(root);
        moved.is_written = false;
        let id = self.nodes.add(moved);
        let root = self.node_mut(NodeId(0));
        root.level = level + 1;
        root.insert(0, b"", Child { page, ..UNKNOWN }, Some(id));
        self.nodes.unsettle(id);
        self.nodes.unsettle(NodeId(0));
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

    /// Whether all that it knows is in pages on flash.
    pub(crate) fn is_written(&self) -> bool {
        self.is_small || self.nodes.are_written()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
