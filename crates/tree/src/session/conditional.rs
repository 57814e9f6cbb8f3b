//! Batches that are written only if rows are as expected, tested and written as one step.
//!
//! The rows are read as gets read them, while their keys are watched. Under the journal's lock,
//! where no change can come, a row that was read and whose key has no mark is as it was read. One
//! whose key has a mark changed meanwhile: mostly the change waits in memory and says all by
//! itself, else the row is read again.
//!
//! Only a row whose changes were merged, or added as parts, between two looks at it has to be read
//! again. After `ROUNDS_MAX` of them the batch ends as `Busy`, and nothing is written.

use std::collections::HashSet;
use std::sync::Arc;

use entresol_flash::{Durability, Error, ErrorKind, Outcome as Stored, Result, Timestamp};

use super::lookup::Lookup;
use super::owned::OwnedWrite;
use super::placing::{Placement, Putting};
use super::writing::Named;
use super::{
    Action, Ask, Next, Outcome, Pending, Session, Visit, Write, WriteBatch, check_key, waiting,
};
use crate::error::refused;
use crate::merge::{Gathered, Resolved};
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::{Copied, Table, Watch};

/// So often rows are read for one batch.
const ROUNDS_MAX: u32 = 16;

/// A batch that is written only if all rows are as expected.
#[derive(Debug, Clone, Copy)]
pub struct ConditionalBatch<'a> {
    /// What must be so, in any order. Each one speaks of the rows as they are before the batch.
    pub conditions: &'a [RowCondition<'a>],
    /// What is written then.
    pub batch: WriteBatch<'a>,
}

/// What one row must be.
#[derive(Debug, Clone, Copy)]
pub struct RowCondition<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The row's key.
    pub key: &'a [u8],
    /// What is expected of it.
    pub expected: Expected<'a>,
}

/// What is expected of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected<'a> {
    /// There is no such row.
    Absent,
    /// There is such a row.
    Present,
    /// The row has this value.
    Value(&'a [u8]),
}

impl Expected<'_> {
    fn is_met_by(self, row: Option<&[u8]>) -> bool {
        match self {
            Expected::Absent => row.is_none(),
            Expected::Present => row.is_some(),
            Expected::Value(value) => row == Some(value),
        }
    }
}

impl Session {
    /// Begins a batch that is written only if rows are as expected. Test and batch are one step:
    /// no change of these rows comes between them.
    ///
    /// Errors: as of `write`. `Busy` also where the rows change faster than they can be read.
    pub fn write_if(
        &mut self,
        token: u64,
        now: Timestamp,
        conditional: ConditionalBatch<'_>,
        visit: Visit<'_>,
    ) {
        self.in_flight += 1;
        let keys = conditional.conditions.iter().map(|condition| check_key(condition.key));
        let checked = keys.collect::<Result<()>>();
        if let Err(error) = checked.and_then(|()| self.check(conditional.batch.writes, &[])) {
            return self.finish(token, Err(error), visit);
        }
        let mut conditional = Conditional::new(token, conditional, &self.shared);
        if conditional.writes.iter().any(|write| self.is_separate(&write.borrow()))
            && let Err(error) = self.shared.watch_values(now)
        {
            return self.finish(token, Err(error), visit);
        }
        conditional.leave_out_overtaken(&|write| self.is_separate(write));
        for (index, write) in conditional.writes.iter().enumerate() {
            if self.is_separate(&write.borrow()) {
                conditional.placement.add(index, &write.table, &write.key);
            }
        }
        let conditional = Box::new(conditional);
        let slot = self.take(Pending::Conditional(conditional));
        self.advance(slot, now, Next::Locate, visit);
    }

    /// Writes the conditional batch in `slot`, all of whose rows were read. `None`: it was visited,
    /// or waits for the journal.
    pub(super) fn conclude(&mut self, slot: u32, now: Timestamp, visit: Visit<'_>) -> Option<Next> {
        let Some(Pending::Conditional(mut conditional)) = self.operations[slot as usize].take()
        else {
            unreachable!("a conditional batch")
        };
        let token = conditional.token();
        self.operations[slot as usize] = Some(waiting(token));
        let shared = Arc::clone(&self.shared);
        let values = conditional.placement.named(conditional.writes.len());
        let is_placed = conditional.placement.is_complete();
        let checked = match is_placed {
            true => self.check(&conditional.writes(), &values),
            false => Ok(()),
        };
        let mut journal = shared.journal.lock();
        let judged = checked.and_then(|()| conditional.judge(&shared));
        if let Ok(Verdict::Holds) = judged
            && is_placed
            && conditional.placement.is_current()
        {
            let (writes, durability) = (conditional.writes(), conditional.durability());
            let batch = WriteBatch { writes: &writes, durability };
            let appended = self.append(slot, now, Named { batch, values: &values }, &mut journal);
            drop(journal);
            drop(writes);
            match appended.is_ok() {
                true => conditional.placement.commit(),
                false => self.abandon_of(&mut conditional.placement, now),
            }
            self.appended(token, appended, visit);
            return None;
        }
        drop(journal);
        if let Ok(Verdict::Holds) = judged
            && is_placed
        {
            // A table was dropped meanwhile, and has other values.
            self.abandon_of(&mut conditional.placement, now);
        }
        let ended = match judged {
            Ok(Verdict::Fails(index)) => Ok(index),
            Err(error) => Err(error),
            Ok(Verdict::Holds | Verdict::Again) => match conditional.count_round() {
                Ok(()) => {
                    self.operations[slot as usize] = Some(Pending::Conditional(conditional));
                    return Some(Next::Locate);
                }
                Err(error) => Err(error),
            },
        };
        self.abandon_of(&mut conditional.placement, now);
        self.give_back(slot);
        self.finish(token, ended.map(|index| conditional.refusal(index)), visit);
        None
    }
}

