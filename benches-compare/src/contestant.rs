//! What a contestant is, and the list of all of them.

use std::path::PathBuf;

use crate::contestants;
use crate::plan::{Course, KEY_BYTES, Phase, Plan};
use crate::turn::{Action, Ticket, Turn};

/// Anything that can go wrong in a contestant; its words go to the report.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
/// A contestant's result.
pub type Result<T> = std::result::Result<T, Fault>;

/// A store or cache under measurement, opened in an empty directory.
pub trait Contestant: Send + Sync {
    /// How many workers a phase has; 0: it has no such phase.
    fn workers(&self, phase: Phase) -> usize;

    /// Plays all turns to their end, in whatever way keeps the device busiest.
    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>>;

    /// Hands everything acknowledged to the device. Timed as a part of the load.
    fn flush(&self) -> Result<()>;

    /// Waits until background work is done. Its bytes count, its time does not.
    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    /// Puts a second at which a load is paced; `None`: as fast as it goes.
    fn load_rate(&self) -> Option<f64> {
        None
    }

    /// The process to measure where it is not this one.
    fn server_pid(&self) -> Option<u32> {
        None
    }

    /// Figures of its own worth printing.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Where and how large a contestant may be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// An empty directory of its own.
    pub directory: PathBuf,
    /// The sizes.
    pub plan: Plan,
    /// The memory cap in force, bytes; the plan's or, after an out-of-memory kill, more.
    pub memory_bytes: u64,
}

/// One line of the list of contestants.
#[derive(Clone, Copy)]
pub struct Entrant {
    /// Its name in tables and in `--only`.
    pub name: &'static str,
    /// Whether it may lose records.
    pub kind: Kind,
    /// Opens it.
    pub open: fn(&Settings) -> Result<Box<dyn Contestant>>,
}

/// What a contestant promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Keeps every record.
    Store,
    /// May drop records.
    Cache,
    /// Keeps every record in memory; the memory cap does not apply.
    Memory,
    /// Does nothing: shows what the measuring costs.
    Nothing,
}

/// The contestants of `course` that this program was built with.
pub fn entrants(course: Course) -> Vec<Entrant> {
    if course.is_ordered() { entrants_with_order() } else { entrants_of_records() }
}

/// Those that keep keys in order.
fn entrants_with_order() -> Vec<Entrant> {
    Vec::from([
        #[cfg(feature = "entresol")]
        Entrant { name: "entresol", kind: Kind::Store, open: contestants::tables::open },
        #[cfg(feature = "rocksdb")]
        Entrant { name: "rocksdb", kind: Kind::Store, open: contestants::rocksdb::open },
        #[cfg(feature = "lmdb")]
        Entrant { name: "lmdb", kind: Kind::Store, open: contestants::lmdb::open },
        #[cfg(feature = "fjall")]
        Entrant { name: "fjall", kind: Kind::Store, open: contestants::fjall::open },
        #[cfg(feature = "redb")]
        Entrant { name: "redb", kind: Kind::Store, open: contestants::redb::open },
        #[cfg(feature = "bf-tree")]
        Entrant { name: "bf-tree", kind: Kind::Store, open: contestants::bf_tree::open },
        Entrant { name: "nothing", kind: Kind::Nothing, open: contestants::nothing::open },
    ])
}

fn entrants_of_records() -> Vec<Entrant> {
    Vec::from([
        #[cfg(feature = "entresol")]
        Entrant { name: "entresol", kind: Kind::Store, open: contestants::entresol::open },
        #[cfg(feature = "entresol")]
        Entrant {
            name: "entresol-cap",
            kind: Kind::Store,
            open: contestants::entresol::open_with_all_of_the_cap,
        },
        #[cfg(feature = "lmdb")]
        Entrant { name: "lmdb", kind: Kind::Store, open: contestants::lmdb::open },
        #[cfg(feature = "rocksdb")]
        Entrant { name: "rocksdb", kind: Kind::Store, open: contestants::rocksdb::open },
        #[cfg(feature = "foyer")]
        Entrant { name: "foyer", kind: Kind::Cache, open: contestants::foyer::open },
        #[cfg(feature = "fjall")]
        Entrant { name: "fjall", kind: Kind::Store, open: contestants::fjall::open },
        #[cfg(feature = "redb")]
        Entrant { name: "redb", kind: Kind::Store, open: contestants::redb::open },
        Entrant { name: "memcached", kind: Kind::Cache, open: contestants::memcached::open },
        Entrant { name: "redis", kind: Kind::Memory, open: contestants::redis::open },
        Entrant { name: "nothing", kind: Kind::Nothing, open: contestants::nothing::open },
    ])
}

