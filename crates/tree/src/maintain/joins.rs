//! Pages that join, from round to round.
//!
//! A page that is to be absorbed is named by its left neighbour and by an inner node. First the
//! inner node is written without it: a search then comes to it by the right link. Next the left
//! neighbour is written with the rows of both and the link past it: one record, and nothing names
//! the page any more. Once that record is durable the page is removed. A crash in between leaves a
//! tree that is whole, and at worst a page that nothing names.

use std::sync::Arc;

use entresol_flash::{Result, Timestamp};

use super::merging::{Absorbed, Work};
use crate::format::{PageRole, page_key};
use crate::shared::{OldPage, Shared};
use crate::statistics::Counters;
use crate::table::Table;

/// The tables some of whose pages are to join.
pub(super) fn tables(shared: &Shared) -> Vec<Arc<Table>> {
    let joining: Vec<u64> = shared.joining.lock().iter().copied().collect();
    if joining.is_empty() {
        return Vec::new();
    }
    let tables = shared.tables.lock();
    joining.iter().filter_map(|id| tables.open.get(id).cloned()).collect()
}

/// Joins inner nodes where they may. Called between rounds: no page of a node is on its way.
pub(super) fn begin(shared: &Shared) -> Vec<Arc<Table>> {
    let tables = tables(shared);
    for table in &tables {
        let joined = table.lock().directory.join_nodes();
        Counters::add(&shared.counters.nodes_absorbed, joined);
    }
    tables
}

/// Adds leaves that absorb others, although no change may wait for them.
pub(super) fn add_works(works: &mut Vec<Work>, joining: &[Arc<Table>]) {
    for table in joining {
        for low in table.lock().directory.ready_groups() {
            if !works.iter().any(|work| work.is_of(table, &low)) {
                works.push(Work::new(table, low.clone(), Some(low)));
            }
        }
    }
}

/// Removes leaves that were absorbed by leaves that are durable. First the leaves and then their
/// delta pages: a reader that misses the delta page must not find the leaf.
pub(super) fn remove_leaves(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    absorbed: &mut Vec<Absorbed>,
) -> Result<()> {
    for role in [PageRole::Page, PageRole::Delta] {
        let key = |absorbed: &Absorbed| page_key(absorbed.table, absorbed.page, role);
        let pages = absorbed.iter().map(|absorbed| OldPage { key: key(absorbed), found: None });
        shared.remove_old(session, now, &pages.collect::<Vec<_>>())?;
    }
    absorbed.clear();
    Ok(())
}

/// Removes the pages of inner nodes that were absorbed, where nothing names them any more.
pub(super) fn end(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
) -> Result<()> {
    for table in tables(shared) {
        let pages = {
            let mut state = table.lock();
            let pages = state.directory.take_unnamed();
            if !state.directory.has_joins() {
                shared.joining.lock().remove(&table.id());
            }
            pages
        };
        for page in pages {
            let key = page_key(table.id(), page, PageRole::Page);
            shared.remove(session, now, &key)?;
        }
    }
    Ok(())
}

/// Whether the next round joins pages although no change waits.
pub(super) fn are_ready(shared: &Shared) -> bool {
    tables(shared).iter().any(|table| table.lock().directory.is_ready_to_join())
}
