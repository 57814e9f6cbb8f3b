//! What ordered tables and the store under them counted during some span of time.

use entresol_tier::Statistics;
use entresol_tree::TreeStatistics;

/// Counts of some span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counted {
    /// Pages that gets and scans asked the store for.
    pub(crate) pages: u64,
    /// Pages that merges asked the store for.
    pub(crate) merge_pages: u64,
    /// Delta pages written.
    pub(crate) delta_writes: u64,
    /// Leaves written.
    pub(crate) leaf_writes: u64,
    /// Bytes of all pages written.
    pub(crate) page_bytes: u64,
    /// Bytes of batches in the journal.
    pub(crate) journal_bytes: u64,
    /// Bytes of keys and values put.
    pub(crate) change_bytes: u64,
    /// Reads of the device.
    pub(crate) device_reads: u64,
    /// Their bytes.
    pub(crate) device_read_bytes: u64,
    /// Bytes written to the device.
    pub(crate) device_written_bytes: u64,
    /// Bytes that reclaim copied.
    pub(crate) reclaim_moved_bytes: u64,
}

impl Counted {
    /// The counts in `tree` and `store`.
    pub(crate) fn of(tree: &TreeStatistics, store: &Statistics) -> Counted {
        Counted {
            pages: tree.get_reads,
            merge_pages: tree.merge_reads,
            delta_writes: tree.delta_writes,
            leaf_writes: tree.leaf_writes,
            page_bytes: tree.page_bytes,
            journal_bytes: tree.journal_bytes,
            change_bytes: tree.change_bytes,
            device_reads: store.device_reads,
            device_read_bytes: store.device_read_bytes,
            device_written_bytes: store.device_written_bytes,
            reclaim_moved_bytes: store.reclaim_moved_bytes,
        }
    }

    /// What was counted from here until `later`.
    pub(crate) fn until(&self, later: &Counted) -> Counted {
        self.with(later, |before, after| after - before)
    }

    /// Both spans together.
    pub(crate) fn and(&self, other: &Counted) -> Counted {
        self.with(other, |one, two| one + two)
    }

    fn with(&self, other: &Counted, join: fn(u64, u64) -> u64) -> Counted {
        Counted {
            pages: join(self.pages, other.pages),
            merge_pages: join(self.merge_pages, other.merge_pages),
            delta_writes: join(self.delta_writes, other.delta_writes),
            leaf_writes: join(self.leaf_writes, other.leaf_writes),
            page_bytes: join(self.page_bytes, other.page_bytes),
            journal_bytes: join(self.journal_bytes, other.journal_bytes),
            change_bytes: join(self.change_bytes, other.change_bytes),
            device_reads: join(self.device_reads, other.device_reads),
            device_read_bytes: join(self.device_read_bytes, other.device_read_bytes),
            device_written_bytes: join(self.device_written_bytes, other.device_written_bytes),
            reclaim_moved_bytes: join(self.reclaim_moved_bytes, other.reclaim_moved_bytes),
        }
    }

    /// Bytes written to the device for each byte of keys and values put.
    pub(crate) fn write_amplification(&self) -> f64 {
        self.device_written_bytes as f64 / self.change_bytes.max(1) as f64
    }

    /// Mean size of a device read, bytes.
    pub(crate) fn bytes_per_read(&self) -> f64 {
        self.device_read_bytes as f64 / self.device_reads.max(1) as f64
    }
}
