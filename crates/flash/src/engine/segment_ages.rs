//! Sealed segments by age, in four quarters. Ages are told apart to a sixteenth, so that a large
//! store is looked at once and nothing is sorted.

use crate::segment::Segment;
use crate::statistics::bucket_of;

/// Ages that are told apart: all that there may be.
const BUCKETS: usize = 16 * 59 + 32;

/// Sealed segments of like age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentAge {
    /// How many.
    pub segments: u64,
    /// Bytes of their records.
    pub used_bytes: u64,
    /// Bytes of those that are live.
    pub live_bytes: u64,
    /// How many writes of its shard ago the records of the oldest were put, in the mean.
    pub age_writes_max: u64,
}

/// The ages of sealed segments.
#[derive(Debug)]
pub(super) struct Ages(Vec<SegmentAge>);

impl Ages {
    pub(super) fn new() -> Ages {
        Ages(vec![SegmentAge::default(); BUCKETS])
    }

    /// Takes a sealed segment in, whose records were put `age_writes` ago.
    pub(super) fn add(&mut self, segment: &Segment, age_writes: u64) {
        let alike = SegmentAge {
            segments: 1,
            used_bytes: u64::from(segment.used_bytes),
            live_bytes: u64::from(segment.live_bytes),
            age_writes_max: age_writes,
        };
        self.0[bucket_of(age_writes)].join(alike);
    }

    /// All of them in quarters, the youngest first. Segments of like age stay together, so a
    /// quarter is one to their number.
    pub(super) fn quarters(&self) -> [SegmentAge; 4] {
        let all: u64 = self.0.iter().map(|alike| alike.segments).sum();
        let mut quarters = [SegmentAge::default(); 4];
        let mut younger = 0;
        for alike in self.0.iter().filter(|alike| alike.segments > 0) {
            // Where the middle of them is decides.
            let quarter = (4 * (younger + alike.segments / 2) / all).min(3);
            quarters[quarter as usize].join(*alike);
            younger += alike.segments;
        }
        quarters
    }
}

impl SegmentAge {
    fn join(&mut self, other: SegmentAge) {
        self.segments += other.segments;
        self.used_bytes += other.used_bytes;
        self.live_bytes += other.live_bytes;
        self.age_writes_max = self.age_writes_max.max(other.age_writes_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(live_bytes: u32) -> Segment {
        Segment { live_bytes, used_bytes: 10, ..Segment::UNUSED }
    }

    #[test]
    fn quarters_hold_like_numbers_of_segments_the_youngest_first() {
        let mut ages = Ages::new();
        // Their order in the store says nothing of their ages.
        for number in (0..100).rev() {
            ages.add(&of(number / 25), u64::from(number) * 1_000_003);
        }
        let quarters = ages.quarters();
        assert_eq!(quarters.iter().map(|quarter| quarter.segments).sum::<u64>(), 100);
        for (place, quarter) in quarters.iter().enumerate() {
            assert!(quarter.segments.abs_diff(25) <= 3, "{quarters:?}");
            assert_eq!(quarter.used_bytes, 10 * quarter.segments);
            assert!(quarter.live_bytes.abs_diff(25 * place as u64) <= 6, "{quarters:?}");
        }
        assert!(quarters.is_sorted_by_key(|quarter| quarter.age_writes_max), "{quarters:?}");
        assert_eq!(quarters[3].age_writes_max, 99 * 1_000_003);
    }

    #[test]
    fn any_age_has_a_place_and_segments_of_one_age_stay_together() {
        assert_eq!(Ages::new().quarters(), [SegmentAge::default(); 4]);
        let mut ages = Ages::new();
        (0..9).for_each(|_| ages.add(&of(1), 7));
        ages.add(&of(1), u64::MAX);
        let counts = ages.quarters().map(|quarter| quarter.segments);
        assert_eq!(counts, [0, 9, 0, 1]);
    }
}
