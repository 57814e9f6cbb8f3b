//! How many rows a table has between two keys: sums over the children of the nodes on the way.
//!
//! Invariants:
//! 1. A total that is known has the rows of pages and of changes that wait. Whoever changes a row,
//!    or what is known of pages, forgets the totals on the way to it.
//! 2. The rows that a node says of a child are those of pages alone. They count where no change
//!    waits for it.
//! 3. The page of an inner node may be behind in the rows of inner nodes below it. It is believed
//!    only where all of a table was written since.

use entresol_planted::planted;

use super::{Directory, NodeId, Place};
use crate::node::Stamp;
use crate::sequence::Sequence;
use crate::table::copied::Keys;
use crate::table::joins::known_rows;
use crate::table::place::{LeafAt, LeafToCount, Missing};

/// What a count knows beside the directory.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'c> {
    /// Whether changes of the keys wait that came after that one. A change that is in pages may
    /// still be there, as after an opening.
    pub waits: &'c dyn Fn(Keys<'_>, Sequence) -> bool,
    /// Leaves that were counted for it.
    pub leaves: &'c [CountedLeaf],
}

/// How many rows a leaf has in the range that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedLeaf {
    /// Where the leaf begins and ends.
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
    pub rows: u64,
}

/// Keys from `low` on, and below `high`; none is no bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a> {
    pub low: Option<&'a [u8]>,
    pub high: Option<&'a [u8]>,
}

/// Why a count is not known.
#[derive(Debug)]
pub(crate) enum Uncounted {
    /// A node is not in memory.
    Node(Missing),
    /// A leaf is to be counted.
    Leaf(Box<LeafToCount>),
}

/// Where the row with a certain rank is.
#[derive(Debug)]
pub(crate) struct RankedLeaf {
    pub leaf: LeafToCount,
    /// Rows of the leaf before it.
    pub before: u64,
}

/// Some rows.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    rows: u64,
    /// Leaves are among them that changed since they were counted.
    is_loose: bool,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.rows += other.rows;
        self.is_loose |= other.is_loose;
    }
}

impl Directory {
    /// It keeps counts from now on. Nobody has counted anything.
    pub(crate) fn keep_counts(&mut self) {
        self.nodes.keep_counts(Stamp::default());
    }

    /// Rows on the way to `key` changed, or what is known of them. Nothing where the table keeps no
    /// counts.
    pub(crate) fn forget_total(&mut self, key: &[u8]) {
        let Some(stamp) = self.nodes.next_stamp() else { return };
        let mut at = NodeId(0);
        loop {
            let node = self.nodes.get_mut(at);
            let index = node.position(key);
            node.totals.forget(index, stamp);
            let below = if node.level > 1 { node.loaded(index) } else { None };
            let Some(below) = below else { return };
            at = below;
        }
    }

    /// Rows moved from child `index` of `node`, or to it. Those of the node are as many as before.
    pub(super) fn forget_child(&mut self, node: NodeId, index: usize) {
        if let Some(stamp) = self.nodes.next_stamp() {
            self.nodes.get_mut(node).totals.forget(index, stamp);
        }
    }

    /// How many rows there are in `span`.
    pub(crate) fn count(&mut self, span: Span<'_>, counted: Counted<'_>) -> Result<u64, Uncounted> {
        self.count_in(NodeId(0), span, counted).map(|sum| sum.rows)
    }

    /// Rows below a node that are in `span`.
    fn count_in(
        &mut self,
        id: NodeId,
        span: Span<'_>,
        counted: Counted<'_>,
    ) -> Result<Sum, Uncounted> {
        let node = self.node(id);
        node.set_used();
        let (first, last) = (
            span.low.map_or(0, |low| node.position(low)),
            span.high.map_or(node.count() - 1, |high| node.position(high)),
        );
        let mut sum = Sum::default();
        for index in first..=last {
            let node = self.node(id);
            let low = span.low.filter(|low| node.separator(index) < *low);
            let high = span.high.filter(|_| index == last);
            if high.is_some_and(|high| high <= node.separator(index)) {
                continue;
            }
            sum.add(match (low, high) {
                (None, None) => self.total(id, index, counted)?,
                (low, high) => self.part(Child { node: id, index }, Span { low, high }, counted)?,
            });
        }
        Ok(sum)
    }

    /// Rows at or below a child that are in `span`, which has not all of it.
    fn part(
        &mut self,
        child: Child,
        span: Span<'_>,
        counted: Counted<'_>,
    ) -> Result<Sum, Uncounted> {
        let Child { node: id, index } = child;
        if self.node(id).level == 1 {
            let known = self.counted(child, counted);
            return known.ok_or_else(|| Uncounted::Leaf(Box::new(self.leaf_to_count(child))));
        }
        let below = self.below(child)?;
        let (end, high) = (self.node(id).high_of(index), self.node(below).high.as_deref());
        let is_whole = match span.high {
            Some(until) => high.is_none_or(|high| until <= high),
            None => high == end,
        };
        match is_whole {
            true => self.count_in(below, span, counted),
            false => Err(self.lacks_right(child, below)),
        }
    }

