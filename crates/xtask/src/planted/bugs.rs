//! The bugs, each with the test that must catch it.

use crate::seeded::Target;
use crate::simulate::CRASH;

/// A bug and the test that must catch it.
pub(super) struct Bug {
    pub(super) name: &'static str,
    pub(super) caught_by: Target,
    /// Of those tests, the one that is named here.
    pub(super) test: &'static str,
}

/// Proves that a bug gets planted and that a failure is seen.
pub(super) const CANARY: Bug = Bug {
    name: "canary",
    caught_by: Target { package: "entresol-planted", test: "canary" },
    test: "canary_dies_only_when_planted",
};

pub(super) const BUGS: &[Bug] = &[
    CANARY,
    Bug {
        name: "superblock-flipped-before-sync",
        caught_by: CRASH,
        test: "a_cache_never_answers_with_less_than_what_was_durable",
    },
    Bug {
        name: "generation-not-compared",
        caught_by: CRASH,
        test: "faults::a_write_that_the_device_lost_is_never_answered_\
               with_what_stood_there_before",
    },
    Bug {
        name: "checksum-not-verified",
        caught_by: CRASH,
        test: "a_cache_in_shared_memory_never_goes_back",
    },
    Bug {
        name: "index-before-append",
        caught_by: CRASH,
        test: "a_cache_never_answers_with_less_than_what_was_durable",
    },
    Bug {
        name: "segment-released-before-copies-synced",
        caught_by: CRASH,
        test: "faults::a_device_that_fills_up_refuses_writes_and_keeps_what_it_has",
    },
    Bug {
        name: "begun-unit-reported-durable",
        caught_by: STORE,
        test: "rounds::a_sync_beside_a_release_covers_what_has_begun_a_unit",
    },
    Bug {
        name: "dropped-in-flight",
        caught_by: STORE,
        test: "drops::an_operation_that_meets_a_drop_changes_nothing_of_what_was_dropped",
    },
    Bug {
        name: "location-by-address",
        caught_by: STORE,
        test: "reuse::what_was_read_says_nothing_of_a_later_entry_at_the_same_address",
    },
    Bug {
        name: "found-of-another-key",
        caught_by: STORE,
        test: "found::what_was_found_of_another_key_harms_neither",
    },
    Bug {
        name: "left-leaf-before-right",
        caught_by: TABLES,
        test: "joining::tables_whose_leaves_join_are_a_prefix_of_the_batches_after_any_crash",
    },
    Bug {
        name: "journal-cut-before-leaves",
        caught_by: TABLES,
        test: "joining::tables_whose_leaves_join_are_a_prefix_of_the_batches_after_any_crash",
    },
    Bug {
        name: "journal-cut-within-a-record",
        caught_by: TABLES,
        test: "after_a_crash_tables_are_what_a_prefix_of_the_batches_makes",
    },
    Bug {
        name: "batch-continues-another-key",
        caught_by: TABLES,
        test: "after_a_crash_tables_are_what_a_prefix_of_the_batches_makes",
    },
    Bug {
        name: "journal-cut-by-the-newest-pass",
        caught_by: TABLES,
        test: "joining::tables_whose_leaves_join_are_a_prefix_of_the_batches_after_any_crash",
    },
    Bug {
        name: "empty-leaf-of-its-neighbour",
        caught_by: TABLES,
        test: "joining::a_table_whose_leaves_join_holds_what_a_map_holds",
    },
    Bug {
        name: "value-over-the-old-one",
        caught_by: TABLES,
        test: "after_a_crash_tables_are_what_a_prefix_of_the_batches_makes",
    },
    Bug {
        name: "batch-without-its-value-is-kept",
        caught_by: TABLES,
        test: "after_a_crash_tables_are_what_a_prefix_of_the_batches_makes",
    },
    Bug {
        name: "small-rows-behind-the-mark",
        caught_by: TABLES,
        test: "direct::small_rows_and_parts_are_found_beside_large_ones",
    },
    Bug {
        name: "side-freed-before-the-sync",
        caught_by: TABLES,
        test: "large::rows_whose_values_get_records_of_their_own_outlive_any_crash",
    },
    Bug {
        name: "old-value-written-once-more",
        caught_by: TABLES,
        test: "large::values_that_waited_in_the_journal_get_records_of_their_own",
    },
    Bug {
        name: "large-values-left-in-leaves",
        caught_by: TABLES,
        test: "large::rows_of_1700_bytes_cost_what_they_may",
    },
    Bug {
        name: "value-removed-before-the-sync",
        caught_by: TABLES,
        test: "values::a_value_stays_until_what_replaces_it_is_durable",
    },
    Bug {
        name: "newest-part-not-folded",
        caught_by: TABLES,
        test: "large::merges_fold_large_parts_into_large_values",
    },
    Bug {
        name: "journal-without-more",
        caught_by: TABLES,
        test: "full::merges_make_room_in_a_journal_full_of_parts_that_no_leaf_holds",
    },
    Bug {
        name: "parts-of-pages-not-folded",
        caught_by: TABLES,
        test: "full::merges_make_room_in_a_journal_full_of_parts_that_no_leaf_holds",
    },
    Bug {
        name: "no-changes-are-oldest",
        caught_by: TABLES,
        test: "full::merges_make_room_in_a_journal_full_of_parts_that_no_leaf_holds",
    },
    Bug {
        name: "values-not-looked-for",
        caught_by: CHECKING,
        test: "values_that_are_missing_or_that_no_row_names_are_named",
    },
    Bug {
        name: "orphans-kept",
        caught_by: TABLES,
        test: "values::no_value_outlives_its_row_over_crashes",
    },
    Bug {
        name: "old-values-forgotten-by-merges",
        caught_by: TABLES,
        test: "values::no_value_outlives_its_row_over_crashes",
    },
    Bug {
        name: "changes-not-copied-once-more",
        caught_by: TABLES,
        test: "beside::no_read_finds_a_row_as_it_was_before_the_read_began",
    },
    Bug {
        name: "waiting-changes-passed-over",
        caught_by: TABLES,
        test: "cached::a_get_of_a_leaf_in_memory_finds_the_newest_row",
    },
    Bug {
        name: "delta-passed-over-in-memory",
        caught_by: TABLES,
        test: "cached::a_get_of_a_leaf_in_memory_finds_the_newest_row",
    },
    Bug {
        name: "held-segment-reclaimed",
        caught_by: STORE,
        test: "snapshots::a_snapshot_is_the_store_of_one_moment_while_writes_and_reclaim_go_on",
    },
    Bug {
        name: "snapshot-with-what-continues",
        caught_by: STORE,
        test: "snapshots::a_snapshot_has_the_journal_of_its_moment_and_no_append_of_later",
    },
    Bug {
        name: "journal-filled-to-its-end",
        caught_by: TABLES,
        test: "dropping::a_table_that_fills_the_store_can_be_dropped_and_written_again",
    },
    Bug {
        name: "parent-trusted",
        caught_by: TABLES,
        test: "after_a_crash_tables_are_what_a_prefix_of_the_batches_makes",
    },
    Bug {
        name: "change-beside-a-condition",
        caught_by: TABLES,
        test: "conditional::a_conditional_write_sees_changes_that_come_while_it_reads",
    },
    Bug {
        name: "drop-forgotten-by-the-journal",
        caught_by: TABLES,
        test: "dropping::a_drop_stays_in_the_journal_until_the_table_is_cleared",
    },
    Bug {
        name: "leaf-held-back-forgotten",
        caught_by: TABLES,
        test: "unmerged::parts_without_a_merge_function_outlive_sweeps_and_a_crash",
    },
    Bug {
        name: "table-left-with-changes",
        caught_by: TABLES,
        test: "leaving::tables_that_nobody_has_leave_memory_and_come_back_with_all_their_rows",
    },
    Bug {
        name: "moment-of-later-leaves",
        caught_by: TABLES,
        test: "moments::a_scan_of_one_moment_shows_batches_whole_or_not_at_all",
    },
    Bug {
        name: "filter-without-delta-keys",
        caught_by: TABLES,
        test: "absent::tables_with_filters_hold_what_a_map_holds",
    },
    Bug {
        name: "filters-believed-after-a-crash",
        caught_by: TABLES,
        test: "absent::after_a_crash_no_filter_hides_a_row",
    },
    Bug {
        name: "table-left-with-nodes",
        caught_by: TABLES,
        test: "dropping::a_dropped_table_has_none_of_its_old_rows_after_any_crash",
    },
    Bug {
        name: "decoded-part-forgotten",
        caught_by: TABLES,
        test: "replay::rows_of_a_journal_that_threads_decode_are_as_they_were_put_last",
    },
    Bug {
        name: "drop-before-what-was-gathered",
        caught_by: TABLES,
        test: "dropping::a_dropped_table_has_none_of_its_old_rows_after_any_crash",
    },
    Bug {
        name: "node-left-with-changes",
        caught_by: TABLES,
        test: "nodes::inner_nodes_beyond_their_share_leave_memory_and_come_back_as_they_were",
    },
    Bug {
        name: "journal-gathered-in-part",
        caught_by: TABLES,
        test: "restarts::openings_with_few_changes_each_do_not_fill_the_journal",
    },
    Bug {
        name: "leaf-absorbed-while-named",
        caught_by: TABLES,
        test: "joining::tables_whose_leaves_join_are_a_prefix_of_the_batches_after_any_crash",
    },
    Bug {
        name: "absorbed-leaf-removed-early",
        caught_by: TABLES,
        test: "joining::tables_whose_leaves_join_are_a_prefix_of_the_batches_after_any_crash",
    },
    Bug {
        name: "leaves-never-join",
        caught_by: TABLES,
        test: "queue::a_queue_costs_the_same_however_long_it_runs",
    },
    Bug {
        name: "end-not-moved-by-a-put",
        caught_by: TABLES,
        test: "queue::both_ends_of_a_table_are_where_its_rows_are",
    },
    Bug { name: "part-added-twice", caught_by: TABLES, test: "tables_hold_what_a_map_holds" },
    Bug { name: "page-read-ahead-kept", caught_by: TABLES, test: "tables_hold_what_a_map_holds" },
    Bug {
        name: "total-kept-over-a-write",
        caught_by: TABLES,
        test: "counts::counts_and_ranks_are_those_of_a_map",
    },
    Bug {
        name: "count-outlives-a-write",
        caught_by: TABLES,
        test: "counts::a_count_that_a_write_overtakes_is_not_kept",
    },
    Bug {
        name: "rows-of-delta-pages-not-counted",
        caught_by: TABLES,
        test: "counts::counts_and_ranks_are_those_of_a_map",
    },
    Bug {
        name: "rows-below-nodes-left-unsaid",
        caught_by: TABLES,
        test: "nodes::inner_nodes_that_leave_memory_say_how_many_rows_are_below",
    },
    Bug {
        name: "rows-believed-after-a-crash",
        caught_by: TABLES,
        test: "counts::after_a_crash_rows_that_inner_nodes_do_not_know_count",
    },
    Bug {
        name: "unmerged-rows-said-to-be-merged",
        caught_by: TABLES,
        test: "loading::a_leaf_with_many_changes_is_a_prefix_of_the_batches_after_any_crash",
    },
    Bug {
        name: "delta-of-another-leaf",
        caught_by: MERGING,
        test: "a_delta_page_of_another_base_does_not_count",
    },
    Bug {
        name: "copies-forget-their-lifespan",
        caught_by: STORE,
        test: "lifespans::records_of_different_lifespans_share_no_segment_\
               even_after_they_were_copied",
    },
    Bug {
        name: "journal-trimmed-too-far",
        caught_by: CRASH,
        test: "journal::a_synced_journal_keeps_every_acknowledged_record",
    },
    Bug {
        name: "journal-erased-out-of-order",
        caught_by: CRASH,
        test: "journal::a_flushed_journal_keeps_all_through_a_kill",
    },
    Bug {
        name: "journal-opened-too-soon",
        caught_by: CRASH,
        test: "journal::a_flushed_journal_keeps_all_through_a_kill",
    },
    Bug {
        name: "journal-continued-on-flash",
        caught_by: CRASH,
        test: "journal::a_synced_journal_keeps_every_acknowledged_record",
    },
    Bug {
        name: "erasure-not-awaited",
        caught_by: STORE,
        test: "erasures::nothing_is_written_over_a_segment_whose_erasure_\
               a_loss_of_power_could_undo",
    },
    Bug {
        name: "erasure-torn",
        caught_by: STORE,
        test: "erasures::no_segment_counts_as_damaged_because_power_was_lost_while_it_was_erased",
    },
    Bug {
        name: "tombstone-dropped-early",
        caught_by: CRASH,
        test: "faults::faults_of_writes_that_lost_something_once_lose_nothing",
    },
    Bug {
        name: "sync-error-swallowed",
        caught_by: CRASH,
        test: "a_cache_never_answers_with_less_than_what_was_durable",
    },
    Bug {
        name: "partial-flush-reported-durable",
        caught_by: CRASH,
        test: "a_cache_in_shared_memory_never_goes_back",
    },
    Bug {
        name: "unreadable-record-left-out",
        caught_by: CRASH,
        test: "faults::an_unreadable_sector_hides_no_acknowledged_entry_from_a_recovery_unnoticed",
    },
    Bug {
        name: "unconfirmed-believed",
        caught_by: CRASH,
        test: "faults::a_failed_write_acknowledges_nothing_and_reads_go_on",
    },
    Bug {
        name: "victim-released-half-decided",
        caught_by: STORE,
        test: "steps::a_victim_that_lies_half_decided_is_brought_to_its_end_once_nobody_writes",
    },
    Bug {
        name: "evicted-out-of-turn",
        caught_by: STORE,
        test: "caches::a_cache_that_lost_its_memory_never_answers_with_an_old_value",
    },
    Bug {
        name: "dropped-while-open",
        caught_by: STORE,
        test: "caches::a_cache_that_lost_its_memory_has_the_pinned_entries_\
               of_the_partitions_that_were_not_dropped",
    },
    Bug {
        name: "damaged-for-good",
        caught_by: STORE,
        test: "damaged::a_segment_with_a_damaged_record_is_used_again_once_the_record_has_gone",
    },
    Bug {
        name: "index-full-for-ever",
        caught_by: STORE,
        test: "slots::an_index_that_was_full_takes_new_keys_again_after_removals",
    },
    Bug {
        name: "nonce-used-twice",
        caught_by: STORE,
        test: "secrets::a_tombstone_and_what_it_stands_for_are_not_encrypted_alike",
    },
    Bug {
        name: "buffers-by-identity-alone",
        caught_by: STORE,
        test: "identity::a_killed_store_that_moved_finds_its_buffers",
    },
    Bug {
        name: "buffers-not-missed",
        caught_by: STORE,
        test: "ground::buffers_that_are_removed_under_a_store_are_made_again_\
               with_all_that_was_acknowledged",
    },
    Bug {
        name: "reclaimed-instead-of-awaited",
        caught_by: STORE,
        test: "late::a_cache_on_a_device_slower_than_its_reclaim_never_runs_out_of_room",
    },
    Bug {
        name: "write-through-keeps-old-blocks",
        caught_by: VOLUMES,
        test: "what_was_acknowledged_survives_a_kill_in_every_mode",
    },
    Bug {
        name: "ahead-outlives-writes",
        caught_by: VOLUME_STREAMS,
        test: "what_was_read_ahead_of_a_write_is_never_read_after_it",
    },
    Bug {
        name: "regions-not-opened",
        caught_by: VOLUMES,
        test: "a_closed_cache_comes_back_as_it_was",
    },
    Bug {
        name: "write-back-before-sync",
        caught_by: VOLUMES,
        test: "what_was_flushed_survives_power_loss_in_every_mode",
    },
    Bug {
        name: "write-back-across-epochs",
        caught_by: VOLUMES,
        test: "a_closed_cache_comes_back_as_it_was",
    },
    Bug {
        name: "log-of-other-incarnation",
        caught_by: VOLUME_FAULTS,
        test: "entries_beyond_where_a_log_broke_off_never_come_back",
    },
    Bug {
        name: "overlapping-writes-together",
        caught_by: VOLUMES,
        test: "a_closed_cache_comes_back_as_it_was",
    },
    Bug {
        name: "trusted-after-passing-through",
        caught_by: VOLUME_TRUST,
        test: "a_volume_that_passed_through_reads_what_other_hosts_wrote_however_it_comes_back",
    },
    Bug {
        name: "heap-checksum-ignored",
        caught_by: HEAP_CRASH,
        test: "committed_transactions_survive_power_loss_on_pages",
    },
    Bug {
        name: "heap-record-position-not-compared",
        caught_by: HEAP_CRASH,
        test: "committed_transactions_survive_power_loss_on_pages",
    },
    Bug {
        name: "heap-generation-ignored",
        caught_by: HEAP_CRASH,
        test: "committed_transactions_survive_power_loss_on_pages",
    },
    Bug {
        name: "heap-damage-passed-over",
        caught_by: HEAP_DAMAGE,
        test: "a_damaged_large_transaction_is_told_of_and_given_up",
    },
    Bug {
        name: "heap-freed-under-guard",
        caught_by: HEAP_USE,
        test: "a_guard_keeps_freed_blocks_from_being_reused",
    },
    Bug {
        name: "heap-nonce-reused",
        caught_by: HEAP_ENCRYPTION,
        test: "no_nonce_is_used_twice_by_any_opening_copy_or_backup",
    },
    Bug {
        name: "heap-page-tag-ignored",
        caught_by: HEAP_ENCRYPTION,
        test: "a_flipped_bit_anywhere_is_an_error_or_harmless",
    },
    Bug {
        name: "collection-store-not-logged",
        caught_by: COLLECTION_CRASH,
        test: "append_logs_survive_power_loss",
    },
    Bug {
        name: "view-changed-in-place",
        caught_by: COLLECTIONS,
        test: "hash_map::random_changes_equal_those_of_a_model",
    },
    Bug {
        name: "absent-key-removed",
        caught_by: COLLECTIONS,
        test: "hash_map::random_changes_equal_those_of_a_model",
    },
    Bug {
        name: "write-buffers-die-with-the-process",
        caught_by: KILLED,
        test: "acknowledged_batches_over_tables_survive_kills_at_every_level",
    },
];

