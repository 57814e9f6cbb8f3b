//! Writing an entry again with another end.

use super::resolve::Present;
use super::{Ack, Session, Visit};
use crate::engine::Put;
use crate::error::Result;
use crate::shard::{Known, Mark, PutRequest};
use crate::types::{Expiry, PutOptions, Version};

impl Session {
    /// Gives the entry another end, which is a new version of it: who decides on what it read
    /// before must not write the old end back.
    pub(super) fn touch(
        &mut self,
        slot: u32,
        value: &[u8],
        (present, expiry): (Present, Expiry),
        visit: Visit<'_>,
    ) -> Result<()> {
        match self.rewrite(slot, value, present, (expiry, None)) {
            Ok(Put::Stored(written)) => {
                let pending = &self.pending[slot as usize];
                let (token, hash) = (pending.token, pending.hash);
                self.give_back(slot);
                let ack = (None, Ack::Touched(written.version));
                self.acknowledge((token, hash), written, ack, visit);
                Ok(())
            }
            Ok(Put::Postponed) => {
                self.put_off(slot);
                Ok(())
            }
            Ok(_) => self.start_over(slot, visit),
            Err(error) => {
                self.give_back(slot);
                Err(error)
            }
        }
    }

    /// Appends the same entry again with another end, as a version that is given or new.
    pub(super) fn rewrite(
        &mut self,
        slot: u32,
        value: &[u8],
        present: Present,
        (expiry, version): (Expiry, Option<Version>),
    ) -> Result<Put> {
        let pending = &self.pending[slot as usize];
        let options = PutOptions {
            expiry,
            pinning: present.pinning,
            label: present.label,
            lifespan: present.lifespan,
            ..PutOptions::default()
        };
        let request = PutRequest {
            key: pending.key(),
            hash: pending.hash,
            value,
            options,
            now: pending.now,
            version,
            mark: Mark::Touch,
        };
        let step = self.engine.put(request, Known::At(present.location), self.waits);
        if let Ok(Put::Stored(_)) = step {
            let shard = self.engine.shard_of(pending.hash);
            self.engine.shards[shard].lock().counters_mut().touches += 1;
        }
        step
    }
}