/// A contestant whose calls block the caller.
pub trait Blocking: Sync {
    /// Calls `visit` with the value of `key`, or with nothing.
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<()>;

    /// Puts each entry; with `Phase::Synced` they survive power loss on return.
    fn put(&self, entries: &[(&[u8], &[u8])], phase: Phase) -> Result<()>;

    /// Calls `visit` with each of up to `limit` rows from `key` on, in their order.
    fn scan(&self, key: &[u8], limit: usize, visit: VisitRow<'_>) -> Result<()> {
        let _ = (key, limit, visit);
        Err("it keeps no order".into())
    }

    /// Removes `key`.
    fn remove(&self, key: &[u8]) -> Result<()> {
        let _ = key;
        Err("it keeps no order".into())
    }

    /// How many puts a load, or an overwriting of rows, hands over at once.
    fn load_batch(&self) -> usize {
        1
    }
}

/// Called with the key and the value of a row.
pub type VisitRow<'v> = &'v mut dyn FnMut(&[u8], &[u8]);

/// Plays turns against a blocking contestant, a thread each.
pub fn play_blocking(contestant: &dyn Blocking, turns: Vec<Turn>) -> Result<Vec<Turn>> {
    play_threads(turns, |turn| play_blocking_turn(contestant, turn))
}

/// Workers of a phase that has `threads` of them: a queue has one end to push at, and one to pop
/// from, by turns.
pub fn play_workers(phase: Phase, threads: usize) -> usize {
    match phase {
        Phase::Synced => 64,
        Phase::Queue => 1,
        _ => threads,
    }
}

/// Plays turns with a thread each.
pub fn play_threads(
    turns: Vec<Turn>,
    play: impl Fn(&mut Turn) -> Result<()> + Sync,
) -> Result<Vec<Turn>> {
    let play = &play;
    std::thread::scope(|scope| {
        let workers: Vec<_> = turns
            .into_iter()
            .map(|mut turn| scope.spawn(move || play(&mut turn).map(|()| turn)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| Fault::from("a worker panicked"))?)
            .collect()
    })
}

fn play_blocking_turn(contestant: &dyn Blocking, turn: &mut Turn) -> Result<()> {
    let phase = turn.phase();
    let is_gathered = phase.is_write_of_rows() && phase != Phase::Queue;
    let batch = if is_gathered { contestant.load_batch() } else { 1 };
    let mut values = vec![Vec::new(); batch];
    let mut tickets = Vec::with_capacity(batch);
    let mut before = Vec::new();
    while let Some(ticket) = turn.next() {
        match ticket.action {
            Action::Get => {
                contestant.get(&ticket.key, &mut |value| turn.got(&ticket, value))?;
                continue;
            }
            Action::Scan => {
                before.clear();
                let limit = turn.scan_rows();
                let visit = &mut |key: &[u8], value: &[u8]| turn.row(&mut before, (key, value));
                contestant.scan(&ticket.key, limit, visit)?;
                turn.scanned(&ticket);
                continue;
            }
            Action::Pop => {
                pop(contestant, turn, &ticket)?;
                continue;
            }
            Action::Put => {}
        }
        turn.fill(&ticket, &mut values[0]);
        tickets.clear();
        tickets.push(ticket);
        while tickets.len() < batch
            && let Some(ticket) = turn.next()
        {
            turn.fill(&ticket, &mut values[tickets.len()]);
            tickets.push(ticket);
        }
        let entries: Vec<(&[u8], &[u8])> = tickets
            .iter()
            .zip(&values)
            .map(|(ticket, value)| (ticket.key.as_slice(), value.as_slice()))
            .collect();
        contestant.put(&entries, phase)?;
        tickets.iter().for_each(|ticket| turn.put(ticket));
    }
    Ok(())
}

/// Takes the first row there is. It must be the one that was pushed first.
fn pop(contestant: &dyn Blocking, turn: &mut Turn, ticket: &Ticket) -> Result<()> {
    let mut first = None;
    contestant.scan(&[0; KEY_BYTES], 1, &mut |key, value| {
        first = Some((key.to_vec(), value.to_vec()));
    })?;
    let is_first = |(key, _): &&(Vec<u8>, Vec<u8>)| key.as_slice() == ticket.key;
    let value = first.as_ref().filter(is_first).map(|(_, value)| value.as_slice());
    if let Some((key, _)) = &first {
        contestant.remove(key)?;
    }
    turn.got(ticket, value);
    Ok(())
}
