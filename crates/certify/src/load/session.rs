//! One run of a load: its threads, its reports and its end.
//!
//! States: running → ended, by the first of these: its time is over, a stream lags, somebody stops
//! the load, a thread breaks. The reporter alone calls the observer. The session waits for threads
//! for [`GRACE`]. A thread that hangs in the system for longer is left behind, so that a load on a
//! device that stalls for ever still ends in a result.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::load::content::{Content, Marking};
use crate::load::error::{Error, Result};
use crate::load::interval::{Ending, Interval, Kind};
use crate::load::journal::{self, Journal};
use crate::load::ledger::{Floors, Ledger};
use crate::load::observer::{Observer, Trouble};
use crate::load::plan::{Engine, Judging, Plan};
use crate::load::tally::{self, Tally};
use crate::load::target::{Manner, Target};
use crate::load::telemetry::Meter;
use crate::load::{psync, ring};

/// What all threads of a run share.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) plan: Plan,
    pub(crate) targets: Arc<[Target]>,
    pub(crate) content: Content,
    pub(crate) tallies: Vec<Mutex<Tally>>,
    pub(crate) generation: AtomicU32,
    /// Transfers of which chance has said what they are.
    chosen: AtomicU64,
    journal: Option<Mutex<Journal>>,
    /// Locked after the journal.
    ledger: Option<Mutex<Ledger>>,
    start: OnceLock<Instant>,
    ended: AtomicBool,
    ending: Mutex<Option<Ending>>,
    troubles: Mutex<(Vec<Trouble>, u64)>,
}

/// How long threads may take to end.
const GRACE: Duration = Duration::from_secs(15);
/// How often the reporter looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);
/// Troubles of one interval that are listed.
const TROUBLES_MAX: usize = 10_000;
/// Tallies at most: the more, the less threads wait for each other, and the more memory.
const TALLIES_MAX: usize = 8;

