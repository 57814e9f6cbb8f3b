//! What the journal has of tables.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use entresol_flash::{ErrorKind, Result};
use entresol_tier::Tiered;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{TableDamage, Tell, Told};
use crate::format::NAMES;
use crate::format::{Batch, BatchReader, Damage, Effect, u64_at};
use crate::options::TreeOptions;
use crate::sequence::Sequence;

/// The owner of batches in the journal.
const OWNER: u64 = 0;

/// All batches, counted.
#[derive(Debug, Default)]
pub(super) struct Journaled {
    pub batches: u64,
    pub changes: u64,
    pub bytes: u64,
    /// The last change.
    last: Sequence,
    tables: BTreeMap<u64, OfTable>,
    /// Rows whose values are replaced, by hashes.
    rows: HashSet<u64>,
}

/// What batches say of one table.
#[derive(Debug, Clone, Default)]
pub(super) struct OfTable {
    pub name: Option<Vec<u8>>,
    /// The change that dropped it last.
    pub dropped: Option<Sequence>,
    /// Changes of its rows since.
    pub changes: u64,
}

impl OfTable {
    /// Whether the table whose first record says `created` is gone, and no row was written since.
    pub(super) fn is_dropped(&self, created: Sequence) -> bool {
        self.is_old(created) && self.changes == 0
    }

    /// Whether the pages of the table whose first record says `created` are those of a table that
    /// was dropped.
    pub(super) fn is_old(&self, created: Sequence) -> bool {
        self.dropped.is_some_and(|by| created < by)
    }
}

impl Journaled {
    /// Reads all batches, and tells of those that do not decode.
    pub(super) fn read(
        store: &Arc<Tiered>,
        options: &TreeOptions,
        tell: Tell<'_>,
    ) -> Result<Journaled> {
        let (mut journaled, mut reader) = (Journaled::default(), BatchReader::default());
        let replayed = store.store().replay_journal(options.lane, &mut |record| {
            if record.owner != OWNER {
                return;
            }
            journaled.batches += 1;
            journaled.bytes += record.bytes.len() as u64;
            let taken = reader.read(record.bytes).and_then(|batch| journaled.take(batch));
            if let Err(damage) = taken {
                let Damage { field, found, expected } = damage;
                tell(Told::Damage(&TableDamage {
                    table: None,
                    place: format!("batch {} of the journal", record.sequence.0),
                    what: field.to_owned(),
                    expected: format!("{expected} or less"),
                    found: found.to_string(),
                }));
            }
        });
        match replayed {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                tell(Told::Damage(&TableDamage {
                    table: None,
                    place: format!("lane {} of the journal", options.lane),
                    what: "its records".to_owned(),
                    expected: "all from the watermark on".to_owned(),
                    found: error.to_string(),
                }));
            }
            replayed => drop(replayed?),
        }
        Ok(journaled)
    }

    fn take(&mut self, mut batch: Batch<'_, '_>) -> std::result::Result<(), Damage> {
        let mut next = batch.sequence.0;
        while let Some(operation) = batch.operation() {
            let operation = operation?;
            let sequence = Sequence(next);
            next += 1;
            self.last = self.last.max(sequence);
            if operation.table != NAMES {
                let of = self.tables.entry(operation.table).or_default();
                if of.dropped.is_none_or(|by| sequence > by) {
                    of.changes += 1;
                }
                self.changes += 1;
                if operation.effect != Effect::Part {
                    self.rows.insert(xxh3_64_with_seed(operation.key, operation.table));
                }
                continue;
            }
            let id = u64_at(operation.value, 0)
                .ok_or_else(|| Damage::new("number of a table", operation.value.len(), 8))?;
            let of = self.tables.entry(id).or_default();
            of.name = Some(operation.key.to_vec());
            if operation.effect == Effect::Remove && of.dropped < Some(sequence) {
                (of.dropped, of.changes) = (Some(sequence), 0);
            }
        }
        Ok(())
    }

    /// Whether no change came after `closed`, when all were in pages.
    pub(super) fn ends_by(&self, closed: Option<Sequence>) -> bool {
        closed.is_some_and(|closed| self.last <= closed)
    }

    /// Whether a change says all of the row.
    pub(super) fn changes_row(&self, table: u64, key: &[u8]) -> bool {
        self.rows.contains(&xxh3_64_with_seed(key, table))
    }

    pub(super) fn of(&self, id: u64) -> OfTable {
        self.tables.get(&id).cloned().unwrap_or_default()
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = (u64, OfTable)> + '_ {
        self.tables.iter().map(|(id, of)| (*id, of.clone()))
    }
}
