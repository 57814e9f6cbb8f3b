//! What ordered tables did since they were opened.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Sessions take turns with so many counters of reads: processors that add to the same one wait for
/// each other.
const STRIPES: usize = 16;

/// What tables did since they were opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    reads: [ReadCounters; STRIPES],
    /// Sessions made.
    sessions: AtomicUsize,
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
    pub values_put: AtomicU64,
    pub values_moved: AtomicU64,
    pub values_removed: AtomicU64,
}

/// What sessions count without waiting for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ReadCounters {
    pub gets: AtomicU64,
    pub get_reads: AtomicU64,
}

impl Counters {
    /// Which counters of reads a new session has.
    pub(crate) fn next_stripe(&self) -> usize {
        self.sessions.fetch_add(1, Ordering::Relaxed) % STRIPES
    }

    pub(crate) fn reads(&self, stripe: usize) -> &ReadCounters {
        &self.reads[stripe]
    }

    /// Gets of all sessions, and pages that they asked for.
    pub(crate) fn all_reads(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.reads.iter().fold((0, 0), |(gets, get_reads), reads| {
            (gets + read(&reads.gets), get_reads + read(&reads.get_reads))
        })
    }

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
    /// Values that were written as records of their own.
    pub values_put: u64,
    /// Values that merges made records of their own: they stood in the journal before.
    pub values_moved: u64,
    /// Such values that were removed since another one, or none, took their place.
    pub values_removed: u64,
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
        let TreeStatistics {
            waiting_bytes,
            gets,
            get_reads,
            merge_reads,
            delta_writes,
            leaf_writes,
            node_writes,
            page_bytes,
            journal_bytes,
            changes,
            change_bytes,
            pages_cleared,
            arena_bytes,
            directory_bytes,
            recovered_bytes,
            open_tables,
            leaves_absorbed,
            nodes_absorbed,
            tables_departed,
            nodes_departed,
            values_put,
            values_moved,
            values_removed,
        } = *self;
        vec![
            ("tables_waiting_bytes", waiting_bytes),
            ("tables_gets", gets),
            ("tables_get_reads", get_reads),
            ("tables_merge_reads", merge_reads),
            ("tables_delta_writes", delta_writes),
            ("tables_leaf_writes", leaf_writes),
            ("tables_node_writes", node_writes),
            ("tables_page_bytes", page_bytes),
            ("tables_journal_bytes", journal_bytes),
            ("tables_changes", changes),
            ("tables_change_bytes", change_bytes),
            ("tables_pages_cleared", pages_cleared),
            ("tables_values_put", values_put),
            ("tables_values_moved", values_moved),
            ("tables_values_removed", values_removed),
            ("tables_arena_bytes", arena_bytes),
            ("tables_directory_bytes", directory_bytes),
            ("tables_recovered_bytes", recovered_bytes),
            ("tables_open", open_tables),
            ("tables_leaves_absorbed", leaves_absorbed),
            ("tables_nodes_absorbed", nodes_absorbed),
            ("tables_departed", tables_departed),
            ("tables_nodes_departed", nodes_departed),
        ]
    }
}
