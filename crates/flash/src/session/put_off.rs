//! Writes that the device has no buffer or room for: they wait, and what else the session does goes
//! on.
//!
//! Invariant: they are tried again in their order, and nothing of them is in the store before.

use super::pending::PendingKind;
use super::{Ack, Session, Visit, wait_for};
use crate::engine::{Put, Waits};
use crate::error::Result;
use crate::shard::{Known, Mark, PutRequest};
use crate::types::Condition;

impl Session {
    /// Keeps a pending write until the device has answered.
    pub(super) fn put_off(&mut self, slot: u32) {
        let pending = &self.pending[slot as usize];
        self.put_off_bytes += pending.key.len() + pending.value.len();
        self.put_off.push_back(slot);
    }

    /// Tries the writes that were put off, up to the first that has to wait on.
    pub(super) fn retry_put_off(&mut self, visit: Visit<'_>) {
        if self.put_off.is_empty() {
            return;
        }
        self.waits = Waits::OF_RETRY;
        for _ in 0..self.put_off.len() {
            let Some(slot) = self.put_off.pop_front() else { break };
            let pending = &self.pending[slot as usize];
            self.put_off_bytes -= pending.key.len() + pending.value.len();
            let (token, before) = (pending.token, self.put_off.len());
            if let Err(error) = self.begin_again(slot, visit) {
                self.finish(token, Err(error), visit);
            }
            if self.put_off.len() > before {
                // It is the last of them now, and was the first.
                self.put_off.rotate_right(1);
                break;
            }
        }
        self.waits = Waits::OF_FIRST_TRY;
    }

    fn begin_again(&mut self, slot: u32, visit: Visit<'_>) -> Result<()> {
        let pending = &mut self.pending[slot as usize];
        pending.tried.clear();
        pending.plan = None;
        let options = match pending.kind {
            PendingKind::Put(options) if options.condition == Condition::Always => options,
            _ => return self.resolve(slot, visit),
        };
        let pending = &self.pending[slot as usize];
        let (token, hash) = (pending.token, pending.hash);
        let request = PutRequest {
            key: pending.key(),
            hash,
            value: &pending.value,
            options,
            now: pending.now,
            version: None,
            mark: Mark::Full,
        };
        match self.engine.put(request, Known::Nothing, self.waits) {
            Ok(Put::Stored(written)) => {
                self.give_back(slot);
                let ack = (options.durability, Ack::Stored(written.version));
                self.acknowledge((token, hash), written, ack, visit);
                Ok(())
            }
            Ok(Put::Unresolved) => self.resolve(slot, visit),
            Ok(Put::Postponed) => {
                self.put_off(slot);
                Ok(())
            }
            Err(error) => {
                self.give_back(slot);
                Err(error)
            }
        }
    }

    /// Waits a moment for the devices of shards that have to give back a buffer.
    pub(super) fn await_buffers(&mut self) -> Result<()> {
        let slot = self.put_off.front();
        let shard = slot.map(|slot| self.engine.shard_of(self.pending[*slot as usize].hash));
        let Some(shard) = shard.or(self.appends.first_lane()) else { return Ok(()) };
        let descriptor = self.engine.shards[shard].lock().log.poll_fd();
        descriptor.map_or(Ok(()), |descriptor| wait_for(&[descriptor]))
    }
}
