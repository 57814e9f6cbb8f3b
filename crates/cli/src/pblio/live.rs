//! A run on files and block devices: one thread begins each request when it is due, and keeps slow
//! requests in flight.
//!
//! Requests wait in one bounded line for a place in flight. Latency counts twice: from the moment
//! when a request joined the line, as in the original, and from the moment when it was due, which
//! includes the time in which a full line kept it from joining.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use entresol_device::{WriteBuffer, wait_readable};
use entresol_workload::oltp::{
    BLOCK_BYTES, CacheCounters, Configuration, LogCounters, Operation, Period, Request,
    TICKS_PER_SECOND, Tally,
};

use super::lanes::{Done, Lanes};
use super::ledger::{Ledger, Writes};
use super::options::PblioArgs;
use super::report::{Ended, Latencies, Printer};
use super::source::Source;
use super::units::{Part, Units, Way};
use crate::failure::Outcome;

/// What a run needs besides its requests.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) args: &'a PblioArgs,
    pub(super) units: &'a Units,
    /// Set once the user wants the run to end.
    pub(super) interrupted: &'a Arc<AtomicBool>,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) ended: Ended,
    /// Requests were still due when the run was given up.
    pub(super) fell_behind: bool,
}

/// Requests in flight for each context; the original has as many threads.
const IN_FLIGHT_PER_CONTEXT: u64 = 256;
const IN_FLIGHT_MAX: u64 = 2048;
/// Requests in line for each context; the original's eight queues hold as many.
const LINE_PER_CONTEXT: u64 = 512;
/// How long after the end of the run requests may begin that were due before it.
const GRACE_NS: u64 = 5_000_000_000;
const TICK_NS: u64 = 1_000_000_000 / TICKS_PER_SECOND;
const WAIT_NS_MAX: u64 = 100_000_000;

/// Requests in flight for `configuration`.
pub(super) fn places(configuration: &Configuration) -> usize {
    (configuration.contexts * IN_FLIGHT_PER_CONTEXT).min(IN_FLIGHT_MAX) as usize
}

/// Makes the requests of `source` over `lanes`, whose cache it closes; `printer` hears of the
/// periods.
pub(super) fn run(
    setting: Setting<'_>,
    configuration: &Configuration,
    (lanes, source): (Lanes, Source),
    printer: Option<&mut Printer>,
) -> Outcome<Finished> {
    let mut live = Live::new(setting, configuration, lanes, source)?;
    live.drive(printer)?;
    live.finish()
}

/// The ways that a run of `configuration` takes.
pub(super) fn lanes(setting: Setting<'_>, configuration: &Configuration) -> Outcome<Lanes> {
    setting.units.lanes(setting.args, Way::ThroughCache, places(configuration))
}

struct Live<'a> {
    setting: Setting<'a>,
    source: Source,
    /// The request that joins the line next.
    next: Option<Request>,
    line: VecDeque<(Request, u64)>,
    line_max: usize,
    lanes: Lanes,
    slots: Vec<Slot>,
    free: Vec<usize>,
    done: Vec<Done>,
    /// What the cache had counted when the ramp was over.
    before: Option<CacheCounters>,
    ledger: Ledger,
    tally: Tally,
    latencies: Latencies,
    epoch: Instant,
    fell_behind: bool,
    /// A trace ended before the run did.
    ran_out: bool,
}

/// A place in flight.
struct Slot {
    request: Option<Request>,
    enqueued_ns: u64,
    parts: Vec<Part>,
    parts_left: usize,
    known: Vec<Writes>,
    buffer: WriteBuffer,
}

