//! Replacing and removing an entry where a get has just found it: the index alone says whether it
//! still stands there, so nothing is read and nothing is left to be checked.

use std::num::NonZeroU64;

use entresol_planted::planted;

use super::pending::PendingKind;
use super::{Ack, Session, Visit, check_value};
use crate::engine::Put;
use crate::error::Result;
use crate::format::SizeCode;
use crate::index::Place;
use crate::record::{HashedKey, hash_key};
use crate::shard::{Known, Location, Mark, PutRequest, Removal, Written};
use crate::types::{Condition, FoundAt, Key, PutOptions, Timestamp, Version};

/// A put over an entry that was found.
pub(super) struct PutOver<'a> {
    pub key: Key<'a>,
    pub value: &'a [u8],
    pub options: PutOptions,
    pub found: FoundAt,
}

/// An entry that was found, and is to go.
pub(super) struct Removed<'a> {
    pub key: Key<'a>,
    pub found: FoundAt,
}

/// What a get is told of where it found the entry of a key of this `hash`.
pub(super) fn found_at(hash: u128, location: Location, version: Version) -> Option<FoundAt> {
    Some(FoundAt {
        hash: hash as u64,
        address: location.place.address,
        record_bytes: location.place.size.bytes(),
        segment_sequence: NonZeroU64::new(location.segment_sequence)?,
        version,
    })
}

/// Where the entry of a key of this `hash` was found; `None` if it was another key's.
fn location_of(found: FoundAt, hash: u128) -> Option<Location> {
    let place = Place { address: found.address, size: SizeCode::covering(found.record_bytes) };
    let own = found.hash == hash as u64 || planted!("found-of-another-key");
    own.then_some(Location { place, segment_sequence: found.segment_sequence.get() })
}

impl Session {
    /// Begins a put over the entry that was found, or one as any other if it no longer stands
    /// there.
    pub(super) fn begin_replace(
        &mut self,
        token: u64,
        now: Timestamp,
        put: PutOver<'_>,
        visit: Visit<'_>,
    ) -> Result<()> {
        let PutOver { key, value, options, found } = put;
        self.check_key(key)?;
        check_value(value)?;
        let hash = hash_key(self.engine.hash_seed, key);
        let Some(location) = location_of(found, hash) else {
            return self.begin_put(token, now, (key, value, options), visit);
        };
        let request =
            PutRequest { key, hash, value, options, now, version: None, mark: Mark::Full };
        match self.engine.put(request, Known::At(location), self.waits)? {
            Put::Stored(written) => {
                let ack = (options.durability, Ack::Stored(written.version));
                self.acknowledge((token, hash), written, ack, visit);
                Ok(())
            }
            Put::Unresolved => self.begin_put(token, now, (key, value, options), visit),
            Put::Postponed => {
                let slot = self.take_pending(token, now, key, PendingKind::Put(options));
                self.pending[slot as usize].value.extend_from_slice(value);
                self.put_off(slot);
                Ok(())
            }
        }
    }

    /// Begins the removal of the entry that was found, or one as any other if it no longer stands
    /// there.
    pub(super) fn begin_remove_found(
        &mut self,
        token: u64,
        now: Timestamp,
        removed: Removed<'_>,
        visit: Visit<'_>,
    ) -> Result<()> {
        let Removed { key, found } = removed;
        self.check_key(key)?;
        let hash = hash_key(self.engine.hash_seed, key);
        let removal = match location_of(found, hash) {
            None => Removal::Changed,
            Some(location) => {
                let key = HashedKey { key, hash };
                self.engine.remove(key, location, now, self.waits)?
            }
        };
        let version = found.version;
        if let Removal::Removed { stamp } = removal {
            let ack = (None, Ack::Removed(version));
            self.acknowledge((token, hash), Written { version, stamp }, ack, visit);
            return Ok(());
        }
        let slot = self.take_pending(token, now, key, PendingKind::Remove(Condition::Always));
        if removal == Removal::Awaits {
            self.put_off(slot);
            return Ok(());
        }
        self.resolve(slot, visit)
    }
}
