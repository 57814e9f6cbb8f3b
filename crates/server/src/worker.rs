//! A thread that serves clients: one event loop for sockets and flash.
//!
//! A turn: take what the sockets have, begin the commands in it, hand all reads they need to the
//! device with one call, take what the device has finished, and write each client's replies with
//! one call.
//!
//! Invariants:
//! 1. `in_flight` counts the slots of all connections, gone ones included, that are not answered,
//!    and `aside` those of them that touch no entry; the worker parks at the gate only when there
//!    are no others.
//! 2. Nothing waits inside a turn: a command that cannot go on leaves its bytes in the input.

mod claim;
mod completions;
mod execute;
mod input;
mod output;
mod pipeline_prefetch;
mod turnstile;
mod update;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use entresol_device::Attended;
use entresol_host::now;
use entresol_net::{Listener, Stream};
use entresol_tier::{Session, Timestamp};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tracing::{debug, error, warn};

use crate::client::{Client, Facts};
use crate::client_memory::Taken;
use crate::command::plan::{Change, StepsFuture};
use crate::connection::{Connection, Slot};
use crate::engine_session::EngineSession;
use crate::lock::lock;
use crate::meter::Batch;
use crate::pause::Pause;
use crate::shared::{Item, Shared, Tray};
use crate::slot_token::{GENERATION_MASK, PLACES_MAX, SlotToken};

/// The token of the waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
const RING: Token = Token(usize::MAX - 1);
const FIRST_LISTENER: usize = usize::MAX - 64;
/// Bytes read from a socket at once.
const READ_BYTES: usize = 128 << 10;
/// Rounds of a turn before the sockets are looked at again.
const ROUNDS_MAX: usize = 4;
/// How often idle and stalled clients are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// A thread that serves clients.
pub(crate) struct Worker {
    engine: Rc<EngineSession>,
    poll: Poll,
    registry: Arc<mio::Registry>,
    listeners: Vec<Listener>,
    /// Whether clients may be left whom no event tells of any more.
    clients_wait: bool,
    next_worker: usize,
    connections: Vec<Option<Box<Connection>>>,
    free_places: Vec<usize>,
    next_generation: u32,
    tasks: Vec<Option<Task>>,
    free_tasks: Vec<usize>,
    runnable: Vec<usize>,
    dirty: Vec<usize>,
    spare: Vec<Slot>,
    change: Change,
    read_buffer: Vec<u8>,
    /// Empty; for the replies of a connection that has no memory for them.
    spare_output: Vec<u8>,
    ahead: pipeline_prefetch::LookAhead,
    batch: Batch,
    in_flight: usize,
    aside: usize,
    stall: StallSeen,
    gate: turnstile::Turnstile,
    began: Instant,
    swept: Instant,
    attended: Attended,
    /// When the clock was last read, as [`Worker::elapsed_ns`] has it.
    read_ns: u64,
    pause: Pause,
    completes: Completes,
    seen_kills: u64,
}

/// What a worker last saw of a device that holds writes up.
#[derive(Debug, Clone, Copy, Default)]
struct StallSeen {
    /// Writes of its own are put off.
    own: bool,
    /// Those of some worker are.
    any: bool,
}

/// A command of several steps.
struct Task {
    future: StepsFuture,
    token: SlotToken,
    touches: Touches,
}

/// What a command of several steps has to do with the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touches {
    Entries,
    Nothing,
}

/// How the worker learns of what the device has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completes {
    /// The event queue says so.
    Signalled,
    /// The device does its work when it is asked for outcomes.
    WhenPolled,
}