/// Issues `plan` on `targets` until it ends, `stop` is set or `observer` has seen enough. It hears
/// of each interval, the last one cut short where the load was.
///
/// # Errors
/// The plan does not fit the targets, or the system refuses threads or rings.
pub fn run(
    plan: Plan,
    targets: &Arc<[Target]>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Ending> {
    check(&plan, targets)?;
    let mut session = Session::new(plan, targets);
    if let (Some(directory), Marking::Described { run }) =
        (&session.plan.writing.journal, session.plan.writing.marking)
    {
        session.journal = Some(Mutex::new(Journal::create(directory, run, targets)?));
    }
    let session = Arc::new(session);
    let started = match session.plan.engine {
        Engine::Psync => psync::start(&session),
        Engine::Uring { threads, depth } => ring::start(&session, threads, depth),
    };
    let threads = match started {
        Ok(threads) => threads,
        Err(error) => {
            session.end(Ending::Broken(error.to_string()));
            return Err(error);
        }
    };
    Ok(Reporter::new(&session).report(threads, stop, observer))
}

impl Session {
    pub(crate) fn new(plan: Plan, targets: &Arc<[Target]>) -> Session {
        let threads = match plan.engine {
            Engine::Psync => plan.loops.iter().map(|one| one.threads as usize).sum(),
            Engine::Uring { threads, .. } => threads,
        };
        let tallies = (0..threads.clamp(1, TALLIES_MAX))
            .map(|_| Mutex::new(Tally::new(targets.len())))
            .collect();
        let ledger = match (plan.writing.judging, plan.writing.marking) {
            (Judging::Verified, Marking::Described { run }) => {
                Some(Mutex::new(Ledger::new(run, &plan.streams, targets)))
            }
            _ => None,
        };
        let content = Content::new(plan.seed, plan.writing.compress_pct, plan.writing.marking);
        Session {
            plan,
            targets: Arc::clone(targets),
            content,
            tallies,
            generation: AtomicU32::new(1),
            chosen: AtomicU64::new(0),
            journal: None,
            ledger,
            start: OnceLock::new(),
            ended: AtomicBool::new(false),
            ending: Mutex::new(None),
            troubles: Mutex::default(),
        }
    }

    /// Starts the clock.
    pub(crate) fn begin(&self) {
        self.start.get_or_init(Instant::now);
    }

    /// ns since the start.
    pub(crate) fn now_ns(&self) -> u64 {
        self.start.get().map_or(0, |start| start.elapsed().as_nanos() as u64)
    }

    /// The tally of thread `number`.
    pub(crate) fn tally(&self, number: usize) -> &Mutex<Tally> {
        &self.tallies[number % self.tallies.len()]
    }

    /// Thread `number` does a transfer of the kind and on the device that chance chose.
    pub(crate) fn choose(&self, number: usize, (kind, device): (Kind, usize)) {
        self.chosen.fetch_add(1, Ordering::Relaxed);
        self.tally(number).lock().due(kind, device);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends the run; the first reason counts.
    pub(crate) fn end(&self, ending: Ending) {
        self.ending.lock().get_or_insert(ending);
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn trouble(&self, trouble: Trouble) {
        let mut troubles = self.troubles.lock();
        if troubles.0.len() < TROUBLES_MAX {
            troubles.0.push(trouble);
        } else {
            troubles.1 += 1;
        }
    }

    /// The number of a write that is to begin. It may be handed over after
    /// [`Session::flush_journal`].
    pub(crate) fn begin_write(&self, device: usize, range: (u64, usize)) -> u32 {
        // Under the locks, so that journal and ledger have the numbers in order.
        let mut journal = self.journal.as_ref().map(Mutex::lock);
        let mut ledger = self.ledger.as_ref().map(Mutex::lock);
        let generation = self.generation.fetch_add(1, Ordering::Relaxed);
        if let Some(journal) = &mut journal {
            journal.begin(journal::entry(device, generation, range));
        }
        if let Some(ledger) = &mut ledger {
            ledger.begin(generation);
        }
        generation
    }

    /// A write is where it belongs; durable, if it is to be.
    pub(crate) fn acknowledge_write(&self, device: usize, generation: u32, range: (u64, usize)) {
        if let Some(journal) = &self.journal {
            journal.lock().acknowledge(journal::entry(device, generation, range));
        }
        if let Some(ledger) = &self.ledger {
            ledger.lock().acknowledge(device, generation, range);
        }
    }

    /// A write failed.
    pub(crate) fn fail_write(&self, generation: u32) {
        if let Some(ledger) = &self.ledger {
            ledger.lock().fail(generation);
        }
    }

    /// A write that was to begin found no room; it gets another number.
    pub(crate) fn withdraw_write(&self, generation: u32) {
        if let Some(ledger) = &self.ledger {
            ledger.lock().withdraw(generation);
        }
    }

    /// What must be in a range by now.
    pub(crate) fn floors(&self, device: usize, range: (u64, usize)) -> Floors {
        self.ledger
            .as_ref()
            .map_or_else(Floors::default, |ledger| ledger.lock().floors(device, range))
    }

    /// Makes the journal durable; a run without one has nothing to do. A journal that fails ends
    /// the run.
    pub(crate) fn flush_journal(&self) -> bool {
        let flushed = self.journal.as_ref().map_or(Ok(()), |journal| journal.lock().flush());
        if let Err(error) = &flushed {
            self.end(Ending::Broken(error.to_string()));
        }
        flushed.is_ok()
    }

    /// Sleeps until `until_ns`, or until the run has ended.
    pub(crate) fn sleep_until(&self, until_ns: u64) {
        const NAP_NS: u64 = 100_000_000;
        while !self.has_ended() {
            let left = until_ns.saturating_sub(self.now_ns());
            if left == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left.min(NAP_NS)));
        }
    }
}

/// Takes the counts away at the end of each interval.
struct Reporter<'a> {
    session: &'a Arc<Session>,
    meter: Meter,
    number: u64,
    begun_ns: u64,
    /// Transfers of each series that chance chose.
    chosen: Vec<u64>,
    due_told: Vec<f64>,
}

