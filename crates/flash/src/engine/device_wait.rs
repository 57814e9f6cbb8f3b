//! Handing work to the device and waiting for it without a shard's lock: gets of other threads go
//! on meanwhile.

use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::time::Duration;

use entresol_device::{Doorbell, wait_readable};
use parking_lot::MutexGuard;

use super::Engine;
use crate::error::Result;
use crate::log::Goal;
use crate::shard::Shard;

/// Longest wait without a look at the shard: another thread may have taken the completion that this
/// one waits for.
const WAIT: Duration = Duration::from_millis(1);

/// A shard, locked, whose log gathers what is written until the lock is given back: then this hands
/// it to the device.
pub(crate) struct Gathering<'a> {
    engine: &'a Engine,
    number: usize,
    /// There until dropped.
    shard: Option<MutexGuard<'a, Shard>>,
}

impl Engine {
    /// Locks a shard to write to it.
    #[inline]
    pub(crate) fn gather(&self, number: usize) -> Gathering<'_> {
        let mut shard = self.shards[number].lock();
        shard.log.hand_over_later();
        Gathering { engine: self, number, shard: Some(shard) }
    }

    #[cold]
    fn hand_over(&self, number: usize, doorbell: &dyn Doorbell) {
        if let Err(error) = doorbell.ring() {
            // As for a write that fails later: what was answered is in memory alone.
            let mut shard = self.shards[number].lock();
            shard.log.poison(format!("writes could not be handed to the device: {error}"));
        }
    }

    /// Waits until the device may have done something for the shard. With its lock only where the
    /// device cannot say so otherwise.
    pub(crate) fn await_device(&self, mut shard: MutexGuard<'_, Shard>) -> Result<()> {
        match shard.log.poll_fd() {
            Some(descriptor) => {
                drop(shard);
                wait_for(&[descriptor])
            }
            None => shard.log.poll(1),
        }
    }

    /// On return everything that was appended to the shard before the call survives power loss.
    pub(super) fn sync_shard(&self, number: usize) -> Result<()> {
        let target = self.shards[number].lock().log.appended();
        loop {
            let mut shard = self.shards[number].lock();
            shard.log.poll(0)?;
            shard.log.check_poisoned()?;
            if shard.log.durable() >= target {
                return Ok(());
            }
            shard.log.begin_round(Goal::Synced)?;
            if shard.log.durable() < target {
                self.await_device(shard)?;
            }
        }
    }

    /// On return released segments of the shard are free, those excepted that wait for an older one
    /// which another thread reclaims.
    pub(super) fn free_released(&self, number: usize) -> Result<()> {
        loop {
            let mut shard = self.shards[number].lock();
            shard.log.poll(0)?;
            if !shard.log.releases()? {
                return Ok(());
            }
            self.await_device(shard)?;
        }
    }
}

impl Gathering<'_> {
    /// Gives the shard back and waits until the device may have given back a buffer.
    pub(crate) fn await_buffer(self) -> Result<()> {
        let descriptor = self.log.poll_fd();
        drop(self);
        // Without one nothing is gathered, and so no append refused.
        descriptor.map_or(Ok(()), |descriptor| wait_for(&[descriptor]))
    }
}

impl Deref for Gathering<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        self.shard.as_ref().expect("held until dropped")
    }
}

impl DerefMut for Gathering<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        self.shard.as_mut().expect("held until dropped")
    }
}

impl Drop for Gathering<'_> {
    #[inline]
    fn drop(&mut self) {
        let Some(mut shard) = self.shard.take() else { return };
        let due = shard.log.due();
        drop(shard);
        if let Some(doorbell) = due {
            self.engine.hand_over(self.number, &*doorbell);
        }
    }
}

/// Waits until one of the queues has completions, or a moment.
pub(crate) fn wait_for(descriptors: &[RawFd]) -> Result<()> {
    wait_readable(descriptors, WAIT)?;
    Ok(())
}
