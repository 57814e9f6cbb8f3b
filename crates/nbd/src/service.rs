//! The event loop: clients' sockets on one side, volumes on the other.
//!
//! A turn: take what the sockets have, each client its share, hand the requests in it to the
//! volumes, take what they have answered, and write each client's replies with few calls.
//!
//! Invariants:
//! 1. Nothing waits inside a turn, and the loop never sleeps while a client could go on.
//! 2. A stop answers everything that was begun, refuses what comes after, and ends within
//!    [`STOP_GRACE`] even if clients take no bytes.

mod administrators;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use entresol_device::{Attended, KeepAlive};
use entresol_net::{AdminAccess, Listener, Stream, Tls};
use entresol_volume::{Completion, Moment, Volumes};
use entresol_wire::nbd::{Availability, TlsRule};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use tracing::{debug, error};

use crate::connection::{Connection, Turn};
use crate::control::{self, Administrator};
use crate::error::NbdError;
use crate::figures::Figures;
use crate::listen::{Listening, NbdOptions, NbdPorts};
use crate::pending::{Asker, Pending};
use crate::published::Published;
use crate::stall_watch::{StallWatch, is_spoken_for};

/// A server of volumes, its sockets open. Clients that connect wait until it serves.
pub struct NbdServer {
    listening: Listening,
    poll: Poll,
    stop: Arc<Stop>,
}

/// Stops a server, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Stop>);

#[derive(Debug)]
struct Stop {
    asked: AtomicBool,
    waker: Waker,
}

const WAKER: Token = Token(usize::MAX);
const VOLUMES: Token = Token(usize::MAX - 1);
const CONTROL: Token = Token(usize::MAX - 2);
const FIRST_LISTENER: usize = usize::MAX - 64;
const FIRST_ADMINISTRATOR: usize = 1 << 32;
/// Most clients at a time.
const CONNECTIONS_MAX: usize = 4096;
/// Most administrators at a time.
const ADMINISTRATORS_MAX: usize = 64;
/// Bytes read from a socket at once.
const READ_BYTES: usize = 256 << 10;
/// Rounds of a turn before the sockets are looked at again.
const ROUNDS_MAX: usize = 4;
/// How often slow handshakes are looked for and figures are published.
const SWEEP: Duration = Duration::from_secs(1);
/// How soon volumes with requests in flight are asked again if no descriptor says so.
const ASK_AGAIN: Duration = Duration::from_millis(1);
/// Silence after which a client is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(300);
/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(300);
/// How long a stop waits for clients and volumes.
const STOP_GRACE: Duration = Duration::from_secs(10);

impl NbdServer {
    /// Opens the sockets that `options` name.
    ///
    /// # Errors
    /// A socket, a file or a limit of the system stands against it.
    pub fn open(options: &NbdOptions) -> Result<NbdServer, NbdError> {
        let listening = Listening::open(options)?;
        let system = |error| NbdError::System("an event queue cannot be made", error);
        let poll = Poll::new().map_err(system)?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(system)?;
        let stop = Arc::new(Stop { asked: AtomicBool::new(false), waker });
        Ok(NbdServer { listening, poll, stop })
    }

    /// Where clients reach it.
    pub fn ports(&self) -> &NbdPorts {
        &self.listening.ports
    }

    /// What stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Its certificates, which can be read again while it serves; none without TLS.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.listening.tls.clone()
    }

    /// Who sees the pages of the HTTP interface, which can be read again while it serves.
    pub fn admin_access(&self) -> Arc<AdminAccess> {
        Arc::clone(&self.listening.admin_access)
    }

    /// Serves `volumes` until it is stopped; `clock` tells their moments. What the volumes have not
    /// answered within ten seconds of a stop is left to their owner.
    ///
    /// `alive` is called once a second or more often as long as the event loop goes on, or waits
    /// for the cache device, though at most for [`DEVICE_WAIT_MAX`](crate::DEVICE_WAIT_MAX). By it
    /// whoever watches over the process is told.
    ///
    /// # Errors
    /// The system's event queue fails.
    pub fn serve(
        self,
        volumes: &mut dyn Volumes,
        clock: &dyn Fn() -> Moment,
        alive: &(dyn Fn() + Sync),
    ) -> Result<(), NbdError> {
        let NbdServer { mut listening, poll, stop } = self;
        let published = Arc::new(Published::new());
        let admin = listening.admin.take();
        let control = listening.control.as_ref().and_then(Listener::another);
        let stall_watch = StallWatch::new(volumes.devices(), control);
        let service = Service::new(listening, poll, Arc::clone(&stop), volumes, clock);
        let system = |error| NbdError::System("an event queue failed", error);
        std::thread::scope(|scope| {
            if let Some(admin) = admin {
                let published = Arc::clone(&published);
                scope.spawn(move || admin.serve(&*published));
            }
            let watched = Arc::clone(&published);
            scope.spawn(move || {
                let speak = |published: &Published| {
                    if is_spoken_for(published) {
                        alive();
                    }
                };
                stall_watch.watch(&watched, &speak);
            });
            let served = service.and_then(|mut service| service.serve(&published, alive));
            published.close();
            served.map_err(system)
        })
    }
}

