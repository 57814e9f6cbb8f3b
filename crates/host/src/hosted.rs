//! A store with what it needs to live in a process that is not made around it: sessions that the
//! process's threads take turns with, a thread for jobs, a thread for background work, and the
//! answers that wait to be reaped.
//!
//! Invariants:
//! 1. Every request and job has exactly one answer: at once, or reaped.
//! 2. No call but `reap`, `close`, `open`, `count` and a read that is told to waits for the device:
//!    a write that would have to make room first becomes a job.
//! 3. A write never overtakes a job that changes entries: while there are any it becomes one.
//!
//! Lock order: a lane, then the outbox, which is a leaf. `visit` runs under a lane's lock.

mod answer;
mod bell;
mod failure;
mod jobs;
mod operation;
mod options;
mod outlet;
mod pages;
mod patience;
mod roster;
mod scan;
mod segments;
mod tables;
mod waiters;
mod workbench;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use entresol_device::PendingIo;
use entresol_tier::{
    Error, Maintenance, Operation, Outcome, SegmentUse, Session, SessionOptions, SpaceId,
    Statistics, Tiered, Timestamp,
};
use entresol_tree::{Progress, TableFigures, Tree, TreeStatistics};
use mio::{Events, Poll};
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::clock::ForeignClock;
use crate::figures::FIGURES_WAIT;
use crate::stall_watch::{LOOK_INTERVAL, PendingAges};
use crate::upkeep::{Upkeep, keep};
use bell::signals;
use failure::ended;
use jobs::{Job, JobQueue, Task};
use operation::OwnedOperation;
use outlet::Outlet;
use roster::Roster;
use tables::Tables;
use waiters::Waiters;
use workbench::Workbench;

pub use answer::{Answer, Extent, Given, Outbox, PageEnd};
pub use failure::Failure;
pub use operation::{Request, Waiter};
pub use options::HostedOptions;
pub use patience::run_on_tables;
pub use scan::Scan;

/// Sessions that callers' threads take turns with, at most.
const LANES_MAX: usize = 8;
/// Device reads in flight of each.
const DEPTH: usize = 128;
/// The same of a caller that waits: its own, and what is read ahead of it.
const WAITERS_DEPTH: usize = 4;
/// How long the reaper waits where nothing is in flight.
const IDLE: Duration = Duration::from_secs(1);
/// How long it waits where something is: whoever misses a signal is not lost for longer.
const IN_FLIGHT: Duration = Duration::from_millis(1);
/// Bytes of a scan's page that are aimed at.
const PAGE_BYTES: u64 = 1 << 20;
/// Entries that a scan reads in one step, at most.
const STEP_MAX: u64 = 256;

/// An open store, with answers in the form that `O` gives them.
#[derive(Debug)]
pub struct HostedStore<O> {
    lanes: Vec<Mutex<Option<Session>>>,
    waiters: Waiters,
    tables: Tables,
    roster: Roster,
    tiered: RwLock<Option<Arc<Tiered>>>,
    outlet: Outlet<O>,
    reaper: Mutex<Reaper<O>>,
    /// Whether the device says when reads are done; else it works when it is polled.
    signalled: bool,
    /// Whether a write may have to make room itself.
    short: AtomicBool,
    jobs: JobQueue,
    clock: ForeignClock,
    pending: PendingAges,
    threads: Mutex<Vec<JoinHandle<()>>>,
    closing: AtomicBool,
    closed: AtomicBool,
}

/// What the one who reaps has.
#[derive(Debug)]
struct Reaper<O> {
    /// `None` once the store is closed and nobody waits any more.
    poll: Option<Poll>,
    events: Events,
    given_out: O,
}

/// What there is to know of a store.
#[derive(Debug)]
pub struct Figures {
    /// Of the store and its memory.
    pub statistics: Statistics,
    /// The oldest request that the device has not answered.
    pub oldest_pending: Option<PendingIo>,
    /// Of the ordered tables, if they are open.
    pub tree: Option<TreeStatistics>,
}

