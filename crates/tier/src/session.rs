//! One thread's door to a tiered store: memory first, then flash.
//!
//! Invariant: as in flash, `submit` visits the operation that it begins, or none; `poll` visits all
//! others.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use entresol_flash::{
    Condition, Entry, EntryName, Error, ErrorKind, Expiry, FoundAt, JournalAppend, Key, NoteEntry,
    Operation, Outcome, Pinning, PutOptions, Result, SamplePlace, Sampled, SegmentUse, SpaceId,
    SyncPoint, Timestamp, Version, VisitEntry,
};

use crate::admission::Verdict;
use crate::memory::Cached;
use crate::tiered::{TierCounters, Tiered};

pub use entresol_flash::{SessionOptions, SessionUsers, Visit};

/// One thread's operations: submit many, then visit them as they finish.
#[derive(Debug)]
pub struct Session {
    tiered: Arc<Tiered>,
    flash: entresol_flash::Session,
    pending: Vec<Pending>,
    unused: Vec<u32>,
    /// Which of the tier's counters it adds to.
    counters: usize,
}

/// An operation that flash has not answered yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    token: u64,
    hash: u128,
    space: SpaceId,
    kind: Kind,
    /// The gate's stamp when a get began.
    stamp: u64,
}

/// A put, and where a get found what it replaces.
#[derive(Debug, Clone, Copy)]
struct Put<'a> {
    key: Key<'a>,
    value: &'a [u8],
    options: PutOptions,
    found: Option<FoundAt>,
}

impl<'a> Put<'a> {
    fn operation(self) -> Operation<'a> {
        let Put { key, value, options, found } = self;
        match found {
            None => Operation::Put { key, value, options },
            Some(found) => Operation::Replace { key, value, options, found },
        }
    }
}

/// Keys whose memory is loaded together.
const PREFETCH_KEYS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    /// To the journal, which is not cached.
    Append,
    Write,
    /// A put that may not enter flash: what was there is removed instead, under its condition.
    Rejected(Condition),
}

impl Session {
    pub(crate) fn new(tiered: Arc<Tiered>, options: SessionOptions) -> Result<Session> {
        let mut flash = tiered.store.session(options)?;
        if !tiered.is_uncached() {
            flash.set_read_ahead(tiered.read_ahead());
        }
        let counters = tiered.sessions.fetch_add(1, Ordering::Relaxed) % tiered.counters.len();
        Ok(Session { tiered, flash, pending: Vec::new(), unused: Vec::new(), counters })
    }

    /// Begins `operation`. `visit` is called before return where the answer is at hand, else from a
    /// later [`Session::poll`]; never for another operation. It must not call into the store.
    pub fn submit(
        &mut self,
        token: u64,
        now: Timestamp,
        operation: Operation<'_>,
        visit: Visit<'_>,
    ) {
        if self.tiered.is_uncached() {
            if matches!(operation, Operation::Get { .. }) {
                self.counters().gets.fetch_add(1, Ordering::Relaxed);
            }
            return self.flash.submit(token, now, operation, visit);
        }
        match operation {
            Operation::Get { key } => self.get(token, now, key, visit),
            Operation::Put { key, value, options } => {
                self.put(token, now, Put { key, value, options, found: None }, visit);
            }
            Operation::Replace { key, value, options, found } => {
                self.put(token, now, Put { key, value, options, found: Some(found) }, visit);
            }
            Operation::Remove { key, .. }
            | Operation::RemoveFound { key, .. }
            | Operation::Discard { key }
            | Operation::Touch { key, .. } => {
                let hash = self.tiered.store.hash(key);
                let gate = self.tiered.gate(hash);
                gate.begin();
                self.tiered.memory.invalidate(hash, key.space.0, key.bytes);
                self.pass_on(
                    Pending { token, hash, space: key.space, kind: Kind::Write, stamp: 0 },
                    now,
                    operation,
                    visit,
                );
            }
        }
    }

