//! Pages that join: which ones, the policy, and what is said of them.

use entresol_planted::planted;

use super::place::{LeafAt, NewChild, ROOT_PAGE};
use crate::filter::KeyHash;
use crate::format::Child;
use crate::node::{Leaving, Node, is_known};

/// Leaves that are merged as one: the first absorbs the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// The first one, with the range of all.
    pub at: LeafAt,
    /// All of them, in order.
    pub members: Vec<Member>,
}

/// A leaf of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub child: Child,
    /// Below which key its keys are.
    pub high: Option<Vec<u8>>,
}

/// What takes the place of a group.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// The first leaf.
    pub leaf: Child,
    /// What is known of its keys.
    pub keys: LeafKeys,
    /// Leaves that it absorbed, by their numbers.
    pub absorbed: Vec<u32>,
    /// Leaves right of it, where it was split.
    pub others: Vec<NewChild>,
}

/// What a merge tells of the keys of a leaf.
#[derive(Debug)]
pub(crate) enum LeafKeys {
    /// All that it and its delta page have are in this filter; where that is empty, nobody knows.
    Filter(Vec<u8>),
    /// Its delta page has these, beside those that leaf and delta page had.
    More(Vec<KeyHash>),
}

/// When pages join.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinLimits {
    /// A page with fewer bytes joins a neighbour.
    small_bytes: usize,
    /// Unless both together had more than this.
    pub joined_bytes_max: usize,
}

impl JoinLimits {
    /// For pages that are split above `bytes_max`. Far from that, so that a page that was joined is
    /// not split by the next few rows, and two halves of a page do not join at once.
    pub(super) fn of(bytes_max: usize) -> JoinLimits {
        JoinLimits { small_bytes: bytes_max / 4, joined_bytes_max: bytes_max / 4 * 3 }
    }
}

/// The child of `node` that leaves, since child `index` and a neighbour fit in one page; the left
/// one of both absorbs it. `bytes`: of a child, where that is known.
pub(super) fn leaver(
    node: &Node,
    index: usize,
    limits: JoinLimits,
    bytes: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    let leaves = |index: usize| node.leaving.contains(node.child(index).page);
    if planted!("leaves-never-join") || bytes(index)? >= limits.small_bytes || leaves(index) {
        return None;
    }
    let fits = |right: &usize| {
        if *right == 0 || *right >= node.count() || leaves(*right) {
            return false;
        }
        let (start, end) = (
            node.absorber(right - 1, Leaving::contains),
            node.absorbs_to(*right, Leaving::contains),
        );
        let joined = (start..end).map(&bytes).sum::<Option<usize>>();
        joined.is_some_and(|joined| joined <= limits.joined_bytes_max)
    };
    [index, index + 1].into_iter().find(fits)
}

/// Whether a leaf is known to have neither rows nor a delta page. While page 1 is a leaf the
/// directory does not know what it has.
pub(crate) fn is_empty(child: &Child) -> bool {
    is_known(child) && child.rows == 0 && child.delta_bytes == 0 && child.page != ROOT_PAGE
}

/// Rows at or below a child, as merges know them; `None`: they do not. While page 1 is a leaf
/// nobody knows them.
pub(super) fn known_rows(child: &Child) -> Option<u64> {
    (is_known(child) && child.page != ROOT_PAGE).then_some(child.rows.into())
}

/// Bytes of a leaf and of its delta page, where they are known. One without rows has none, however
/// long its high key is.
pub(super) fn leaf_bytes(child: &Child) -> Option<usize> {
    let bytes = || usize::from(child.base_bytes) + usize::from(child.delta_bytes);
    is_known(child).then(|| if is_empty(child) { 0 } else { bytes() })
}