impl std::fmt::Debug for NbdServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NbdServer").field("ports", self.ports()).finish_non_exhaustive()
    }
}

impl Stopper {
    /// Asks for a stop: what was begun is answered.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::Release);
        // Without a wake-up the loop looks at its next sweep.
        let _ = self.0.waker.wake();
    }
}

struct Service<'a> {
    listening: Listening,
    poll: Poll,
    registry: Arc<mio::Registry>,
    stop: Arc<Stop>,
    volumes: &'a mut dyn Volumes,
    clock: &'a dyn Fn() -> Moment,
    connections: Vec<Option<(Instant, Box<Connection>)>>,
    administrators: Vec<Option<Administrator>>,
    next_generation: u32,
    runnable: VecDeque<usize>,
    stalled: Vec<usize>,
    dirty: Vec<usize>,
    pending: Pending,
    figures: Figures,
    scratch: Vec<u8>,
    held_bytes: usize,
    completions: Vec<Completion>,
    /// Set when a stop was asked for.
    stops_at: Option<Instant>,
    /// The server stops when its only client has left.
    serves_one: bool,
}

impl<'a> Service<'a> {
    fn new(
        listening: Listening,
        poll: Poll,
        stop: Arc<Stop>,
        volumes: &'a mut dyn Volumes,
        clock: &'a dyn Fn() -> Moment,
    ) -> std::io::Result<Service<'a>> {
        let mut service = Service {
            listening,
            registry: Arc::new(poll.registry().try_clone()?),
            poll,
            stop,
            volumes,
            clock,
            connections: Vec::new(),
            administrators: Vec::new(),
            next_generation: 0,
            runnable: VecDeque::new(),
            stalled: Vec::new(),
            dirty: Vec::new(),
            pending: Pending::default(),
            figures: Figures::default(),
            scratch: vec![0; READ_BYTES],
            held_bytes: 0,
            completions: Vec::new(),
            stops_at: None,
            serves_one: false,
        };
        let registry = service.poll.registry();
        for (place, listener) in service.listening.listeners.iter_mut().enumerate() {
            let token = Token(FIRST_LISTENER + place);
            registry.register(listener.source(), token, Interest::READABLE)?;
        }
        if let Some(control) = &mut service.listening.control {
            registry.register(control.source(), CONTROL, Interest::READABLE)?;
        }
        service.watch_volumes();
        if let Some(client) = service.listening.only_client.take() {
            service.serves_one = true;
            service.add(client);
        }
        Ok(service)
    }

    fn serve(&mut self, published: &Published, alive: &dyn Fn()) -> std::io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut swept = Instant::now();
        let began = Instant::now();
        let mut attended = Attended::default();
        self.publish(published);
        loop {
            self.turn(&mut events)?;
            alive();
            if swept.elapsed() >= SWEEP {
                swept = Instant::now();
                // While the process did not run, no handshake could go on.
                match attended.was_away(began.elapsed()) {
                    true => self.forgive(),
                    false => self.sweep(),
                }
                self.publish(published);
            }
            let is_asked = self.stop.asked.load(Ordering::Acquire)
                || (self.serves_one && self.figures.connections == 0);
            if is_asked && self.stops_at.is_none() {
                self.begin_stop();
            }
            if let Some(stops_at) = self.stops_at
                && (self.is_drained() || Instant::now() >= stops_at)
            {
                self.sweep();
                return Ok(());
            }
        }
    }

    /// One turn.
    fn turn(&mut self, events: &mut Events) -> std::io::Result<()> {
        match self.poll.poll(events, Some(self.timeout())) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in events.iter() {
            match event.token() {
                VOLUMES => {}
                WAKER | CONTROL => self.accept_administrators(),
                Token(token) if token >= FIRST_LISTENER => self.accept(token - FIRST_LISTENER),
                Token(token) if token >= FIRST_ADMINISTRATOR => {
                    self.hear(token - FIRST_ADMINISTRATOR);
                }
                Token(place) => self.note_event(place, event),
            }
        }
        for _ in 0..ROUNDS_MAX {
            self.advance_connections();
            self.ask_volumes();
            self.write_dirty();
            self.unstall();
            if self.runnable.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn now(&self) -> Moment {
        (self.clock)()
    }

    /// How long a turn may wait for events.
    fn timeout(&self) -> Duration {
        if !self.runnable.is_empty() {
            return Duration::ZERO;
        }
        let longest = match self.pending.is_empty() && self.stops_at.is_none() {
            true => SWEEP,
            false => ASK_AGAIN,
        };
        match self.volumes.wake_at() {
            Some(at) => longest.min(Duration::from_nanos(at.0.saturating_sub(self.now().0))),
            None => longest,
        }
    }

    /// Lets each client that can go on have its share.
    fn advance_connections(&mut self) {
        for _ in 0..self.runnable.len() {
            let Some(place) = self.runnable.pop_front() else {
                return;
            };
            let more = self.with(place, |connection, turn| {
                connection.runnable = false;
                connection.advance(turn)
            });
            self.make_dirty(place);
            match self.connection(place) {
                Some(connection) if connection.stalled => self.stalled.push(place),
                _ => {}
            }
            if more == Some(true) {
                self.make_runnable(place);
            }
        }
    }

    /// Hands over what was submitted, and answers what the volumes have.
    fn ask_volumes(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let now = self.now();
            let mut completions = std::mem::take(&mut self.completions);
            self.volumes.turn(now, &mut completions);
            let answered = !completions.is_empty();
            for completion in completions.drain(..) {
                self.finish(completion, now);
            }
            self.completions = completions;
            if !answered {
                return;
            }
        }
    }

    fn finish(&mut self, completion: Completion, now: Moment) {
        let Some(waiting) = self.pending.remove(completion.token) else {
            error!("a volume answered token {} twice", completion.token);
            return;
        };
        self.figures.answered(waiting.asked.kind(), now.0.saturating_sub(waiting.since_ns));
        match waiting.asker {
            Asker::Client(place, generation) => {
                let is_there =
                    self.connection(place).is_some_and(|found| found.generation == generation);
                if is_there {
                    self.with(place, |connection, turn| {
                        connection.answer(&waiting, completion.result, turn);
                    });
                    self.make_dirty(place);
                } else {
                    self.held_bytes -= waiting.bytes;
                }
            }
            Asker::Administrator(place, generation) => {
                let found = self.administrators.get_mut(place).and_then(Option::as_mut);
                if let Some(found) = found.filter(|found| found.generation == generation) {
                    found.waits = false;
                    found.answer(&control::outcome(&completion.result));
                    self.hear(place);
                }
            }
        }
    }

    /// Writes to clients that are owed something, and ends those that are done with.
    fn write_dirty(&mut self) {
        while let Some(place) = self.dirty.pop() {
            self.with(place, |connection, turn| connection.write(turn));
            let stops = self.stops_at.is_some();
            let Some(connection) = self.connection(place) else {
                continue;
            };
            let is_left = stops && connection.is_idle() && !connection.readable;
            if connection.is_over() || is_left {
                self.remove(place);
            } else if connection.readable && !connection.stalled {
                self.make_runnable(place);
            }
        }
    }

    /// Clients that waited for room look again.
    fn unstall(&mut self) {
        for place in std::mem::take(&mut self.stalled) {
            let held = self.held_bytes;
            match self.connection(place) {
                Some(connection) if connection.may_go_on(held) => self.make_runnable(place),
                Some(_) => self.stalled.push(place),
                None => {}
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        loop {
            match self.listening.listeners.get(listener).map(Listener::accept) {
                Some(Ok(Some(stream))) if self.figures.connections < CONNECTIONS_MAX as u64 => {
                    self.add(stream);
                }
                Some(Ok(Some(_))) => self.figures.refused += 1,
                Some(Ok(None)) | None => return,
                Some(Err(error)) => {
                    error!("clients wait, for none can be taken: {error}");
                    return;
                }
            }
        }
    }

    fn add(&mut self, mut stream: Stream) {
        let free = self.connections.iter().position(Option::is_none);
        let place = free.unwrap_or(self.connections.len());
        if stream.register(&self.registry, Token(place)).is_err() {
            self.figures.refused += 1;
            return;
        }
        // What it is sent waits for as long as it stands still: a paused guest comes back.
        stream.keep_alive(KeepAlive::after(SILENCE));
        debug!("client {} is served", stream.addresses().remote);
        self.next_generation = self.next_generation.wrapping_add(1);
        let connection = Box::new(Connection::new(stream, self.next_generation));
        if place == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[place] = Some((Instant::now(), connection));
        self.figures.accepted += 1;
        self.figures.connections += 1;
        self.make_runnable(place);
        self.make_dirty(place);
    }

    fn remove(&mut self, place: usize) {
        if let Some((_, mut connection)) = self.connections[place].take() {
            debug!("client {} has left", connection.stream.addresses().remote);
            connection.stream.close();
            connection.leave(&mut self.held_bytes);
            // The descriptor is closed next, which takes it out of the event queue in any case.
            let _ = connection.stream.deregister();
            self.figures.connections -= 1;
        }
    }

    /// Enters the descriptors of volumes into the event queue; those that are in it stay.
    fn watch_volumes(&self) {
        for descriptor in self.volumes.poll_fds() {
            let mut source = SourceFd(&descriptor);
            let registry = self.poll.registry();
            match registry.register(&mut source, VOLUMES, Interest::READABLE) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    error!("a volume's descriptor cannot be watched: {error}");
                }
                _ => {}
            }
        }
    }

    fn note_event(&mut self, place: usize, event: &mio::event::Event) {
        let Some(connection) = self.connection(place) else {
            return;
        };
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            connection.readable = true;
            self.make_runnable(place);
        }
        if event.is_writable() {
            self.make_dirty(place);
        }
    }

    fn make_runnable(&mut self, place: usize) {
        if let Some(connection) = self.connection(place)
            && !connection.runnable
        {
            connection.runnable = true;
            self.runnable.push_back(place);
        }
    }

    fn make_dirty(&mut self, place: usize) {
        if !self.dirty.contains(&place) {
            self.dirty.push(place);
        }
    }

    fn connection(&mut self, place: usize) -> Option<&mut Connection> {
        let slot = self.connections.get_mut(place)?.as_mut();
        slot.map(|(_, connection)| &mut **connection)
    }

    /// Does something to the connection at `place`, with all it needs.
    fn with<T>(
        &mut self,
        place: usize,
        act: impl FnOnce(&mut Connection, &mut Turn<'_>) -> T,
    ) -> Option<T> {
        let now = self.now();
        let (_, connection) = self.connections.get_mut(place)?.as_mut()?;
        let availability = match self.stops_at {
            None => Availability::Serving,
            Some(_) => Availability::Stopping,
        };
        let tls = self.listening.tls.as_ref().map(|tls| tls.config());
        let mut turn = Turn {
            place,
            volumes: self.volumes,
            pending: &mut self.pending,
            figures: &mut self.figures,
            scratch: &mut self.scratch,
            now,
            tls: tls.as_ref(),
            tls_rule: if self.listening.tls.is_some() {
                self.listening.tls_rule
            } else {
                TlsRule::Off
            },
            availability,
            held_bytes: &mut self.held_bytes,
        };
        Some(act(connection, &mut turn))
    }

    /// Begins the time of all handshakes anew.
    fn forgive(&mut self) {
        for (since, _) in self.connections.iter_mut().flatten() {
            *since = Instant::now();
        }
    }

    /// Ends handshakes that take too long, and looks again at what an event may have been lost of.
    fn sweep(&mut self) {
        for place in 0..self.connections.len() {
            let Some((since, connection)) = self.connections[place].as_mut() else {
                continue;
            };
            if connection.is_in_handshake() && since.elapsed() > HANDSHAKE_MAX {
                connection.broken = true;
                self.make_dirty(place);
            }
        }
        // A listener tells of those who wait only once, which may have been while there was no
        // room for them.
        for listener in 0..self.listening.listeners.len() {
            self.accept(listener);
        }
        self.accept_administrators();
        self.watch_volumes();
        if let Some(sentence) = self.figures.take_failures() {
            error!("a request failed: {sentence}");
        }
    }

    /// Puts the figures where other threads find them.
    fn publish(&mut self, published: &Published) {
        self.figures.held_bytes = self.held_bytes as u64;
        let Listening { tls, admin_access, .. } = &self.listening;
        self.figures.certificate_end_seconds = tls.as_ref().and_then(|tls| tls.end_seconds());
        self.figures.admin_certificate_end_seconds = admin_access.tls().and_then(Tls::end_seconds);
        let report = control::report(self.volumes, self.figures.json());
        published.show(report, &self.figures.take_interval());
    }

    /// Takes no more clients; those that are there hear of it.
    fn begin_stop(&mut self) {
        self.stops_at = Some(Instant::now() + STOP_GRACE);
        self.listening.listeners.clear();
        self.listening.control = None;
        for place in 0..self.connections.len() {
            if self.connections[place].is_some() {
                self.make_runnable(place);
                self.make_dirty(place);
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.connections.iter().all(Option::is_none) && self.pending.is_empty()
    }
}
