//! A running server: its threads, from the first to the last.
//!
//! Threads: one for each worker; one that calls the store's `maintain`; one that compares
//! passwords; one that syncs for those who wait for it; one that looks whether the device answers;
//! one for HTTP if asked for. All end when the server stops. A look at a key from the console has a
//! thread of its own as long as it takes, which the stop does not wait for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use entresol_host::{Systemd, Upkeep, allow_open_files, keep, now, start_log};
use entresol_net::{Admin, AdminAccess, Listener, Stream, Tls};
use entresol_tier::{Error, SessionOptions, SessionUsers, Tiered};
use mio::{Poll, Waker};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use crate::certificates::{self, Certificate};
use crate::client::clients_within;
use crate::config::Config;
use crate::copying;
use crate::data;
use crate::error::ServeError;
use crate::listen;
use crate::loading;
use crate::lock::lock;
use crate::reload;
use crate::shared::{Comparison, Item, Parts, Ports, Saver, Shared};
use crate::users::{Users, verify};
use crate::watch::watch;
use crate::worker::{WAKER, Worker};

/// Passwords that wait to be compared.
const COMPARISONS_MAX: usize = 64;
/// Clients that wait for a sync at a time.
const SAVERS_MAX: usize = 10_000;
/// Parts of snapshots that are waited for: a client keeps some in flight.
const COPIERS_MAX: usize = 64;

/// A server about to start.
#[derive(Debug)]
pub struct Server;

/// A server that is running. Dropping it stops it.
pub struct RunningServer {
    shared: Arc<Shared>,
    threads: Vec<(&'static str, JoinHandle<Result<(), ServeError>>)>,
    stop: Mutex<Receiver<()>>,
    is_closed: bool,
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningServer").field("ports", self.ports()).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts serving `tier` as `config` says; returns once clients can connect. Keys of the
    /// configuration that name or shape the store are not looked at.
    ///
    /// # Errors
    /// An address, a file or a limit of the system stands against it.
    pub fn start(config: Config, tier: Arc<Tiered>) -> Result<RunningServer, ServeError> {
        Doors::open(&config)?.serve(config, tier, Vec::new())
    }
}

/// Everything a server needs besides its store, found to be in order.
struct Doors {
    users: Users,
    tls: Option<Arc<Tls>>,
    listeners: Vec<Listener>,
    ports: Ports,
    admin: Option<Admin>,
    admin_access: Arc<AdminAccess>,
    certificates: Vec<Certificate>,
}

impl Doors {
    /// Reads the users and certificates and opens the sockets. Clients that connect wait.
    fn open(config: &Config) -> Result<Doors, ServeError> {
        let users = match config.users() {
            Some(path) => Users::read(&path)?,
            None => Users::open(),
        };
        let tls = config.tls()?.map(Tls::open).transpose()?.map(Arc::new);
        let (listeners, mut ports) = listen::open(config, &users, tls.as_ref())?;
        let admin_access = Arc::new(AdminAccess::open(config.admin_token(), config.admin_tls()?)?);
        let admin = match config.admin_port() {
            Some(port) => Some(Admin::open(config.admin_bind(), port, Arc::clone(&admin_access))?),
            None => None,
        };
        ports.admin = admin.as_ref().map(Admin::address);
        let folder = config.drive_certificates();
        let certificates = folder.as_deref().map_or(Ok(Vec::new()), certificates::read)?;
        let open = ports.admin.filter(|address| !address.ip().is_loopback());
        if let Some(open) = open.filter(|_| !admin_access.is_closed()) {
            warn!(
                "the HTTP interface at {open} can be reached from other machines and asks for no \
                 password: whoever reaches it sees all figures, and no entries; `admin-token` \
                 names a file with a word to ask for"
            );
        }
        Ok(Doors { users, tls, listeners, ports, admin, admin_access, certificates })
    }

