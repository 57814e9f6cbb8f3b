//! A cache: what is live goes with its segment, in the order in which it was written, unless it is
//! pinned or was read since. What is pinned stays until it is removed or ends.

use super::{Field, Keep, Live, OfDamaged, Order, ReclaimPolicy, WhenFull};
use crate::segment::{Segment, SegmentState, Stream, first_to_go};

/// Pinned records go before their turn where at most one part in so many of a segment is live.
const PINNED_LIVE_PARTS: u32 = 8;

/// The policy of caches.
#[derive(Debug)]
pub(super) struct Evict;

impl ReclaimPolicy for Evict {
    /// Pinned segments few of which are live, then the one whose turn it is. `None` if only the one
    /// that new records go to is left.
    fn choose(&self, field: &Field<'_>) -> Option<u32> {
        if let Some(pinned) = choose_pinned(field.segments) {
            return Some(pinned);
        }
        let states = [SegmentState::Open, SegmentState::Sealed];
        let first = first_to_go(field.segments, &states)?;
        let segment = &field.segments[first as usize];
        let is_filled = segment.state == SegmentState::Open && segment.stream == Stream::Cold as u8;
        (!is_filled).then_some(first)
    }

    fn order(&self) -> Order {
        Order::InTurn
    }

    fn of_live(&self, live: Live) -> Keep {
        let pinned = live.pinned || live.stream == Stream::Hot as u8;
        if pinned { Keep::Always } else { Keep::IfRead }
    }

    fn of_damaged(&self) -> OfDamaged {
        OfDamaged::Goes
    }

    fn lets_go(&self) -> bool {
        true
    }

    fn marks_reads(&self) -> bool {
        true
    }

    fn when_full(&self) -> WhenFull {
        WhenFull::MakesRoom
    }

    /// What may be evicted goes in its turn, whatever it replaced. What reclaim writes goes where
    /// its copies do, to segments that puts may not take, or it could not go on.
    fn stream_of(&self, stream: Stream, pinned: bool) -> Stream {
        match (stream.is_reclaim(), pinned) {
            (true, _) => Stream::ReclaimedOld,
            (false, true) => Stream::Hot,
            (false, false) => Stream::Cold,
        }
    }

    fn stream_of_copy(&self, _: bool) -> Stream {
        Stream::ReclaimedOld
    }

    fn keeps_apart(&self, stream: Stream) -> bool {
        stream == Stream::Hot
    }
}

/// Chooses a segment of pinned records of a cache few of which are live: nothing in it is evicted,
/// so it may go before its turn. `None` if there is none.
fn choose_pinned(segments: &[Segment]) -> Option<u32> {
    let sealed = segments.iter().enumerate().filter(|(_, segment)| {
        segment.state == SegmentState::Sealed && segment.stream == Stream::Hot as u8
    });
    let live = |segment: &Segment| segment.live_bytes.saturating_sub(segment.dropped_bytes);
    sealed
        .filter(|(_, segment)| live(segment) <= segment.used_bytes / PINNED_LIVE_PARTS)
        .min_by_key(|(_, segment)| (live(segment), segment.sequence))
        .map(|(number, _)| number as u32)
}
