//! Entresol's ordered tables: two threads, each with a session that keeps half of the operations in
//! flight that peers have threads for, and one thread for merges and reclaim. The store is filled
//! to the plan's share of its capacity.
//!
//! Writes survive the death of the process, as those of the peers' unsynced logs and page caches
//! do. A pop is a scan of one row, then a remove.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use entresol_device::{Device, FileDevice, FileOptions};
use entresol_host::now;
use entresol_tier::{
    Admission, Budget, Durability, Error, ErrorKind, Result as EngineResult, SessionOptions,
    SessionUsers, StoreOptions, Tiered, TieredOptions, Timestamp,
};
use entresol_tree::{
    Action as RowAction, Order, Outcome, RowAt, RowRange, Session, Table, Tree, TreeOptions, Write,
    WriteBatch,
};

use crate::contestant::{Contestant, Result, Settings, play_threads};
use crate::plan::{self, Course, KEY_BYTES, Phase, Plan, QUEUE_LENGTH};
use crate::turn::{Action, Ticket, Turn};

const THREADS: usize = 2;
/// The part of the cap that is not the engine's: the program, its threads, their stacks.
const PROGRAM_BYTES: u64 = 10 << 20;
/// What a change takes in memory besides its bytes.
const CHANGE_SHARE: f64 = 4.0 / 3.0;
/// Memory of inner nodes for a row, with its part of a filter.
const INNER_BYTES: u64 = 4;
/// Bits of a filter for each row, as many as RocksDB's have.
const FILTER_BITS: u8 = 10;
/// Memory of open tables, where there are many small ones.
const OPEN_TABLES_BYTES: u64 = 8 << 20;
/// What a row takes in a leaf besides its bytes, and what pages take besides rows.
const ENTRY_BYTES: u64 = 6;
const PAGES_PERCENT: u64 = 112;
const PAUSE: Duration = Duration::from_millis(1);
const BUDGET: Budget = Budget { segments: 4 };
/// Bytes of the part of a key that names its table, where there are many.
const NAME_BYTES: usize = 8;

struct Tables {
    store: Arc<Tiered>,
    tree: Arc<Tree>,
    course: Course,
    /// Operations in flight of a session.
    depth: usize,
    /// Threads that open tables, each of which waits for that.
    openers: usize,
    merges: Option<Merges>,
}

/// Opens a store with ordered tables in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let plan = &settings.plan;
    let (capacity, journal_bytes) = sizes(plan);
    let options = FileOptions { capacity_bytes: Some(capacity), ..FileOptions::default() };
    let device = FileDevice::open(settings.directory.join("store"), &options)?;
    let shared_memory = PathBuf::from("/dev/shm");
    let store = StoreOptions {
        // Tables use the journal of one shard: that of others would lie idle.
        shards: 1,
        durability: match plan.durability {
            plan::Durability::Memory => Durability::Memory,
            plan::Durability::Process => Durability::Process,
        },
        buffer_directory: shared_memory.is_dir().then_some(shared_memory),
        journal_bytes,
        ..StoreOptions::default()
    };
    let options = TieredOptions {
        store,
        memory_bytes: settings.memory_bytes - PROGRAM_BYTES,
        cache_bytes: Some(plan.cache_bytes),
        admission: Admission::Always,
    };
    let device: Arc<dyn Device> = Arc::new(device);
    let tables = TreeOptions {
        waiting_bytes_max: (plan.waiting_bytes as f64 * CHANGE_SHARE) as u64,
        directory_bytes_max: directory_bytes(plan),
        absent_filter_bits: FILTER_BITS,
        ..TreeOptions::default()
    };
    let store = Tiered::open_reserving(device, options, tables.memory_bytes_max(), now())?;
    let tree = Arc::new(Tree::open(Arc::clone(&store), tables, now())?);
    let merges = Some(Merges::start(Arc::clone(&tree))?);
    let (course, depth) = (plan.course, (plan.threads / THREADS).max(1));
    let openers = plan.threads;
    Ok(Box::new(Tables { store, tree, course, depth, openers, merges }))
}

/// What open tables and inner nodes may take in memory. A small table has none of them once it left
/// memory, but an entry of the index, which has what this leaves.
fn directory_bytes(plan: &Plan) -> u64 {
    match plan.course {
        Course::Tables => OPEN_TABLES_BYTES,
        _ => plan.keys * INNER_BYTES + (1 << 20),
    }
}

