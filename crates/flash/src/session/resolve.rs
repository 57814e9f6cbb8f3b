//! Finding the present record of a key, and deciding the operation on it.

use entresol_device::Completion;

use super::found::found_at;
use super::pending::{Pending, PendingKind};
use super::{Ack, ReadAhead, Session, Visit};
use crate::engine::Put;
use crate::error::{Error, ErrorKind, Result};
use crate::format::SizeCode;
use crate::format::{Codec, Manifest, RecordKind};
use crate::policy::OfDamaged;
use crate::record::{Mismatch, Record, Wanted, hash_key};
use crate::shard::{
    Absence, Ending, Known, Located, Location, Mark, Plan, PutRequest, Removal, Shard, Written,
    damaged, seconds_of,
};
use crate::types::{Condition, Durability, Entry, Key, Lifespan, Outcome, Timestamp, Version};

/// What is known of the record that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    pub location: Location,
    pub version: Version,
    pub ended: bool,
    pub label: u8,
    pub pinning: crate::types::Pinning,
    pub lifespan: Lifespan,
}

impl Present {
    fn of(record: &Record<'_>, location: Location) -> Present {
        Present {
            location,
            version: Version(record.header.version),
            ended: false,
            label: record.header.label,
            pinning: record.pinning(),
            lifespan: record.header.lifespan,
        }
    }
}

/// Times an operation starts over because its key keeps moving, before it gives up as busy. It may
/// do so on the stack.
const RETRIES_MAX: u32 = 200;

/// Memory for what is decrypted or decompressed that is kept for reuse, at most.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

impl Session {
    pub(super) fn begin_get(
        &mut self,
        token: u64,
        now: Timestamp,
        key: Key<'_>,
        visit: Visit<'_>,
    ) -> Result<()> {
        self.check_key(key)?;
        let hash = hash_key(self.engine.hash_seed, key);
        let shards = &self.engine.shards[self.engine.shard_of(hash)];
        let mut shard = shards.lock();
        let plan = match shard.locate(key, hash, &[])? {
            Located::Absent => {
                shard.counters_mut().gets_missed += 1;
                drop(shard);
                self.finish(token, Ok(Outcome::Missing), visit);
                return Ok(());
            }
            Located::Memory(record, location) if is_simple(&record, now) => {
                self.in_flight -= 1;
                let bytes = record.value.len() as u64;
                if bytes > self.entry_bytes_max {
                    visit(token, Ok(Outcome::Larger { bytes }));
                    return Ok(());
                }
                visit(token, Ok(Outcome::Found(entry(&record, hash, location))));
                shard.counters_mut().gets_memory += 1;
                return Ok(());
            }
            Located::Memory(..) => None,
            Located::Read(plan) if plan.bytes > self.entry_bytes_max => {
                drop(shard);
                self.finish(token, Ok(Outcome::Larger { bytes: plan.bytes }), visit);
                return Ok(());
            }
            Located::Read(plan) => Some(plan),
        };
        let follows = self.ahead.mode != ReadAhead::Never;
        let followed = plan.filter(|_| follows).and_then(|plan| shard.follow(plan.place.address));
        drop(shard);
        if let Some(followed) = followed {
            self.read_followed(followed)?;
        }
        let slot = self.take_pending(token, now, key, PendingKind::Get);
        match plan {
            None => self.resolve(slot, visit),
            Some(plan) => {
                self.pending[slot as usize].plan = Some(plan);
                self.begin_read(slot)
            }
        }
    }

    /// Locates the record of a pending operation and decides it, or begins the next read.
    pub(super) fn resolve(&mut self, slot: u32, visit: Visit<'_>) -> Result<()> {
        let pending = &mut self.pending[slot as usize];
        let (hash, now) = (pending.hash, pending.now);
        let engine = std::sync::Arc::clone(&self.engine);
        let mut shard = engine.shards[engine.shard_of(hash)].lock();
        match shard.locate(pending.key(), hash, &pending.tried) {
            Err(error) => {
                drop(shard);
                self.give_back(slot);
                Err(error)
            }
            Ok(Located::Absent) => {
                drop(shard);
                self.decide(slot, None, visit)
            }
            Ok(Located::Read(plan)) => {
                pending.plan = Some(plan);
                drop(shard);
                self.begin_read(slot)
            }
            Ok(Located::Memory(record, location)) => {
                // Copied: what follows needs the shard, or the lock given up.
                let copy = OwnedRecord::of(&record);
                drop(shard);
                self.found(slot, (copy.record(), location), now, visit)
            }
        }
    }

