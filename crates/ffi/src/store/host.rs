//! A store with what it needs to live in another language's process: sessions that the caller's
//! threads take turns with, a thread for jobs, a thread for background work, and the outcomes that
//! wait to be reaped.
//!
//! Invariants:
//! 1. Every request and job has exactly one outcome: at once, or reaped.
//! 2. No call but `reap`, `close`, `open`, `count` and a read that is told to waits for the device:
//!    a write that would have to make room first becomes a job.
//! 3. A write never overtakes a job that changes entries: while there are any it becomes one.
//!
//! Lock order: a lane, then the outbox, which is a leaf. `visit` runs under a lane's lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use entresol_host::{FIGURES_WAIT, ForeignClock, LOOK_INTERVAL, PendingAges, Upkeep, keep};
use entresol_tier::{
    Error, ErrorKind, Operation, Outcome, SegmentUse, Session, SessionOptions, SpaceId, Tiered,
    Timestamp,
};
use mio::{Events, Poll};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::bell::{Bell, signals};
use super::jobs::{Job, JobQueue, Task, Workbench};
use super::options::Options;
use super::record::{Kind, Record, with_failure, with_record};
use super::request::{CallerRequest, OwnedOperation, WITHOUT_VALUE};
use super::roster::Roster;
use super::waiters::Waiters;
use crate::text::Failure;

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
/// Words of outcomes that are kept allocated between batches.
const OUTBOX_WORDS_KEPT: usize = 1 << 20;
/// Bytes of a scan's page that are aimed at.
const PAGE_BYTES: u64 = 1 << 20;
/// Entries that a scan reads in one step, at most.
const STEP_MAX: u64 = 256;

/// An open store.
pub(super) struct Host {
    lanes: Vec<Mutex<Option<Session>>>,
    waiters: Waiters,
    roster: Roster,
    tiered: RwLock<Option<Arc<Tiered>>>,
    outbox: Mutex<Outbox>,
    reaper: Mutex<Reaper>,
    bell: Bell,
    /// Whether the one who reaps looks at nothing that is begun now unless it is woken.
    resting: AtomicBool,
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

/// Records that wait to be reaped.
#[derive(Default)]
pub(super) struct Outbox {
    words: Vec<u64>,
    records: i64,
}

/// What the one who reaps has.
struct Reaper {
    /// `None` once the store is closed and nobody waits any more.
    poll: Option<Poll>,
    events: Events,
    given_out: Vec<u64>,
}

/// Outcomes that were reaped.
pub(super) struct Batch {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) records: i64,
}

impl Host {
    /// Opens the store that `options` name, or makes it.
    pub(super) fn open(options: &Options) -> Result<Arc<Host>, Failure> {
        let clock = ForeignClock::default();
        let tiered = options.open(clock.read(0))?;
        Host::over(tiered, clock)
    }

