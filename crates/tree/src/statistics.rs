//! What ordered tables did since they were opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// What tables did since they were opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub gets: AtomicU64,
    pub get_reads: AtomicU64,
    pub merge_reads: AtomicU64,
    pub delta_writes: AtomicU64,
    pub leaf_writes: AtomicU64,
    pub node_writes: AtomicU64,
    pub page_bytes: AtomicU64,
    pub journal_bytes: AtomicU64,
    pub changes: AtomicU64,
    pub change_bytes: AtomicU64,
    pub pages_cleared: AtomicU64,
    pub tables_departed: AtomicU64,
    pub nodes_departed: AtomicU64,
    pub leaves_absorbed: AtomicU64,
    pub nodes_absorbed: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Figures of the tables since they were opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeStatistics {
    /// Changes that wait in memory, bytes.
    pub waiting_bytes: u64,
    /// Gets that were answered.
    pub gets: u64,
    /// Pages that gets asked the store for.
    pub get_reads: u64,
    /// Pages that merges asked the store for.
    pub merge_reads: u64,
    /// Delta pages that were written.
    pub delta_writes: u64,
    /// Leaves that were written.
    pub leaf_writes: u64,
    /// Inner nodes that were written.
    pub node_writes: u64,
    /// Bytes of all pages that were written.
    pub page_bytes: u64,
    /// Bytes of batches in the journal.
    pub journal_bytes: u64,
    /// Changes that were made.
    pub changes: u64,
    /// Bytes of their keys and values.
    pub change_bytes: u64,
    /// Pages of dropped tables that were removed.
    pub pages_cleared: u64,
    /// Leaves that a neighbour absorbed.
    pub leaves_absorbed: u64,
    /// Inner nodes that a neighbour or the root absorbed.
    pub nodes_absorbed: u64,
    /// Tables that left memory.
    pub tables_departed: u64,
    /// Inner nodes that left memory while their tables stayed.
    pub nodes_departed: u64,
    /// Memory of changes that wait, with what lies idle between them, bytes.
    pub arena_bytes: u64,
    /// Memory of open tables and their inner nodes, bytes.
    pub directory_bytes: u64,
    /// Memory of what the journal had of tables that nobody has opened, beside changes, bytes.
    pub recovered_bytes: u64,
    /// Tables in memory.
    pub open_tables: u64,
}

impl TreeStatistics {
    /// All figures, each with its unit in its name.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("tables_waiting_bytes", self.waiting_bytes),
            ("tables_gets", self.gets),
            ("tables_get_reads", self.get_reads),
            ("tables_merge_reads", self.merge_reads),
            ("tables_delta_writes", self.delta_writes),
            ("tables_leaf_writes", self.leaf_writes),
            ("tables_node_writes", self.node_writes),
            ("tables_page_bytes", self.page_bytes),
            ("tables_journal_bytes", self.journal_bytes),
            ("tables_changes", self.changes),
            ("tables_change_bytes", self.change_bytes),
            ("tables_pages_cleared", self.pages_cleared),
            ("tables_departed", self.tables_departed),
            ("tables_nodes_departed", self.nodes_departed),
            ("tables_arena_bytes", self.arena_bytes),
            ("tables_directory_bytes", self.directory_bytes),
            ("tables_recovered_bytes", self.recovered_bytes),
            ("tables_open", self.open_tables),
        ]
    }
}