    pub(super) fn begin_read(&mut self, slot: u32) -> Result<()> {
        self.reading_bytes += self.planned_bytes(slot);
        if self.together.is_on() || self.queue.in_flight() >= self.queue.depth() {
            self.backlog.push_back(slot);
            return Ok(());
        }
        self.ask_for(slot)
    }

    /// Hands the read of a pending operation to the queue, which has room for it.
    pub(super) fn ask_for(&mut self, slot: u32) -> Result<()> {
        let Some(plan) = self.pending[slot as usize].plan else { return Ok(()) };
        let (offset, length) = self.engine.read_range(&plan);
        self.queue.read(u64::from(slot), offset, length).map_err(|error| {
            self.reading_bytes -= self.planned_bytes(slot);
            error.into()
        })
    }

    fn planned_bytes(&self, slot: u32) -> u64 {
        let plan = self.pending[slot as usize].plan.as_ref();
        plan.map_or(0, |plan| plan.bytes)
    }

    pub(super) fn finish_read(&mut self, completion: Completion, now: Timestamp, visit: Visit<'_>) {
        let slot = completion.token as u32;
        match (completion.result, completion.buffer) {
            (Ok(()), Some(buffer)) => self.finish_bytes(slot, &buffer, now, visit),
            (result, _) => {
                self.reading_bytes -= self.planned_bytes(slot);
                let token = self.pending[slot as usize].token;
                let missing = || Error::new(ErrorKind::Io, "a read completed without its bytes");
                let error = result.err().map_or_else(missing, Error::from);
                if let Err(error) = self.not_read(slot, error, visit) {
                    self.finish(token, Err(error), visit);
                }
            }
        }
    }

    /// Goes on with an operation whose range was read.
    pub(super) fn finish_bytes(
        &mut self,
        slot: u32,
        read: &[u8],
        now: Timestamp,
        visit: Visit<'_>,
    ) {
        self.reading_bytes -= self.planned_bytes(slot);
        let token = self.pending[slot as usize].token;
        if let Err(error) = self.verify(slot, read, now, visit) {
            self.finish(token, Err(error), visit);
        }
    }

    /// Checks what was read against what was looked for.
    fn verify(&mut self, slot: u32, read: &[u8], now: Timestamp, visit: Visit<'_>) -> Result<()> {
        let pending = &mut self.pending[slot as usize];
        let Some(plan) = pending.plan else { return Ok(()) };
        let (offset, _) = self.engine.read_range(&plan);
        let bytes = read.get((plan.offset - offset) as usize..).unwrap_or_default();
        let shard_number = self.engine.shard_of(pending.hash);
        let mut scratch = std::mem::take(&mut self.scratch);
        let wanted = Wanted::of(plan.segment_sequence, pending.key());
        let (hash, is_get) = (pending.hash, matches!(pending.kind, PendingKind::Get));
        let opened = self.engine.payloads.open(shard_number as u16, bytes, wanted, &mut scratch);
        let ended = match opened {
            Ok(record) => {
                let size = SizeCode::covering(record.header.record_bytes() as u64);
                let mut location = plan.location();
                if plan.hidden {
                    location.place.size = size;
                    self.engine.shards[shard_number].lock().unhide(pending.hash, location.place);
                }
                self.count(|c| &c.gets_flash);
                if is_get && self.engine.policy.marks_reads() {
                    // What reclaim meets unmarked goes.
                    let mut shard = self.engine.shards[shard_number].lock();
                    shard.mark_referenced(hash, location.place.address);
                }
                self.found(slot, (record, location), now, visit)
            }
            Err(mismatch) => self.mismatched(slot, &plan, mismatch, visit),
        };
        if scratch.capacity() > SCRATCH_BYTES_MAX {
            scratch = Vec::new();
        }
        self.scratch = scratch;
        ended
    }

