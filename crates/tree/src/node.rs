//! Inner nodes in memory: where a key's leaf is, without a read.

mod filters;
mod leaving;
mod totals;

use std::sync::atomic::{AtomicBool, Ordering};

use entresol_planted::planted;

use crate::filter::KeyHash;
use crate::format::{Child, Children, ChildrenBuilder, Damage, NodeFrame};
use crate::sequence::Sequence;

use filters::LeafFilters;
pub(crate) use leaving::{Edition, Leaving};
pub(crate) use totals::{Stamp, Totals};

/// A node is split where its page would be larger.
pub(crate) const NODE_BYTES_MAX: usize = 7680;
/// What the page of a node has for each child beside the separator, and for itself.
const CHILD_BYTES: usize = 32;
const FRAME_BYTES: usize = 32;

/// Which node of a table, in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(pub u32);

/// What a page says of leaves and delta pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Facts {
    /// It is so.
    Exact,
    /// It was so when the page was written.
    Old,
}

/// An inner node.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its number in the table.
    pub page: u32,
    /// 1 above leaves.
    pub level: u8,
    /// Below which key its keys are.
    pub high: Option<Box<[u8]>>,
    /// The node to the right, 0 for none.
    pub right: u32,
    /// Changes since its page was written.
    pub changes: u32,
    /// Whether it has a page at all.
    pub is_written: bool,
    /// Of its page on flash.
    pub edition: Edition,
    /// Its page has children that other nodes have now, if it is of this edition or older.
    pub stale: Option<Edition>,
    /// Children that a left neighbour is to absorb: its pages do not name them any more.
    pub leaving: Leaving,
    /// Rows at or below each child.
    pub totals: Totals,
    separators: Vec<u8>,
    /// Where each separator ends.
    ends: Vec<u32>,
    children: Vec<Child>,
    /// Which keys each leaf may hold; of nodes of level 1 only.
    filters: LeafFilters,
    /// Its page on flash lacks filters that it has.
    pub lacks_filters: bool,
    /// Which children are in memory; of nodes above level 1 only.
    loaded: Vec<Option<NodeId>>,
    /// Whether a search came through it since somebody looked.
    used: AtomicBool,
}

/// Which node of a table, in memory; or that the one of this child has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Residence(Option<NodeId>);

/// In place of a node's number: it has left memory. The other bits say when.
const HAS_LEFT: u32 = 1 << 31;
/// All that its page says is so.
const IS_EXACT: u32 = 1 << 30;

impl Node {
    /// A node without children.
    pub(crate) fn new(page: u32, level: u8) -> Node {
        Node {
            page,
            level,
            high: None,
            right: 0,
            changes: 0,
            is_written: false,
            edition: Edition::default(),
            stale: None,
            leaving: Leaving::default(),
            totals: Totals::default(),
            separators: Vec::new(),
            ends: Vec::new(),
            children: Vec::new(),
            filters: LeafFilters::default(),
            lacks_filters: false,
            loaded: Vec::new(),
            used: AtomicBool::new(true),
        }
    }

    /// The node of the page `bytes`, number `page`. What the page says of its children counts where
    /// `is_exact`: the store was closed after it was written. Else leaves and delta pages may have
    /// changed since.
    pub(crate) fn from_page(page: u32, bytes: &[u8], is_exact: bool) -> Result<Node, Damage> {
        let children = Children::parse(bytes)?;
        children.check()?;
        let header = children.header();
        let right = u32::try_from(header.link)
            .map_err(|_| Damage::new("right neighbour", usize::MAX, u32::MAX as usize))?;
        let mut node = Node {
            high: children.high_key().map(Box::from),
            right,
            is_written: true,
            ..Node::new(page, header.level)
        };
        let mut separator = Vec::new();
        for index in 0..children.count() {
            children.separator(index, &mut separator)?;
            let child = children.child(index)?;
            let is_believed = is_exact || planted!("rows-believed-after-a-crash");
            let child = if is_believed { child } else { Child { page: child.page, ..UNKNOWN } };
            node.insert(index, &separator, child, None);
        }
        if is_exact || planted!("filters-believed-after-a-crash") {
            node.filters = LeafFilters::of(&children.filters()?);
        }
        node.changes = 0;
        Ok(node)
    }

