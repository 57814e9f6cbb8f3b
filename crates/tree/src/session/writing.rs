//! A batch goes to the journal, and its changes to memory.

use std::sync::Arc;

use entresol_flash::{Error, ErrorKind, Result, Timestamp};
use entresol_planted::planted;

use super::dropping::Append;
use super::{Session, Write, WriteBatch};
use crate::format::{
    BATCH_FRAME_BYTES_MAX, BatchBuilder, BatchOperation, Effect, INLINE_VALUE_BYTES_MAX, NAMES,
    Naming, OPERATION_FRAME_BYTES_MAX, REFERENCE_BYTES, ROW_KEY_BYTES_MAX, Reference,
    SEPARATE_VALUE_BYTES_MAX, Side, ValueName,
};
use crate::journal::{Journal, WRITERS_ROOM};
use crate::memory::check_waiting;
use crate::merge::Change;
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::Table;
use crate::values::{Owner, Replaced};

/// Most bytes of what it says of a table that it names.
pub(crate) const NAMING_BYTES: usize = 9;

/// A batch, and how its writes name values that are records of their own.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub batch: WriteBatch<'a>,
    /// For each write, or for none.
    pub values: &'a [Option<Reference>],
}

impl Session {
    /// `values`: how writes name theirs, where that is known.
    pub(super) fn check(&self, writes: &[Write<'_>], values: &[Option<Reference>]) -> Result<()> {
        let arena_bytes = {
            let arena = self.shared.arena.read();
            check_waiting(&arena, &self.shared.options)?;
            arena.bytes_taken()
        };
        self.shared.memory.tell(&self.shared.store, arena_bytes);
        if writes.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "a batch without a change"));
        }
        let mut bytes = BATCH_FRAME_BYTES_MAX;
        for (index, write) in writes.iter().enumerate() {
            check_key(write.key)?;
            let mut value = write.action.value().len();
            let is_separate = match values.get(index) {
                Some(named) => named.is_some(),
                None => self.is_separate(write),
            };
            let most = if is_separate { SEPARATE_VALUE_BYTES_MAX } else { INLINE_VALUE_BYTES_MAX };
            if value > most {
                let detail = format!("a row's value has {value} bytes; expected at most {most}");
                return Err(Error::new(ErrorKind::InvalidInput, detail));
            }
            if is_separate {
                value = REFERENCE_BYTES;
            }
            let name = OPERATION_FRAME_BYTES_MAX + write.table.name().len() + NAMING_BYTES;
            bytes += OPERATION_FRAME_BYTES_MAX + write.key.len() + value + name;
        }
        let most = self.shared.store.store().journal_record_bytes_max();
        if bytes > most {
            let detail = format!("a batch of {bytes} bytes; expected at most {most}");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        Ok(())
    }

    /// Appends the batch of `slot` to the journal and enters its changes. The last sequence, if it
    /// is durable as asked for at once; then the slot is given back, as it is after an error.
    pub(super) fn append(
        &mut self,
        slot: u32,
        now: Timestamp,
        batch: Named<'_>,
        journal: &mut Journal,
    ) -> Result<Option<Sequence>> {
        let Named { batch: WriteBatch { writes, durability }, .. } = batch;
        let count = writes.len() as u32;
        let shared = Arc::clone(&self.shared);
        let names = fill(&mut journal.builder, &batch);
        let append = Append { durability, room: WRITERS_ROOM };
        let (answer, bytes) = self.append_built(slot, now, append, journal)?;
        let first = journal.take(count + names);
        let last = Sequence(first.0 + u64::from(count + names) - 1);
        for (place, write) in writes.iter().enumerate() {
            let sequence = Sequence(first.0 + place as u64);
            let named = batch.values.get(place).copied().flatten();
            let reference = named.map(|named| named.encode());
            let (effect, value) = said(write, reference.as_ref());
            let change = Change { key: write.key, effect, sequence, value };
            let bytes = write.action.value().len();
            write.table.written.count_change(write.key.len() + bytes);
            shared.enter(&self.store, Entered { table: write.table, change, named, bytes });
        }
        let counters = &shared.counters;
        Counters::add(&counters.journal_bytes, bytes);
        Counters::add(&counters.changes, writes.len());
        let put: usize = writes.iter().map(|w| w.key.len() + w.action.value().len()).sum();
        Counters::add(&counters.change_bytes, put);
        Ok(self.settle_slot(slot, first..=last, answer, journal))
    }
}

