//! What the writers of a round do, step by step, and what tables hold after each step. All of it
//! follows from a seed, so that the process that writes and the one that checks need not talk.
//!
//! Invariants:
//! 1. No two steps write the same bytes: each value is drawn from its round, writer and step.
//! 2. Each batch says in the writer's own row of [`PLACES`] which one it is.
//! 3. Two drops of a writer never follow one another, so that a row of `PLACES` leaves open one
//!    step at most.

use std::collections::BTreeMap;

use entresol_random::{SplitMix, mix64};
use entresol_tree::{Folded, MergeFunction};

/// Threads that write, each to tables of its own and to the one that all share.
pub(crate) const WRITERS: usize = 3;
/// Tables of a writer.
pub(crate) const PLACES: usize = 0;
pub(crate) const ROWS: usize = 1;
pub(crate) const LARGE: usize = 2;
pub(crate) const PASSING: usize = 3;
pub(crate) const SUMS: usize = 4;
/// The table of all writers, to which they only add.
pub(crate) const SHARED: usize = 5;
pub(crate) const TABLES: usize = 6;

/// Every so many steps a table is dropped.
const DROP_STEPS: u64 = 41;
/// The only key of `PLACES`.
pub(crate) const PLACE_KEY: &[u8] = b"place";

/// Whose step it is, and which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepAt {
    pub(crate) seed: u64,
    pub(crate) round: u64,
    pub(crate) writer: usize,
    /// From 1 on.
    pub(crate) step: u64,
}

/// What a writer does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// It writes a batch, durably at the store's level or, if that is asked for, synced.
    Batch { changes: Vec<Change>, is_synced: bool },
    /// It drops [`PASSING`].
    Drop,
}

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) table: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) deed: Deed,
}

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Put(Vec<u8>),
    Remove,
    Add(u64),
}

/// The name of a writer's table.
pub(crate) fn table_name(writer: usize, table: usize) -> String {
    let name = ["places", "rows", "large", "passing", "sums", "shared"][table];
    if table == SHARED { name.to_owned() } else { format!("{name}-{writer}") }
}

impl StepAt {
    /// What the step is.
    pub(crate) fn draw(self) -> Step {
        let StepAt { seed, round, writer, step } = self;
        if step % DROP_STEPS == DROP_STEPS - 1 {
            return Step::Drop;
        }
        let place = round << 40 | (writer as u64) << 32 | step;
        let mut random = SplitMix::new(mix64(seed) ^ mix64(place));
        let mut changes: Vec<_> = (0..1 + random.index(12)).map(|_| change(&mut random)).collect();
        let value = [round.to_le_bytes(), step.to_le_bytes()].concat();
        changes.push(Change { table: PLACES, key: PLACE_KEY.to_vec(), deed: Deed::Put(value) });
        Step::Batch { changes, is_synced: random.one_in(20) }
    }
}

fn change(random: &mut SplitMix) -> Change {
    let mut key = |keys: u64| format!("key {:04}", random.remainder(keys)).into_bytes();
    let (of_rows, of_large, of_sums) = (key(600), key(20), key(30));
    let (table, key, deed) = match random.remainder(20) {
        0..9 => (ROWS, of_rows, Deed::Put(value(random, 300))),
        9..12 => (ROWS, of_rows, Deed::Remove),
        12 => (LARGE, of_large, Deed::Put(value(random, 100_000))),
        13 => (LARGE, of_large, Deed::Put(value(random, 4_000))),
        14 => (LARGE, of_large, Deed::Remove),
        15..17 => (PASSING, of_rows, Deed::Put(value(random, 1_000))),
        17 => (SUMS, of_sums, Deed::Add(random.next_u64())),
        18 if random.one_in(3) => (SUMS, of_sums, Deed::Put(value(random, 0))),
        18 => (SUMS, of_sums, Deed::Add(random.next_u64())),
        _ => (SHARED, of_sums, Deed::Add(random.next_u64())),
    };
    Change { table, key, deed }
}

/// Bytes of which half can be compressed; eight at least, which a sum can begin with.
fn value(random: &mut SplitMix, length_max: u64) -> Vec<u8> {
    let mut value = vec![0; 8 + random.remainder(length_max + 1) as usize];
    let middle = value.len().div_ceil(2).max(8);
    random.fill(&mut value[..middle]);
    value
}

/// Rows of a writer's tables, by table and key; of [`SHARED`] what this writer added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) rows: BTreeMap<(usize, Vec<u8>), Vec<u8>>,
}

impl Model {
    /// Takes a step.
    pub(crate) fn apply(&mut self, step: Step) {
        let Step::Batch { changes, .. } = step else {
            return self.rows.retain(|(table, _), _| *table != PASSING);
        };
        for Change { table, key, deed } in changes {
            match deed {
                Deed::Put(value) => drop(self.rows.insert((table, key), value)),
                Deed::Remove => drop(self.rows.remove(&(table, key))),
                Deed::Add(part) => {
                    let row = self.rows.entry((table, key)).or_insert_with(|| vec![0; 8]);
                    add(row, part);
                }
            }
        }
    }
}

/// Adds to the number that a value begins with.
pub(crate) fn add(value: &mut [u8], part: u64) {
    let Some(number) = value.first_chunk_mut() else { return };
    *number = u64::from_le_bytes(*number).wrapping_add(part).to_le_bytes();
}

/// The merge function of [`SUMS`] and [`SHARED`].
#[derive(Debug)]
pub(crate) struct Sum;

impl MergeFunction for Sum {
    fn fold(&self, _key: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        out.extend_from_slice(base.unwrap_or(&[0; 8]));
        for part in parts {
            let part = part.first_chunk().expect("each part is a number");
            add(out, u64::from_le_bytes(*part));
        }
        Folded::Row
    }
}
