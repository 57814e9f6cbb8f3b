//! One worker's share of a phase: what to do next, and what came of it.
//!
//! A contestant asks a [`Turn`] for tickets, does what they say in whatever way suits it (blocking,
//! pipelined, many in flight) and hands each ticket back. Every value that is read is compared with
//! what was put, so a contestant cannot be fast by being wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use entresol_workload::{KeyChooser, Random, Recorder, Values, mix64};

use crate::plan::{KEY_BYTES, Phase, Plan, QUEUE_LENGTH};

/// What all workers of a phase share.
#[derive(Debug)]
pub struct Field {
    /// The phase.
    pub phase: Phase,
    plan: Plan,
    values: Values,
    loaded: u64,
    handed_out: AtomicU64,
    operations_max: u64,
    deadline: Instant,
    started: Instant,
    rate: Option<f64>,
}

/// One worker's share. A worker stops when [`Turn::next`] gives nothing more.
#[derive(Debug)]
pub struct Turn {
    field: Arc<Field>,
    random: Random,
    chooser: Option<KeyChooser>,
    chunk: std::ops::Range<u64>,
    puts_begun: u64,
    worker: u64,
    tally: Tally,
}

/// One operation to do.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    /// What to do.
    pub action: Action,
    /// The key's bytes.
    pub key: [u8; KEY_BYTES],
    id: u64,
    put: u64,
    begun: Instant,
}

/// What to do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read it.
    Get,
    /// Write it.
    Put,
    /// Read the rows from it on, as many as the turn says.
    Scan,
    /// Read the first row that there is, and remove it.
    Pop,
}

/// What came of a worker's operations.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Latencies of gets, scans and pops, nanoseconds.
    pub gets: Recorder,
    /// Latencies of puts, nanoseconds.
    pub puts: Recorder,
    /// Gets that found nothing.
    pub misses: u64,
    /// Rows that scans found.
    pub rows: u64,
    /// Gets whose value was not what was put, puts that were refused.
    pub wrong: u64,
}

const CHUNK: u64 = 256;

impl Field {
    /// The field of `phase` over `loaded` keys, beginning now; `rate` paces it, operations a
    /// second.
    pub fn new(plan: &Plan, phase: Phase, loaded: u64, rate: Option<f64>) -> Arc<Field> {
        let started = Instant::now();
        Arc::new(Field {
            phase,
            values: Values::new(plan.seed),
            loaded: match phase {
                Phase::Load => plan.keys,
                _ => plan.choices(phase, loaded),
            },
            handed_out: AtomicU64::new(0),
            operations_max: phase.operations_max(plan),
            deadline: started + Duration::from_secs_f64(phase.seconds(plan)),
            started,
            plan: plan.clone(),
            rate,
        })
    }

    /// Operations handed out.
    pub fn handed_out(&self) -> u64 {
        self.handed_out.load(Ordering::Relaxed).min(self.operations_max)
    }

    /// When it began.
    pub fn started(&self) -> Instant {
        self.started
    }
}

impl Turn {
    /// Worker number `worker`'s share of `field`.
    pub fn new(field: &Arc<Field>, worker: u64) -> Turn {
        let seed = mix64(field.plan.seed ^ (worker << 8) ^ field.phase as u64);
        let distribution = field.phase.distribution();
        Turn {
            field: Arc::clone(field),
            random: Random::new(seed),
            chooser: distribution.map(|d| KeyChooser::new(d, field.loaded)),
            chunk: 0..0,
            puts_begun: 0,
            worker,
            tally: Tally::default(),
        }
    }

    /// Which phase this is of.
    pub fn phase(&self) -> Phase {
        self.field.phase
    }

    /// The next operation, begun now. Waits where the phase is paced.
    #[inline]
    pub fn next(&mut self) -> Option<Ticket> {
        if self.chunk.is_empty() && !self.take_chunk() {
            return None;
        }
        let begun = Instant::now();
        if begun >= self.field.deadline && !self.field.phase.is_load() {
            return None;
        }
        let number = self.chunk.start;
        self.chunk.start += 1;
        let (action, id) = self.choose(number);
        self.puts_begun += 1;
        let put = (self.field.phase as u64) << 56 | self.worker << 40 | self.puts_begun;
        let key = self.field.plan.course.key(id);
        Some(Ticket { action, key, id, put, begun })
    }

