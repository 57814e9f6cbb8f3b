//! The thread that keeps a connection to the server: sends, receives, reconnects.
//!
//! ```text
//!            connect                      all performed again
//! down ─────────────────▶ replaying ───────────────────────────▶ serving
//!  ▲                          │ lost, or a change refused           │ lost     │ a flush failed
//!  └──────────────────────────┴─────────────────────────────────────┘          ▼
//!                         replaying ◀──────────────────────────────────── draining
//!                                     all that was sent is answered
//! ```
//! Invariants:
//! 1. While it is not serving, only changes out of the ledger are sent, in their order where they
//!    overlap: a read never sees a server that forgot what it had answered.
//! 2. A flush succeeds only if the server flushed after all changes of the ledger had been
//!    performed on the connection that it was answered on, or on one that was never lost.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_wire::nbd::{Agreement, BlockSizes, Command, CommandFlags, ErrorCode, ExportFlags};
use parking_lot::Mutex;

use super::connect::{Connected, Target};
use super::exchange::{Answered, Exchange, Found, Purpose, Return, Wire};
use super::ledger::{Change, Ledger};
use super::task::Task;
use super::{Job, NbdOptions};
use crate::backing::outbox::Outbox;
use crate::error::{Error, ErrorKind, Result};

/// What the thread and the backing share.
pub(super) struct Shared {
    pub(super) inbox: Mutex<Inbox>,
    pub(super) waker: mio::Waker,
    pub(super) outbox: Outbox,
}

/// What the backing asks for.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) jobs: Vec<Job>,
    pub(super) is_over: bool,
}

/// The thread's state.
pub(super) struct Link {
    target: Target,
    options: NbdOptions,
    shared: Arc<Shared>,
    poll: mio::Poll,
    registry: Arc<mio::Registry>,
    /// What the export was when it was opened.
    flags: ExportFlags,
    bytes: u64,
    sizes: BlockSizes,
    exchange: Option<Exchange>,
    phase: Phase,
    down: Down,
    tasks: HashMap<u64, Task>,
    next_task: u64,
    /// Parts that are to be sent.
    queue: VecDeque<Wire>,
    ledger: Ledger,
    /// A flush is under way. Only ever one is: of two, a server may tell of a failure in either.
    flushing: bool,
    /// When the next flush that nobody asked for may be tried.
    flush_at: Instant,
    /// When tasks are looked through for those that waited too long.
    expire_at: Instant,
}

enum Phase {
    Serving,
    /// Until all that was sent is answered.
    Draining,
    Replaying(VecDeque<Change>),
}

/// What is known of a server that cannot be reached.
struct Down {
    retry_at: Instant,
    pause: Duration,
    why: String,
}

const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Between two looks for tasks that waited too long.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);

impl Link {
    pub(super) fn new(
        (target, options): (Target, NbdOptions),
        shared: Arc<Shared>,
        poll: mio::Poll,
        connected: Connected,
    ) -> std::io::Result<Link> {
        let Agreement { flags, bytes, sizes, .. } = connected.agreement;
        let registry = Arc::new(poll.registry().try_clone()?);
        let exchange = Exchange::new(connected, &registry)?;
        let now = Instant::now();
        Ok(Link {
            target,
            options,
            shared,
            poll,
            registry,
            flags,
            bytes,
            sizes,
            exchange: Some(exchange),
            phase: Phase::Serving,
            down: Down { retry_at: now, pause: PAUSE_MIN, why: String::new() },
            tasks: HashMap::new(),
            next_task: 0,
            queue: VecDeque::new(),
            ledger: Ledger::default(),
            flushing: false,
            flush_at: now,
            expire_at: now,
        })
    }

