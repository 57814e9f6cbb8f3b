//! A get of a row whose leaf is in memory, as most are of a table that is read again and again.
//!
//! It keeps nothing: no copy of the key, no count of who has the table. Processors that count in
//! the same place wait for each other. Where a look is not enough it says nothing, and the get is
//! a `Lookup`, which looks in the same order: at the changes that wait, then at the leaf.

use entresol_flash::Timestamp;
use entresol_planted::planted;

use super::{Outcome, RowAt, Session, Visit};
use crate::filter::{Filter, KeyHash, leaf_may_hold};
use crate::format::{Child, Damage, Effect, PageKind, PageRole, Rows, page_key};
use crate::node::is_known;
use crate::rows::RowForm;
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::{ROOT_PAGE, Table, is_empty};

/// Where the row of a key is.
enum Spot {
    /// In this page, if anywhere.
    Leaf(u32),
    /// Nowhere.
    Nowhere,
    /// That takes a second look.
    Unclear,
}

/// What a leaf says of a key.
enum Said<'p> {
    Row(&'p [u8]),
    Absent,
    /// That takes a second look.
    Unclear,
}

impl Session {
    /// Visits the row if memory tells what it is; whether it does.
    pub(super) fn get_from_memory(
        &mut self,
        token: u64,
        now: Timestamp,
        row: RowAt<'_>,
        visit: Visit<'_>,
    ) -> bool {
        let RowAt { table, key } = row;
        let shared = &self.shared;
        let is_plain = self.reading.form == RowForm::Folded && !table.has_values();
        if !is_plain || shared.merge_of(table).is_some() {
            return false;
        }
        let page = match spot(shared, table, key) {
            Spot::Leaf(page) => page_key(table.id(), page, PageRole::Page),
            Spot::Nowhere => {
                visit(token, Ok(Outcome::Missing));
                return true;
            }
            Spot::Unclear => return false,
        };
        let mut is_told = false;
        self.store.get_from_memory(now, shared.key(&page), &mut |record| {
            let outcome = match said(record, key) {
                Ok(Said::Row(value)) => Outcome::Found(value),
                Ok(Said::Absent) => Outcome::Missing,
                // A damage is told by whoever looks again.
                Ok(Said::Unclear) | Err(_) => return,
            };
            visit(token, Ok(outcome));
            is_told = true;
        });
        if is_told {
            Counters::add(&shared.counters.reads(self.stripe).get_reads, 1);
        }
        is_told
    }
}

fn spot(shared: &Shared, table: &Table, key: &[u8]) -> Spot {
    let state = table.read();
    let waits = !state.pending.is_empty() && state.pending.holds(&shared.arena.read(), key);
    if waits && !planted!("waiting-changes-passed-over") {
        return Spot::Unclear;
    }
    let Some((child, filter)) = state.directory.leaf_of(key) else { return Spot::Unclear };
    if is_empty(child) || (!filter.is_empty() && !leaf_may_hold(filter, KeyHash::of(key))) {
        return Spot::Nowhere;
    }
    let Child { page, delta_bytes, filter: delta, .. } = *child;
    let has_delta =
        delta_bytes > 0 && Filter(delta).may_hold(key) && !planted!("delta-passed-over-in-memory");
    // What is not known of a leaf is learnt where it is looked at again.
    let is_learnt = is_known(child)
        && page != ROOT_PAGE
        && (shared.options.absent_filter_bits == 0 || !filter.is_empty());
    if has_delta || !is_learnt { Spot::Unclear } else { Spot::Leaf(page) }
}

/// What the record of a leaf says, if it is still one of a range that has the key.
fn said<'p>(record: &'p [u8], key: &[u8]) -> Result<Said<'p>, Damage> {
    let rows = Rows::parse(record)?;
    let is_leaf = rows.header().kind == PageKind::Leaf;
    if !is_leaf || rows.high_key().is_some_and(|high| high <= key) {
        return Ok(Said::Unclear);
    }
    let found = rows.entries_of(key)?;
    if found.is_empty() {
        return Ok(Said::Absent);
    }
    let row = rows.row(found.start)?;
    let is_whole = found.len() == 1 && row.effect == Effect::Put;
    Ok(if is_whole { Said::Row(row.value) } else { Said::Unclear })
}
