//! What all threads of a server share.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use entresol_device::PendingIo;
use entresol_host::{FIGURES_WAIT, PendingAges, now, set_log_level};
use entresol_net::{AdminAccess, Stream, Tls};
use entresol_page::Interval;
use entresol_tier::{Error, Snapshot, SnapshotRead, SnapshotSegment, Statistics, Tiered};
use entresol_wire::resp::Arguments;
use mio::Waker;

use crate::absences::Absences;
use crate::backup::Copied;
use crate::certificates::Certificate;
use crate::client::{Client, Clients, Facts};
use crate::client_memory::{Claim, ClientMemory};
use crate::command::spec::Spec;
use crate::config::Config;
use crate::history::{History, Totals};
use crate::lock::lock;
use crate::meter::{Counted, Measured, Meter};
use crate::monitors::Monitors;
use crate::operations::{OperationId, PasswordMatch};
use crate::pause::Pauses;
use crate::recent::{Counts, Recent};
use crate::slot_token::SlotToken;
use crate::survey::Survey;
use crate::transaction_gate::{TransactionGate, Wake};
use crate::users::Users;

/// What all threads of a server share. Thread-safe.
pub(crate) struct Shared {
    /// The store.
    pub(crate) tier: Arc<Tiered>,
    /// The configuration; `CONFIG SET` changes it.
    pub(crate) config: Mutex<Config>,
    /// Who may do what.
    users: RwLock<Arc<Users>>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) admin_access: Arc<AdminAccess>,
    /// What is known of drives.
    pub(crate) certificates: Vec<Certificate>,
    /// Who is connected.
    pub(crate) clients: Clients,
    /// Who watches every command.
    pub(crate) monitors: Monitors,
    /// Absent keys that clients have under `WATCH`.
    pub(crate) absences: Arc<Absences>,
    /// The gate between shared and exclusive commands.
    pub(crate) gate: TransactionGate,
    /// The measurements, one meter a worker.
    pub(crate) meters: Vec<Meter>,
    /// What `CONFIG RESETSTAT` has `INFO` leave out.
    pub(crate) forgotten: Mutex<Counted>,
    /// The commands that took long.
    pub(crate) slow: Mutex<SlowCommands>,
    /// From how many nanoseconds on a command is one of them; the most there are: none is.
    slow_ns: AtomicU64,
    /// Which commands wait for the end of a pause.
    pub(crate) pauses: Pauses,
    pub(crate) recent: Recent,
    /// What the console draws; `None` where there is none.
    pub(crate) history: Option<History>,
    /// What the entries of databases are.
    pub(crate) survey: Arc<Survey>,
    /// Whether the console looks at a key now.
    pub(crate) looking: Arc<AtomicBool>,
    /// Whether the server is stopping.
    pub(crate) stopping: AtomicBool,
    /// When it started.
    pub(crate) started: Instant,
    /// A number that differs from run to run.
    pub(crate) seed: u64,
    /// Seconds since the epoch of the last sync that someone asked for.
    pub(crate) last_save_seconds: AtomicU64,
    /// Whether someone asked for a sync in the background.
    pub(crate) wants_sync: AtomicBool,
    /// For how long requests to the device have not been answered.
    pending: PendingAges,
    /// Workers whose writes wait for the device to take what it has.
    pub(crate) stalled_workers: AtomicUsize,
    /// The memory of all clients.
    pub(crate) memory: ClientMemory,
    /// Where clients reach the server.
    pub(crate) ports: OnceLock<Ports>,
    /// The workers' in-trays.
    pub(crate) trays: Vec<Tray>,
    /// Where passwords are compared.
    pub(crate) verifier: SyncSender<Comparison>,
    /// Where those wait who asked for a sync.
    pub(crate) savers: SyncSender<Saver>,
    /// Where those wait who copy the store.
    pub(crate) copiers: SyncSender<Copier>,
    /// Where a stop is asked for.
    pub(crate) stop: Sender<()>,
    limits: Limits,
}

