//! Tables leave memory once nobody has them, nothing of them waits, and nobody asked for them for
//! a while: whoever does reads their first record again.
//!
//! Invariants:
//! 1. A table in memory is the only one of its number: it leaves only while the list of tables is
//!    locked and nobody but the list has it.
//! 2. All that memory knows of a table that leaves is on flash: no change waits, its first record
//!    is durable, and its inner nodes have not changed since they were written.
//! 3. Who read a first record before a table left must read it again: the table may have come,
//!    changed and left in between.

use std::sync::Arc;

use entresol_flash::{Result, Timestamp};
use entresol_planted::planted;

use super::{Reserved, write_reserved};
use crate::shared::Shared;
use crate::table::{State, Table};

/// Tables that one step looks at.
const STEP_TABLES: usize = 256;
/// A table that nobody asked for in so many milliseconds is idle.
const IDLE_MS: u64 = 10_000;

/// How far the search for idle tables is.
#[derive(Default)]
pub(super) struct Leaving {
    /// The number of the table that is looked at next.
    next: u64,
}

/// Whether open tables and inner nodes take so much that those that can must leave.
pub(super) fn is_short_of_memory(shared: &Shared) -> bool {
    shared.memory.directory_bytes() > shared.options.directory_bytes_max / 4 * 3
}

impl Leaving {
    /// Looks at some tables, and lets those leave that can. All but the locks of the tables is done
    /// by whoever merges: numbers of pages are set apart by nobody else.
    pub(super) fn step(
        &mut self,
        shared: &Shared,
        session: &mut entresol_tier::Session,
        now: Timestamp,
    ) -> Result<()> {
        for table in self.look(shared, now) {
            // What was set apart and not used would be lost each time.
            let reserved = table.lock().directory.give_numbers_back();
            if let Some(number) = reserved {
                write_reserved(shared, session, now, Reserved { table: &table, number })?;
            }
        }
        let arena_bytes = shared.arena.read().bytes_taken();
        shared.memory.tell(&shared.store, arena_bytes);
        Ok(())
    }

    /// Lets tables leave; those that can once numbers of theirs were given back.
    fn look(&mut self, shared: &Shared, now: Timestamp) -> Vec<Arc<Table>> {
        let is_short = is_short_of_memory(shared);
        let (mut leaving, mut with_numbers) = (Vec::new(), Vec::new());
        let mut tables = shared.tables.lock();
        let dropped = shared.dropped.lock();
        let mut looked = 0;
        for (&id, table) in tables.open.range(self.next..).take(STEP_TABLES) {
            looked += 1;
            self.next = id.saturating_add(1);
            let state = table.lock();
            shared.memory.count(table, &state);
            let is_used = Arc::strong_count(table) > 1 || dropped.contains_key(&id);
            let is_idle = is_short || now.0.abs_diff(table.used_at().0) >= IDLE_MS;
            if is_used || !is_idle || !can_leave(table, &state) {
                continue;
            }
            if state.directory.has_spare_numbers() {
                with_numbers.push(Arc::clone(table));
            } else {
                leaving.push(id);
            }
        }
        if looked < STEP_TABLES {
            self.next = 0;
        }
        drop(dropped);
        for id in leaving {
            if let Some(table) = tables.open.remove(&id) {
                tables.departures += 1;
                shared.memory.discount(&table);
            }
        }
        with_numbers
    }
}

/// Whether all that memory knows of a table is on flash.
fn can_leave(table: &Table, state: &State) -> bool {
    let waits = !state.pending.is_empty() && !planted!("table-left-with-changes");
    // A table that never had a change has nothing on flash.
    let is_there = table.is_durable() || !state.was_changed;
    let is_written = state.directory.is_written() || planted!("table-left-with-nodes");
    !waits && is_there && is_written && state.watches.is_empty()
}
