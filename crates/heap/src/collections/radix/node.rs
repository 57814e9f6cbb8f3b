//! How the tree lies in the heap: header, nodes of four sizes, leaves. All words are
//! little-endian; offsets are of a block's beginning.
//!
//! ```text
//! header  0 kind · 8 root link · 16 entries · 24 newest generation · 32 form · 40 seed
//! node    0 generation · 8 end link · 16 position (32 bits), children (32 bits) · then
//!    4    24 bytes[4], padded to 8                · 32 links[4]
//!    16   24 bytes[16]                            · 40 links[16]
//!    48   24 slot of each byte[256], 0 is none    · 280 links[48]
//!    256  24 links[256]
//! leaf    0 length of key (32 bits), of value (32 bits) · 8 value, padded to 8 · key
//! link    bits 0–2 shape · 3–47 handle / 8 · 48–63 position of the node, 65535 = ask the node
//! ```
//!
//! A position in the link spares a search the node's first line. In the nodes of 4 and 16 a slot
//! whose link is empty is free, whatever its byte says.

use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};

/// Offsets in the header of a tree.
pub(in crate::collections) struct Header;

impl Header {
    pub(in crate::collections) const BYTES: u64 = 48;
    pub(super) const ROOT: u64 = 8;
    pub(in crate::collections) const ENTRIES: u64 = 16;
    pub(in crate::collections) const GENERATION: u64 = 24;
    pub(in crate::collections) const FORM: u64 = 32;
    pub(in crate::collections) const SEED: u64 = 40;
    /// "radix" and the format's version, as the word at offset 0.
    pub(in crate::collections) const KIND: u64 = u64::from_le_bytes(*b"radix\0\0\x01");
}

/// Offsets in a node.
pub(super) const NODE_GENERATION: u64 = 0;
pub(super) const NODE_END: u64 = 8;
pub(super) const NODE_PLACE: u64 = 16;
pub(super) const NODE_BYTES: u64 = 24;

pub(super) const LEAF_VALUE: u64 = 8;

const POSITION_SHIFT: u32 = 48;
/// Stands in a link for "ask the node".
const POSITION_FAR: u64 = 0xffff;
const HANDLE_MASK: u64 = 0x0000_ffff_ffff_fff8;

/// What a link leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Leaf,
    Node4,
    Node16,
    Node48,
    Node256,
}

impl Shape {
    /// The smallest node for so many children.
    pub(super) fn for_children(count: usize) -> Shape {
        match count {
            0..=4 => Shape::Node4,
            5..=16 => Shape::Node16,
            17..=48 => Shape::Node48,
            _ => Shape::Node256,
        }
    }

    /// Most children of a node of this shape.
    pub(super) const fn capacity(self) -> usize {
        match self {
            Shape::Leaf => 0,
            Shape::Node4 => 4,
            Shape::Node16 => 16,
            Shape::Node48 => 48,
            Shape::Node256 => 256,
        }
    }

    /// Where a node's links begin.
    pub(super) const fn links(self) -> u64 {
        match self {
            Shape::Leaf => 0,
            Shape::Node4 => 32,
            Shape::Node16 => 40,
            Shape::Node48 => 280,
            Shape::Node256 => 24,
        }
    }

    /// Bytes of a node.
    pub(super) const fn bytes(self) -> u64 {
        self.links() + 8 * self.capacity() as u64
    }
}

/// A word that refers to a node or a leaf; 0 refers to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link(pub(super) u64);

impl Link {
    pub(super) const NONE: Link = Link(0);

    pub(super) fn leaf(handle: u64) -> Link {
        debug_assert!(handle & !HANDLE_MASK == 0);
        Link(handle | 1)
    }

    pub(super) fn node(handle: u64, shape: Shape, position: u64) -> Link {
        debug_assert!(handle & !HANDLE_MASK == 0);
        let tag = match shape {
            Shape::Leaf => 1,
            Shape::Node4 => 2,
            Shape::Node16 => 3,
            Shape::Node48 => 4,
            Shape::Node256 => 5,
        };
        Link(handle | tag | position.min(POSITION_FAR) << POSITION_SHIFT)
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn handle(self) -> u64 {
        self.0 & HANDLE_MASK
    }

    #[inline]
    pub(super) fn shape(self) -> Result<Shape> {
        Ok(match self.0 & 7 {
            1 => Shape::Leaf,
            2 => Shape::Node4,
            3 => Shape::Node16,
            4 => Shape::Node48,
            5 => Shape::Node256,
            _ => return Err(damaged("a link of no known shape", self.0)),
        })
    }

    /// The position that the node branches at.
    #[inline]
    pub(super) fn position(self, memory: &Words<'_>) -> Result<u64> {
        match self.0 >> POSITION_SHIFT {
            POSITION_FAR => Ok(memory.load(self.handle() + NODE_PLACE)? & 0xffff_ffff),
            near => Ok(near),
        }
    }
}

/// A leaf, as it lies.
#[derive(Clone, Copy)]
pub(super) struct Leaf<'h> {
    pub(super) handle: u64,
    pub(super) key: &'h [u8],
    pub(super) value_bytes: u64,
}

