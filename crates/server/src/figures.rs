//! The figures of a store by name, for `INFO`, `/metrics` and `/stats` alike.

use entresol_tier::Statistics;

/// All figures of a store that are plain numbers, each with its unit in its name.
pub(crate) fn of_store(figures: &Statistics) -> Vec<(&'static str, u64)> {
    vec![
        ("gets", figures.gets),
        ("memory_hits", figures.memory_hits),
        ("buffer_hits", figures.buffer_hits),
        ("flash_hits", figures.flash_hits),
        ("misses", figures.misses),
        ("segments_ahead", figures.segments_ahead),
        ("puts", figures.puts),
        ("removes", figures.removes),
        ("touches", figures.touches),
        ("overwrites", figures.overwrites),
        ("collisions_get", figures.collisions_get),
        ("collisions_put", figures.collisions_put),
        ("damaged", figures.damaged),
        ("expired", figures.expired),
        ("evicted_flash", figures.evicted_flash),
        ("evicted_small", figures.evicted_small),
        ("evicted_main", figures.evicted_main),
        ("entries", figures.entries),
        ("pending_io", figures.pending_io),
        ("flash_allocated_bytes", figures.flash_allocated_bytes),
        ("flash_live_bytes", figures.flash_live_bytes),
        ("user_written_bytes", figures.user_written_bytes),
        ("device_written_bytes", figures.device_written_bytes),
        ("device_writes", figures.device_writes),
        ("device_read_bytes", figures.device_read_bytes),
        ("device_reads", figures.device_reads),
        ("device_syncs", figures.device_syncs),
        ("reclaim_moved_bytes", figures.reclaim_moved_bytes),
        ("reclaim_segments", figures.reclaim_segments),
        ("reclaims_by_writers", figures.reclaims_by_writers),
        ("segments", figures.segments),
        ("segments_free", figures.segments_free),
        ("index_bytes", figures.index_bytes),
        ("buffer_bytes", figures.buffer_bytes),
        ("cache_bytes", figures.cache_bytes),
        ("other_bytes", figures.other_bytes),
    ]
}

/// Figures that go up and down; all others only grow.
pub(crate) fn is_gauge(name: &str) -> bool {
    matches!(
        name,
        "entries"
            | "pending_io"
            | "flash_allocated_bytes"
            | "flash_live_bytes"
            | "segments"
            | "segments_free"
            | "index_bytes"
            | "buffer_bytes"
            | "cache_bytes"
            | "other_bytes"
    )
}

/// Part of the gets that were answered from memory, from flash, and not at all.
pub(crate) fn ratios(figures: &Statistics) -> [(&'static str, f64); 3] {
    let share = |part: u64| part as f64 / figures.gets.max(1) as f64;
    [
        ("memory_hit_ratio", share(figures.memory_hits + figures.buffer_hits)),
        ("flash_hit_ratio", share(figures.flash_hits)),
        ("miss_ratio", share(figures.misses)),
    ]
}
