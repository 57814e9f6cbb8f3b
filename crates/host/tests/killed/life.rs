//! A store of one seed and level: where it is and how it is opened, by the process that is killed
//! and by the one that checks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use entresol_device::{Device, FileDevice, FileOptions};
use entresol_host::{HostedOptions, now};
use entresol_random::SplitMix;
use entresol_tier::{Admission, Compression, Durability, EncryptionKey, StoreOptions};
use entresol_tier::{Tiered, TieredOptions};
use entresol_tree::{Tree, TreeOptions};

use crate::plan::{SHARED, SUMS, Sum, WRITERS, table_name};

const CAPACITY_BYTES: u64 = 96 << 20;
const JOURNAL_BYTES: u64 = 16 << 20;
const MEMORY_BYTES: u64 = 64 << 20;

/// Where a store is, and what is drawn for it.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) seed: u64,
    pub(crate) level: String,
    pub(crate) directory: PathBuf,
    /// Of write buffers that outlive the process.
    pub(crate) buffers: PathBuf,
}

impl Life {
    /// The file that is the device.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Everything about how it is opened.
    pub(crate) fn options(&self) -> HostedOptions {
        let mut random = SplitMix::new(self.seed);
        let made = HostedOptions::new(&self.data().display().to_string());
        let durability: Durability = self.level.parse().expect("the level is one of the list");
        let compressions = [Compression::None, Compression::None, Compression::Lz4];
        let store = StoreOptions {
            shards: *random.pick(&[1, 2]),
            segment_bytes: *random.pick(&[256 << 10, 1 << 20]),
            durability,
            compression: *random.pick(&compressions),
            encryption: random.one_in(4).then_some(EncryptionKey([7; 32])),
            buffer_directory: Some(self.buffers.clone()),
            journal_bytes: JOURNAL_BYTES,
            ..made.tiered.store.clone()
        };
        // Little may wait: merges go on while the process is killed.
        let tree = TreeOptions {
            waiting_bytes_max: *random.pick(&[256 << 10, 1 << 20]),
            directory_bytes_max: 4 << 20,
            round_parts: *random.pick(&[4, 24]),
            leaf_bytes_max: *random.pick(&[1 << 10, 8 << 10]),
            separate_bytes_min: *random.pick(&[200, 512]),
            ..TreeOptions::default()
        };
        let admission = Admission::Always;
        let tiered =
            TieredOptions { store, memory_bytes: MEMORY_BYTES, cache_bytes: None, admission };
        HostedOptions { capacity_bytes: Some(CAPACITY_BYTES), tiered, tree, ..made }
    }

    /// The store and its tables without the threads of a host, as a kill left them.
    pub(crate) fn open(&self) -> Result<(Arc<Tiered>, Tree), String> {
        let HostedOptions { tiered, tree, .. } = self.options();
        let capacity_bytes = Some(CAPACITY_BYTES);
        let file = FileOptions { capacity_bytes, ..FileOptions::default() };
        let cannot = |error: &dyn std::fmt::Display| format!("it cannot be opened: {error}");
        let device = FileDevice::open(self.data(), &file).map_err(|error| cannot(&error))?;
        let device: Arc<dyn Device> = Arc::new(device);
        let reserved = tree.memory_bytes_max();
        let store = Tiered::open_reserving(device, tiered, reserved, now());
        let store = store.map_err(|error| cannot(&error))?;
        let tables = Tree::open(Arc::clone(&store), tree, now()).map_err(|error| cannot(&error))?;
        name_merges(&tables);
        Ok((store, tables))
    }

    /// Copies the files, so that a failure can be looked into.
    pub(crate) fn copy_to(&self, left: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(left)?;
        std::fs::copy(self.data(), left.join("data"))?;
        for entry in std::fs::read_dir(&self.buffers)? {
            let entry = entry?;
            std::fs::copy(entry.path(), left.join(entry.file_name()))?;
        }
        Ok(())
    }
}

/// Gives the tables to which parts are added their merge functions.
pub(crate) fn name_merges(tables: &Tree) {
    for writer in 0..WRITERS {
        tables.set_merge(table_name(writer, SUMS).as_bytes(), Arc::new(Sum));
    }
    tables.set_merge(table_name(0, SHARED).as_bytes(), Arc::new(Sum));
}
