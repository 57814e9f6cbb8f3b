//! Who is connected: what commands know of their client, and what other threads may know.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use entresol_net::Addresses;
use entresol_tier::{Expiry, SpaceId, Version};
use entresol_wire::resp::{OwnedArguments, Protocol};

use crate::absences::Absence;
use crate::backup::Backup;
use crate::command::spec::{Spec, WRITE};
use crate::lock::lock;
use crate::slot_token::SlotToken;
use crate::users::User;

/// Files that a server has open beside its clients' sockets: devices, event queues, visitors of the
/// HTTP interface.
const OTHER_FILES: u64 = 512;

/// A client, as the thread that serves it knows it.
pub(crate) struct Client {
    /// What other threads may know.
    pub(crate) facts: Arc<Facts>,
    /// Its connection, with slot number 0.
    pub(crate) connection: SlotToken,
    /// The table that commands work on.
    pub(crate) space: Cell<SpaceId>,
    /// The version that replies are written in.
    pub(crate) protocol: Cell<Protocol>,
    /// Who the client is; `None` until it has said so.
    pub(crate) user: RefCell<Option<Arc<User>>>,
    /// The commands since `MULTI`.
    pub(crate) transaction: RefCell<Option<Transaction>>,
    /// The entries that must not change before `EXEC`.
    pub(crate) watched: RefCell<WatchList>,
    /// Bytes of memory that the `EXEC` under way takes.
    executed_bytes: Cell<usize>,
    /// Which replies the client wants.
    pub(crate) silence: Cell<Silence>,
    /// Whether the client watches every command.
    pub(crate) is_monitor: Cell<bool>,
    /// The snapshot that it copies: it ends with the connection at the latest.
    pub(crate) backup: RefCell<Option<Rc<Backup>>>,
    /// Whether the connection ends once its replies are written.
    pub(crate) closing: Cell<bool>,
}

/// Which replies a client wants (`CLIENT REPLY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Silence {
    /// All.
    #[default]
    Off,
    /// None.
    On,
    /// Not the one to the next command.
    Once,
}

/// Commands to be carried out as one.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// The commands in order.
    pub(crate) commands: Vec<(&'static Spec, OwnedArguments)>,
    /// Bytes of memory that they take.
    pub(crate) bytes: usize,
    /// Whether one of them was refused already.
    pub(crate) aborted: bool,
}

/// What an entry was when it was watched.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Its table.
    pub(crate) space: SpaceId,
    /// Its key.
    pub(crate) key: Vec<u8>,
    /// Its state.
    pub(crate) state: WatchedState,
}

/// What one client watches.
#[derive(Debug, Default)]
pub(crate) struct WatchList {
    entries: Vec<Watched>,
    /// The keys of its entries.
    keys: HashSet<(SpaceId, Vec<u8>)>,
    bytes: usize,
}

impl WatchList {
    /// Adds an entry.
    pub(crate) fn push(&mut self, watched: Watched) {
        // The watch over an absent key has a copy of its own.
        self.bytes += 2 * size_of::<Watched>() + 3 * watched.key.len();
        self.keys.insert((watched.space, watched.key.clone()));
        self.entries.push(watched);
    }

    /// Whether the entry is in it.
    pub(crate) fn has(&self, space: SpaceId, key: &[u8]) -> bool {
        !self.keys.is_empty() && self.keys.contains(&(space, key.to_vec()))
    }

