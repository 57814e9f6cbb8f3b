//! Where a hosted store is, and how it is opened.

mod named;

use std::path::Path;
use std::sync::Arc;

use entresol_device::{
    Device, DeviceList, FileOptions, Force, Growth, MadeFiles, Selection, boot_identity,
    machine_memory_bytes, memory_share, on_all_processors,
};
use entresol_tier::{
    Admission, Error, ErrorKind, OpenMode, StoreOptions, Tiered, TieredOptions, Timestamp,
};
use entresol_tree::TreeOptions;

/// The memory cap if nobody says otherwise, on a machine that has more.
const MEMORY_BYTES: u64 = 256 << 20;
/// The part of the memory cap that ordered tables may take.
const TABLES_PART: u64 = 4;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct HostedOptions {
    /// Paths of devices, with commas between.
    pub devices: String,
    /// Which of the stores on the devices.
    pub instance: u32,
    /// What several devices are to one another.
    pub selection: Selection,
    /// How large a store is made, or grows; `None`: as large as the device, or as it is.
    pub capacity_bytes: Option<u64>,
    /// Of the store and its memory.
    pub tiered: TieredOptions,
    /// Of the ordered tables, which the store has if it has a journal.
    pub tree: TreeOptions,
}

impl HostedOptions {
    /// A store on `devices` with everything else as this process, its machine and their defaults
    /// have it.
    pub fn new(devices: &str) -> HostedOptions {
        let store = StoreOptions {
            boot: boot_identity(),
            parallel: on_all_processors,
            seed: seed(),
            ..StoreOptions::default()
        };
        HostedOptions {
            devices: devices.to_owned(),
            instance: 0,
            selection: Selection::SearchPath,
            capacity_bytes: None,
            tiered: TieredOptions {
                store,
                memory_bytes: machine_memory_bytes()
                    .map_or(MEMORY_BYTES, |total| MEMORY_BYTES.min(memory_share(total))),
                cache_bytes: None,
                admission: Admission::Always,
            },
            tree: TreeOptions::default(),
        }
    }

    /// Opens the store, or makes it.
    pub(super) fn open(&self, now: Timestamp) -> Result<Arc<Tiered>, Error> {
        let list = DeviceList::parse(&self.devices, self.instance)?;
        let opened = self.open_within(&list, self.capacity_bytes, now);
        match &opened {
            Err(error) if self.may_be_larger(&list, error.kind()) => {
                self.open_within(&list, None, now)
            }
            _ => opened,
        }
    }

    /// Whether a store may be there that is larger than the capacity asked for: none shrinks.
    fn may_be_larger(&self, list: &DeviceList, refusal: ErrorKind) -> bool {
        let Some(wanted) = self.capacity_bytes else { return false };
        match self.selection {
            Selection::SearchPath => refusal == ErrorKind::Incompatible,
            Selection::Stripe { unit_bytes } => {
                // Members that are too small are refused likewise.
                let count = list.paths().count() as u64;
                let member = wanted.div_ceil(count) + 2 * unit_bytes;
                let is_there = |path: &Path| {
                    std::fs::metadata(path).is_ok_and(|is| !is.is_file() || is.len() >= member)
                };
                refusal == ErrorKind::InvalidInput && list.paths().all(is_there)
            }
        }
    }

    fn open_within(
        &self,
        list: &DeviceList,
        capacity_bytes: Option<u64>,
        now: Timestamp,
    ) -> Result<Arc<Tiered>, Error> {
        let files = MadeFiles::default();
        let device = self.open_device(list, capacity_bytes, &files)?;
        let (tiered, tables) = (self.tiered.clone(), self.tables_bytes());
        let opened = Tiered::open_reserving(device, tiered, tables, now);
        opened.inspect_err(|_| files.remove())
    }

    /// How ordered tables are kept: they have a quarter of the memory cap at most.
    pub(super) fn fitted_tree(&self) -> TreeOptions {
        self.tree.clone().within(self.tiered.memory_bytes / TABLES_PART)
    }

    /// What of the memory cap ordered tables may reserve; a store without a journal has none.
    fn tables_bytes(&self) -> u64 {
        let has_tables = self.tiered.store.journal_bytes > 0;
        if has_tables { self.fitted_tree().memory_bytes_max() } else { 0 }
    }

    fn open_device(
        &self,
        list: &DeviceList,
        capacity_bytes: Option<u64>,
        made: &MadeFiles,
    ) -> entresol_device::Result<Arc<dyn Device>> {
        let overwrites =
            matches!(self.tiered.store.mode, OpenMode::OpenOrOverwrite | OpenMode::Reformat);
        let options = FileOptions {
            capacity_bytes,
            growth: Growth::ToCapacity,
            force: if overwrites { Force::Yes } else { Force::No },
            makes: self.tiered.store.mode != OpenMode::ReadOnly,
            made: Some(made.clone()),
            ..FileOptions::default()
        };
        list.open(self.selection, &options, &mut |_| {})
    }
}

/// What a new store's hashes are seeded with: a number that others cannot foresee.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