    /// Another key's record: look on. Not a record: the index must have moved on, or it is damaged.
    fn mismatched(
        &mut self,
        slot: u32,
        plan: &Plan,
        mismatch: Mismatch,
        visit: Visit<'_>,
    ) -> Result<()> {
        let pending = &mut self.pending[slot as usize];
        if mismatch == Mismatch::OtherKey {
            pending.tried.push(plan.location());
            self.count(|c| &c.collisions_get);
            return self.resolve(slot, visit);
        }
        let mut shard = self.engine.shards[self.engine.shard_of(pending.hash)].lock();
        let mut current = shard.is_current(pending.hash, plan);
        let error = damaged(&shard.log, plan.place.address, mismatch);
        if current && !plan.hidden && self.engine.policy.of_damaged() == OfDamaged::Goes {
            // A cache misses what it cannot give back whole.
            shard.evict(pending.hash, plan.place, pending.key().owner());
            self.count(|c| &c.damaged);
            current = false;
        }
        drop(shard);
        if current {
            return self.go_on_unverified(slot, plan, error, visit);
        }
        self.start_over(slot, visit)
    }

    /// The device did not give what was asked for.
    fn not_read(&mut self, slot: u32, error: Error, visit: Visit<'_>) -> Result<()> {
        let pending = &self.pending[slot as usize];
        let current = |plan: &Plan| {
            let shard = self.engine.shards[self.engine.shard_of(pending.hash)].lock();
            shard.is_current(pending.hash, plan)
        };
        match pending.plan.filter(current) {
            Some(plan) => self.go_on_unverified(slot, &plan, error, visit),
            None => {
                self.give_back(slot);
                Err(error)
            }
        }
    }

    pub(super) fn start_over(&mut self, slot: u32, visit: Visit<'_>) -> Result<()> {
        let pending = &mut self.pending[slot as usize];
        pending.tried.clear();
        pending.retries += 1;
        if pending.retries > RETRIES_MAX {
            self.give_back(slot);
            return Err(Error::new(ErrorKind::Busy, "the key changes faster than it can be read"));
        }
        self.resolve(slot, visit)
    }

