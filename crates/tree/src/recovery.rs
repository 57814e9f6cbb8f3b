//! What the journal still has of changes: read once, when the tables are opened.

mod decoded;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;

use entresol_flash::{
    Durability, Error, ErrorKind, Job, JournalAppend, JournalRoom, JournalSequence, JournalState,
    OpenMode, Result, Timestamp,
};
use entresol_planted::planted;
use entresol_tier::{SessionOptions, Tiered};

use crate::error::corrupt;
use crate::format::{
    Batch, BatchBuilder, BatchReader, Damage, Effect, NAMES, PageRole, page_key, u64_at,
};
use crate::journal::{Found, Journal, Journaled as Placed, Tail, journaled};
use crate::merge::Change;
use crate::options::TreeOptions;
use crate::pending::{Arena, Names, Pending, Runs};
use crate::sequence::Sequence;
use crate::values::{FoundValues, Journaled, Place};
use decoded::{Decoding, Dropped, Drops, Known, Said, Step};

/// Key of the record that says that the tables were closed, and at which sequence.
pub(crate) fn closed_key() -> [u8; crate::format::PAGE_KEY_BYTES] {
    page_key(NAMES, 0, PageRole::Page)
}

/// What lists of tables take for each.
const LISTED_BYTES: usize = 48;

/// Parts of the journal that are decoded at the same time, at most.
const PARTS: usize = 4;

/// Changes of tables that nobody has opened.
#[derive(Default)]
pub(crate) struct Recovered {
    /// By their numbers, the order in which sweeps merge them.
    tables: BTreeMap<u64, Pending>,
    /// Changes that are in no map so far, while the journal is read.
    runs: BTreeMap<u64, Runs>,
    names: HashMap<u64, Box<[u8]>>,
    /// Those of them that keep counts.
    counted: HashSet<u64>,
    name_bytes: usize,
    /// Which change dropped a table last, and what *created* of its first record was each time.
    dropped: Drops,
    /// The tables were closed: what inner nodes say of leaves is so.
    pub is_exact: bool,
    /// What the store says of values that are records of their own.
    pub values: FoundValues,
}

impl Recovered {
    /// The name that the journal has of a table.
    pub(crate) fn name(&self, id: u64) -> Option<&[u8]> {
        self.names.get(&id).map(|name| &**name)
    }

    /// Whether the journal says that a table keeps counts.
    pub(crate) fn keeps_counts(&self, id: u64) -> bool {
        self.counted.contains(&id)
    }

    /// The change that dropped a table, as the journal has it.
    pub(crate) fn dropped(&self, id: u64) -> Option<Sequence> {
        self.dropped.get(&id).map(|(sequence, _)| *sequence)
    }

    /// All tables that were dropped.
    pub(crate) fn all_dropped(&self) -> HashMap<u64, (Sequence, Vec<Sequence>)> {
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
        let lists = self.tables.len() + self.names.len() + self.counted.len();
        let listed = lists * LISTED_BYTES;
        listed + self.name_bytes + self.dropped.len() * LISTED_BYTES
    }

    /// The first table with changes whose number is `id` or above it.
    pub(crate) fn first_from(&self, id: u64) -> Option<u64> {
        self.tables.range(id..).next().map(|(id, _)| *id)
    }

    /// Whether the journal has values of the table's rows that are records of their own.
    pub(crate) fn has_values(&self, id: u64) -> bool {
        self.values.has_table(id)
    }

