//! Removes, one key or all.

use entresol_planted::planted;

use crate::collections::radix::insert::Replaced;
use crate::collections::radix::node::{
    Header, Leaf, Link, NODE_BYTES, NODE_END, NODE_PLACE, Shape, children, damaged,
};
use crate::collections::radix::search::{End, Step, Steps};
use crate::collections::radix::write::Writer;
use crate::error::{ErrorKind, Result};

/// Gets a key, and offset and length of its value.
type Visit<'v> = dyn FnMut(&[u8], u64, u64) -> Result<()> + 'v;

impl Writer<'_> {
    /// Removes `key`; returns where its value lies until the transaction ends. An absent key
    /// removes nothing.
    pub(in crate::collections) fn remove(&mut self, key: &[u8]) -> Result<Option<Replaced>> {
        let tree = self.tree()?;
        let mut way = tree.way(self.root_slot(), key)?;
        let End::Leaf { slot, handle } = way.end else { return Ok(None) };
        let leaf = Leaf::at(&self.memory, handle)?;
        if leaf.key != key && !planted!("absent-key-removed") {
            return Ok(None);
        }
        match way.steps.last().copied() {
            None => self.store(slot, 0)?,
            Some(last) => {
                let byte = key.get(last.position as usize).copied();
                self.remove_child(&mut way.steps, last, byte, slot)?;
            }
        }
        self.transaction.free(handle)?;
        self.count(-1)?;
        Ok(Some(Replaced::Leaf { offset: handle + 8, length: leaf.value_bytes }))
    }

    /// Calls `removed` for each entry with its key and the offset and length of its value, then
    /// frees everything but the header.
    pub(in crate::collections) fn clear(&mut self, removed: &mut Visit<'_>) -> Result<()> {
        let tree = self.tree()?;
        self.free_below(tree.root, removed)?;
        self.store(self.root_slot(), 0)?;
        self.store(self.header + Header::ENTRIES, 0)
    }

    /// Frees the header of an empty tree.
    pub(in crate::collections) fn free_header(&mut self) -> Result<()> {
        self.transaction.free(self.header)
    }

    fn free_below(&mut self, root: Link, removed: &mut Visit<'_>) -> Result<()> {
        // What is still to be freed, the first in order on top.
        let mut waiting = vec![root];
        while let Some(link) = waiting.pop() {
            if link.is_none() {
                continue;
            }
            if link.shape()? == Shape::Leaf {
                let leaf = Leaf::at(&self.memory, link.handle())?;
                removed(leaf.key, leaf.handle + 8, leaf.value_bytes)?;
            } else {
                let below = children(&self.memory, link)?;
                waiting.extend(below.iter().rev().map(|(_, child)| *child));
                waiting.push(Link(self.memory.load(link.handle() + NODE_END)?));
            }
            self.transaction.free(link.handle())?;
        }
        Ok(())
    }

    /// Takes the child under `byte`, or the one that ends there, out of the last node of a way.
    fn remove_child(
        &mut self,
        steps: &mut Steps,
        last: Step,
        byte: Option<u8>,
        slot: u64,
    ) -> Result<()> {
        let count = steps.len();
        let handle = last.node.handle();
        let shape = last.node.shape()?;
        let place = self.memory.load(handle + NODE_PLACE)?;
        let end = match byte {
            Some(_) => Link(self.memory.load(handle + NODE_END)?),
            None => Link::NONE,
        };
        let Some(left) = (place >> 32).checked_sub(u64::from(byte.is_some())) else {
            return Err(damaged("a node that counts no children", handle));
        };
        if left + u64::from(!end.is_none()) == 1 || left <= shrinks_at(shape) {
            let mut all = children(&self.memory, last.node)?;
            all.retain(|(other, _)| Some(*other) != byte);
            if all.len() as u64 != left || (left == 0 && end.is_none()) {
                return Err(damaged("a node that counts other children than it has", handle));
            }
            match self.new_node(last.position, end, &all) {
                Ok(smaller) => {
                    let mut slot = last.slot;
                    self.thaw(steps, count - 1, &mut slot)?;
                    self.store(slot, smaller.0)?;
                    return self.transaction.free(handle);
                }
                // A node that is larger than it must be serves as well: a full heap gives keys up.
                Err(error) if error.kind() == ErrorKind::Full => {}
                Err(error) => return Err(error),
            }
        }
        let mut slot = slot;
        self.thaw(steps, count, &mut slot)?;
        let handle = steps[count - 1].node.handle();
        let Some(byte) = byte else { return self.store(slot, 0) };
        if shape == Shape::Node48 {
            let at = handle + NODE_BYTES + u64::from(byte);
            let (word, shift) = (at & !7, 8 * (at & 7));
            let unmarked = self.memory.load(word)? & !(0xff << shift);
            self.store(word, unmarked)?;
        }
        self.store(slot, 0)?;
        self.store(handle + NODE_PLACE, place - (1 << 32))
    }
}

/// A node with so many children left becomes the next smaller one. Below the smaller one's
/// capacity, so that puts and removes in turn do not copy it every time.
fn shrinks_at(shape: Shape) -> u64 {
    match shape {
        Shape::Leaf | Shape::Node4 => 0,
        Shape::Node16 => 3,
        Shape::Node48 => 12,
        Shape::Node256 => 37,
    }
}
