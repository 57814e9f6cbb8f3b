//! The figures of a store by name, for `INFO`, `/metrics` and `/stats` alike.

use entresol_tier::Statistics;

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
            | "ground_lost"
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
