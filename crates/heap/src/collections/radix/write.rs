//! The parts of a change of a tree: blocks, published links, copies of blocks that views see.

use entresol_planted::planted;

use crate::Transaction;
use crate::collections::radix::insert::Value;
use crate::collections::radix::node::{
    Header, LEAF_VALUE, Leaf, Link, NODE_BYTES, NODE_END, NODE_GENERATION, NODE_PLACE, Shape,
    damaged, padded,
};
use crate::collections::radix::search::{Steps, Tree};
use crate::collections::shared::Change;
use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};

/// A change of the tree whose header is at `header`, in a transaction that holds it.
pub(in crate::collections) struct Writer<'w> {
    pub(super) memory: Words<'w>,
    pub(super) transaction: &'w mut Transaction,
    pub(super) header: u64,
    change: Change<'w>,
}

impl<'w> Writer<'w> {
    pub(in crate::collections) fn new(
        memory: Words<'w>,
        transaction: &'w mut Transaction,
        header: u64,
        change: Change<'w>,
    ) -> Writer<'w> {
        Writer { memory, transaction, header, change }
    }

    /// The tree as it is now, this transaction's changes included.
    pub(in crate::collections) fn tree(&self) -> Result<Tree<'w>> {
        Tree::at(self.memory, self.root_slot())
    }

    pub(in crate::collections) fn memory(&self) -> Words<'w> {
        self.memory
    }

    pub(in crate::collections) fn transaction(&mut self) -> &mut Transaction {
        self.transaction
    }

    pub(super) fn root_slot(&self) -> u64 {
        self.header + Header::ROOT
    }

    pub(super) fn store(&mut self, offset: u64, value: u64) -> Result<()> {
        self.memory.store(self.transaction, offset, value)
    }

    /// Adds to the number of entries.
    pub(super) fn count(&mut self, difference: i64) -> Result<()> {
        let offset = self.header + Header::ENTRIES;
        let entries = self.memory.load(offset)?;
        match entries.checked_add_signed(difference) {
            Some(entries) => self.store(offset, entries),
            None => Err(damaged("fewer entries are counted than there are", entries)),
        }
    }

    /// Whether a view could see any leaf, so that none may be changed in place.
    pub(in crate::collections) fn is_frozen(&self) -> bool {
        self.change.frozen_below > 0
    }

    /// The generation of what this change makes.
    pub(in crate::collections) fn generation(&self) -> u64 {
        self.change.generation
    }

    /// A new leaf, not yet linked.
    pub(super) fn new_leaf(&mut self, key: &[u8], value: Value<'_>) -> Result<Link> {
        let word;
        let value = match value {
            Value::Bytes(bytes) => bytes,
            Value::Word(value) => {
                word = value.to_le_bytes();
                &word
            }
        };
        let (Ok(key_bytes), Ok(value_bytes)) =
            (u32::try_from(key.len()), u32::try_from(value.len()))
        else {
            let detail = format!(
                "a key of {} bytes with a value of {} bytes; each may have 4294967295 at most",
                key.len(),
                value.len()
            );
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        };
        let bytes = Leaf::bytes(key_bytes.into(), value_bytes.into());
        let handle = self.allocate(bytes)?;
        let lengths = u64::from(key_bytes) | u64::from(value_bytes) << 32;
        self.memory.fill(handle, &lengths.to_le_bytes())?;
        self.memory.fill(handle + LEAF_VALUE, value)?;
        self.memory.fill(handle + LEAF_VALUE + padded(value_bytes.into()), key)?;
        Ok(Link::leaf(handle))
    }

    /// A new node with these children, in any order, not yet linked; of one child, that child.
    pub(super) fn new_node(
        &mut self,
        position: u64,
        end: Link,
        children: &[(u8, Link)],
    ) -> Result<Link> {
        match (children, end.is_none()) {
            ([], _) => return Ok(end),
            ([(_, only)], true) => return Ok(*only),
            _ => {}
        }
        if position > u64::from(u32::MAX) {
            return Err(damaged("a position beyond the longest key", position));
        }
        let shape = Shape::for_children(children.len());
        let handle = self.allocate(shape.bytes())?;
        let memory = self.memory;
        memory.put(handle + NODE_GENERATION, self.born()?)?;
        memory.put(handle + NODE_END, end.0)?;
        memory.put(handle + NODE_PLACE, position | (children.len() as u64) << 32)?;
        let bytes = handle + NODE_BYTES;
        let links = handle + shape.links();
        for (index, (byte, link)) in children.iter().enumerate() {
            let slot = index as u64;
            match shape {
                Shape::Node256 => memory.put(links + 8 * u64::from(*byte), link.0)?,
                Shape::Node48 => {
                    memory.fill(bytes + u64::from(*byte), &[slot as u8 + 1])?;
                    memory.put(links + 8 * slot, link.0)?;
                }
                _ => {
                    memory.fill(bytes + slot, &[*byte])?;
                    memory.put(links + 8 * slot, link.0)?;
                }
            }
        }
        Ok(Link::node(handle, shape, position))
    }

    /// Makes the first `count` nodes of a way such that no view sees them, so that they may be
    /// changed in place; `slot` follows if it lies in one of them.
    pub(super) fn thaw(&mut self, steps: &mut Steps, count: usize, slot: &mut u64) -> Result<()> {
        if !self.is_frozen() || planted!("view-changed-in-place") {
            return Ok(());
        }
        for index in 0..count {
            let node = steps[index].node;
            let generation = self.memory.load(node.handle() + NODE_GENERATION)?;
            if generation >= self.change.frozen_below {
                continue;
            }
            let copy = self.copy_node(node, steps[index].position)?;
            self.store(steps[index].slot, copy.0)?;
            self.transaction.free(node.handle())?;
            steps[index].node = copy;
            let from = node.handle();
            let moved = |slot: &mut u64| {
                if (from..from + node.shape().map_or(0, Shape::bytes)).contains(slot) {
                    *slot = *slot - from + copy.handle();
                }
            };
            if let Some(next) = steps.get_mut(index + 1) {
                moved(&mut next.slot);
            }
            moved(slot);
        }
        Ok(())
    }

    /// The generation of what this change makes; the header knows the newest.
    fn born(&mut self) -> Result<u64> {
        let generation = self.change.generation;
        let offset = self.header + Header::GENERATION;
        if self.memory.load(offset)? < generation {
            self.store(offset, generation)?;
        }
        Ok(generation)
    }

    fn copy_node(&mut self, node: Link, position: u64) -> Result<Link> {
        let shape = node.shape()?;
        let handle = self.allocate(shape.bytes())?;
        let generation = self.born()?;
        let old = self.memory.bytes(node.handle(), shape.bytes())?;
        self.memory.fill(handle, old)?;
        self.memory.put(handle + NODE_GENERATION, generation)?;
        Ok(Link::node(handle, shape, position))
    }

    /// A new block of zeros, all of which becomes part of the transaction.
    fn allocate(&mut self, bytes: u64) -> Result<u64> {
        let handle = self.transaction.allocate(bytes)?;
        self.memory = self.memory.again();
        Ok(handle)
    }
}
