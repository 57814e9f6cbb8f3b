//! How ordered tables are kept.

use entresol_flash::SpaceId;

use crate::pending::Arena;

/// A merge takes the changes of no fewer bytes than so many leaves have.
const MERGE_LEAVES_MIN: usize = 8;

/// How ordered tables are kept.
#[derive(Debug, Clone)]
pub struct TreeOptions {
    /// The space of the store that their pages are in. Nothing else may use it.
    pub space: SpaceId,
    /// The lane of the store's journal that their changes are in. Nothing else may use it.
    pub lane: u16,
    /// Most bytes of changes that wait in memory for a merge.
    pub waiting_bytes_max: u64,
    /// Most bytes of tables that are open and of their inner nodes.
    pub directory_bytes_max: u64,
    /// A round of merges takes one of so many parts of the changes that may wait. Each round fills
    /// up what is open of the log at its syncs, so small rounds write more; the changes of a large
    /// round leave memory late.
    pub round_parts: u64,
    /// A leaf with more bytes is split.
    pub leaf_bytes_max: usize,
    /// A value of so many bytes or more is a record of its own, and stands in no leaf. What was
    /// written before stays as it is.
    pub separate_bytes_min: usize,
    /// Bits of memory for each row, by which most gets of keys that have no row read nothing; up to
    /// 32, and 0 for none. With 10 about one such get in a hundred reads a leaf. They are counted
    /// under `directory_bytes_max`. Rows of a table whose one page is its first record have none.
    pub absent_filter_bits: u8,
}

/// How a table is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Whether it keeps counts.
    pub counts: RowCounts,
}

/// Whether a table says how many rows it has. A table that does reads a leaf with each merge of its
/// changes, and has 8 bytes of memory more for each leaf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowCounts {
    /// It does not.
    #[default]
    NotKept,
    /// Its inner nodes say how many rows are below them.
    Kept,
}

impl Default for TreeOptions {
    fn default() -> TreeOptions {
        TreeOptions {
            space: SpaceId(u16::MAX - 1),
            lane: 0,
            waiting_bytes_max: 32 << 20,
            directory_bytes_max: 64 << 20,
            round_parts: 24,
            leaf_bytes_max: 8 << 10,
            separate_bytes_min: 512,
            absent_filter_bits: 0,
        }
    }
}

impl TreeOptions {
    /// Most bytes of memory that tables take: so much of the cap a store should be opened with to
    /// reserve.
    pub fn memory_bytes_max(&self) -> u64 {
        self.arena_bytes_max() + self.directory_bytes_max
    }

    /// The same with no more memory than `bytes`, as far as that is possible.
    #[must_use]
    pub fn within(mut self, bytes: u64) -> TreeOptions {
        if self.memory_bytes_max() > bytes {
            // With what lies idle between them, changes take half of it at most.
            self.waiting_bytes_max = self.waiting_bytes_max.min(bytes / 5 * 2);
            let rest = bytes.saturating_sub(self.arena_bytes_max());
            self.directory_bytes_max = self.directory_bytes_max.min(rest);
        }
        self
    }

    /// Of how many bytes one merge takes the changes. It has several times as many in memory: a
    /// leaf to which all of a load goes must not take as much again as all changes that may wait.
    pub(crate) fn merge_bytes_max(&self) -> u64 {
        let leaves = (MERGE_LEAVES_MIN * self.leaf_bytes_max) as u64;
        (self.waiting_bytes_max / self.round_parts.max(1)).max(leaves)
    }

    /// Most bytes of the memory of changes, with what lies idle between them.
    pub(crate) fn arena_bytes_max(&self) -> u64 {
        (self.waiting_bytes_max + self.waiting_bytes_max / 4).max(2 * Arena::LEAST_BYTES)
    }
}
