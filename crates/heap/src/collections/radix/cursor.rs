//! Walks in order, from both ends, between bounds, over a tree that does not change.

use std::cmp::Ordering;
use std::ops::Bound;

use smallvec::SmallVec;

use crate::collections::radix::node::{Leaf, Link, NODE_BYTES, NODE_END, Shape, child};
use crate::collections::radix::search::{Tree, descending};
use crate::collections::words::Words;
use crate::error::Result;

/// The entries of a tree between two bounds, taken from either end.
pub(in crate::collections) struct Span<'h> {
    tree: Tree<'h>,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    front: Option<Walk<'h>>,
    back: Option<Walk<'h>>,
    /// The leaves taken last from the front and from the back.
    taken: (u64, u64),
    done: bool,
}

impl<'h> Span<'h> {
    pub(in crate::collections) fn new(
        tree: Tree<'h>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
    ) -> Span<'h> {
        Span { tree, lower, upper, front: None, back: None, taken: (0, 0), done: false }
    }

    /// The next entry from the front: its key, offset and length of its value.
    pub(in crate::collections) fn next(&mut self) -> Option<Result<(&'h [u8], u64, u64)>> {
        let found = self.step(Toward::Higher);
        self.give(found)
    }

    /// The next entry from the back.
    pub(in crate::collections) fn next_back(&mut self) -> Option<Result<(&'h [u8], u64, u64)>> {
        let found = self.step(Toward::Lower);
        self.give(found)
    }

    fn give(&mut self, found: Result<Option<Leaf<'h>>>) -> Option<Result<(&'h [u8], u64, u64)>> {
        self.done |= !matches!(found, Ok(Some(_)));
        let entry = |leaf: Leaf<'h>| (leaf.key, leaf.handle + 8, leaf.value_bytes);
        found.transpose().map(|leaf| leaf.map(entry))
    }

    fn step(&mut self, toward: Toward) -> Result<Option<Leaf<'h>>> {
        if self.done {
            return Ok(None);
        }
        let (walk, from) = match toward {
            Toward::Higher => (&mut self.front, &self.lower),
            Toward::Lower => (&mut self.back, &self.upper),
        };
        let walk = match walk {
            Some(walk) => walk,
            None => walk.insert(Walk::from(self.tree, from, toward)?),
        };
        let Some(leaf) = walk.next(toward)? else { return Ok(None) };
        let (met, within) = match toward {
            Toward::Higher => (self.taken.1, is_below(leaf.key, &self.upper)),
            Toward::Lower => (self.taken.0, is_above(leaf.key, &self.lower)),
        };
        if leaf.handle == met || !within {
            return Ok(None);
        }
        match toward {
            Toward::Higher => self.taken.0 = leaf.handle,
            Toward::Lower => self.taken.1 = leaf.handle,
        }
        Ok(Some(leaf))
    }
}

fn is_below(key: &[u8], upper: &Bound<Vec<u8>>) -> bool {
    match upper {
        Bound::Included(bound) => key <= bound.as_slice(),
        Bound::Excluded(bound) => key < bound.as_slice(),
        Bound::Unbounded => true,
    }
}

fn is_above(key: &[u8], lower: &Bound<Vec<u8>>) -> bool {
    match lower {
        Bound::Included(bound) => key >= bound.as_slice(),
        Bound::Excluded(bound) => key > bound.as_slice(),
        Bound::Unbounded => true,
    }
}

/// Which way a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    Higher,
    Lower,
}

/// A place in a tree, between two leaves or at one.
pub(super) struct Walk<'h> {
    memory: Words<'h>,
    frames: SmallVec<[Frame; 12]>,
    /// Comes before everything else; may be empty.
    pending: Link,
}

/// A node and the child in it that was visited: a byte, or one of the places below.
#[derive(Clone, Copy)]
struct Frame {
    node: Link,
    position: u64,
    at: i16,
}

const BEFORE: i16 = -2;
const END: i16 = -1;
const AFTER: i16 = 256;

