//! Large values that stand in memory and in the journal become records of their own, before merges
//! bring them to leaves.
//!
//! A writer leaves a value there where both sides of its row are still needed: the row was written
//! twice between two syncs. Maintenance waits for a sync, which frees the sides, and writes the row
//! once more as any writer would, with the same value: the value first, then a batch that names it.
//! So nothing new holds for crashes, and a table whose rows are all large has no small row in its
//! pages.
//!
//! Invariants:
//! 1. The batch is written only if the row's newest change is the one whose value was put.
//! 2. A side of the row is freed only once that change is durable.

use std::ops::Bound;
use std::sync::Arc;

use entresol_flash::{
    Durability, Error, ErrorKind, JournalAppend, JournalRoom, Operation, Outcome, PutOptions,
    Result, SyncPoint, Timestamp,
};
use entresol_planted::planted;

use super::merging::Work;
use super::{Maintainer, Round, Stage};
use crate::format::{
    BATCH_FRAME_BYTES_MAX, Effect, INLINE_VALUE_BYTES_MAX, OPERATION_FRAME_BYTES_MAX,
    REFERENCE_BYTES, Reference, Side, ValueName,
};
use crate::journal::{WRITERS_ROOM, journaled};
use crate::merge::Change;
use crate::pending::Entry;
use crate::sequence::Sequence;
use crate::session::{Action, Entered, NAMING_BYTES, Named, Write, WriteBatch, fill, said};
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::{Directory, Keys, Place, Table};

/// Parts of a row with a large value are folded where they have more bytes, if its leaf is written
/// anew because it does not hold some.
pub(super) const PART_BYTES_MAX: usize = 8 << 10;
/// Rows that one batch names.
const BATCH_ROWS: usize = 64;

/// So often a round tries to find sides: writers may hold those of a row for a moment. Then the
/// values go to leaves, as small ones do.
const TRIES_MAX: u32 = 8;

/// A row that is to have a value of its own.
pub(super) struct LargeRow {
    pub table: Arc<Table>,
    pub key: Vec<u8>,
    /// Of which table of the name it is.
    pub created: Sequence,
    /// Its newest change, if one waits.
    pub newest: Option<Sequence>,
    pub to: Anew,
}

/// What a row is once it is written anew.
pub(super) enum Anew {
    /// It has this value, in a record of its own.
    Large(Vec<u8>),
    /// It has this value, in a leaf.
    Small(Vec<u8>),
    /// There is no such row.
    Gone,
}

/// The rows of a round that are to have values of their own.
pub(super) struct LargeRows {
    rows: Vec<LargeRow>,
    /// Merges will fold parts into large values, which takes a free side as well.
    folds: bool,
    /// Their changes are durable once the round has waited.
    confirmed: Sequence,
    /// How often that was tried in this round.
    tries: u32,
}

impl LargeRows {
    /// Rows with large values among the changes up to `through` that the works merge.
    pub(super) fn find(shared: &Shared, works: &[Work], through: Sequence) -> LargeRows {
        let least = shared.options.separate_bytes_min.min(INLINE_VALUE_BYTES_MAX + 1);
        let (mut rows, mut folds, mut last) = (Vec::new(), false, Sequence(0));
        let has_values =
            |work: &&Work| work.table.has_values() && !planted!("large-values-left-in-leaves");
        for work in works.iter().filter(has_values) {
            let mut state = work.table.lock();
            let (low, high) = work.range(&mut state.directory, shared.options.leaf_bytes_max);
            let keys = Keys { low: &low, high: high.as_deref() };
            if keys.is_empty() {
                continue;
            }
            let created = state.directory.created();
            let arena = shared.arena.read();
            for entry in state.pending.range(&arena, Bound::Included(keys.low), keys.high_bound()) {
                let Some(newest) = entry.newest_first().next() else { continue };
                let Change { effect, sequence, value, .. } = newest;
                if sequence > through {
                    continue;
                }
                if effect == Effect::Part && part_bytes(&entry) > PART_BYTES_MAX {
                    (folds, last) = (true, last.max(sequence));
                }
                if effect == Effect::Put && value.len() >= least {
                    last = last.max(sequence);
                    let (table, key) = (Arc::clone(&work.table), entry.key().to_vec());
                    let to = Anew::Large(value.to_vec());
                    rows.push(LargeRow { table, key, created, newest: Some(sequence), to });
                }
            }
        }
        let confirmed = if shared.values.is_confirmed(last) { last } else { through };
        LargeRows { rows, folds, confirmed, tries: 0 }
    }

