//! The tiered store: shared by all threads of a process.

use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{Error, ErrorKind, Result, SpaceId, StoreOptions, Timestamp};

use crate::admission::Admission;
use crate::session::{Session, SessionOptions};
use crate::statistics::Statistics;

/// Memory in front of a flash store. Thread-safe; every thread takes a [`Session`] of its own.
#[derive(Debug)]
pub struct Tiered {}

/// How a tiered store is opened.
#[derive(Debug, Clone)]
pub struct TieredOptions {
    /// The flash store under it.
    pub store: StoreOptions,
    /// One cap for everything this library keeps in memory, bytes: index, buffers, cache.
    pub memory_bytes: u64,
    /// Bytes of the cache of entries; `None`: what `memory_bytes` leaves over, shrinking as the
    /// index grows.
    pub cache_bytes: Option<u64>,
    /// Which entries may enter flash (caches only; stores admit all).
    pub admission: Admission,
}

/// How much background work one call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Most segments to reclaim in this call.
    pub segments: u32,
}

/// What one call of `maintain` did and what remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Maintenance {
    /// Segments made free.
    pub segments_freed: u32,
    /// Whether calling again now would find work.
    pub more: bool,
}

impl Tiered {
    /// Opens or makes the store on `device`.
    pub fn open(
        _device: Arc<dyn Device>,
        _options: TieredOptions,
        _now: Timestamp,
    ) -> Result<Arc<Tiered>> {
        Err(Error::new(ErrorKind::Device, "not yet"))
    }

    /// A session for the calling thread.
    pub fn session(self: &Arc<Self>, _options: SessionOptions) -> Result<Session> {
        Err(Error::new(ErrorKind::Device, "not yet"))
    }

    /// Entries in `space`, expired ones that were not yet found included. O(1).
    pub fn count(&self, _space: SpaceId) -> u64 {
        0
    }

    /// Spaces that hold entries.
    pub fn spaces(&self) -> Vec<SpaceId> {
        Vec::new()
    }

    /// Removes all entries of `space`: at once for every reader, durable on return.
    pub fn drop_space(&self, _space: SpaceId) -> Result<()> {
        Ok(())
    }

    /// Removes all entries of one partition of `space`.
    pub fn drop_partition(&self, _space: SpaceId, _partition: u16) -> Result<()> {
        Ok(())
    }

    /// Does background work: reclaim, expiry, periodic sync. Call it from a thread of your own.
    pub fn maintain(&self, _now: Timestamp, _budget: Budget) -> Result<Maintenance> {
        Ok(Maintenance::default())
    }

    /// On return every write acknowledged before the call survives power loss.
    pub fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Writes a checkpoint so that the next open is fast; further writes are refused.
    pub fn close(&self, _now: Timestamp) -> Result<()> {
        Ok(())
    }

    /// Figures since the store was opened.
    pub fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
