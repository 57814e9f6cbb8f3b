//! The scan by hash: every entry of a space, from a cursor, in the order of the index.

use std::collections::HashSet;

use entresol_device::{Completion, QueueOptions};

use super::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::format::RecordHeader;
use crate::index::{Candidates, Place};
use crate::notes::{Note, index_hash};
use crate::record::{Wanted, hash_key};
use crate::shard::{Plan, Shard};
use crate::types::{Entry, Key, SpaceId, Timestamp, Version};

/// Device reads of a scan in flight.
const SCAN_DEPTH: usize = 64;
/// Cursors hold the shard in these low bits; the index leaves them 0.
const SHARD_BITS: u32 = 16;
/// Times a batch is begun again because its records moved.
const RETRIES_MAX: usize = 1000;

/// Whose entries are wanted, and when.
#[derive(Clone, Copy)]
struct Filter<'f> {
    space: SpaceId,
    partitions: &'f dyn Fn(u16) -> bool,
    now: Timestamp,
}
/// Called with each entry, or with the error that its record is damaged or cannot be read.
pub type VisitEntry<'v> = &'v mut dyn FnMut(Result<Entry<'_>>);

/// Called with the partition and the name of each entry that a scan read and nobody wanted; without
/// a name for one that does not verify.
pub type NoteEntry<'n> = &'n mut dyn FnMut(u16, Option<EntryName>);

/// What finds an entry, or a few, by [`Session::visit_named`]: of a key it is always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryName {
    shard: u16,
    hash: u64,
}

impl EntryName {
    pub(crate) fn new(shard: usize, hash: u128) -> EntryName {
        EntryName { shard: shard as u16, hash: index_hash(hash) }
    }
}

/// What a scan does with the entries it reads.
struct Visits<'v, 'n> {
    wanted: VisitEntry<'v>,
    others: NoteEntry<'n>,
    /// Whole hashes of the keys that were visited: a batch may be begun anew.
    seen: HashSet<u128>,
}

/// What a scan is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// Of a record that was hidden then: the whole hash of the key that was put over it.
    by: Option<u128>,
}

/// What is done with a record that was read: the shard, its plan, its bytes.
type See<'s> = &'s mut dyn FnMut(&mut Session, usize, &Planned, &[u8]) -> Seen;

/// What became of the record of a plan.
pub(super) enum Seen {
    /// Visited, or none of those wanted.
    Done,
    /// It moved: the batch is begun again.
    Moved,
    /// It does not verify, or could not be read.
    Damaged(Error),
}

impl Session {
    /// Visits about `limit` live entries of `space` from `cursor` (0 starts) in hash order and
    /// returns the next cursor (0: the end). Entries present throughout are visited once, and no
    /// key twice by one call. Blocks; other operations of this session stay in flight.
    ///
    /// A record that is damaged or cannot be read is visited as an error that says where it is, and
    /// the scan goes on. Where its header does not verify its space is unknown: scans of every
    /// space visit it.
    pub fn scan(
        &mut self,
        space: SpaceId,
        (cursor, limit): (u64, usize),
        now: Timestamp,
        visit: VisitEntry<'_>,
    ) -> Result<u64> {
        let place = (cursor, limit);
        self.scan_partitions((space, &|_| true), place, now, (visit, &mut |_, _| ()))
    }

    /// Visits the live entries of a space among those that are named, of partitions that are
    /// wanted; others whose names are the same too. Blocks, and tells of damage, as a scan.
    pub fn visit_named(
        &mut self,
        (space, partitions): (SpaceId, &dyn Fn(u16) -> bool),
        names: &[EntryName],
        now: Timestamp,
        visit: VisitEntry<'_>,
    ) -> Result<()> {
        let mut visits = Visits { wanted: visit, others: &mut |_, _| (), seen: HashSet::new() };
        let filter = Filter { space, partitions, now };
        for same in names.chunk_by(|one, other| one.shard == other.shard) {
            let number = usize::from(same[0].shard);
            if number >= self.engine.shards.len() {
                continue;
            }
            let plans = |session: &Session| (session.plans_of(number, same), 0);
            self.visit_whole(number, &plans, filter, &mut visits)?;
        }
        Ok(())
    }

