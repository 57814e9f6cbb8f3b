//! About how many rows a range has, of any table: a guess from what is in memory.
//!
//! Pages say how many rows leaves had when they were written. What came since, in delta pages and
//! in memory, may be new rows or other values of old ones: nobody has looked. The guess is half of
//! either, and the error says how far off it may be.

use std::ops::Bound;

use super::{CountRange, Session};
use crate::format::Effect;
use crate::table::{Estimated, Span};

/// So many keys with changes that wait are looked at. The table is locked meanwhile.
const WAITING_MAX: u64 = 4096;
/// Bytes of a row where nothing is known of any.
const ROW_BYTES: u64 = 100;
/// Least bytes of two changes in a delta page.
const TWO_CHANGES_BYTES: u64 = 12;

/// About how many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowEstimate {
    /// About so many rows.
    pub rows: u64,
    /// They are at most so many more or fewer. `None`: nobody knows, as after a crash, and where
    /// inner nodes are not in memory, as after an opening until somebody reads there, and where
    /// thousands of changes wait. The guess is rough then.
    pub error: Option<u64>,
}

/// Keys with changes that wait.
#[derive(Debug, Default)]
struct Waiting {
    /// Keys that have a row then.
    puts: u64,
    /// Keys that have none.
    removes: u64,
    /// Of `puts` those with parts, which may fold into no row.
    parts: u64,
    /// There are more than were looked at.
    is_cut: bool,
}

impl Session {
    /// About how many rows a range has, of any table, whether it keeps counts or not. It reads
    /// nothing and waits for nothing; it looks at each inner node of the range that is in memory,
    /// and at up to 4096 keys with changes that wait. Rows that a merge function ends count until
    /// their leaf is written anew.
    pub fn estimate(&self, range: CountRange<'_>) -> RowEstimate {
        let CountRange { table, low, high } = range;
        if high.is_some_and(|high| high <= low) {
            return RowEstimate { rows: 0, error: Some(0) };
        }
        let is_durable = table.is_durable();
        let state = table.read();
        let low_bound = Some(low).filter(|low| !low.is_empty());
        // Without a first record there are no pages.
        let pages = match is_durable {
            true => state.directory.estimate(Span { low: low_bound, high }),
            false => Estimated::default(),
        };
        let arena = self.shared.arena.read();
        let (from, until) = (Bound::Included(low), high.map_or(Bound::Unbounded, Bound::Excluded));
        let mut waiting = Waiting::default();
        for entry in state.pending.range(&arena, from, until) {
            if waiting.puts + waiting.removes == WAITING_MAX {
                waiting.is_cut = true;
                break;
            }
            match entry.newest_first().next().map(|change| change.effect) {
                Some(Effect::Remove) => waiting.removes += 1,
                effect => {
                    waiting.puts += 1;
                    waiting.parts += u64::from(effect == Some(Effect::Part));
                }
            }
        }
        if waiting.is_cut {
            // As if the others were like those.
            let share = |count: u64| count * state.pending.len().max(WAITING_MAX) / WAITING_MAX;
            let Waiting { puts, removes, .. } = waiting;
            (waiting.puts, waiting.removes) = (share(puts), share(removes));
        }
        let keeps_counts = table.keeps_counts();
        drop((arena, state));
        let rows_of_leaf = match pages.leaves {
            0 => self.shared.options.leaf_bytes_max as u64 / ROW_BYTES,
            leaves => pages.rows / leaves,
        };
        let delta_bytes = if keeps_counts { 0 } else { pages.delta_bytes };
        estimate(Estimated { delta_bytes, ..pages }, &waiting, rows_of_leaf)
    }
}

fn estimate(pages: Estimated, waiting: &Waiting, rows_of_leaf: u64) -> RowEstimate {
    let Estimated { rows, cut, delta_bytes, unknown, .. } = pages;
    let in_pages = rows.saturating_add(unknown.saturating_mul(rows_of_leaf));
    // So many of the changes may be of rows that pages have.
    let (old, gone) = (waiting.puts.min(in_pages), waiting.removes.min(in_pages));
    let more = in_pages.saturating_add(waiting.puts);
    let rows = more.saturating_sub(cut / 2 + old / 2 + gone / 2);
    let halves = cut.div_ceil(2) + old.div_ceil(2) + gone.div_ceil(2);
    let deltas = 3 * (2 * delta_bytes).div_ceil(TWO_CHANGES_BYTES);
    let is_known = unknown == 0 && !waiting.is_cut;
    RowEstimate { rows, error: is_known.then_some(halves + waiting.parts + deltas) }
}