/// A change that is in the journal.
pub(crate) struct Entered<'a> {
    pub table: &'a Arc<Table>,
    pub change: Change<'a>,
    /// Where the value is that it names.
    pub named: Option<Reference>,
    /// Bytes of the value.
    pub bytes: usize,
}

impl Shared {
    /// Enters a change. Called under the journal's lock.
    pub(crate) fn enter(&self, session: &entresol_tier::Session, entered: Entered<'_>) {
        let Entered { table, change, named, .. } = entered;
        let Change { key, effect, sequence, .. } = change;
        let mut state = table.lock();
        let inserted = state.pending.insert(&mut self.arena.write(), change);
        // What is in the journal must be in memory; a batch may pass the cap a little.
        inserted.expect("an arena without a cap");
        state.was_changed = true;
        if !planted!("total-kept-over-a-write") {
            state.directory.forget_total(key);
        }
        if effect != Effect::Remove && !planted!("end-not-moved-by-a-put") {
            state.ends.mark(key);
        }
        state.watches.mark(key, sequence);
        if let Some(named) = named {
            state.sides.give_back(key, named.side);
            self.values.note(sequence);
            table.set_has_values();
        }
        let created = state.directory.created();
        drop(state);
        if effect != Effect::Part && table.has_values() {
            self.note_replaced(session, &entered, created);
        }
    }

    /// Takes note that a row was written, if it has values that it does not name any more.
    fn note_replaced(
        &self,
        session: &entresol_tier::Session,
        entered: &Entered<'_>,
        created: Sequence,
    ) {
        let Entered { table, change: Change { key, sequence, .. }, named, bytes } = *entered;
        let is_there = |side: Side| {
            let name = ValueName { table: table.id(), created, key, side };
            let is_named = named.is_some_and(|named| named.side == side);
            !is_named && session.may_hold(self.key(&name.record_key()))
        };
        if Side::BOTH.into_iter().any(is_there) {
            let bytes = bytes.max(64) as u64;
            let (of, table) = (Owner::Table(Arc::clone(table)), table.id());
            let key = Box::from(key);
            self.values.push_replaced(Replaced { table, key, sequence, of, bytes });
        }
    }
}

/// What the journal and pages say of a write.
pub(crate) fn said<'a>(
    write: &Write<'a>,
    reference: Option<&'a [u8; REFERENCE_BYTES]>,
) -> (Effect, &'a [u8]) {
    match reference {
        Some(reference) => (Effect::Separate, reference),
        None => (write.action.effect(), write.action.value()),
    }
}

/// Puts the writes of `batch` in `builder`, then the names of tables that have no page. How many
/// names those are.
pub(crate) fn fill(builder: &mut BatchBuilder, batch: &Named<'_>) -> u32 {
    builder.clear();
    let Named { batch: WriteBatch { writes, .. }, values } = *batch;
    for (place, write) in writes.iter().enumerate() {
        let reference = values.get(place).copied().flatten().map(|named| named.encode());
        let (effect, value) = said(write, reference.as_ref());
        let (table, key) = (write.table.id(), write.key);
        builder.push(BatchOperation { table, key, effect, value });
    }
    let mut names = 0;
    for (place, Write { table, .. }) in writes.iter().enumerate() {
        let is_named = writes[..place].iter().any(|before| before.table.id() == table.id());
        if !table.is_durable() && !is_named {
            let (id, keeps_counts) = (table.id(), table.keeps_counts());
            let value = Naming { id, dropped: None, keeps_counts }.encode();
            let (key, effect) = (table.name(), Effect::Put);
            builder.push(BatchOperation { table: NAMES, key, effect, value: &value });
            names += 1;
        }
    }
    names
}

/// Refuses a key that no row has.
pub(super) fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > ROW_KEY_BYTES_MAX {
        let found = key.len();
        let detail = format!("a row's key has {found} bytes; expected 1 to {ROW_KEY_BYTES_MAX}");
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    Ok(())
}
