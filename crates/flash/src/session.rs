//! One thread's door to a store: operations submitted, device reads in flight, outcomes visited.
//!
//! An operation that needs the present record goes round: *locate* under the shard's lock → read
//! without it → *verify* → decide under the lock, where the index must still say the same.
//!
//! Invariants:
//! 1. Every submitted operation is visited exactly once, with an outcome or an error.
//! 2. `submit` reaps nothing: it visits the operation that it begins, or none. `poll` visits all
//!    others. So whoever submits needs no place for what it does not know.
//! 3. No lock is held while a read is in flight; `visit` may run under a shard's lock and must not
//!    call into the store.

mod discard;
mod found;
mod journal;
mod pending;
mod put_off;
mod resolve;
mod sample;
mod scan;
mod segment_prefetch;
mod sync_point;
mod together;
mod touch;
mod unverified;

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use entresol_device::{Completion, Queue, QueueOptions};

use crate::engine::{Engine, Put, SESSION_COUNTERS, SessionCounters, Waits, wait_for};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Manifest, RecordKind};
use crate::log::{Goal, Stamp};
use crate::options::WriteMode;
use crate::record::{check_space, hash_key};
use crate::shard::{Known, Located, Mark, PutRequest, Written};
use crate::types::{
    Condition, Durability, JournalSequence, KEY_BYTES_MAX, Key, Operation, Outcome, PutOptions,
    Timestamp, VALUE_BYTES_MAX, Version,
};
use found::{PutOver, Removed};
use journal::Appends;
use pending::{Pending, PendingKind};
pub use sample::{SamplePlace, Sampled};
pub use scan::{EntryName, NoteEntry, VisitEntry};
use segment_prefetch::Ahead;
pub use segment_prefetch::{AheadEntry, AheadSegment, ReadAhead, SegmentUse};
pub use sync_point::SyncPoint;
use together::Together;

/// Called with the token and the outcome of each finished operation.
pub type Visit<'v> = &'v mut dyn FnMut(u64, Result<Outcome<'_>>);

/// How a session is set up.
#[derive(Debug, Clone, Copy)]
pub struct SessionOptions {
    /// Most device reads in flight, 1 to 4096. Operations past it wait in memory.
    pub depth: usize,
    /// Size of the registered read buffers, bytes.
    pub read_buffer_bytes: usize,
    /// Which threads use it.
    pub users: SessionUsers,
}

/// Which threads use a session, never two at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUsers {
    /// Several by turns, whichever holds it.
    Several,
    /// One alone, not necessarily the one that opened it, which the device need not interrupt to
    /// complete reads. Another may have to wait until the first one does a system call or is
    /// interrupted.
    One,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions { depth: 256, read_buffer_bytes: 8 << 10, users: SessionUsers::Several }
    }
}

/// One thread's operations on a store. Not shared; the store behind it is.
pub struct Session {
    engine: Arc<Engine>,
    /// Which of the store's counters it adds to.
    counters: usize,
    queue: Box<dyn Queue>,
    completions: Vec<Completion>,
    pending: Vec<Pending>,
    unused: Vec<u32>,
    /// Pending operations whose read found the queue full.
    backlog: VecDeque<u32>,
    waiting: Vec<Waiting>,
    /// Pending writes that the device has no buffer or room for, in their order.
    put_off: VecDeque<u32>,
    put_off_bytes: usize,
    /// The same of what is for the journal.
    appends: Appends,
    /// The operation that is being submitted: no other is visited meanwhile.
    submitted: Option<u64>,
    waits: Waits,
    scratch: Vec<u8>,
    in_flight: usize,
    /// Of shards that are waited for.
    descriptors: Vec<RawFd>,
    scan_queue: Option<Box<dyn Queue>>,
    ahead: Ahead,
    together: Together,
    /// Bytes of records that operations wait for.
    reading_bytes: u64,
    /// Most bytes that a get that begins may take.
    entry_bytes_max: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

/// A write that waits for its durability.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    token: u64,
    shard: u16,
    stamp: Stamp,
    goal: Goal,
    outcome: Ack,
}