    /// Where the row is that has `rank` rows before it; `None`: there are not so many rows.
    pub(crate) fn ranked(
        &mut self,
        rank: u64,
        counted: Counted<'_>,
    ) -> Result<Option<RankedLeaf>, Uncounted> {
        let (mut at, mut before) = (NodeId(0), rank);
        loop {
            let mut index = 0;
            loop {
                if index == self.node(at).count() {
                    return Ok(None);
                }
                let rows = self.total(at, index, counted)?.rows;
                if before < rows {
                    break;
                }
                before -= rows;
                index += 1;
            }
            let (node, child) = (self.node(at), Child { node: at, index });
            node.set_used();
            if node.level == 1 {
                return Ok(Some(RankedLeaf { leaf: self.leaf_to_count(child), before }));
            }
            at = self.below(child)?;
        }
    }

    /// Rows at or below child `index` of a node.
    fn total(&mut self, id: NodeId, index: usize, counted: Counted<'_>) -> Result<Sum, Uncounted> {
        let (node, child) = (self.node(id), Child { node: id, index });
        if let Some(rows) = node.totals.known(index) {
            return Ok(Sum { rows, is_loose: false });
        }
        let below = if node.level > 1 { node.loaded(index) } else { None };
        let mut sum = Sum::default();
        if let Some(below) = below {
            if self.node(below).high.as_deref() != node.high_of(index) {
                return Err(self.lacks_right(child, below));
            }
            for index in 0..self.node(below).count() {
                sum.add(self.total(below, index, counted)?);
            }
        } else {
            let keys = Keys { low: node.separator(index), high: node.high_of(index) };
            let said = node.child(index);
            match known_rows(said).filter(|_| !(counted.waits)(keys, said.sequence)) {
                Some(rows) => sum.rows = rows,
                None if node.level > 1 => return self.below(child).map(|_| sum),
                None => {
                    let known = self.counted(child, counted);
                    return known
                        .ok_or_else(|| Uncounted::Leaf(Box::new(self.leaf_to_count(child))));
                }
            }
        }
        if !sum.is_loose {
            self.nodes.get_mut(id).totals.set(index, sum.rows);
        }
        Ok(sum)
    }

    /// What was counted of a leaf.
    fn counted(&self, child: Child, counted: Counted<'_>) -> Option<Sum> {
        let node = self.node(child.node);
        let (low, high) = (node.separator(child.index), node.high_of(child.index));
        let is_it = |leaf: &&CountedLeaf| leaf.low == low && leaf.high.as_deref() == high;
        let leaf = counted.leaves.iter().find(is_it)?;
        Some(Sum { rows: leaf.rows, is_loose: true })
    }

    /// The node that a child is.
    fn below(&self, child: Child) -> Result<NodeId, Uncounted> {
        let Child { node, index } = child;
        let page = self.node(node).child(index).page;
        let missing = || self.missing(page, node, index, false);
        self.node(node).loaded(index).ok_or_else(|| Uncounted::Node(missing()))
    }

    /// The parent does not know the right neighbour of a child.
    fn lacks_right(&self, child: Child, below: NodeId) -> Uncounted {
        let page = self.node(below).right;
        Uncounted::Node(self.missing(page, child.node, child.index, true))
    }

    fn leaf_to_count(&self, child: Child) -> LeafToCount {
        let Child { node: id, index } = child;
        let node = self.node(id);
        let (high, low) = (node.high_of(index).map(<[u8]>::to_vec), node.separator(index).to_vec());
        let (child, is_filtered) = (*node.child(index), !node.filter(index).is_empty());
        let (created, joins, merges) = (self.created(), self.joins, self.merges);
        let since = node.totals.unknown_since(index);
        let at = LeafAt { node: id, index, child, high, is_filtered, created, joins, merges };
        LeafToCount { at, low, since }
    }

    /// Takes note of the rows of a leaf, unless it changed since somebody began to count them.
    /// Whether they are known now.
    pub(crate) fn set_total(&mut self, leaf: &LeafToCount, rows: u64) -> bool {
        let Place::Leaf(at) = self.locate(&leaf.low) else { return false };
        let is_same = at.created == leaf.at.created && self.low_of(&at) == leaf.low;
        let totals = &mut self.nodes.get_mut(at.node).totals;
        let unknown = totals.unknown_since(at.index);
        let is_unchanged = is_same && unknown.is_some() && unknown == leaf.since;
        if is_unchanged || is_same && planted!("count-outlives-a-write") && unknown.is_some() {
            totals.set(at.index, rows);
            return true;
        }
        false
    }
}

/// A child of a node.
#[derive(Debug, Clone, Copy)]
struct Child {
    node: NodeId,
    index: usize,
}
