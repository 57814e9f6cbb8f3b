//! What the journal still has of changes: read once, when the tables are opened.

use std::collections::HashMap;

use entresol_flash::{Error, Result, Timestamp};
use entresol_tier::{SessionOptions, Tiered};

use crate::error::corrupt;
use crate::format::{Batch, Damage, Effect, INLINE_VALUE_BYTES_MAX, PageRole, page_key, u64_at};
use crate::journal::{Journal, Placed};
use crate::merge::Change;
use crate::options::TreeOptions;
use crate::pending::{Arena, Pending};
use crate::sequence::Sequence;

/// The table of all tables' names: a change of it says which number a name has.
pub(crate) const NAMES: u64 = 0;
/// Key of the record that says that the tables were closed, and at which sequence.
pub(crate) fn closed_key() -> [u8; crate::format::PAGE_KEY_BYTES] {
    page_key(NAMES, 0, PageRole::Page)
}

/// Changes of tables that nobody has opened.
#[derive(Default)]
pub(crate) struct Recovered {
    tables: HashMap<u64, Pending>,
    names: HashMap<u64, Box<[u8]>>,
    /// Which change dropped a table last.
    dropped: HashMap<u64, Sequence>,
    /// The tables were closed: what inner nodes say of leaves is so.
    pub is_exact: bool,
}

impl Recovered {
    /// The name that the journal has of a table.
    pub(crate) fn name(&self, id: u64) -> Option<&[u8]> {
        self.names.get(&id).map(|name| &**name)
    }

    /// The change that dropped a table, as the journal has it.
    pub(crate) fn dropped(&self, id: u64) -> Option<Sequence> {
        self.dropped.get(&id).copied()
    }

    /// All tables that were dropped.
    pub(crate) fn all_dropped(&self) -> HashMap<u64, Sequence> {
        self.dropped.clone()
    }

    pub(crate) fn take(&mut self, id: u64) -> Option<Pending> {
        self.tables.remove(&id)
    }

    /// A table with changes.
    pub(crate) fn first(&self) -> Option<u64> {
        self.tables.keys().min().copied()
    }

    fn drop_table(&mut self, arena: &mut Arena, id: u64, sequence: Sequence) {
        let by = self.dropped.entry(id).or_default();
        *by = sequence.max(*by);
        if let Some(pending) = self.tables.get_mut(&id) {
            pending.remove_through(arena, &[], None, sequence);
        }
    }

    fn add(&mut self, arena: &mut Arena, batch: &Batch<'_>) -> std::result::Result<(), Damage> {
        for (place, operation) in batch.operations().enumerate() {
            let operation = operation?;
            let sequence = Sequence(batch.sequence.0 + place as u64);
            if operation.table == NAMES {
                if let Some(id) = u64_at(operation.value, 0) {
                    self.names.insert(id, Box::from(operation.key));
                    if operation.effect == Effect::Remove {
                        self.drop_table(arena, id, sequence);
                    }
                }
                continue;
            }
            if self.dropped.get(&operation.table).is_some_and(|by| sequence < *by) {
                continue;
            }
            let (key, effect, value) = (operation.key, operation.effect, operation.value);
            if value.len() > INLINE_VALUE_BYTES_MAX {
                let found = value.len();
                return Err(Damage::new("value of an operation", found, INLINE_VALUE_BYTES_MAX));
            }
            let pending = self.tables.entry(operation.table).or_default();
            let entered = pending.insert(arena, Change { key, effect, sequence, value });
            entered.expect("an arena without a cap");
        }
        Ok(())
    }
}

/// Reads the journal.
pub(crate) fn recover(
    store: &std::sync::Arc<Tiered>,
    options: &TreeOptions,
    now: Timestamp,
) -> Result<(Recovered, Journal, Arena)> {
    let mut recovered = Recovered::default();
    // Writers wait long before it is full: it need not have a cap of its own.
    let mut arena = Arena::new(u64::MAX);
    let (mut last, mut damage): (u64, Option<Error>) = (0, None);
    let mut places = Vec::new();
    store.store().replay_journal(options.lane, &mut |record| {
        if damage.is_some() {
            return;
        }
        match Batch::parse(record.bytes)
            .and_then(|batch| recovered.add(&mut arena, &batch).map(|()| batch))
        {
            Ok(batch) => {
                last = last.max(batch.sequence.0 + u64::from(batch.count) - 1);
                last = last.max(batch.low.0.saturating_sub(1));
                let (first, count, record) = (batch.sequence, batch.count, record.sequence);
                places.push(Placed { first, count, record });
            }
            Err(found) => damage = Some(corrupt(&found, NAMES)),
        }
    })?;
    if let Some(damage) = damage {
        return Err(damage);
    }
    let mut session = store.session(SessionOptions { depth: 1, ..SessionOptions::default() })?;
    let key = closed_key();
    let mut closed = None;
    let get = entresol_flash::Operation::Get { key: entresol_flash::Key::new(options.space, &key) };
    session.run(now, get, &mut |outcome| {
        if let entresol_flash::Outcome::Found(entry) = outcome {
            closed = u64_at(entry.value, 0);
        }
    })?;
    recovered.is_exact = closed.is_some();
    let mut journal = Journal::after(Sequence(last.max(closed.unwrap_or(0))));
    journal.take_over(&places);
    Ok((recovered, journal, arena))
}
