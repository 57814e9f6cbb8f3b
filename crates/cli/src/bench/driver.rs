//! Drives a workload from any number of threads and tallies what happened.
//!
//! Each thread owns a connection, a random stream and a table of requests in flight. A turn begins
//! requests until the table is full, or until as many as fit into it were answered at once. It
//! hands them over together, and waits for a quarter of the table: batches keep doorbells and clock
//! reads rare.
//!
//! Latency runs from the *intended* start: the due time in an open schedule, the beginning of the
//! request in a closed one. Service time always runs from the beginning of the request.
//!
//! A clock reading may serve a few operations. It is then taken before their later beginnings and
//! after their earlier ends, so that no latency is shown shorter than it was, and at most a few µs
//! longer.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use entresol_tier::PutOptions;
use entresol_workload::{
    Action, Arrivals, KeyChooser, KeyLayout, Mix, Random, Schedule, Sizes, Values, mix64,
};

use super::inserts::{self, Inserts};
pub(crate) use super::tally::Tally;
use super::target::{Answer, Connection, Request, Span};
use crate::failure::{Failure, Outcome};

/// Operations chosen ahead of their begin.
const AHEAD: usize = 16;

/// How long after the end of a run requests may begin that were due before it.
const GRACE: Duration = Duration::from_secs(5);

/// Operations that one reading of the clock serves.
const A_READING: usize = 4;

/// What every thread does.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Operations and their keys.
    pub(crate) mix: Mix,
    /// Keys to choose from.
    pub(crate) keys: u64,
    /// The first of them.
    pub(crate) first_key: u64,
    /// What bytes they have.
    pub(crate) layout: KeyLayout,
    /// Entries of a scan.
    pub(crate) scan_entries: RangeInclusive<u64>,
    /// Sizes of values, a function of the key.
    pub(crate) sizes: Sizes,
    /// How puts are made.
    pub(crate) put: PutOptions,
    /// Requests in flight, each thread.
    pub(crate) in_flight: usize,
    /// When requests begin, each thread.
    pub(crate) arrivals: Arrivals,
    /// Where all randomness comes from.
    pub(crate) seed: u64,
    /// When each thread stops.
    pub(crate) until: Until,
}

/// When a thread stops.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Until {
    /// After a time.
    Elapsed(Duration),
    /// After it did each of its keys once, in order: thread t of n has the t-th n-th of the range.
    Keys(Range<u64>),
    /// After all threads together did so many operations.
    Operations(u64),
}

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Makes and verifies values.
    pub(crate) values: Values,
    /// Keys to insert.
    pub(crate) inserts: Inserts,
    /// Operations finished, brought up to date each turn: for progress bars.
    pub(crate) finished: AtomicU64,
}

impl Shared {
    /// Shared state of a run over `keys` keys.
    pub(crate) fn new(keys: u64) -> Shared {
        Shared::with_room(keys, u64::MAX)
    }

    /// The same of a target with room for so many keys more.
    pub(crate) fn with_room(keys: u64, room: u64) -> Shared {
        Shared {
            values: Values::new(1),
            inserts: Inserts::new(keys, room),
            finished: AtomicU64::new(0),
        }
    }
}

/// Runs `job` on one thread for each connection and merges their tallies.
pub(crate) fn drive<C: Connection + Send>(
    job: &Job,
    shared: &Shared,
    connections: Vec<C>,
) -> Outcome<Tally> {
    let threads = connections.len();
    let barrier = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for (number, connection) in connections.into_iter().enumerate() {
            let barrier = &barrier;
            handles.push(scope.spawn(move || {
                let mut thread = Thread::new(job, shared, connection, (number, threads));
                barrier.wait();
                thread.state.epoch = Instant::now();
                let ended = thread.run();
                ended.map(|()| thread.state.into_tally())
            }));
        }
        barrier.wait();
        let started = Instant::now();
        let cpu = crate::meter::own_cpu_us();
        let mut all = Tally::default();
        let mut first = None;
        for handle in handles {
            match handle.join() {
                Ok(Ok(tally)) => all.merge(&tally),
                Ok(Err(failure)) => first = first.or(Some(failure)),
                Err(_) => {
                    first = first.or(Some(Failure::Failed("a bench thread panicked".into())));
                }
            }
        }
        all.elapsed = started.elapsed();
        all.cpu_us = crate::meter::own_cpu_us() - cpu;
        first.map_or(Ok(all), Err)
    })
}

/// How many bytes the value of key `id` has.
#[inline]
pub(crate) fn value_length(sizes: &Sizes, id: u64) -> usize {
    match sizes {
        Sizes::Fixed(bytes) => *bytes as usize,
        other => other.next(&mut Random::new(id)) as usize,
    }
}

