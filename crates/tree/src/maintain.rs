//! Merges: rounds that take changes out of memory and into pages, leaf after leaf in the order of
//! the keys, and around again. A round goes from stage to stage, and waits without blocking:
//!
//! ```text
//! Idle ──choose──► Values ──merge, write right leaves──► Rights
//!   ▲                                                      │ write left leaves, delta pages
//!   └─finish── Nodes ◄──write nodes, remove old deltas── Lefts
//! ```
//!
//! *Values* waits for large values that stand in the journal, if there are any; *Rights* for the
//! batches and the right leaves, *Lefts* for the leaves and delta pages, *Nodes* for inner nodes,
//! level by level.
//!
//! Invariants:
//! 1. A page that another one names holds only changes that are durable in the journal: else a
//!    batch could be torn.
//! 2. A right leaf is durable before the left one that names it is written; so is an inner node
//!    before another one names it.
//! 3. A leaf is durable before its old delta page is removed, and all that a round wrote is durable
//!    before the journal lets go of changes that are there.
//! 4. A leaf is absorbed once no inner node on flash names it, and removed once the leaf that has
//!    its rows is durable.
//! 5. The journal lets go of a change once each leaf was merged after it. A round that failed, or
//!    that held a leaf back, does not count.

mod ahead;
mod clearing;
mod confirming;
mod folding;
mod held_back;
mod joins;
mod leaving;
mod marking;
mod merging;
mod passes;
mod placing;
mod progress;
mod settled;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use entresol_flash::{Error, Result, SyncPoint, Timestamp};
use entresol_planted::planted;
use entresol_tier::{SessionOptions, Tiered};

use crate::error::corrupt;
use crate::format::{PageRole, Root, page_key};
use crate::memory::are_merges_due;
use crate::recovery::closed_key;
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::{Detours, Directory, NodePage, Place, ROOT_PAGE, Table, next_key};
use ahead::Ahead;
use clearing::{Clearing, keeps_values, low_limit};
use confirming::Confirming;
use held_back::HeldBack;
use leaving::{Leaving, Rounds, node_changes};
use merging::{Absorbed, Made, Merged, Site, Work, read_ahead};
use passes::{End, Pass, Passes, Position};
use placing::LargeRows;
pub use progress::Progress;

/// Most leaves of a round.
const ROUND_LEAVES: usize = 1024;
/// An inner node is written after so many changes: after a crash a search goes so many leaves to
/// the right at most.
const NODE_CHANGES: u32 = 32;

/// The rounds' state.
pub(crate) struct Maintainer {
    session: entresol_tier::Session,
    ahead: Ahead,
    /// The table and the key where the sweep goes on.
    cursor: Position,
    passes: Passes,
    stage: Stage,
    clearing: Clearing,
    leaving: Leaving,
    held_back: HeldBack,
    confirming: Confirming,
    /// The record that says that tables were closed is still there.
    has_closed_record: bool,
    /// Leaves whose rows another leaf has. They go once it is durable.
    absorbed: Vec<Absorbed>,
}

enum Stage {
    Idle,
    Values(Round, LargeRows),
    Rights(Round),
    Lefts(Round),
    Nodes(Round, Vec<Written>),
}

/// A node that was written, durable once the round's point is reached.
struct Written {
    table: Arc<Table>,
    page: NodePage,
}

/// Some leaves that are merged together.
struct Round {
    point: SyncPoint,
    /// All changes of its leaves up to this one are durable, and merged.
    through: Sequence,
    works: Vec<Work>,
    /// What it is a pass over.
    pass: Pass,
    /// An inner node is written after so many changes.
    node_changes: u32,
}

impl Round {
    fn ends_sweep(&self) -> bool {
        self.pass.to == End::Last
    }
}

impl Maintainer {
    pub(crate) fn new(store: &Arc<Tiered>, has_closed_record: bool) -> Result<Maintainer> {
        let session = store.session(SessionOptions { depth: 32, ..SessionOptions::default() })?;
        Ok(Maintainer {
            session,
            ahead: Ahead::new(store)?,
            cursor: Position::default(),
            passes: Passes::default(),
            stage: Stage::Idle,
            clearing: Clearing::default(),
            leaving: Leaving::default(),
            held_back: HeldBack::default(),
            confirming: Confirming::default(),
            has_closed_record,
            absorbed: Vec::new(),
        })
    }