/// Bytes of the device, and of the journal on it.
fn sizes(plan: &Plan) -> (u64, u64) {
    let rows = match plan.course {
        Course::Queue => QUEUE_LENGTH + plan.queue,
        _ => plan.keys,
    };
    let data = rows * plan.record_bytes();
    // Merges keep it half empty, and it lets go of changes only as a sweep ends.
    let journal = (data * 35 / 100).max(16 << 20) >> 20 << 20;
    let rest = if plan.course == Course::Tables { TABLE_REST_BYTES } else { 0 };
    let pages = rows * (plan.record_bytes() + ENTRY_BYTES + rest) * PAGES_PERCENT / 100;
    let capacity = (pages * 100 / plan.fill_percent + journal + (20 << 20)).max(journal * 6);
    (capacity >> 20 << 20, journal)
}

/// What a small table's record takes besides its rows, for each of them.
const TABLE_REST_BYTES: u64 = 32;

impl Contestant for Tables {
    fn workers(&self, phase: Phase) -> usize {
        match (phase, self.course) {
            (Phase::Queue, _) => 1,
            (Phase::Load, _) => THREADS,
            (_, Course::Tables) => self.openers,
            _ => THREADS,
        }
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        play_threads(turns, |turn| {
            // The table of a row is opened, and that needs a session with nothing in flight.
            let is_alone = self.course == Course::Tables || turn.phase() == Phase::Queue;
            let depth = if is_alone { 1 } else { self.depth };
            let users = SessionUsers::One;
            let options = SessionOptions { depth, users, read_buffer_bytes: 16 << 10 };
            let session = self.tree.session(options)?;
            Flight::new(session, turn, (depth, self.course))?.play()
        })
    }

    fn flush(&self) -> Result<()> {
        Ok(self.store.sync()?)
    }

    fn quiesce(&self) -> Result<()> {
        self.tree.settle(now())?;
        Ok(self.store.sync()?)
    }

    fn notes(&self) -> Vec<String> {
        let (tree, store) = (self.tree.statistics(), self.store.statistics());
        vec![
            format!("pages read by gets {}, by merges {}", tree.get_reads, tree.merge_reads),
            format!(
                "inner nodes {} KiB, index {} KiB",
                tree.directory_bytes >> 10,
                store.index_bytes >> 10
            ),
            format!(
                "flash live {} of {} MiB",
                store.flash_live_bytes >> 20,
                store.flash_allocated_bytes >> 20
            ),
        ]
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        drop(self.merges.take());
        // What a close could not write is recovered by the next open.
        let _ = self.store.close(now());
    }
}

/// The thread that does merges and reclaim until it is dropped.
struct Merges {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Merges {
    fn start(tree: Arc<Tree>) -> Result<Merges> {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let body = move || {
            while !ended.load(Ordering::Relaxed) {
                // A store that cannot be kept is poisoned: who writes is told so.
                if let Some(rest) = tree.maintain(now(), BUDGET).unwrap_or_default().rest() {
                    std::thread::park_timeout(rest);
                }
            }
        };
        let thread = std::thread::Builder::new().name("merges".to_owned()).spawn(body)?;
        Ok(Merges { over, thread: Some(thread) })
    }
}

impl Drop for Merges {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}

/// One session's operations in flight.
struct Flight<'t> {
    session: Session,
    /// The table, and its name.
    table: (Arc<Table>, [u8; NAME_BYTES]),
    course: Course,
    tickets: Tickets<'t>,
    depth: usize,
}

/// The tickets in flight, by token; apart from the session so that a visit can end them.
struct Tickets<'t> {
    turn: &'t mut Turn,
    slots: Vec<Option<Ticket>>,
    free: Vec<usize>,
    fault: Option<Error>,
    again: VecDeque<Ticket>,
    /// Rows that were popped, to be removed.
    popped: Vec<[u8; KEY_BYTES]>,
    before: Vec<u8>,
    is_small: bool,
}

