//! Closing a store: everything synced, a checkpoint written, and no more writes.

use std::sync::atomic::Ordering;

use parking_lot::{Mutex, MutexGuard};

use super::Engine;
use crate::checkpoint;
use crate::error::Result;
use crate::options::OpenMode;
use crate::shard::Shard;
use crate::types::Timestamp;

impl Engine {
    /// Syncs everything, writes the checkpoint and refuses further writes. Who closes once more is
    /// told how it ended.
    pub(crate) fn close(&self, now: Timestamp) -> Result<()> {
        let again = self.closed.swap(true, Ordering::AcqRel);
        if self.options.mode == OpenMode::ReadOnly {
            return Ok(());
        }
        let mut shards = self.idle_shards(now);
        if again {
            return shards.first().map_or(Ok(()), |shard| shard.log.check_poisoned());
        }
        let saved = self.save_all(&mut shards);
        if let Err(error) = &saved {
            let why = format!("the store could not be closed: {error}");
            shards.iter_mut().take(1).for_each(|shard| shard.log.poison(why.clone()));
        }
        saved
    }

    /// All shards, locked, with no reclaim under way: its victim is neither in use nor free.
    fn idle_shards(&self, now: Timestamp) -> Vec<MutexGuard<'_, Shard>> {
        loop {
            for number in 0..self.shards.len() {
                // What fails here leaves the victim as it was, and what it was is saved.
                let _kept = self.end_under_way(number, now);
            }
            // None begins any more; those under way need the shards.
            self.reclaims.iter().for_each(|reclaim| drop(reclaim.write()));
            let shards: Vec<_> = self.shards.iter().map(Mutex::lock).collect();
            if shards.iter().all(|shard| !shard.is_reclaiming()) {
                return shards;
            }
        }
    }

    fn save_all(&self, shards: &mut [MutexGuard<'_, Shard>]) -> Result<()> {
        let mut lists = Vec::new();
        for shard in shards.iter_mut() {
            shard.log.break_snapshot();
            shard.log.seal_all()?;
            shard.log.commit_all()?;
            shard.log.refuse_appends();
            if let Some(list) = checkpoint::save(shard)? {
                lists.push(list);
            }
        }
        let mut superblock = self.superblock.lock();
        superblock.checkpoint = if lists.len() == shards.len() { lists } else { Vec::new() };
        superblock.next_segment_sequence =
            shards.iter().map(|s| s.log.next_sequence()).max().unwrap_or(1);
        superblock.record_sequence = shards.iter().map(|s| s.sequence()).max().unwrap_or(0);
        if superblock.encode().is_none() {
            // There is no room for it beside what was dropped.
            superblock.checkpoint = Vec::new();
        }
        // Who finds the file although it was to be removed sees that nothing stands in it.
        shards.iter_mut().for_each(|shard| shard.log.forget_buffers());
        superblock.opening = 0;
        self.write_superblock(&mut superblock)?;
        self.buffers.remove()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use entresol_device::MemoryDevice;

    use super::*;
    use crate::{Durability, Store, StoreOptions};

    /// Turns that a thread gets to do what it must not.
    const TURNS: usize = 20_000;

    #[test]
    fn a_store_is_closed_only_after_the_reclaims_that_began_before() {
        let device = Arc::new(MemoryDevice::new(16 << 20).unwrap());
        let options = StoreOptions { durability: Durability::Memory, ..StoreOptions::default() };
        let options = StoreOptions { segment_bytes: 64 << 10, shards: 1, ..options };
        let store = Arc::new(Store::open(device, options, Timestamp(0)).unwrap());
        let under_way = store.engine.reclaims[0].read();
        store.engine.shards[0].lock().count_reclaim(1);
        let closed = Arc::clone(&store);
        let closes = thread::spawn(move || closed.close(Timestamp(0)));
        let waits = |closes: &thread::JoinHandle<_>| {
            (0..TURNS).all(|_| {
                thread::yield_now();
                !closes.is_finished()
            })
        };
        assert!(waits(&closes), "closed while a victim is read");
        drop(under_way);
        assert!(waits(&closes), "closed before the victim's fate is noted");
        store.engine.shards[0].lock().count_reclaim(-1);
        closes.join().unwrap().unwrap();
    }
}