    /// Serves until the backing is dropped.
    pub(super) fn run(mut self) {
        let mut events = mio::Events::with_capacity(8);
        while self.take_jobs() {
            let now = Instant::now();
            if self.exchange.is_none() && now >= self.down.retry_at {
                self.reconnect();
            }
            if let Err(why) = self.exchange(now) {
                self.lose(why);
            }
            self.expire(Instant::now());
            // A wait that fails or ends early costs a turn.
            let _early = self.poll.poll(&mut events, self.timeout());
        }
        self.leave(&mut events);
    }

    /// Takes the answers to what was sent, for a while, and says goodbye: servers are surprised by
    /// clients that go before.
    fn leave(mut self, events: &mut mio::Events) {
        let Some(mut exchange) = self.exchange.take() else { return };
        let until = Instant::now() + self.options.connect_timeout;
        while !exchange.is_quiet() {
            let left = until.saturating_duration_since(Instant::now());
            let is_alive =
                exchange.write_out().is_ok() && exchange.read_in(&mut Vec::new()).is_ok();
            if left.is_zero() || !is_alive {
                return;
            }
            if !exchange.is_quiet() {
                // A wait that fails or ends early costs a turn.
                let _early = self.poll.poll(events, Some(left));
            }
        }
        exchange.leave();
    }

    /// Whether there is to be another turn.
    fn take_jobs(&mut self) -> bool {
        let mut inbox = self.shared.inbox.lock();
        let (jobs, is_over) = (std::mem::take(&mut inbox.jobs), inbox.is_over);
        drop(inbox);
        for job in jobs {
            let task = match job {
                Job::Request { token, request, begun } => {
                    let task = Task::new(token, request, self.flags, begun);
                    if task.is_none() {
                        self.shared.outbox.put(token, Ok(bytes::Bytes::new()));
                    }
                    task
                }
                Job::Status { offset, length, back, begun } => {
                    Some(Task::status(Return::Extents(back), offset, length, begun))
                }
            };
            if let Some(mut task) = task {
                self.queue.extend(task.first_parts(self.next_task));
                self.tasks.insert(self.next_task, task);
                self.next_task += 1;
            }
        }
        !is_over
    }

    /// Sends and receives all that can be at once.
    fn exchange(&mut self, now: Instant) -> std::result::Result<(), String> {
        let mut answered = Vec::new();
        loop {
            let sent = self.fill(now);
            let Some(exchange) = &mut self.exchange else { return Ok(()) };
            exchange.write_out().map_err(|error| error.to_string())?;
            let read = exchange.read_in(&mut answered);
            if answered.is_empty() && !sent {
                let waits = exchange.waits_since().map(|at| now.saturating_duration_since(at));
                if waits.is_some_and(|waits| waits > self.options.request_timeout) {
                    let seconds = self.options.request_timeout.as_secs_f64();
                    return Err(format!("no answer within {seconds} s"));
                }
                return read;
            }
            if exchange.has_answered() {
                self.down.pause = PAUSE_MIN;
            }
            let mut lost = read;
            for one in answered.drain(..) {
                let taken = self.take_answer(one, now);
                lost = lost.and(taken);
            }
            lost?;
        }
    }

    /// Hands requests to the connection while it has room; whether there were any.
    fn fill(&mut self, now: Instant) -> bool {
        let Some(exchange) = &mut self.exchange else { return false };
        let position = self.ledger.position();
        let mut sent = false;
        if matches!(self.phase, Phase::Draining) && exchange.is_quiet() {
            self.phase = Phase::Replaying(self.ledger.changes());
        }
        if let Phase::Replaying(changes) = &mut self.phase {
            while exchange.has_room()
                && let Some(change) = changes.front()
                && !exchange.is_touching(change.offset, change.length)
                && let Some(change) = changes.pop_front()
            {
                exchange.send(Wire { purpose: Purpose::Replay, change }, position, now);
                sent = true;
            }
            if changes.is_empty() && exchange.is_quiet() {
                self.phase = Phase::Serving;
            }
        }
        if !matches!(self.phase, Phase::Serving) {
            return sent;
        }
        if self.ledger.is_flush_due() && !self.flushing && now >= self.flush_at {
            exchange.send(Wire::new(Purpose::OwnFlush, Command::Flush, 0, 0), position, now);
            (self.flushing, sent) = (true, true);
        }
        while exchange.has_room()
            && let Some(next) = self.queue.front()
            && !(self.ledger.is_full() && is_change(next.change.command))
            && !(self.flushing && next.change.command == Command::Flush)
            && let Some(wire) = self.queue.pop_front()
        {
            self.flushing |= wire.change.command == Command::Flush;
            exchange.send(wire, position, now);
            sent = true;
        }
        sent
    }