    /// Serves `tier`, `early` clients first; returns once others can connect.
    fn serve(
        self,
        config: Config,
        tier: Arc<Tiered>,
        early: Vec<Stream>,
    ) -> Result<RunningServer, ServeError> {
        let Doors { users, tls, listeners, ports, admin, admin_access, certificates } = self;
        let system = |error| ServeError::System("an event queue cannot be made", error);
        let mut polls = Vec::new();
        let mut wakers = Vec::new();
        for _ in 0..config.threads() {
            let poll = Poll::new().map_err(system)?;
            wakers.push(Waker::new(poll.registry(), WAKER).map_err(system)?);
            polls.push(poll);
        }
        let (verifier, comparisons) = sync_channel(COMPARISONS_MAX);
        let (savers, asked) = sync_channel(SAVERS_MAX);
        let (copiers, wanted) = sync_channel(COPIERS_MAX);
        let (stop, stopped) = channel();
        let client_bytes_max = data::client_memory_bytes(config.memory_bytes()) as usize;
        let depth = config.io_depth();
        let parts = Parts {
            tier,
            config,
            users,
            tls,
            admin_access,
            certificates,
            wakers,
            verifier,
            savers,
            copiers,
            stop,
            client_bytes_max,
        };
        let shared = Arc::new(Shared::new(parts));
        shared.ports.get_or_init(|| ports);
        let mut server = RunningServer {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            stop: Mutex::new(stopped),
            is_closed: false,
        };
        let mut listeners = Some(listeners);
        for (number, poll) in polls.into_iter().enumerate() {
            let listeners = listeners.take().unwrap_or_default();
            server.start_worker(number, depth, poll, listeners)?;
        }
        for (number, stream) in early.into_iter().enumerate() {
            shared.admit(number % shared.trays.len(), stream);
        }
        let state = Arc::clone(&shared);
        server.spawn("maintenance", move || maintain(state))?;
        let state = Arc::clone(&shared);
        server.spawn("passwords", move || compare(&state, &comparisons))?;
        let state = Arc::clone(&shared);
        server.spawn("syncs", move || sync(&state, &asked))?;
        let state = Arc::clone(&shared);
        let (reader, reads) = channel();
        server.spawn("backups", move || copying::look_after(&state, &wanted, &reader))?;
        let state = Arc::clone(&shared);
        server.spawn("backup-reads", move || copying::read(&state, &reads))?;
        let state = Arc::clone(&shared);
        server.spawn("watch", move || watch(&state))?;
        if let Some(admin) = admin {
            server.spawn("admin", move || {
                let cannot = |error| ServeError::System("the HTTP interface cannot wait", error);
                admin.serve(&*shared).map_err(cannot)
            })?;
        }
        Ok(server)
    }
}

impl RunningServer {
    /// Where clients reach the server.
    pub fn ports(&self) -> &Ports {
        static NONE: Ports = Ports { resp: Vec::new(), unix: None, admin: None };
        self.shared.ports.get().unwrap_or(&NONE)
    }

    /// Waits until a client asks for a stop (`SHUTDOWN`), at most `timeout`; whether one did.
    pub fn wait_for_stop(&self, timeout: Duration) -> bool {
        match lock(&self.stop).recv_timeout(timeout) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => {
                self.threads.iter().any(|(_, thread)| thread.is_finished())
            }
            Err(RecvTimeoutError::Disconnected) => true,
        }
    }

    /// Reads users, certificates and the configuration file again; clients that are there go on.
    /// The log says what changed.
    ///
    /// # Errors
    /// A sentence for each of them that cannot be used and stays as it was.
    pub fn reload(&self) -> Result<(), Vec<String>> {
        reload::all(&self.shared)
    }