    /// Goes on for a round at most, until a sync is waited for or nothing asks for a merge.
    ///
    /// Errors: also why a leaf was held back, once its sweep has merged all others.
    pub(crate) fn step(&mut self, shared: &Arc<Shared>, now: Timestamp) -> Result<Progress> {
        let did_work = self.try_step(shared, now).inspect_err(|_| {
            // What the round had chosen is not merged: the sweep begins anew.
            self.cursor = Position::default();
            self.stage = Stage::Idle;
        })?;
        let awaits_device = !matches!(self.stage, Stage::Idle) || self.confirming.is_waiting();
        Ok(Progress { did_work, awaits_device })
    }

    fn try_step(&mut self, shared: &Arc<Shared>, now: Timestamp) -> Result<bool> {
        let mut did_work = false;
        if matches!(self.stage, Stage::Idle) {
            did_work |= self.clearing.step(shared, &mut self.session, now)?;
        }
        did_work |= self.confirming.step(shared, &mut self.session, now)?;
        let rounds = match self.stage {
            Stage::Idle => Rounds::Between,
            _ => Rounds::Within,
        };
        self.leaving.step(shared, &mut self.session, now, rounds)?;
        if rounds == Rounds::Between {
            if is_asked_for(shared)? {
                self.begin(shared, now, node_changes(shared))?;
                did_work = true;
            } else if self.leaving.awaits_round(shared) {
                self.begin(shared, now, 1)?;
                did_work = true;
            }
        }
        while self.go_on(shared, now)? {
            did_work = true;
        }
        Ok(did_work)
    }

    /// Merges all that waits, writes all inner nodes, and notes that what they say is so. Changes
    /// of a table that was dropped, and whose values are still to be removed, stay in the journal.
    pub(crate) fn settle(&mut self, shared: &Arc<Shared>, now: Timestamp) -> Result<()> {
        self.try_settle(shared, now).inspect_err(|_| {
            self.cursor = Position::default();
            self.stage = Stage::Idle;
        })
    }

    fn try_settle(&mut self, shared: &Arc<Shared>, now: Timestamp) -> Result<()> {
        let sync = |maintainer: &mut Maintainer| -> Result<()> {
            while !matches!(maintainer.stage, Stage::Idle) {
                shared.store.sync()?;
                maintainer.go_on(shared, now)?;
            }
            Ok(())
        };
        sync(self)?;
        // Twice around: what came before the first sweep began is then behind the second.
        for _ in 0..2 {
            loop {
                self.begin(shared, now, 1)?;
                let stage = &self.stage;
                let ends =
                    matches!(stage, Stage::Values(r, _) | Stage::Rights(r) if r.ends_sweep());
                sync(self)?;
                if ends {
                    break;
                }
            }
        }
        while joins::are_ready(shared) {
            self.begin(shared, now, 1)?;
            sync(self)?;
        }
        self.confirming.settle(shared, &mut self.session, now)?;
        settled::leave_sequence(shared, &mut self.session, now)?;
        let last = shared.journal.lock().last();
        shared.write(&mut self.session, now, &closed_key(), &last.0.to_le_bytes())?;
        self.has_closed_record = true;
        shared.store.sync()
    }

    /// Chooses the leaves of a round, and joins inner nodes.
    fn begin(&mut self, shared: &Arc<Shared>, now: Timestamp, node_changes: u32) -> Result<()> {
        if self.has_closed_record {
            // Durable with the first stage, and so before any page changes that another one names.
            shared.remove(&mut self.session, now, &closed_key())?;
            self.has_closed_record = false;
        }
        if self.cursor.table == 0 {
            self.held_back = HeldBack::since(shared.journal.lock().low());
        }
        let joining = joins::begin(shared);
        let from = self.cursor.clone();
        // Before leaves without changes are passed over: later ones may have come to them.
        let passed = shared.journal.lock().last();
        let (mut works, to) = self.choose(shared, now)?;
        joins::add_works(&mut works, &joining);
        let pass = Pass { from, to, through: passed };
        let through = shared.journal.lock().last();
        let large = LargeRows::find(shared, &works, through);
        let point = large.point(shared, &self.session);
        let round = Round { point, through, works, pass, node_changes };
        self.stage = match large.is_empty() {
            true => Stage::Rights(self.merge(shared, now, round)?),
            false => Stage::Values(round, large),
        };
        Ok(())
    }

