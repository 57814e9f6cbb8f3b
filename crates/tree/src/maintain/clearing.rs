//! What becomes of the pages of a table that was dropped.
//!
//! The change that drops a table is in the journal, and the rows are gone from then on. Once it is
//! durable an empty first record takes the place of the table's own, unless a new table of the name
//! has written one. Then the old pages are removed, a few at a time. The journal keeps the change
//! until all of that is durable: an opening that finds the change knows what is left to do.

use std::collections::HashMap;
use std::sync::Arc;

use entresol_flash::{Result, SyncPoint, Timestamp};

use super::merging::empty_leaf;
use super::write_root;
use crate::error::corrupt;
use crate::format::{PageRole, Root, page_key};
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
            dropped.iter().take(STEP_TABLES).map(|(id, dropped)| (*id, *dropped)).collect()
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
                    write_empty(shared, session, now, &table)?;
                    Stage::Pages(ROOT_PAGE + 1)
                }
                Stage::Pages(from) => {
                    did_work = true;
                    remove_pages(shared, session, now, Pages { table: &table, from })?
                }
                Stage::End(point) if session.reach(&point)? => {
                    did_work = true;
                    end(shared, &table, dropped);
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
    let root = Root { created: created.0, first, name: table.name(), page: page.into() };
    write_root(shared, session, now, table, &root)
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
fn end(shared: &Shared, table: &Arc<Table>, dropped: Dropped) {
    let mut all = shared.dropped.lock();
    if all.get(&table.id()) == Some(&dropped) {
        all.remove(&table.id());
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