impl<'t> Flight<'t> {
    fn new(
        mut session: Session,
        turn: &'t mut Turn,
        (depth, course): (usize, Course),
    ) -> Result<Flight<'t>> {
        let table = session.table(now(), &[0; NAME_BYTES])?;
        let tickets = Tickets {
            turn,
            slots: vec![None; depth],
            free: (0..depth).collect(),
            fault: None,
            again: VecDeque::new(),
            popped: Vec::new(),
            before: Vec::new(),
            is_small: course == Course::Tables,
        };
        Ok(Flight { session, table: (table, [0; NAME_BYTES]), course, tickets, depth })
    }

    fn play(mut self) -> Result<()> {
        let mut value = Vec::new();
        let mut more = true;
        while more || self.session.in_flight() > 0 || !self.tickets.again.is_empty() {
            let time = now();
            for _ in 0..self.depth {
                if self.session.in_flight() == self.depth {
                    break;
                }
                let again = self.tickets.again.pop_front();
                let Some(ticket) = again.or_else(|| self.tickets.turn.next()) else {
                    more = false;
                    break;
                };
                self.submit(ticket, time, &mut value)?;
                self.remove_popped(time);
                if !self.tickets.again.is_empty() {
                    // Too many changes wait for merges: so would the others.
                    break;
                }
            }
            self.session.flush()?;
            // A batch of completions costs one trip to the kernel; one alone costs the same.
            let wait = self.session.in_flight().min(1);
            let tickets = &mut self.tickets;
            self.session.poll(wait, time, &mut |token, result| tickets.end(token, result))?;
            self.remove_popped(time);
            if let Some(fault) = self.tickets.fault.take() {
                return Err(fault.into());
            }
            if !self.tickets.again.is_empty() {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// Opens the table of `ticket`, where there are many.
    fn open_table(&mut self, ticket: &Ticket, time: Timestamp) -> Result<()> {
        let name: [u8; NAME_BYTES] = ticket.key[..NAME_BYTES].try_into()?;
        if self.course != Course::Tables || self.table.1 == name {
            return Ok(());
        }
        loop {
            match self.session.table(time, &name) {
                Ok(table) => {
                    self.table = (table, name);
                    return Ok(());
                }
                // Merges let tables leave memory that nobody has.
                Err(error) if error.kind() == ErrorKind::Busy => std::thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn submit(&mut self, ticket: Ticket, time: Timestamp, value: &mut Vec<u8>) -> Result<()> {
        self.open_table(&ticket, time)?;
        let Flight { session, table: (table, _), tickets, .. } = self;
        let slot = tickets.free.pop().expect("in_flight is below depth, so a slot is free");
        tickets.slots[slot] = Some(ticket);
        let key = &ticket.key[if tickets.is_small { NAME_BYTES } else { 0 }..];
        let token = slot as u64;
        let rows = |low, limit| RowRange { table, low, high: None, limit, order: Order::Ascending };
        match ticket.action {
            Action::Get => session.get(token, time, RowAt { table, key }, &mut |token, result| {
                tickets.end(token, result);
            }),
            Action::Put => {
                tickets.turn.fill(&ticket, value);
                let write = Write { table, key, action: RowAction::Put(value) };
                let batch = WriteBatch { writes: &[write], durability: None };
                session.write(token, time, batch, &mut |token, result| tickets.end(token, result));
            }
            Action::Scan => {
                let range = rows(key, tickets.turn.scan_rows());
                session.scan(token, time, range, &mut |token, result| tickets.end(token, result));
            }
            Action::Pop => {
                let range = rows(&[], 1);
                session.scan(token, time, range, &mut |token, result| tickets.end(token, result));
            }
        }
        Ok(())
    }

    /// Removes what was popped. While too many changes wait for merges it waits, too.
    fn remove_popped(&mut self, time: Timestamp) {
        let Flight { session, table: (table, _), tickets, .. } = self;
        while let Some(key) = tickets.popped.pop() {
            let write = Write { table, key: &key, action: RowAction::Remove };
            let batch = WriteBatch { writes: &[write], durability: None };
            loop {
                let mut is_refused = false;
                session.write(u64::MAX, time, batch, &mut |_, result| match result {
                    Err(error) if error.kind() == ErrorKind::Busy => is_refused = true,
                    Err(error) => tickets.fault = Some(error),
                    Ok(_) => {}
                });
                if !is_refused {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

impl Tickets<'_> {
    fn end(&mut self, token: u64, result: EngineResult<Outcome<'_>>) {
        let slot = usize::try_from(token).expect("tokens are slot numbers");
        let Some(ticket) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        match result {
            Ok(Outcome::Found(value)) => self.turn.got(&ticket, Some(value)),
            Ok(Outcome::Missing) => self.turn.got(&ticket, None),
            Ok(Outcome::Done(_)) => self.turn.put(&ticket),
            Ok(Outcome::Rows(rows)) if ticket.action == Action::Pop => {
                let first = rows.iter().next().filter(|(key, _)| *key == ticket.key);
                self.popped.extend(first.map(|_| ticket.key));
                self.turn.got(&ticket, first.map(|(_, value)| value));
            }
            Ok(Outcome::Rows(rows)) => {
                self.before.clear();
                let mut whole = ticket.key;
                for (key, value) in rows.iter() {
                    let from = KEY_BYTES - key.len();
                    whole[from..].copy_from_slice(key);
                    self.turn.row(&mut self.before, (&whole, value));
                }
                self.turn.scanned(&ticket);
            }
            Ok(_) => self.turn.refused(&ticket),
            Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::Full) => {
                self.again.push_back(ticket);
            }
            Err(error) => self.fault = Some(error),
        }
    }
}