impl<'h> Leaf<'h> {
    #[inline]
    pub(super) fn at(memory: &Words<'h>, handle: u64) -> Result<Leaf<'h>> {
        let lengths = memory.load(handle)?;
        let (key_bytes, value_bytes) = (lengths & 0xffff_ffff, lengths >> 32);
        let key = memory.bytes(handle + LEAF_VALUE + padded(value_bytes), key_bytes)?;
        Ok(Leaf { handle, key, value_bytes })
    }

    /// Bytes of a leaf with a key and a value of these lengths.
    pub(super) fn bytes(key_bytes: u64, value_bytes: u64) -> u64 {
        LEAF_VALUE + padded(value_bytes) + key_bytes
    }
}

pub(super) fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

/// The child of a node under `byte`: the offset of its link and the link, unless there is none.
#[inline]
pub(super) fn child(memory: &Words<'_>, node: Link, byte: u8) -> Result<Option<(u64, Link)>> {
    let handle = node.handle();
    let shape = node.shape()?;
    let links = handle + shape.links();
    match shape {
        Shape::Leaf => Err(damaged("a leaf where a node must be", node.0)),
        Shape::Node4 => {
            let bytes = memory.load(handle + NODE_BYTES)?;
            linked(memory, links, equal_bytes(bytes, byte) & 0x8080_8080)
        }
        Shape::Node16 => {
            // Which link it is takes another line to find out; bring all of them along.
            memory.prefetch_all(handle + 64, handle + shape.bytes());
            let [low, high] = memory.load_words(handle + NODE_BYTES)?;
            match linked(memory, links, equal_bytes(low, byte))? {
                None => linked(memory, links + 64, equal_bytes(high, byte)),
                found => Ok(found),
            }
        }
        Shape::Node48 => {
            memory.prefetch_all(links, handle + shape.bytes());
            match u64::from(memory.byte(handle + NODE_BYTES + u64::from(byte))?) {
                0 => Ok(None),
                slot if slot <= 48 => present(memory, links + 8 * (slot - 1)),
                slot => Err(damaged("a node with a slot beyond its last", slot)),
            }
        }
        Shape::Node256 => present(memory, links + 8 * u64::from(byte)),
    }
}

/// The first link that is not empty among those whose byte's highest bit is set in `found`.
#[inline]
fn linked(memory: &Words<'_>, links: u64, mut found: u64) -> Result<Option<(u64, Link)>> {
    while found != 0 {
        let offset = links + u64::from(found.trailing_zeros() / 8) * 8;
        if let Some(present) = present(memory, offset)? {
            return Ok(Some(present));
        }
        found &= found - 1;
    }
    Ok(None)
}

#[inline]
fn present(memory: &Words<'_>, offset: u64) -> Result<Option<(u64, Link)>> {
    let link = Link(memory.load(offset)?);
    Ok((!link.is_none()).then_some((offset, link)))
}

/// The highest bit of each byte of `word` that equals `byte`, exactly.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let difference = word ^ (0x0101_0101_0101_0101 * u64::from(byte));
    !(((difference & LOW) + LOW) | difference | LOW)
}

/// All children of a node but `end`, in order of their bytes, with the offsets of their links.
pub(super) fn children(
    memory: &Words<'_>,
    node: Link,
) -> Result<smallvec::SmallVec<[(u8, Link); 16]>> {
    let shape = node.shape()?;
    let links = node.handle() + shape.links();
    let mut found = smallvec::SmallVec::new();
    match shape {
        Shape::Leaf => return Err(damaged("a leaf where a node must be", node.0)),
        Shape::Node4 | Shape::Node16 => {
            for slot in 0..shape.capacity() as u64 {
                if let Some((_, link)) = present(memory, links + 8 * slot)? {
                    found.push((memory.byte(node.handle() + NODE_BYTES + slot)?, link));
                }
            }
            found.sort_unstable_by_key(|(byte, _)| *byte);
        }
        Shape::Node48 | Shape::Node256 => {
            for byte in 0..=255 {
                if let Some((_, link)) = child(memory, node, byte)? {
                    found.push((byte, link));
                }
            }
        }
    }
    Ok(found)
}

#[cold]
pub(super) fn damaged(what: &str, found: u64) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a radix tree is damaged: {what} ({found:#x})"))
}

const _: () = {
    assert!(Shape::Node4.bytes() == 64 && Shape::Node16.bytes() == 168);
    assert!(Shape::Node48.bytes() == 664 && Shape::Node256.bytes() == 2072);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_found_exactly() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            for word in [0, u64::MAX, 0x0180_7f00_ff01_8000, 0x0101_0100_0001_0001] {
                let found = equal_bytes(word, byte);
                for (index, there) in word.to_le_bytes().into_iter().enumerate() {
                    assert_eq!(found >> (8 * index) & 0xff, u64::from(there == byte) << 7);
                }
            }
        }
    }
}