    /// All entries.
    pub(crate) fn entries(&self) -> &[Watched] {
        &self.entries
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The state of an entry under `WATCH`.
#[derive(Debug)]
pub(crate) enum WatchedState {
    /// It was there.
    Present(Version, Expiry),
    /// It was not.
    Absent(Absence),
}

impl WatchedState {
    /// Whether nothing has changed, now that the entry is as `present` says.
    pub(crate) fn holds(&self, present: Option<(Version, Expiry)>) -> bool {
        match (self, present) {
            (WatchedState::Present(version, expiry), present) => {
                present == Some((*version, *expiry))
            }
            (WatchedState::Absent(absence), None) => !absence.has_ended(),
            (WatchedState::Absent(_), Some(_)) => false,
        }
    }
}

impl Client {
    /// A client that just connected.
    pub(crate) fn new(facts: Arc<Facts>, user: Option<Arc<User>>, connection: SlotToken) -> Client {
        Client {
            facts,
            connection,
            space: Cell::default(),
            protocol: Cell::default(),
            user: RefCell::new(user),
            transaction: RefCell::default(),
            watched: RefCell::default(),
            executed_bytes: Cell::default(),
            silence: Cell::default(),
            is_monitor: Cell::new(false),
            backup: RefCell::default(),
            closing: Cell::new(false),
        }
    }

    /// Changes the table that commands work on.
    pub(crate) fn select(&self, space: SpaceId) {
        self.space.set(space);
        self.facts.space.store(space.0, Ordering::Relaxed);
    }

    /// Changes the version that replies are written in.
    pub(crate) fn speak(&self, protocol: Protocol) {
        self.protocol.set(protocol);
        self.facts.speaks_resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }

    /// Makes the client `user`.
    pub(crate) fn become_user(&self, user: Arc<User>) {
        *lock(&self.facts.user) = user.name.clone();
        *self.user.borrow_mut() = Some(user);
    }

    /// Forgets transaction and watches.
    pub(crate) fn discard(&self) {
        *self.transaction.borrow_mut() = None;
        self.forget_watched();
        self.facts.queued.store(NOT_QUEUING, Ordering::Relaxed);
    }

    /// Forgets what is watched; what it was.
    pub(crate) fn forget_watched(&self) -> WatchList {
        std::mem::take(&mut *self.watched.borrow_mut())
    }

    /// Takes transaction and watches for `EXEC`; `None` outside a transaction. Their memory counts
    /// until [`Client::end_execution`].
    pub(crate) fn begin_execution(&self) -> Option<(Transaction, WatchList)> {
        let transaction = self.transaction.borrow_mut().take()?;
        let watched = self.forget_watched();
        self.facts.queued.store(NOT_QUEUING, Ordering::Relaxed);
        self.executed_bytes.set(transaction.bytes + watched.bytes());
        Some((transaction, watched))
    }

    /// Whether a command of the transaction so far writes.
    pub(crate) fn is_about_to_write(&self) -> bool {
        let transaction = self.transaction.borrow();
        transaction.iter().flat_map(|one| &one.commands).any(|(spec, _)| spec.has(WRITE))
    }

    /// Whether a transaction that has commands is being carried out.
    pub(crate) fn is_executing(&self) -> bool {
        self.executed_bytes.get() > 0
    }

    /// Says that nothing is left of what [`Client::begin_execution`] took.
    pub(crate) fn end_execution(&self) {
        self.executed_bytes.set(0);
    }

    /// Bytes of memory that transaction and watches take, those being carried out too.
    pub(crate) fn kept_bytes(&self) -> usize {
        let queued = self.transaction.borrow().as_ref().map_or(0, |t| t.bytes);
        queued + self.watched.borrow().bytes() + self.executed_bytes.get()
    }

    /// Whether the reply to the present command is unwanted; steps on to the next command.
    pub(crate) fn take_silence(&self) -> bool {
        match self.silence.get() {
            Silence::Off => false,
            Silence::On => true,
            Silence::Once => {
                self.silence.set(Silence::Off);
                true
            }
        }
    }
}

/// [`Facts::queued`] outside a transaction.
pub(crate) const NOT_QUEUING: usize = usize::MAX;

/// What every thread may know of a client.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) id: u64,
    pub(crate) worker: usize,
    pub(crate) address: String,
    pub(crate) local_address: String,
    pub(crate) connected_ms: u64,
    pub(crate) active_ms: AtomicU64,
    pub(crate) space: AtomicU16,
    pub(crate) speaks_resp3: AtomicBool,
    pub(crate) last_command: AtomicU16,
    pub(crate) queued: AtomicUsize,
    /// A pause keeps its next command from beginning.
    pub(crate) paused: AtomicBool,
    pub(crate) buffered_bytes: AtomicUsize,
    pub(crate) killed: AtomicBool,
    pub(crate) evictable: AtomicBool,
    pub(crate) name: Mutex<String>,
    pub(crate) library: Mutex<(String, String)>,
    pub(crate) user: Mutex<String>,
}

/// All clients of the server. Thread-safe.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    /// Connections accepted since the start.
    pub(crate) accepted: AtomicU64,
    /// Connections refused for there were too many.
    pub(crate) refused: AtomicU64,
    /// How often someone asked for clients to be closed.
    pub(crate) kills: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Facts>>>,
}

impl Clients {
    /// Enters a client served by `worker`.
    pub(crate) fn enter(&self, worker: usize, addresses: Addresses, now_ms: u64) -> Arc<Facts> {
        let facts = Arc::new(Facts {
            id: self.next_id.fetch_add(1, Ordering::Relaxed) + 1,
            worker,
            address: addresses.remote,
            local_address: addresses.local,
            connected_ms: now_ms,
            active_ms: AtomicU64::new(now_ms),
            space: AtomicU16::new(0),
            speaks_resp3: AtomicBool::new(false),
            last_command: AtomicU16::new(u16::MAX),
            queued: AtomicUsize::new(NOT_QUEUING),
            paused: AtomicBool::new(false),
            buffered_bytes: AtomicUsize::new(0),
            killed: AtomicBool::new(false),
            evictable: AtomicBool::new(true),
            name: Mutex::default(),
            library: Mutex::default(),
            user: Mutex::new("default".to_owned()),
        });
        self.accepted.fetch_add(1, Ordering::Relaxed);
        lock(&self.all).insert(facts.id, Arc::clone(&facts));
        facts
    }

    /// Strikes a client off.
    pub(crate) fn leave(&self, id: u64) {
        lock(&self.all).remove(&id);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.all).len()
    }

    /// How many a pause holds.
    pub(crate) fn paused(&self) -> usize {
        lock(&self.all).values().filter(|facts| facts.paused.load(Ordering::Relaxed)).count()
    }

    /// All clients, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Facts>> {
        lock(&self.all).values().cloned().collect()
    }
}

/// How many of `clients` can be connected where so many files may be open.
pub(crate) fn clients_within(files: u64, clients: usize) -> usize {
    let room = files - OTHER_FILES.min(files / 2);
    clients.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1)
}

#[cfg(test)]
mod tests {
    use super::clients_within;

    #[test]
    fn clients_leave_files_for_what_else_a_server_opens() {
        for (files, clients, expected) in [
            (u64::MAX, 10_000, 10_000),
            (10_512, 10_000, 10_000),
            (10_511, 10_000, 9_999),
            (1024, 10_000, 512),
            (64, 10_000, 32),
            (64, 20, 20),
            (0, 20, 1),
        ] {
            assert_eq!(clients_within(files, clients), expected, "{files} {clients}");
        }
    }
}
