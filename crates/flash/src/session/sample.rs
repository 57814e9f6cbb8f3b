//! A sample of the entries of all spaces: what they are, without their values.

use super::Session;
use super::scan::{Planned, Seen};
use crate::error::Result;
use crate::format::{Manifest, RecordKind};
use crate::index::Place;
use crate::notes::index_hash;
use crate::record::{Wanted, hash_key};
use crate::shard::Shard;
use crate::types::{Key, SpaceId, Timestamp};

/// Low bits of a hash that the index does not tell apart.
const HASH_BITS_UNTOLD: u32 = 24;

/// Entries of a bucket of the index, which has eight places: about so many are taken.
const ENTRIES_IN_A_BUCKET: usize = 6;

/// What an entry of a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// Its space.
    pub space: SpaceId,
    /// The caller's byte.
    pub label: u8,
    /// Bytes of its key.
    pub key_bytes: u64,
    /// Bytes of its value, as the caller gave it.
    pub value_bytes: u64,
    /// Bytes that it takes on flash, with its pieces if it is large.
    pub record_bytes: u64,
    /// Whether it ends.
    pub ends: bool,
}

/// A place to sample from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePlace {
    /// Any number: hashes from this one on.
    pub hash: u64,
    /// Any number: the shard that it is one of, modulo their number.
    pub shard: u64,
}

impl Session {
    /// Visits about `limit` live entries of all spaces that follow `place` in the order of their
    /// hashes, fewer where the hashes end; returns the hash at which the next ones begin (0: they
    /// ended). A value is not read beyond what its entry's first record has of it. What moves
    /// meanwhile, or does not verify, is left out. Blocks.
    pub fn sample(
        &mut self,
        place: SamplePlace,
        limit: usize,
        now: Timestamp,
        visit: &mut dyn FnMut(Sampled),
    ) -> Result<u64> {
        let number = (place.shard % self.engine.shards.len() as u64) as usize;
        let from = place.hash >> HASH_BITS_UNTOLD << HASH_BITS_UNTOLD;
        let (plans, next) = self.plans(number, from, limit.div_ceil(ENTRIES_IN_A_BUCKET).max(1));
        let see = &mut |session: &mut Session, number: usize, plan: &Planned, bytes: &[u8]| {
            session.sampled(number, plan, bytes, now).into_iter().for_each(&mut *visit);
            Seen::Done
        };
        self.visit_plans(number, &plans, see, &mut Vec::new())?;
        Ok(next)
    }

    /// What the record in `bytes` is of, if it is the one planned and its entry is live.
    fn sampled(
        &mut self,
        number: usize,
        planned: &Planned,
        bytes: &[u8],
        now: Timestamp,
    ) -> Option<Sampled> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let wanted = Wanted::any(planned.plan.segment_sequence);
        let opened = self.engine.payloads.open(number as u16, bytes, wanted, &mut scratch);
        let found = opened.ok().and_then(|record| {
            let header = record.header;
            let key = Key { space: header.space, partition: header.partition, bytes: record.key };
            let Place { address, .. } = planned.plan.place;
            let hash = hash_key(self.engine.hash_seed, key);
            let shard = self.engine.shards[number].lock();
            let is_current = shard.index.contains(index_hash(hash), address)
                && !shard.is_dropped(key, address)
                && !Shard::has_ended(&record, now);
            drop(shard);
            let manifest = match header.flags.kind {
                RecordKind::Manifest => Some(Manifest::decode(record.value)?),
                RecordKind::Value => None,
                _ => return None,
            };
            let pieces_bytes = manifest.as_ref().map_or(0, |it| it.stored_bytes);
            let value_bytes = record.value.len() as u64;
            is_current.then(|| Sampled {
                space: header.space,
                label: header.label,
                key_bytes: record.key.len() as u64,
                value_bytes: manifest.as_ref().map_or(value_bytes, |it| u64::from(it.raw_bytes)),
                record_bytes: header.record_bytes() as u64 + pieces_bytes,
                ends: record.expiry().at.is_some(),
            })
        });
        self.scratch = scratch;
        found
    }
}
