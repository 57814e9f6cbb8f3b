//! What was acknowledged of each writer's steps, and the comparison with what a kill left.

use std::collections::BTreeMap;
use std::sync::Arc;

use entresol_host::now;
use entresol_tier::{SessionOptions, Tiered};
use entresol_tree::{Order, Outcome, RowRange, Told, Tree, check_tables};

use crate::life::Life;
use crate::plan::table_name;
use crate::plan::{Model, PLACE_KEY, PLACES, SHARED, Step, StepAt, WRITERS, add};

/// Rows that are read at once.
const TOGETHER: usize = 500;

/// All rows of a table.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the process that checks knows.
#[derive(Debug)]
pub(crate) struct Ledger {
    seed: u64,
    writers: Vec<Known>,
}

/// What becomes of a store that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It is closed as a program does that ends.
    Close,
    /// It is let go, which leaves what a kill leaves.
    Leave,
}

/// What a check read of a writer's own tables.
#[derive(Debug)]
struct Found {
    writer: usize,
    model: Model,
}

/// What is known of a writer.
#[derive(Debug, Default)]
struct Known {
    /// What its tables held at the last check.
    model: Model,
    /// What its row of [`PLACES`] said then: the round and the step.
    place: (u64, u64),
    /// The last step that was acknowledged since, and the last one that a level below `process`
    /// promises too.
    acknowledged: u64,
    saved: u64,
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Ledger {
        Ledger { seed, writers: (0..WRITERS).map(|_| Known::default()).collect() }
    }

    fn step(&self, round: u64, writer: usize, step: u64) -> Step {
        StepAt { seed: self.seed, round, writer, step }.draw()
    }

    /// Takes in a line of the process that is killed; whether it acknowledges a step.
    pub(crate) fn hear(&mut self, round: u64, line: &str) -> bool {
        let mut words = line.split(' ');
        let is_done = words.next() == Some("done");
        let mut number = || words.next()?.parse::<u64>().ok();
        let (Some(writer), Some(step), true) = (number(), number(), is_done) else { return false };
        let writer = writer as usize;
        // A drop is synced in any case.
        let is_saved = match self.step(round, writer, step) {
            Step::Batch { is_synced, .. } => is_synced,
            Step::Drop => true,
        };
        let known = &mut self.writers[writer];
        known.acknowledged = known.acknowledged.max(step);
        if is_saved {
            known.saved = known.saved.max(step);
        }
        true
    }

    /// Opens what a kill left, checks every page, and compares every row; then closes it, or leaves
    /// it as another kill would.
    pub(crate) fn check(&mut self, life: &Life, round: u64, after: After) -> Result<(), String> {
        let (store, tree) = life.open()?;
        check_pages(life, &store)?;
        let mut shared = Rows::new();
        for writer in 0..WRITERS {
            let mut found = Model::default();
            for table in 0..SHARED {
                let rows = rows_of(&tree, &table_name(writer, table))?;
                found.rows.extend(rows.into_iter().map(|(key, row)| ((table, key), row)));
            }
            self.judge(life, round, Found { writer, model: found })?;
            for ((table, key), sum) in &self.writers[writer].model.rows {
                if *table == SHARED {
                    let row = shared.entry(key.clone()).or_insert_with(|| vec![0; 8]);
                    let part = sum.first_chunk().expect("a sum is a number");
                    add(row, u64::from_le_bytes(*part));
                }
            }
        }
        let found = rows_of(&tree, &table_name(0, SHARED))?;
        if let Some(key) = first_difference(&found, &shared) {
            return Err(format!("the shared table differs at {}", key.escape_ascii()));
        }
        if after == After::Close {
            tree.settle(now()).map_err(|error| format!("it cannot be settled: {error}"))?;
            check_pages(life, &store)?;
            drop(tree);
            store.close(now()).map_err(|error| format!("it cannot be closed: {error}"))?;
        }
        Ok(())
    }

    /// Compares the rows of one writer with the steps that may have been the last one.
    fn judge(&mut self, life: &Life, round: u64, found: Found) -> Result<(), String> {
        let Found { writer, model: found } = found;
        let place = found.rows.get(&(PLACES, PLACE_KEY.to_vec()));
        let place = place.map_or((0, 0), |row| read_place(row));
        let known = &self.writers[writer];
        let Known { acknowledged, saved, .. } = *known;
        let oldest = if life.level == "memory" { saved } else { acknowledged };
        let applied = match place {
            (at, step) if at == round => step,
            before if before == known.place => 0,
            (at, step) => {
                return Err(format!(
                    "writer {writer} is at step {step} of round {at}; at the last check it was at \
                     {:?}",
                    known.place
                ));
            }
        };
        let mut model = known.model.clone();
        (1..=applied).for_each(|step| model.apply(self.step(round, writer, step)));
        let mut judged = Err(String::new());
        for last in [applied, applied + 1] {
            if last > applied {
                // A drop says nothing in the writer's row.
                let step = self.step(round, writer, last);
                if step != Step::Drop {
                    break;
                }
                model.apply(step);
            }
            if last < oldest {
                judged = Err(format!("only steps up to {last} are there"));
                continue;
            }
            let own = of_its_own(&model);
            judged = match first_difference(&found.rows, &own) {
                None => Ok(()),
                Some((table, key)) => {
                    let name = table_name(writer, *table);
                    Err(format!(
                        "row {} of {name} is another after step {last}",
                        key.escape_ascii()
                    ))
                }
            };
            if judged.is_ok() {
                break;
            }
        }
        judged.map_err(|what| {
            format!(
                "writer {writer}: {what}; acknowledged up to step {acknowledged}, and up to \
                 {saved} synced"
            )
        })?;
        self.writers[writer] = Known { model, place, ..Known::default() };
        Ok(())
    }
}

