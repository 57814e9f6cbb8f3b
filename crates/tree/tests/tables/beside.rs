//! Reads beside writes and merges: a row is found as it was at some moment of the read.

use std::collections::BTreeMap;
use std::sync::Arc;

use entresol_flash::{Durability, Result};
use entresol_tier::SessionOptions;
use entresol_tree::{Order, Outcome, RowAt, RowRange, Session, Table, Tree};

use crate::history::{Rows, apply};
use crate::open::Open;
use crate::seeds;
use crate::world::{NOW, World};

/// More leaves than a round asks for at a time.
const ROWS: u64 = 1_000;
/// Half of all reads and writes are of so many.
const HOT_ROWS: u64 = 20;
const STEPS: usize = 30_000;
const READS_MAX: usize = 96;

fn key(number: u64) -> Vec<u8> {
    format!("row {number:04}").into_bytes()
}

fn any_key(world: &mut World) -> Vec<u8> {
    match world.random.below(2) {
        0 => key(world.random.below(HOT_ROWS) * (ROWS / HOT_ROWS)),
        _ => key(world.random.below(ROWS)),
    }
}

/// The values of a row, each with the number of the batch since which it had it.
type RowVersions = Vec<(usize, Option<Vec<u8>>)>;

/// The values of each row.
#[derive(Default)]
struct Versions {
    now: [Rows; 3],
    rows: BTreeMap<Vec<u8>, RowVersions>,
}

impl Versions {
    /// Takes the last batch.
    fn note(&mut self, world: &World) {
        let batch = world.history.last().expect("a batch");
        apply(&mut self.now, batch);
        for change in batch {
            let value = self.now[0].get(&change.key).cloned();
            let versions = self.rows.entry(change.key.clone()).or_default();
            versions.push((world.history.len(), value));
        }
    }

    /// Whether a row was so after the batch with that number, or later.
    fn were(&self, key: &[u8], value: Option<&Vec<u8>>, since: usize) -> bool {
        let versions = self.rows.get(key).map_or(&[][..], Vec::as_slice);
        let first = versions.partition_point(|(batch, _)| *batch <= since).checked_sub(1);
        let is_none_at_first = first.is_none() && value.is_none();
        let mut during = versions[first.unwrap_or(0)..].iter();
        is_none_at_first || during.any(|(_, version)| version.as_ref() == value)
    }
}

/// What a read asks for.
#[derive(Debug, Clone)]
enum Asked {
    Row(Vec<u8>),
    Rows { low: Vec<u8>, limit: usize },
    RowsBack { high: Vec<u8>, limit: usize },
}

/// A read in a session of its own.
struct Read {
    session: Session,
    asked: Asked,
    /// So many batches were written when it began.
    began: usize,
    found: Option<Found>,
}

struct Found {
    rows: Rows,
    /// Rows may follow behind the last one.
    goes_on: bool,
}

impl Read {
    fn begin(tree: &Tree, table: &Arc<Table>, asked: Asked, began: usize) -> Read {
        let session = tree.session(SessionOptions::default()).expect("a session");
        let mut read = Read { session, asked: asked.clone(), began, found: None };
        let Read { session, found, .. } = &mut read;
        let mut visit = |_: u64, outcome: Result<Outcome<'_>>| *found = Some(rows(&asked, outcome));
        let range = match &asked {
            Asked::Row(key) => {
                session.get(1, NOW, RowAt { table, key }, &mut visit);
                return read;
            }
            Asked::Rows { low, limit } => {
                let order = Order::Ascending;
                RowRange { table, low, high: None, limit: *limit, order }
            }
            Asked::RowsBack { high, limit } => {
                let order = Order::Descending;
                RowRange { table, low: &[], high: Some(high), limit: *limit, order }
            }
        };
        session.scan(1, NOW, range, &mut visit);
        read
    }

    /// Goes on as far as it comes without waiting. Whether it is not over.
    fn goes_on(&mut self) -> bool {
        let Read { session, asked, found, .. } = self;
        let mut visit = |_: u64, outcome: Result<Outcome<'_>>| *found = Some(rows(asked, outcome));
        session.poll(0, NOW, &mut visit).expect("a poll");
        self.found.is_none()
    }