    fn over(tiered: Arc<Tiered>, clock: ForeignClock) -> Result<Arc<Host>, Failure> {
        let session = SessionOptions { depth: DEPTH, ..SessionOptions::default() };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let sessions: Result<Vec<Session>, Error> =
            (0..processors.min(LANES_MAX)).map(|_| tiered.session(session)).collect();
        let (sessions, of_jobs) = (sessions?, tiered.session(session)?);
        let (poll, bell, signalled) = signals(&sessions)?;
        let reaper =
            Reaper { poll: Some(poll), events: Events::with_capacity(64), given_out: Vec::new() };
        let host = Arc::new(Host {
            lanes: sessions.into_iter().map(|session| Mutex::new(Some(session))).collect(),
            waiters: Waiters::default(),
            roster: Roster::default(),
            tiered: RwLock::new(Some(tiered)),
            outbox: Mutex::default(),
            reaper: Mutex::new(reaper),
            bell,
            resting: AtomicBool::new(true),
            signalled,
            short: AtomicBool::new(false),
            jobs: JobQueue::default(),
            clock,
            pending: PendingAges::default(),
            threads: Mutex::default(),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let started = host.start(of_jobs);
        if let Err(failure) = started {
            host.close()?;
            return Err(failure);
        }
        Ok(host)
    }

    /// Begins a request; whether it was answered at its place for outcomes.
    pub(super) fn begin(&self, request: &mut CallerRequest<'_>) -> bool {
        let now = self.now(request.now);
        let queues = || self.short.load(Ordering::Relaxed) || self.jobs.has_changes();
        if is_write(&request.operation) && queues() {
            let owned = OwnedOperation::of(&request.operation);
            let job = Job { token: request.token, task: Task::Operation(owned, now) };
            return self.enqueue_or_refuse(job, request);
        }
        if request.waits
            && !is_write(&request.operation)
            && let Some(answered) = self.run(request, now)
        {
            return answered;
        }
        let mut lane = self.lane();
        let Some(session) = lane.as_mut() else {
            drop(lane);
            return self.refuse(request, &closed());
        };
        let (token, operation) = (request.token, request.operation);
        let mut finished = false;
        let mut answered = false;
        session.submit(token, now, operation, &mut |_, outcome| {
            // Done already: one that has no room for its outcome is told of by whoever reaps.
            self.note_put(&operation, None);
            finished = true;
            answered = answer(request, &outcome);
            if !answered {
                self.outbox.lock().push(token, outcome);
            }
        });
        if !finished {
            self.note_put(&operation, Some(token));
        }
        // What was found in memory may have a segment read that nobody waits for.
        let ahead = session.is_reading_ahead();
        drop(lane);
        if !answered || ahead {
            // The one who reaps hands it to the device, with what others begin meanwhile: the
            // kernel wakes the thread that submitted a read when it is done.
            self.wake();
        }
        answered
    }

    /// Does a read in the caller's thread; whether it was answered at its place for outcomes. None
    /// if that is not possible now.
    fn run(&self, request: &mut CallerRequest<'_>, now: Timestamp) -> Option<bool> {
        let (token, operation) = (request.token, request.operation);
        let mut taken = self.waiters.take(|| {
            let tiered = self.tiered.read().clone();
            let depth = SessionOptions { depth: WAITERS_DEPTH, ..SessionOptions::default() };
            let mut session = tiered.ok_or_else(ended)?.session(depth)?;
            session.leave_read_ahead();
            Ok(session)
        })?;
        let session = taken.session();
        let mut answered = false;
        let mut tell = |_: u64, outcome: Result<Outcome<'_>, Error>| {
            answered = answer(request, &outcome);
            if !answered {
                self.outbox.lock().push(token, outcome);
                self.wake();
            }
        };
        session.submit(token, now, operation, &mut tell);
        while session.in_flight() > 0 {
            if let Err(error) = session.poll(1, now, &mut tell) {
                tell(token, Err(error));
                break;
            }
        }
        if let Some(wanted) = session.wanted_ahead() {
            self.read_ahead(wanted);
        }
        Some(answered)
    }

    /// Reads a segment ahead for callers that wait, whose sessions are idle between their reads.
    fn read_ahead(&self, wanted: SegmentUse) {
        if let Some(session) = self.lane().as_mut() {
            // A favour: if it fails, reads will say so.
            let _begun = session.read_ahead_for(wanted);
        }
        self.wake();
    }

    /// Adds a job, whose outcome is reaped. One that is refused is so at once: the store may be
    /// closed, and nobody reaps any more.
    pub(super) fn enqueue(&self, job: Job) -> Result<(), Failure> {
        self.jobs.push(job)
    }

    /// Waits for outcomes and takes all there are; none once the store is closed.
    pub(super) fn reap(&self) -> Result<Batch, Failure> {
        let mut reaper = self.reaper.lock();
        let Reaper { poll, events, given_out } = &mut *reaper;
        loop {
            self.resting.store(true, Ordering::SeqCst);
            let closed = self.closed.load(Ordering::Acquire);
            let in_flight = self.poll_lanes();
            let records = self.outbox.lock().take(given_out);
            if records > 0 || closed {
                self.resting.store(false, Ordering::SeqCst);
                if records == 0 {
                    // Whoever still has the closed store must not keep descriptors.
                    *poll = None;
                    self.bell.remove();
                }
                let (address, bytes) = (given_out.as_ptr() as u64, given_out.len() as u64 * 8);
                return Ok(Batch { address, bytes, records });
            }
            let wait = match (in_flight, self.signalled) {
                (0, _) => IDLE,
                (_, true) => IN_FLIGHT,
                (_, false) => Duration::ZERO,
            };
            let Some(poll) = poll.as_mut() else { continue };
            match poll.poll(events, Some(wait)) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    return Err(Failure::system("cannot wait for the device", &error));
                }
                _ => {}
            }
        }
    }

    /// Entries of a space, or of one partition of it.
    pub(super) fn count(&self, space: SpaceId, partition: Option<u16>) -> Result<u64, Failure> {
        let tiered = self.tiered()?;
        Ok(match partition {
            Some(partition) => tiered.store().count_partition(space, partition),
            None => tiered.count(space),
        })
    }

    /// Figures as a JSON object; they do not wait for the device.
    pub(super) fn statistics(&self) -> Result<String, Failure> {
        let tiered = self.tiered()?;
        let statistics = tiered.statistics_within(FIGURES_WAIT);
        let figures = statistics.figures().into_iter();
        let mut fields: Vec<String> =
            figures.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        fields.push(format!("\"write_amplification\":{:.6}", statistics.write_amplification()));
        fields.push(format!("\"poisoned\":{}", statistics.poisoned));
        fields.push(format!("\"capacity_bytes\":{}", statistics.capacity_bytes));
        let oldest = self.pending.oldest(&tiered).map_or(0, |pending| pending.age.as_secs());
        fields.push(format!("\"oldest_pending_io_seconds\":{oldest}"));
        Ok(format!("{{{}}}", fields.join(",")))
    }

    /// Entries that a scan had best read in one step, for pages of a size that suits memory.
    pub(super) fn scan_step(&self) -> usize {
        let figures = self.tiered().map(|tiered| tiered.statistics_within(FIGURES_WAIT));
        let figures = figures.unwrap_or_default();
        let mean = figures.flash_live_bytes / figures.entries.max(1);
        (PAGE_BYTES / mean.max(1)).clamp(1, STEP_MAX) as usize
    }

    /// The names of entries that scans have noted.
    pub(super) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Notes a put for scans that are yet to come, before it is answered; with a token where it
    /// is answered later.
    pub(super) fn note_put(&self, operation: &Operation<'_>, token: Option<u64>) {
        if let Operation::Put { key, .. } = operation {
            let name = || self.tiered().ok().map(|tiered| tiered.store().name(*key));
            self.roster.wrote(*key, token, &name);
        }
    }

    /// The moment that a caller means: 0 is now.
    pub(super) fn now(&self, given: i64) -> Timestamp {
        self.clock.read(given)
    }

    /// Finishes what was begun, syncs, and makes the next open fast.
    pub(super) fn close(&self) -> Result<(), Failure> {
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
        let tiered = self.tiered.write().take();
        let closed = tiered.map_or(Ok(()), |tiered| tiered.close(self.now(0)));
        self.closed.store(true, Ordering::Release);
        self.ring();
        finished.and(closed).map_err(Failure::from)
    }

    /// Puts outcomes of jobs to those that wait to be reaped.
    pub(super) fn push(&self, fill: &mut dyn FnMut(&mut Outbox)) {
        fill(&mut self.outbox.lock());
        self.wake();
    }

    fn start(self: &Arc<Host>, session: Session) -> Result<(), Failure> {
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_string()).spawn(body);
            thread.map_err(|error| Failure::system("cannot start a thread of a store", &error))
        };
        let mut threads = self.threads.lock();
        let host = Arc::clone(self);
        let work = Workbench::new(self.tiered()?, session);
        threads.push(spawn("store jobs", Box::new(move || host.jobs.work(work, &host)))?);
        let host = Arc::clone(self);
        let tiered = self.tiered()?;
        threads.push(spawn(
            "store upkeep",
            Box::new(move || keep(&tiered, &mut StoreUpkeep { host, tiered: &tiered })),
        )?);
        let host = Arc::clone(self);
        let tiered = self.tiered()?;
        threads.push(spawn("store watch", Box::new(move || host.watch(&tiered)))?);
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

    fn enqueue_or_refuse(&self, job: Job, request: &mut CallerRequest<'_>) -> bool {
        match self.jobs.push(job) {
            Ok(()) => false,
            Err(failure) => self.refuse(request, &failure),
        }
    }

    /// Answers a request with a failure; whether at its place for outcomes.
    fn refuse(&self, request: &mut CallerRequest<'_>, failure: &Failure) -> bool {
        let token = request.token & !WITHOUT_VALUE;
        let mut answered = false;
        with_failure(token, failure, &mut |record| answered = request.answer(record));
        if !answered {
            self.push(&mut |outbox| outbox.fail(token, failure));
        }
        answered
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
                self.outbox.lock().push(token, outcome);
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
                    self.outbox.lock().push(token, outcome);
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
        self.tiered.read().clone().ok_or_else(closed)
    }

    /// Lets the one who reaps look at what was just begun.
    fn wake(&self) {
        if self.resting.swap(false, Ordering::SeqCst) {
            self.ring();
        }
    }

    fn ring(&self) {
        self.bell.ring();
    }
}

