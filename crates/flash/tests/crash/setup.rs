//! What a run varies: durability, sizes, shards, codecs; and what each level promises.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_flash::{Compression, Durability, EncryptionKey, Reclaim, StoreOptions};
use entresol_sim::SimOptions;

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// What no sync covered may be lost, memory is.
    PowerLoss,
    /// The device has all that was handed to it; shared memory stays.
    Kill,
}

/// One configuration of store and device.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub name: &'static str,
    pub durability: Durability,
    pub reclaim: Reclaim,
    pub shards: u16,
    pub segments: u64,
    /// Segments that the store begins with; with each opening it takes four more, until it has
    /// all. `None`: it has them from the beginning.
    pub grows_from: Option<u64>,
    pub segment_bytes: u32,
    pub compression: Compression,
    pub encryption: Option<EncryptionKey>,
    pub journal_bytes: u64,
    /// Whether entries are looked for first, and replaced and removed where they were found.
    pub finds_first: bool,
    /// Whether a snapshot holds segments most of the time.
    pub holds: bool,
}

impl Setup {
    pub(crate) fn of(name: &'static str, durability: Durability) -> Setup {
        Setup {
            name,
            durability,
            reclaim: Reclaim::Compact,
            shards: 1,
            segments: 16,
            grows_from: None,
            segment_bytes: 64 << 10,
            compression: Compression::None,
            encryption: None,
            journal_bytes: 0,
            finds_first: false,
            holds: false,
        }
    }

    /// Whether an acknowledgement of the store's own level outlives `ending`.
    pub(crate) fn keeps(&self, durability: Durability, ending: Ending) -> bool {
        match (durability, ending) {
            (Durability::Memory, _) => false,
            (Durability::Process | Durability::Periodic(_), Ending::Kill) => self.shares_memory(),
            (Durability::Process | Durability::Periodic(_) | Durability::Flushed, _) => {
                ending == Ending::Kill
            }
            (Durability::Synced, _) => true,
        }
    }

    /// Whether write buffers outlive the process.
    pub(crate) fn shares_memory(&self) -> bool {
        matches!(self.durability, Durability::Process | Durability::Periodic(_))
    }

    pub(crate) fn options(&self, directory: &Path, boot: u128, opening: u64) -> StoreOptions {
        let segments = self.grows_from.map(|first| (first + 4 * opening).min(self.segments));
        StoreOptions {
            capacity_bytes: segments.map(|segments| self.bytes_of(segments)),
            shards: self.shards,
            segment_bytes: self.segment_bytes,
            durability: self.durability,
            reclaim: self.reclaim,
            compression: self.compression,
            encryption: self.encryption.clone(),
            buffer_directory: self.shares_memory().then(|| directory.to_owned()),
            buffers_per_shard: 6,
            boot,
            journal_bytes: self.journal_bytes,
            ..StoreOptions::default()
        }
    }

    pub(crate) fn device(&self, seed: u64) -> SimOptions {
        SimOptions { place: 1, ..SimOptions::new(seed, self.bytes_of(self.segments)) }
    }

    fn bytes_of(&self, segments: u64) -> u64 {
        u64::from(self.segment_bytes).max(128 << 10) + segments * u64::from(self.segment_bytes)
    }
}

/// A directory of one run's shared memory; removed with it.
#[derive(Debug)]
pub(crate) struct Directory(pub(crate) PathBuf);

static DIRECTORIES: AtomicU64 = AtomicU64::new(0);

impl Directory {
    pub(crate) fn new() -> Directory {
        let shared = PathBuf::from("/dev/shm");
        let base = if shared.is_dir() { shared } else { std::env::temp_dir() };
        let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("entresol-crash-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// Another directory with the same files.
    pub(crate) fn copied(&self) -> Directory {
        let copy = Directory::new();
        for file in std::fs::read_dir(&self.0).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.0.join(file.file_name())).unwrap();
        }
        copy
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
