//! The scan by hash: every entry of a space, from a cursor, in the order of the index.

use entresol_device::{Completion, QueueOptions};

use super::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::format::RecordKind;
use crate::index::{Candidates, Place};
use crate::notes::index_hash;
use crate::record::hash_key;
use crate::shard::{Plan, Shard};
use crate::types::{Entry, Key, SpaceId, Timestamp, Version};

/// Device reads of a scan in flight.
const SCAN_DEPTH: usize = 64;
/// Cursors hold the shard in these low bits; the index leaves them 0.
const SHARD_BITS: u32 = 16;
/// Times a batch is begun again because its records moved.
const RETRIES_MAX: usize = 1000;

/// Whose entries are wanted, and when.
type Filter = (SpaceId, Timestamp);
type VisitEntry<'v> = &'v mut dyn FnMut(Entry<'_>);

impl Session {
    /// Visits about `limit` live entries of `space` from `cursor` (0 starts) in hash order and
    /// returns the next cursor (0: the end). Entries present throughout are visited at least once.
    /// Blocks; other operations of this session stay in flight.
    pub fn scan(
        &mut self,
        space: SpaceId,
        (cursor, limit): (u64, usize),
        now: Timestamp,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<u64> {
        let number = (cursor & ((1 << SHARD_BITS) - 1)) as usize;
        let from = cursor >> SHARD_BITS << SHARD_BITS;
        if number >= self.inner.shards.len() {
            return Ok(0);
        }
        let buckets = limit.div_ceil(6).max(1);
        for _ in 0..RETRIES_MAX {
            let mut places = Vec::new();
            let shard = self.inner.shards[number].lock();
            let next = shard.index.scan(from, buckets, &mut |place| places.push((place, false)));
            // Entries hidden by a put that nobody has checked yet have no slot.
            shard.notes.in_range(from, next.wrapping_sub(1), &mut |note| {
                places.push((Place { address: note.address, size: note.size }, true));
            });
            let plans = places.iter().map(|(place, hidden)| shard.plan(*place, *hidden));
            let plans: Vec<Plan> = plans.collect();
            drop(shard);
            if self.visit_plans(number, &plans, (space, now), visit)? {
                if next != 0 {
                    return Ok(next | number as u64);
                }
                let following = number as u64 + 1;
                return Ok(if (following as usize) < self.inner.shards.len() {
                    following
                } else {
                    0
                });
            }
        }
        Err(Error::new(ErrorKind::Busy, "entries move faster than they can be scanned"))
    }

    /// Visits the live entries among `plans`; false if one has moved meanwhile.
    fn visit_plans(
        &mut self,
        number: usize,
        plans: &[Plan],
        filter: (SpaceId, Timestamp),
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<bool> {
        let mut queue = match self.scan_queue.take() {
            Some(queue) => queue,
            None => {
                let options = QueueOptions { depth: SCAN_DEPTH, buffer_bytes: 8 << 10 };
                self.inner.device.queue(options)?
            }
        };
        let mut whole = true;
        let mut next = 0;
        let mut completions: Vec<Completion> = Vec::new();
        while next < plans.len() || queue.in_flight() > 0 {
            while next < plans.len() && queue.in_flight() < SCAN_DEPTH {
                let plan = &plans[next];
                if !self.visit_in_memory(number, plan, filter, visit)? {
                    let (offset, length) = self.inner.read_range(plan);
                    queue.read(next as u64, offset, length)?;
                }
                next += 1;
            }
            if queue.in_flight() == 0 {
                continue;
            }
            queue.reap(1, &mut completions)?;
            for completion in completions.drain(..) {
                completion.result?;
                let plan = &plans[completion.token as usize];
                let (offset, _) = self.inner.read_range(plan);
                let Some(buffer) = completion.buffer else { continue };
                let bytes = buffer.get((plan.offset - offset) as usize..).unwrap_or_default();
                whole &= self.visit_bytes(number, plan, bytes, (filter, visit))?;
            }
        }
        self.scan_queue = Some(queue);
        Ok(whole)
    }

    /// Visits the record of `plan` if it is in memory; false if it has to be read.
    fn visit_in_memory(
        &mut self,
        number: usize,
        plan: &Plan,
        filter: (SpaceId, Timestamp),
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<bool> {
        let inner = std::sync::Arc::clone(&self.inner);
        let shard = inner.shards[number].lock();
        let length = plan.place.size.bytes() as usize;
        let Some(bytes) = shard.log.in_memory(plan.place.address) else { return Ok(false) };
        let copy = bytes[..length.min(bytes.len())].to_vec();
        drop(shard);
        self.visit_bytes(number, plan, &copy, (filter, visit))
    }

    /// Visits the record in `bytes`; false if it is not the one planned because that has moved.
    fn visit_bytes(
        &mut self,
        number: usize,
        plan: &Plan,
        bytes: &[u8],
        ((space, now), visit): (Filter, VisitEntry<'_>),
    ) -> Result<bool> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let wanted = (plan.segment_sequence as u32, None);
        let opened = self.inner.payloads.open(number as u16, bytes, wanted, &mut scratch);
        let Ok(record) = opened else {
            let shard = self.inner.shards[number].lock();
            let same = shard.segment_sequence(plan.place.address) == plan.segment_sequence;
            let error = crate::shard::damaged(
                &shard.log,
                plan.place.address,
                crate::record::Mismatch::Damaged,
            );
            return if same { Err(error) } else { Ok(false) };
        };
        let header = record.header;
        let key = Key { space: header.space, partition: header.partition, bytes: record.key };
        let hash = hash_key(self.inner.hash_seed, key);
        let shard = self.inner.shards[number].lock();
        let dropped = shard.is_dropped(key, plan.place.address);
        let current = shard.index.contains(index_hash(hash), plan.place.address)
            || shard.notes.hidden(hash).any(|note| note.address == plan.place.address);
        let mut others = Candidates::default();
        if !current && !plan.hidden {
            shard.index.candidates(index_hash(hash), &mut others);
        }
        drop(shard);
        if !others.is_empty() {
            // Put anew since the batch was begun: it would be missed.
            self.scratch = scratch;
            return Ok(false);
        }
        let live = current && !dropped;
        if header.space == space && live && !Shard::has_ended(&record, now) {
            let assembled = match header.flags.kind {
                RecordKind::Manifest => self.inner.assemble(hash, &record)?,
                _ => None,
            };
            visit(Entry {
                key: record.key,
                value: assembled.as_deref().unwrap_or(record.value),
                version: Version(header.version),
                label: header.label,
                expiry: record.expiry(),
                pinning: record.pinning(),
            });
        }
        self.scratch = scratch;
        Ok(true)
    }
}
