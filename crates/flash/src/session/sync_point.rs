//! Waiting for durability without blocking, and without a write to wait for.

use super::Session;
use crate::error::Result;
use crate::log::{Goal, Stamp};
use crate::notes::index_hash;
use crate::record::hash_key;
use crate::types::Key;

/// Everything that was appended to a store before some moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SyncPoint {
    /// Append stamps, one a shard.
    stamps: Vec<Stamp>,
}

impl Session {
    /// All that any session has appended to the store so far.
    pub fn sync_point(&self) -> SyncPoint {
        let shards = self.engine.shards.iter();
        SyncPoint { stamps: shards.map(|shard| shard.lock().log.appended()).collect() }
    }

    /// Whether all of `point` survives power loss by now. Where not, sees to it that a sync is
    /// under way, without waiting; [`Session::poll_fds`] tell when to ask again.
    ///
    /// Errors: `Poisoned`, if a write or sync failed.
    pub fn reach(&mut self, point: &SyncPoint) -> Result<bool> {
        let mut reached = true;
        for (shard, stamp) in self.engine.shards.iter().zip(&point.stamps) {
            let log = &mut shard.lock().log;
            if log.durable() < *stamp {
                log.poll(0)?;
                log.begin_round(Goal::Synced)?;
                reached &= log.durable() >= *stamp;
            }
        }
        Ok(reached)
    }

    /// Counts as a read of what may be of `key`, by the index alone: a cache keeps it as it keeps
    /// what is read.
    pub fn mark_read(&self, key: Key<'_>) {
        let hash = hash_key(self.engine.hash_seed, key);
        self.engine.shards[self.engine.shard_of(hash)].lock().mark_candidates(hash);
    }

    /// Whether the store may hold an entry of `key`: never wrongly no, wrongly yes about once in
    /// two million keys that it does not hold. Reads nothing.
    pub fn may_hold(&self, key: Key<'_>) -> bool {
        let hash = hash_key(self.engine.hash_seed, key);
        let mut shard = self.engine.shards[self.engine.shard_of(hash)].lock();
        shard.may_hold(key, index_hash(hash), hash)
    }
}
