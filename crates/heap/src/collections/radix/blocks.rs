//! All blocks of a tree, one after another, however large the tree is, to find the owner of each
//! block of a heap. The tree must not change meanwhile; damage is an error.

use crate::Heap;
use crate::collections::radix::node::{Header, Link, NODE_END, Shape, children, damaged};
use crate::collections::words::Words;
use crate::error::Result;

/// The handles of a tree's header, nodes and leaves.
#[derive(Debug)]
pub struct TreeBlocks {
    heap: Heap,
    waiting: Vec<Link>,
    header: Option<u64>,
    /// More blocks than these a sound tree does not have.
    left: u64,
}

impl TreeBlocks {
    pub(in crate::collections) fn of(heap: &Heap, header: u64) -> Result<TreeBlocks> {
        let memory = Words::of(heap);
        let root = Link(memory.load(header + Header::ROOT)?);
        let entries = memory.load(header + Header::ENTRIES)?;
        Ok(TreeBlocks {
            heap: heap.clone(),
            waiting: vec![root],
            header: Some(header),
            // Each node has two children at least.
            left: entries.saturating_mul(2),
        })
    }

    /// The next block; `None` after the last.
    pub fn next_block(&mut self) -> Result<Option<u64>> {
        if let Some(header) = self.header.take() {
            return Ok(Some(header));
        }
        while let Some(link) = self.waiting.pop() {
            if link.is_none() {
                continue;
            }
            if self.left == 0 {
                return Err(damaged("more blocks than its entries need", link.handle()));
            }
            self.left -= 1;
            if link.shape()? != Shape::Leaf {
                let memory = Words::of(&self.heap);
                self.waiting.extend(children(&memory, link)?.iter().map(|(_, child)| *child));
                self.waiting.push(Link(memory.load(link.handle() + NODE_END)?));
            }
            return Ok(Some(link.handle()));
        }
        Ok(None)
    }
}
