//! Entresol embedded: two threads, each with a session that keeps 64 operations in flight, and one
//! thread for background work. The store is filled to the plan's share of its capacity.
//!
//! Writes survive the death of the process, as those of the peers' unsynced logs and page caches
//! do; in the synced phase they survive power loss, 32 in flight from each of the two threads.

use std::path::PathBuf;
use std::sync::Arc;

use entresol_device::{Device, FileDevice, FileOptions};
use entresol_host::{Background, now};
use entresol_tier::{
    Admission, Durability, Error, ErrorKind, Key, Operation, Outcome, PutOptions,
    Result as EngineResult, Session, SessionOptions, SessionUsers, SpaceId, StoreOptions, Tiered,
    TieredOptions, Timestamp,
};

use crate::contestant::{Contestant, Result, Settings, play_threads};
use crate::plan::{self, Phase, Plan};
use crate::turn::{Action, Ticket, Turn};

/// A record's header and alignment, bytes: what a store needs above key and value.
const RECORD_OVERHEAD_BYTES: u64 = 48;
const THREADS: usize = 2;

struct Entresol {
    store: Arc<Tiered>,
    background: Option<Background>,
}

/// Opens a store in the directory, with the cache that the plan gives each contestant.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    open_with(settings, Some(settings.plan.cache_bytes))
}

/// Opens a store whose cache is all that the cap leaves, as a page cache is.
pub fn open_with_all_of_the_cap(settings: &Settings) -> Result<Box<dyn Contestant>> {
    open_with(settings, None)
}

fn open_with(settings: &Settings, cache_bytes: Option<u64>) -> Result<Box<dyn Contestant>> {
    let plan = &settings.plan;
    let options = FileOptions { capacity_bytes: Some(capacity(plan)), ..FileOptions::default() };
    let device = FileDevice::open(settings.directory.join("store"), &options)?;
    let shared_memory = PathBuf::from("/dev/shm");
    let store = StoreOptions {
        shards: 2,
        durability: match plan.durability {
            plan::Durability::Memory => Durability::Memory,
            plan::Durability::Process => Durability::Process,
        },
        buffer_directory: shared_memory.is_dir().then_some(shared_memory),
        ..StoreOptions::default()
    };
    let options = TieredOptions {
        store,
        memory_bytes: plan.memory_bytes * 8 / 10,
        cache_bytes,
        admission: Admission::Always,
    };
    let device: Arc<dyn Device> = Arc::new(device);
    let store = Tiered::open(device, options, now())?;
    let background = Background::start(Arc::clone(&store))?;
    Ok(Box::new(Entresol { store, background: Some(background) }))
}

fn capacity(plan: &Plan) -> u64 {
    let data = plan.keys * (plan.record_bytes() + RECORD_OVERHEAD_BYTES);
    (data * 100 / plan.fill_percent).next_multiple_of(1 << 20) + (4 << 20)
}

impl Contestant for Entresol {
    fn workers(&self, _phase: Phase) -> usize {
        THREADS
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        play_threads(turns, |turn| {
            let depth = if turn.phase() == Phase::Synced { 32 } else { 64 };
            let users = SessionUsers::One;
            let session =
                self.store.session(SessionOptions { depth, users, ..Default::default() })?;
            Flight::new(session, turn, depth).play()
        })
    }

    fn flush(&self) -> Result<()> {
        Ok(self.store.sync()?)
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("{} entries", self.store.count(SpaceId::default()))]
    }
}

impl Drop for Entresol {
    fn drop(&mut self) {
        drop(self.background.take());
        // What a close could not write is recovered by the next open.
        let _ = self.store.close(now());
    }
}

/// One session's operations in flight.
struct Flight<'t> {
    session: Session,
    tickets: Tickets<'t>,
    options: PutOptions,
    depth: usize,
}

/// The tickets in flight, by token; apart from the session so that a visit can end them.
struct Tickets<'t> {
    turn: &'t mut Turn,
    slots: Vec<Option<Ticket>>,
    free: Vec<usize>,
    fault: Option<Error>,
    again: Vec<Ticket>,
}

impl<'t> Flight<'t> {
    fn new(session: Session, turn: &'t mut Turn, depth: usize) -> Flight<'t> {
        let synced = turn.phase() == Phase::Synced;
        let durability = synced.then_some(Durability::Synced);
        let tickets = Tickets {
            turn,
            slots: vec![None; depth],
            free: (0..depth).collect(),
            fault: None,
            again: Vec::new(),
        };
        let options = PutOptions { durability, ..PutOptions::default() };
        Flight { session, tickets, options, depth }
    }

    fn play(mut self) -> Result<()> {
        let mut value = Vec::new();
        let mut more = true;
        while more || self.session.in_flight() > 0 || !self.tickets.again.is_empty() {
            let time = now();
            while self.session.in_flight() < self.depth {
                let again = self.tickets.again.pop();
                let Some(ticket) = again.or_else(|| self.tickets.turn.next()) else {
                    more = false;
                    break;
                };
                self.submit(ticket, time, &mut value);
            }
            self.session.flush()?;
            // A batch of completions costs one trip to the kernel; one alone costs the same.
            let wait = (self.session.in_flight() / 4).max(1).min(self.session.in_flight());
            let tickets = &mut self.tickets;
            self.session.poll(wait, time, &mut |token, result| tickets.end(token, result))?;
            if let Some(fault) = self.tickets.fault.take() {
                return Err(fault.into());
            }
            if !self.tickets.again.is_empty() {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn submit(&mut self, ticket: Ticket, time: Timestamp, value: &mut Vec<u8>) {
        let slot = self.tickets.free.pop().expect("in_flight is below depth, so a slot is free");
        self.tickets.slots[slot] = Some(ticket);
        let key = Key::new(SpaceId::default(), &ticket.key);
        let operation = match ticket.action {
            Action::Get | Action::Scan | Action::Pop => Operation::Get { key },
            Action::Put => {
                self.tickets.turn.fill(&ticket, value);
                Operation::Put { key, value, options: self.options }
            }
        };
        let tickets = &mut self.tickets;
        let token = slot as u64;
        self.session.submit(token, time, operation, &mut |token, result| {
            tickets.end(token, result);
        });
    }
}

impl Tickets<'_> {
    fn end(&mut self, token: u64, result: EngineResult<Outcome<'_>>) {
        let slot = usize::try_from(token).expect("tokens are slot numbers");
        let ticket = self.slots[slot].take().expect("each token ends once");
        self.free.push(slot);
        match result {
            Ok(Outcome::Found(entry)) => self.turn.got(&ticket, Some(entry.value)),
            Ok(Outcome::Missing) => self.turn.got(&ticket, None),
            Ok(Outcome::Stored { .. }) => self.turn.put(&ticket),
            Ok(_) => self.turn.refused(&ticket),
            Err(error) if error.kind() == ErrorKind::Busy => self.again.push(ticket),
            Err(error) => self.fault = Some(error),
        }
    }
}