    /// What the round waits for: the rows' changes, unless they are known to be durable.
    pub(super) fn point(&self, shared: &Shared, session: &entresol_tier::Session) -> SyncPoint {
        match shared.values.is_confirmed(self.confirmed) {
            true => SyncPoint::default(),
            false => session.sync_point(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && !self.folds
    }
}

/// Bytes of the parts that wait of a row.
fn part_bytes(entry: &Entry<'_>) -> usize {
    let parts = entry.newest_first().take_while(|change| change.effect == Effect::Part);
    parts.map(|part| part.value.len()).sum()
}

impl Maintainer {
    /// Gives large values that stand in the journal records of their own, now that the changes are
    /// durable. Then merges, unless writers hold sides of rows.
    pub(super) fn place(
        &mut self,
        shared: &Arc<Shared>,
        now: Timestamp,
        mut round: Round,
        large: LargeRows,
    ) -> Result<Stage> {
        let LargeRows { rows, confirmed, tries, .. } = large;
        shared.values.confirm(confirmed);
        let room = WRITERS_ROOM;
        let session = &mut self.session;
        let mut placing = Placing { shared, session, now, confirmed, room };
        let rows = placing.place(rows)?.sides;
        let tries = tries + 1;
        if rows.is_empty() || tries == TRIES_MAX {
            return Ok(Stage::Rights(self.merge(shared, now, round)?));
        }
        round.point = self.session.sync_point();
        Ok(Stage::Values(round, LargeRows { rows, folds: true, confirmed, tries }))
    }
}

/// Where rows are written once more.
pub(super) struct Placing<'s> {
    pub shared: &'s Shared,
    pub session: &'s mut entresol_tier::Session,
    pub now: Timestamp,
    /// Changes up to this one are durable, and so are the values that they name.
    pub confirmed: Sequence,
    /// What batches may take of the journal.
    pub room: JournalRoom,
}

/// Rows that were given no value of their own.
pub(super) struct Left {
    /// Writers hold their sides, or the store has no room.
    pub sides: Vec<LargeRow>,
    /// So many found no room in the journal.
    pub journal: usize,
}

impl Left {
    pub(super) fn is_empty(&self) -> bool {
        self.sides.is_empty() && self.journal == 0
    }
}

/// A row whose value was put, and which no batch names so far.
struct Placed {
    row: LargeRow,
    /// Where its value is, if that is a record of its own.
    reference: Option<Reference>,
}

impl Placing<'_> {
    /// Gives each row a value of its own.
    pub(super) fn place(&mut self, rows: Vec<LargeRow>) -> Result<Left> {
        let (mut placed, mut bytes) = (Vec::new(), BATCH_FRAME_BYTES_MAX);
        let mut left = Left { sides: Vec::new(), journal: 0 };
        let epoch = self.shared.values.begin();
        for row in rows {
            if !row.is_current(self.shared) && !planted!("old-value-written-once-more") {
                continue;
            }
            let own = row.batch_bytes();
            let most = self.shared.store.store().journal_record_bytes_max();
            if placed.len() == BATCH_ROWS || bytes + own > most {
                left.journal += self.write(&mut placed)?;
                bytes = BATCH_FRAME_BYTES_MAX;
            }
            bytes += own;
            let Anew::Large(value) = &row.to else {
                placed.push(Placed { row, reference: None });
                continue;
            };
            match self.put(&row, value)? {
                Some(reference) => placed.push(Placed { row, reference: Some(reference) }),
                None => left.sides.push(row),
            }
        }
        left.journal += self.write(&mut placed)?;
        // Where it failed, the next opening looks for values that no batch names.
        self.shared.values.end(epoch);
        Ok(left)
    }

    /// Puts the value of a row on a side that nobody needs. `None`: there is none, or no room.
    fn put(&mut self, row: &LargeRow, value: &[u8]) -> Result<Option<Reference>> {
        let Placing { shared, session, now, confirmed, .. } = self;
        let taken = shared.take_superseded(&row.table, &row.key, *confirmed);
        if let Some(taken) = taken {
            shared.discard_taken(session, *now, &row.table, &taken)?;
        }
        let is_free = |side: &Side| shared.take_side(session, &row.table, &row.name(*side));
        let Some(side) = Side::BOTH.into_iter().find(is_free) else { return Ok(None) };
        let key = row.name(side).record_key();
        let options = PutOptions { durability: Some(Durability::Memory), ..PutOptions::default() };
        let put = Operation::Put { key: shared.key(&key), value, options };
        let mut version = 0;
        let ended = session.run(*now, put, &mut |outcome| {
            if let Outcome::Stored { version: given } = outcome {
                version = given.0;
            }
        });
        match ended {
            Ok(()) if version > 0 => {}
            Err(error) if !is_lack(&error) => return Err(error),
            _ => {
                self.take_back(row, side)?;
                return Ok(None);
            }
        }
        Counters::add(&shared.counters.values_moved, 1);
        Ok(Some(Reference { version, bytes: value.len() as u32, side }))
    }

    /// Removes a value that no batch names.
    fn take_back(&mut self, row: &LargeRow, side: Side) -> Result<()> {
        self.shared.discard(self.session, self.now, &row.name(side))?;
        row.table.lock().sides.give_back(&row.key, side);
        Ok(())
    }

