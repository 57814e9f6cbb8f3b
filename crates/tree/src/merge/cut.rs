//! Where the rows of a merge are cut into leaves.

use std::ops::Range;

use crate::format::{HEADER_BYTES, PageBuilder};

/// When a leaf is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafLimits {
    /// A leaf with more bytes is split. One row alone may take more.
    pub leaf_bytes_max: usize,
}

/// The parts of the builder's `rows` that become leaves: one, or as few as hold them. Where rows
/// are appended all but the last are full; else all are alike.
pub(super) fn cut(
    builder: &PageBuilder,
    rows: Range<usize>,
    has_sequences: bool,
    limits: LeafLimits,
    appends: bool,
) -> Vec<Range<usize>> {
    let room = limits.leaf_bytes_max.saturating_sub(HEADER_BYTES).max(1);
    let total: usize = rows.clone().map(|index| builder.row_bytes(index, has_sequences)).sum();
    if total <= room {
        return vec![rows];
    }
    let share = if appends { room } else { total.div_ceil(total.div_ceil(room)) };
    let (mut parts, mut start, mut taken) = (Vec::new(), rows.start, 0);
    for index in rows.clone() {
        let bytes = builder.row_bytes(index, has_sequences);
        // Parts of one key stay together.
        let may_cut = index > start && builder.key(index) != builder.key(index - 1);
        let is_full = taken + bytes > room || !appends && taken + bytes / 2 >= share;
        if may_cut && is_full {
            parts.push(start..index);
            (start, taken) = (index, 0);
        }
        taken += bytes;
    }
    parts.push(start..rows.end);
    parts
}