    /// The key's record was found and is whole.
    fn found(
        &mut self,
        slot: u32,
        (record, location): (Record<'_>, Location),
        now: Timestamp,
        visit: Visit<'_>,
    ) -> Result<()> {
        if Shard::has_ended(&record, now) {
            return self.found_ended(slot, record, location, visit);
        }
        let pending = &mut self.pending[slot as usize];
        let manifest = record.header.flags.kind == RecordKind::Manifest;
        match pending.kind {
            PendingKind::Get if manifest && whole_bytes(&record) > pending.bytes_max => {
                self.found_larger(slot, whole_bytes(&record), visit)
            }
            PendingKind::Get | PendingKind::Touch(..) if manifest => {
                match self.engine.assemble(pending.hash, &record) {
                    Ok(Some(value)) => {
                        let whole = Record { value: &value, ..record };
                        self.found_whole(slot, whole, location, visit)
                    }
                    Ok(None) => self.start_over(slot, visit),
                    Err(error) => {
                        self.give_back(slot);
                        Err(error)
                    }
                }
            }
            _ => self.found_whole(slot, record, location, visit),
        }
    }

    /// Drops the slot of what ended, once all of its last second is over; until then it only looks
    /// as if it were gone.
    fn found_ended(
        &mut self,
        slot: u32,
        record: Record<'_>,
        location: Location,
        visit: Visit<'_>,
    ) -> Result<()> {
        let header = &record.header;
        let pending = &self.pending[slot as usize];
        let mut shard = self.engine.shards[self.engine.shard_of(pending.hash)].lock();
        let ends_seconds = header.ends_seconds();
        let removes = matches!(pending.kind, PendingKind::Remove(_));
        let dropped = if removes || !shard.is_over(ends_seconds, pending.now) {
            // Who removes it leaves a tombstone: a clock that goes back must not undo that.
            false
        } else if !shard.holds(pending.hash, location) {
            drop(shard);
            return self.start_over(slot, visit);
        } else if header.flags.kind == RecordKind::Manifest {
            // There may be no room for its tombstone: then it goes later. A store that is only read
            // has none.
            self.engine.check_open().is_ok()
                && shard.bury(pending.hashed_key(), location, ends_seconds).is_ok()
        } else {
            let ending = Ending { place: location.place, seconds: ends_seconds };
            shard.expire(pending.hash, ending, header.owner());
            true
        };
        drop(shard);
        let present = Present { ended: true, ..Present::of(&record, location) };
        self.decide(slot, Some(present).filter(|_| !dropped), visit)
    }

    /// The entry of a get takes more than that may.
    fn found_larger(&mut self, slot: u32, bytes: u64, visit: Visit<'_>) -> Result<()> {
        let token = self.pending[slot as usize].token;
        self.give_back(slot);
        self.finish(token, Ok(Outcome::Larger { bytes }), visit);
        Ok(())
    }

    fn found_whole(
        &mut self,
        slot: u32,
        record: Record<'_>,
        location: Location,
        visit: Visit<'_>,
    ) -> Result<()> {
        let pending = &mut self.pending[slot as usize];
        let now = pending.now;
        let present = Present::of(&record, location);
        match pending.kind {
            PendingKind::Get if record.value.len() as u64 > pending.bytes_max => {
                self.found_larger(slot, record.value.len() as u64, visit)
            }
            PendingKind::Get => {
                if wants_touch(&record, now) {
                    let expiry = record.expiry();
                    // Only the time of its last use is renewed; if that fails it ends earlier.
                    let version = Some(present.version);
                    let _renewed = self.rewrite(slot, record.value, present, (expiry, version));
                }
                let Pending { token, hash, .. } = self.pending[slot as usize];
                self.give_back(slot);
                self.finish(token, Ok(Outcome::Found(entry(&record, hash, location))), visit);
                Ok(())
            }
            PendingKind::Touch(expiry, condition) if condition.holds(Some(present.version)) => {
                self.touch(slot, record.value, (present, expiry), visit)
            }
            PendingKind::Touch(..) => self.decide(slot, Some(present), visit),
            PendingKind::Put(_) | PendingKind::Remove(_) => self.decide(slot, Some(present), visit),
        }
    }

    /// Decides an operation for which presence (or absence) was established.
    pub(super) fn decide(
        &mut self,
        slot: u32,
        present: Option<Present>,
        visit: Visit<'_>,
    ) -> Result<()> {
        let pending = &self.pending[slot as usize];
        let token = pending.token;
        let current = present.filter(|p| !p.ended).map(|p| p.version);
        let (condition, missing) = match pending.kind {
            PendingKind::Get => {
                self.count(|c| &c.gets_missed);
                (Condition::Present, true)
            }
            PendingKind::Touch(_, condition) => (condition, current.is_none()),
            PendingKind::Put(options) => (options.condition, false),
            PendingKind::Remove(condition) => (condition, current.is_none()),
        };
        if missing {
            match (pending.kind, present) {
                (PendingKind::Remove(wanted), Some(ended)) if wanted.holds(Some(ended.version)) => {
                    return self.apply(slot, present, visit);
                }
                (PendingKind::Remove(_), None) if self.may_come_back(slot) => {
                    return self.remove_absent(slot, visit);
                }
                _ => {}
            }
            self.give_back(slot);
            self.finish(token, Ok(Outcome::Missing), visit);
            return Ok(());
        }
        if !condition.holds(current) {
            self.give_back(slot);
            self.finish(token, Ok(Outcome::Refused { current }), visit);
            return Ok(());
        }
        self.apply(slot, present, visit)
    }

    /// Whether an entry of a key that has none may be on the medium yet.
    fn may_come_back(&self, slot: u32) -> bool {
        let pending = &self.pending[slot as usize];
        let shard = &self.engine.shards[self.engine.shard_of(pending.hash)];
        self.engine.policy.lets_go() || shard.lock().dropped_later(seconds_of(pending.now))
    }

    /// A key without an entry is removed, where one may come back.
    fn remove_absent(&mut self, slot: u32, visit: Visit<'_>) -> Result<()> {
        let pending = &self.pending[slot as usize];
        let (token, hash, now) = (pending.token, pending.hash, pending.now);
        let key = pending.hashed_key();
        match self.engine.remove_absent(key, &pending.tried, now, self.waits) {
            Ok(Absence::Changed) => self.start_over(slot, visit),
            Ok(Absence::Awaits) => {
                self.put_off(slot);
                Ok(())
            }
            Ok(Absence::Final) => {
                self.give_back(slot);
                self.finish(token, Ok(Outcome::Missing), visit);
                Ok(())
            }
            Ok(Absence::Entombed { stamp }) => {
                self.give_back(slot);
                let written = Written { version: Version(0), stamp };
                self.acknowledge((token, hash), written, (None, Ack::Missing), visit);
                Ok(())
            }
            Err(error) => {
                self.give_back(slot);
                Err(error)
            }
        }
    }

    fn apply(&mut self, slot: u32, present: Option<Present>, visit: Visit<'_>) -> Result<()> {
        let pending = &self.pending[slot as usize];
        let (token, hash) = (pending.token, pending.hash);
        let step = match (pending.kind, present) {
            (PendingKind::Put(options), present) => {
                let request = PutRequest {
                    key: pending.key(),
                    hash,
                    value: &pending.value,
                    options,
                    now: pending.now,
                    version: None,
                    mark: Mark::Full,
                };
                let known =
                    present.map_or(Known::Absent(&pending.tried), |p| Known::At(p.location));
                self.engine.put(request, known, self.waits).map(|put| match put {
                    Put::Stored(w) => Applied::Done(w, options.durability, Ack::Stored(w.version)),
                    Put::Postponed => Applied::PutOff,
                    Put::Unresolved => Applied::Changed,
                })
            }
            (_, Some(present)) => {
                let key = pending.hashed_key();
                let version = present.version;
                let ack = if present.ended { Ack::Missing } else { Ack::Removed(version) };
                let removed = self.engine.remove(key, present.location, pending.now, self.waits);
                removed.map(|removal| match removal {
                    Removal::Removed { stamp } => {
                        Applied::Done(Written { version, stamp }, None, ack)
                    }
                    Removal::Awaits => Applied::PutOff,
                    Removal::Changed => Applied::Changed,
                })
            }
            (_, None) => Ok(Applied::Changed),
        };
        match step {
            Ok(Applied::PutOff) => {
                self.put_off(slot);
                Ok(())
            }
            Ok(Applied::Done(written, durability, ack)) => {
                self.give_back(slot);
                self.acknowledge((token, hash), written, (durability, ack), visit);
                Ok(())
            }
            // What is there no more has to be found once more.
            Ok(Applied::Changed) => self.start_over(slot, visit),
            Err(error) => {
                self.give_back(slot);
                Err(error)
            }
        }
    }
}

/// What a decided write came to.
enum Applied {
    Done(Written, Option<Durability>, Ack),
    PutOff,
    Changed,
}

/// A record copied out of the shard.
struct OwnedRecord {
    header: crate::format::RecordHeader,
    bytes: Vec<u8>,
}

impl OwnedRecord {
    fn of(record: &Record<'_>) -> OwnedRecord {
        OwnedRecord { header: record.header, bytes: [record.key, record.value].concat() }
    }

