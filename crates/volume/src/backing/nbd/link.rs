//! A lasting connection to the server: it sends, receives, and is connected again when it is lost.
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
//! 1. A link that is not serving sends only changes of the ledger, overlapping ones in their order.
//!    So no read sees a server that forgot answered changes.
//! 2. A flush succeeds only if the server flushed after all changes of the ledger had been
//!    performed on the connection that it was answered on, or on one that was never lost.
//! 3. A server reports once that it could not make changes durable, to the first flush or durable
//!    write. So no other flush or durable write is under way beside a flush. A request that was
//!    under way when one of these failed has not succeeded, whatever its answer says: it is sent
//!    again.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_wire::nbd::{Agreement, BlockSizes, Command, CommandFlags, ErrorCode, ExportFlags};

use super::connect::{Connected, Target};
use super::exchange::{Answered, Exchange, Found, Purpose, Return, Wire};
use super::keeper::Keeper;
use super::ledger::{Change, Ledger};
use super::task::Task;
use super::{Job, NbdOptions};
use crate::backing::{BackingCompletion, Extent};
use crate::error::{Error, ErrorKind, Result};

/// The connection and what is under way on it. Its owner gives it turns, whenever its descriptor
/// polls readable and after every job.
pub(super) struct Link {
    name: String,
    options: NbdOptions,
    poll: mio::Poll,
    events: mio::Events,
    registry: Arc<mio::Registry>,
    keeper: Keeper,
    /// What the export was when it was opened.
    flags: ExportFlags,
    bytes: u64,
    sizes: BlockSizes,
    exchange: Option<Exchange>,
    /// Whether the socket may hold bytes that were not read: it tells of new ones only.
    readable: bool,
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
    completions: Vec<BackingCompletion>,
    /// Jobs were taken that no turn has seen.
    has_news: bool,
}

enum Phase {
    Serving,
    /// Until all that was sent is answered.
    Draining,
    Replaying(VecDeque<Change>),
}

/// What is known of a server that cannot be reached.
struct Down {
    pause: Duration,
    why: String,
}

/// Tokens in the event loop.
pub(super) const SOCKET: mio::Token = mio::Token(0);
const WAKER: mio::Token = mio::Token(1);
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Between two looks for tasks that waited too long.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);

impl Link {
    pub(super) fn new(
        (target, options): (Target, NbdOptions),
        connected: Connected,
    ) -> std::io::Result<Link> {
        let poll = mio::Poll::new()?;
        let Agreement { flags, bytes, sizes, .. } = connected.agreement;
        let registry = Arc::new(poll.registry().try_clone()?);
        let exchange = Exchange::new(connected, &registry)?;
        let now = Instant::now();
        let name = target.name();
        let keeper = Keeper::start(target, mio::Waker::new(&registry, WAKER)?)?;
        Ok(Link {
            name,
            options,
            poll,
            events: mio::Events::with_capacity(8),
            registry,
            keeper,
            flags,
            bytes,
            sizes,
            exchange: Some(exchange),
            readable: true,
            phase: Phase::Serving,
            down: Down { pause: PAUSE_MIN, why: String::new() },
            tasks: HashMap::new(),
            next_task: 0,
            queue: VecDeque::new(),
            ledger: Ledger::default(),
            flushing: false,
            flush_at: now,
            expire_at: now,
            completions: Vec::new(),
            has_news: false,
        })
    }

    /// Takes a job over; it is sent at the next turn.
    pub(super) fn take(&mut self, job: Job) {
        self.has_news = true;
        let task = match job {
            Job::Request { token, request, begun } => {
                let task = Task::new(token, request, self.flags, begun);
                if task.is_none() {
                    self.complete(token, Ok(bytes::Bytes::new()));
                }
                task
            }
            Job::Status { offset, length, back, begun } => {
                let unit = u64::from(self.sizes.minimum.max(1));
                Some(Task::status(back, (offset, length), unit, begun))
            }
        };
        if let Some(mut task) = task {
            self.queue.extend(task.first_parts(self.next_task));
            self.tasks.insert(self.next_task, task);
            self.next_task += 1;
        }
    }

    /// Tells its owner how a request ended, at the next reaping.
    pub(super) fn complete(&mut self, token: u64, result: Result<bytes::Bytes>) {
        self.completions.push(BackingCompletion { token, result });
    }

    /// Does all that can be done without waiting; only if something happened where nothing is
    /// under way.
    pub(super) fn turn(&mut self) {
        self.take_events(Some(Duration::ZERO));
        if !self.events.is_empty() || !self.tasks.is_empty() {
            self.advance();
        }
    }

