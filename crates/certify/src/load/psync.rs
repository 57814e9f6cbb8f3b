//! The blocking engine: a thread for each transfer that may be in flight, as ACT 6 has them.
//!
//! Each thread is a closed loop on an absolute schedule: do a transfer, then sleep until the next
//! is due. A late thread goes on at once; a thread that is later than allowed ends the run. Service
//! time is that of the system call alone; response time counts from the due time.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use entresol_device::IoBuffer;
use entresol_workload::{Random, mix64};

use crate::load::content::{Place, Wrong};
use crate::load::error::{Error, Result};
use crate::load::interval::{Ending, Kind};
use crate::load::judging::judge;
use crate::load::observer::Trouble;
use crate::load::pace::{Pace, Steps};
use crate::load::plan::Judging;
use crate::load::session::Session;
use crate::load::shape::Placement;
use crate::load::tally::Done;
use crate::load::target::Manner;

/// Starts all threads of the run.
pub(crate) fn start(session: &Arc<Session>) -> Result<Vec<JoinHandle<()>>> {
    if let Some(target) = session.targets.iter().find(|target| target.blocking().is_none()) {
        return Err(Error::Plan(format!(
            "{}: cannot be loaded by the blocking engine; use `engine: uring`",
            target.name()
        )));
    }
    session.begin();
    let mut threads = Vec::new();
    for (index, of) in session.plan.loops.iter().enumerate() {
        for _ in 0..of.threads {
            let number = threads.len();
            let shared = Arc::clone(session);
            let started = Builder::new()
                .name(format!("load-{number}"))
                .stack_size(256 << 10)
                .spawn(move || Worker::new(&shared, index, number).work());
            threads.push(started.map_err(|error| {
                Error::System(format!("cannot start thread {number} of the load: {error}"))
            })?);
        }
    }
    Ok(threads)
}

/// One thread.
struct Worker<'a> {
    session: &'a Session,
    which: usize,
    number: usize,
    random: Random,
    /// Of each stream on each device.
    placements: Vec<Vec<Placement>>,
    memory: IoBuffer,
}