    /// Writes a batch that names the values of the rows, but for those that changed meanwhile. For
    /// how many rows the journal had no room.
    fn write(&mut self, placed: &mut Vec<Placed>) -> Result<usize> {
        let all = std::mem::take(placed);
        if all.is_empty() {
            return Ok(0);
        }
        let (shared, lane) = (self.shared, self.shared.options.lane);
        let mut journal = shared.journal.lock();
        // No change is entered while the journal is locked.
        let is_current = |placed: &Placed| {
            placed.row.is_current(shared) || planted!("old-value-written-once-more")
        };
        let (rows, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_current);
        if rows.is_empty() {
            drop(journal);
            self.take_all_back(&others)?;
            return Ok(0);
        }
        let values: Vec<_> = rows.iter().map(|placed| placed.reference).collect();
        let writes: Vec<_> = rows.iter().map(|placed| placed.row.write()).collect();
        let batch = WriteBatch { writes: &writes, durability: None };
        let names = fill(&mut journal.builder, &Named { batch, values: &values });
        let built = journal.build();
        let (bytes, continues) = (built.whole, built.continues);
        let durability = Some(Durability::Memory);
        let room = self.room;
        let append = JournalAppend { lane, owner: 0, bytes, durability, continues, room };
        let mut ended = None;
        self.session.submit_journal(0, self.now, append, &mut |_, outcome| {
            ended = Some(outcome.map(journaled));
        });
        let place = match ended.transpose() {
            Ok(place) => place,
            Err(error) => {
                drop(journal);
                let count = rows.len();
                others.extend(rows);
                self.take_all_back(&others)?;
                return if is_lack(&error) { Ok(count) } else { Err(error) };
            }
        };
        Counters::add(&shared.counters.journal_bytes, built.bytes(place));
        journal.appended(place);
        let first = journal.take(rows.len() as u32 + names);
        for (index, Placed { row, reference }) in rows.iter().enumerate() {
            let (sequence, named) = (Sequence(first.0 + index as u64), *reference);
            let encoded = reference.map(|reference| reference.encode());
            let (effect, value) = said(&row.write(), encoded.as_ref());
            let change = Change { key: &row.key, effect, sequence, value };
            let (table, bytes) = (&row.table, row.value_bytes());
            shared.enter(self.session, Entered { table, change, named, bytes });
        }
        drop(journal);
        let mut place = place.map(Ok);
        while place.is_none() && self.session.in_flight() > 0 {
            self.session.poll(1, self.now, &mut |_, outcome| {
                place = Some(outcome.map(journaled));
            })?;
        }
        if let Some(place) = place.transpose()? {
            shared.journal.lock().place(first, place);
        }
        self.take_all_back(&others)?;
        Ok(0)
    }

    fn take_all_back(&mut self, others: &[Placed]) -> Result<()> {
        for Placed { row, reference } in others {
            if let Some(reference) = reference {
                self.take_back(row, reference.side)?;
            }
        }
        Ok(())
    }
}

impl Work {
    /// Where the changes are that it merges: those of its range, and of leaves that join.
    fn range(
        &self,
        directory: &mut Directory,
        leaf_bytes_max: usize,
    ) -> (Vec<u8>, Option<Vec<u8>>) {
        let Place::Leaf(at) = directory.locate(&self.low) else {
            return (self.low.clone(), self.end.clone());
        };
        let at = directory.group(at, leaf_bytes_max).at;
        let high = at.high.as_ref().zip(self.end.as_ref()).map(|(high, end)| high.max(end).clone());
        (directory.low_of(&at).to_vec(), high)
    }
}

impl LargeRow {
    fn name(&self, side: Side) -> ValueName<'_> {
        let (table, created) = (self.table.id(), self.created);
        ValueName { table, created, key: &self.key, side }
    }

    /// How a batch says it. A value that was put is named beside.
    fn write(&self) -> Write<'_> {
        let action = match &self.to {
            Anew::Large(_) => Action::Put(&[]),
            Anew::Small(value) => Action::Put(value),
            Anew::Gone => Action::Remove,
        };
        Write { table: &self.table, key: &self.key, action }
    }

    fn value_bytes(&self) -> usize {
        match &self.to {
            Anew::Large(value) | Anew::Small(value) => value.len(),
            Anew::Gone => 0,
        }
    }

    /// Whether nothing was written to the row since it was found.
    fn is_current(&self, shared: &Shared) -> bool {
        let state = self.table.lock();
        let arena = shared.arena.read();
        let newest = state.pending.get(&arena, &self.key).next();
        state.directory.created() == self.created
            && newest.map(|newest| newest.sequence) == self.newest
    }

    /// Most bytes that a batch has for it.
    fn batch_bytes(&self) -> usize {
        let name = OPERATION_FRAME_BYTES_MAX + self.table.name().len() + NAMING_BYTES;
        let value = self.write().action.value().len().max(REFERENCE_BYTES);
        OPERATION_FRAME_BYTES_MAX + self.key.len() + value + name
    }
}

/// Whether there was no room: the value stays where it is.
fn is_lack(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Full | ErrorKind::Busy)
}