    fn record(&self) -> Record<'_> {
        let (key, value) = self.bytes.split_at(self.header.key_bytes as usize);
        Record { header: self.header, key, value }
    }
}

/// Bytes that putting the value together takes whose manifest this is.
fn whole_bytes(manifest: &Record<'_>) -> u64 {
    Manifest::decode(manifest.value).map_or(0, |manifest| match manifest.codec {
        Codec::Plain => u64::from(manifest.raw_bytes),
        _ => manifest.stored_bytes + u64::from(manifest.raw_bytes),
    })
}

/// Whether a get can answer with the record as it is.
fn is_simple(record: &Record<'_>, now: Timestamp) -> bool {
    record.header.flags.kind == RecordKind::Value
        && !Shard::has_ended(record, now)
        && !wants_touch(record, now)
}

/// Whether the record's idle time should be renewed: an eighth of it has passed.
fn wants_touch(record: &Record<'_>, now: Timestamp) -> bool {
    let header = &record.header;
    header.idle_seconds != 0
        && (now.0 / 1000).saturating_sub(u64::from(header.touched_seconds)) * 8
            >= u64::from(header.idle_seconds)
}

/// The entry whose record, of a key of this `hash`, was found at `location`.
fn entry<'a>(record: &Record<'a>, hash: u128, location: Location) -> Entry<'a> {
    Entry {
        key: record.key,
        value: record.value,
        version: Version(record.header.version),
        label: record.header.label,
        expiry: record.expiry(),
        pinning: record.pinning(),
        found: found_at(hash, location, Version(record.header.version)),
    }
}
