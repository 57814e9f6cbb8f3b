//! Division of a tree at a key.

use std::cmp::Ordering;

use crate::collections::radix::node::{Header, Link, NODE_END, children};
use crate::collections::radix::write::Writer;
use crate::error::Result;

impl Writer<'_> {
    /// Moves every entry from `key` on, which are `count`, to the tree at the header `other`,
    /// which is empty. The nodes on the way are made anew; everything beside it moves as it is.
    pub(in crate::collections) fn split_off(
        &mut self,
        key: &[u8],
        other: u64,
        count: u64,
    ) -> Result<()> {
        let (low, high) = self.divide(key)?;
        self.store(self.root_slot(), low.0)?;
        self.store(other + Header::ROOT, high.0)?;
        self.store(other + Header::ENTRIES, count)?;
        self.count(-(count as i64))
    }

    /// The entries before `key`, and the others.
    fn divide(&mut self, key: &[u8]) -> Result<(Link, Link)> {
        let place = self.tree()?.place(self.root_slot(), key)?;
        let (mut below, mut above) = match place.rest {
            None => (Link::NONE, Link::NONE),
            Some((link, Ordering::Less)) => (link, Link::NONE),
            Some((link, _)) => (Link::NONE, link),
        };
        for step in place.steps.iter().rev() {
            let mut end = Link(self.memory.load(step.node.handle() + NODE_END)?);
            let byte = key.get(step.position as usize);
            if byte.is_none() {
                end = Link::NONE;
            }
            let (mut low, mut high) = (Vec::new(), Vec::new());
            for (at, child) in children(&self.memory, step.node)? {
                match byte.map_or(Ordering::Greater, |byte| at.cmp(byte)) {
                    Ordering::Less => low.push((at, child)),
                    Ordering::Greater => high.push((at, child)),
                    Ordering::Equal => {}
                }
            }
            let mut high_end = Link::NONE;
            match byte {
                Some(byte) => {
                    low.extend((!below.is_none()).then_some((*byte, below)));
                    high.extend((!above.is_none()).then_some((*byte, above)));
                }
                None => high_end = above,
            }
            below = self.new_node(step.position, end, &low)?;
            above = self.new_node(step.position, high_end, &high)?;
            self.transaction.free(step.node.handle())?;
        }
        Ok((below, above))
    }
}