    /// Begins to append a record to the journal of the store, as
    /// [`entresol_flash::Session::submit_journal`] does.
    pub fn submit_journal(
        &mut self,
        token: u64,
        now: Timestamp,
        append: JournalAppend<'_>,
        visit: Visit<'_>,
    ) {
        if self.tiered.is_uncached() {
            return self.flash.submit_journal(token, now, append, visit);
        }
        let space = SpaceId::default();
        let slot = self.take(Pending { token, hash: 0, space, kind: Kind::Append, stamp: 0 });
        let Session { flash, pending, unused, .. } = self;
        flash.submit_journal(u64::from(slot), now, append, &mut |answered, outcome| {
            assert_eq!(answered, u64::from(slot), "`submit` visits its own operation");
            unused.push(slot);
            visit(pending[slot as usize].token, outcome);
        });
    }

    /// Hands gathered reads to the device without waiting.
    pub fn flush(&mut self) -> Result<()> {
        self.flash.flush()
    }

    /// Waits until at least `wait_for` operations (0: none) have finished; visits all finished.
    pub fn poll(&mut self, wait_for: usize, now: Timestamp, visit: Visit<'_>) -> Result<usize> {
        let Session { tiered, flash, pending, unused, .. } = self;
        if tiered.is_uncached() {
            return flash.poll(wait_for, now, visit);
        }
        let done = flash.poll(wait_for, now, &mut |slot, outcome| {
            let done = pending[slot as usize];
            unused.push(slot as u32);
            finish(tiered, done, outcome, visit);
        })?;
        self.absorb_ahead(now);
        Ok(done)
    }

    /// Operations begun and not yet visited.
    pub fn in_flight(&self) -> usize {
        self.flash.in_flight()
    }

    /// Bytes of the records that operations begun wait for: memory that they are about to take.
    pub fn reading_bytes(&self) -> u64 {
        self.flash.reading_bytes()
    }

    /// Gets that begin from now on answer [`Outcome::Larger`] where the entry takes more than so
    /// many bytes.
    #[inline]
    pub fn set_entry_bytes_max(&mut self, bytes: u64) {
        self.flash.set_entry_bytes_max(bytes);
    }

    /// Bytes of writes that wait until the device has a buffer or room for them.
    #[inline]
    pub fn put_off_bytes(&self) -> usize {
        self.flash.put_off_bytes()
    }

    /// Bytes that a get of `key` takes, by the index alone; compressed ones take more.
    pub fn measure(&self, key: Key<'_>) -> Result<u64> {
        self.flash.measure(key)
    }

    /// All that any session has appended to the store so far: see [`Session::reach`].
    pub fn sync_point(&self) -> SyncPoint {
        self.flash.sync_point()
    }

    /// Whether all of `point` survives power loss by now. Where not, sees to it that a sync is
    /// under way, without waiting; [`Session::poll_fds`] tell when to ask again.
    ///
    /// Errors: `Poisoned`, if a write or sync failed.
    pub fn reach(&mut self, point: &SyncPoint) -> Result<bool> {
        self.flash.reach(point)
    }

    /// Whether the store may hold an entry of `key`, by the index alone: never wrongly no.
    pub fn may_hold(&self, key: Key<'_>) -> bool {
        self.flash.may_hold(key)
    }

    /// Leaves reading ahead to another session, for one that is used now and then.
    pub fn leave_read_ahead(&mut self) {
        self.flash.leave_read_ahead();
    }

    /// What another session should read ahead for this one, by [`Session::read_ahead_for`].
    pub fn wanted_ahead(&mut self) -> Option<SegmentUse> {
        self.flash.wanted_ahead()
    }

    /// Reads a segment ahead for a session that leaves that to others.
    pub fn read_ahead_for(&mut self, wanted: SegmentUse) -> Result<()> {
        self.flash.read_ahead_for(wanted)
    }

    /// Whether reads ahead are in flight: a poll takes them.
    pub fn is_reading_ahead(&self) -> bool {
        self.flash.is_reading_ahead()
    }

    /// Descriptors that poll readable when `poll(0, …)` may have something to visit.
    pub fn poll_fds(&self) -> Vec<RawFd> {
        self.flash.poll_fds()
    }

