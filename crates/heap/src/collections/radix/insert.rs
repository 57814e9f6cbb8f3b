//! Puts.

use crate::collections::radix::node::{
    Leaf, Link, NODE_BYTES, NODE_END, NODE_PLACE, Shape, children, damaged,
};
use crate::collections::radix::search::{Agreement, End, Step, Way};
use crate::collections::radix::write::Writer;
use crate::error::Result;

/// A value to put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::collections) enum Value<'v> {
    /// A word, which may be stored over another one, unless a view sees that.
    Word(u64),
    /// Bytes, which always get a new leaf: readers may hold slices of the old one.
    Bytes(&'v [u8]),
}

impl Writer<'_> {
    /// Gives `key` a value; returns offset and length of the old value, whose bytes stay as they
    /// are if it was replaced as a whole, or else its word.
    pub(in crate::collections) fn put(
        &mut self,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<Option<Replaced>> {
        let root_slot = self.root_slot();
        let tree = self.tree()?;
        let mut way = tree.way(root_slot, key)?;
        let common = tree.common(&way, key)?;
        if let (End::Leaf { slot, .. }, Some(leaf)) = (way.end, &common.leaf)
            && leaf.key == key
        {
            return self.replace(&mut way, slot, leaf, value).map(Some);
        }
        let leaf = self.new_leaf(key, value)?;
        match (way.end, way.steps.last().copied()) {
            (End::Empty, _) => self.store(root_slot, leaf.0)?,
            (End::Missing, Some(last)) if common.bytes >= last.position => {
                let byte = key.get(last.position as usize).copied();
                self.add_child(&mut way, last, byte, leaf)?;
            }
            _ => self.branch(&mut way, &common, key, leaf)?,
        }
        self.count(1)?;
        Ok(None)
    }

    fn replace(
        &mut self,
        way: &mut Way,
        slot: u64,
        leaf: &Leaf<'_>,
        value: Value<'_>,
    ) -> Result<Replaced> {
        let offset = leaf.handle + 8;
        if let (Value::Word(new), 8, false) = (value, leaf.value_bytes, self.is_frozen()) {
            let old = self.memory.load(offset)?;
            self.store(offset, new)?;
            return Ok(Replaced::Word(old));
        }
        let new = self.new_leaf(leaf.key, value)?;
        let mut slot = slot;
        let count = way.steps.len();
        self.thaw(&mut way.steps, count, &mut slot)?;
        self.store(slot, new.0)?;
        self.transaction.free(leaf.handle)?;
        Ok(Replaced::Leaf { offset, length: leaf.value_bytes })
    }

    /// Puts a node between the way and the keys that differ from `key` before they branch.
    fn branch(
        &mut self,
        way: &mut Way,
        common: &Agreement<'_>,
        key: &[u8],
        leaf: Link,
    ) -> Result<()> {
        let position = common.bytes;
        let Some(other) = &common.leaf else {
            return Err(damaged("a way that ended nowhere", self.header));
        };
        let above = way.steps.partition_point(|step| step.position <= position);
        let (mut slot, sibling) = match (way.steps.get(above), way.end) {
            (Some(step), _) => (step.slot, step.node),
            (None, End::Leaf { slot, handle }) => (slot, Link::leaf(handle)),
            (None, _) => return Err(damaged("a node that its own keys do not lead to", position)),
        };
        let at = position as usize;
        let node = match (key.get(at), other.key.get(at)) {
            (Some(new), Some(old)) if new != old => {
                self.new_node(position, Link::NONE, &[(*old, sibling), (*new, leaf)])?
            }
            (Some(new), None) => self.new_node(position, sibling, &[(*new, leaf)])?,
            (None, Some(old)) => self.new_node(position, leaf, &[(*old, sibling)])?,
            _ => return Err(damaged("two keys that differ nowhere", position)),
        };
        self.thaw(&mut way.steps, above, &mut slot)?;
        self.store(slot, node.0)
    }

    /// Adds a child to the last node of a way: under `byte`, or as the key that ends there.
    fn add_child(&mut self, way: &mut Way, last: Step, byte: Option<u8>, leaf: Link) -> Result<()> {
        let count = way.steps.len();
        let place = self.memory.load(last.node.handle() + NODE_PLACE)?;
        let shape = last.node.shape()?;
        let mut slot = last.slot;
        if let Some(byte) = byte
            && place >> 32 >= shape.capacity() as u64
        {
            let mut all = children(&self.memory, last.node)?;
            all.push((byte, leaf));
            let end = Link(self.memory.load(last.node.handle() + NODE_END)?);
            let grown = self.new_node(last.position, end, &all)?;
            self.thaw(&mut way.steps, count - 1, &mut slot)?;
            self.store(slot, grown.0)?;
            return self.transaction.free(last.node.handle());
        }
        self.thaw(&mut way.steps, count, &mut slot)?;
        let handle = way.steps[count - 1].node.handle();
        match byte {
            None => self.store(handle + NODE_END, leaf.0),
            Some(byte) => self.add_in_place(handle, shape, byte, leaf),
        }
    }

    fn add_in_place(&mut self, handle: u64, shape: Shape, byte: u8, leaf: Link) -> Result<()> {
        let links = handle + shape.links();
        let place = self.memory.load(handle + NODE_PLACE)? + (1 << 32);
        if shape == Shape::Node256 {
            self.store(links + 8 * u64::from(byte), leaf.0)?;
            return self.store(handle + NODE_PLACE, place);
        }
        let slot = self.free_slot(links, shape)?;
        let (at, mark) = match shape {
            Shape::Node48 => (handle + NODE_BYTES + u64::from(byte), slot as u8 + 1),
            _ => (handle + NODE_BYTES + slot, byte),
        };
        let (word, shift) = (at & !7, 8 * (at & 7));
        let marked = self.memory.load(word)? & !(0xff << shift) | u64::from(mark) << shift;
        // A reader that finds the byte finds the link, too: in the nodes of 4 and 16 the link is
        // what makes it count, in a node of 48 the byte.
        if shape == Shape::Node48 {
            self.store(links + 8 * slot, leaf.0)?;
            self.store(word, marked)?;
            return self.store(handle + NODE_PLACE, place);
        }
        let from = handle + NODE_PLACE;
        self.transaction.add(from, word + 8 - from)?;
        self.memory.put(from, place)?;
        self.memory.put(word, marked)?;
        self.store(links + 8 * slot, leaf.0)
    }

    fn free_slot(&self, links: u64, shape: Shape) -> Result<u64> {
        for slot in 0..shape.capacity() as u64 {
            if self.memory.load(links + 8 * slot)? == 0 {
                return Ok(slot);
            }
        }
        Err(damaged("a node that counts fewer children than it has", links))
    }
}

/// What a put replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::collections) enum Replaced {
    /// A word, stored over.
    Word(u64),
    /// A value that lies in a leaf which is free now, its bytes intact until the transaction ends.
    Leaf { offset: u64, length: u64 },
}