    /// What is known before a part of the journal is decoded.
    fn known(&self) -> Known<'_> {
        Known { values: &self.values, dropped: &self.dropped }
    }

    /// Adds what the next part of the journal says.
    fn add(&mut self, arena: &mut Arena, names: &Names, said: Said) {
        for (id, named) in said.names {
            if named.keeps_counts {
                self.counted.insert(id);
            }
            self.name_bytes += named.name.len();
            if let Some(before) = self.names.insert(id, named.name) {
                self.name_bytes -= before.len();
            }
        }
        for (named, key) in said.values {
            self.values.note(named, key);
        }
        for step in said.steps {
            match step {
                Step::Changes(table, mut gathered) => {
                    gathered.rename(names);
                    let sorted = gathered.folded(arena);
                    self.runs.entry(table).or_default().push(arena, sorted);
                }
                Step::Dropped(dropped) => self.drop_table(arena, dropped),
            }
        }
    }

    fn drop_table(&mut self, arena: &mut Arena, dropped: Dropped) {
        let Dropped { table: id, sequence, created } = dropped;
        // What came to the map after the removal would be rows of a table made again.
        if !planted!("drop-before-what-was-gathered") {
            self.enter_runs(arena);
        }
        if let Some(pending) = self.tables.get(&id).filter(|_| self.values.has_table(id)) {
            for entry in pending.range(arena, Bound::Unbounded, Bound::Unbounded) {
                self.values.push_dropped(id, created, sequence, entry.key());
            }
        }
        let (by, before) = self.dropped.entry(id).or_default();
        *by = sequence.max(*by);
        before.push(created);
        if let Some(pending) = self.tables.get_mut(&id) {
            pending.remove_through(arena, &[], None, sequence);
        }
    }

    /// Brings all that was decoded into the maps.
    fn enter_runs(&mut self, arena: &mut Arena) {
        for (id, runs) in std::mem::take(&mut self.runs) {
            if let Some(sorted) = runs.joined(arena) {
                self.tables.entry(id).or_default().insert_sorted(arena, sorted);
            }
        }
    }

    /// Brings the last of what was decoded into the maps. What was decoded beside a drop did not
    /// know of it.
    fn finish(&mut self, arena: &mut Arena) {
        self.enter_runs(arena);
        if planted!("drop-before-what-was-gathered") {
            return;
        }
        for (id, (by, _)) in &self.dropped {
            if let Some(pending) = self.tables.get_mut(id) {
                pending.remove_through(arena, &[], None, *by);
            }
        }
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
    let place = Place { store, options, now };
    let mut values = FoundValues::read(&mut session, &place)?;
    let Replayed { mut recovered, arena, last, segments } = loop {
        let replayed = replay(&place, values)?;
        let lost = replayed.recovered.values.first_lost(&mut session, &place, &replayed)?;
        let Some(lost) = lost else { break replayed };
        // What came after that batch may name what it wrote: all of it never was.
        values = replayed.recovered.values.cut(lost, Sequence(replayed.last));
    };
    if may_write {
        recovered.values.write_cuts(&mut session, &place)?;
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
    journal.take_over(&segments);
    Ok((recovered, journal, arena))
}

/// What a replay of the journal found.
pub(crate) struct Replayed {
    pub recovered: Recovered,
    pub arena: Arena,
    /// The last change.
    pub last: u64,
    /// The segments with changes, in their order.
    segments: Vec<Found>,
}

impl Journaled for Replayed {
    fn whole(&self, table: u64, key: &[u8]) -> Option<Change<'_>> {
        let mut changes = self.recovered.tables.get(&table)?.get(&self.arena, key);
        changes.find(|change| change.effect != Effect::Part)
    }

    fn dropped(&self, table: u64) -> Option<Sequence> {
        self.recovered.dropped(table)
    }
}

