//! Bytes at offsets on a medium.
//!
//! A [`Device`] has a capacity and reads, writes and syncs aligned ranges of bytes. It knows
//! nothing of records or segments. It is the only boundary between the engine and the outside
//! world: files and raw block devices ([`FileDevice`]), memory ([`MemoryDevice`]), several devices
//! striped ([`StripeDevice`]) and, in tests, the simulated device implement it.
//!
//! I/O is either blocking (`read_at`, `write_at`, `sync`) or goes through a [`Queue`], which one
//! thread owns and with which it keeps many requests in flight.

mod arena;
mod attended;
mod block_device;
mod blocking;
mod buffer;
mod creation;
mod device;
mod error;
mod exclusive;
mod file;
mod foreign;
mod groups;
mod host;
mod inline;
mod list;
mod mapping;
mod memory;
mod nvme;
mod overlay;
mod ownerless;
mod peer;
mod pending;
mod place;
mod plain;
mod residence;
mod shared;
mod stripe;
mod system;
mod table;
#[cfg(test)]
mod testing;
mod uring;
mod waiting;

pub use arena::{Arena, ArenaPiece};
pub use attended::Attended;
pub use buffer::{BUFFER_ALIGNMENT, IoBuffer, WriteBuffer};
pub use creation::{MadeFiles, unfinished};
pub use device::{
    Completion, Counters, Device, Doorbell, Geometry, Queue, QueueOptions, WriteMode, WriteRequest,
};
pub use error::{Error, ErrorKind, Result};
pub use file::{FileDevice, FileOptions, Force, Growth, IoEngine, Preparation, Progress};
pub use foreign::check_unknown;
pub use host::{
    boot_identity, machine_memory_bytes, memory_bytes_in, memory_share, on_all_processors,
};
pub use list::{DeviceList, Selection};
pub use memory::MemoryDevice;
pub use nvme::{NVME_HEALTH_BYTES, nvme_health_log};
pub use overlay::OverlayDevice;
pub use ownerless::{Ownerless, ownerless};
pub use peer::KeepAlive;
pub use pending::{Group as PendingGroup, Pending as PendingCount, PendingIo};
pub use place::{Ground, Place};
pub use plain::{Access, PlainFile, Zeroed};
pub use shared::{SharedFile, SharedMemory};
pub use stripe::{STRIPE_MAGIC, StripeDevice, StripeOptions};
pub use system::free_bytes;
pub use table::{HUGE_PAGE_BYTES, Table};
pub use uring::uring_refusal;
pub use waiting::wait_readable;
