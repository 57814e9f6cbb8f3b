//! About how many rows pages have between two keys: what nodes in memory say of their leaves.
//!
//! Nothing is read, and nobody waits: what is not known is left to a guess from what is.

use super::counts::Span;
use super::{Directory, NodeId};
use crate::table::joins::known_rows;

/// Children of a node that is not in memory.
const CHILDREN: u64 = 100;

/// What nodes say of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Estimated {
    /// Rows of leaves that are known, without their delta pages where the table keeps no counts.
    pub rows: u64,
    /// Of them those of leaves that the range cuts.
    pub cut: u64,
    /// How many leaves those are.
    pub leaves: u64,
    /// Bytes of their delta pages.
    pub delta_bytes: u64,
    /// About so many leaves are there of which nothing is known.
    pub unknown: u64,
}

impl Directory {
    /// What is known of the pages of a range.
    pub(crate) fn estimate(&self, span: Span<'_>) -> Estimated {
        let mut all = Estimated::default();
        self.estimate_in(NodeId(0), span, &mut all);
        all
    }

    fn estimate_in(&self, id: NodeId, span: Span<'_>, all: &mut Estimated) {
        let node = self.node(id);
        let (first, last) = (
            span.low.map_or(0, |low| node.position(low)),
            span.high.map_or(node.count() - 1, |high| node.position(high)),
        );
        for index in first..=last {
            let low = span.low.filter(|low| node.separator(index) < *low);
            let high = span.high.filter(|_| index == last);
            if high.is_some_and(|high| high <= node.separator(index)) {
                continue;
            }
            let is_cut = low.is_some() || high.is_some() && high != node.high_of(index);
            let below = if node.level > 1 { node.loaded(index) } else { None };
            if let Some(below) = below {
                self.estimate_in(below, Span { low, high }, all);
                continue;
            }
            let child = node.child(index);
            let leaves = CHILDREN.saturating_pow(u32::from(node.level) - 1);
            match known_rows(child).filter(|_| node.level == 1 || self.nodes.are_counted()) {
                Some(rows) => {
                    all.rows += rows;
                    all.cut += if is_cut { rows } else { 0 };
                    all.leaves += leaves;
                    all.delta_bytes += u64::from(child.delta_bytes);
                }
                None => all.unknown = all.unknown.saturating_add(leaves),
            }
        }
    }
}