/// Replays the journal, without the changes that `values` says never were.
fn replay(place: &Place<'_>, values: FoundValues) -> Result<Replayed> {
    let mut recovered = Recovered { values, ..Recovered::default() };
    // Writers wait long before it is full: it need not have a cap of its own.
    let mut arena = Arena::new(u64::MAX);
    let (mut last, mut damage): (u64, Option<Error>) = (0, None);
    let mut segments = Vec::new();
    let parallel = place.store.store().options().parallel;
    place.store.store().replay_journal_together(place.options.lane, &mut |reads| {
        if damage.is_some() {
            return;
        }
        let known = recovered.known();
        let share = reads.len().div_ceil(PARTS).max(1);
        let reads = reads.chunks_mut(share);
        let mut parts: Vec<_> = reads.map(|reads| (reads, None)).collect();
        let lent = arena.lend(parts.len());
        let jobs = parts.iter_mut().zip(lent).map(|((reads, decoded), lent)| {
            let decoding = Decoding::into(lent, known);
            let job: Job<'_> = Box::new(move || *decoded = Some(decoding.decode(reads)));
            job
        });
        parallel(jobs.collect());
        let ran = "whoever lends threads runs every job, or unwinds";
        let decoded = parts.into_iter().map(|(_, decoded)| decoded.expect(ran));
        // Blocks of earlier changes were lent, too: all are there before anything is compared.
        let said: Vec<_> = decoded.map(|(lent, said)| (arena.take_back(lent), said)).collect();
        let known_parts = if planted!("decoded-part-forgotten") { 1 } else { said.len() };
        for (names, said) in said.into_iter().take(known_parts) {
            damage = damage.take().or(said.damage.as_ref().map(|found| corrupt(found, NAMES)));
            last = last.max(said.last);
            segments.extend_from_slice(&said.segments);
            recovered.add(&mut arena, &names, said);
        }
    })?;
    recovered.finish(&mut arena);
    damage.map_or(Ok(Replayed { recovered, arena, last, segments }), Err)
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

/// Appends all batches of the journal once more, and cuts off those that were copied.
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
    let (mut reader, mut copied) = (BatchReader::default(), HashSet::new());
    let (builder, tail) = (BatchBuilder::default(), Tail::default());
    let mut copies = Copies { session, lane, now, builder, tail, first: None, failed: None };
    store.store().replay_journal(lane, &mut |record| {
        let read = reader.read(record.bytes).and_then(|batch| copies.take(batch));
        // One without changes has the sequence of the next one.
        let of_batch = |sequence: &Sequence| (*sequence, copies.builder.count());
        let is_known = read.as_ref().map(of_batch).is_ok_and(|batch| !copied.insert(batch));
        let is_lost = copied.len() == 1 && planted!("journal-gathered-in-part");
        if copies.failed.is_some() || is_known || is_lost {
            return;
        }
        match read {
            Ok(sequence) => copies.append(sequence),
            // It is copied as it is: the replay says what is wrong with it.
            Err(_) => copies.append_bytes(record.owner, record.bytes),
        }
    })?;
    match (copies.first, copies.failed) {
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

/// Copies of batches, at the end of the journal.
struct Copies<'s> {
    session: &'s mut entresol_tier::Session,
    lane: u16,
    now: Timestamp,
    builder: BatchBuilder,
    tail: Tail,
    first: Option<JournalSequence>,
    failed: Option<Error>,
}

impl Copies<'_> {
    /// Takes the changes of a batch; its sequence.
    fn take(&mut self, mut batch: Batch<'_, '_>) -> std::result::Result<Sequence, Damage> {
        self.builder.clear();
        while let Some(operation) = batch.operation() {
            self.builder.push(operation?);
        }
        Ok(batch.sequence)
    }

    /// Appends the batch that was taken.
    fn append(&mut self, sequence: Sequence) {
        let built = self.tail.build(&mut self.builder, sequence);
        let (lane, durability) = (self.lane, Some(Durability::Memory));
        let (bytes, continues) = (built.whole, built.continues);
        let append = JournalAppend {
            lane,
            owner: 0,
            bytes,
            durability,
            continues,
            room: JournalRoom::Leaving(0),
        };
        let appended = append_one(self.session, self.now, append);
        let place = self.note(appended);
        self.tail.moves(&self.builder, sequence, place);
    }

    fn append_bytes(&mut self, owner: u64, bytes: &[u8]) {
        let (lane, durability, continues) = (self.lane, Some(Durability::Memory), None);
        let append = JournalAppend {
            lane,
            owner,
            bytes,
            durability,
            continues,
            room: JournalRoom::Leaving(0),
        };
        let appended = append_one(self.session, self.now, append);
        self.note(appended);
        self.tail = Tail::default();
    }

    fn note(&mut self, appended: Result<Placed>) -> Option<Placed> {
        let place = appended.map_err(|error| self.failed = Some(error)).ok()?;
        self.first = self.first.or(Some(place.sequence));
        Some(place)
    }
}

fn append_one(
    session: &mut entresol_tier::Session,
    now: Timestamp,
    append: JournalAppend<'_>,
) -> Result<Placed> {
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