/// Limits that do not change while the server runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) databases: u16,
    pub(crate) request_bytes_max: usize,
    pub(crate) output_bytes_max: usize,
    pub(crate) pipeline_max: usize,
}

/// Where clients reach the server.
#[derive(Debug, Clone, Default)]
pub struct Ports {
    /// TCP addresses of RESP.
    pub resp: Vec<SocketAddr>,
    /// The Unix socket of RESP.
    pub unix: Option<std::path::PathBuf>,
    /// The address of the HTTP interface.
    pub admin: Option<SocketAddr>,
}

/// A worker's in-tray: others put something in and wake it.
pub(crate) struct Tray {
    pub(crate) waker: Waker,
    items: Mutex<VecDeque<Item>>,
}

/// What is put into a worker's in-tray.
pub(crate) enum Item {
    /// A connection to serve, of a client that was entered.
    Connection(Box<Stream>, Arc<Facts>),
    /// The end of a comparison of passwords.
    Verified(OperationId, PasswordMatch),
    /// The end of a sync.
    Synced(OperationId, Result<(), Error>),
    /// What was read of a snapshot, or a snapshot.
    Copied(OperationId, Result<Copied, Error>),
    /// Memory that a connection claimed.
    Granted(SlotToken, usize),
    /// What a monitoring connection is told.
    Told(SlotToken, Arc<[u8]>),
}

/// Who waits for a sync.
pub(crate) struct Saver {
    pub(crate) worker: usize,
    pub(crate) operation: OperationId,
}

/// Who waits for a snapshot, or for a part of one.
pub(crate) struct Copier {
    pub(crate) worker: usize,
    pub(crate) operation: OperationId,
    pub(crate) wanted: Wanted,
}

/// What a copier waits for.
pub(crate) enum Wanted {
    /// A snapshot of the store, to be read only while nothing else wants a processor, or at once.
    Snapshot { when_idle: bool },
    /// Bytes of a segment of one.
    Bytes {
        snapshot: Arc<Snapshot>,
        segment: SnapshotSegment,
        offset: u64,
        length: usize,
        when_idle: bool,
    },
    /// The same bytes, which the device has given, or why it did not.
    Given { snapshot: Arc<Snapshot>, read: Result<SnapshotRead, Error> },
}

/// A password to compare with its hash.
pub(crate) struct Comparison {
    pub(crate) worker: usize,
    pub(crate) operation: OperationId,
    pub(crate) password: Vec<u8>,
    pub(crate) hash: String,
}

/// Commands that took long, the latest first.
#[derive(Debug, Default)]
pub(crate) struct SlowCommands {
    pub(crate) next_id: u64,
    pub(crate) entries: VecDeque<SlowCommand>,
}

/// A command that took long.
#[derive(Debug, Clone)]
pub(crate) struct SlowCommand {
    pub(crate) id: u64,
    pub(crate) at_seconds: u64,
    pub(crate) microseconds: u64,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) address: String,
    pub(crate) name: String,
}

/// What a [`Shared`] is made of.
pub(crate) struct Parts {
    pub(crate) tier: Arc<Tiered>,
    pub(crate) config: Config,
    pub(crate) users: Users,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) admin_access: Arc<AdminAccess>,
    /// What is known of drives.
    pub(crate) certificates: Vec<Certificate>,
    pub(crate) wakers: Vec<Waker>,
    pub(crate) verifier: SyncSender<Comparison>,
    pub(crate) savers: SyncSender<Saver>,
    pub(crate) copiers: SyncSender<Copier>,
    pub(crate) stop: Sender<()>,
    pub(crate) client_bytes_max: usize,
}