/// The upkeep of an open store.
struct StoreUpkeep<'a> {
    host: Arc<Host>,
    tiered: &'a Tiered,
}

impl Upkeep for StoreUpkeep<'_> {
    fn is_over(&self) -> bool {
        self.host.closing.load(Ordering::Acquire)
    }

    fn now(&self) -> Timestamp {
        self.host.now(0)
    }

    fn follow_up(&mut self) {
        self.host.short.store(self.tiered.store().is_short(), Ordering::Relaxed);
        self.host.roster.tidy();
    }
}

impl Outbox {
    /// Adds the outcome of an operation.
    pub(super) fn push(&mut self, token: u64, outcome: Result<Outcome<'_>, Error>) {
        with_asked(token, &outcome, &mut |record| self.add(record));
    }

    /// Adds a failure.
    pub(super) fn fail(&mut self, token: u64, failure: &Failure) {
        with_failure(token & !WITHOUT_VALUE, failure, &mut |record| self.add(record));
    }

    /// Adds the end of a job.
    pub(super) fn done(&mut self, token: u64) {
        self.add(&Record::new(token, Kind::Done));
    }

    /// Adds records that were made elsewhere.
    pub(super) fn extend(&mut self, words: &[u64], records: i64) {
        self.words.extend_from_slice(words);
        self.records += records;
    }