    /// Goes on to the next stage, if what the round waits for is durable. Whether it did.
    fn go_on(&mut self, shared: &Arc<Shared>, now: Timestamp) -> Result<bool> {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle);
        let point = match &stage {
            Stage::Idle => return Ok(false),
            Stage::Values(round, _) | Stage::Rights(round) => &round.point,
            Stage::Lefts(round) | Stage::Nodes(round, _) => &round.point,
        };
        let is_ahead = match &stage {
            Stage::Values(..) => planted!("side-freed-before-the-sync"),
            Stage::Rights(_) => planted!("left-leaf-before-right"),
            Stage::Lefts(_) => planted!("journal-cut-before-leaves"),
            _ => false,
        };
        if !is_ahead && !self.session.reach(point)? {
            self.stage = stage;
            return Ok(false);
        }
        self.stage = match stage {
            Stage::Idle => Stage::Idle,
            Stage::Values(round, large) => self.place(shared, now, round, large)?,
            Stage::Rights(round) => Stage::Lefts(self.write_lefts(shared, now, round)?),
            Stage::Lefts(round) => {
                self.remove_deltas(shared, now, &round)?;
                self.write_nodes(shared, now, round)?
            }
            Stage::Nodes(round, written) => {
                for Written { table, page } in &written {
                    let mut state = table.lock();
                    if state.directory.set_written(page) && page.page == ROOT_PAGE {
                        table.set_durable();
                    }
                }
                self.write_nodes(shared, now, round)?
            }
        };
        Ok(true)
    }

    /// Leaves with changes from the cursor on, and where the keys end that were looked at.
    fn choose(&mut self, shared: &Arc<Shared>, now: Timestamp) -> Result<(Vec<Work>, End)> {
        let options = &shared.options;
        let mut room = (options.waiting_bytes_max / options.round_parts.max(1)).max(1);
        let mut works = Vec::new();
        while works.len() < ROUND_LEAVES && room > 0 {
            let Some(table) = self.table_from(shared, now, self.cursor.table)? else {
                self.cursor = Position::default();
                return Ok((works, End::Last));
            };
            if table.id() != self.cursor.table {
                self.cursor = Position { table: table.id(), key: Vec::new() };
            }
            let next = {
                let state = table.lock();
                next_key(&state.pending, &shared.arena.read(), &self.cursor.key)
            };
            let mut high = None;
            if let Some(key) = next.filter(|_| !keeps_values(shared, &table)) {
                let (low, end) = self.range_of(shared, now, &table, &key)?;
                let state = table.lock();
                let bytes = state.pending.bytes_in(&shared.arena.read(), &key, end.as_deref());
                room = room.saturating_sub(bytes);
                drop(state);
                high.clone_from(&end);
                works.push(Work::new(&table, low, end));
            }
            self.cursor = match (high, table.id().checked_add(1)) {
                (Some(high), _) => Position { table: table.id(), key: high },
                (None, Some(after)) => Position { table: after, key: Vec::new() },
                (None, None) => {
                    self.cursor = Position::default();
                    return Ok((works, End::Last));
                }
            };
        }
        Ok((works, End::Below(self.cursor.clone())))
    }

    /// The first table with changes whose number is `id` or above it.
    fn table_from(
        &mut self,
        shared: &Arc<Shared>,
        now: Timestamp,
        id: u64,
    ) -> Result<Option<Arc<Table>>> {
        loop {
            let recovered = shared.recovered.lock().first_from(id);
            let open = {
                let tables = shared.tables.lock();
                let mut rest = tables.open.range(id..).map(|(_, table)| table);
                rest.find(|table| !table.lock().pending.is_empty()).cloned()
            };
            let is_next = |id: &u64| open.as_ref().is_none_or(|table| *id < table.id());
            let Some(recovered) = recovered.filter(is_next) else { return Ok(open) };
            if shared.find_table(&mut self.session, now, recovered, None)?.is_some() {
                continue;
            }
            // Neither name nor page is left of it: there is nothing that could be merged.
            let forgotten = shared.recovered.lock().take(recovered);
            if let Some(mut pending) = forgotten {
                pending.clear(&mut shared.arena.write());
            }
        }
    }

    /// The range of the leaves that are merged with that of `key`; loads what is missing on the way
    /// to it.
    fn range_of(
        &mut self,
        shared: &Arc<Shared>,
        now: Timestamp,
        table: &Arc<Table>,
        key: &[u8],
    ) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        let mut detours = Detours::default();
        loop {
            let missing = {
                let directory = &mut table.lock().directory;
                match directory.locate(key) {
                    Place::Leaf(at) => {
                        let at = directory.group(at, shared.options.leaf_bytes_max).at;
                        return Ok((directory.low_of(&at).to_vec(), at.high));
                    }
                    Place::Missing(missing) => missing,
                }
            };
            let record = page_key(table.id(), missing.page(), PageRole::Page);
            let page = shared.read(&mut self.session, now, &record)?;
            let is_exact = shared.recovered.lock().is_exact;
            let Some(page) = page else {
                return Err(corrupt(&format!("page {} is missing", missing.page()), table.id()));
            };
            let loaded = table.lock().directory.load(missing, &page, is_exact);
            let went_on = loaded.and_then(|is_new| detours.count(missing.page(), is_new));
            went_on.map_err(|damage| corrupt(&damage, table.id()))?;
        }
    }

    /// Merges each leaf, and writes the leaves that nothing names so far.
    fn merge(&mut self, shared: &Arc<Shared>, now: Timestamp, mut round: Round) -> Result<Round> {
        self.ahead.clear(now)?;
        let mut site = self.site(shared, now, round.through);
        let (mut next, mut prepared, mut all_held) = (0, 0, Vec::new());
        while next < round.works.len() {
            if next >= prepared || site.ahead.is_low() {
                prepared = prepared.max(next);
                prepared += read_ahead(&mut site, &mut round.works[prepared..])?;
            }
            match round.works[next].merge(&mut site)? {
                Merged::All => {}
                Merged::UpTo(rest) => round.works.push(*rest),
                Merged::HeldBack(held) => {
                    if !planted!("leaf-held-back-forgotten") {
                        round.pass.through = round.pass.through.min(held.merged_through());
                    }
                    all_held.push(held);
                }
            }
            next += 1;
        }
        all_held.into_iter().for_each(|held| self.held_back.add(held));
        self.ahead.clear(now)?;
        round.point = self.session.sync_point();
        Ok(round)
    }

    /// Writes the leaves and delta pages that others wait for, and lets their changes leave memory.
    fn write_lefts(
        &mut self,
        shared: &Arc<Shared>,
        now: Timestamp,
        mut round: Round,
    ) -> Result<Round> {
        let mut absorbed = std::mem::take(&mut self.absorbed);
        let mut site = self.site(shared, now, round.through);
        let mut lefts = round.works.iter_mut();
        let written = lefts.try_for_each(|work| work.write_left(&mut site, &mut absorbed));
        self.absorbed = absorbed;
        written?;
        if planted!("absorbed-leaf-removed-early") {
            joins::remove_leaves(shared, &mut self.session, now, &mut self.absorbed)?;
        }
        round.point = self.session.sync_point();
        Ok(round)
    }

    /// Removes delta pages whose leaf was written anew, and leaves that were absorbed.
    fn remove_deltas(&mut self, shared: &Arc<Shared>, now: Timestamp, round: &Round) -> Result<()> {
        joins::remove_leaves(shared, &mut self.session, now, &mut self.absorbed)?;
        let mut deltas = Vec::new();
        for work in &round.works {
            match &work.made {
                Made::Leaves(made) => deltas.extend(made.old_delta(&work.table)),
                Made::Small(_) => {
                    let state = work.table.lock();
                    if state.directory.created() == work.created {
                        work.table.set_durable();
                    }
                }
                _ => {}
            }
        }
        shared.remove_old(&mut self.session, now, &deltas)
    }

    /// Writes inner nodes; the round ends where none is left to write.
    fn write_nodes(
        &mut self,
        shared: &Arc<Shared>,
        now: Timestamp,
        mut round: Round,
    ) -> Result<Stage> {
        let is_last = round.ends_sweep() && round.node_changes == 1;
        let tables: Vec<Arc<Table>> = if !is_last {
            let tables = round.works.iter().map(|work| (work.table.id(), Arc::clone(&work.table)));
            let joining = joins::tables(shared).into_iter().map(|table| (table.id(), table));
            tables.chain(joining).collect::<BTreeMap<_, _>>().into_values().collect()
        } else {
            shared.tables.lock().open.values().cloned().collect()
        };
        let mut written = Vec::new();
        for table in &tables {
            let pages = table.lock().directory.pages_to_write(round.node_changes, round.through);
            for page in pages {
                write_node(shared, &mut self.session, now, table, &page)?;
                written.push(Written { table: Arc::clone(table), page });
            }
        }
        if written.is_empty() {
            joins::end(shared, &mut self.session, now)?;
            self.finish(shared, &round)?;
            return Ok(Stage::Idle);
        }
        round.point = self.session.sync_point();
        Ok(Stage::Nodes(round, written))
    }

    /// Where a round of the changes up to `through` does its work.
    fn site<'s>(&'s mut self, shared: &'s Shared, now: Timestamp, through: Sequence) -> Site<'s> {
        let Maintainer { session, ahead, .. } = self;
        Site { shared, session, now, through, ahead }
    }

    /// Takes note of the round, and lets the journal go of what is merged everywhere.
    fn finish(&mut self, shared: &Arc<Shared>, round: &Round) -> Result<()> {
        self.passes.add(round.pass.clone());
        let low = Sequence(self.passes.through().0 + 1);
        let limit = low_limit(shared).filter(|_| !planted!("drop-forgotten-by-the-journal"));
        let low = limit.map_or(low, |limit| low.min(limit));
        let (below, low) = {
            let mut journal = shared.journal.lock();
            (journal.set_low(low), journal.low())
        };
        if let Some(below) = below {
            shared.store.store().trim_journal(shared.options.lane, below)?;
        }
        if !round.ends_sweep() {
            return Ok(());
        }
        let held_back = std::mem::take(&mut self.held_back).end(low);
        *shared.held_back.lock() = held_back.as_ref().map(Error::to_string);
        held_back.map_or(Ok(()), Err)
    }
}