impl Shared {
    /// The shared state of a server about to start.
    pub(crate) fn new(parts: Parts) -> Shared {
        let workers = parts.wakers.len();
        let now = now();
        let limits = Limits {
            databases: parts.config.databases(),
            request_bytes_max: parts.config.request_bytes_max(),
            output_bytes_max: parts.config.output_bytes_max(),
            pipeline_max: parts.config.pipeline_max(),
        };
        let lender = Arc::clone(&parts.tier);
        let has_console = parts.config.admin_port().is_some();
        let meter = if has_console { Meter::with_intervals } else { Meter::new };
        Shared {
            tier: parts.tier,
            slow_ns: AtomicU64::new(slow_ns_of(&parts.config)),
            config: Mutex::new(parts.config),
            users: RwLock::new(Arc::new(parts.users)),
            tls: parts.tls,
            admin_access: parts.admin_access,
            certificates: parts.certificates,
            clients: Clients::default(),
            monitors: Monitors::default(),
            absences: Arc::default(),
            gate: TransactionGate::new(workers),
            meters: (0..workers).map(|_| meter()).collect(),
            forgotten: Mutex::default(),
            slow: Mutex::default(),
            pauses: Pauses::default(),
            recent: Recent::default(),
            history: has_console.then(History::default),
            survey: Arc::default(),
            looking: Arc::default(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            seed: random_seed(),
            last_save_seconds: AtomicU64::new(now.0 / 1000),
            wants_sync: AtomicBool::new(false),
            pending: PendingAges::default(),
            stalled_workers: AtomicUsize::new(0),
            memory: ClientMemory::new(parts.client_bytes_max, lender, limits.databases),
            ports: OnceLock::new(),
            trays: parts
                .wakers
                .into_iter()
                .map(|waker| Tray { waker, items: Mutex::default() })
                .collect(),
            verifier: parts.verifier,
            savers: parts.savers,
            copiers: parts.copiers,
            stop: parts.stop,
            limits,
        }
    }

    /// Limits that do not change while the server runs.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// How many spaces clients reach.
    pub(crate) fn spaces(&self) -> u16 {
        self.limits.databases
    }

    /// Most bytes of replies that may wait for one client.
    pub(crate) fn output_bytes_max(&self) -> usize {
        self.limits.output_bytes_max
    }

    /// Bytes of replies from which on no more commands of a client are taken: a part of what it may
    /// have waiting, and of what all clients may.
    pub(crate) fn stall_bytes(&self) -> usize {
        self.limits.output_bytes_max.min(self.memory.max()) / 4
    }

    /// Has `worker` serve a client that came before there were workers.
    pub(crate) fn admit(&self, worker: usize, stream: Stream) {
        if let Some(keep_alive) = lock(&self.config).keep_alive() {
            stream.keep_alive(keep_alive);
        }
        let facts = self.clients.enter(worker, stream.addresses().clone(), now().0);
        self.trays[worker].put(Item::Connection(Box::new(stream), facts));
    }

    /// Tells those whose turn it is to take the memory that they claimed.
    pub(crate) fn hand_out(&self, claims: Vec<Claim>) {
        for claim in claims {
            self.trays[claim.worker].put(Item::Granted(claim.connection, claim.bytes));
        }
    }

    /// From how many nanoseconds on a command is kept for `SLOWLOG`; `None`: none is.
    pub(crate) fn slow_ns(&self) -> Option<u64> {
        Some(self.slow_ns.load(Ordering::Relaxed)).filter(|slow_ns| *slow_ns != u64::MAX)
    }

    /// Lets `changed` hold instead of `config`, from the next command on.
    pub(crate) fn change_config(&self, config: &mut Config, changed: Config) {
        self.slow_ns.store(slow_ns_of(&changed), Ordering::Relaxed);
        set_log_level(changed.log_level());
        *config = changed;
    }

    /// Who may use the server now.
    pub(crate) fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on clients say that they are one of these.
    pub(crate) fn set_users(&self, users: Users) {
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(users);
    }

    /// Wakes whom the gate says.
    pub(crate) fn wake(&self, whom: Wake) {
        match whom {
            Wake::Nobody => {}
            Wake::Worker(worker) => self.trays[worker].wake(),
            Wake::Everyone => self.trays.iter().for_each(Tray::wake),
        }
    }

    /// Tells those who watch of a command that `client` gives.
    pub(crate) fn tell_monitors(&self, client: &Client, spec: &Spec, arguments: Arguments<'_>) {
        let Some((monitors, line)) = self.monitors.tell(client, spec, arguments) else {
            return;
        };
        for monitor in monitors {
            let item = Item::Told(monitor.connection, Arc::clone(&line));
            self.trays[monitor.worker].put(item);
        }
    }

    /// The oldest request that the device has not answered.
    pub(crate) fn oldest_pending(&self) -> Option<PendingIo> {
        self.pending.oldest(&self.tier)
    }

    /// The figures of the store, which may be those of before while the device does not answer: its
    /// shards may be locked then.
    pub(crate) fn statistics_in_time(&self) -> Statistics {
        self.tier.statistics_within(FIGURES_WAIT)
    }

    /// All measurements together.
    pub(crate) fn measured(&self) -> Measured {
        let mut total = Measured::new();
        self.meters.iter().for_each(|meter| meter.add_to(&mut total));
        total
    }

    /// Bytes of the memory cap that are in use, of which `figures` tell the store's.
    pub(crate) fn used_bytes(&self, figures: &Statistics) -> u64 {
        let clients = self.memory.used() as u64;
        let store = figures.index_bytes + figures.buffer_bytes + figures.cache_bytes;
        store + figures.other_bytes + clients
    }

    /// Looks at what the server does, for the figures of the second before.
    pub(crate) fn look(&self) {
        let counts = self.meters.iter().map(Meter::counts).fold(Counts::default(), Counts::and);
        let store = self.statistics_in_time();
        let at = self.started.elapsed();
        self.recent.look(at, counts, self.used_bytes(&store));
        if let Some(history) = &self.history {
            let mut interval = Interval::default();
            self.meters.iter().for_each(|meter| meter.take_interval(&mut interval));
            history.look(Totals::of(at, counts, &store), &interval);
        }
    }

    /// When the certificate ends that clients are shown, seconds since the epoch.
    pub(crate) fn certificate_end_seconds(&self) -> Option<u64> {
        self.tls.as_ref().and_then(|tls| tls.end_seconds())
    }

    /// When that of the HTTP interface ends.
    pub(crate) fn admin_certificate_end_seconds(&self) -> Option<u64> {
        self.admin_access.tls().and_then(Tls::end_seconds)
    }

    /// Whether the server is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Keeps a command that took long.
    pub(crate) fn keep_slow(&self, mut command: SlowCommand) {
        let entries_max = lock(&self.config).slow_entries_max();
        let mut slow = lock(&self.slow);
        command.id = slow.next_id;
        slow.next_id += 1;
        slow.entries.push_front(command);
        slow.entries.truncate(entries_max);
    }
}

impl Tray {
    /// Puts `item` in and wakes the worker.
    pub(crate) fn put(&self, item: Item) {
        lock(&self.items).push_back(item);
        self.wake();
    }

    /// Takes the oldest item out.
    pub(crate) fn take(&self) -> Option<Item> {
        lock(&self.items).pop_front()
    }

    /// Wakes the worker. Failure means that it is gone, which its thread's end reports.
    pub(crate) fn wake(&self) {
        let _ = self.waker.wake();
    }
}

/// A number that differs from run to run and cannot be told from outside.
pub(crate) fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The threshold of slow commands that `config` sets, in nanoseconds.
fn slow_ns_of(config: &Config) -> u64 {
    config.slow_threshold_us().map_or(u64::MAX, |threshold| threshold.saturating_mul(1000))
}
