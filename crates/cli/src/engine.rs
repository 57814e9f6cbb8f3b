//! The engine in this process: a device, the tiered store on it, and the thread that keeps it.
//!
//! The engine starts no threads and reads no clock; this is where a command lends it both.

use std::path::Path;
use std::sync::Arc;

use entresol_device::{
    Device, FileDevice, FileOptions, Preparation, boot_identity, on_all_processors,
};
use entresol_host::Background;
pub(crate) use entresol_host::now;
use entresol_tier::{StoreOptions, Tiered, TieredOptions};

use crate::failure::{Failure, Outcome};

/// The file that holds a store inside a data directory.
pub(crate) const DATA_FILE: &str = "entresol.data";

/// An open store whose background work is done.
pub(crate) struct Engine {
    /// What it is on.
    pub(crate) device: Arc<dyn Device>,
    /// The store.
    pub(crate) tiered: Arc<Tiered>,
    background: Option<Background>,
}

impl Engine {
    /// Opens or makes the store on `device` and starts its background work.
    pub(crate) fn open(device: Arc<dyn Device>, options: TieredOptions) -> Outcome<Engine> {
        let tiered = Tiered::open(Arc::clone(&device), hosted(options), now())?;
        let background = Background::start(Arc::clone(&tiered))
            .map_err(|error| Failure::doing("no thread for background work", error))?;
        Ok(Engine { device, tiered, background: Some(background) })
    }

    /// Opens the store on `device` without background work: for reading only.
    pub(crate) fn open_unattended(
        device: Arc<dyn Device>,
        options: TieredOptions,
    ) -> Outcome<Engine> {
        Engine::open_reserving(device, options, 0)
    }

    /// As [`Engine::open_unattended`], with a part of the memory cap that users above may reserve.
    pub(crate) fn open_reserving(
        device: Arc<dyn Device>,
        options: TieredOptions,
        reservable_bytes: u64,
    ) -> Outcome<Engine> {
        let options = hosted(options);
        let tiered = Tiered::open_reserving(Arc::clone(&device), options, reservable_bytes, now())?;
        Ok(Engine { device, tiered, background: None })
    }

    /// Stops background work and closes the store cleanly: the next open loads a checkpoint.
    pub(crate) fn close(self) -> Outcome<()> {
        drop(self.background);
        Ok(self.tiered.close(now())?)
    }
}

/// `options` with what this program lends the engine: its threads, and the identity of the boot.
fn hosted(options: TieredOptions) -> TieredOptions {
    let (boot, parallel) = (boot_identity(), on_all_processors);
    TieredOptions { store: StoreOptions { boot, parallel, ..options.store }, ..options }
}

/// Opens the file at `path` as a device; makes it, of `capacity` bytes, where it is absent.
pub(crate) fn open_file(
    path: &Path,
    capacity: Option<u64>,
    preparation: Preparation,
) -> Outcome<Arc<dyn Device>> {
    if let (Some(wanted), Some(directory), false) = (capacity, path.parent(), path.exists())
        && let Some(free) = entresol_device::free_bytes(directory)
        && free < wanted
    {
        return Err(Failure::CannotRun(format!(
            "{} has {} free, and {} are wanted; choose another --dir or a smaller data set",
            directory.display(),
            crate::units::bytes(free as f64),
            crate::units::bytes(wanted as f64)
        )));
    }
    let options = FileOptions { capacity_bytes: capacity, preparation, ..FileOptions::default() };
    Ok(Arc::new(FileDevice::open(path, &options)?))
}