/// A conditional batch on its way.
pub(super) struct Conditional {
    token: u64,
    conditions: Vec<Condition>,
    writes: Vec<OwnedWrite>,
    durability: Option<Durability>,
    /// The condition whose row is being read.
    reading: Option<(usize, Box<Lookup>)>,
    rounds: u32,
    /// The values that are records of their own.
    placement: Placement,
}

struct Condition {
    watch: Watch,
    expected: Expected<'static>,
    /// The value where that is expected.
    value: Vec<u8>,
    found: Found,
}

/// What is known of a row.
enum Found {
    Unknown,
    Missing,
    Row(Vec<u8>),
}

/// What becomes of a batch now.
enum Verdict {
    /// All conditions hold.
    Holds,
    /// This one does not.
    Fails(usize),
    /// Rows changed since they were read.
    Again,
}

impl Conditional {
    /// Watches the rows from now on.
    fn new(token: u64, conditional: ConditionalBatch<'_>, shared: &Shared) -> Conditional {
        let ConditionalBatch { conditions, batch } = conditional;
        Conditional {
            token,
            conditions: conditions.iter().map(Condition::new).collect(),
            writes: batch.writes.iter().map(OwnedWrite::new).collect(),
            durability: batch.durability,
            reading: None,
            rounds: 0,
            placement: Placement::new(shared),
        }
    }

