//! The trait between a heap and its medium: positioned reads and writes, and one barrier.
//!
//! Invariants that every implementation keeps:
//! 1. A read sees every write that has returned.
//! 2. A write is durable once a later `sync` has returned, and perhaps not before.
//! 3. On [`Unit::Page`] writes are whole, aligned pages, and a write that no sync covered may leave
//!    garbage in its pages and nowhere else. On [`Unit::Word`] they are aligned words of 8 bytes,
//!    each of which is there or not; neighbours are never harmed.
//!
//! Every call names its [`Site`], so that tests can leave one out and see that it was needed.

mod closable;
mod direct;
mod file;
mod stream;

pub(crate) use file::FileBacking;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::memory::Memory;

/// What a heap lies on. Thread-safe.
pub trait Backing: Send + Sync {
    /// A name for messages: a path.
    fn name(&self) -> String;

    /// What is written as a whole.
    fn unit(&self) -> Unit;

    /// Its length, bytes.
    fn bytes(&self) -> Result<u64>;

    /// Reads exactly `out.len()` bytes at `offset`.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`, both in whole units. Not durable until a sync.
    fn write(&self, site: Site, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Whole pages read as zeros afterwards. Not durable until a sync.
    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()>;

    /// On return everything written before the call survives power loss, as far as the medium
    /// keeps anything. `fdatasync`, or a fence.
    fn sync(&self, site: Site) -> Result<()>;

    /// As [`Backing::write`], durable on return, which says nothing of earlier writes. For backings
    /// that do it in fewer steps than a write and a sync.
    fn write_durably(&self, site: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(site, offset, bytes)?;
        self.sync(site)
    }

    /// Makes it `bytes` long; new bytes are zeros. Durable on return.
    fn resize(&self, bytes: u64) -> Result<()>;

    /// Makes sure that later writes to the range find room, as far as the medium can promise.
    fn make_room(&self, offset: u64, length: u64) -> Result<()>;

    /// Brings `length` bytes at `offset`, whole pages, to the same offset of `memory`. Stores into
    /// that memory never reach the backing.
    fn map(&self, memory: &Memory, offset: u64, length: u64) -> Result<()> {
        memory.provide(offset, length)?;
        let mut piece = vec![0; 1 << 16];
        let mut at = 0;
        while at < length {
            let count = (length - at).min(piece.len() as u64);
            let piece = &mut piece[..count as usize];
            self.read(offset + at, piece)?;
            memory.write(offset + at, piece);
            at += count;
        }
        Ok(())
    }

    /// What it survives, by itself.
    fn survival(&self) -> Survival;

    /// Lets others use it. Nothing is called afterwards.
    fn release(&self);

    /// Counts since it was opened.
    fn counters(&self) -> &Counters;
}

/// What a medium writes as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Pages of 4096 bytes, made durable by a sync of the file.
    Page,
    /// Words of 8 bytes, made durable by a fence.
    Word,
}

/// What synced bytes survive, for [`crate::Heap::durability`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// Nothing but the death of the process: memory of the system (tmpfs).
    Process,
    /// Power loss, if the medium keeps its promises.
    Power,
    /// The backing cannot tell.
    Unknown,
}

/// Where in the engine a write or a sync is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Site {
    /// A new heap's first bytes.
    Create,
    /// Records of the log.
    Log,
    /// The operations of a record too large for the log.
    Extent,
    /// Images of pages, before they are written in place.
    DoubleWrite,
    /// Pages in place.
    InPlace,
    /// Images written in place again by recovery.
    Restore,
    /// The superblock that moves the log's head.
    Head,
    /// The superblock that changes the size.
    Size,
}

impl Site {
    /// Those that sync on pages.
    pub const OF_PAGES: [Site; 7] = [
        Site::Log,
        Site::Extent,
        Site::DoubleWrite,
        Site::InPlace,
        Site::Restore,
        Site::Head,
        Site::Size,
    ];

    /// Those that fence on words.
    pub const OF_WORDS: [Site; 5] =
        [Site::Log, Site::Extent, Site::InPlace, Site::Head, Site::Size];
}

/// What was asked of a backing since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    /// Syncs of the file; on memory, fences.
    pub syncs: AtomicU64,
    /// Writes.
    pub writes: AtomicU64,
    /// Bytes written.
    pub written_bytes: AtomicU64,
    /// Lines of 64 bytes touched by writes.
    pub lines: AtomicU64,
}

impl Counters {
    /// Counts a write of `length` bytes at `offset`.
    pub fn count_write(&self, offset: u64, length: u64) {
        let lines = match length {
            0 => 0,
            _ => (offset + length - 1) / 64 - offset / 64 + 1,
        };
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(length, Ordering::Relaxed);
        self.lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// Counts a sync or a fence.
    pub fn count_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}
