//! Whether a tree is sound: for tests, for `check` and after damage.

use crate::Heap;
use crate::collections::radix::node::{
    Header, Leaf, Link, NODE_BYTES, NODE_END, NODE_GENERATION, NODE_PLACE, Shape, children, damaged,
};
use crate::collections::radix::search::{Tree, descending};
use crate::collections::words::Words;
use crate::error::Result;

/// What a collection holds, as counted by looking at all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// Entries or elements.
    pub entries: u64,
    /// Blocks, the collection's header among them.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub bytes: u64,
}

/// Looks at every block of the tree at `header`; an error says what is wrong.
pub(in crate::collections) fn verify(heap: &Heap, header: u64) -> Result<Checked> {
    let memory = Words::of(heap);
    let mut found = Checked::default();
    live(heap, header, Header::BYTES, &mut found)?;
    let tree = Tree::at(memory, header + Header::ROOT)?;
    let newest = memory.load(header + Header::GENERATION)?;
    let mut path = Vec::new();
    let mut last: Option<&[u8]> = None;
    // Each link with what its node must lie behind, and the byte under which it stands.
    let mut waiting = vec![(tree.root, None, Under::Nothing)];
    while let Some((link, above, under)) = waiting.pop() {
        if link.is_none() {
            continue;
        }
        if link.shape()? == Shape::Leaf {
            let leaf = Leaf::at(&memory, link.handle())?;
            let bytes = Leaf::bytes(leaf.key.len() as u64, leaf.value_bytes);
            live(heap, link.handle(), bytes, &mut found)?;
            if last.is_some_and(|last| last >= leaf.key) {
                return Err(damaged("keys out of order", link.handle()));
            }
            if !under.holds(above, leaf.key) {
                return Err(damaged("a key in the wrong place", link.handle()));
            }
            last = Some(leaf.key);
            found.entries += 1;
            continue;
        }
        let position = link.position(&memory)?;
        descending(above, position)?;
        node(heap, &memory, link, position, newest)?;
        live(heap, link.handle(), link.shape()?.bytes(), &mut found)?;
        path.clear();
        path.extend(children(&memory, link)?);
        for (byte, child) in path.iter().rev() {
            waiting.push((*child, Some(position), Under::Byte(*byte)));
        }
        let end = Link(memory.load(link.handle() + NODE_END)?);
        waiting.push((end, Some(position), Under::End));
    }
    let entries = memory.load(header + Header::ENTRIES)?;
    if entries != found.entries {
        return Err(damaged("other entries are there than counted", entries));
    }
    Ok(found)
}

/// Where a link stands in the node above.
#[derive(Clone, Copy)]
enum Under {
    Nothing,
    End,
    Byte(u8),
}

impl Under {
    fn holds(self, position: Option<u64>, key: &[u8]) -> bool {
        let at = position.unwrap_or(0) as usize;
        match self {
            Under::Nothing => true,
            Under::End => key.len() == at,
            Under::Byte(byte) => key.get(at) == Some(&byte),
        }
    }
}

fn node(heap: &Heap, memory: &Words<'_>, link: Link, position: u64, newest: u64) -> Result<()> {
    let handle = link.handle();
    let place = memory.load(handle + NODE_PLACE)?;
    let all = children(memory, link)?;
    let end = memory.load(handle + NODE_END)? != 0;
    if place & 0xffff_ffff != position {
        return Err(damaged("a link that tells another position than its node", handle));
    }
    if place >> 32 != all.len() as u64 {
        return Err(damaged("a node that counts other children than it has", handle));
    }
    if all.len() + usize::from(end) < 2 || all.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(damaged("a node with too few children, or two under one byte", handle));
    }
    if all.iter().any(|child| hidden(memory, link, *child)) {
        return Err(damaged("a link behind an empty one with the same byte", handle));
    }
    if memory.load(handle + NODE_GENERATION)? > newest {
        return Err(damaged("a node newer than its tree", handle));
    }
    if !heap.is_live(handle) {
        return Err(damaged("a node that is free", handle));
    }
    Ok(())
}

/// Whether who looks only at the first place with the byte does not find the child.
fn hidden(memory: &Words<'_>, node: Link, (byte, child): (u8, Link)) -> bool {
    let handle = node.handle();
    let Ok(shape @ (Shape::Node4 | Shape::Node16)) = node.shape() else {
        return false;
    };
    let places = 0..shape.capacity() as u64;
    let mut same = places.filter(|at| memory.byte(handle + NODE_BYTES + at).ok() == Some(byte));
    let first = same.next().map(|at| memory.load(handle + shape.links() + 8 * at));
    !matches!(first, Some(Ok(link)) if link == child.0)
}

/// Counts a block, which must be live and large enough.
fn live(heap: &Heap, handle: u64, bytes: u64, found: &mut Checked) -> Result<()> {
    match heap.usable_bytes(handle) {
        Some(usable) if usable >= bytes => {
            found.blocks += 1;
            found.bytes += bytes;
            Ok(())
        }
        _ => Err(damaged("a block that is free or too small", handle)),
    }
}