impl Worker {
    /// A worker that takes new clients from `listeners`.
    pub(crate) fn new(
        shared: Arc<Shared>,
        number: usize,
        session: Session,
        poll: Poll,
        listeners: Vec<Listener>,
    ) -> std::io::Result<Worker> {
        let rings = session.poll_fds();
        for ring in &rings {
            poll.registry().register(&mut SourceFd(ring), RING, Interest::READABLE)?;
        }
        let mut worker = Worker {
            engine: Rc::new(EngineSession::new(shared, session, number)),
            registry: Arc::new(poll.registry().try_clone()?),
            poll,
            listeners,
            clients_wait: false,
            next_worker: 0,
            connections: Vec::new(),
            free_places: Vec::new(),
            next_generation: 0,
            tasks: Vec::new(),
            free_tasks: Vec::new(),
            runnable: Vec::new(),
            dirty: Vec::new(),
            spare: Vec::new(),
            change: Change::default(),
            read_buffer: vec![0; READ_BYTES],
            spare_output: Vec::new(),
            ahead: pipeline_prefetch::LookAhead::default(),
            batch: Batch::default(),
            in_flight: 0,
            aside: 0,
            stall: StallSeen::default(),
            gate: turnstile::Turnstile::default(),
            began: Instant::now(),
            swept: Instant::now(),
            attended: Attended::default(),
            read_ns: 0,
            pause: Pause::None,
            completes: if rings.is_empty() { Completes::WhenPolled } else { Completes::Signalled },
            seen_kills: 0,
        };
        for (place, listener) in worker.listeners.iter_mut().enumerate() {
            let token = Token(FIRST_LISTENER + place);
            worker.poll.registry().register(listener.source(), token, Interest::READABLE)?;
        }
        worker.sweep();
        Ok(worker)
    }