/// A process with ordered tables that is killed, round after round.
const KILLED: Target = Target { package: "entresol-host", test: "killed" };

/// Ordered tables, in one life and over crashes.
const TABLES: Target = Target { package: "entresol-tree", test: "tables" };

/// Damage of tables, one at a time.
const CHECKING: Target = Target { package: "entresol-tree", test: "checking" };

/// Leaves and delta pages against a map.
const MERGING: Target = Target { package: "entresol-tree", test: "merging" };

/// Stores on a device in memory.
const STORE: Target = Target { package: "entresol-flash", test: "store" };

/// The tests that hold volumes against a model of every write.
const VOLUMES: Target = Target { package: "entresol-volume", test: "consistency" };

/// Collections in a heap against models.
const COLLECTIONS: Target = Target { package: "entresol-heap", test: "collections" };

/// Collections in a heap under every power failure.
const COLLECTION_CRASH: Target = Target { package: "entresol-heap", test: "collections_crash" };

/// Streams of a volume, what is read ahead of them and what is cached.
const VOLUME_STREAMS: Target = Target { package: "entresol-volume", test: "streams" };

/// Faults of a volume's cache and its backing, one at a time.
const VOLUME_FAULTS: Target = Target { package: "entresol-volume", test: "faults" };

/// What a cache believes after others may have written to the backing.
const VOLUME_TRUST: Target = Target { package: "entresol-volume", test: "trust" };

/// Every power failure of a heap's workload.
const HEAP_CRASH: Target = Target { package: "entresol-heap", test: "crash" };

/// Damage to a heap's file.
const HEAP_DAMAGE: Target = Target { package: "entresol-heap", test: "checking" };

/// Heaps that are encrypted.
const HEAP_ENCRYPTION: Target = Target { package: "entresol-heap", test: "encryption" };

/// Heaps as programs use them.
const HEAP_USE: Target = Target { package: "entresol-heap", test: "basics" };
