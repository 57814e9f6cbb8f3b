//! Figures of an open heap, and the failures that its commits survive.

use std::fmt;
use std::sync::atomic::Ordering;

use crate::backing::{Survival, Unit};
use crate::heap::Heap;
use crate::options::Durability;

/// Figures of a heap. Counts are since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Bytes from offset 0 to the end.
    pub size_bytes: u64,
    /// The most it may grow to.
    pub limit_bytes: u64,
    /// Bytes for data: size without the heap's own structures in front.
    pub data_bytes: u64,
    /// Live allocations.
    pub live: u64,
    /// Bytes usable in them.
    pub live_bytes: u64,
    /// Bytes in free pages.
    pub free_page_bytes: u64,
    /// Bytes in free slots among live ones.
    pub free_slot_bytes: u64,
    /// The largest run of free pages: the largest allocation that needs no growth.
    pub largest_free_bytes: u64,
    /// Size of the log, and how much of it waits for a checkpoint.
    pub log_bytes: u64,
    /// Bytes of the log that recovery would read.
    pub log_pending_bytes: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Records appended to the log, those of the heap itself included.
    pub records: u64,
    /// Bytes of those records.
    pub record_bytes: u64,
    /// Checkpoints that applied something.
    pub checkpoints: u64,
    /// Syncs of the file; on a medium of stores, fences.
    pub syncs: u64,
    /// Writes to the file.
    pub writes: u64,
    /// Bytes written to the file.
    pub written_bytes: u64,
    /// Lines of 64 bytes written to the file.
    pub lines: u64,
}

/// What a commit that returned survives, on this medium and at this heap's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurabilityReport {
    /// How the file is written.
    pub unit: Unit,
    /// The heap's level.
    pub level: Durability,
    /// Whether it survives the death of the process.
    pub survives_kill: bool,
    /// Whether it survives power loss; `None` if the backing cannot tell.
    pub survives_power_loss: Option<bool>,
}

impl Heap {
    /// The heap's figures.
    pub fn statistics(&self) -> Statistics {
        let core = self.core();
        let allocator = core.allocator.lock();
        let (free_page_bytes, largest_free_bytes) = allocator.free_bytes();
        let (live, live_bytes) = (allocator.live, allocator.live_bytes);
        let free_slot_bytes = allocator.free_slot_bytes();
        drop(allocator);
        let counters = core.file.backing.counters();
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (pending, log_bytes) = core.log.fill();
        Statistics {
            size_bytes: self.size_bytes(),
            limit_bytes: core.limit,
            data_bytes: self.size_bytes() - core.data_offset,
            live,
            live_bytes,
            free_page_bytes,
            free_slot_bytes,
            largest_free_bytes,
            log_bytes,
            log_pending_bytes: pending,
            commits: count(&core.commits),
            records: count(&core.log.records),
            record_bytes: count(&core.log.record_bytes),
            checkpoints: count(&core.checkpoints),
            syncs: count(&counters.syncs),
            writes: count(&counters.writes),
            written_bytes: count(&counters.written_bytes),
            lines: count(&counters.lines),
        }
    }

    /// What commits at the heap's level survive, as far as the medium tells.
    pub fn durability(&self) -> DurabilityReport {
        let core = self.core();
        let (unit, level) = (core.file.backing.unit(), core.durability);
        let at_once =
            unit == Unit::Word || matches!(level, Durability::Sync | Durability::Group { .. });
        let survives_power_loss = match core.file.backing.survival() {
            Survival::Process => Some(false),
            Survival::Power => Some(at_once),
            Survival::Unknown if at_once => None,
            Survival::Unknown => Some(false),
        };
        let survives_kill = at_once || matches!(level, Durability::Buffered { .. });
        DurabilityReport { unit, level, survives_kill, survives_power_loss }
    }
}

impl fmt::Display for DurabilityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.unit {
            Unit::Page => "written by calls and synced",
            Unit::Word => "written by stores and fenced",
        };
        let survives = match (self.survives_kill, self.survives_power_loss) {
            (_, Some(true)) => "power loss",
            (true, None) => "the death of the process; of power loss nothing is known",
            (true, Some(false)) => "the death of the process, not power loss",
            (false, _) => "nothing until the heap is synced or closed",
        };
        write!(f, "{how}; a commit that returned survives {survives}")
    }
}
