//! Whose the write buffers are that former processes left, and what becomes of them.
//!
//! A copy of a store has its identity, and the buffers of its original lie in the same directory.
//! So each opening draws a number, which names the file of its buffers and stands in the root, and
//! the file says where its store is.
//!
//! ```text
//! named by the root? at this place? device as it was left?   then the buffers are
//! yes                yes            yes, or rebooted since   taken, and used again
//! yes                yes            no: put back             left: they are of another time
//! yes                no, and nothing there   yes             read and left: the store moved
//! yes                no             else                     left: they are the original's
//! no                 yes            they are drained         used again
//! ```
//!
//! Invariants:
//! 1. Buffers that hold what the device may lack are changed or removed only by the store at the
//!    place that they are of, and only once what stood in them is durable.
//! 2. No opening needs room for new buffers beside those of a former one of the same size.

use std::path::{Path, PathBuf};

use entresol_device::{Device, ErrorKind as Failure, Place, SharedMemory};
use entresol_planted::planted;

use super::former_parts::FormerParts;
use super::survey::Images;
use crate::buffers::{Attached, Layout, attach, create};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{BUFFER_FILE_HEADER, BufferOwner, Superblock};
use crate::options::{OpenMode, StoreOptions};
use crate::statistics::FormerBuffers;
use crate::superblock;
use crate::types::Durability;

/// The write buffers that an opening finds.
pub(super) struct Former {
    /// Those that its root names.
    named: Option<(PathBuf, FormerParts)>,
    /// Whether they are this store's alone.
    owned: bool,
    /// Files of this place in which nothing stands that the device lacks.
    drained: Vec<PathBuf>,
    pub state: FormerBuffers,
}

impl Former {
    /// Looks for those of the store with this root.
    pub(super) fn find(
        options: &StoreOptions,
        superblock: &Superblock,
        device: &dyn Device,
    ) -> Result<Former> {
        let same_boot = options.boot != 0 && superblock.boot == options.boot;
        let is_missing = superblock.opening != 0 && same_boot;
        let state = if is_missing { FormerBuffers::Missing } else { FormerBuffers::None };
        let mut former = Former { named: None, owned: false, drained: Vec::new(), state };
        let Some(directory) = &options.buffer_directory else { return Ok(former) };
        let places = device.places();
        let path = directory.join(BufferOwner::file_name(superblock.store, superblock.opening));
        match SharedMemory::open(&path) {
            Ok(memory) => {
                let parts = FormerParts::of(memory, superblock)?;
                former.judge((path, parts), (superblock, same_boot), (device, &places));
            }
            Err(error) => match error.kind() {
                Failure::InUse => former.state = of_another(read_owner(&path), path),
                // Too short to be any.
                Failure::NotFound | Failure::InvalidInput => {}
                _ => return Err(unreadable(&error)),
            },
        }
        former.look_around(directory, superblock, &places);
        Ok(former)
    }

    fn judge(
        &mut self,
        (path, parts): (PathBuf, FormerParts),
        (superblock, same_boot): (&Superblock, bool),
        (device, places): (&dyn Device, &[Place]),
    ) {
        let owner = BufferOwner::decode(parts.header());
        // The first versions said nothing.
        let at_place = owner.as_ref().is_none_or(|owner| owner.is_at(places));
        if at_place || planted!("buffers-by-identity-alone") {
            // Power may have taken what was only written.
            if same_boot && !parts.fit(device, superblock) {
                self.state = FormerBuffers::OfAnotherTime { buffers: path };
                return;
            }
            (self.owned, self.state) = (true, FormerBuffers::Taken);
            self.named = Some((path, parts));
            return;
        }
        let stands = owner.as_ref().is_some_and(BufferOwner::stands);
        if stands || !parts.fit(device, superblock) {
            self.state = of_another(owner, path);
            return;
        }
        self.state = FormerBuffers::Moved { buffers: path.clone() };
        self.named = Some((path, parts));
    }