    /// Starts loading the memory that operations on `keys` will touch. Worth it for batches, some
    /// 8 to 32 operations that follow: they wait for memory once and not one after the other.
    pub fn prefetch<'k>(&self, keys: impl Iterator<Item = Key<'k>>) {
        let tiered = &self.tiered;
        if tiered.is_uncached() {
            return keys.for_each(|key| self.flash.prefetch(key));
        }
        let mut keys = keys.map(|key| tiered.store.hash(key));
        let mut hashes = [0; PREFETCH_KEYS];
        loop {
            let count = hashes.iter_mut().zip(&mut keys).map(|(at, hash)| *at = hash).count();
            for hash in &hashes[..count] {
                tiered.memory.prefetch(*hash);
            }
            for hash in &hashes[..count] {
                if !tiered.memory.prefetch_entry(*hash) {
                    self.flash.prefetch_hash(*hash);
                }
            }
            if count < PREFETCH_KEYS {
                return;
            }
        }
    }

    /// Visits about `limit` live entries of `space` from `cursor` (0 starts) in hash order and
    /// returns the next cursor (0: the end). Entries present throughout are visited at least once.
    /// A damaged record is visited as an error that says where it is.
    pub fn scan(
        &mut self,
        space: SpaceId,
        (cursor, limit): (u64, usize),
        now: Timestamp,
        visit: VisitEntry<'_>,
    ) -> Result<u64> {
        self.flash.scan(space, (cursor, limit), now, visit)
    }

    /// The same of those partitions alone that are wanted; notes the entries of others.
    pub fn scan_partitions(
        &mut self,
        wanted: (SpaceId, &dyn Fn(u16) -> bool),
        (cursor, limit): (u64, usize),
        now: Timestamp,
        visits: (VisitEntry<'_>, NoteEntry<'_>),
    ) -> Result<u64> {
        self.flash.scan_partitions(wanted, (cursor, limit), now, visits)
    }

    /// Visits about `limit` live entries of all spaces from `place` on, without their values;
    /// returns the hash at which the next ones begin (0: they ended). What moves meanwhile, or does
    /// not verify, is left out.
    pub fn sample(
        &mut self,
        place: SamplePlace,
        limit: usize,
        now: Timestamp,
        visit: &mut dyn FnMut(Sampled),
    ) -> Result<u64> {
        self.flash.sample(place, limit, now, visit)
    }

    /// Visits the live entries of a space among those that are named, of partitions that are
    /// wanted; others whose names are the same too.
    pub fn visit_named(
        &mut self,
        wanted: (SpaceId, &dyn Fn(u16) -> bool),
        names: &[EntryName],
        now: Timestamp,
        visit: VisitEntry<'_>,
    ) -> Result<()> {
        self.flash.visit_named(wanted, names, now, visit)
    }

    /// Submits one operation and waits for it; the session must have nothing in flight.
    pub fn run(
        &mut self,
        now: Timestamp,
        operation: Operation<'_>,
        visit: &mut dyn FnMut(Outcome<'_>),
    ) -> Result<()> {
        if self.in_flight() != 0 {
            let detail = "a blocking operation needs a session with nothing in flight";
            return Err(Error::new(ErrorKind::Busy, detail));
        }
        let mut ended = Ok(());
        let mut once = |_: u64, outcome: Result<Outcome<'_>>| match outcome {
            Ok(outcome) => visit(outcome),
            Err(error) => ended = Err(error),
        };
        self.submit(0, now, operation, &mut once);
        while self.in_flight() > 0 {
            self.poll(1, now, &mut once)?;
        }
        ended
    }

    /// Visits the value of `key` if it is in memory; whether it is. It counts as a get only then.
    pub fn get_from_memory(
        &mut self,
        now: Timestamp,
        key: Key<'_>,
        visit: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let hash = self.tiered.store.hash(key);
        let found = self.visit_cached(hash, now, key, &mut |cached| visit(cached.value));
        if found {
            self.counters().gets.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    fn get(&mut self, token: u64, now: Timestamp, key: Key<'_>, visit: Visit<'_>) {
        self.counters().gets.fetch_add(1, Ordering::Relaxed);
        let hash = self.tiered.store.hash(key);
        let stamp = self.tiered.gate(hash).stamp.load(Ordering::Acquire);
        let bytes_max = self.flash.entry_bytes_max();
        let found = self.visit_cached(hash, now, key, &mut |cached| {
            if cached.value.len() as u64 > bytes_max {
                let bytes = cached.value.len() as u64;
                visit(token, Ok(Outcome::Larger { bytes }));
            } else {
                visit(token, Ok(Outcome::Found(entry(&cached))));
            }
        });
        if found {
            return;
        }
        let pending = Pending { token, hash, space: key.space, kind: Kind::Get, stamp };
        self.pass_on(pending, now, Operation::Get { key }, visit);
    }

    /// Visits the entry of `key` in memory, unless it is over; whether it is there.
    #[inline]
    fn visit_cached(
        &mut self,
        hash: u128,
        now: Timestamp,
        key: Key<'_>,
        visit: &mut dyn FnMut(Cached<'_>),
    ) -> bool {
        let tiered = &*self.tiered;
        if !tiered.gate(hash).is_open() {
            return false;
        }
        let mut is_over = false;
        let hit = tiered.memory.get(hash, key.space.0, key.bytes, &mut |cached| {
            is_over = cached.expiry_ms != 0 && cached.expiry_ms <= now.0;
            if !is_over {
                visit(cached);
            }
        });
        if is_over {
            tiered.memory.invalidate(hash, key.space.0, key.bytes);
        }
        if !hit || is_over {
            return false;
        }
        self.counters().memory_hits.fetch_add(1, Ordering::Relaxed);
        if let Some(used) = tiered.marks.find(hash) {
            // Reading ahead is a favour: if it fails, gets will say so.
            let _read = self.flash.read_after(used);
        }
        true
    }

    fn put(&mut self, token: u64, now: Timestamp, put: Put<'_>, visit: Visit<'_>) {
        let Put { key, value, options, .. } = put;
        let tiered = &*self.tiered;
        let hash = tiered.store.hash(key);
        let stamp = tiered.gate(hash).begin();
        let bytes = (key.bytes.len() + value.len()) as u64;
        if options.pinning == Pinning::Pinned {
            // Only a remove or expiry ends it, so it is not left out either.
            tiered.admission.spend(bytes);
        } else if tiered.admission.decide(bytes, now) == Verdict::Reject {
            tiered.memory.invalidate(hash, key.space.0, key.bytes);
            let condition = options.condition;
            let kind = Kind::Rejected(condition);
            let rejected = Pending { token, hash, space: key.space, kind, stamp: 0 };
            self.pass_on(rejected, now, Operation::Remove { key, condition }, visit);
            return;
        }
        let mut stored = None;
        let pending = Pending { token, hash, space: key.space, kind: Kind::Write, stamp: 0 };
        let simple = options.condition == Condition::Always;
        if !simple || options.expiry.idle_seconds.is_some() {
            tiered.memory.invalidate(hash, key.space.0, key.bytes);
            self.pass_on(pending, now, put.operation(), visit);
            return;
        }
        let slot = self.take(pending);
        let Session { tiered, flash, pending, unused, .. } = self;
        let operation = put.operation();
        flash.submit(u64::from(slot), now, operation, &mut |answered, outcome| {
            assert_eq!(answered, u64::from(slot), "`submit` visits its own operation");
            let done = pending[slot as usize];
            unused.push(slot);
            if let Ok(Outcome::Stored { version }) = &outcome {
                stored = Some(*version);
            }
            let gate = tiered.gate(done.hash);
            match stored {
                Some(version) => {
                    let item = cached(key, value, &options, version);
                    let room = tiered.has_room(value.len());
                    tiered.memory.replace(hash, item, room, &|| gate.is_alone_since(stamp));
                }
                None => tiered.memory.invalidate(hash, key.space.0, key.bytes),
            }
            gate.end();
            visit(done.token, outcome);
        });
        if stored.is_none() && self.flash.in_flight() > 0 {
            // Pending: the entry that is there is no longer the latest.
            self.tiered.memory.invalidate(hash, key.space.0, key.bytes);
        }
    }

    #[inline]
    fn counters(&self) -> &TierCounters {
        &self.tiered.counters[self.counters]
    }

    /// Puts what was read ahead into the cache.
    fn absorb_ahead(&mut self, now: Timestamp) {
        self.flash.set_read_ahead(self.tiered.read_ahead());
        while let Some(segment) = self.flash.next_ahead() {
            self.tiered.absorb(segment, now);
        }
    }

    fn take(&mut self, pending: Pending) -> u32 {
        match self.unused.pop() {
            Some(slot) => {
                self.pending[slot as usize] = pending;
                slot
            }
            None => {
                self.pending.push(pending);
                self.pending.len() as u32 - 1
            }
        }
    }

    fn pass_on(
        &mut self,
        pending: Pending,
        now: Timestamp,
        operation: Operation<'_>,
        visit: Visit<'_>,
    ) {
        let slot = self.take(pending);
        let Session { tiered, flash, pending, unused, .. } = self;
        flash.submit(u64::from(slot), now, operation, &mut |answered, outcome| {
            assert_eq!(answered, u64::from(slot), "`submit` visits its own operation");
            let done = pending[slot as usize];
            unused.push(slot);
            finish(tiered, done, outcome, visit);
        });
    }
}

impl Drop for Session {
    /// Opens the gates of writes that nobody will visit: they are in the store by now, or never
    /// will be, and what they replace has left the cache.
    fn drop(&mut self) {
        for slot in self.unused.drain(..) {
            self.pending[slot as usize].kind = Kind::Get;
        }
        let is_write = |pending: &&Pending| !matches!(pending.kind, Kind::Get | Kind::Append);
        for pending in self.pending.iter().filter(is_write) {
            self.tiered.gate(pending.hash).end();
        }
    }
}

/// Ends an operation that flash answered: caches what a get found, opens the gate of a write.
fn finish(tiered: &Tiered, done: Pending, outcome: Result<Outcome<'_>>, visit: Visit<'_>) {
    let gate = tiered.gate(done.hash);
    match (done.kind, &outcome) {
        (Kind::Get, Ok(Outcome::Found(found))) => {
            if found.expiry.idle_seconds.is_none() && gate.is_open() {
                let item = cached_entry(done.space, found);
                tiered.memory.insert_found_if(done.hash, item, &|| gate.is_at(done.stamp));
            }
        }
        (Kind::Get | Kind::Append, _) => {}
        (Kind::Write, _) => gate.end(),
        (Kind::Rejected(condition), _) => {
            gate.end();
            visit(done.token, outcome.map(|outcome| answer_of_rejected(condition, outcome)));
            return;
        }
    }
    visit(done.token, outcome);
}

/// What the caller of a put that may not enter flash is told, once what was there is removed: as if
/// the entry had been stored and evicted at once, where the put's condition holds.
fn answer_of_rejected(condition: Condition, removed: Outcome<'_>) -> Outcome<'_> {
    match (removed, condition) {
        (Outcome::Refused { current }, _) => Outcome::Refused { current },
        (Outcome::Missing, Condition::Present | Condition::Version(_)) => {
            Outcome::Refused { current: None }
        }
        _ => Outcome::Stored { version: Version(0) },
    }
}

fn cached<'a>(key: Key<'a>, value: &'a [u8], options: &PutOptions, version: Version) -> Cached<'a> {
    Cached {
        space: key.space.0,
        key: key.bytes,
        value,
        version: version.0,
        label: options.label,
        // 0 would be no end, here as in a record.
        expiry_ms: options.expiry.at.map_or(0, |at| at.0.max(1)),
        idle_seconds: 0,
        pinned: options.pinning == Pinning::Pinned,
    }
}

pub(crate) fn cached_entry<'a>(space: SpaceId, entry: &Entry<'a>) -> Cached<'a> {
    Cached {
        space: space.0,
        key: entry.key,
        value: entry.value,
        version: entry.version.0,
        label: entry.label,
        expiry_ms: entry.expiry.at.map_or(0, |at| at.0),
        idle_seconds: 0,
        pinned: entry.pinning == Pinning::Pinned,
    }
}

fn entry<'a>(cached: &Cached<'a>) -> Entry<'a> {
    Entry {
        key: cached.key,
        value: cached.value,
        version: Version(cached.version),
        label: cached.label,
        expiry: Expiry {
            at: (cached.expiry_ms != 0).then_some(Timestamp(cached.expiry_ms)),
            idle_seconds: None,
        },
        pinning: if cached.pinned { Pinning::Pinned } else { Pinning::Evictable },
        found: None,
    }
}