    /// Serves until the server stops, then finishes what is in flight.
    ///
    /// # Errors
    /// The system's event queue fails.
    pub(crate) fn serve(mut self) -> std::io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while !self.engine.shared.is_stopping() {
            let timeout = self.timeout();
            self.turn(&mut events, timeout)?;
        }
        self.finish(&mut events)
    }

    /// One turn; waits for events no longer than `timeout`.
    fn turn(&mut self, events: &mut Events, timeout: Duration) -> std::io::Result<()> {
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let now = now();
        self.engine.set_now(now);
        self.look_for_pause(now);
        for event in events.iter() {
            match event.token() {
                WAKER => self.take_items(),
                RING => {}
                Token(token) if token >= FIRST_LISTENER => self.accept(token - FIRST_LISTENER),
                Token(place) => self.note_event(place, event),
            }
        }
        self.engine.operations.resume_yielded();
        for _ in 0..ROUNDS_MAX {
            self.run_connections();
            self.run_tasks();
            self.hand_over_reads();
            self.take_outcomes(now);
            self.run_tasks();
            self.look_for_stall();
            self.end_round();
            if self.runnable.is_empty() {
                break;
            }
        }
        self.hand_over_reads();
        // Before the replies: whoever has one finds its command in the figures. The bytes that are
        // written then are in those of the next turn.
        self.engine.shared.meters[self.engine.worker].record(&mut self.batch);
        self.write_dirty();
        if self.swept.elapsed() >= SWEEP {
            self.sweep();
        }
        Ok(())
    }

    /// How long a turn may wait for events.
    fn timeout(&self) -> Duration {
        let goes_on = !self.runnable.is_empty() || self.gate.rounds_left > 0;
        if goes_on || self.engine.operations.has_yielded() {
            return Duration::ZERO;
        }
        match (self.engine.session().in_flight(), self.completes) {
            (0, _) if self.pause != Pause::None => Duration::from_millis(1),
            (0, _) => SWEEP,
            (_, Completes::Signalled) => Duration::from_millis(1),
            (_, Completes::WhenPolled) => Duration::ZERO,
        }
    }

    /// Whether commands are paused at `now`.
    fn look_for_pause(&mut self, now: Timestamp) {
        let present = self.engine.shared.pauses.at(now);
        let before = std::mem::replace(&mut self.pause, present);
        if before != Pause::None && self.pause != before {
            self.resume_all();
        }
    }

    /// Goes on with every connection that was stalled.
    fn resume_all(&mut self) {
        for place in 0..self.connections.len() {
            if self.connections[place].as_ref().is_some_and(|connection| connection.stalled) {
                self.make_runnable(place);
            }
        }
    }

    /// Notes whether the device holds writes up, of this worker or of another, and goes on with
    /// what waited for that once it is over.
    fn look_for_stall(&mut self) {
        let own = self.engine.session().put_off_bytes() > 0;
        let shared = &self.engine.shared;
        if std::mem::replace(&mut self.stall.own, own) != own {
            match own {
                true => _ = shared.stalled_workers.fetch_add(1, Ordering::Relaxed),
                false => {
                    shared.stalled_workers.fetch_sub(1, Ordering::Relaxed);
                    shared.trays.iter().for_each(Tray::wake);
                }
            }
        }
        let any = shared.stalled_workers.load(Ordering::Relaxed) > 0;
        if std::mem::replace(&mut self.stall.any, any) && !any {
            self.resume_all();
        }
    }

    /// Hands the reads that were gathered to the device.
    fn hand_over_reads(&mut self) {
        if let Err(error) = self.engine.session().flush() {
            error!("reads cannot be handed to the device: {error}");
        }
    }

    /// Takes what others put into the tray.
    fn take_items(&mut self) {
        let engine = Rc::clone(&self.engine);
        while let Some(item) = engine.shared.trays[engine.worker].take() {
            match item {
                Item::Connection(stream, facts) => self.add(*stream, facts),
                Item::Verified(operation, verdict) => {
                    let outcome = crate::operations::OwnedOutcome::Verified(verdict);
                    engine.operations.complete(operation, Ok(outcome));
                }
                Item::Granted(connection, bytes) => self.take_granted(connection, bytes),
                Item::Told(connection, line) => self.show(connection, &line),
                Item::Copied(operation, copied) => {
                    let outcome = copied.map(crate::operations::OwnedOutcome::Copied);
                    engine.operations.complete(operation, outcome);
                }
                Item::Synced(operation, synced) => {
                    let outcome = synced.map(|()| crate::operations::OwnedOutcome::Synced);
                    engine.operations.complete(operation, outcome);
                }
            }
        }
        let kills = engine.shared.clients.kills.load(Ordering::Acquire);
        if std::mem::replace(&mut self.seen_kills, kills) == kills {
            return;
        }
        for place in 0..self.connections.len() {
            let Some(connection) = self.connections[place].as_mut() else {
                continue;
            };
            if connection.client.facts.killed.load(Ordering::Relaxed) {
                connection.broken = true;
                self.make_dirty(place);
            }
        }
    }

    /// Takes new clients from a listener and spreads them over the workers.
    fn accept(&mut self, listener: usize) {
        let shared = Arc::clone(&self.engine.shared);
        loop {
            let stream = match self.listeners.get(listener).map(Listener::accept) {
                Some(Ok(Some(stream))) => stream,
                Some(Ok(None)) | None => return,
                Some(Err(error)) => {
                    error!("clients wait, for none can be taken: {error}");
                    self.clients_wait = true;
                    return;
                }
            };
            let (clients_max, keep_alive) = {
                let config = lock(&shared.config);
                (config.clients_max(), config.keep_alive())
            };
            if shared.clients.count() >= clients_max {
                refuse(stream, &shared);
                continue;
            }
            if let Some(keep_alive) = keep_alive {
                stream.keep_alive(keep_alive);
            }
            let worker = self.next_worker % shared.trays.len();
            self.next_worker += 1;
            // It counts from here on, whenever its worker takes it.
            let facts = shared.clients.enter(worker, stream.addresses().clone(), now().0);
            if worker == self.engine.worker {
                self.add(stream, facts);
            } else {
                shared.trays[worker].put(Item::Connection(Box::new(stream), facts));
            }
        }
    }

    /// Serves one more client.
    fn add(&mut self, mut stream: Stream, facts: Arc<Facts>) {
        let shared = &self.engine.shared;
        let place = self.free_places.last().copied().unwrap_or(self.connections.len());
        if place >= PLACES_MAX || stream.register(&self.registry, Token(place)).is_err() {
            shared.clients.refused.fetch_add(1, Ordering::Relaxed);
            shared.clients.leave(facts.id);
            return;
        }
        self.free_places.pop();
        self.next_generation = (self.next_generation + 1) & GENERATION_MASK;
        let token = SlotToken::new(place, self.next_generation, 0);
        let client = Rc::new(Client::new(facts, shared.users().initial(), token));
        let limits = input::limits_of(shared, &client);
        let mut connection = Connection::new(stream, client, self.next_generation, limits);
        // Whoever did so on its way here told this worker already.
        connection.broken = connection.client.facts.killed.load(Ordering::Relaxed);
        if place == self.connections.len() {
            self.connections.push(None);
        }
        debug!("client {} is served", connection.client.facts.address);
        self.connections[place] = Some(Box::new(connection));
        self.make_runnable(place);
    }

    /// Ends the connection at `place`.
    fn remove(&mut self, place: usize) {
        let Some(mut connection) = self.connections[place].take() else {
            return;
        };
        let shared = &self.engine.shared;
        connection.stream.close();
        // The descriptor is closed next, which takes it out of the event queue in any case.
        let _ = connection.stream.deregister();
        debug!("client {} has left", connection.client.facts.address);
        shared.clients.leave(connection.client.facts.id);
        shared.monitors.leave(&connection.client);
        let token = SlotToken::new(place, connection.generation, 0);
        if connection.claim.is_waiting() {
            shared.hand_out(shared.memory.leave(self.engine.worker, token));
        }
        shared.memory.settle(connection.claim.granted);
        shared.hand_out(shared.memory.change(connection.taken, Taken::default()));
        // Nobody asks for these any more.
        let held_back = connection.slots.iter().filter(|slot| slot.held_back > 0).count();
        self.in_flight -= held_back;
        self.aside -= held_back;
        let asked = connection.asked;
        drop(connection);
        self.free_places.push(place);
        if asked {
            self.leave_gate(token);
        }
    }

    /// Notes what an event says of the connection at `place`.
    fn note_event(&mut self, place: usize, event: &mio::event::Event) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            connection.readable = true;
            // No other event tells of the end behind the bytes.
            connection.last_read |= event.is_read_closed();
            self.make_runnable(place);
        }
        if event.is_writable() {
            self.make_dirty(place);
        }
    }

    fn make_runnable(&mut self, place: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(place)
            && !connection.runnable
        {
            connection.runnable = true;
            self.runnable.push(place);
        }
    }

    fn make_dirty(&mut self, place: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(place)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push(place);
        }
    }

    /// Nanoseconds since the worker began.
    fn elapsed_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Looks for clients that were silent or took no bytes for too long, and at what may be set
    /// while the server runs.
    fn sweep(&mut self) {
        self.swept = Instant::now();
        if std::mem::take(&mut self.clients_wait) {
            (0..self.listeners.len()).for_each(|listener| self.accept(listener));
        }
        let (idle, stall) = {
            let config = lock(&self.engine.shared.config);
            (config.idle_timeout().as_millis() as u64, config.stall_timeout().as_millis() as u64)
        };
        let now = now().0;
        // While the process did not run, or before the clock was set, nobody could be late.
        let was_away = self.attended.was_away(Duration::from_millis(now));
        let is_awaited = self.engine.shared.memory.is_awaited();
        for place in 0..self.connections.len() {
            let Some(connection) = self.connections[place].as_mut() else {
                continue;
            };
            if was_away {
                connection.forgive(now);
            }
            let is_stuck = connection.is_stuck(now, stall);
            if is_stuck || (is_awaited && connection.is_hoarding(now, stall)) {
                let address = &connection.client.facts.address;
                let what = if is_stuck { "took and sent nothing" } else { "sent nothing more" };
                warn!("client {address} is closed: it {what} for `stall-timeout`");
            } else if !connection.is_idle(now, idle) {
                continue;
            }
            connection.broken = true;
            self.make_dirty(place);
        }
        self.take_in_all(now);
    }

    /// Finishes what is in flight, writes what is owed, and closes all connections.
    fn finish(mut self, events: &mut Events) -> std::io::Result<()> {
        for listener in &mut self.listeners {
            // Clients that are not taken yet see the socket close with the process.
            let _ = self.poll.registry().deregister(listener.source());
        }
        self.listeners.clear();
        let timeout = lock(&self.engine.shared.config).shutdown_timeout();
        let began = Instant::now();
        while began.elapsed() < timeout {
            for connection in self.connections.iter_mut().flatten() {
                connection.client.closing.set(true);
            }
            for place in 0..self.connections.len() {
                self.make_dirty(place);
            }
            let unfinished = self.connections.iter().flatten().any(|c| !c.is_finished());
            if !unfinished && self.in_flight == 0 {
                break;
            }
            self.turn(events, Duration::from_millis(5))?;
        }
        for place in 0..self.connections.len() {
            self.remove(place);
        }
        self.abandon_gate();
        Ok(())
    }
}

/// Tells a client that there are too many.
fn refuse(mut stream: Stream, shared: &Shared) {
    shared.clients.refused.fetch_add(1, Ordering::Relaxed);
    // The client may be gone already; nothing is owed to it.
    let _ = stream.write(b"-ERR max number of clients reached\r\n");
    stream.close();
}