    /// Other files of this place: of openings that were cut short, or of another time.
    fn look_around(&mut self, directory: &Path, superblock: &Superblock, places: &[Place]) {
        let named = directory.join(BufferOwner::file_name(superblock.store, superblock.opening));
        let prefix = format!("entresol-{:016x}-", superblock.store);
        for path in SharedMemory::files_of(directory, &prefix) {
            if path == named {
                continue;
            }
            let Ok(memory) = SharedMemory::open(&path) else { continue };
            let Ok(parts) = FormerParts::of(memory, superblock) else { continue };
            let owner = BufferOwner::decode(parts.header());
            if !owner.is_some_and(|owner| owner.is_at(places)) {
                continue;
            }
            if parts.are_drained() {
                self.drained.push(path);
                if self.state == FormerBuffers::Missing {
                    self.state = FormerBuffers::None;
                }
            } else if self.state == FormerBuffers::None {
                self.state = FormerBuffers::OfAnotherTime { buffers: path };
            }
        }
    }

    /// What stands in those that are to be read.
    pub(super) fn take_images(&mut self, superblock: &Superblock) -> Images {
        let Some((path, parts)) = self.named.take() else { return Images::new() };
        if self.owned {
            self.drained.insert(0, path);
        }
        parts.images(superblock)
    }

    /// The buffers of this opening, of which the root tells from now on. What stood in those of
    /// former ones is written; `device` is synced before they are let go.
    pub(super) fn succeed(
        self,
        (device, superblock): (&dyn Device, &mut Superblock),
        options: &StoreOptions,
        mut seed: u64,
    ) -> Result<Attached> {
        let layout = Layout::of(options);
        let mut spare = None;
        if !self.drained.is_empty() {
            device.sync()?;
        }
        let opening = superblock.opening;
        let may_outlive = outlives(options) && !planted!("write-buffers-die-with-the-process");
        let directory = options.buffer_directory.as_deref().filter(|_| may_outlive);
        for path in self.drained {
            let memory = match SharedMemory::open(&path) {
                Ok(memory) => memory,
                // Somebody removed them meanwhile.
                Err(error) if error.kind() == Failure::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let length = memory.len();
            FormerParts::of(memory, superblock)?.drain();
            if directory.is_some() && spare.is_none() && length == layout.file_bytes() {
                spare = Some(path);
                continue;
            }
            if superblock.opening != 0 {
                // A start that is cut short now would miss them.
                superblock.opening = 0;
                superblock::write(device, superblock)?;
            }
            SharedMemory::remove(&path)?;
        }
        superblock.opening = 0;
        let Some(directory) = directory else {
            return Ok(Attached { shards: layout.anonymous()?, file: None });
        };
        let owner = BufferOwner { store: superblock.store, places: device.places() };
        let path = loop {
            superblock.opening = number_of_opening(superblock, device, seed);
            seed = seed.wrapping_add(1);
            let path = directory.join(BufferOwner::file_name(superblock.store, superblock.opening));
            if superblock.opening != opening && !path.exists() {
                break path;
            }
        };
        match spare {
            Some(spare) => {
                SharedMemory::rename(&spare, &path)?;
                attach(&layout, SharedMemory::open(&path)?, &owner)
            }
            None => create(&layout, &path, &owner),
        }
    }
}

fn read_owner(path: &Path) -> Option<BufferOwner> {
    BufferOwner::decode(&SharedMemory::head(path, BUFFER_FILE_HEADER)?)
}

fn of_another(owner: Option<BufferOwner>, buffers: PathBuf) -> FormerBuffers {
    let store = owner.and_then(|owner| owner.places.into_iter().next());
    FormerBuffers::OfAnother { buffers, store: store.map(|place| place.path).unwrap_or_default() }
}

/// They may hold what was acknowledged last.
fn unreadable(error: &entresol_device::Error) -> Error {
    let detail = format!(
        "the write buffers of the run before cannot be read, and may hold its last writes: \
         {error}; start the store once as their owner, or, if it is a copy, with another \
         `buffer-directory`"
    );
    Error::new(ErrorKind::Device, detail)
}

/// Whether the write buffers of an opening with these options outlive the process.
pub(crate) fn outlives(options: &StoreOptions) -> bool {
    let of_durability = matches!(options.durability, Durability::Process | Durability::Periodic(_))
        || options.durability == Durability::Flushed;
    of_durability && options.mode != OpenMode::ReadOnly
}

/// A number that no other opening has, of this store or of a copy.
fn number_of_opening(superblock: &Superblock, device: &dyn Device, seed: u64) -> u128 {
    let place = format!("{} {:?} {}", device.name(), device.places(), superblock.generation);
    xxhash_rust::xxh3::xxh3_128_with_seed(place.as_bytes(), seed).max(1)
}
