//! Which partitions the segments of a cache's pinned records are of: what is dropped with a
//! partition stays in the index until its segment is reclaimed, and so looks live.

use std::collections::HashMap;

use crate::format::{Floor, SizeCode};
use crate::segment::{Segment, SegmentState, Stream};
use crate::types::Owner;

/// Bytes of pinned records by segment and partition, since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct PinnedBytes {
    segments: HashMap<u32, Segmented>,
}

/// One use of a segment.
#[derive(Debug, Default)]
struct Segmented {
    sequence: u64,
    bytes: Vec<(Owner, u32)>,
}

impl PinnedBytes {
    /// A record was appended to segment `number`.
    pub(crate) fn add(&mut self, number: u32, sequence: u64, owner: Owner, size: SizeCode) {
        let segment = self.segments.entry(number).or_default();
        if segment.sequence != sequence {
            *segment = Segmented { sequence, bytes: Vec::new() };
        }
        let size = size.bytes() as u32;
        match segment.bytes.iter_mut().rev().find(|(of, _)| *of == owner) {
            Some((_, bytes)) => *bytes += size,
            None => segment.bytes.push((owner, size)),
        }
    }

    /// A partition, or all of a space, is dropped: how many bytes of which segments were of it.
    pub(crate) fn dropped(&mut self, floor: Floor, segments: &[Segment]) -> Vec<(u32, u32)> {
        let mut dropped = Vec::new();
        self.segments.retain(|number, segmented| {
            let segment = &segments[*number as usize];
            let stands = matches!(segment.state, SegmentState::Open | SegmentState::Sealed);
            if !stands
                || segment.sequence != segmented.sequence
                || segment.stream != Stream::Hot as u8
            {
                return false;
            }
            segmented.bytes.retain(|(owner, bytes)| {
                let goes = floor.space == owner.space
                    && floor.partition.is_none_or(|dropped| dropped == owner.partition);
                if goes {
                    dropped.push((*number, *bytes));
                }
                !goes
            });
            segment.state == SegmentState::Open || !segmented.bytes.is_empty()
        });
        dropped
    }
}