    /// Visits what `plans` gives until nothing of it moves meanwhile; where it ends.
    fn visit_whole(
        &mut self,
        number: usize,
        plans: &dyn Fn(&Session) -> (Vec<Planned>, u64),
        filter: Filter<'_>,
        visits: &mut Visits<'_, '_>,
    ) -> Result<u64> {
        for _ in 0..RETRIES_MAX {
            let (planned, next) = plans(self);
            let mut damaged = Vec::new();
            let see: See<'_> = &mut |session, number, plan, bytes| {
                session.visit_bytes(number, plan, bytes, (filter, &mut *visits))
            };
            let mut whole = self.visit_plans(number, &planned, see, &mut damaged)?;
            if !damaged.is_empty() {
                // Damaged records that were replaced meanwhile are nobody's loss.
                let (still, _) = plans(self);
                whole &= damaged.iter().all(|(plan, _)| still.contains(plan));
            }
            if whole {
                for (_, error) in damaged {
                    self.count(|c| &c.damaged);
                    (visits.wanted)(Err(error));
                }
                return Ok(next);
            }
        }
        Err(Error::new(ErrorKind::Busy, "entries move faster than they can be scanned"))
    }

    /// The reads of the entries that are named.
    fn plans_of(&self, number: usize, names: &[EntryName]) -> Vec<Planned> {
        let shard = self.engine.shards[number].lock();
        let (mut plans, mut found) = (Vec::with_capacity(names.len()), Candidates::default());
        for name in names {
            shard.index.candidates(name.hash, &mut found);
            plans.extend(found.iter().map(|place| planned(&shard, place)));
            shard.notes.in_range(name.hash, name.hash, &mut |note| {
                plans.push(planned_hidden(&shard, note));
            });
        }
        plans
    }

    /// The same of those partitions alone that are wanted. The entries of others are read all the
    /// same, and count for `limit`; `note` is called with those that are of the space.
    pub fn scan_partitions(
        &mut self,
        (space, partitions): (SpaceId, &dyn Fn(u16) -> bool),
        (cursor, limit): (u64, usize),
        now: Timestamp,
        (visit, note): (VisitEntry<'_>, NoteEntry<'_>),
    ) -> Result<u64> {
        let mut visits = Visits { wanted: visit, others: note, seen: HashSet::new() };
        let filter = Filter { space, partitions, now };
        let number = (cursor & ((1 << SHARD_BITS) - 1)) as usize;
        let from = cursor >> SHARD_BITS << SHARD_BITS;
        if number >= self.engine.shards.len() {
            return Ok(0);
        }
        let buckets = limit.div_ceil(6).max(1);
        let plans = |session: &Session| session.plans(number, from, buckets);
        let next = self.visit_whole(number, &plans, filter, &mut visits)?;
        if next != 0 {
            return Ok(next | number as u64);
        }
        let following = number + 1;
        Ok(if following < self.engine.shards.len() { following as u64 } else { 0 })
    }

    /// The reads of the entries of about so many buckets from the hash `from` on, and the next.
    pub(super) fn plans(&self, number: usize, from: u64, buckets: usize) -> (Vec<Planned>, u64) {
        let mut plans = Vec::new();
        let shard = self.engine.shards[number].lock();
        let visit = &mut |place| plans.push(planned(&shard, place));
        let next = shard.index.scan(from, buckets, visit);
        // Entries hidden by a put that nobody has checked yet have no slot.
        shard.notes.in_range(from, next.wrapping_sub(1), &mut |note| {
            plans.push(planned_hidden(&shard, note));
        });
        (plans, next)
    }

    /// Has `see` look at the records of `plans` and gathers those that are damaged; false if one
    /// has moved meanwhile.
    pub(super) fn visit_plans(
        &mut self,
        number: usize,
        plans: &[Planned],
        see: See<'_>,
        damaged: &mut Vec<(Planned, Error)>,
    ) -> Result<bool> {
        let mut queue = match self.scan_queue.take() {
            Some(queue) => queue,
            None => {
                let options = QueueOptions { depth: SCAN_DEPTH, buffer_bytes: 8 << 10 };
                self.engine.device.queue(options)?
            }
        };
        let mut whole = true;
        let mut note = |plan: &Planned, seen: Seen| match seen {
            Seen::Done => {}
            Seen::Moved => whole = false,
            Seen::Damaged(error) => damaged.push((*plan, error)),
        };
        let mut next = 0;
        let mut completions: Vec<Completion> = Vec::new();
        while next < plans.len() || queue.in_flight() > 0 {
            while next < plans.len() && queue.in_flight() < SCAN_DEPTH {
                let plan = &plans[next];
                match self.visit_in_memory(number, plan, see) {
                    Some(seen) => note(plan, seen),
                    None => {
                        let (offset, length) = self.engine.read_range(&plan.plan);
                        queue.read(next as u64, offset, length)?;
                    }
                }
                next += 1;
            }
            if queue.in_flight() == 0 {
                continue;
            }
            queue.reap(1, &mut completions)?;
            for completion in completions.drain(..) {
                let plan = &plans[completion.token as usize];
                let (offset, _) = self.engine.read_range(&plan.plan);
                if let Err(error) = completion.result {
                    note(plan, Seen::Damaged(error.into()));
                    continue;
                }
                let Some(buffer) = completion.buffer else { continue };
                let bytes = buffer.get((plan.plan.offset - offset) as usize..).unwrap_or_default();
                note(plan, see(self, number, plan, bytes));
            }
        }
        self.scan_queue = Some(queue);
        Ok(whole)
    }

    /// Visits the record of `plan` if it is in memory; `None` if it has to be read.
    fn visit_in_memory(&mut self, number: usize, planned: &Planned, see: See<'_>) -> Option<Seen> {
        let engine = std::sync::Arc::clone(&self.engine);
        let shard = engine.shards[number].lock();
        let place = planned.plan.place;
        let length = place.size.bytes() as usize;
        let bytes = shard.log.in_memory(place.address)?;
        let copy = bytes[..length.min(bytes.len())].to_vec();
        drop(shard);
        Some(see(self, number, planned, &copy))
    }

    /// Visits the record in `bytes` if it is the one planned, and wanted.
    fn visit_bytes(
        &mut self,
        number: usize,
        &Planned { plan, by }: &Planned,
        bytes: &[u8],
        (filter, visits): (Filter<'_>, &mut Visits<'_, '_>),
    ) -> Seen {
        let mut scratch = std::mem::take(&mut self.scratch);
        let wanted = Wanted::any(plan.segment_sequence);
        let opened = self.engine.payloads.open(number as u16, bytes, wanted, &mut scratch);
        let record = match opened {
            Ok(record) => record,
            Err(mismatch) => {
                self.scratch = scratch;
                let shard = self.engine.shards[number].lock();
                let address = plan.place.address;
                let error = crate::shard::damaged(&shard.log, address, mismatch);
                if shard.segment_sequence(address) != plan.segment_sequence {
                    return Seen::Moved;
                }
                let Some(header) = RecordHeader::decode(bytes) else { return Seen::Damaged(error) };
                let floor = shard.floor_of(header.owner());
                if header.space != filter.space || floor > plan.segment_sequence {
                    return Seen::Done;
                }
                if (filter.partitions)(header.partition) {
                    return Seen::Damaged(error);
                }
                drop(shard);
                (visits.others)(header.partition, None);
                return Seen::Done;
            }
        };
        let header = record.header;
        let key = Key { space: header.space, partition: header.partition, bytes: record.key };
        let hash = hash_key(self.engine.hash_seed, key);
        let shard = self.engine.shards[number].lock();
        let dropped = shard.is_dropped(key, plan.place.address);
        let current = shard.index.contains(index_hash(hash), plan.place.address)
            || shard.notes.hidden(hash).any(|note| note.address == plan.place.address);
        // What its own key was put over before has a plan of its own where it is now.
        let replaced = by == Some(hash);
        let mut others = Candidates::default();
        if !current && !replaced {
            shard.index.candidates(index_hash(hash), &mut others);
        }
        drop(shard);
        if !others.is_empty() {
            // Put anew since the batch was begun: it would be missed.
            self.scratch = scratch;
            return Seen::Moved;
        }
        let live = current && !dropped;
        let mut seen = Seen::Done;
        let wanted = header.space == filter.space && (filter.partitions)(header.partition);
        if !wanted && live && header.space == filter.space {
            (visits.others)(header.partition, Some(EntryName::new(number, hash)));
        }
        if wanted && live && !Shard::has_ended(&record, filter.now) && !visits.seen.contains(&hash)
        {
            match self.engine.whole_value(hash, plan.place, &record) {
                Ok(Some(value)) => {
                    visits.seen.insert(hash);
                    (visits.wanted)(Ok(Entry {
                        key: record.key,
                        value: &value,
                        version: Version(header.version),
                        label: header.label,
                        expiry: record.expiry(),
                        pinning: record.pinning(),
                        found: None,
                    }));
                }
                Ok(None) => seen = Seen::Moved,
                Err(error) => seen = Seen::Damaged(error),
            }
        }
        self.scratch = scratch;
        seen
    }
}

/// The read of what is at `place` in the index.
fn planned(shard: &Shard, place: Place) -> Planned {
    Planned { plan: shard.plan(place, false), by: None }
}

/// The read of what `note` is on.
fn planned_hidden(shard: &Shard, note: &Note) -> Planned {
    let place = Place { address: note.address, size: note.size };
    Planned { plan: shard.plan(place, true), by: Some(note.by) }
}
