//! A persistent heap: allocations and transactions in one file.
//!
//! A program keeps its objects at offsets from a base, changes them in place inside transactions,
//! and finds them after a crash as the last committed transaction left them. It works the same on a
//! plain file, on tmpfs and on persistent memory.
//!
//! ```no_run
//! use entresol_heap::{CreateOptions, Heap};
//! # fn main() -> entresol_heap::Result<()> {
//! let heap = Heap::create("a.heap".as_ref(), &CreateOptions::default())?;
//! let mut transaction = heap.begin();
//! let block = transaction.allocate(64)?;
//! transaction.write_u64(block, 42)?;
//! transaction.set_root(block)?;
//! transaction.commit()?;
//! heap.close()
//! # }
//! ```
//!
//! A heap on a plain file may be encrypted: [`CreateOptions::cipher`].
//!
//! How it works: stores go to a private mapping of the file and never reach it by themselves. A
//! commit appends one checksummed record with the new bytes to a log and makes that durable; a
//! checkpoint applies records to the file's pages, and recovery is the same function.

mod allocator;
mod attendance;
pub mod backing;
mod backup;
mod check;
mod cipher;
pub mod collections;
mod core;
mod encryption;
mod error;
mod format;
mod guard;
mod heap;
mod heap_file;
mod keeper;
mod log;
mod lost;
mod memory;
mod opening;
mod options;
mod random_id;
mod ranges;
mod read_guard;
mod replay;
mod signal;
mod statistics;
mod transaction;

pub use check::{Repair, Report, check, check_on};
pub use cipher::{Aes256Gcm, Cipher, CipherKey, NONCE_BYTES, TAG_BYTES};
pub use error::{Error, ErrorKind, Result};
pub use heap::Heap;
pub use memory::Memory;
pub use options::{Access, CreateOptions, Durability, Medium, OpenOptions};
pub use read_guard::ReadGuard;
pub use statistics::{DurabilityReport, Statistics};
pub use transaction::{Savepoint, Transaction};