struct Thread<'a, C> {
    job: &'a Job,
    shared: &'a Shared,
    connection: C,
    state: State<'a>,
    random: Random,
    chooser: KeyChooser,
    schedule: Schedule,
    due_ns: Option<u64>,
    left: Range<u64>,
    /// Requests that are due from here on do not begin.
    ends_ns: u64,
    /// Chosen, and not begun: what they will touch in memory is being loaded.
    ahead: VecDeque<(Action, u64)>,
    value: Vec<u8>,
    number: usize,
    threads: usize,
}

/// What visits change; apart from the connection, which is borrowed while they happen.
struct State<'a> {
    job: &'a Job,
    values: &'a Values,
    epoch: Instant,
    tally: Tally,
    slots: Vec<Slot>,
    /// By slot, the key that is being inserted.
    inserting: Vec<u64>,
    free: Vec<u32>,
    /// Slots whose read is done and whose write is to follow.
    to_write: Vec<u32>,
    puts: u64,
    /// The last reading of the clock.
    read_ns: u64,
    /// Begins that it serves still.
    serves: usize,
    /// Answered while answers are waited for, and not yet recorded.
    answered: Vec<u32>,
    waits: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    id: u64,
    intended_ns: u64,
    begun_ns: u64,
    kind: SlotKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SlotKind {
    #[default]
    Read,
    Write,
    ReadThenWrite,
    Scan,
}