impl<'a> Reporter<'a> {
    fn new(session: &'a Arc<Session>) -> Reporter<'a> {
        let count = session.plan.series.len();
        let meter = Meter::new(&session.targets);
        let (chosen, due_told) = (vec![0; count], vec![0.0; count]);
        Reporter { session, meter, number: 0, begun_ns: 0, chosen, due_told }
    }

    fn report(
        mut self,
        threads: Vec<JoinHandle<()>>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Ending {
        let timing = self.session.plan.timing.clone();
        let compatible = self.session.plan.manner == Manner::Compatible;
        let mut threads = Some(threads);
        loop {
            let nominal = (self.number + 1) * timing.interval_ns;
            let ends = match compatible {
                // ACT finishes the interval in which its time is over.
                true => nominal,
                false => nominal.min(timing.duration_ns),
            };
            self.wait_until(ends, stop, observer);
            if !self.session.has_ended() && ends >= timing.duration_ns {
                if compatible {
                    self.interval(ends, observer);
                    self.session.end(Ending::Completed);
                    join(threads.take().unwrap_or_default());
                    return Ending::Completed;
                }
                self.session.end(Ending::Completed);
            }
            if !self.session.has_ended() {
                self.interval(ends, observer);
                continue;
            }
            let cut_ns = self.session.now_ns().min(ends);
            let whole = join(threads.take().unwrap_or_default());
            self.session.flush_journal();
            self.interval(cut_ns, observer);
            let ending = self.session.ending.lock().clone().unwrap_or(Ending::Completed);
            return match ending {
                Ending::Completed if !whole => Ending::Broken(format!(
                    "transfers did not come back within {} s of the end",
                    GRACE.as_secs()
                )),
                ending => ending,
            };
        }
    }

    /// Waits for the time, or for the end of the run. A compatible run that lags goes on until the
    /// report is due, as ACT's does.
    fn wait_until(&self, until_ns: u64, stop: &AtomicBool, observer: &dyn Observer) {
        loop {
            if stop.load(Ordering::Relaxed) || observer.has_seen_enough() {
                self.session.end(Ending::Interrupted);
                return;
            }
            let left = Duration::from_nanos(until_ns.saturating_sub(self.session.now_ns()));
            let compatible = self.session.plan.manner == Manner::Compatible;
            if left.is_zero() || (self.session.has_ended() && !compatible) {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn interval(&mut self, end_ns: u64, observer: &mut dyn Observer) {
        let (mut series, lag_ns) = tally::take(&self.session.tallies, &self.session.plan.series);
        if self.session.plan.engine == Engine::Psync {
            for (chosen, series) in self.chosen.iter_mut().zip(&series) {
                *chosen += series.due;
            }
            let due = self.due(end_ns / 1000);
            for ((series, told), due) in series.iter_mut().zip(&mut self.due_told).zip(due) {
                series.due = (due.round() - told.round()) as u64;
                *told = due.max(*told);
            }
        }
        self.tell_troubles(observer);
        self.number += 1;
        observer.interval(&Interval {
            number: self.number,
            start_seconds: self.begun_ns as f64 / 1e9,
            end_seconds: end_ns as f64 / 1e9,
            series,
            lag_ns,
            telemetry: self.meter.read(),
        });
        self.begun_ns = end_ns;
    }

    /// What the loops' schedules made due before `t_us`, of each series. What chance chooses counts
    /// as it was chosen: a device must not fail for the choice. What is still to be chosen, and
    /// what goes to devices by chance, counts by its share.
    fn due(&self, t_us: u64) -> Vec<f64> {
        let plan = &self.session.plan;
        let devices = self.session.targets.len() as f64;
        let chosen = self.session.chosen.load(Ordering::Relaxed);
        let mut due: Vec<f64> = self.chosen.iter().map(|&count| count as f64).collect();
        for (stream, count) in plan.loops.iter().flat_map(|one| one.due_before(t_us, chosen)) {
            let stream = &plan.streams[stream];
            for (series, due) in plan.series.iter().zip(&mut due) {
                *due += match (series.device, stream.device) {
                    _ if series.kind != stream.kind => 0.0,
                    (Some(of), Some(to)) if of != to => 0.0,
                    (Some(_), None) => count / devices,
                    _ => count,
                };
            }
        }
        due
    }

    fn tell_troubles(&self, observer: &mut dyn Observer) {
        let (troubles, unlisted) = std::mem::take(&mut *self.session.troubles.lock());
        for trouble in &troubles {
            observer.trouble(trouble);
        }
        if unlisted > 0 {
            observer.trouble(&Trouble::Unlisted { count: unlisted });
        }
    }
}

/// Whether all threads ended in time.
fn join(threads: Vec<JoinHandle<()>>) -> bool {
    let begun = Instant::now();
    let mut left = threads;
    while !left.is_empty() && begun.elapsed() < GRACE {
        let (ended, running): (Vec<_>, Vec<_>) =
            left.into_iter().partition(JoinHandle::is_finished);
        // A thread that panicked has told so on standard error.
        ended.into_iter().for_each(|thread| drop(thread.join()));
        left = running;
        if !left.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    left.is_empty()
}

/// Whether `plan` can be issued on `targets`.
///
/// # Errors
/// It cannot: a target is too small for a transfer, or there is nothing to issue.
pub fn check(plan: &Plan, targets: &[Target]) -> Result<()> {
    if targets.is_empty() || targets.len() > u16::MAX as usize {
        return Err(Error::Plan(format!("{} targets; expected 1 to 65535", targets.len())));
    }
    if plan.streams.is_empty() {
        return Err(Error::Plan("all rates are 0: there is nothing to issue".to_owned()));
    }
    if plan.timing.duration_ns == 0 || plan.timing.interval_ns == 0 {
        return Err(Error::Plan("the duration and the report interval must not be 0".to_owned()));
    }
    for target in targets {
        let span = target.blocks(plan.block_bytes) * u64::from(plan.block_bytes);
        let fits = |shape: &crate::load::shape::Shape| {
            shape.on(target.transfer_bytes_min(), span).is_some()
        };
        if let Some(stream) = plan.streams.iter().find(|stream| !fits(&stream.shape)) {
            return Err(Error::Plan(format!(
                "{}: has {} bytes and transfers of {} at least; expected whole blocks of {} bytes \
                 with room for {}; use a larger target, or other sizes",
                target.name(),
                target.size_bytes(),
                target.transfer_bytes_min(),
                plan.block_bytes,
                stream.shape
            )));
        }
    }
    Ok(())
}
