//! What becomes of the pages of a table that was dropped.
//!
//! The change that drops a table is in the journal, and the rows are gone from then on. Once it is
//! durable the values that its pages name are removed, if it has any. Then an empty first record
//! takes the place of the table's own, unless a new table of the name has written one, which it
//! does not while there are values. At last the old pages are removed. All goes a few at a time.
//! The journal keeps the change until all of that is durable: an opening that finds the change
//! knows what is left to do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use entresol_flash::{Result, SyncPoint, Timestamp};

use super::merging::empty_leaf;
use super::write_root;
use crate::error::corrupt;
use crate::format::{
    Damage, Effect, Header, PageKind, PageRole, Root, Rows, Side, ValueName, page_key,
};
use crate::sequence::Sequence;
use crate::shared::{Dropped, Shared};
use crate::statistics::Counters;
use crate::table::{ROOT_PAGE, Table};

/// Tables that one step goes on with, and numbers of pages of each that it removes.
const STEP_TABLES: usize = 8;
const STEP_PAGES: u32 = 256;

/// How far the clearing of dropped tables is, by the tables' numbers.
#[derive(Default)]
pub(super) struct Clearing {
    tables: HashMap<u64, Progress>,
}

struct Progress {
    dropped: Dropped,
    stage: Stage,
}

enum Stage {
    /// Until the drop is durable.
    Drop(SyncPoint),
    /// Pages from this number on name values that are still there.
    Values(u32),
    /// Until the removal of the values is durable.
    Emptied(SyncPoint),
    /// Pages from this number on are still there.
    Pages(u32),
    /// Until all that was done is durable.
    End(SyncPoint),
}

impl Clearing {
    /// Goes on with each table that was dropped. Whether it did anything. Called between rounds: a
    /// round may write pages of a table that is dropped meanwhile.
    pub(super) fn step(
        &mut self,
        shared: &Shared,
        session: &mut entresol_tier::Session,
        now: Timestamp,
    ) -> Result<bool> {
        let all: Vec<(u64, Dropped)> = {
            let dropped = shared.dropped.lock();
            dropped.iter().take(STEP_TABLES).map(|(id, dropped)| (*id, dropped.clone())).collect()
        };
        let mut did_work = false;
        for (id, dropped) in all {
            let Some(table) = shared.find_table(session, now, id, None)? else { continue };
            let known = self.tables.remove(&id).filter(|known| known.dropped == dropped);
            let stage =
                known.map_or_else(|| Stage::Drop(session.sync_point()), |known| known.stage);
            let next = match stage {
                Stage::Drop(point) if session.reach(&point)? => {
                    did_work = true;
                    match table.has_values() {
                        true => Stage::Values(ROOT_PAGE),
                        false => Stage::Emptied(SyncPoint::default()),
                    }
                }
                Stage::Values(from) => {
                    did_work = true;
                    let pages = Pages { table: &table, from };
                    remove_values(shared, session, now, pages, &dropped)?
                }
                Stage::Emptied(point) if session.reach(&point)? => {
                    did_work = true;
                    write_empty(shared, session, now, &table)?;
                    shared.emptied.lock().insert(id, dropped.sequence);
                    Stage::Pages(ROOT_PAGE + 1)
                }
                Stage::Pages(from) => {
                    did_work = true;
                    remove_pages(shared, session, now, Pages { table: &table, from })?
                }
                Stage::End(point) if session.reach(&point)? => {
                    did_work = true;
                    end(shared, &table, &dropped);
                    continue;
                }
                stage => stage,
            };
            self.tables.insert(id, Progress { dropped, stage: next });
        }
        Ok(did_work)
    }
}

struct Pages<'t> {
    table: &'t Table,
    from: u32,
}

/// Writes an empty first record, unless the new table has one.
fn write_empty(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    table: &Table,
) -> Result<()> {
    let (created, first) = {
        let directory = &table.lock().directory;
        (directory.created(), directory.first())
    };
    let key = page_key(table.id(), ROOT_PAGE, PageRole::Page);
    if let Some(record) = shared.read(session, now, &key)? {
        let root = Root::decode(&record).map_err(|damage| corrupt(&damage, table.id()))?;
        if root.created >= created.0 {
            return Ok(());
        }
    }
    let page = empty_leaf(created, None);
    let (created, keeps_counts, name) = (created.0, table.keeps_counts(), table.name());
    let root = Root { created, first, keeps_counts, name, page: page.into() };
    write_root(shared, session, now, table, &root)
}

