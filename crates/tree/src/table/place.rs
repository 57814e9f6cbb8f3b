//! Where the pages of keys are, as a directory says it.

use crate::format::{Child, Damage};
use crate::node::{NodeId, Residence, Stamp};
use crate::sequence::Sequence;

/// Number of a table's first page.
pub(crate) const ROOT_PAGE: u32 = 1;
/// So often a page may say that a key is elsewhere while the directory leads to it still: others
/// teach the directory meanwhile, but not that often.
const DETOURS_MAX: u32 = 1000;

/// How often the page with this number led nowhere, one time after another.
#[derive(Debug, Default)]
pub(crate) struct Detours {
    page: u32,
    times: u32,
}

impl Detours {
    /// A page says that the key is elsewhere. Where the directory learnt nothing of it, somebody
    /// else has taught it meanwhile, or the page is not what it was taken for. One that leads to
    /// itself for ever is damaged.
    pub(crate) fn count(&mut self, page: u32, has_learnt: bool) -> Result<(), Damage> {
        let times = if self.page == page { self.times + 1 } else { 1 };
        (self.page, self.times) = (page, if has_learnt { 0 } else { times });
        if self.times > DETOURS_MAX {
            return Err(Damage::new("page that leads to itself", page as usize, 0));
        }
        Ok(())
    }
}

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
    /// Whether there is a filter of its keys.
    pub is_filtered: bool,
    /// Below which key its keys are.
    pub high: Option<Vec<u8>>,
    /// As of the directory: a table that was dropped meanwhile has other nodes.
    pub created: Sequence,
    /// Joins before it was located.
    pub(super) joins: u64,
    /// Merges that were entered before it was located.
    pub(super) merges: u64,
}

/// What a reader learnt of a leaf and its delta page.
#[derive(Debug)]
pub(crate) struct Learnt {
    pub child: Child,
    /// Of all their keys; empty where that was not asked for.
    pub filter: Vec<u8>,
}

/// A leaf whose rows are to be counted.
#[derive(Debug, Clone)]
pub(crate) struct LeafToCount {
    pub at: LeafAt,
    /// From which key on it has rows.
    pub low: Vec<u8>,
    /// Since when nobody knows how many they are; `None`: they are known.
    pub since: Option<Stamp>,
}

/// A node to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(super) page: u32,
    pub(super) parent: NodeId,
    /// The child that it is, or right of which it is.
    pub(super) index: usize,
    pub(super) is_right: bool,
    /// Of the child, when it was located.
    pub(super) residence: Residence,
    pub(super) created: Sequence,
    pub(super) joins: u64,
}

impl Missing {
    /// The page to read.
    pub(crate) fn page(&self) -> u32 {
        self.page
    }
}

/// A leaf that a split made, and from which key on it has rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewChild {
    pub separator: Vec<u8>,
    pub child: Child,
    /// Of its keys; empty where there is none.
    pub filter: Vec<u8>,
}

/// What a way down through the nodes leads to.
pub(super) enum Wanted<'k> {
    /// The page that has the key.
    At(&'k [u8]),
    /// The page that has the keys right below this one; `None`: the last page.
    Before(Option<&'k [u8]>),
}

impl Wanted<'_> {
    /// Whether it is right of a page whose keys are below `high`.
    pub(super) fn is_beyond(&self, high: &[u8]) -> bool {
        match self {
            Wanted::At(key) => high <= *key,
            Wanted::Before(key) => key.is_none_or(|key| high < key),
        }
    }
}