impl<'a> Worker<'a> {
    fn new(session: &'a Session, which: usize, number: usize) -> Worker<'a> {
        let plan = &session.plan;
        let on_all = |shape: &crate::load::shape::Shape| {
            let on = |target: &crate::load::target::Target| {
                let span = target.blocks(plan.block_bytes) * u64::from(plan.block_bytes);
                shape.on(target.transfer_bytes_min(), span).expect("the plan was checked")
            };
            session.targets.iter().map(on).collect()
        };
        let placements = plan.streams.iter().map(|stream| on_all(&stream.shape)).collect();
        let longest = session.targets.iter().map(|one| plan.bytes_max(one.transfer_bytes_min()));
        Worker {
            session,
            which,
            number,
            random: Random::new(mix64(plan.seed ^ mix64(number as u64 + 1))),
            placements,
            memory: IoBuffer::aligned(longest.max().unwrap_or_default() as usize),
        }
    }

    fn work(mut self) {
        let of = &self.session.plan.loops[self.which];
        let lag_ns_max = self.session.plan.timing.lag_ns_max.unwrap_or(u64::MAX);
        let end_ns = match self.session.plan.manner {
            // ACT goes on to the end of the interval, and reports before its threads end.
            Manner::Compatible => u64::MAX,
            Manner::Strict => self.session.plan.timing.duration_ns,
        };
        let mut count = 0;
        while !self.session.has_ended() {
            if let Pace::After { pause_ns } = of.pace {
                self.session.sleep_until(self.session.now_ns() + pause_ns);
            }
            let due_ns = of.pace.due_us(count).map(|due| due.saturating_mul(1000));
            if due_ns.is_some_and(|due_ns| due_ns >= end_ns) {
                return;
            }
            self.turn(&of.steps, due_ns);
            count += of.counts();
            let Some(next_us) = of.pace.due_us(count) else { continue };
            let (next_ns, now_ns) = (next_us.saturating_mul(1000), self.session.now_ns());
            if next_ns > now_ns {
                self.session.sleep_until(next_ns);
                continue;
            }
            let lag_ns = now_ns - next_ns;
            self.session.tally(self.number).lock().lagged(lag_ns);
            if lag_ns > lag_ns_max && !self.session.has_ended() {
                self.session.trouble(Trouble::Lagged { kind: of.kind, lag_ns });
                self.session.end(Ending::Lagged { kind: of.kind, lag_ns });
            }
        }
    }

    fn turn(&mut self, steps: &Steps, due_ns: Option<u64>) {
        match steps {
            Steps::One(stream) => self.transfer(*stream, due_ns),
            Steps::Mixed { first, second, first_of_2_20 } => {
                let at = self.random.below(1 << 20);
                let stream = *if at < *first_of_2_20 { first } else { second };
                let device = self.device_of(stream);
                let kind = self.session.plan.streams[stream].kind;
                self.session.choose(self.number, (kind, device));
                self.transfer_on(device, stream, due_ns);
            }
            Steps::Rows { streams, times } => {
                for _ in 0..*times {
                    if self.session.has_ended() {
                        return;
                    }
                    streams.iter().for_each(|&stream| self.transfer(stream, due_ns));
                }
            }
        }
    }

    /// Where the next transfer of `stream` goes.
    fn device_of(&mut self, stream: usize) -> usize {
        let devices = self.session.targets.len() as u64;
        let fixed = self.session.plan.streams[stream].device;
        fixed.unwrap_or_else(|| self.random.below(devices) as usize)
    }

    fn transfer(&mut self, stream: usize, due_ns: Option<u64>) {
        let device = self.device_of(stream);
        self.transfer_on(device, stream, due_ns);
    }

    fn transfer_on(&mut self, device: usize, stream: usize, due_ns: Option<u64>) {
        let session = self.session;
        let of = &session.plan.streams[stream];
        let (offset, length) = self.placements[stream][device].choose(&mut self.random);
        let target = &session.targets[device];
        let file = target.blocking().expect("checked when the threads were started");
        let place = Place { device: target.identity(), offset };
        let bytes = &mut self.memory[..length];
        let mut generation = 0;
        if of.kind.writes() {
            generation = session.begin_write(device, (offset, length));
            if !session.flush_journal() {
                return;
            }
            session.content.fill(&mut self.random, place, generation, bytes);
        }
        let began_ns = session.now_ns();
        let result = match of.kind.writes() {
            true => file.write_all_at(bytes, offset),
            false => file.read_exact_at(bytes, offset),
        };
        let ended_ns = session.now_ns();
        let service_ns = ended_ns.saturating_sub(began_ns);
        let done = Done {
            kind: of.kind,
            device,
            bytes: length,
            service_ns,
            response_ns: ended_ns.saturating_sub(due_ns.unwrap_or(began_ns)).max(service_ns),
        };
        match result {
            Ok(()) => {
                if of.kind.writes() {
                    session.acknowledge_write(device, generation, (offset, length));
                }
                session.tally(self.number).lock().done(done);
                if !of.kind.writes() && session.plan.writing.judging == Judging::Verified {
                    self.look(offset, done);
                }
            }
            Err(error) => {
                session.tally(self.number).lock().failed(of.kind, device);
                if of.kind.writes() {
                    session.fail_write(generation);
                }
                session.trouble(failure(of.kind, target.name(), (offset, length), &error));
            }
        }
    }

    /// Looks at what a read brought.
    fn look(&mut self, offset: u64, done: Done) {
        let target = &self.session.targets[done.device];
        let bytes = &mut self.memory[..done.bytes];
        let mut read_again = |bytes: &mut [u8]| {
            let file = target.blocking().expect("it was just read");
            file.read_exact_at(bytes, offset).is_ok()
        };
        let place = (done.device, offset);
        if let Some(wrong) = judge(self.session, place, bytes, &mut read_again) {
            self.session.tally(self.number).lock().wrong(done.kind, done.device);
            self.session.trouble(wrong_unit(done.kind, target.name(), wrong));
        }
    }
}

/// A transfer that the system refused.
pub(crate) fn failure(
    kind: Kind,
    device: &str,
    (offset, length): (u64, usize),
    error: &std::io::Error,
) -> Trouble {
    let doing = if kind.writes() { "write" } else { "read" };
    Trouble::Failed {
        kind,
        device: device.to_owned(),
        errno: error.raw_os_error().unwrap_or_default(),
        text: format!("{device}: {doing} of {length} bytes at offset {offset} failed: {error}"),
    }
}

/// A unit that is not what was written there.
pub(crate) fn wrong_unit(kind: Kind, device: &str, wrong: Wrong) -> Trouble {
    Trouble::Wrong { kind, device: device.to_owned(), text: format!("{device}: {wrong}") }
}
