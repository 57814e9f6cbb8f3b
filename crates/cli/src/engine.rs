//! The engine in this process: a device, the tiered store on it, and the thread that keeps it.
//!
//! The engine starts no threads and reads no clock; this is where a command lends it both.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use entresol_device::{
    Device, FileDevice, FileOptions, Preparation, boot_identity, on_all_processors,
};
use entresol_tier::{Budget, StoreOptions, Tiered, TieredOptions, Timestamp};

use crate::failure::{Failure, Outcome};

/// The file that holds a store inside a data directory.
pub(crate) const DATA_FILE: &str = "entresol.data";

/// An open store whose background work is done.
pub(crate) struct Engine {
    /// What it is on.
    pub(crate) device: Arc<dyn Device>,
    /// The store.
    pub(crate) tiered: Arc<Tiered>,
    keeper: Option<Keeper>,
}

impl Engine {
    /// Opens or makes the store on `device` and starts its background work.
    pub(crate) fn open(device: Arc<dyn Device>, options: TieredOptions) -> Outcome<Engine> {
        let tiered = Tiered::open(Arc::clone(&device), hosted(options), now())?;
        let keeper = Keeper::start(Arc::clone(&tiered));
        Ok(Engine { device, tiered, keeper: Some(keeper) })
    }

    /// Opens the store on `device` without background work: for reading only.
    pub(crate) fn open_unattended(
        device: Arc<dyn Device>,
        options: TieredOptions,
    ) -> Outcome<Engine> {
        let tiered = Tiered::open(Arc::clone(&device), hosted(options), now())?;
        Ok(Engine { device, tiered, keeper: None })
    }

    /// Stops background work and closes the store cleanly: the next open loads a checkpoint.
    pub(crate) fn close(self) -> Outcome<()> {
        drop(self.keeper);
        Ok(self.tiered.close(now())?)
    }
}

/// `options` with what this program lends the engine: its threads, and the identity of the boot.
fn hosted(options: TieredOptions) -> TieredOptions {
    let (boot, parallel) = (boot_identity(), on_all_processors);
    TieredOptions { store: StoreOptions { boot, parallel, ..options.store }, ..options }
}

/// The wall clock, as the engine takes it.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_millis() as u64)
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

struct Keeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(tiered: Arc<Tiered>) -> Keeper {
        const IDLE: Duration = Duration::from_millis(2);
        const DEVICE: Duration = Duration::from_micros(300);
        const BUDGET: Budget = Budget { segments: 4 };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match tiered.maintain(now(), BUDGET) {
                    Ok(done) if done.more => {}
                    Ok(done) if done.awaits_device => std::thread::park_timeout(DEVICE),
                    // A poisoned store says so to every writer; the keeper need not repeat it.
                    _ => std::thread::park_timeout(IDLE),
                }
            }
        });
        Keeper { stop, thread: Some(thread) }
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the keeper has printed itself already.
            drop(thread.join());
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}