/// Writes an inner node; numbers that it names are set apart before.
fn write_node(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    table: &Table,
    node: &NodePage,
) -> Result<()> {
    reserve(shared, session, now, table)?;
    Counters::add(&shared.counters.node_writes, 1);
    let key = page_key(table.id(), node.page, PageRole::Page);
    if node.page != ROOT_PAGE {
        table.written.count_page(node.bytes.len());
        return shared.write(session, now, &key, &node.bytes);
    }
    let (created, first, name) = (node.life.created.0, node.life.first, table.name());
    let page = Cow::Borrowed(&node.bytes[..]);
    let keeps_counts = table.keeps_counts();
    let root = Root { created, first, keeps_counts, name, page };
    write_root(shared, session, now, table, &root)
}

/// Writes page 1 of a table, and with it its name.
fn write_root(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    table: &Table,
    root: &Root<'_>,
) -> Result<()> {
    let key = page_key(table.id(), ROOT_PAGE, PageRole::Page);
    let page = root.encode();
    table.written.count_page(page.len());
    shared.write(session, now, &key, &page)
}

/// Sets numbers of pages apart, where those that are have been taken.
fn reserve(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    table: &Table,
) -> Result<()> {
    let reserved = {
        let directory: &mut Directory = &mut table.lock().directory;
        if !directory.lacks_numbers() {
            return Ok(());
        }
        directory.reserve_numbers()
    };
    write_reserved(shared, session, now, Reserved { table, number: reserved })
}

/// Pages of the table from this number on were never used.
struct Reserved<'t> {
    table: &'t Table,
    number: u32,
}

fn write_reserved(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    reserved: Reserved<'_>,
) -> Result<()> {
    let key = page_key(reserved.table.id(), 0, PageRole::Page);
    shared.write(session, now, &key, &reserved.number.to_le_bytes())
}

/// Whether memory or the journal asks for merges.
fn is_asked_for(shared: &Shared) -> Result<bool> {
    let options = &shared.options;
    {
        let arena = shared.arena.read();
        // Tables whose changes are merged can leave memory.
        let holds_tables = shared.memory.are_tables_many(options) && arena.bytes_in_use() > 0;
        if are_merges_due(&arena, options) || holds_tables {
            return Ok(true);
        }
    }
    let state = shared.store.store().journal_state(shared.options.lane)?;
    let journal = shared.journal.lock();
    Ok(4 * state.segments > 3 * state.segments_max && journal.low() <= journal.last())
}