/// Removes the values that pages of the table name.
fn remove_values(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    pages: Pages<'_>,
    dropped: &Dropped,
) -> Result<Stage> {
    let Pages { table, from } = pages;
    let end = table.lock().directory.first().max(ROOT_PAGE + 1);
    let until = end.min(from.saturating_add(STEP_PAGES));
    for number in from..until {
        for role in [PageRole::Page, PageRole::Delta] {
            let Some(record) = shared.read(session, now, &page_key(table.id(), number, role))?
            else {
                continue;
            };
            let is_root = number == ROOT_PAGE && role == PageRole::Page;
            let keys = keys_with_values(&record, is_root, dropped);
            for key in keys.map_err(|damage| corrupt(&damage, table.id()))? {
                for (&created, side) in dropped
                    .created
                    .iter()
                    .flat_map(|created| Side::BOTH.map(|side| (created, side)))
                {
                    let name = ValueName { table: table.id(), created, key: &key, side };
                    shared.discard(session, now, &name)?;
                }
            }
        }
    }
    Ok(if until < end { Stage::Values(until) } else { Stage::Emptied(session.sync_point()) })
}

/// The rows of a page, if it has rows, whose values are records of their own.
fn keys_with_values(
    record: &[u8],
    is_root: bool,
    dropped: &Dropped,
) -> std::result::Result<Vec<Vec<u8>>, Damage> {
    let mut page = Cow::Borrowed(record);
    if is_root {
        let root = Root::decode(record)?;
        if root.created >= dropped.sequence.0 {
            return Ok(Vec::new());
        }
        page = root.page;
    }
    if Header::decode(&page)?.kind == PageKind::Inner {
        return Ok(Vec::new());
    }
    let rows = Rows::parse(&page)?;
    let mut keys = Vec::new();
    for index in 0..rows.count() {
        let row = rows.row(index)?;
        if row.effect == Effect::Separate {
            keys.push(row.key.to_vec());
        }
    }
    Ok(keys)
}

/// Tables that were dropped, and whose values are still there: their new pages wait, since the
/// first record of a small one would take the place of rows that name values.
pub(super) fn keeps_values(shared: &Shared, table: &Table) -> bool {
    if !table.has_values() {
        return false;
    }
    let dropped = shared.dropped.lock().get(&table.id()).map(|dropped| dropped.sequence);
    dropped.is_some_and(|by| shared.emptied.lock().get(&table.id()) != Some(&by))
}

fn remove_pages(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    pages: Pages<'_>,
) -> Result<Stage> {
    let Pages { table, from } = pages;
    let end = table.lock().directory.first();
    let until = end.min(from.saturating_add(STEP_PAGES));
    for number in from..until {
        for role in [PageRole::Page, PageRole::Delta] {
            let key = page_key(table.id(), number, role);
            if session.may_hold(shared.key(&key)) {
                shared.remove(session, now, &key)?;
                Counters::add(&shared.counters.pages_cleared, 1);
            }
        }
    }
    Ok(if until < end { Stage::Pages(until) } else { Stage::End(session.sync_point()) })
}

/// The journal may let go of the drop.
fn end(shared: &Shared, table: &Arc<Table>, dropped: &Dropped) {
    let mut all = shared.dropped.lock();
    if all.get(&table.id()) == Some(dropped) {
        all.remove(&table.id());
        shared.emptied.lock().remove(&table.id());
    }
    drop(all);
    let state = table.lock();
    if state.directory.created() == dropped.sequence {
        table.set_durable();
    }
}

/// The oldest drop whose pages are not all removed, durably: the journal keeps it.
pub(super) fn low_limit(shared: &Shared) -> Option<Sequence> {
    shared.dropped.lock().values().map(|dropped| dropped.sequence).min()
}
