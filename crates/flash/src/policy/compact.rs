//! A store: what is live is copied forward, and stays until it is removed or ends.

use entresol_planted::planted;

use super::{Field, Keep, Live, OfDamaged, Order, ReclaimPolicy, WhenFull};
use crate::segment::{SegmentState, Stream};

/// Live eighths of a victim beyond which it is worth finding out which tombstones hide nothing.
const CHEAP_EIGHTHS: u32 = 6;

/// The policy of stores.
#[derive(Debug)]
pub(super) struct Compact;

impl ReclaimPolicy for Compact {
    fn choose(&self, field: &Field<'_>) -> Option<u32> {
        let cheap = choose_victim(field, 0);
        let dear = |victim: u32| {
            field.segments[victim as usize].live_bytes > field.segment_bytes / 8 * CHEAP_EIGHTHS
        };
        if field.tombstone_bytes == 0 || cheap.is_some_and(|victim| !dear(victim)) {
            return cheap;
        }
        choose_victim(field, (field.oldest_dead)().unwrap_or(u64::MAX))
    }

    fn order(&self) -> Order {
        Order::ByGain
    }

    fn of_live(&self, _: Live) -> Keep {
        Keep::Always
    }

    fn of_damaged(&self) -> OfDamaged {
        OfDamaged::Stays
    }

    fn lets_go(&self) -> bool {
        false
    }

    fn marks_reads(&self) -> bool {
        false
    }

    fn when_full(&self) -> WhenFull {
        WhenFull::Refuses
    }

    fn stream_of(&self, stream: Stream, _: bool) -> Stream {
        stream
    }

    fn stream_of_copy(&self, young: bool) -> Stream {
        if young { Stream::ReclaimedYoung } else { Stream::ReclaimedOld }
    }

    fn keeps_apart(&self, _: Stream) -> bool {
        false
    }
}

/// Chooses the segment to reclaim: the ratio of benefit to cost of Rosenblum and Ousterhout's
/// log-structured file system (SOSP 1991, section 3.6), with u the live share and age the time
/// since the segment was sealed. What is dear here is what is written, so the cost is u and not
/// 1 + u: (1 - u) · age / u. Tombstones in segments before the sequence `hiding_from` hide nothing
/// and count as dead. `None` if none has anything to gain.
fn choose_victim(field: &Field<'_>, hiding_from: u64) -> Option<u32> {
    let mut best: Option<(f64, u32)> = None;
    let count = field.segments.len();
    for step in 0..field.window.min(count) {
        let number = (field.start + step) % count;
        let segment = &field.segments[number];
        let idle = if segment.sequence < hiding_from { segment.tombstone_bytes } else { 0 };
        let live_bytes = segment.live_bytes.saturating_sub(idle);
        // Sealed before it was full, as by a recovery: it gives room without dead records.
        let sparse = u64::from(live_bytes) * 2 < u64::from(field.segment_bytes);
        let gains = live_bytes < segment.used_bytes || segment.padded || sparse;
        let held = segment.held && !planted!("held-segment-reclaimed");
        if segment.state != SegmentState::Sealed || !gains || held {
            continue;
        }
        let live = f64::from(live_bytes) / f64::from(field.segment_bytes);
        let age = field.now.saturating_sub(segment.sealed_at) as f64 + 1.0;
        let score = if live_bytes == 0 { f64::INFINITY } else { (1.0 - live) * age / live };
        if best.is_none_or(|(top, _)| score > top) {
            best = Some((score, number as u32));
        }
    }
    best.map(|(_, number)| number)
}
