//! What is counted of one table. Gets are not: threads that read one table would wait for each
//! other's counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was written of a table since it came into memory.
#[derive(Debug, Default)]
pub(crate) struct Written {
    changes: AtomicU64,
    change_bytes: AtomicU64,
    pages: AtomicU64,
    page_bytes: AtomicU64,
}

impl Written {
    /// A change of a caller's, with so many bytes of key and value.
    pub(crate) fn count_change(&self, bytes: usize) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.change_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_page(&self, bytes: usize) {
        self.pages.fetch_add(1, Ordering::Relaxed);
        self.page_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The figures of a table called `name`, which takes `memory_bytes`, and `waiting_changes` of
    /// which wait to be merged.
    pub(crate) fn figures(
        &self,
        name: &[u8],
        memory_bytes: u64,
        waiting_changes: u64,
    ) -> TableFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TableFigures {
            name: name.to_vec(),
            memory_bytes,
            waiting_changes,
            changes: read(&self.changes),
            change_bytes: read(&self.change_bytes),
            pages_written: read(&self.pages),
            page_bytes: read(&self.page_bytes),
        }
    }
}

/// Figures of a table in memory. What is counted begins when it came there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFigures {
    /// Its name.
    pub name: Vec<u8>,
    /// Memory of the table and its inner nodes, filters included, without changes that wait.
    pub memory_bytes: u64,
    /// Changes that wait to be merged into pages now.
    pub waiting_changes: u64,
    /// Changes that callers made.
    pub changes: u64,
    /// Bytes of their keys and values.
    pub change_bytes: u64,
    /// Pages that merges wrote: leaves, delta pages, inner nodes.
    pub pages_written: u64,
    /// Bytes of these.
    pub page_bytes: u64,
}

impl TableFigures {
    /// All figures, each with its unit in its name.
    pub fn figures(&self) -> [(&'static str, u64); 6] {
        [
            ("memory_bytes", self.memory_bytes),
            ("waiting_changes", self.waiting_changes),
            ("changes", self.changes),
            ("change_bytes", self.change_bytes),
            ("pages_written", self.pages_written),
            ("page_bytes", self.page_bytes),
        ]
    }

    /// Bytes of pages for each byte that callers changed; the journal is not in it, and comes
    /// before. 0 while nothing was changed.
    pub fn write_amplification(&self) -> f64 {
        match self.change_bytes {
            0 => 0.0,
            bytes => self.page_bytes as f64 / bytes as f64,
        }
    }
}