impl<'h> Walk<'h> {
    /// A walk that begins at a bound.
    fn from(tree: Tree<'h>, bound: &Bound<Vec<u8>>, toward: Toward) -> Result<Walk<'h>> {
        let mut walk = Walk { memory: tree.memory, frames: SmallVec::new(), pending: Link::NONE };
        match bound {
            Bound::Unbounded => walk.pending = tree.root,
            Bound::Included(key) => {
                let exact = walk.seek(&tree, key, toward)?;
                if !exact.is_none() {
                    walk.pending = exact;
                }
            }
            Bound::Excluded(key) => {
                walk.seek(&tree, key, toward)?;
            }
        }
        Ok(walk)
    }

    /// Goes next to where `key` is or would be; returns its leaf if it is there.
    fn seek(&mut self, tree: &Tree<'h>, key: &[u8], toward: Toward) -> Result<Link> {
        // Slots are of no use here, so the root's may be anything.
        let place = tree.place(0, key)?;
        for step in &place.steps {
            let at = key.get(step.position as usize).map_or(END, |byte| i16::from(*byte));
            self.frames.push(Frame { node: step.node, position: step.position, at });
        }
        match (place.rest, toward) {
            (Some((link, Ordering::Equal)), _) => return Ok(link),
            (Some((link, Ordering::Greater)), Toward::Higher)
            | (Some((link, Ordering::Less)), Toward::Lower) => self.pending = link,
            _ => {}
        }
        Ok(Link::NONE)
    }

    /// The next leaf.
    pub(super) fn next(&mut self, toward: Toward) -> Result<Option<Leaf<'h>>> {
        let mut link = std::mem::replace(&mut self.pending, Link::NONE);
        loop {
            if !link.is_none() {
                if link.shape()? == Shape::Leaf {
                    return Leaf::at(&self.memory, link.handle()).map(Some);
                }
                let position = link.position(&self.memory)?;
                descending(self.frames.last().map(|frame| frame.position), position)?;
                let at = if toward == Toward::Higher { BEFORE } else { AFTER };
                self.frames.push(Frame { node: link, position, at });
            }
            let Some(frame) = self.frames.last_mut() else { return Ok(None) };
            let next = match toward {
                Toward::Higher => higher(&self.memory, frame.node, frame.at)?,
                Toward::Lower => lower(&self.memory, frame.node, frame.at)?,
            };
            link = match next {
                Some((at, child)) => {
                    frame.at = at;
                    child
                }
                None => {
                    self.frames.pop();
                    Link::NONE
                }
            };
        }
    }
}

/// The child of `node` next after `at`.
fn higher(memory: &Words<'_>, node: Link, at: i16) -> Result<Option<(i16, Link)>> {
    if at < END {
        let end = Link(memory.load(node.handle() + NODE_END)?);
        if !end.is_none() {
            return Ok(Some((END, end)));
        }
    }
    let from = at.max(END) + 1;
    if let Shape::Node4 | Shape::Node16 = node.shape()? {
        return Ok(slots(memory, node)?.filter(|(byte, _)| *byte >= from).min_by_key(|c| c.0));
    }
    for byte in from..AFTER {
        if let Some((_, link)) = child(memory, node, byte as u8)? {
            return Ok(Some((byte, link)));
        }
    }
    Ok(None)
}

/// The child of `node` next before `at`.
fn lower(memory: &Words<'_>, node: Link, at: i16) -> Result<Option<(i16, Link)>> {
    let found = if let Shape::Node4 | Shape::Node16 = node.shape()? {
        slots(memory, node)?.filter(|(byte, _)| *byte < at).max_by_key(|c| c.0)
    } else {
        let mut found = None;
        for byte in (0..at.max(0)).rev() {
            if let Some((_, link)) = child(memory, node, byte as u8)? {
                found = Some((byte, link));
                break;
            }
        }
        found
    };
    if found.is_some() || at <= END {
        return Ok(found);
    }
    let end = Link(memory.load(node.handle() + NODE_END)?);
    Ok((!end.is_none()).then_some((END, end)))
}

/// The children in the slots of a node of 4 or 16, in no order.
fn slots(memory: &Words<'_>, node: Link) -> Result<impl Iterator<Item = (i16, Link)>> {
    let shape = node.shape()?;
    let mut found = SmallVec::<[(i16, Link); 16]>::new();
    for slot in 0..shape.capacity() as u64 {
        let link = Link(memory.load(node.handle() + shape.links() + 8 * slot)?);
        if !link.is_none() {
            let byte = memory.byte(node.handle() + NODE_BYTES + slot)?;
            found.push((i16::from(byte), link));
        }
    }
    Ok(found.into_iter())
}