impl<'a, C: Connection> Thread<'a, C> {
    fn new(
        job: &'a Job,
        shared: &'a Shared,
        connection: C,
        (number, threads): (usize, usize),
    ) -> Thread<'a, C> {
        let depth = job.in_flight.max(1);
        let seed = mix64(job.seed ^ mix64(number as u64 + 1));
        let left = match &job.until {
            Until::Keys(keys) => {
                let length = keys.end - keys.start;
                let at = |n: usize| keys.start + length * n as u64 / threads as u64;
                at(number)..at(number + 1)
            }
            Until::Operations(count) => 0..count.div_ceil(threads as u64),
            Until::Elapsed(_) => 0..u64::MAX,
        };
        Thread {
            job,
            shared,
            connection,
            state: State {
                job,
                values: &shared.values,
                epoch: Instant::now(),
                tally: Tally::default(),
                slots: vec![Slot::default(); depth],
                inserting: vec![inserts::NONE; depth],
                free: (0..depth as u32).rev().collect(),
                to_write: Vec::new(),
                puts: (number as u64 + 1) << 40,
                read_ns: 0,
                serves: 0,
                answered: Vec::with_capacity(A_READING),
                waits: false,
            },
            random: Random::new(seed),
            chooser: KeyChooser::new(job.mix.distribution, job.keys),
            schedule: Schedule::new(job.arrivals),
            due_ns: None,
            left,
            ends_ns: match job.until {
                Until::Elapsed(time) => time.as_nanos() as u64,
                _ => u64::MAX,
            },
            ahead: VecDeque::with_capacity(AHEAD),
            value: vec![0; job.sizes.max() as usize],
            number,
            threads,
        }
    }

    fn run(&mut self) -> Outcome<()> {
        let deadline = match self.job.until {
            Until::Elapsed(time) => time,
            _ => Duration::MAX,
        };
        let depth = self.state.slots.len();
        let mut counted = 0;
        loop {
            let over = self.is_over() || self.is_past(deadline);
            if !over {
                self.begin_some(depth)?;
            }
            self.write_what_was_read();
            self.connection.flush()?;
            let pending = depth - self.state.free.len() - self.state.to_write.len();
            if over && pending == 0 && self.state.to_write.is_empty() {
                return Ok(());
            }
            let at_least = match (over, self.state.free.is_empty(), self.job.arrivals) {
                (true, ..) => pending.min(1),
                (_, true, Arrivals::Closed) => pending.min((depth / 4).max(1)),
                (_, true, _) => pending.min(1),
                _ => 0,
            };
            let state = &mut self.state;
            state.waits = true;
            self.connection.wait(at_least, &mut |token, answer| state.finish(token, answer))?;
            state.waits = false;
            state.record_answered();
            if self.job.mix.inserts > 0 {
                let oldest = state.inserting.iter().copied().min().unwrap_or(inserts::NONE);
                self.shared.inserts.settle(self.number, oldest);
            }
            let operations = self.state.tally.operations();
            self.shared.finished.fetch_add(operations - counted, Ordering::Relaxed);
            counted = operations;
        }
    }

    /// Begins up to `most` requests that are due.
    fn begin_some(&mut self, most: usize) -> Outcome<()> {
        self.state.serves = 0;
        for _ in 0..most {
            if self.state.free.is_empty() || self.is_over() {
                return Ok(());
            }
            let begun_ns = self.state.begin_ns();
            let intended_ns = match self.due() {
                Some(due) if due >= self.ends_ns => {
                    self.nap(self.ends_ns.saturating_sub(begun_ns));
                    return Ok(());
                }
                Some(due) if due > begun_ns => {
                    self.nap(due - begun_ns);
                    return Ok(());
                }
                Some(due) => {
                    self.due_ns = None;
                    due
                }
                None => begun_ns,
            };
            self.begin_one(intended_ns, begun_ns)?;
        }
        Ok(())
    }

    /// Whether all was begun.
    fn is_over(&self) -> bool {
        self.left.is_empty() && self.ahead.is_empty()
    }

    /// Whether no more begins after `deadline`. What an open schedule had due before it begins all
    /// the same, or a stall at the end would hide what it cost; for some time.
    fn is_past(&mut self, deadline: Duration) -> bool {
        let elapsed = self.state.epoch.elapsed();
        if elapsed < deadline {
            return false;
        }
        let ends_ns = self.ends_ns;
        let Some(due) = self.due().filter(|due| *due < ends_ns) else { return true };
        if elapsed < deadline.saturating_add(GRACE) {
            return false;
        }
        let per_second = match self.job.arrivals {
            Arrivals::Even(rate) | Arrivals::Poisson(rate) => rate,
            Arrivals::Closed => 0.0,
        };
        self.state.tally.not_begun = 1 + ((ends_ns - due) as f64 * per_second / 1e9) as u64;
        true
    }

    /// Sleeps towards a moment `ns` from now if nothing is in flight that may finish before.
    fn nap(&self, ns: u64) {
        const WAKE_UP_NS: u64 = 100_000;
        if ns > 2 * WAKE_UP_NS && self.state.free.len() == self.state.slots.len() {
            std::thread::sleep(Duration::from_nanos((ns - WAKE_UP_NS).min(100_000_000)));
        }
    }

    /// When the next request is due; `None` where arrivals are closed.
    fn due(&mut self) -> Option<u64> {
        if self.due_ns.is_none() {
            self.due_ns = self.schedule.next(&mut self.random);
        }
        self.due_ns
    }

    #[inline]
    fn begin_one(&mut self, intended_ns: u64, begun_ns: u64) -> Outcome<()> {
        if self.ahead.is_empty() {
            self.look_ahead();
        }
        let Some((action, id)) = self.ahead.pop_front() else { return Ok(()) };
        let kind = match action {
            Action::Read => SlotKind::Read,
            Action::Update | Action::Insert => SlotKind::Write,
            Action::ReadModifyWrite => SlotKind::ReadThenWrite,
            Action::Scan => SlotKind::Scan,
        };
        let Some(number) = self.state.free.pop() else { return Ok(()) };
        self.state.slots[number as usize] = Slot { id, intended_ns, begun_ns, kind };
        if action == Action::Insert {
            self.state.inserting[number as usize] = id;
        }
        match kind {
            SlotKind::Write => self.put(number, id),
            SlotKind::Scan => self.scan(number, id)?,
            _ => {
                let state = &mut self.state;
                let key = self.job.layout.key(id);
                self.connection.begin(u64::from(number), Request::Get(&key), &mut |t, a| {
                    state.finish(t, a);
                });
            }
        }
        Ok(())
    }

    /// Chooses the next operations, as a server would know those of a pipeline.
    fn look_ahead(&mut self) {
        // What is not begun in the end must not count as inserted.
        let most = if self.job.mix.inserts > 0 { 1 } else { AHEAD as u64 };
        for _ in 0..most.min(self.left.end - self.left.start) {
            let chosen = self.choose();
            self.ahead.push_back(chosen);
        }
        self.connection.prefetch(&mut self.ahead.iter().map(|(_, id)| *id));
    }

    fn choose(&mut self) -> (Action, u64) {
        let step = self.left.start;
        self.left.start += 1;
        let action = self.job.mix.next(&mut self.random);
        let id = match (&self.job.until, action) {
            (Until::Keys(_), _) => step,
            (_, Action::Insert) => self.shared.inserts.take(self.number),
            _ => {
                self.see_inserts();
                self.job.first_key + self.chooser.next(&mut self.random)
            }
        };
        (action, id)
    }

    /// Lets the chooser choose keys whose insertion is surely over.
    fn see_inserts(&mut self) {
        if self.job.mix.inserts > 0 {
            self.chooser.grow(self.shared.inserts.visible(self.threads));
        }
    }

    fn put(&mut self, number: u32, id: u64) {
        self.state.puts += 1;
        let length = value_length(&self.job.sizes, id);
        let value = &mut self.value[..length];
        self.shared.values.fill(id, self.state.puts, value);
        let key = self.job.layout.key(id);
        let state = &mut self.state;
        let request = Request::Put(&key, value, self.job.put);
        self.connection.begin(u64::from(number), request, &mut |t, a| state.finish(t, a));
    }

    fn write_what_was_read(&mut self) {
        while let Some(number) = self.state.to_write.pop() {
            let id = self.state.slots[number as usize].id;
            self.put(number, id);
        }
    }

    fn scan(&mut self, number: u32, id: u64) -> Outcome<()> {
        let (least, most) = self.job.scan_entries.clone().into_inner();
        let limit = (least + self.random.below(most - least + 1)) as usize;
        let key = self.job.layout.key(id);
        let span = Span { key: &key, draw: self.random.next(), limit };
        let state = &mut self.state;
        self.connection.scan(u64::from(number), span, &mut |t, a| state.finish(t, a))
    }
}

