//! Removal of an entry without a look at its record.
//!
//! The index alone cannot tell whose record a slot stands for. So the slot goes, and a note keeps
//! the record until the footer of its segment says whose it was: that of the key, and it is dead,
//! or another one's, which then gets its slot back. The key itself never sees it through its own
//! note.

use super::{Shard, seconds_of};
use crate::log::Attempt;
use crate::notes::index_hash;
use crate::record::{HashedKey, Wanted};
use crate::types::{Key, Timestamp};

/// What a removal without a look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// The key has no entry.
    Done,
    /// More than one record may be the key's, or a large value is: resolve the key.
    Unresolved,
    /// The device has still to answer: try again once it may have.
    Awaits,
}

impl Shard {
    /// Removes what may be of the key.
    pub(crate) fn discard(
        &mut self,
        HashedKey { key, hash }: HashedKey<'_>,
        now: Timestamp,
    ) -> Attempt<Discarded> {
        self.log.check_poisoned()?;
        self.index.candidates(index_hash(hash), &mut self.found);
        let mut only = None;
        for at in 0..self.found.len() {
            let Some(place) = self.found.get(at) else { break };
            if !self.is_dropped(key, place.address) && only.replace(place).is_some() {
                return Ok(Discarded::Unresolved);
            }
        }
        let is_large = only.is_some_and(|place| self.large.is_manifest(place.address));
        if is_large || self.notes.hidden(hash).next().is_some() {
            return Ok(Discarded::Unresolved);
        }
        let is_own = only.and_then(|place| self.is_own_in_memory(key, place.address));
        let Some(place) = only.filter(|_| is_own != Some(false)) else {
            // What was let go may come back, and needs a tombstone.
            let returns = self.limits.policy.lets_go() || self.dropped_later(seconds_of(now));
            return Ok(if returns { Discarded::Unresolved } else { Discarded::Done });
        };
        self.append_tombstone(key, hash)?;
        let shared_bits = self.index.known_bits(index_hash(hash), place.address).unwrap_or(0);
        self.index.remove(index_hash(hash), place.address);
        match is_own {
            Some(_) => self.forget(place),
            None => self.note(HashedKey { key, hash }, place, shared_bits as u8),
        }
        self.counts.add(key.owner(), -1);
        self.counters.removes += 1;
        Ok(Discarded::Done)
    }

    /// Whether the record at `address` is the key's; `None`: it is not in memory.
    fn is_own_in_memory(&mut self, key: Key<'_>, address: u64) -> Option<bool> {
        let wanted = Wanted::of(self.segment_sequence(address), key);
        let bytes = self.log.in_memory(address)?;
        let shard = self.log.shape().shard;
        Some(self.payloads.is_of(shard, bytes, wanted, &mut self.scratch))
    }
}
