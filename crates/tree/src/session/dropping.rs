//! A table is dropped by one change in the journal: all its rows are gone from then on.

use std::ops::Bound;
use std::sync::Arc;

use entresol_flash::{Durability, JournalAppend, JournalRoom, Result, Timestamp};

use super::{Session, Visit, waiting};
use crate::format::{BatchOperation, Effect, NAMES, Naming};
use crate::journal::{Journal, Journaled, journaled};
use crate::sequence::Sequence;
use crate::shared::{Dropped, Shared};
use crate::table::Table;
use crate::values::{Owner, Replaced};

/// How a batch is appended to the journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Append {
    pub durability: Option<Durability>,
    /// What it may take of the journal.
    pub room: JournalRoom,
}

impl Session {
    /// Begins to remove all rows of a table, whether it has any or not. It is done once that is
    /// durable, and readers see no row from the call on; a scan under way may have some. The table
    /// can be written again at once. Its pages are removed by `Tree::maintain`.
    ///
    /// Errors: `Full`, where the journal has no room: call `Tree::maintain` and try again.
    pub fn drop_table(&mut self, token: u64, now: Timestamp, table: &Arc<Table>, visit: Visit<'_>) {
        self.in_flight += 1;
        let shared = Arc::clone(&self.shared);
        let slot = self.take(waiting(token));
        let mut journal = shared.journal.lock();
        journal.builder.clear();
        let created = table.read().directory.created();
        let key = table.name();
        let (id, keeps_counts) = (table.id(), table.keeps_counts());
        let value = Naming { id, dropped: Some(created.0), keeps_counts }.encode();
        let effect = Effect::Remove;
        journal.builder.push(BatchOperation { table: NAMES, key, effect, value: &value });
        // It makes room, and is taken however full the journal is.
        let append = Append { durability: Some(Durability::Synced), room: JournalRoom::Beyond };
        let appended = self.append_built(slot, now, append, &mut journal);
        let ended = appended.map(|(answer, _)| {
            let first = journal.take(1);
            forget(&shared, table, first);
            self.settle_slot(slot, first..=first, answer, &mut journal)
        });
        drop(journal);
        self.appended(token, ended, visit);
    }

    /// Hands what the builder has to the store's journal. Where it is, if it is as durable as asked
    /// for at once, and how many bytes it has there; after an error the slot is given back.
    pub(super) fn append_built(
        &mut self,
        slot: u32,
        now: Timestamp,
        append: Append,
        journal: &mut Journal,
    ) -> Result<(Option<Journaled>, usize)> {
        let built = journal.build();
        let (lane, bytes, continues) = (self.shared.options.lane, built.whole, built.continues);
        let Append { durability, room } = append;
        let append = JournalAppend { lane, owner: 0, bytes, durability, continues, room };
        let mut answer = None;
        self.store.submit_journal(slot.into(), now, append, &mut |_, outcome| {
            answer = Some(outcome.map(journaled));
        });
        let answer = answer.transpose().inspect_err(|_| self.give_back(slot))?;
        let bytes = built.bytes(answer);
        journal.appended(answer);
        Ok((answer, bytes))
    }

    /// A batch has its changes. The last of them, where it is as durable as asked for.
    pub(super) fn settle_slot(
        &mut self,
        slot: u32,
        changes: std::ops::RangeInclusive<Sequence>,
        answer: Option<Journaled>,
        journal: &mut Journal,
    ) -> Option<Sequence> {
        let (first, last) = changes.into_inner();
        if let Some(place) = answer {
            journal.place(first, place);
            self.give_back(slot);
            return Some(last);
        }
        let token = self.token_of(slot);
        self.operations[slot as usize] = Some(super::Pending::Write { token, first, last });
        None
    }
}

/// Lets all that is known of a table leave memory.
fn forget(shared: &Shared, table: &Table, sequence: Sequence) {
    let mut state = table.lock();
    let created = state.directory.created();
    if table.has_values() {
        let arena = shared.arena.read();
        for entry in state.pending.range(&arena, Bound::Unbounded, Bound::Unbounded) {
            // Whatever the row is now, a value of before may still be there.
            let (key, of) = (Box::from(entry.key()), Owner::Dropped { created });
            let (table, bytes) = (table.id(), 0);
            shared.values.push_replaced(Replaced { table, key, sequence, of, bytes });
        }
    }
    state.pending.clear(&mut shared.arena.write());
    state.directory.restart(sequence);
    state.was_changed = true;
    state.watches.mark_all(sequence);
    table.set_dropped();
    let mut all = shared.dropped.lock();
    let dropped: &mut Dropped = all.entry(table.id()).or_default();
    dropped.sequence = sequence;
    dropped.created.push(created);
}
