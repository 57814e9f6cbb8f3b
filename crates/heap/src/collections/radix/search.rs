//! Searches: the leaf of a key, and the path to the place of a key, present or not.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::collections::radix::node::{Leaf, Link, NODE_END, Shape, child, children, damaged};
use crate::collections::words::Words;
use crate::error::Result;

/// A tree as it is under a root link: the newest one, or what a view saw.
#[derive(Clone, Copy)]
pub(in crate::collections) struct Tree<'h> {
    pub(super) memory: Words<'h>,
    pub(super) root: Link,
}

/// The nodes from the root towards a key.
pub(super) struct Way {
    pub(super) steps: Steps,
    pub(super) end: End,
    /// Whether some bytes of the key were passed over without being compared.
    skipped: bool,
}

pub(super) type Steps = SmallVec<[Step; 12]>;

/// A node passed, and the offset of the word that links to it.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) slot: u64,
    pub(super) node: Link,
    pub(super) position: u64,
}

/// Where a search ended.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// At a leaf, of this key or another; `slot` links to it.
    Leaf { slot: u64, handle: u64 },
    /// At the last node, which has no child for the key.
    Missing,
    /// At the last node, which branches behind the key's end.
    Short,
    /// The tree is empty.
    Empty,
}

impl<'h> Tree<'h> {
    /// The tree that has its root link at `slot` now.
    pub(in crate::collections) fn at(memory: Words<'h>, slot: u64) -> Result<Tree<'h>> {
        let root = Link(memory.load(slot)?);
        Ok(Tree { memory, root })
    }

    /// Offset and length of the value of `key`.
    #[inline]
    pub(in crate::collections) fn find(&self, key: &[u8]) -> Result<Option<(u64, u64)>> {
        Ok(self.find_leaf(key)?.map(|leaf| (leaf.handle + 8, leaf.value_bytes)))
    }

    #[inline]
    pub(super) fn find_leaf(&self, key: &[u8]) -> Result<Option<Leaf<'h>>> {
        let mut link = self.root;
        let mut above = None;
        loop {
            if link.is_none() {
                return Ok(None);
            }
            if link.shape()? == Shape::Leaf {
                let leaf = Leaf::at(&self.memory, link.handle())?;
                return Ok((leaf.key == key).then_some(leaf));
            }
            let position = link.position(&self.memory)?;
            descending(above, position)?;
            above = Some(position);
            link = match key.get(position as usize) {
                Some(byte) => match child(&self.memory, link, *byte)? {
                    Some((_, link)) => link,
                    None => return Ok(None),
                },
                None if key.len() as u64 == position => {
                    Link(self.memory.load(link.handle() + NODE_END)?)
                }
                None => return Ok(None),
            };
        }
    }

    /// Follows `key` as far as nodes lead; the root link lies at `slot`.
    pub(super) fn way(&self, slot: u64, key: &[u8]) -> Result<Way> {
        let mut way = Way { steps: Steps::new(), end: End::Empty, skipped: false };
        let (mut slot, mut link) = (slot, self.root);
        let mut next = 0;
        while !link.is_none() {
            if link.shape()? == Shape::Leaf {
                way.end = End::Leaf { slot, handle: link.handle() };
                return Ok(way);
            }
            let position = link.position(&self.memory)?;
            descending(way.steps.last().map(|step| step.position), position)?;
            way.steps.push(Step { slot, node: link, position });
            way.skipped |= position > next;
            next = position + 1;
            let found = match key.get(position as usize) {
                Some(byte) => child(&self.memory, link, *byte)?,
                None if key.len() as u64 == position => self.end_of(link)?,
                None => {
                    way.end = End::Short;
                    return Ok(way);
                }
            };
            let Some(found) = found else {
                way.end = End::Missing;
                return Ok(way);
            };
            (slot, link) = found;
        }
        Ok(way)
    }

    /// How many bytes `key` has in common with the keys where its way ended, and a leaf of those.
    /// A way that ended at a node without skipping anything needs no leaf.
    pub(super) fn common(&self, way: &Way, key: &[u8]) -> Result<Agreement<'h>> {
        let last = way.steps.last();
        let leaf = match (way.end, last) {
            (End::Leaf { handle, .. }, _) => Leaf::at(&self.memory, handle)?,
            (End::Missing, Some(step)) if !way.skipped => {
                return Ok(Agreement { bytes: step.position, leaf: None });
            }
            (_, Some(step)) => self.any_leaf(step.node)?,
            (_, None) => return Ok(Agreement { bytes: 0, leaf: None }),
        };
        let bytes = common_bytes(key, leaf.key);
        Ok(Agreement { bytes, leaf: Some(leaf) })
    }

    /// Where `key` is or would be; the root link lies at `slot`.
    pub(super) fn place(&self, slot: u64, key: &[u8]) -> Result<Place> {
        let mut way = self.way(slot, key)?;
        let common = self.common(&way, key)?;
        let above = way.steps.partition_point(|step| step.position <= common.bytes);
        let rest = match (way.steps.get(above), way.end, &common.leaf) {
            (None, End::Missing | End::Empty, _) | (_, _, None) => None,
            (Some(step), _, Some(leaf)) => Some((step.node, leaf)),
            (None, End::Leaf { handle, .. }, Some(leaf)) => Some((Link::leaf(handle), leaf)),
            (None, End::Short, _) => {
                return Err(damaged("a node that its keys do not lead to", common.bytes));
            }
        };
        let at = common.bytes as usize;
        let rest = rest.map(|(link, leaf)| (link, leaf.key.get(at).cmp(&key.get(at))));
        way.steps.truncate(above);
        Ok(Place { steps: way.steps, rest })
    }

    /// The link at a node's end, with its offset.
    pub(super) fn end_of(&self, node: Link) -> Result<Option<(u64, Link)>> {
        let slot = node.handle() + NODE_END;
        let link = Link(self.memory.load(slot)?);
        Ok((!link.is_none()).then_some((slot, link)))
    }

    /// Some leaf below `link`.
    pub(super) fn any_leaf(&self, link: Link) -> Result<Leaf<'h>> {
        let mut link = link;
        let mut above = None;
        while link.shape()? != Shape::Leaf {
            let position = link.position(&self.memory)?;
            descending(above, position)?;
            above = Some(position);
            link = match self.end_of(link)? {
                Some((_, end)) => end,
                None => match children(&self.memory, link)?.first() {
                    Some((_, child)) => *child,
                    None => return Err(damaged("a node without children", link.0)),
                },
            };
        }
        Leaf::at(&self.memory, link.handle())
    }
}

/// Where a key is or would be in the order.
pub(super) struct Place {
    /// The nodes that branch where the key has a byte, or its end, that a child could be under.
    pub(super) steps: Steps,
    /// What is where the last of those leads, and how its keys compare with the key. A node never
    /// compares as equal.
    pub(super) rest: Option<(Link, Ordering)>,
}

/// What a key has in common with the keys where its way ended.
pub(super) struct Agreement<'h> {
    pub(super) bytes: u64,
    pub(super) leaf: Option<Leaf<'h>>,
}

fn common_bytes(a: &[u8], b: &[u8]) -> u64 {
    a.iter().zip(b).take_while(|(a, b)| a == b).count() as u64
}

/// A position must lie behind the one above it: so no damage makes a search go on for ever.
#[inline]
pub(super) fn descending(above: Option<u64>, position: u64) -> Result<()> {
    match above {
        Some(above) if position <= above => {
            Err(damaged("a node that does not lie behind the one above", position))
        }
        _ => Ok(()),
    }
}
