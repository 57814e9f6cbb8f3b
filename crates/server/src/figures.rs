//! Shares of the figures of a store, for `INFO` and `/stats` alike.

use entresol_tier::Statistics;

/// Part of the gets that were answered from memory, from flash, and not at all.
pub(crate) fn ratios(figures: &Statistics) -> [(&'static str, f64); 3] {
    let share = |part: u64| part as f64 / figures.gets.max(1) as f64;
    [
        ("memory_hit_ratio", share(figures.memory_hits + figures.buffer_hits)),
        ("flash_hit_ratio", share(figures.flash_hits)),
        ("miss_ratio", share(figures.misses)),
    ]
}
