//! The process that is killed: a hosted store, whose writers take one step after another and tell
//! by a pipe what was acknowledged.
//!
//! Invariant: steps of a writer take effect in their order. Batches with a value that is a record
//! of its own, and drops, therefore have the session to themselves.

use std::io::Write as _;
use std::sync::Arc;

use entresol_host::{HostedStore, now};
use entresol_tier::{Durability, Error, ErrorKind, Result};
use entresol_tree::{Action, Outcome, Session, Table, Write, WriteBatch};

use crate::life::{Life, name_merges};
use crate::plan::{Change, Deed, PASSING, Step, StepAt, TABLES, WRITERS, table_name};

/// So often a step that finds no room is tried again.
const ATTEMPTS: u32 = 200_000;

type Store = HostedStore<()>;

/// Writes until it is killed.
pub(crate) fn work(life: &Life, round: u64) {
    let store = Store::open(&life.options()).expect("the store opens");
    name_merges(&store.tree().expect("the tables open"));
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let store = &store;
            let at = StepAt { seed: life.seed, round, writer: number, step: 0 };
            scope.spawn(move || {
                let work = |session: &mut Session| Writer::new(at, life, (store, session)).go_on();
                // The others must not go on as if nothing had happened.
                let ended = store.with_tables(work).map(|never| match never {});
                let Err(failure) = ended;
                panic!("writer {number}: {failure}");
            });
        }
    });
}

/// What does not end.
enum Never {}

struct Writer<'w> {
    at: StepAt,
    depth: usize,
    separate_bytes_min: usize,
    store: &'w Store,
    session: &'w mut Session,
    tables: Vec<Arc<Table>>,
}

impl<'w> Writer<'w> {
    fn new(at: StepAt, life: &Life, given: (&'w Store, &'w mut Session)) -> Writer<'w> {
        let (store, session) = given;
        let separate_bytes_min = life.options().tree.separate_bytes_min;
        let depth = 1 << ((at.round + at.writer as u64) % 5);
        let open = |table| session.table(now(), table_name(at.writer, table).as_bytes());
        let tables = (0..TABLES).map(open).collect::<Result<_>>().expect("tables open");
        Writer { at, depth, separate_bytes_min, store, session, tables }
    }

    fn go_on(mut self) -> Never {
        loop {
            self.at.step += 1;
            match self.at.draw() {
                Step::Batch { changes, is_synced } => self.write(&changes, is_synced),
                Step::Drop => self.drop_table(),
            }
        }
    }

    fn write(&mut self, changes: &[Change], is_synced: bool) {
        let is_alone = changes.iter().any(|change| self.is_separate(change));
        let most = if is_alone { 0 } else { self.depth - 1 };
        self.wait(most);
        let StepAt { writer, step, .. } = self.at;
        let durability = is_synced.then_some(Durability::Synced);
        let tables = self.tables.clone();
        let parts: Vec<[u8; 8]> = changes.iter().map(|change| part_of(&change.deed)).collect();
        let mut attempts = 0;
        let write = |(change, part)| write_of(&tables, change, part);
        let writes: Vec<_> = changes.iter().zip(&parts).map(write).collect();
        loop {
            let mut refused = None;
            let batch = WriteBatch { writes: &writes, durability };
            let mut visit = |token, outcome: Result<Outcome<'_>>| match outcome {
                Err(error) if token == step && is_for_later(error.kind()) => {
                    refused = Some(error);
                }
                other => acknowledge(writer, token, other),
            };
            self.session.write(step, now(), batch, &mut visit);
            while is_alone && self.session.in_flight() > 0 {
                self.session.poll(1, now(), &mut visit).expect("the device answers");
            }
            let Some(error) = refused else { return };
            self.make_room(&mut attempts, &error);
        }
    }

    fn is_separate(&self, change: &Change) -> bool {
        matches!(&change.deed, Deed::Put(value) if value.len() >= self.separate_bytes_min)
    }

    fn drop_table(&mut self) {
        self.wait(0);
        let StepAt { writer, step, .. } = self.at;
        let mut attempts = 0;
        loop {
            let mut refused = None;
            let mut visit = |token, outcome: Result<Outcome<'_>>| match outcome {
                Err(error) if is_for_later(error.kind()) => refused = Some(error),
                other => acknowledge(writer, token, other),
            };
            let table = &self.tables[PASSING];
            self.session.drop_table(step, now(), table, &mut visit);
            while self.session.in_flight() > 0 {
                self.session.poll(1, now(), &mut visit).expect("the device answers");
            }
            let Some(error) = refused else { return };
            self.make_room(&mut attempts, &error);
        }
    }

    /// Merges, for a step that was refused. Room that does not come is a failure that is told.
    fn make_room(&self, attempts: &mut u32, error: &Error) {
        *attempts += 1;
        if *attempts == ATTEMPTS {
            let tree = self.store.tree().expect("the tables are open");
            panic!("{error} for ever; held back: {:?}, {:?}", tree.held_back(), tree.statistics());
        }
        self.store.relieve_tables().expect("changes are merged");
    }

    /// Waits until no more than `most` steps are under way.
    fn wait(&mut self, most: usize) {
        let writer = self.at.writer;
        let mut visit = |token, outcome: Result<Outcome<'_>>| acknowledge(writer, token, outcome);
        while self.session.in_flight() > most {
            self.session.poll(1, now(), &mut visit).expect("the device answers");
        }
    }
}

fn is_for_later(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Full)
}

fn part_of(deed: &Deed) -> [u8; 8] {
    if let Deed::Add(part) = deed { part.to_le_bytes() } else { [0; 8] }
}

fn write_of<'w>(tables: &'w [Arc<Table>], change: &'w Change, part: &'w [u8; 8]) -> Write<'w> {
    let action = match &change.deed {
        Deed::Put(value) => Action::Put(value),
        Deed::Remove => Action::Remove,
        Deed::Add(_) => Action::Add(part),
    };
    Write { table: &tables[change.table], key: &change.key, action }
}

/// Tells the process that checks. A line is one write, so that a kill leaves none in part; without
/// a reader this process ends.
fn acknowledge(writer: usize, step: u64, outcome: Result<Outcome<'_>>) {
    let line = match &outcome {
        Ok(_) => format!("done {writer} {step}\n"),
        Err(error) => format!("step {step} of writer {writer} failed: {error}\n"),
    };
    if std::io::stderr().write_all(line.as_bytes()).is_err() || outcome.is_err() {
        std::process::exit(1);
    }
}
