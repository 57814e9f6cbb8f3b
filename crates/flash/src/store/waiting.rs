//! Waiting for the device without a shard's lock: gets of other threads go on meanwhile.

use std::os::fd::RawFd;
use std::time::Duration;

use entresol_device::wait_readable;
use parking_lot::MutexGuard;

use super::Inner;
use crate::error::Result;
use crate::log::Goal;
use crate::shard::Shard;

/// Longest wait without a look at the shard: another thread may have taken the completion that this
/// one waits for.
const WAIT: Duration = Duration::from_millis(1);

impl Inner {
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

/// Waits until one of the queues has completions, or a moment.
pub(crate) fn wait_for(descriptors: &[RawFd]) -> Result<()> {
    Ok(wait_readable(descriptors, WAIT)?)
}
