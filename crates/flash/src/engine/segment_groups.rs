//! The segments of a store at one look: neighbours are taken together, so that a large store has no
//! more groups than a small one.

use std::time::Duration;

use super::Engine;
use super::segment_ages::{Ages, SegmentAge};
use crate::segment::{Segment, SegmentState, Stream};

/// Where segments are live, and how old they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMap {
    /// All segments, in groups of neighbours of like size.
    pub groups: Vec<SegmentGroup>,
    /// Sealed ones in quarters by their age, the youngest first.
    pub ages: [SegmentAge; 4],
}

/// Neighbouring segments of a shard, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentGroup {
    /// How many.
    pub segments: u64,
    /// Those that are free.
    pub free: u64,
    /// Those that are kept for a record that does not verify.
    pub damaged: u64,
    /// Bytes of all records.
    pub used_bytes: u64,
    /// Bytes of live records.
    pub live_bytes: u64,
    /// Those that reclaim could take.
    pub sealed: u64,
    /// How many writes of the shard ago the records of sealed ones were put, in the mean, added up
    /// over these segments.
    pub age_writes: u64,
}

impl Engine {
    /// All segments in about `groups_max` groups of like size, and their ages; `None` if a shard's
    /// lock would be waited for longer than `patience`.
    pub(crate) fn segment_map(&self, groups_max: usize, patience: Duration) -> Option<SegmentMap> {
        let (mut groups, mut ages) = (Vec::new(), Ages::new());
        for shard in &self.shards {
            let shard = shard.try_lock_for(patience)?;
            let segments = shard.log.segments();
            let together = (segments.len() * self.shards.len()).div_ceil(groups_max.max(1)).max(1);
            let now = shard.sequence();
            groups.extend(segments.chunks(together).map(|few| group(few, now, &mut ages)));
        }
        Some(SegmentMap { groups, ages: ages.quarters() })
    }
}

fn group(segments: &[Segment], now: u64, ages: &mut Ages) -> SegmentGroup {
    let mut group = SegmentGroup::default();
    for segment in segments {
        group.segments += 1;
        match segment.state {
            SegmentState::Free => {
                group.free += 1;
                continue;
            }
            SegmentState::Damaged => group.damaged += 1,
            SegmentState::Sealed => {
                let age_writes = now.saturating_sub(segment.age);
                group.sealed += 1;
                group.age_writes += age_writes;
                ages.add(segment, age_writes);
            }
            _ => {}
        }
        group.used_bytes += u64::from(segment.used_bytes);
        // What is trimmed of the journal goes as a whole.
        group.live_bytes += match segment.stream == Stream::Journal as u8 {
            true => u64::from(segment.used_bytes),
            false => u64::from(segment.live_bytes),
        };
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_tells_free_from_used_and_live_from_dead() {
        let mut ages = Ages::new();
        let of = |state, live_bytes, used_bytes, age| Segment {
            state,
            live_bytes,
            used_bytes,
            age,
            ..Segment::UNUSED
        };
        let journal =
            Segment { stream: Stream::Journal as u8, ..of(SegmentState::Journal, 0, 50, 0) };
        let found = group(
            &[
                // A former use has left its figures.
                of(SegmentState::Free, 7, 9, 1),
                of(SegmentState::Sealed, 100, 300, 10),
                of(SegmentState::Sealed, 20, 30, 40),
                of(SegmentState::Open, 5, 5, 0),
                of(SegmentState::Damaged, 1, 2, 0),
                journal,
            ],
            100,
            &mut ages,
        );
        let expected = SegmentGroup {
            segments: 6,
            free: 1,
            damaged: 1,
            used_bytes: 387,
            live_bytes: 176,
            sealed: 2,
            age_writes: 90 + 60,
        };
        assert_eq!(found, expected);
        // Only sealed ones have an age.
        let quarters = ages.quarters();
        assert_eq!(quarters.map(|quarter| quarter.segments), [1, 0, 1, 0]);
        assert_eq!(quarters.map(|quarter| quarter.age_writes_max), [60, 0, 90, 0]);
        assert_eq!(quarters.map(|quarter| quarter.live_bytes), [20, 0, 100, 0]);
    }
}