    /// Sends what was taken since the last turn.
    pub(super) fn submit(&mut self) {
        if self.has_news {
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.has_news = false;
        if let Some(connected) = self.keeper.connected() {
            self.resume(connected);
        }
        if let Err(why) = self.exchange(Instant::now()) {
            self.lose(why);
        }
        self.expire(Instant::now());
        if let Some(at) = self.due_at() {
            self.keeper.wake_at(at);
        }
    }

    /// Waits until there may be something to do, then does it.
    pub(super) fn wait(&mut self) {
        self.take_events(None);
        self.advance();
    }

    /// What has completed.
    pub(super) fn completions(&mut self) -> &mut Vec<BackingCompletion> {
        &mut self.completions
    }

    /// Sees to it that the descriptor polls readable while there is something to reap.
    pub(super) fn signal(&self) {
        if !self.completions.is_empty() {
            self.keeper.wake_now();
        }
    }

    /// Polls readable when a turn has something to do.
    pub(super) fn poll_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    /// Takes what the loop tells. A wait that fails or ends early costs a turn.
    fn take_events(&mut self, wait: Option<Duration>) {
        let _early = self.poll.poll(&mut self.events, wait);
        self.readable |= self.events.iter().any(|event| event.token() == SOCKET);
    }

    /// Takes the answers to what was sent, for a while, and says goodbye: servers are surprised by
    /// clients that go before.
    fn leave(&mut self) {
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
                self.take_events(Some(left));
            }
        }
        exchange.leave();
    }

    /// Sends and receives all that can be at once.
    fn exchange(&mut self, now: Instant) -> std::result::Result<(), String> {
        let mut answered = Vec::new();
        loop {
            let sent = self.fill(now);
            let Some(exchange) = &mut self.exchange else { return Ok(()) };
            exchange.write_out().map_err(|error| error.to_string())?;
            let read = match std::mem::take(&mut self.readable) {
                true => exchange.read_in(&mut answered),
                false => Ok(()),
            };
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
        let may_flush = !self.flushing && !exchange.has_sent(Wire::makes_durable);
        if self.ledger.is_flush_due() && may_flush && now >= self.flush_at {
            exchange.send(Wire::new(Purpose::OwnFlush, Command::Flush, 0, 0), position, now);
            (self.flushing, sent) = (true, true);
        }
        while exchange.has_room()
            && let Some(next) = self.queue.front()
            && !(self.ledger.is_full() && is_change(next.change.command))
            && !(self.flushing && next.makes_durable())
            && !(next.change.command == Command::Flush && exchange.has_sent(Wire::makes_durable))
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
        let doubtful = !failed && wire.makes_durable() && matches!(self.phase, Phase::Draining);
        if doubtful && matches!(wire.purpose, Purpose::Task(_)) {
            self.take_back(vec![wire]);
            return Ok(());
        }
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
        let name = &self.name;
        let Some(task) = self.tasks.get_mut(&number) else { return Ok(()) };
        task.parts -= 1;
        match answer {
            Ok(Found::Nothing) => {}
            Ok(Found::Bytes(bytes)) => task.bytes = bytes,
            Ok(Found::Extents(extents)) => task.take_extents(extents),
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
            Return::Token(token) => self.complete(token, result),
            Return::Told(token) => {
                self.complete(token, result.map(|_| Extent::encode(&task.extents)));
            }
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
        self.keeper.connect_at(Instant::now() + self.down.pause);
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

    /// The keeper has connected, or could not.
    fn resume(&mut self, connected: Result<Connected>) {
        let exchange =
            connected.and_then(|connected| self.check(connected)).and_then(|connected| {
                Exchange::new(connected, &self.registry)
                    .map_err(|source| Error::new(ErrorKind::Unavailable, source.to_string()))
            });
        match exchange {
            Ok(exchange) => {
                self.exchange = Some(exchange);
                self.readable = true;
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
            self.name, self.bytes, self.flags.0, self.sizes, flags.0
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
                    self.name,
                    task.name,
                    limit.as_secs_f64(),
                    self.down.why
                );
                task.error.get_or_insert(Error::new(ErrorKind::Io, detail));
            }
            self.finish(number);
        }
    }

    /// When there is something to do though nothing comes; not at once.
    fn due_at(&self) -> Option<Instant> {
        let expire = (!self.tasks.is_empty()).then_some(self.expire_at);
        let soon = || self.flush_at.max(Instant::now() + PAUSE_MIN);
        let flush = self.ledger.is_flush_due().then(soon);
        expire.into_iter().chain(flush).min()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.leave();
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
