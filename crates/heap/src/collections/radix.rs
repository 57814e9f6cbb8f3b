//! An adaptive radix tree over byte strings, in a heap: the engine under the ordered maps and the
//! hash map. (After V. Leis and others, "The Adaptive Radix Tree", ICDE 2013; its nodes hold the
//! position where they branch, as in D. Morrison's PATRICIA, 1968, instead of a path's bytes.)
//!
//! ```text
//! header ─► node, position 0 ─┬─ 'a' ─► leaf "an"
//!                             └─ 't' ─► node, position 2 ─┬─ end ─► leaf "te"
//!                                                         └─ 'n' ─► leaf "ten"
//! ```
//!
//! Invariants:
//! 1. Order is by unsigned bytes, a key before those it is a prefix of. A node at position `p`
//!    holds keys that agree in their first `p` bytes, each child those with one byte there, `end`
//!    the one of length `p`. Every node has two children at least; positions grow downwards.
//! 2. A leaf holds its whole key, which every search compares in the end. So a node holds none of
//!    the bytes that it skips, and moves up or down without being rewritten.
//! 3. One store of eight bytes publishes each change to readers, which take no lock: a block is
//!    complete before a word refers to it, and keeps its bytes until no reader's guard is older
//!    than its removal.
//! 4. Blocks that a view sees are never changed: the path from the header to a change is copied.

mod blocks;
mod cursor;
mod insert;
mod node;
mod remove;
mod search;
mod split;
mod trunk;
mod verify;
mod write;

pub use blocks::TreeBlocks;
pub(super) use cursor::Span;
pub(super) use insert::{Replaced, Value};
pub(super) use trunk::{Form, Frozen, Reader, Trunk};
pub use verify::Checked;
pub(super) use write::Writer;