    /// A search comes through it.
    pub(crate) fn set_used(&self) {
        // Threads that only look do not take the line of memory from each other.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a search came through it since the last time that this was asked.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// How many children there are.
    pub(crate) fn count(&self) -> usize {
        self.children.len()
    }

    /// Separator of child `index`.
    pub(crate) fn separator(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.separators[start..self.ends[index] as usize]
    }

    /// The key below which the keys of child `index` are.
    pub(crate) fn high_of(&self, index: usize) -> Option<&[u8]> {
        if index + 1 < self.count() {
            Some(self.separator(index + 1))
        } else {
            self.high.as_deref()
        }
    }

    /// The child whose range has `key`.
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        self.last_where(|separator| separator <= key)
    }

    /// The child whose range has the keys right below `key`.
    pub(crate) fn position_before(&self, key: &[u8]) -> usize {
        self.last_where(|separator| separator < key)
    }

    /// The last child whose separator is `left`, as those of all before it are; else the first.
    fn last_where(&self, left: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            if left(self.separator(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(1)
    }

    pub(crate) fn child(&self, index: usize) -> &Child {
        &self.children[index]
    }

    pub(crate) fn child_mut(&mut self, index: usize) -> &mut Child {
        self.changes += 1;
        &mut self.children[index]
    }

    /// Which keys leaf `index` may hold, with its delta page. Empty: any.
    pub(crate) fn filter(&self, index: usize) -> &[u8] {
        self.filters.get(index)
    }

    /// Leaf `index` holds no other keys than those of `filter`.
    pub(crate) fn set_filter(&mut self, index: usize, filter: &[u8]) {
        let count = self.count();
        self.filters.set(index, count, filter);
    }

    /// The delta page of leaf `index` has these keys.
    pub(crate) fn add_keys(&mut self, index: usize, keys: &[KeyHash]) {
        self.filters.add(index, keys);
    }

    /// Whether a filter of a leaf tells something.
    pub(crate) fn has_filters(&self) -> bool {
        self.filters.has_any()
    }

    /// The node of child `index`, if it is in memory.
    pub(crate) fn loaded(&self, index: usize) -> Option<NodeId> {
        self.loaded[index].filter(|node| node.0 & HAS_LEFT == 0)
    }

    /// Child `index` leaves memory, as the departure of this number.
    pub(crate) fn let_leave(&mut self, index: usize, page: Facts, departure: u32) {
        let exact = if page == Facts::Exact { IS_EXACT } else { 0 };
        self.loaded[index] = Some(NodeId(HAS_LEFT | exact | (departure % IS_EXACT)));
    }

    /// Whether child `index` is in memory, or when it left: what was read of its page before it
    /// came and left again may be old.
    pub(crate) fn residence(&self, index: usize) -> Residence {
        Residence(self.loaded.get(index).copied().flatten())
    }

    /// What the page of child `index`, which is not in memory, says of its own children.
    pub(crate) fn facts_of(&self, index: usize) -> Facts {
        let left = self.loaded[index].filter(|node| node.0 & HAS_LEFT != 0);
        if left.is_some_and(|node| node.0 & IS_EXACT != 0) { Facts::Exact } else { Facts::Old }
    }

    pub(crate) fn set_loaded(&mut self, index: usize, node: NodeId) {
        self.loaded[index] = Some(node);
    }

    /// Puts a child at `index`.
    pub(crate) fn insert(
        &mut self,
        index: usize,
        separator: &[u8],
        child: Child,
        loaded: Option<NodeId>,
    ) {
        self.make_room(separator.len());
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.separators.splice(start..start, separator.iter().copied());
        self.ends.insert(index, start as u32);
        for end in &mut self.ends[index..] {
            *end += separator.len() as u32;
        }
        self.children.insert(index, child);
        self.filters.insert(index);
        self.totals.insert(index);
        if self.level > 1 {
            self.loaded.insert(index, loaded);
        }
        self.changes += 1;
    }

    /// Takes out the children from `from` to below `to`, which the child before them absorbed.
    ///
    /// # Panics
    /// Where the first child is among them: nobody in the node could absorb it.
    pub(crate) fn remove(&mut self, from: usize, to: usize) {
        assert!(from > 0, "the first child of a node stays");
        let (start, end) = (self.ends[from - 1], self.ends[to - 1]);
        self.separators.drain(start as usize..end as usize);
        self.ends.drain(from..to);
        for rest in &mut self.ends[from..] {
            *rest -= end - start;
        }
        for child in self.children.drain(from..to) {
            self.leaving.remove(child.page);
        }
        self.filters.remove(from..to);
        self.totals.remove(from..to);
        if self.level > 1 {
            self.loaded.drain(from..to);
        }
        self.changes += (to - from) as u32;
        self.give_back_room();
    }

    /// Takes over the children of its right neighbour, and what is right of it.
    pub(crate) fn absorb(&mut self, other: Node) {
        self.make_room(other.separators.len());
        let start = self.separators.len() as u32;
        self.separators.extend_from_slice(&other.separators);
        self.ends.extend(other.ends.iter().map(|end| end + start));
        self.filters.append(self.children.len(), other.filters, other.children.len());
        self.children.extend_from_slice(&other.children);
        self.loaded.extend_from_slice(&other.loaded);
        self.leaving.extend(other.leaving);
        self.totals.append(other.totals);
        (self.high, self.right) = (other.high, other.right);
        self.changes += 1;
    }

    /// Lets go of memory that it had for more children.
    fn give_back_room(&mut self) {
        if self.children.capacity() > 2 * self.count() + 8 {
            self.separators.shrink_to_fit();
            self.ends.shrink_to_fit();
            self.children.shrink_to_fit();
            self.totals.shrink_to_fit();
            self.loaded.shrink_to_fit();
        }
    }

    /// Bytes of its page, or a little more.
    pub(crate) fn bytes(&self) -> usize {
        let high = self.high.as_ref().map_or(0, |high| high.len());
        FRAME_BYTES + high + self.separators.len() + CHILD_BYTES * self.count()
    }

    /// The child that absorbs child `index`, as far as `leaves` says that it is absorbed.
    pub(crate) fn absorber(
        &self,
        mut index: usize,
        leaves: impl Fn(&Leaving, u32) -> bool,
    ) -> usize {
        while index > 0 && leaves(&self.leaving, self.children[index].page) {
            index -= 1;
        }
        index
    }

    /// Behind the last child that child `index` absorbs.
    pub(crate) fn absorbs_to(&self, index: usize, leaves: impl Fn(&Leaving, u32) -> bool) -> usize {
        let mut end = index + 1;
        while end < self.count() && leaves(&self.leaving, self.children[end].page) {
            end += 1;
        }
        end
    }

    /// Makes room for one more child. A vector left to itself would double, and nodes are most of
    /// the memory that a table takes.
    fn make_room(&mut self, separator_bytes: usize) {
        fn grow<T>(list: &mut Vec<T>, more: usize) {
            if list.capacity() - list.len() < more {
                list.reserve_exact(more + list.len() / 16);
            }
        }
        grow(&mut self.separators, separator_bytes);
        grow(&mut self.ends, 1);
        grow(&mut self.children, 1);
        if self.level > 1 {
            grow(&mut self.loaded, 1);
        }
    }

    /// Whether its page would be too large.
    pub(crate) fn is_too_large(&self) -> bool {
        self.bytes() > NODE_BYTES_MAX && self.split_at(Last::IsOld).is_some()
    }

    /// The child that the right half begins with. A child that leaves stays beside its absorber.
    fn split_at(&self, last: Last) -> Option<usize> {
        let stays = |index: &usize| !self.leaving.contains(self.children[*index].page);
        if last == Last::CameLast {
            return Some(self.count() - 1).filter(stays);
        }
        let middle = self.count() / 2;
        let right = (middle.max(1)..self.count()).find(stays);
        right.or_else(|| (1..middle).rev().find(stays))
    }

    /// Cuts the right half off, which becomes page `page`. Where keys ascend the left half stays
    /// large: `last` says that the last child is the one that came last.
    pub(crate) fn split(&mut self, page: u32, last: Last) -> Node {
        let at = self.split_at(last).or_else(|| self.split_at(Last::IsOld));
        let at = at.expect("a node that is split has a child that stays");
        let start = self.ends[at - 1] as usize;
        let mut right = Node::new(page, self.level);
        right.high = self.high.take();
        right.right = self.right;
        right.separators = self.separators.split_off(start);
        right.ends = self.ends.split_off(at).into_iter().map(|end| end - start as u32).collect();
        right.children = self.children.split_off(at);
        right.filters = self.filters.split_off(at);
        right.totals = self.totals.split_off(at);
        right.leaving =
            self.leaving.split_off(|page| right.children.iter().any(|child| child.page == page));
        if self.level > 1 {
            right.loaded = self.loaded.split_off(at);
        }
        self.separators.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.children.shrink_to_fit();
        self.totals.shrink_to_fit();
        self.loaded.shrink_to_fit();
        right.changes = 1;
        self.changes += 1;
        self.high = Some(Box::from(right.separator(0)));
        self.right = page;
        right
    }

    /// Takes over all that `other` has, which is left without children.
    pub(crate) fn take_from(&mut self, other: &mut Node) {
        let page = self.page;
        let is_written = self.is_written;
        let totals = other.totals.empty_like();
        let empty = Node { totals, ..Node::new(other.page, other.level) };
        *self = std::mem::replace(other, empty);
        self.page = page;
        self.is_written = is_written;
    }

    /// Its page, with the children that `may_name` allows: it is asked for each one that is in
    /// memory. `None`, if it must not name the first one. Children that leave are not named: right
    /// links lead to them.
    pub(crate) fn page_bytes(
        &self,
        sequence: Sequence,
        with: With,
        may_name: impl Fn(NodeId) -> bool,
    ) -> Option<Vec<u8>> {
        let mut builder = ChildrenBuilder::default();
        for (index, child) in self.children.iter().enumerate() {
            let below = if self.level > 1 { self.loaded(index) } else { None };
            let leaves = |index: usize| {
                self.children.get(index).is_some_and(|child| self.leaving.contains(child.page))
            };
            if below.is_none_or(&may_name) && !leaves(index) {
                // Who opens the page takes all up to the next child for the range of this one.
                let unknown = Child { page: child.page, ..UNKNOWN };
                match (leaves(index + 1), with) {
                    (true, _) => builder.push(self.separator(index), unknown),
                    (false, With::Facts) => builder.push(self.separator(index), *child),
                    (false, With::Filters) => {
                        let filter = self.filter(index);
                        builder.push_filtered(self.separator(index), *child, filter);
                    }
                }
            } else if index == 0 {
                return None;
            }
        }
        let high_key = self.high.as_deref();
        Some(builder.node(NodeFrame { level: self.level, high_key, right: self.right, sequence }))
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Node>()
            + self.separators.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.children.capacity() * size_of::<Child>()
            + self.filters.memory_bytes()
            + self.loaded.capacity() * size_of::<Option<NodeId>>()
            + self.leaving.memory_bytes()
            + self.totals.memory_bytes()
    }
}

/// What a page says of each leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    /// Its number and its sizes.
    Facts,
    /// Which keys it may hold, too.
    Filters,
}

/// Which child of a node came last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// The last one: keys ascend.
    CameLast,
    /// Another one.
    IsOld,
}

/// A child of which nothing but its number is known.
pub(crate) const UNKNOWN: Child = Child {
    page: 0,
    sequence: Sequence(0),
    base_bytes: 0,
    delta_bytes: u16::MAX,
    rows: 0,
    filter: u64::MAX,
};

/// Whether the range and the size of a leaf are known: it was written or read in this opening, or
/// the store was closed after it was written.
pub(crate) fn is_known(child: &Child) -> bool {
    child.base_bytes != 0
}