    /// Leaves out values for records of their own whose rows get others later in the same batch: a
    /// row has two sides, one of which may still hold what was durable before the batch.
    fn leave_out_overtaken(&mut self, is_separate: &dyn Fn(&Write<'_>) -> bool) {
        let mut later = HashSet::new();
        let mut kept: Vec<_> = std::mem::take(&mut self.writes);
        kept.reverse();
        kept.retain(|write| {
            let borrowed = write.borrow();
            let is_whole = !matches!(borrowed.action, Action::Add(_));
            let is_first = !is_whole || later.insert((write.table.id(), write.key.clone()));
            is_first || !is_separate(&borrowed)
        });
        kept.reverse();
        self.writes = kept;
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    fn durability(&self) -> Option<Durability> {
        self.durability
    }

    fn writes(&self) -> Vec<Write<'_>> {
        self.writes.iter().map(OwnedWrite::borrow).collect()
    }

    /// As of a lookup. `None`: all rows were read.
    pub(super) fn prepare(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        mut next: Next,
    ) -> Result<Option<Ask>> {
        loop {
            if let Some((index, lookup)) = &mut self.reading {
                let found = &mut self.conditions[*index].found;
                let mut failed = None;
                let key = lookup.prepare(shared, store, next, &mut |_, outcome| {
                    failed = found.take(outcome).err();
                })?;
                if let Some(error) = failed {
                    return Err(error);
                }
                if key.is_some() {
                    return Ok(key);
                }
                self.reading = None;
            }
            let is_unknown = |condition: &Condition| matches!(condition.found, Found::Unknown);
            let Some(index) = self.conditions.iter().position(is_unknown) else {
                return self.place(shared, store);
            };
            let watch = &mut self.conditions[index].watch;
            // Before the lookup looks anywhere: a change that it does not see leaves a mark.
            watch.renew();
            let lookup = Lookup::new(self.token, watch.table(), watch.key()).past_leaf();
            self.reading = Some((index, Box::new(lookup)));
            next = Next::Locate;
        }
    }

    /// Puts the next value, unless a condition fails as things stand.
    fn place(&mut self, shared: &Shared, store: &entresol_tier::Session) -> Result<Option<Ask>> {
        let holds = |condition: &Condition| {
            let row = condition.found.row();
            row.is_none_or(|row| condition.expected().is_met_by(row))
        };
        if !self.conditions.iter().all(holds) {
            return Ok(None);
        }
        self.placement.next(shared, store, &mut self.writes)
    }

    pub(super) fn placement(&mut self) -> &mut Placement {
        &mut self.placement
    }

    /// The value that was handed to the store.
    pub(super) fn take_back(&mut self, putting: Putting) {
        let (write, value) = putting.into_value();
        self.writes[write].value = value;
    }

    /// As of a lookup.
    pub(super) fn take(&mut self, shared: &Shared, outcome: Result<Stored<'_>>) -> Next {
        if self.placement.is_putting() {
            let taken = self.placement.take(shared, outcome);
            return taken.map_or_else(Next::Fail, |()| Next::Locate);
        }
        let (index, lookup) = self.reading.as_mut().expect("a row that is being read");
        let found = &mut self.conditions[*index].found;
        let mut failed = None;
        let next = lookup.take(shared, outcome, &mut |_, outcome| {
            failed = found.take(outcome).err();
        });
        failed.map_or(next, Next::Fail)
    }

    /// Whether the batch may be written. Called under the journal's lock, which keeps changes away.
    fn judge(&mut self, shared: &Shared) -> Result<Verdict> {
        let mut verdict = Verdict::Holds;
        for (index, condition) in self.conditions.iter_mut().enumerate() {
            condition.look_again(shared)?;
            let Some(row) = condition.found.row() else {
                verdict = Verdict::Again;
                continue;
            };
            if !condition.expected().is_met_by(row) {
                return Ok(Verdict::Fails(index));
            }
        }
        Ok(verdict)
    }

    /// Counts a round that came to nothing.
    ///
    /// Errors: `Busy`, where it was one too many.
    fn count_round(&mut self) -> Result<()> {
        self.rounds += 1;
        if self.rounds < ROUNDS_MAX {
            return Ok(());
        }
        let detail = format!(
            "rows that a batch depends on changed each of the {ROUNDS_MAX} times that they were \
             read; try again"
        );
        Err(Error::new(ErrorKind::Busy, detail))
    }

    /// What is said of condition `index`, which does not hold.
    fn refusal(&self, index: usize) -> Outcome<'_> {
        let found = match &self.conditions[index].found {
            Found::Row(value) => Some(&value[..]),
            Found::Missing | Found::Unknown => None,
        };
        Outcome::Refused { condition: index, found }
    }
}

impl Condition {
    fn new(condition: &RowCondition<'_>) -> Condition {
        let (expected, value) = match condition.expected {
            Expected::Absent => (Expected::Absent, Vec::new()),
            Expected::Present => (Expected::Present, Vec::new()),
            Expected::Value(value) => (Expected::Value(&[]), value.to_vec()),
        };
        let watch = Watch::new(condition.table, condition.key);
        Condition { watch, expected, value, found: Found::Unknown }
    }

    fn expected(&self) -> Expected<'_> {
        match self.expected {
            Expected::Value(_) => Expected::Value(&self.value),
            other => other,
        }
    }

    /// Looks at the row's changes in memory, if it changed since it was read. The table's merge
    /// function may be called, under the lock of the journal: it is a pure function, and folds the
    /// parts of one row.
    fn look_again(&mut self, shared: &Shared) -> Result<()> {
        let (table, key) = (self.watch.table(), self.watch.key());
        let mut copied = Copied::default();
        {
            let state = table.read();
            if !self.watch.is_marked(&state) {
                return Ok(());
            }
            copied.copy_key(&state.pending, &shared.arena.read(), key);
        }
        let changes = copied.changes();
        let mut gathered = Gathered::default();
        gathered.start(key);
        gathered.apply_after(Sequence(0), &changes);
        self.found = Found::Unknown;
        // A value that is a record of its own is not at hand: it is read again.
        if gathered.is_whole() && gathered.separate().is_none() {
            let merge = shared.merge_of(table);
            let mut folded = Vec::new();
            let resolved = gathered.resolve(merge.as_ref().map(|merge| &**merge as _), &mut folded);
            self.found = match resolved.map_err(|error| refused(table, &error))? {
                Resolved::Row(value) => Found::Row(value.to_vec()),
                Resolved::Gone | Resolved::Separate => Found::Missing,
            };
        }
        Ok(())
    }
}

impl Found {
    /// The row, if it is known what it is.
    fn row(&self) -> Option<Option<&[u8]>> {
        match self {
            Found::Unknown => None,
            Found::Missing => Some(None),
            Found::Row(value) => Some(Some(value)),
        }
    }

    fn take(&mut self, outcome: Result<Outcome<'_>>) -> Result<()> {
        *self = match outcome? {
            Outcome::Found(value) => Found::Row(value.to_vec()),
            _ => Found::Missing,
        };
        Ok(())
    }
}
