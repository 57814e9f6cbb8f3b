//! Raising the format of a store that is in use: what an earlier version does not know stands in it
//! only once its root says so, and earlier versions refuse to open it from then on.

use std::sync::atomic::Ordering;

use super::Engine;
use crate::error::Result;

impl Engine {
    /// On return the root names the format `version` or a later one, for good. Blocks for a few
    /// syncs, once in the life of a store.
    #[inline]
    pub(crate) fn demand_format(&self, version: u32) -> Result<()> {
        if self.format.load(Ordering::Acquire) >= version {
            return Ok(());
        }
        self.raise_format(version)
    }

    #[cold]
    fn raise_format(&self, version: u32) -> Result<()> {
        self.check_open()?;
        self.shards.iter().take(1).try_for_each(|shard| shard.lock().log.check_poisoned())?;
        let mut superblock = self.superblock.lock();
        if superblock.version < version {
            superblock.version = version;
            if let Err(error) = self.write_superblock(&mut superblock) {
                // What the failed sync should have covered may be lost although a later one
                // succeeds.
                drop(superblock);
                let why = format!("the superblock could not be written: {error}");
                self.shards.iter().take(1).for_each(|shard| shard.lock().log.poison(why.clone()));
                return Err(error);
            }
        }
        self.format.store(superblock.version, Ordering::Release);
        Ok(())
    }
}