    /// Stops cleanly: takes no more clients, finishes what is in flight, writes what is owed, and
    /// closes the store.
    ///
    /// # Errors
    /// A thread failed, or the store could not be closed.
    pub fn stop(mut self) -> Result<(), ServeError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), ServeError> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.trays.iter().for_each(|tray| tray.wake());
        let mut result = Ok(());
        for (name, thread) in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| {
                let error = std::io::Error::other(format!("thread `{name}` panicked"));
                Err(ServeError::System("a thread of the server ended", error))
            });
            result = result.and(ended);
        }
        result.and(self.shared.tier.close(now()).map_err(ServeError::from))
    }

    fn start_worker(
        &mut self,
        number: usize,
        depth: usize,
        poll: Poll,
        listeners: Vec<Listener>,
    ) -> Result<(), ServeError> {
        let shared = Arc::clone(&self.shared);
        let (ready, is_ready) = mpsc::channel();
        self.spawn("worker", move || {
            let users = SessionUsers::One;
            let options = SessionOptions { depth, users, ..SessionOptions::default() };
            let made = shared.tier.session(options).map_err(ServeError::from).and_then(|session| {
                Worker::new(shared, number, session, poll, listeners)
                    .map_err(|error| ServeError::System("a worker cannot be made", error))
            });
            match made {
                Ok(worker) => {
                    let _ = ready.send(Ok(()));
                    worker.serve().map_err(|e| ServeError::System("an event queue failed", e))
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    Ok(())
                }
            }
        })?;
        is_ready.recv().unwrap_or_else(|_| {
            let error = std::io::Error::other("it panicked");
            Err(ServeError::System("a worker did not start", error))
        })
    }

    fn spawn(
        &mut self,
        name: &'static str,
        body: impl FnOnce() -> Result<(), ServeError> + Send + 'static,
    ) -> Result<(), ServeError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let thread = thread.map_err(|e| ServeError::System("a thread cannot be made", e))?;
        self.threads.push((name, thread));
        Ok(())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            error!("the server did not stop cleanly: {error}");
        }
    }
}

/// Serves what `config` names until a signal or a client asks for a stop. The first line of the
/// standard output names the ports.
///
/// # Errors
/// The store cannot be opened, the server cannot start, or it does not stop cleanly.
pub fn serve(config: Config) -> Result<(), ServeError> {
    let given = config.clone();
    run(config).map_err(|error| given.located(error))
}

fn run(mut config: Config) -> Result<(), ServeError> {
    start_log(config.log_level(), config.log_format());
    let read = config.file().map_or("none".into(), |file| file.display().to_string());
    info!(
        "entresol {}, process {}, configuration file: {read}",
        env!("CARGO_PKG_VERSION"),
        std::process::id()
    );
    let opening = Arc::new(AtomicBool::new(true));
    let mut signals =
        signals(&opening).map_err(|error| ServeError::System("signals cannot be taken", error))?;
    limit_clients(&mut config)?;
    // First what is quick and cheap to refuse: a new data file may take minutes to make.
    let mut doors = Doors::open(&config)?;
    let open = || data::open(&config, now());
    let (tier, early) = loading::answer_while(&mut doors.listeners, config.clients_max(), open)
        .map_err(|error| ServeError::System("an event queue cannot be made", error))?;
    let tier = tier?;
    opening.store(false, Ordering::SeqCst);
    let server = doors.serve(config, Arc::clone(&tier), early).inspect_err(|_| {
        // Nothing was served: a checkpoint spares the next start a recovery.
        if let Err(error) = tier.close(now()) {
            error!("the store was not closed cleanly: {error}");
        }
    })?;
    drop(tier);
    announce(server.ports())
        .map_err(|error| ServeError::System("the ports cannot be written", error))?;
    info!("ready");
    let systemd = Systemd::ready();
    while !server.wait_for_stop(Duration::from_millis(50)) {
        systemd.alive();
        let came: Vec<i32> = signals.pending().collect();
        if came.iter().any(|signal| *signal != SIGHUP) {
            break;
        }
        if !came.is_empty() {
            // The log says what cannot be used.
            systemd.reload(|| drop(server.reload()));
        }
    }
    systemd.stopping();
    info!("stopping: finishing what is in flight");
    server.stop()?;
    info!("stopped");
    Ok(())
}