impl<O: Outbox> HostedStore<O> {
    /// Opens the store that `options` name, or makes it.
    ///
    /// # Errors
    /// The store's own, and the system has no thread or descriptor left.
    pub fn open(options: &HostedOptions) -> Result<Arc<HostedStore<O>>, Failure> {
        let clock = ForeignClock::default();
        let tiered = options.open(clock.read(0))?;
        HostedStore::over(tiered, Tables::new(options.fitted_tree()), clock)
    }

    fn over(
        tiered: Arc<Tiered>,
        tables: Tables,
        clock: ForeignClock,
    ) -> Result<Arc<HostedStore<O>>, Failure> {
        let session = SessionOptions { depth: DEPTH, ..SessionOptions::default() };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let sessions: Result<Vec<Session>, Error> =
            (0..processors.min(LANES_MAX)).map(|_| tiered.session(session)).collect();
        let (sessions, of_jobs) = (sessions?, tiered.session(session)?);
        let (poll, bell, signalled) = signals(&sessions)?;
        let reaper =
            Reaper { poll: Some(poll), events: Events::with_capacity(64), given_out: O::default() };
        let store = Arc::new(HostedStore {
            lanes: sessions.into_iter().map(|session| Mutex::new(Some(session))).collect(),
            waiters: Waiters::default(),
            tables,
            roster: Roster::default(),
            tiered: RwLock::new(Some(tiered)),
            outlet: Outlet::new(bell),
            reaper: Mutex::new(reaper),
            signalled,
            short: AtomicBool::new(false),
            jobs: JobQueue::default(),
            clock,
            pending: PendingAges::default(),
            threads: Mutex::default(),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let started = store.start(of_jobs);
        if let Err(failure) = started {
            store.close()?;
            return Err(failure);
        }
        Ok(store)
    }

    /// Begins a request. `place` takes its answer if there is one at once and room for it, and says
    /// where it is then. A lock may be held meanwhile.
    pub fn begin(
        &self,
        request: &Request<'_>,
        place: &mut impl FnMut(&Answer<'_>) -> Given,
    ) -> Given {
        let now = self.now(request.now_ms);
        let (token, operation) = (request.token, request.operation);
        let queues = || self.short.load(Ordering::Relaxed) || self.jobs.has_changes();
        if is_write(&operation) && queues() {
            let task = Task::Operation(OwnedOperation::of(&operation), now);
            return match self.jobs.push(Job { token, task }) {
                Ok(()) => Given::Reaped,
                Err(failure) => self.refuse(token, &failure, place),
            };
        }
        if request.waiter == Waiter::Caller
            && !is_write(&operation)
            && let Some(given) = self.run(request, now, place)
        {
            return given;
        }
        let mut lane = self.lane();
        let Some(session) = lane.as_mut() else {
            drop(lane);
            return self.refuse(token, &Failure::closed(), place);
        };
        let mut finished = false;
        let mut given = Given::Reaped;
        session.submit(token, now, operation, &mut |_, outcome| {
            // Done already: one that has no room for its outcome is told of by whoever reaps.
            self.note_put(&operation, None);
            finished = true;
            given = self.give(token, outcome, place);
        });
        if !finished {
            self.note_put(&operation, Some(token));
        }
        // What was found in memory may have a segment read that nobody waits for.
        let ahead = session.is_reading_ahead();
        drop(lane);
        if given == Given::Reaped || ahead {
            // The one who reaps hands it to the device, with what others begin meanwhile: the
            // kernel wakes the thread that submitted a read when it is done.
            self.outlet.wake();
        }
        given
    }

    /// Does a read in the caller's thread; where its answer is. None if that is not possible now.
    fn run(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        place: &mut impl FnMut(&Answer<'_>) -> Given,
    ) -> Option<Given> {
        let mut taken = self.waiters.take(|| {
            let tiered = self.tiered.read().clone();
            let depth = SessionOptions { depth: WAITERS_DEPTH, ..SessionOptions::default() };
            let mut session = tiered.ok_or_else(ended)?.session(depth)?;
            session.leave_read_ahead();
            Ok(session)
        })?;
        let session = taken.session();
        let mut given = Given::Reaped;
        let mut tell = |token: u64, outcome: Result<Outcome<'_>, Error>| {
            given = self.give(token, outcome, place);
            if given == Given::Reaped {
                self.outlet.wake();
            }
        };
        session.submit(request.token, now, request.operation, &mut tell);
        while session.in_flight() > 0 {
            if let Err(error) = session.poll(1, now, &mut tell) {
                tell(request.token, Err(error));
                break;
            }
        }
        if let Some(wanted) = session.wanted_ahead() {
            self.read_ahead(wanted);
        }
        Some(given)
    }

    /// Reads a segment ahead for callers that wait, whose sessions are idle between their reads.
    fn read_ahead(&self, wanted: SegmentUse) {
        if let Some(session) = self.lane().as_mut() {
            // A favour: if it fails, reads will say so.
            let _begun = session.read_ahead_for(wanted);
        }
        self.outlet.wake();
    }

    /// Begins a sync, whose answer is reaped unless it is refused here: the store may be closed,
    /// and nobody reaps any more.
    ///
    /// # Errors
    /// Too much waits, or the store is closed.
    pub fn sync(&self, token: u64) -> Result<(), Failure> {
        self.jobs.push(Job { token, task: Task::Sync })
    }

    /// Begins to drop a space, or one partition of it; as of [`HostedStore::sync`].
    ///
    /// # Errors
    /// Too much waits, or the store is closed.
    pub fn drop_entries(
        &self,
        token: u64,
        space: SpaceId,
        partition: Option<u16>,
    ) -> Result<(), Failure> {
        self.jobs.push(Job { token, task: Task::Drop(space, partition) })
    }

    /// A scan of those `partitions` of a space, or of all, in pages of a size that suits memory.
    pub fn scan(&self, space: SpaceId, partitions: Option<HashSet<u16>>) -> Scan {
        let figures = self.tiered().map(|tiered| tiered.statistics_within(FIGURES_WAIT));
        let figures = figures.unwrap_or_default();
        let mean = figures.flash_live_bytes / figures.entries.max(1);
        let step = (PAGE_BYTES / mean.max(1)).clamp(1, STEP_MAX) as usize;
        Scan::new(step, space, partitions)
    }

    /// Begins to read the next page of a scan, about `limit` entries, as of a moment of the
    /// caller's clock (0: now). One page of a scan at a time; as of [`HostedStore::sync`].
    ///
    /// # Errors
    /// Too much waits, or the store is closed.
    pub fn next_page(
        &self,
        token: u64,
        scan: &Arc<Scan>,
        limit: usize,
        now_ms: i64,
    ) -> Result<(), Failure> {
        let task = Task::Scan { scan: Arc::clone(scan), limit, now: self.now(now_ms) };
        self.jobs.push(Job { token, task })
    }

    /// Waits for answers, takes all there are and shows them; none once the store is closed. They
    /// stay where they are until the next call.
    ///
    /// # Errors
    /// The system cannot wait for the device.
    pub fn reap<T>(&self, see: impl FnOnce(&O) -> T) -> Result<T, Failure> {
        let mut reaper = self.reaper.lock();
        let Reaper { poll, events, given_out } = &mut *reaper;
        loop {
            self.outlet.rest();
            let closed = self.closed.load(Ordering::Acquire);
            let in_flight = self.poll_lanes();
            let answers = self.outlet.take(given_out);
            if answers > 0 || closed {
                self.outlet.rise();
                if answers == 0 {
                    // Whoever still has the closed store must not keep descriptors.
                    *poll = None;
                    self.outlet.end();
                }
                return Ok(see(given_out));
            }
            let wait = match (in_flight, self.signalled) {
                (0, _) => IDLE,
                (_, true) => IN_FLIGHT,
                (_, false) => Duration::ZERO,
            };
            let Some(poll) = poll.as_mut() else { continue };
            match poll.poll(events, Some(wait)) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    return Err(Failure::system("cannot wait for the device", error));
                }
                _ => {}
            }
        }
    }

    /// Entries of a space, or of one partition of it.
    ///
    /// # Errors
    /// The store is closed.
    pub fn count(&self, space: SpaceId, partition: Option<u16>) -> Result<u64, Failure> {
        let tiered = self.tiered()?;
        Ok(match partition {
            Some(partition) => tiered.store().count_partition(space, partition),
            None => tiered.count(space),
        })
    }

    /// Figures since the store was opened; they do not wait for the device.
    ///
    /// # Errors
    /// The store is closed.
    pub fn figures(&self) -> Result<Figures, Failure> {
        let tiered = self.tiered()?;
        let statistics = tiered.statistics_within(FIGURES_WAIT);
        let oldest_pending = self.pending.oldest(&tiered);
        Ok(Figures { statistics, oldest_pending, tree: self.tables.statistics() })
    }

    /// Figures of each ordered table in memory; there is none before somebody asks for one.
    pub fn table_figures(&self) -> Vec<TableFigures> {
        self.tables.opened().map(|tree| tree.table_figures()).unwrap_or_default()
    }

    /// The store's ordered tables, opened if nobody has asked for them before. They are maintained
    /// with the store. A session of theirs must have ended, or not be used any more, when the
    /// store is closed; [`HostedStore::with_tables`] sees to that.
    ///
    /// # Errors
    /// The store is closed or has no journal, or the journal is damaged.
    pub fn tree(&self) -> Result<Arc<Tree>, Failure> {
        match self.tables.opened() {
            Some(tree) => Ok(tree),
            None => self.tables.open(&self.tiered()?, self.now(0)),
        }
    }

    /// Has `work` done in the caller's thread, with a session of the ordered tables to itself. It
    /// leaves nothing in flight, and asks for no other session.
    ///
    /// # Errors
    /// As of [`HostedStore::tree`].
    pub fn with_tables<T>(
        &self,
        work: impl FnOnce(&mut entresol_tree::Session) -> T,
    ) -> Result<T, Failure> {
        self.tables.with_session(&*self.tree()?, work)
    }

    /// Merges changes of ordered tables in the caller's thread, or waits a moment for the device
    /// where that has to answer first, or for another caller who merges: for whoever was told
    /// `Busy` or `Full` by a write, and tries again afterwards.
    ///
    /// # Errors
    /// What stands in the way of merges.
    pub fn relieve_tables(&self) -> Result<(), Failure> {
        Ok(self.tables.relieve(self.now(0))?)
    }

    /// Finishes what was begun, syncs, and makes the next open fast.
    ///
    /// # Errors
    /// The store's own.
    pub fn close(&self) -> Result<(), Failure> {
        if self.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.jobs.end();
        for thread in self.threads.lock().drain(..) {
            thread.thread().unpark();
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        let finished = self.finish_lanes();
        self.waiters.close();
        let settled = self.tables.close(self.now(0));
        let tiered = self.tiered.write().take();
        let closed = tiered.map_or(Ok(()), |tiered| tiered.close(self.now(0)));
        self.closed.store(true, Ordering::Release);
        self.outlet.ring();
        finished.and(closed).map_err(Failure::from).and(settled)
    }

    fn start(self: &Arc<HostedStore<O>>, session: Session) -> Result<(), Failure> {
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_string()).spawn(body);
            thread.map_err(|error| Failure::system("cannot start a thread of a store", error))
        };
        let mut threads = self.threads.lock();
        let store = Arc::clone(self);
        let tiered = self.tiered()?;
        let work = move || {
            let HostedStore { outlet, roster, jobs, .. } = &*store;
            Workbench { tiered: &tiered, session, outlet, roster }.work(jobs);
        };
        threads.push(spawn("store jobs", Box::new(work))?);
        let store = Arc::clone(self);
        let tiered = self.tiered()?;
        threads.push(spawn(
            "store upkeep",
            Box::new(move || keep(&tiered, &mut StoreUpkeep { store, tiered: &tiered })),
        )?);
        let store = Arc::clone(self);
        let tiered = self.tiered()?;
        threads.push(spawn("store watch", Box::new(move || store.watch(&tiered)))?);
        Ok(())
    }

