//! The contestants, one a file.

#[cfg(feature = "bf-tree")]
pub mod bf_tree;
#[cfg(feature = "entresol")]
pub mod entresol;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "foyer")]
pub mod foyer;
#[cfg(feature = "lmdb")]
pub mod lmdb;
pub mod memcached;
pub mod nothing;
#[cfg(feature = "redb")]
pub mod redb;
pub mod redis;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "rocksdb")]
mod rocksdb_c;
mod socket;
#[cfg(feature = "entresol")]
pub mod tables;
