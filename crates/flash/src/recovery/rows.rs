//! Sums of a recovery for each segment of a shard, and what was found of large values.

use std::collections::HashMap;

use crate::format::{FooterLine, RECORD_ALIGNMENT};
use crate::log::Shape;
use crate::shard::Shard;

/// Pieces found, by the value they belong to: number, address, record bytes.
pub(super) type Gathered = HashMap<u64, Vec<(u32, u64, u32)>>;

/// What is added up for each segment.
pub(super) struct Rows {
    pub rows: Vec<Row>,
    pub places: Places,
}

/// Where records can be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    segment_bytes: u64,
    /// Bits of an address that count units within a segment.
    unit_bits: u32,
}

impl Places {
    /// The address of the record of `line`; `None` if no segment has such a place. Checksums do not
    /// rule that out: someone may have made them.
    #[inline]
    pub(super) fn address_of(self, segment: u32, line: FooterLine) -> Option<u64> {
        let place = u64::from(line.place());
        let end = place * RECORD_ALIGNMENT as u64 + u64::from(line.record_bytes());
        (end <= self.segment_bytes).then_some(u64::from(segment) << self.unit_bits | place)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub used_bytes: u64,
    pub live_bytes: u64,
    pub tombstone_bytes: u64,
    /// The second before the earliest end. No end is 0 on the medium, so the last of all here.
    pub before_end: u32,
}

impl Rows {
    pub(super) fn new(shape: Shape) -> Rows {
        let units = shape.segment_bytes / RECORD_ALIGNMENT as u32;
        let segment_bytes = u64::from(shape.segment_bytes);
        let places = Places { segment_bytes, unit_bits: units.trailing_zeros() };
        let empty = Row { used_bytes: 0, live_bytes: 0, tombstone_bytes: 0, before_end: u32::MAX };
        let rows = vec![empty; shape.segments as usize];
        Rows { rows, places }
    }

    /// Counts `bytes` at `address` as live.
    #[inline]
    pub(super) fn add_live(&mut self, address: u64, bytes: u64) {
        if let Some(row) = self.rows.get_mut((address >> self.places.unit_bits) as usize) {
            row.live_bytes += bytes;
        }
    }

    /// Puts the sums where the shard keeps them.
    pub(super) fn apply(&self, shard: &mut Shard) {
        let saturated = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        for (number, row) in (0..).zip(&self.rows) {
            let mut segment = *shard.log.segment(number);
            segment.used_bytes = segment.used_bytes.saturating_add(saturated(row.used_bytes));
            segment.live_bytes = saturated(row.live_bytes);
            segment.next_end = segment.next_end.min(row.before_end.saturating_add(1));
            segment.tombstone_bytes = saturated(row.tombstone_bytes);
            shard.log.restore(number, segment);
        }
    }
}
