//! What the journal still has of changes: read once, when the tables are opened.

use std::collections::{BTreeMap, HashMap, HashSet};

use entresol_flash::{
    Durability, Error, ErrorKind, JournalAppend, JournalSequence, JournalState, OpenMode, Result,
    Timestamp,
};
use entresol_planted::planted;
use entresol_tier::{SessionOptions, Tiered};

use crate::error::corrupt;
use crate::format::{Batch, Damage, Effect, INLINE_VALUE_BYTES_MAX, PageRole, page_key, u64_at};
use crate::journal::{Journal, journaled};
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

/// What lists of tables take for each.
const LISTED_BYTES: usize = 48;

/// Changes of tables that nobody has opened.
#[derive(Default)]
pub(crate) struct Recovered {
    /// By their numbers, the order in which sweeps merge them.
    tables: BTreeMap<u64, Pending>,
    names: HashMap<u64, Box<[u8]>>,
    name_bytes: usize,
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

    /// What waits of a table, which is in memory from now on.
    pub(crate) fn take(&mut self, id: u64) -> Option<Pending> {
        if let Some(name) = self.names.remove(&id) {
            self.name_bytes -= name.len();
        }
        self.tables.remove(&id)
    }

    /// Bytes of memory that it takes, beside the changes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let listed = (self.tables.len() + self.names.len()) * LISTED_BYTES;
        listed + self.name_bytes + self.dropped.len() * LISTED_BYTES
    }

    /// The first table with changes whose number is `id` or above it.
    pub(crate) fn first_from(&self, id: u64) -> Option<u64> {
        self.tables.range(id..).next().map(|(id, _)| *id)
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
                    self.name_bytes += operation.key.len();
                    if let Some(before) = self.names.insert(id, Box::from(operation.key)) {
                        self.name_bytes -= before.len();
                    }
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
    let mut session = store.session(SessionOptions { depth: 1, ..SessionOptions::default() })?;
    let may_write = store.store().options().mode != OpenMode::ReadOnly;
    if may_write && is_scattered(&store.store().journal_state(options.lane)?) {
        gather(store, &mut session, options.lane, now)?;
    }
    let mut recovered = Recovered::default();
    // Writers wait long before it is full: it need not have a cap of its own.
    let mut arena = Arena::new(u64::MAX);
    let (mut last, mut damage): (u64, Option<Error>) = (0, None);
    let mut last_record = None;
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
                last_record = Some(record.sequence);
            }
            Err(found) => damage = Some(corrupt(&found, NAMES)),
        }
    })?;
    if let Some(damage) = damage {
        return Err(damage);
    }
    let key = closed_key();
    let mut closed = None;
    let get =
        entresol_flash::Operation::Get { key: crate::format::record_key(options.space, &key) };
    session.run(now, get, &mut |outcome| {
        if let entresol_flash::Outcome::Found(entry) = outcome {
            closed = u64_at(entry.value, 0);
        }
    })?;
    recovered.is_exact = closed.is_some();
    let mut journal = Journal::after(Sequence(last.max(closed.unwrap_or(0))));
    journal.take_over(last_record);
    Ok((recovered, journal, arena))
}

/// Whether the journal's records should move together: each opening begins a segment, and a few
/// more openings would leave no other. So they do where they take half of the segments that there
/// may be and fill them half at most, unless there is no room for copies.
fn is_scattered(state: &JournalState) -> bool {
    let segment_bytes = u64::from(state.segment_bytes);
    let (taken, most) = (u64::from(state.segments), u64::from(state.segments_max));
    // The end of a segment may be too short for the next record.
    let copies = (state.bytes * 5 / 4).div_ceil(segment_bytes);
    taken > 0
        && 2 * taken >= most
        && 2 * state.bytes <= taken * segment_bytes
        && taken + copies <= most
}

/// Appends all records of the journal once more, and cuts off those that were copied.
///
/// A crash may leave both, and then what comes for the second time is left out: changes have
/// sequences. The store erases no segment before all that was appended earlier is durable, so that
/// the copies are. They are erased on return: if crashes brought them back again and again, they
/// would fill the journal.
fn gather(
    store: &Tiered,
    session: &mut entresol_tier::Session,
    lane: u16,
    now: Timestamp,
) -> Result<()> {
    let (mut first, mut failed) = (None, None);
    let mut copied = HashSet::new();
    store.store().replay_journal(lane, &mut |record| {
        // What cannot be read is copied as it is: the replay says what is wrong with it.
        let batch = Batch::parse(record.bytes).ok();
        let is_known = batch.is_some_and(|batch| !copied.insert(batch.sequence));
        let is_lost = copied.len() == 1 && planted!("journal-gathered-in-part");
        if failed.is_some() || is_known || is_lost {
            return;
        }
        let (owner, bytes) = (record.owner, record.bytes);
        let append = JournalAppend { lane, owner, bytes, durability: Some(Durability::Memory) };
        match append_one(session, now, append) {
            Ok(copy) => first = first.or(Some(copy)),
            Err(error) => failed = Some(error),
        }
    })?;
    match (first, failed) {
        // Merges make room; what was copied is there twice until then.
        (_, Some(error)) if error.kind() == ErrorKind::Full => Ok(()),
        (_, Some(error)) => Err(error),
        (Some(first), None) => {
            store.store().trim_journal(lane, first)?;
            store.store().free_journal(lane)
        }
        (None, None) => Ok(()),
    }
}

fn append_one(
    session: &mut entresol_tier::Session,
    now: Timestamp,
    append: JournalAppend<'_>,
) -> Result<JournalSequence> {
    let mut ended = None;
    session.submit_journal(0, now, append, &mut |_, outcome| {
        ended = Some(outcome.map(journaled));
    });
    while session.in_flight() > 0 {
        session.poll(1, now, &mut |_, outcome| {
            ended = Some(outcome.map(journaled));
        })?;
    }
    ended.expect("an append that ended was visited")
}