    /// Errors: the connection is not worth keeping.
    fn take_answer(&mut self, answered: Answered, now: Instant) -> std::result::Result<(), String> {
        let Answered { wire, position, answer } = answered;
        if let Err((ErrorCode::Shutdown, _)) = &answer {
            // It was not performed; the next server will.
            self.take_back(vec![wire]);
            return Err("the server is about to stop".to_owned());
        }
        let failed = answer.is_err();
        if wire.change.command == Command::Flush {
            self.flushing = false;
            if !failed {
                self.ledger.cover(position);
            }
        }
        if failed && wire.makes_durable() && matches!(self.phase, Phase::Serving) {
            self.phase = Phase::Draining;
        }
        let number = match wire.purpose {
            Purpose::Replay => {
                return answer.map(drop).map_err(|(code, message)| {
                    let name = wire.change.command.name();
                    format!("it refuses a {name} that it had answered before: {code} {message}")
                });
            }
            Purpose::OwnFlush => {
                if failed {
                    self.flush_at = now + PAUSE_MAX;
                }
                return Ok(());
            }
            Purpose::Task(number) => number,
        };
        if !failed && is_change(wire.change.command) && self.flags.contains(ExportFlags::FLUSH) {
            self.ledger.add(wire.change.clone());
        }
        let name = self.target.name();
        let Some(task) = self.tasks.get_mut(&number) else { return Ok(()) };
        task.parts -= 1;
        match answer {
            Ok(Found::Nothing) => {}
            Ok(Found::Bytes(bytes)) => task.bytes = bytes,
            Ok(Found::Extents(extents)) => task.extents = extents,
            Err((code, message)) => {
                let Change { offset, length, .. } = wire.change;
                let detail = format!(
                    "{name}: {} of {length} bytes at offset {offset}: {code} {message}",
                    task.name
                );
                task.error.get_or_insert(Error::new(kind_of(code), detail.trim_end()));
            }
        }
        if let Some(part) = task.next_part(number) {
            self.queue.push_back(part);
        } else if task.parts == 0 {
            if task.then_flush && task.error.is_none() {
                task.then_flush = false;
                let flush = task.flush(number);
                self.queue.push_back(flush);
            } else {
                self.finish(number);
            }
        }
        Ok(())
    }

    fn finish(&mut self, number: u64) {
        let Some(mut task) = self.tasks.remove(&number) else { return };
        let result = task.result();
        match task.back {
            Return::Token(token) => self.shared.outbox.put(token, result),
            // Whoever waited may have gone.
            Return::Extents(back) => drop(back.send(result.map(|_| task.extents))),
        }
    }

    /// The connection is given up.
    fn lose(&mut self, why: String) {
        if let Some(exchange) = self.exchange.take() {
            let unanswered = exchange.into_unanswered();
            self.take_back(unanswered);
        }
        self.flushing = false;
        self.retry_later(why);
    }

    fn retry_later(&mut self, why: String) {
        self.down.retry_at = Instant::now() + self.down.pause;
        self.down.pause = (2 * self.down.pause).min(PAUSE_MAX);
        self.down.why = why;
    }

    /// Puts parts before all that wait to be sent.
    fn take_back(&mut self, wires: Vec<Wire>) {
        for wire in wires.into_iter().rev().filter(|wire| matches!(wire.purpose, Purpose::Task(_)))
        {
            self.queue.push_front(wire);
        }
    }

