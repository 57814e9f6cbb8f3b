//! A stopped store as the command line names it, with the keys of `entresol serve`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use entresol_device::{Device, MadeFiles, machine_memory_bytes, memory_share};
use entresol_server::{Config, LeftoverBuffers, ServeError, leftover_buffers};
use entresol_tier::{Admission, Durability, OpenMode, StoreOptions, TieredOptions};

use crate::engine::{DATA_FILE, Engine};
use crate::failure::{Failure, Outcome};

/// Which stopped store. The options mean what they mean to `entresol serve`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataArgs {
    /// Data directory of a stopped store
    #[arg(long, conflicts_with = "devices")]
    pub(crate) dir: Option<PathBuf>,
    /// Files or block devices of a stopped store, separated by commas; n in braces is the instance
    #[arg(long, value_name = "A,B")]
    devices: Option<String>,
    /// How a list of devices is used
    #[arg(long, value_parser = ["search", "stripe"], default_value = "search")]
    selection: String,
    /// The number that n in braces in a path stands for
    #[arg(long, value_name = "N", default_value_t = 1)]
    instance: u16,
    /// File with the key of a store that is encrypted
    #[arg(long, value_name = "FILE")]
    encryption_key: Option<PathBuf>,
    /// Directory of the server's write buffers, for a store whose server was killed
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    buffer_directory: PathBuf,
}

/// What makes a store over what is not one.
const FORCED_BY: &str = "`entresol serve` does, with `--force yes`";
/// The usual memory cap, and the one where the system does not tell what the machine has.
const MEMORY_BYTES: u64 = 256 << 20;

impl DataArgs {
    /// Whether they name a store.
    pub(crate) fn is_given(&self) -> bool {
        self.dir.is_some() || self.devices.is_some()
    }

    /// Opens the store, with its background work where it may be written; `capacity` makes one
    /// where there is none.
    pub(crate) fn open(&self, mode: OpenMode, capacity: Option<u64>) -> Outcome<Engine> {
        self.open_with(mode, capacity, |_| 0)
    }

    /// As [`DataArgs::open`], with a journal of as many bytes as `journal` gives a store for so
    /// many of its own.
    pub(crate) fn open_with(
        &self,
        mode: OpenMode,
        capacity: Option<u64>,
        journal: fn(u64) -> u64,
    ) -> Outcome<Engine> {
        let opened = self.open_engine(mode, capacity, journal);
        opened.map_err(|failure| failure.forced_by(FORCED_BY))
    }

    fn open_engine(
        &self,
        mode: OpenMode,
        capacity: Option<u64>,
        journal: fn(u64) -> u64,
    ) -> Outcome<Engine> {
        let config = self.config(capacity)?;
        self.demand_file(capacity)?;
        let encryption = config.read_encryption_key().map_err(ServeError::from)?;
        let files = MadeFiles::default();
        let device: Arc<dyn Device> = match mode {
            OpenMode::ReadOnly => config.open_device_that_is_there()?,
            _ => config.open_device(&files)?,
        };
        let journal_bytes = journal(device.geometry().capacity_bytes);
        let store = StoreOptions { encryption, journal_bytes, ..StoreOptions::default() };
        let opened = self.open_on(device, (mode, capacity), store);
        opened.inspect_err(|_| files.remove())
    }

    fn open_on(
        &self,
        device: Arc<dyn Device>,
        (mode, capacity): (OpenMode, Option<u64>),
        store: StoreOptions,
    ) -> Outcome<Engine> {
        let store = StoreOptions {
            capacity_bytes: capacity,
            mode,
            durability: Durability::Process,
            buffer_directory: Some(self.buffer_directory.clone()),
            ..store
        };
        let options = TieredOptions {
            store,
            memory_bytes: memory_bytes(machine_memory_bytes()),
            cache_bytes: Some(0),
            admission: Admission::Always,
        };
        let engine = match mode {
            OpenMode::ReadOnly => Engine::open_unattended(device, options)?,
            _ => Engine::open(device, options)?,
        };
        if let Some(damage) = engine.tiered.store().superblock_damage() {
            say!("note: {damage}");
        }
        if let Some(notice) = engine.tiered.store().former_buffers().notice() {
            say!("note: {}: {notice}", engine.device.name());
        }
        Ok(engine)
    }

    /// Write buffers beside this store's whose store is gone.
    pub(crate) fn leftovers(&self) -> Vec<LeftoverBuffers> {
        leftover_buffers(&self.buffer_directory)
    }

    /// The server's configuration that names the same.
    fn config(&self, capacity: Option<u64>) -> Result<Config, ServeError> {
        let mut config = Config::default();
        config.set("selection", &self.selection)?;
        config.set("instance", &self.instance.to_string())?;
        let paths = [("dir", &self.dir), ("encryption-key", &self.encryption_key)];
        for (key, path) in paths {
            if let Some(path) = path {
                config.set(key, &path.display().to_string())?;
            }
        }
        if let Some(devices) = &self.devices {
            config.set("devices", devices)?;
        }
        let is_there = self.file().is_some_and(|file| file.exists());
        if let (Some(capacity), false) = (capacity, is_there) {
            config.set("capacity", &capacity.to_string())?;
        }
        Ok(config)
    }

    /// The file that a data directory holds.
    fn file(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(DATA_FILE))
    }

    /// A server makes what is not there; these commands do so only if they are told how large.
    fn demand_file(&self, capacity: Option<u64>) -> Outcome<()> {
        match self.file() {
            Some(file) if capacity.is_none() && !file.exists() => Err(Failure::CannotRun(format!(
                "{} does not exist: name the directory of a store; `entresol load` makes one with \
                 --capacity",
                file.display()
            ))),
            None if self.devices.is_none() => Err(Failure::CannotRun(
                "nothing names the store; give --dir DIR or --devices A,B".into(),
            )),
            _ => Ok(()),
        }
    }
}

/// The memory cap where a process may use so much: half of it, for the index of whatever store is
/// named; three quarters where half is less than usual.
fn memory_bytes(machine: Option<u64>) -> u64 {
    machine.map_or(MEMORY_BYTES, |total| MEMORY_BYTES.clamp(total / 2, memory_share(total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_store_is_opened_with_half_of_the_memory_or_the_least_where_nobody_tells() {
        assert_eq!(memory_bytes(Some(8 << 30)), 4 << 30);
        assert_eq!(memory_bytes(Some(400 << 20)), MEMORY_BYTES);
        assert_eq!(memory_bytes(Some(128 << 20)), 96 << 20);
        assert_eq!(memory_bytes(None), MEMORY_BYTES);
    }
}