/// The rows that no other writer adds to.
fn of_its_own(model: &Model) -> BTreeMap<(usize, Vec<u8>), Vec<u8>> {
    let own = model.rows.iter().filter(|((table, _), _)| *table != SHARED);
    own.map(|(key, row)| (key.clone(), row.clone())).collect()
}

fn read_place(row: &[u8]) -> (u64, u64) {
    let number = |at: usize| row[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    (number(0), number(8))
}

/// The first key whose rows differ, or that only one has.
fn first_difference<'a, K: Ord>(
    left: &'a BTreeMap<K, Vec<u8>>,
    right: &'a BTreeMap<K, Vec<u8>>,
) -> Option<&'a K> {
    let keys = left.keys().chain(right.keys());
    keys.filter(|key| left.get(key) != right.get(key)).min()
}

fn check_pages(life: &Life, store: &Arc<Tiered>) -> Result<(), String> {
    let mut damage = Vec::new();
    let mut tell = |told: Told<'_>| {
        if let Told::Damage(found) = told {
            damage.push(found.to_string());
        }
    };
    let checked = check_tables(store, &life.options().tree, now(), &mut tell);
    checked.map_err(|error| format!("its pages cannot be checked: {error}"))?;
    if damage.is_empty() { Ok(()) } else { Err(format!("its pages are damaged: {damage:?}")) }
}

fn rows_of(tree: &Tree, name: &str) -> Result<Rows, String> {
    let options = SessionOptions { read_buffer_bytes: 16 << 10, ..SessionOptions::default() };
    let cannot = |error| format!("{name} cannot be read: {error}");
    let mut session = tree.session(options).map_err(cannot)?;
    let table = &session.table(now(), name.as_bytes()).map_err(cannot)?;
    let (mut all, mut low, mut failed) = (Rows::new(), Vec::new(), None);
    loop {
        let range =
            RowRange { table, low: &low, high: None, limit: TOGETHER, order: Order::Ascending };
        let mut goes_on = false;
        let mut visit = |_, outcome: entresol_tier::Result<Outcome<'_>>| match outcome {
            Ok(Outcome::Rows(rows)) => {
                goes_on = rows.goes_on();
                all.extend(rows.iter().map(|(key, row)| (key.to_vec(), row.to_vec())));
            }
            Ok(_) => {}
            Err(error) => failed = Some(error),
        };
        session.scan(1, now(), range, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, now(), &mut visit).map_err(cannot)?;
        }
        if let Some(error) = failed {
            return Err(cannot(error));
        }
        match all.last_key_value() {
            Some((last, _)) if goes_on => low = [&last[..], &[0]].concat(),
            _ => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is judged of a kill after `acknowledged` steps that left `left` of them, and of which
    /// `spoil` has changed something.
    fn judged(level: &str, acknowledged: u64, left: u64, spoil: fn(&mut Model)) -> bool {
        let life = Life::new(7, level);
        let mut ledger = Ledger::new(life.seed);
        let mut model = Model::default();
        for step in 1..=acknowledged.max(left) {
            if step <= acknowledged {
                assert!(ledger.hear(1, &format!("done 0 {step}")));
            }
            if step <= left {
                model.apply(ledger.step(1, 0, step));
            }
        }
        spoil(&mut model);
        let model = Model { rows: of_its_own(&model) };
        ledger.judge(&life, 1, Found { writer: 0, model }).is_ok()
    }

    #[test]
    fn only_what_the_level_promises_passes() {
        let nothing: fn(&mut Model) = |_| {};
        // Step 40 is a drop, of which the writer's row says nothing.
        for acknowledged in [0, 1, 39, 40, 41, 60] {
            for left in acknowledged..acknowledged + 3 {
                assert!(judged("process", acknowledged, left, nothing), "{acknowledged} {left}");
            }
        }
        assert!(!judged("process", 60, 59, nothing));
        assert!(!judged("synced", 40, 39, nothing));
        assert!(judged("memory", 60, 59, nothing));
        assert!(!judged("memory", 60, 39, nothing), "the drop was synced");
    }

    #[test]
    fn a_lost_row_a_row_too_many_and_a_changed_one_are_told() {
        let spoils: [fn(&mut Model); 3] = [
            |model| {
                let last = model.rows.keys().rfind(|(table, _)| *table != SHARED).cloned();
                drop(model.rows.remove(&last.expect("there are rows")));
            },
            |model| drop(model.rows.insert((crate::plan::ROWS, b"other".to_vec()), vec![1])),
            |model| {
                let last = model.rows.iter_mut().rfind(|((table, _), _)| *table != SHARED);
                last.expect("there are rows").1[0] ^= 1;
            },
        ];
        for spoil in spoils {
            assert!(judged("memory", 60, 60, |_| {}));
            assert!(!judged("memory", 60, 60, spoil));
        }
    }
}