    fn reconnect(&mut self) {
        let connected = self.target.connect().and_then(|connected| self.check(connected));
        let exchange = connected.and_then(|connected| {
            Exchange::new(connected, &self.registry)
                .map_err(|source| Error::new(ErrorKind::Unavailable, source.to_string()))
        });
        match exchange {
            Ok(exchange) => {
                self.exchange = Some(exchange);
                self.phase = Phase::Replaying(self.ledger.changes());
            }
            Err(error) => self.retry_later(error.to_string()),
        }
    }

    /// Whether it is still the same export.
    fn check(&self, connected: Connected) -> Result<Connected> {
        let Agreement { flags, bytes, sizes, .. } = connected.agreement;
        if (bytes, flags, sizes) == (self.bytes, self.flags, self.sizes) {
            return Ok(connected);
        }
        let detail = format!(
            "{}: another export than before: expected {} bytes, flags {:#06x}, {:?}, found {bytes} \
             bytes, flags {:#06x}, {sizes:?}",
            self.target.name(),
            self.bytes,
            self.flags.0,
            self.sizes,
            flags.0
        );
        Err(Error::new(ErrorKind::Incompatible, detail))
    }

    /// Fails what waited too long.
    fn expire(&mut self, now: Instant) {
        if now < self.expire_at {
            return;
        }
        self.expire_at = now + EXPIRE_EVERY;
        let limit = self.options.give_up_after;
        let is_late = |task: &Task| now.saturating_duration_since(task.begun) > limit;
        let late = self.tasks.iter().filter(|(_, task)| is_late(task));
        let late: Vec<u64> = late.map(|(number, _)| *number).collect();
        if late.is_empty() {
            return;
        }
        let queued = |number| self.queue.iter().filter(move |wire| wire.is_of(number)).count();
        let is_sent = |number: &u64| queued(*number) < self.tasks[number].parts;
        if self.exchange.is_some() && late.iter().any(is_sent) {
            self.lose(format!("no answer within {} s", limit.as_secs_f64()));
        }
        self.queue.retain(|wire| !late.iter().any(|number| wire.is_of(*number)));
        for number in late {
            if let Some(task) = self.tasks.get_mut(&number) {
                let detail = format!(
                    "{}: gave up a {} after {} s: {}",
                    self.target.name(),
                    task.name,
                    limit.as_secs_f64(),
                    self.down.why
                );
                task.error.get_or_insert(Error::new(ErrorKind::Io, detail));
            }
            self.finish(number);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let now = Instant::now();
        let retry = self.exchange.is_none().then_some(self.down.retry_at);
        let expire = (!self.tasks.is_empty()).then_some(self.expire_at);
        let flush = self.ledger.is_flush_due().then_some(self.flush_at.max(now + PAUSE_MIN));
        let next = [retry, expire, flush].into_iter().flatten().min();
        next.map(|at| at.saturating_duration_since(now))
    }
}

impl Wire {
    fn is_of(&self, task: u64) -> bool {
        self.purpose == Purpose::Task(task)
    }

    /// Whether its failure may be that of changes that were answered before.
    fn makes_durable(&self) -> bool {
        self.change.command == Command::Flush || self.change.flags.contains(CommandFlags::FUA)
    }
}

fn is_change(command: Command) -> bool {
    matches!(command, Command::Write | Command::Trim | Command::WriteZeroes)
}

fn kind_of(code: ErrorCode) -> ErrorKind {
    match code {
        ErrorCode::NotPermitted => ErrorKind::ReadOnly,
        ErrorCode::NoSpace => ErrorKind::NoSpace,
        ErrorCode::Invalid | ErrorCode::Overflow => ErrorKind::InvalidInput,
        ErrorCode::NotSupported => ErrorKind::Unsupported,
        ErrorCode::Io | ErrorCode::Memory | ErrorCode::Shutdown => ErrorKind::Io,
    }
}