    #[inline]
    fn choose(&mut self, number: u64) -> (Action, u64) {
        let Field { phase, loaded, plan, .. } = &*self.field;
        if *phase == Phase::Queue {
            let tail = loaded + number / 2;
            return match number % 2 {
                0 => (Action::Put, tail),
                _ => (Action::Pop, tail - QUEUE_LENGTH.min(plan.keys)),
            };
        }
        let percent = phase.put_percent();
        let puts = percent == 100 || (percent > 0 && self.random.below(100) < percent);
        let id = match &mut self.chooser {
            Some(chooser) => chooser.next(&mut self.random),
            None => number,
        };
        match phase {
            _ if puts => (Action::Put, id),
            Phase::Absent => (Action::Get, plan.keys * 4 + id),
            _ if phase.scans() => (Action::Scan, id - id % plan.course.scan_step()),
            _ => (Action::Get, id),
        }
    }

    /// Rows of a scan.
    pub fn scan_rows(&self) -> usize {
        self.field.plan.course.scan_rows()
    }

    /// Fills `value` with what the put of `ticket` is to write.
    #[inline]
    pub fn fill(&self, ticket: &Ticket, value: &mut Vec<u8>) {
        value.resize(self.field.plan.value_bytes, 0);
        self.field.values.fill(ticket.id, ticket.put, value);
    }

    /// A get ended: with a value, or with none.
    #[inline]
    pub fn got(&mut self, ticket: &Ticket, value: Option<&[u8]>) {
        self.tally.gets.record(nanoseconds(ticket.begun));
        match value {
            None if self.field.phase == Phase::Absent => {}
            None => self.tally.misses += 1,
            Some(value) => {
                let length = self.field.plan.value_bytes;
                if self.field.values.verify(ticket.id, length, value).is_err() {
                    self.tally.wrong += 1;
                }
            }
        }
    }

    /// A scan found a row; `before` is the key of the one that it found before.
    #[inline]
    pub fn row(&mut self, before: &mut Vec<u8>, (key, value): (&[u8], &[u8])) {
        let Field { plan, values, .. } = &*self.field;
        let id = value.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let is_right = id.is_some_and(|id| {
            plan.course.key(id) == key && values.verify(id, plan.value_bytes, value).is_ok()
        });
        self.tally.rows += 1;
        if !is_right || before.as_slice() >= key {
            self.tally.wrong += 1;
        }
        before.clear();
        before.extend_from_slice(key);
    }

    /// A scan ended.
    #[inline]
    pub fn scanned(&mut self, ticket: &Ticket) {
        self.tally.gets.record(nanoseconds(ticket.begun));
    }

    /// A put ended well.
    #[inline]
    pub fn put(&mut self, ticket: &Ticket) {
        self.tally.puts.record(nanoseconds(ticket.begun));
    }

    /// A put was refused.
    pub fn refused(&mut self, ticket: &Ticket) {
        self.tally.puts.record(nanoseconds(ticket.begun));
        self.tally.wrong += 1;
    }

    /// What came of it.
    pub fn into_tally(self) -> Tally {
        self.tally
    }

    fn take_chunk(&mut self) -> bool {
        let field = &self.field;
        let now = Instant::now();
        if now >= field.deadline {
            return false;
        }
        let start = field.handed_out.fetch_add(CHUNK, Ordering::Relaxed);
        if start >= field.operations_max {
            return false;
        }
        if let Some(rate) = field.rate {
            let due = field.started + Duration::from_secs_f64(start as f64 / rate);
            std::thread::sleep(due.saturating_duration_since(now));
        }
        self.chunk = start..(start + CHUNK).min(field.operations_max);
        true
    }
}

impl Tally {
    /// Adds what another worker did.
    pub fn merge(&mut self, other: &Tally) {
        self.gets.merge(&other.gets);
        self.puts.merge(&other.puts);
        self.misses += other.misses;
        self.rows += other.rows;
        self.wrong += other.wrong;
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