#[derive(Debug, Clone, Copy)]
enum Ack {
    Stored(Version),
    Removed(Version),
    Touched(Version),
    Journaled {
        sequence: JournalSequence,
        head: JournalSequence,
    },
    /// Of a key that had no entry, and whose evicted one must not come back.
    Missing,
}

impl Ack {
    fn outcome(self) -> Outcome<'static> {
        match self {
            Ack::Stored(version) => Outcome::Stored { version },
            Ack::Removed(version) => Outcome::Removed { version },
            Ack::Touched(version) => Outcome::Touched { version },
            Ack::Journaled { sequence, head } => Outcome::Journaled { sequence, head },
            Ack::Missing => Outcome::Missing,
        }
    }
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, options: SessionOptions) -> Result<Session> {
        let of_queue =
            QueueOptions { depth: options.depth, buffer_bytes: options.read_buffer_bytes };
        let queue = match options.users {
            SessionUsers::Several => engine.device.queue(of_queue)?,
            SessionUsers::One => engine.device.queue_of_thread(of_queue)?,
        };
        let counters = engine.sessions.fetch_add(1, Ordering::Relaxed) % SESSION_COUNTERS;
        Ok(Session {
            engine,
            counters,
            queue,
            completions: Vec::with_capacity(options.depth),
            pending: Vec::new(),
            unused: Vec::new(),
            backlog: VecDeque::new(),
            waiting: Vec::new(),
            put_off: VecDeque::new(),
            put_off_bytes: 0,
            appends: Appends::default(),
            submitted: None,
            waits: Waits::OF_FIRST_TRY,
            scratch: Vec::new(),
            in_flight: 0,
            descriptors: Vec::new(),
            scan_queue: None,
            ahead: Ahead::default(),
            together: Together::default(),
            reading_bytes: 0,
            entry_bytes_max: u64::MAX,
        })
    }

    /// Begins `operation`. `visit` is called before return where the answer is at hand, else from a
    /// later [`Session::poll`]. It is never called for another operation: `submit` does not reap.
    pub fn submit(
        &mut self,
        token: u64,
        now: Timestamp,
        operation: Operation<'_>,
        visit: Visit<'_>,
    ) {
        self.in_flight += 1;
        self.submitted = Some(token);
        if let Err(error) = self.begin(token, now, operation, visit) {
            self.finish(token, Err(error), visit);
        }
        self.submitted = None;
    }

    /// Gets that begin from now on answer [`Outcome::Larger`] where the entry takes more than so
    /// many bytes. Where it is not compressed, they do so before they read its value.
    #[inline]
    pub fn set_entry_bytes_max(&mut self, bytes: u64) {
        self.entry_bytes_max = bytes;
    }

    /// Most bytes that a get that begins may take.
    #[inline]
    pub fn entry_bytes_max(&self) -> u64 {
        self.entry_bytes_max
    }

    /// Bytes that a get of `key` takes, by the index alone: 0 where it has no entry. Compressed
    /// ones take more.
    pub fn measure(&self, key: Key<'_>) -> Result<u64> {
        self.check_key(key)?;
        let hash = hash_key(self.engine.hash_seed, key);
        let mut shard = self.engine.shards[self.engine.shard_of(hash)].lock();
        Ok(match shard.locate(key, hash, &[])? {
            Located::Absent => 0,
            Located::Read(plan) => plan.bytes,
            Located::Memory(record, _) if record.header.flags.kind == RecordKind::Manifest => {
                Manifest::decode(record.value).map_or(0, |manifest| u64::from(manifest.raw_bytes))
            }
            Located::Memory(record, _) => record.value.len() as u64,
        })
    }

    /// Starts loading what an operation on `key` will touch first in the index. Worth it for
    /// batches, some 8 operations ahead.
    pub fn prefetch(&self, key: Key<'_>) {
        self.prefetch_hash(hash_key(self.engine.hash_seed, key));
    }

    /// As `prefetch`, for the key whose hash by `Store::hash` this is.
    #[inline]
    pub fn prefetch_hash(&self, hash: u128) {
        // A racy look at a shard is not possible without its lock; an uncontended one is cheap.
        if let Some(shard) = self.engine.shards[self.engine.shard_of(hash)].try_lock() {
            shard.prefetch(hash);
        }
    }

    /// Hands gathered reads to the device, and begins a commit round where writes wait for one.
    pub fn flush(&mut self) -> Result<()> {
        self.hand_over()?;
        self.queue.submit()?;
        self.begin_rounds()
    }

    /// Waits until at least `wait_for` operations (0: none) have finished; visits all finished.
    /// Returns how many were visited.
    pub fn poll(&mut self, wait_for: usize, now: Timestamp, visit: Visit<'_>) -> Result<usize> {
        let before = self.in_flight;
        let wait_for = wait_for.min(before);
        self.begin_rounds()?;
        loop {
            self.retry_put_off(visit);
            self.retry_appends(visit);
            let missing = wait_for.saturating_sub(before - self.in_flight);
            // Where nothing but reads is awaited, one call hands them over and waits.
            let reads = if self.waiting.is_empty() { missing } else { 0 };
            self.reap_reads(reads, now, visit)?;
            self.reap_commits(false, visit)?;
            let done = before - self.in_flight;
            if done >= wait_for {
                return Ok(done);
            }
            if self.queue.in_flight() > 0 {
                self.reap_reads(wait_for - done, now, visit)?;
            } else if !self.waiting.is_empty() {
                self.await_commits(visit)?;
            } else if !(self.put_off.is_empty() && self.appends.is_empty()) {
                self.await_buffers()?;
            }
        }
    }

    /// Bytes of writes that wait until the device has a buffer or room for them: it answers no
    /// more, or is far behind. Whoever can do so should begin no more of them.
    pub fn put_off_bytes(&self) -> usize {
        self.put_off_bytes + self.appends.bytes()
    }

    /// Operations begun and not yet visited.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Bytes of the records that operations begun wait for: memory that they are about to take.
    pub fn reading_bytes(&self) -> u64 {
        self.reading_bytes
    }

    /// Descriptors that poll readable when `poll(0, …)` may have something to visit: this session's
    /// reads, and the shards' writes.
    pub fn poll_fds(&self) -> Vec<RawFd> {
        let shards = self.engine.shards.iter().filter_map(|shard| shard.lock().log.poll_fd());
        self.queue.poll_fd().into_iter().chain(shards).collect()
    }

    /// Submits one operation and waits for it. Others may be visited meanwhile only by later polls.
    pub fn run(
        &mut self,
        now: Timestamp,
        operation: Operation<'_>,
        visit: &mut dyn FnMut(Outcome<'_>),
    ) -> Result<()> {
        if self.in_flight != 0 {
            let detail = "a blocking operation needs a session with nothing in flight";
            return Err(Error::new(ErrorKind::Busy, detail));
        }
        let mut ended = Ok(());
        let mut once = |_: u64, outcome: Result<Outcome<'_>>| match outcome {
            Ok(outcome) => visit(outcome),
            Err(error) => ended = Err(error),
        };
        self.submit(0, now, operation, &mut once);
        while self.in_flight > 0 {
            self.poll(1, now, &mut once)?;
        }
        ended
    }

    fn begin(
        &mut self,
        token: u64,
        now: Timestamp,
        operation: Operation<'_>,
        visit: Visit<'_>,
    ) -> Result<()> {
        let (key, value, kind) = match operation {
            Operation::Get { key } => return self.begin_get(token, now, key, visit),
            Operation::Put { key, value, options } if options.condition == Condition::Always => {
                return self.begin_put(token, now, (key, value, options), visit);
            }
            Operation::Replace { key, value, options, found }
                if options.condition == Condition::Always =>
            {
                let put = PutOver { key, value, options, found };
                return self.begin_replace(token, now, put, visit);
            }
            Operation::RemoveFound { key, found } => {
                return self.begin_remove_found(token, now, Removed { key, found }, visit);
            }
            Operation::Discard { key } => return self.begin_discard(token, now, key, visit),
            Operation::Put { key, value, options }
            | Operation::Replace { key, value, options, .. } => {
                (key, value, PendingKind::Put(options))
            }
            Operation::Remove { key, condition } => (key, &[][..], PendingKind::Remove(condition)),
            Operation::Touch { key, expiry, condition } => {
                (key, &[][..], PendingKind::Touch(expiry, condition))
            }
        };
        self.check_key(key)?;
        check_value(value)?;
        let slot = self.take_pending(token, now, key, kind);
        self.pending[slot as usize].value.extend_from_slice(value);
        self.resolve(slot, visit)
    }

    fn begin_put(
        &mut self,
        token: u64,
        now: Timestamp,
        (key, value, options): (Key<'_>, &[u8], PutOptions),
        visit: Visit<'_>,
    ) -> Result<()> {
        self.check_key(key)?;
        check_value(value)?;
        let hash = hash_key(self.engine.hash_seed, key);
        let request =
            PutRequest { key, hash, value, options, now, version: None, mark: Mark::Full };
        match self.engine.put(request, Known::Nothing, self.waits)? {
            Put::Stored(written) => {
                self.acknowledge(
                    (token, hash),
                    written,
                    (options.durability, Ack::Stored(written.version)),
                    visit,
                );
                Ok(())
            }
            Put::Unresolved => {
                let slot = self.take_pending(token, now, key, PendingKind::Put(options));
                self.pending[slot as usize].value.extend_from_slice(value);
                self.resolve(slot, visit)
            }
            Put::Postponed => {
                let slot = self.take_pending(token, now, key, PendingKind::Put(options));
                self.pending[slot as usize].value.extend_from_slice(value);
                self.put_off(slot);
                Ok(())
            }
        }
    }

    fn check_key(&self, key: Key<'_>) -> Result<()> {
        if key.bytes.is_empty() || key.bytes.len() > KEY_BYTES_MAX {
            let detail =
                format!("a key of {} bytes; 1 to {KEY_BYTES_MAX} expected", key.bytes.len());
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        check_space(key.space)
    }

    /// Answers the caller of a write, now or once its durability is reached.
    fn acknowledge(
        &mut self,
        (token, hash): (u64, u128),
        written: Written,
        (durability, ack): (Option<Durability>, Ack),
        visit: Visit<'_>,
    ) {
        let goal = goal_of(durability, &self.engine);
        let (shard, stamp) = (self.engine.shard_of(hash), written.stamp);
        match (goal, self.engine.options.write_mode) {
            (Some(goal), WriteMode::Through) => {
                let shard = shard as u16;
                self.waiting.push(Waiting { token, shard, stamp, goal, outcome: ack });
                return;
            }
            // The store's own level has a period.
            (Some(_), WriteMode::Behind) if durability.is_some() => {
                self.engine.shards[shard].lock().log.owe(stamp);
            }
            _ => {}
        }
        self.finish(token, Ok(ack.outcome()), visit);
    }

    fn finish(&mut self, token: u64, outcome: Result<Outcome<'_>>, visit: Visit<'_>) {
        assert!(self.submitted.is_none_or(|own| own == token), "`submit` visits its own operation");
        self.in_flight -= 1;
        if outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt) {
            self.count(|c| &c.damaged);
        }
        visit(token, outcome);
    }

    fn begin_rounds(&mut self) -> Result<()> {
        for number in 0..self.engine.shards.len() {
            let mut wanted = None;
            for waiting in self.waiting.iter().filter(|w| usize::from(w.shard) == number) {
                wanted = wanted.max(Some(waiting.goal));
            }
            if let Some(goal) = wanted {
                // A poisoned log is reported to each waiting write by `reap_commits`.
                let _poisoned = self.engine.gather(number).log.begin_round(goal);
            }
        }
        Ok(())
    }

    /// Waits until the device may have done something for the writes that wait: without a shard's
    /// lock, where it says so.
    fn await_commits(&mut self, visit: Visit<'_>) -> Result<()> {
        let mut descriptors = std::mem::take(&mut self.descriptors);
        descriptors.clear();
        let mut silent = false;
        for number in 0..self.engine.shards.len() {
            if self.waiting.iter().any(|waiting| usize::from(waiting.shard) == number) {
                let descriptor = self.engine.shards[number].lock().log.poll_fd();
                silent |= descriptor.is_none();
                descriptors.extend(descriptor);
            }
        }
        let waited = if silent { self.reap_commits(true, visit) } else { wait_for(&descriptors) };
        self.descriptors = descriptors;
        waited
    }

    /// Visits writes that reached their durability; with `wait`, blocks for one device completion.
    fn reap_commits(&mut self, wait: bool, visit: Visit<'_>) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        for number in 0..self.engine.shards.len() as u16 {
            if !self.waiting.iter().any(|w| w.shard == number) {
                continue;
            }
            let mut shard = self.engine.gather(usize::from(number));
            let goal = self.waiting.iter().filter(|w| w.shard == number).map(|w| w.goal).max();
            let log = &mut shard.log;
            let failed = log
                .poll(usize::from(wait))
                .and_then(|()| log.check_poisoned())
                .and_then(|()| log.begin_round(goal.unwrap_or(Goal::Flushed)))
                .err();
            let (durable, flushed) = (log.durable(), log.flushed());
            drop(shard);
            let mut at = 0;
            while at < self.waiting.len() {
                let waiting = self.waiting[at];
                let reached = if waiting.goal == Goal::Synced { durable } else { flushed };
                if waiting.shard != number || (reached < waiting.stamp && failed.is_none()) {
                    at += 1;
                    continue;
                }
                self.waiting.swap_remove(at);
                let outcome = if reached >= waiting.stamp {
                    Ok(waiting.outcome.outcome())
                } else {
                    let detail = failed.as_ref().map_or(String::new(), ToString::to_string);
                    Err(Error::new(ErrorKind::Poisoned, detail))
                };
                self.finish(waiting.token, outcome, visit);
            }
        }
        Ok(())
    }

    fn reap_reads(&mut self, wait_for: usize, now: Timestamp, visit: Visit<'_>) -> Result<()> {
        if self.queue.in_flight() == 0 && self.backlog.is_empty() {
            return Ok(());
        }
        let mut completions = std::mem::take(&mut self.completions);
        let reaped = self.queue.reap(wait_for.min(self.queue.in_flight()), &mut completions);
        let mut reads = completions.drain(..).peekable();
        while let Some(completion) = reads.next() {
            if let Some(next) = reads.peek().and_then(|next| next.buffer.as_ref()) {
                next.prefetch();
            }
            if Session::is_ahead(&completion) {
                self.finish_ahead(completion);
            } else if Session::is_together(&completion) {
                self.finish_together(completion, now, visit);
            } else {
                self.finish_read(completion, now, visit);
            }
        }
        drop(reads);
        self.completions = completions;
        self.hand_over()?;
        self.queue.submit()?;
        Ok(reaped?)
    }

    /// Whether a put without a condition is answered as soon as it is appended.
    pub fn answers_at_once(&self, options: &PutOptions) -> bool {
        self.engine.options.write_mode == WriteMode::Behind
            || goal_of(options.durability, &self.engine).is_none()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn count(&self, which: fn(&SessionCounters) -> &std::sync::atomic::AtomicU64) {
        which(&self.engine.session_counters[self.counters]).fetch_add(1, Ordering::Relaxed);
    }
}

/// What a write waits for: that of the store's own durability, or of the one asked for. Where the
/// store does not keep what that keeps, the next level that it does.
fn goal_of(asked: Option<Durability>, engine: &Engine) -> Option<Goal> {
    let own = engine.options.durability;
    match asked.unwrap_or(own) {
        Durability::Synced => Some(Goal::Synced),
        Durability::Flushed => Some(Goal::Flushed),
        Durability::Memory => None,
        // The device keeps what the buffers cannot for now.
        _ if engine.buffers.are_lost() && own != Durability::Memory => Some(Goal::Flushed),
        _ if asked.is_none() => None,
        Durability::Process if engine.buffers.outlive() => None,
        Durability::Process => Some(Goal::Flushed),
        Durability::Periodic(period) => match own {
            Durability::Periodic(own) if own <= period => None,
            _ => Some(Goal::Synced),
        },
    }
}

fn check_value(value: &[u8]) -> Result<()> {
    if value.len() > VALUE_BYTES_MAX {
        let detail =
            format!("a value of {} bytes; at most {VALUE_BYTES_MAX} expected", value.len());
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    Ok(())
}