    fn add(&mut self, record: &Record<'_>) {
        record.append(&mut self.words);
        self.records += 1;
    }

    /// Moves all records to `to`; how many.
    fn take(&mut self, to: &mut Vec<u64>) -> i64 {
        to.clear();
        to.shrink_to(OUTBOX_WORDS_KEPT);
        std::mem::swap(&mut self.words, to);
        std::mem::take(&mut self.records)
    }
}

/// The failure of whatever comes after the end.
pub(super) fn closed() -> Failure {
    Failure::from_store(&ended())
}

fn ended() -> Error {
    Error::new(ErrorKind::Poisoned, "the store was closed; open it again")
}

/// Writes an outcome to its request's place for outcomes; whether it fits.
fn answer(request: &mut CallerRequest<'_>, outcome: &Result<Outcome<'_>, Error>) -> bool {
    let mut answered = false;
    with_asked(request.token, outcome, &mut |record| answered = request.answer(record));
    answered
}

fn is_write(operation: &Operation<'_>) -> bool {
    !matches!(operation, Operation::Get { .. })
}

/// The record of an outcome, without its value where the caller asked for none.
fn with_asked(
    token: u64,
    outcome: &Result<Outcome<'_>, Error>,
    visit: &mut dyn FnMut(&Record<'_>),
) {
    let shown = token & !WITHOUT_VALUE;
    match outcome {
        Ok(Outcome::Found(entry)) if shown != token => {
            let found = Outcome::Found(entresol_tier::Entry { value: &[], ..*entry });
            visit(&Record::of_outcome(shown, &found));
        }
        _ => with_record(shown, outcome, visit),
    }
}

#[cfg(test)]
mod tests;
