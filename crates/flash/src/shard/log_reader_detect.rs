//! Noticing that reads follow the log: entries are often read in the order they were written.
//!
//! Several readers may follow it, each at a place of its own, so what counts is not the distance
//! from the last read but how many of the last reads fell into the same segment.

use super::Shard;
use crate::segment::{NO_BUFFER, SegmentState};

/// Device reads that are remembered.
const RECENT: usize = 64;
/// Earlier ones of them in the same segment that show a reader, where segments are many.
const DENSE: usize = 3;
/// Where there are as many segments as reads remembered, so many more, for some are by chance.
const CHANCE: usize = 8;
/// Segments lately begun to be read ahead, so that none is read twice in a row.
const BEGUN: usize = 32;
/// Segments that are looked at for one that still holds something.
const PASSED_MAX: usize = 16;

/// The last device reads of a shard.
#[derive(Debug)]
pub(crate) struct Trail {
    recent: [u32; RECENT],
    at: usize,
    begun: [u64; BEGUN],
    begun_at: usize,
}

/// One use of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentUse {
    pub(crate) shard: u16,
    pub(crate) segment: u32,
    pub(crate) sequence: u64,
}

impl Default for Trail {
    fn default() -> Trail {
        Trail { recent: [u32::MAX; RECENT], at: 0, begun: [0; BEGUN], begun_at: 0 }
    }
}

impl Trail {
    /// Takes note of a read in `segment`, one of `segments` in use; whether reads are dense there.
    fn note(&mut self, segment: u32, segments: usize) -> bool {
        let earlier = self.recent.iter().filter(|read| **read == segment).count();
        self.recent[self.at] = segment;
        self.at = (self.at + 1) % RECENT;
        earlier >= DENSE + CHANCE * RECENT / segments.max(1)
    }

    fn begin(&mut self, sequence: u64) {
        self.begun[self.begun_at] = sequence;
        self.begun_at = (self.begun_at + 1) % BEGUN;
    }
}

impl Shard {
    /// Takes note of a device read at `address`; the segment to read as a whole, if reads follow
    /// the log there.
    pub(crate) fn follow(&mut self, address: u64) -> Option<SegmentUse> {
        let (segment, _) = self.log.shape().split(address);
        let in_use = self.log.segments().len() - self.log.free_count() as usize;
        if self.trail.note(segment, in_use) { self.begin_ahead(segment) } else { None }
    }

    /// The segment that was written after `before`, unless it was read ahead lately. What is
    /// free since then is passed over.
    pub(crate) fn segment_after(&mut self, before: SegmentUse) -> Option<SegmentUse> {
        if self.log.segments().get(before.segment as usize)?.sequence != before.sequence {
            return None;
        }
        let after = |at: &u32| self.log.opened_after(*at);
        let next = std::iter::successors(Some(before.segment), after)
            .skip(1)
            .take(PASSED_MAX)
            .find(|&next| self.log.segment(next).live_bytes > 0)?;
        self.begin_ahead(next)
    }

    /// Whether `used` is what its segment still holds, and none of it is to be written.
    pub(crate) fn is_settled(&self, used: SegmentUse) -> bool {
        self.log.segments().get(used.segment as usize).is_some_and(|row| {
            row.sequence == used.sequence
                && row.state == SegmentState::Sealed
                && row.buffer == NO_BUFFER
        })
    }

    fn begin_ahead(&mut self, segment: u32) -> Option<SegmentUse> {
        let sequence = self.log.segments().get(segment as usize)?.sequence;
        let used = SegmentUse { shard: self.log.shape().shard, segment, sequence };
        if !self.is_settled(used) || self.trail.begun.contains(&sequence) {
            return None;
        }
        self.trail.begin(sequence);
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense_reads(segments: usize, mut segment_of: impl FnMut(u64) -> u64) -> usize {
        let mut trail = Trail::default();
        (0..10_000).filter(|n| trail.note(segment_of(*n) as u32, segments)).count()
    }

    #[test]
    fn readers_in_log_order_are_noticed_and_random_ones_are_not() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        for segments in [16, 64, 256, 4096] {
            let chance = dense_reads(segments, |_| random() % segments as u64);
            assert!(chance < 100, "{segments} segments: {chance} of 10,000 random reads");
        }
        for readers in [1, 4, 10] {
            // Each reader is a few segments from the others, and reads 40 records of each.
            let found = dense_reads(4096, |n| n % readers * 3 + n / readers / 40);
            assert!(found > 5_000, "{readers} readers: {found} of 10,000 reads");
        }
    }
}