/// Lets the process have the files open that the clients of `config` take; where it may not, there
/// are fewer clients. Those beyond it would wait, neither taken nor refused.
pub(crate) fn limit_clients(config: &mut Config) -> Result<(), ServeError> {
    let Some(files) = allow_open_files() else {
        return Ok(());
    };
    let (wanted, clients_max) = (config.clients_max(), clients_within(files, config.clients_max()));
    if clients_max < wanted {
        warn!(
            "`maxclients` is {clients_max} instead of {wanted}: the process may have {files} files \
             open; raise that (`ulimit -Hn`, `LimitNOFILE=` of the unit)"
        );
        config.set("maxclients", &clients_max.to_string())?;
    }
    Ok(())
}

/// The signals that ask for a clean stop, and SIGHUP, which asks for a reload. While `opening`, the
/// former end the process at once: a data file may take minutes to make, and nothing is lost that
/// the next opening would miss.
fn signals(opening: &Arc<AtomicBool>) -> std::io::Result<Signals> {
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(opening))?;
    }
    Signals::new([SIGTERM, SIGINT, SIGHUP])
}

/// Writes the line that names the ports.
fn announce(ports: &Ports) -> std::io::Result<()> {
    use std::io::Write;
    let mut line = String::from("listening");
    if let Some(address) = ports.resp.first() {
        line.push_str(&format!(" port={}", address.port()));
    }
    if let Some(path) = &ports.unix {
        line.push_str(&format!(" unix={}", path.display()));
    }
    if let Some(address) = ports.admin {
        line.push_str(&format!(" admin={}", address.port()));
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Does the store's background work until the server stops.
fn maintain(shared: Arc<Shared>) -> Result<(), ServeError> {
    let tier = Arc::clone(&shared.tier);
    keep(&tier, &mut ServerUpkeep(shared));
    Ok(())
}

/// The upkeep of a server's store, with the syncs that clients ask for and do not wait for.
struct ServerUpkeep(Arc<Shared>);

impl Upkeep for ServerUpkeep {
    fn is_over(&self) -> bool {
        self.0.is_stopping()
    }

    fn prepare(&mut self) {
        if self.0.wants_sync.swap(false, Ordering::AcqRel) {
            match self.0.tier.sync() {
                Ok(()) => self.0.last_save_seconds.store(now().0 / 1000, Ordering::Relaxed),
                Err(error) => error!("a sync failed: {error}"),
            }
        }
    }

    fn report(&mut self, error: &Error) {
        error!("background work fails: {error}");
    }
}

/// Compares passwords until the server stops and nobody waits any more.
fn compare(shared: &Shared, comparisons: &Receiver<Comparison>) -> Result<(), ServeError> {
    loop {
        // Asked first: what came before the stop is in the queue then.
        let stops = shared.is_stopping();
        match comparisons.recv_timeout(Duration::from_millis(100)) {
            Ok(Comparison { worker, operation, password, hash }) => {
                let verdict = verify(&password, &hash);
                shared.trays[worker].put(Item::Verified(operation, verdict));
            }
            Err(RecvTimeoutError::Timeout) if !stops => {}
            Err(_) => return Ok(()),
        }
    }
}

/// Syncs for those who ask, all who wait at a time together, until the server stops.
fn sync(shared: &Shared, asked: &Receiver<Saver>) -> Result<(), ServeError> {
    loop {
        let first = match asked.recv_timeout(Duration::from_millis(100)) {
            Ok(saver) => saver,
            // Whoever waits still is answered before the end.
            Err(RecvTimeoutError::Timeout) if !shared.is_stopping() => continue,
            Err(_) => return Ok(()),
        };
        let savers: Vec<Saver> = std::iter::once(first).chain(asked.try_iter()).collect();
        let started = now();
        let synced = shared.tier.sync();
        if synced.is_ok() {
            shared.last_save_seconds.store(started.0 / 1000, Ordering::Relaxed);
        }
        for Saver { worker, operation } in savers {
            let outcome = match &synced {
                Ok(()) => Ok(()),
                Err(error) => Err(Error::new(error.kind(), error.to_string())),
            };
            shared.trays[worker].put(Item::Synced(operation, outcome));
        }
    }
}

/// The configuration of a running server as text, for messages.
pub(crate) fn memory_cap(shared: &Shared) -> u64 {
    lock(&shared.config).memory_bytes()
}