    /// Each row, and each one that is not there, was so while the read was under way.
    fn check(&self, versions: &Versions) {
        let Found { rows: found, goes_on } = self.found.as_ref().expect("a read that is over");
        let ends = |end: Option<&Vec<u8>>| end.filter(|_| *goes_on).cloned();
        let last = key(ROWS);
        let (low, high) = match &self.asked {
            Asked::Row(key) => (key.clone(), [&key[..], &[0]].concat()),
            Asked::Rows { low, .. } => {
                let end = ends(found.keys().next_back());
                (low.clone(), end.unwrap_or(last))
            }
            Asked::RowsBack { high, .. } => {
                (ends(found.keys().next()).unwrap_or_default(), high.clone())
            }
        };
        for key in versions.rows.range(low..high).map(|(key, _)| key).chain(found.keys()) {
            let row = found.get(key);
            let was_so = versions.were(key, row, self.began);
            assert!(
                was_so,
                "{:?} found {row:?} of {key:?}, of {:?}",
                self.asked, versions.rows[key]
            );
        }
    }
}

fn rows(asked: &Asked, outcome: Result<Outcome<'_>>) -> Found {
    let (rows, goes_on) = match (asked, outcome.expect("a read")) {
        (Asked::Row(key), Outcome::Found(value)) => {
            (Rows::from([(key.clone(), value.to_vec())]), false)
        }
        (Asked::Row(_), Outcome::Missing) => (Rows::new(), false),
        (_, Outcome::Rows(rows)) => {
            let owned = rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
            (owned.collect(), rows.goes_on())
        }
        (asked, other) => panic!("{asked:?} ended as {other:?}"),
    };
    Found { rows, goes_on }
}

fn ask(world: &mut World) -> Asked {
    let (key, limit) = (any_key(world), 1 + world.random.below(20) as usize);
    match world.random.below(6) {
        0 => Asked::Rows { low: key, limit },
        1 => Asked::RowsBack { high: key, limit },
        _ => Asked::Row(key),
    }
}

/// Changes a row of the first table: mostly it gets a part more. Where large values wait, a round
/// of merges knows which changes it takes long before it takes them.
fn change(world: &mut World) {
    let (key, letter) = (any_key(world), b'a' + world.random.below(26) as u8);
    let length = if world.random.below(2) == 0 { 40 } else { 200 };
    let changed = match world.random.below(8) {
        0 => world.put_all(0, &[(key, None)], Durability::Memory),
        1..3 => world.put_all(0, &[(key, Some(vec![letter; length]))], Durability::Memory),
        _ => world.add(0, &key, &[letter], Durability::Memory),
    };
    changed.expect("a change");
}

#[test]
fn no_read_finds_a_row_as_it_was_before_the_read_began() {
    for seed in seeds(9) {
        eprintln!("ENTRESOL_SEED={seed}");
        let mut world = World::late(seed);
        (world.options.waiting_bytes_max, world.cache_bytes) = (8 << 10, Some(0));
        world.open().expect("a world");
        let mut versions = Versions::default();
        for number in 0..ROWS {
            let row = (key(number), Some(vec![b'-'; 40]));
            world.put_all(0, &[row], Durability::Memory).expect("a row");
            versions.note(&world);
        }
        world.settle().expect("pages");
        let mut reads: Vec<Read> = Vec::new();
        for _ in 0..STEPS {
            for _ in 0..world.random.below(4) {
                change(&mut world);
                versions.note(&world);
            }
            while reads.len() < READS_MAX {
                let (asked, began) = (ask(&mut world), world.history.len());
                let Some(Open { tree, tables, .. }) = &world.open else { unreachable!() };
                reads.push(Read::begin(tree, &tables[0], asked, began));
            }
            let turns = world.random.below(6) as usize;
            world.maintain(turns).expect("maintenance");
            reads.retain_mut(|read| {
                // Much happens while it waits.
                let goes_on = world.random.below(4) > 0 || read.goes_on();
                if !goes_on {
                    read.check(&versions);
                }
                goes_on
            });
        }
        for mut read in reads {
            while read.goes_on() {}
            read.check(&versions);
        }
        world.settle_and_close().expect("a world that closes");
        let writes = world.leaf_writes + world.delta_writes;
        assert!(writes > 500, "{writes} pages were written");
    }
}
