//! What a running store stands on: the write buffers that outlive it, and the files of its device.
//! Both may be taken away under it, for mapped and open files live on without a name.
//!
//! ```text
//! there ──removed──► lost ──all on the device, new ones made──► there
//! ```
//!
//! While the buffers are lost, whoever wrote is answered once the device has it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use entresol_device::{Ground, SharedFile, SharedMemory};
use entresol_planted::planted;
use parking_lot::Mutex;

use super::Engine;
use crate::buffers::{self, Attached, Layout};
use crate::error::Result;
use crate::format::BufferOwner;
use crate::log::ShardBuffers;
use crate::statistics::FormerBuffers;
use crate::types::Timestamp;

/// How long nobody looks again, ms.
const LOOK_MS: u64 = 20;
/// How long buffers that could not be made are not tried again, ms.
const RETRY_MS: u64 = 1000;

/// The write buffers that are to outlive the process.
pub(crate) struct Outliving {
    /// `None`: they are not to.
    file: Option<Mutex<SharedFile>>,
    former: FormerBuffers,
    lost: AtomicBool,
    remade: AtomicU64,
    /// When somebody is to look again, ms.
    look_ms: AtomicU64,
    /// What is wrong, for people: of buffers, of the device.
    why: Mutex<[Option<String>; 2]>,
}

impl Outliving {
    pub(crate) fn new(file: Option<SharedFile>, former: FormerBuffers) -> Outliving {
        Outliving {
            file: file.map(Mutex::new),
            former,
            lost: AtomicBool::new(false),
            remade: AtomicU64::new(0),
            look_ms: AtomicU64::new(0),
            why: Mutex::default(),
        }
    }

    pub(crate) fn outlive(&self) -> bool {
        self.file.is_some()
    }

    /// Whether they are gone, and what is appended would go with the process.
    pub(crate) fn are_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn former(&self) -> &FormerBuffers {
        &self.former
    }

    pub(crate) fn remade(&self) -> u64 {
        self.remade.load(Ordering::Relaxed)
    }

    pub(crate) fn ground(&self) -> Option<String> {
        let [buffers, device] = &*self.why.lock();
        buffers.clone().or_else(|| device.clone())
    }

    /// Removes them: nothing stands in them.
    pub(crate) fn remove(&self) -> Result<()> {
        match &self.file {
            Some(file) if file.lock().is_there() => Ok(SharedMemory::remove(file.lock().path())?),
            _ => Ok(()),
        }
    }
}

impl Engine {
    /// Sees whether the store's files and its write buffers are still there, and does what can be
    /// done if they are not.
    pub(crate) fn check_ground(&self, now: Timestamp) -> Result<()> {
        let due = self.buffers.look_ms.load(Ordering::Relaxed);
        if now.0 < due && due - now.0 <= RETRY_MS {
            return Ok(());
        }
        self.buffers.look_ms.store(now.0 + LOOK_MS, Ordering::Relaxed);
        let moved = match self.device.ground() {
            Ground::Firm => None,
            Ground::Moved(why) => Some(why),
            Ground::Lost(why) => {
                if let Some(shard) = self.shards.first() {
                    shard.lock().log.poison(why.clone());
                }
                Some(why)
            }
        };
        if self.buffers.why.lock()[1] != moved {
            self.buffers.why.lock()[1] = moved;
        }
        let Some(file) = &self.buffers.file else { return Ok(()) };
        if file.lock().is_there() && !self.buffers.are_lost() || planted!("buffers-not-missed") {
            return Ok(());
        }
        let remade = self.remake_buffers(&mut file.lock());
        if let Err(error) = &remade {
            let why = format!(
                "the write buffers were removed and cannot be made again: {error}; every write \
                 waits for the device until they can"
            );
            self.buffers.why.lock()[0] = Some(why);
            self.buffers.look_ms.store(now.0 + RETRY_MS, Ordering::Relaxed);
        }
        // That the device fails is told where it is written to.
        Ok(())
    }

    /// Brings everything to the device, then makes buffers as those that are gone.
    fn remake_buffers(&self, file: &mut SharedFile) -> Result<()> {
        let layout = Layout::of(&self.options);
        if !self.buffers.lost.swap(true, Ordering::SeqCst) {
            // The memory of the old ones is needed for the new.
            self.exchange_buffers(layout.anonymous()?)?;
        }
        let owner =
            BufferOwner { store: self.superblock.lock().store, places: self.device.places() };
        let Attached { shards, file: made } = buffers::create(&layout, file.path(), &owner)?;
        self.exchange_buffers(shards)?;
        if let Some(made) = made {
            *file = made;
        }
        self.buffers.lost.store(false, Ordering::SeqCst);
        self.buffers.remade.fetch_add(1, Ordering::Relaxed);
        self.buffers.why.lock()[0] = None;
        Ok(())
    }

    fn exchange_buffers(&self, memory: Vec<ShardBuffers>) -> Result<()> {
        for (shard, buffers) in self.shards.iter().zip(memory) {
            let mut shard = shard.lock();
            shard.log.write_all()?;
            shard.log.attach(buffers);
        }
        Ok(())
    }
}
