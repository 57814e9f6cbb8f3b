//! Ordered tables: B-link trees whose pages are records of the flash engine.
//!
//! A change goes to the journal and to memory first. Maintenance merges it into a page later,
//! together with the other changes of that page. This crate has the parts that need no device: the
//! formats of pages and of batches, and the merge of a page with its changes.
//!
//! The crate starts no thread and reads no clock.

mod filter;
pub mod format;
mod merge;
#[doc(hidden)]
pub mod pending;
mod sequence;

pub use filter::Filter;
pub use merge::{
    Change, DeltaTarget, Folded, Leaf, LeafLimits, MergeError, MergeFunction, NewDelta, NewLeaf,
    Rewrite, merge_delta, merge_leaves,
};
pub use sequence::Sequence;
