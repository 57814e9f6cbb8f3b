//! Tables leave memory once nobody has them, nothing of them waits, and nobody asked for them for
//! a while: whoever does reads their first record again. Tables with inner nodes do so only where
//! memory is short.
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

use super::{NODE_CHANGES, Reserved, write_reserved};
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::{Departing, State, Table};

/// Tables that one step looks at.
const STEP_TABLES: usize = 256;
/// A table that nobody asked for in so many milliseconds is idle.
const IDLE_MS: u64 = 10_000;

/// A table with a root and more has so many bytes of inner nodes.
const NODES_BYTES: usize = 16 << 10;

/// Whether a round of merges is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounds {
    Between,
    Within,
}

/// How far the search for idle tables is.
#[derive(Default)]
pub(super) struct Leaving {
    /// The number of the table that is looked at next.
    next: u64,
    /// Inner nodes could leave once their pages are written, or leaves joined.
    awaits_round: bool,
}

/// What one look found.
#[derive(Default)]
struct Found {
    /// Tables that can leave once numbers of theirs were given back.
    with_numbers: Vec<Arc<Table>>,
    /// Tables with inner nodes, where memory is short.
    with_nodes: Vec<Arc<Table>>,
}

/// Whether open tables and inner nodes take so much that those that can must leave.
pub(super) fn is_short_of_memory(shared: &Shared) -> bool {
    shared.memory.directory_bytes() > shared.options.directory_bytes_max / 4 * 3
}

/// How many changes of an inner node make its page due: fewer, where memory is short, since only a
/// node whose page says all can leave.
pub(super) fn node_changes(shared: &Shared) -> u32 {
    let (used, most) = (shared.memory.directory_bytes(), shared.options.directory_bytes_max);
    match used {
        _ if used > most => 1,
        _ if is_short_of_memory(shared) => NODE_CHANGES / 4,
        _ => NODE_CHANGES,
    }
}

impl Leaving {
    /// Whether a round should write pages of inner nodes or join leaves, so that memory is left.
    pub(super) fn awaits_round(&self, shared: &Shared) -> bool {
        self.awaits_round && is_short_of_memory(shared)
    }

    /// Lets inner nodes of some tables leave, where memory is short. Called between rounds: a round
    /// knows where its leaves are.
    fn let_nodes_leave(&mut self, shared: &Shared, tables: &[Arc<Table>]) {
        let most = shared.options.directory_bytes_max;
        for table in tables {
            let which = match shared.memory.directory_bytes() > most {
                true => Departing::All,
                false => Departing::Unused,
            };
            let mut state = table.lock();
            let left = state.directory.let_nodes_leave(which);
            let directory = &state.directory;
            self.awaits_round |= !directory.is_written() || directory.is_ready_to_join();
            shared.memory.count(table, &state);
            Counters::add(&shared.counters.nodes_departed, left);
        }
    }

    /// Looks at some tables, and lets those leave that can. All but the locks of the tables is done
    /// by whoever merges: numbers of pages are set apart by nobody else.
    pub(super) fn step(
        &mut self,
        shared: &Shared,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        round: Rounds,
    ) -> Result<()> {
        let Found { with_numbers, with_nodes } = self.look(shared, now);
        if round == Rounds::Between {
            self.awaits_round = false;
            self.let_nodes_leave(shared, &with_nodes);
        }
        for table in with_numbers {
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

    /// Lets tables leave.
    fn look(&mut self, shared: &Shared, now: Timestamp) -> Found {
        let is_short = is_short_of_memory(shared);
        let (mut leaving, mut found) = (Vec::new(), Found::default());
        let mut tables = shared.tables.lock();
        let mut looked = 0;
        for (&id, table) in tables.open.range(self.next..).take(STEP_TABLES) {
            looked += 1;
            self.next = id.saturating_add(1);
            // Before the table is locked: who drops it locks both the other way round.
            let is_dropped = shared.dropped.lock().contains_key(&id);
            let state = table.lock();
            shared.memory.count(table, &state);
            if is_short && state.directory.memory_bytes() > NODES_BYTES {
                found.with_nodes.push(Arc::clone(table));
            }
            let is_used = Arc::strong_count(table) > 1 || is_dropped;
            // What is known of leaves would have to be learnt again by a read of each delta page.
            let has_nodes = state.directory.memory_bytes() > NODES_BYTES;
            let has_idled = !has_nodes && now.0.abs_diff(table.used_at().0) >= IDLE_MS;
            let is_idle = is_short || has_idled;
            if is_used || !is_idle || !can_leave(table, &state) {
                continue;
            }
            if state.directory.has_spare_numbers() {
                found.with_numbers.push(Arc::clone(table));
            } else {
                leaving.push(id);
            }
        }
        if looked < STEP_TABLES {
            self.next = 0;
        }
        for id in leaving {
            if let Some(table) = tables.open.remove(&id) {
                tables.departures += 1;
                shared.memory.discount(&table);
                Counters::add(&shared.counters.tables_departed, 1);
            }
        }
        found
    }
}

/// Whether all that memory knows of a table is on flash.
fn can_leave(table: &Table, state: &State) -> bool {
    let waits = !state.pending.is_empty() && !planted!("table-left-with-changes");
    // A table that never had a change has nothing on flash.
    let is_there = table.is_durable() || !state.was_changed;
    let is_written = state.directory.is_written() || planted!("table-left-with-nodes");
    !waits && is_there && is_written && state.watches.is_empty() && state.sides.is_empty()
}
