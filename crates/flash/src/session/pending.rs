//! Operations that wait for a device read; their memory is used again.

use super::Session;
use crate::record::{HashedKey, hash_key};
use crate::shard::{Location, Plan};
use crate::types::{Condition, Expiry, Key, PutOptions, SpaceId, Timestamp};

/// What to do once the present record is known.
#[derive(Debug, Clone, Copy)]
pub(super) enum PendingKind {
    Get,
    Put(PutOptions),
    Remove(Condition),
    Touch(Expiry, Condition),
}

/// An operation in flight.
#[derive(Debug)]
pub(super) struct Pending {
    pub token: u64,
    pub now: Timestamp,
    pub kind: PendingKind,
    pub space: SpaceId,
    pub partition: u16,
    pub key: Vec<u8>,
    pub hash: u128,
    pub value: Vec<u8>,
    /// Where other keys are.
    pub tried: Vec<Location>,
    pub plan: Option<Plan>,
    /// Times the index changed under it.
    pub retries: u32,
    /// Most bytes that it may take.
    pub bytes_max: u64,
}

impl Pending {
    pub(super) fn key(&self) -> Key<'_> {
        Key { space: self.space, partition: self.partition, bytes: &self.key }
    }

    pub(super) fn hashed_key(&self) -> HashedKey<'_> {
        HashedKey { key: self.key(), hash: self.hash }
    }
}

impl Session {
    /// A pending operation on `key`; its value is empty.
    pub(super) fn take_pending(
        &mut self,
        token: u64,
        now: Timestamp,
        key: Key<'_>,
        kind: PendingKind,
    ) -> u32 {
        let hash = hash_key(self.engine.hash_seed, key);
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.pending.push(Pending {
                token,
                now,
                kind,
                space: key.space,
                partition: key.partition,
                key: Vec::new(),
                hash,
                value: Vec::new(),
                tried: Vec::new(),
                plan: None,
                retries: 0,
                bytes_max: u64::MAX,
            });
            self.pending.len() as u32 - 1
        });
        let pending = &mut self.pending[slot as usize];
        pending.token = token;
        pending.now = now;
        pending.kind = kind;
        pending.space = key.space;
        pending.partition = key.partition;
        pending.hash = hash;
        pending.key.clear();
        pending.key.extend_from_slice(key.bytes);
        pending.value.clear();
        pending.tried.clear();
        pending.plan = None;
        pending.retries = 0;
        pending.bytes_max = self.entry_bytes_max;
        slot
    }

    pub(super) fn give_back(&mut self, slot: u32) {
        let pending = &mut self.pending[slot as usize];
        if pending.value.capacity() > 1 << 20 {
            pending.value = Vec::new();
        }
        self.unused.push(slot);
    }
}