impl<'a> Live<'a> {
    fn new(
        setting: Setting<'a>,
        configuration: &Configuration,
        lanes: Lanes,
        mut source: Source,
    ) -> Outcome<Live<'a>> {
        let places = places(configuration);
        let slots = (0..places).map(|_| Slot::new()).collect::<Outcome<Vec<Slot>>>()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Live {
            setting,
            next: source.next(),
            source,
            line: VecDeque::new(),
            line_max: (configuration.contexts * LINE_PER_CONTEXT) as usize,
            lanes,
            slots,
            free: (0..places).rev().collect(),
            done: Vec::new(),
            before: None,
            // Odd: `--fill` writes as run 0.
            ledger: Ledger::new(now.as_micros() as u64 | 1),
            tally: Tally::default(),
            latencies: Latencies::default(),
            epoch: Instant::now(),
            fell_behind: false,
            ran_out: false,
        })
    }

    fn drive(&mut self, mut printer: Option<&mut Printer>) -> Outcome<()> {
        let args = self.setting.args;
        let mut period = Duration::from_secs(args.ramp + args.dataperiod);
        let mut period_begun = Duration::from_secs(args.ramp);
        let end = Duration::from_secs(args.ramp + args.runlen);
        loop {
            self.join_line();
            self.begin()?;
            self.collect()?;
            let elapsed = self.epoch.elapsed();
            if let Some(printer) = printer.as_deref_mut()
                && elapsed < end
            {
                let since_ramp = elapsed.as_secs_f64() - args.ramp as f64;
                printer.course().note(since_ramp, &self.period());
            }
            if let Some(printer) = printer.as_deref_mut()
                && elapsed >= period
                && period < end
            {
                let seconds = (elapsed - period_begun).as_secs_f64();
                printer.period(&self.period(), seconds, unix_seconds())?;
                period_begun = elapsed;
                period += Duration::from_secs(args.dataperiod);
            }
            if self.next.is_none() && self.line.is_empty() && self.free.len() == self.slots.len() {
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// Lets requests that are due join the line while it has room.
    fn join_line(&mut self) {
        let args = self.setting.args;
        let end = args.ramp + args.runlen;
        let now = self.now();
        while let Some(request) = self.next {
            let is_late = now >= end * TICKS_PER_SECOND * TICK_NS + GRACE_NS;
            if request.due >= end * TICKS_PER_SECOND
                || is_late
                || self.setting.interrupted.load(Ordering::Relaxed)
            {
                self.fell_behind |= is_late && request.due < end * TICKS_PER_SECOND;
                self.next = None;
                return;
            }
            if request.due * TICK_NS > now || self.line.len() >= self.line_max {
                return;
            }
            self.line.push_back((request, now));
            self.next = self.source.next();
            self.ran_out = self.next.is_none();
        }
    }

    /// Begins requests of the line while there are places in flight.
    fn begin(&mut self) -> Outcome<()> {
        while let Some(&(request, enqueued_ns)) = self.line.front() {
            if self.is_mocked(&request) {
                self.line.pop_front();
                self.count(&request, enqueued_ns);
                continue;
            }
            let parts = self.setting.units.parts(&request);
            let Some(&place) = self.free.last() else { return Ok(()) };
            if !parts.iter().all(|part| self.lanes.has_room(part, parts.len())) {
                return Ok(());
            }
            if self.before.is_none() && request.due >= self.setting.args.ramp * TICKS_PER_SECOND {
                self.before = self.lanes.counters();
            }
            self.line.pop_front();
            self.free.pop();
            self.slots[place].parts_left = parts.len();
            self.slots[place].parts = parts;
            self.slots[place].enqueued_ns = enqueued_ns;
            self.slots[place].request = Some(request);
            match request.operation {
                Operation::Read => self.begin_read(place, &request)?,
                Operation::Write => self.begin_write(place, &request)?,
            }
        }
        Ok(())
    }

    fn begin_read(&mut self, place: usize, request: &Request) -> Outcome<()> {
        let slot = &mut self.slots[place];
        if self.setting.args.verify {
            slot.known = self.ledger.begin_read(request);
        }
        for (number, part) in slot.parts.iter().enumerate() {
            self.lanes.read(token(place, number), part)?;
        }
        Ok(())
    }

    fn begin_write(&mut self, place: usize, request: &Request) -> Outcome<()> {
        let slot = &mut self.slots[place];
        let length = request.blocks as usize * BLOCK_BYTES as usize;
        self.ledger.begin_write(request, &mut slot.buffer.bytes_mut()[..length]);
        for (number, part) in slot.parts.iter().enumerate() {
            self.lanes.write(token(place, number), part, &slot.buffer)?;
        }
        Ok(())
    }

    /// Hands over what was begun and takes what is done.
    fn collect(&mut self) -> Outcome<()> {
        let mut done = std::mem::take(&mut self.done);
        self.lanes.collect(&mut done)?;
        for one in done.drain(..) {
            self.complete(&one);
        }
        self.done = done;
        Ok(())
    }

    fn complete(&mut self, done: &Done) {
        let (place, number) = place_of(done.token);
        let slot = &mut self.slots[place];
        let request = slot.request.expect("what completes was begun at this place");
        if self.setting.args.verify && request.operation == Operation::Read {
            let first = slot.parts[number].first;
            self.ledger.end_read(&request, first, &done.contents, &slot.known);
        }
        slot.parts_left -= 1;
        if slot.parts_left > 0 {
            return;
        }
        if request.operation == Operation::Write {
            self.ledger.end_write(&request);
        }
        slot.request = None;
        let enqueued_ns = slot.enqueued_ns;
        self.free.push(place);
        self.count(&request, enqueued_ns);
    }

    /// Counts a request that is done, unless it was due within the ramp.
    fn count(&mut self, request: &Request, enqueued_ns: u64) {
        if request.due < self.setting.args.ramp * TICKS_PER_SECOND {
            return;
        }
        let now = self.now();
        let latency = now - enqueued_ns;
        self.tally.count(request, latency);
        self.latencies.from_enqueue.record(latency);
        self.latencies.from_intended_start.record(now.saturating_sub(request.due * TICK_NS));
    }

    /// Waits for a completion or for the next request to be due.
    fn wait(&mut self) -> Outcome<()> {
        let now = self.now();
        let mut timeout = WAIT_NS_MAX;
        if let Some(request) = self.next.filter(|_| self.line.len() < self.line_max) {
            timeout = timeout.min((request.due * TICK_NS).saturating_sub(now));
        }
        timeout = timeout.min(self.lanes.wake_in_ns().unwrap_or(timeout));
        if timeout > 0 {
            wait_readable(&self.lanes.descriptors(), Duration::from_nanos(timeout))?;
        }
        Ok(())
    }

    fn finish(self) -> Outcome<Finished> {
        let args = self.setting.args;
        let mut seconds = (self.epoch.elapsed().as_secs_f64() - args.ramp as f64).max(0.0);
        if !self.ran_out && !self.setting.interrupted.load(Ordering::Relaxed) {
            // The last request is done a little before the end of the run.
            seconds = seconds.max(args.runlen as f64);
        }
        let findings = args.verify.then(|| self.ledger.findings().clone());
        let period = self.period();
        let ended = Ended { period, seconds, latencies: Some(self.latencies), findings };
        self.lanes.close()?;
        Ok(Finished { fell_behind: self.fell_behind, ended })
    }

    fn period(&self) -> Period {
        let cache = self.lanes.counters().map(|counters| {
            let counters = counters.since(&self.before.unwrap_or_default());
            // Its log is another than the original's: where a hit is read is not told apart.
            let log = LogCounters { device_hits: counters.read_hits, ..LogCounters::default() };
            (counters, log)
        });
        Period { tally: self.tally, cache }
    }

    fn is_mocked(&self, request: &Request) -> bool {
        match request.operation {
            Operation::Read => self.setting.args.mock_reads,
            Operation::Write => self.setting.args.mock_writes,
        }
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

impl Slot {
    fn new() -> Outcome<Slot> {
        Ok(Slot {
            request: None,
            enqueued_ns: 0,
            parts: Vec::new(),
            parts_left: 0,
            known: Vec::new(),
            // Memory that no request was long enough for is never touched.
            buffer: WriteBuffer::anonymous((Request::BLOCKS_MAX * BLOCK_BYTES) as usize)?,
        })
    }
}

fn token(place: usize, part: usize) -> u64 {
    (place as u64) << 16 | part as u64
}

fn place_of(token: u64) -> (usize, usize) {
    ((token >> 16) as usize, (token & 0xFFFF) as usize)
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