    /// Looks at the device until the store is closed: how old a request is, is known from the
    /// first look at it on, and all other threads may wait for the device.
    fn watch(&self, tiered: &Tiered) {
        while !self.closing.load(Ordering::Acquire) {
            self.pending.oldest(tiered);
            std::thread::park_timeout(LOOK_INTERVAL);
        }
    }

    /// Puts an outcome to its place, or to those that are reaped.
    fn give(
        &self,
        token: u64,
        outcome: Result<Outcome<'_>, Error>,
        place: &mut impl FnMut(&Answer<'_>) -> Given,
    ) -> Given {
        answer::with_answer(outcome, |answer| {
            let given = place(answer);
            if given == Given::Reaped {
                self.outlet.add(token, answer);
            }
            given
        })
    }

    /// Answers a request with a failure.
    fn refuse(
        &self,
        token: u64,
        failure: &Failure,
        place: &mut impl FnMut(&Answer<'_>) -> Given,
    ) -> Given {
        let given = place(&Answer::Failed(failure));
        if given == Given::Reaped {
            self.outlet.fail(token, failure);
        }
        given
    }

    /// Notes a put for scans that are yet to come, before it is answered; with a token where it
    /// is answered later.
    fn note_put(&self, operation: &Operation<'_>, token: Option<u64>) {
        if let Operation::Put { key, .. } = operation {
            let name = || self.tiered().ok().map(|tiered| tiered.store().name(*key));
            self.roster.wrote(*key, token, &name);
        }
    }

    /// The first lane that is free, so that a caller alone keeps all in one; else the first.
    fn lane(&self) -> MutexGuard<'_, Option<Session>> {
        self.lanes.iter().find_map(Mutex::try_lock).unwrap_or_else(|| self.lanes[0].lock())
    }

    /// Takes the outcomes that are ready; how many operations are in flight still.
    fn poll_lanes(&self) -> usize {
        let mut in_flight = 0;
        for lane in &self.lanes {
            let mut lane = lane.lock();
            let busy =
                |session: &&mut Session| session.in_flight() > 0 || session.is_reading_ahead();
            let Some(session) = lane.as_mut().filter(busy) else { continue };
            let now = self.now(0);
            // A device that cannot be asked now is asked again.
            let _polled = session.poll(0, now, &mut |token, outcome| {
                self.roster.answered(token);
                self.outlet.add_outcome(token, outcome);
            });
            // What cannot be handed to the device now is by the next poll.
            let _flushed = session.flush();
            in_flight += session.in_flight() + usize::from(session.is_reading_ahead());
        }
        in_flight
    }

    /// Waits for all that is in flight and ends the sessions.
    fn finish_lanes(&self) -> Result<(), Error> {
        let mut finished = Ok(());
        for lane in &self.lanes {
            let mut lane = lane.lock();
            let Some(mut session) = lane.take() else { continue };
            while session.in_flight() > 0 {
                let polled = session.poll(1, self.now(0), &mut |token, outcome| {
                    self.outlet.add_outcome(token, outcome);
                });
                if let Err(error) = polled {
                    // The other lanes have outcomes of their own.
                    finished = finished.and(Err(error));
                    break;
                }
            }
        }
        finished
    }

    fn tiered(&self) -> Result<Arc<Tiered>, Failure> {
        self.tiered.read().clone().ok_or_else(Failure::closed)
    }

    /// The moment that a caller means: 0 is now.
    fn now(&self, given_ms: i64) -> Timestamp {
        self.clock.read(given_ms)
    }
}

/// The upkeep of an open store.
struct StoreUpkeep<'a, O> {
    store: Arc<HostedStore<O>>,
    tiered: &'a Tiered,
}

impl<O: Outbox> Upkeep for StoreUpkeep<'_, O> {
    fn is_over(&self) -> bool {
        self.store.closing.load(Ordering::Acquire)
    }

    fn now(&self) -> Timestamp {
        self.store.now(0)
    }

    fn follow_up(&mut self) {
        self.store.short.store(self.tiered.store().is_short(), Ordering::Relaxed);
        self.store.roster.tidy();
    }

    fn maintain_above(&mut self) -> Result<Maintenance, Error> {
        let progress = self.store.tables.maintain(self.now())?;
        let Progress { did_work, awaits_device } = progress;
        Ok(Maintenance { more: did_work, awaits_device, quiet: true, segments_freed: 0 })
    }
}

fn is_write(operation: &Operation<'_>) -> bool {
    !matches!(operation, Operation::Get { .. })
}

#[cfg(test)]
mod tests;
