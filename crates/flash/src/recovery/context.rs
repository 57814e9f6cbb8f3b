//! How a shard is recovered, and how much memory that may take.

use entresol_device::Table;

use crate::error::Result;
use crate::format::LINE_WORDS;
use crate::shard::Limits;
use crate::types::Timestamp;

/// How to recover.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// The machine did not reboot since: completed writes are all there.
    pub same_boot: bool,
    pub read_only: bool,
    pub now: Timestamp,
    /// Memory for a shard beside the index's share, bytes.
    pub scratch_bytes: u64,
}

/// Most memory for claims, bytes a shard, and again for footers kept; more take more passes.
pub(super) const PASS_BYTES: u64 = 768 << 20;
/// What the recovery of a shard takes in any case, bytes.
pub(crate) const ROOM_BYTES_MIN: u64 = 1 << 20;
/// Requests that read a shard's footers take this part of its memory, and at most so many bytes.
const FLIGHT_PART: u64 = 8;
const FLIGHT_BYTES_MAX: u64 = 8 << 20;

impl Context {
    /// Memory for what is compared while `filled_bytes` of the index's share are taken.
    pub(super) fn room_bytes(&self, limits: &Limits, filled_bytes: u64) -> u64 {
        let share = limits.index_bytes_max.saturating_sub(filled_bytes);
        let most = share.saturating_add(self.scratch_bytes).min(2 * PASS_BYTES);
        // While a pass fills its part of the index, its claims are there, too: 40 bytes for each 9.
        (most / 5 * 4).max(ROOM_BYTES_MIN)
    }

    /// The same before the first pass, with reads in flight, and `held_bytes` of write buffers.
    pub(super) fn first_room_bytes(&self, limits: &Limits, held_bytes: u64) -> u64 {
        self.room_bytes(limits, held_bytes + self.flight_bytes(limits) as u64)
    }

    /// Memory for reads in flight.
    pub(super) fn flight_bytes(&self, limits: &Limits) -> usize {
        let all = limits.index_bytes_max.saturating_add(self.scratch_bytes);
        (all / FLIGHT_PART).clamp(ROOM_BYTES_MIN / 2, FLIGHT_BYTES_MAX) as usize
    }
}

/// Memory for at most `bytes`, taken as it is used.
pub(super) fn scratch_table(bytes: u64) -> Result<Table> {
    /// Below this, memory taken in huge pages would mostly lie idle.
    const HUGE_FROM: u64 = 8 << 20;
    let words = (bytes / 8).max(LINE_WORDS as u64) as usize;
    Ok(if bytes < HUGE_FROM { Table::reserve(words)? } else { Table::reserve_huge(words)? })
}
