//! Ordered tables: B-link trees whose pages are records of the flash engine.
//!
//! A change goes to the journal and to memory first. Maintenance merges it into a page later,
//! together with the other changes of that page. A read looks at the changes that wait, then at the
//! delta page of a leaf where it may hold the key, then at the leaf.
//!
//! The crate starts no thread and reads no clock: [`Tree::maintain`] does background work when it
//! is called, and time is an argument.

mod check;
mod error;
mod filter;
pub mod format;
mod journal;
mod maintain;
mod memory;
mod merge;
mod node;
mod options;
mod orphans;
#[doc(hidden)]
pub mod pending;
mod recovery;
mod rows;
mod sequence;
mod session;
mod shared;
mod statistics;
mod superseded;
mod table;
mod tree;
mod values;

pub use check::{
    CheckedTable, CheckedTables, TableDamage, TableEntry, TablesExtent, Tell, Told, check_tables,
    extent_of_tables, list_tables,
};
pub use filter::Filter;
pub use maintain::Progress;
pub use merge::{
    Change, DeltaTarget, FoldMany, Folded, FoldedRows, Leaf, LeafLimits, MergeError, MergeFunction,
    NewDelta, NewLeaf, Rewrite, merge_delta, merge_leaves,
};
pub use options::{RowCounts, TableOptions, TreeOptions};
pub use rows::{RowBuffer, RowForm, RowParts, UnfoldedRow};
pub use sequence::Sequence;
pub use session::{
    Action, ConditionalBatch, CountRange, Expected, Order, Outcome, RankRange, Reading, RowAt,
    RowCondition, RowEstimate, RowRange, Session, Visit, Write, WriteBatch,
};
pub use shared::SharedMerge;
pub use statistics::TreeStatistics;
pub use table::{Table, TableFigures};
pub use tree::Tree;