impl State<'_> {
    #[inline]
    fn read_clock(&mut self) {
        self.read_ns = self.epoch.elapsed().as_nanos() as u64;
        self.serves = A_READING;
    }

    /// The begin of a request. A schedule wants the time as it is, to know what is due.
    #[inline]
    fn begin_ns(&mut self) -> u64 {
        if self.serves == 0 || self.job.arrivals != Arrivals::Closed {
            self.read_clock();
        }
        self.serves -= 1;
        self.read_ns
    }

    /// Records what was answered and is not recorded yet, all as if it had ended now.
    fn record_answered(&mut self) {
        if self.answered.is_empty() {
            return;
        }
        if !self.is_alone() {
            self.read_clock();
        }
        while let Some(number) = self.answered.pop() {
            let slot = self.slots[number as usize];
            self.record(slot.kind, (slot.intended_ns, slot.begun_ns));
            self.free.push(number);
        }
    }

    #[inline]
    fn record(&mut self, kind: SlotKind, (intended_ns, begun_ns): (u64, u64)) {
        let latency = self.read_ns.saturating_sub(intended_ns);
        match kind {
            SlotKind::Read | SlotKind::Scan => self.tally.reads.record(latency),
            _ => self.tally.writes.record(latency),
        }
        if self.job.arrivals != Arrivals::Closed {
            self.tally.service.record(self.read_ns.saturating_sub(begun_ns));
        }
    }

    /// What happened, once all of it is over.
    fn into_tally(mut self) -> Tally {
        if self.job.arrivals == Arrivals::Closed {
            self.tally.service = self.tally.latencies();
        }
        self.tally
    }

    /// Whether requests are made one at a time. Then each has a reading of the clock as it is
    /// answered: what the bench does with the value is no part of the latency.
    #[inline]
    fn is_alone(&self) -> bool {
        self.slots.len() == 1
    }

    fn finish(&mut self, token: u64, answer: Answer<'_>) {
        if self.is_alone() {
            self.read_clock();
        }
        let number = token as u32;
        let slot = self.slots[number as usize];
        match (&answer, slot.kind) {
            (Answer::Value(value), SlotKind::Read | SlotKind::ReadThenWrite) => {
                let length = value_length(&self.job.sizes, slot.id);
                if let Err(error) = self.values.verify(slot.id, length, value) {
                    self.tally.wrong += 1;
                    self.problem(error.to_string());
                }
            }
            (Answer::Missing, SlotKind::Read | SlotKind::ReadThenWrite) => self.tally.misses += 1,
            (Answer::Done, SlotKind::Write) => {}
            (Answer::Rows(count), SlotKind::Scan) => self.tally.scanned += count,
            (Answer::Failed(why), _) => {
                self.tally.failures += 1;
                self.problem(why.clone());
            }
            (other, _) => {
                self.tally.failures += 1;
                self.problem(format!("unexpected answer {other:?}"));
            }
        }
        if slot.kind == SlotKind::ReadThenWrite {
            self.slots[number as usize].kind = SlotKind::Write;
            self.to_write.push(number);
            return;
        }
        self.inserting[number as usize] = inserts::NONE;
        self.answered.push(number);
        if !self.waits || self.answered.len() == A_READING {
            self.record_answered();
        }
    }

    fn problem(&mut self, what: String) {
        if self.tally.first_problem.is_none() {
            self.tally.first_problem = Some(what);
        }
    }
}

#[cfg(test)]
mod tests;
