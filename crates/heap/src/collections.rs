//! Collections that live in a heap: ordered maps (adaptive radix trees), a hash map, arrays, a
//! linked list, a deque and an append log.
//!
//! Invariants:
//! 1. All data of a collection lies in the heap. There is no copy in memory that an abort, a
//!    rollback or a crash could leave wrong: memory has only locks and the state of views.
//! 2. Every change goes through a [`Transaction`](crate::Transaction), so an operation is there
//!    whole or not at all, alone or together with the caller's other changes.
//! 3. One transaction at a time changes a collection: the first change locks it until that
//!    transaction ends. Readers take no lock and see changes at once, committed or not; a view is
//!    of one moment and never changes.
//! 4. The contents of the heap are not trusted: a handle outside the heap or an impossible shape is
//!    an error, not a wild read.

mod anchor;
mod append_log;
mod array;
mod deque;
mod hash_map;
mod linked_list;
mod radix;
mod radix_map;
mod radix_tree;
mod row;
mod shared;
mod words;

pub use append_log::{AppendLog, LogRange, LogReader, LogView};
pub use array::{Array, Width};
pub use deque::{Deque, DequeRange, DequeView};
pub use hash_map::{HashEntries, HashMap, HashReader, HashView};
pub use linked_list::LinkedList;
pub use radix::{Checked, TreeBlocks};
pub use radix_map::{MapRange, MapReader, MapView, RadixMap};
pub use radix_tree::{RadixTree, TreeRange, TreeReader, TreeView};
