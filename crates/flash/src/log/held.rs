//! Segments that a snapshot has still to read: they stay on the device as they are.
//!
//! Invariants:
//! 1. A held segment is no victim, and one that was a victim before is not erased; so neither is
//!    any segment of the journal behind a held one.
//! 2. Where room is short and nothing else is to be reclaimed, the snapshot is given up, and not
//!    the writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_planted::planted;

use super::{Log, Stamp};
use crate::format::{RECORD_ALIGNMENT, SEGMENT_HEADER_BYTES};
use crate::segment::{Segment, SegmentState};

/// What a snapshot shares with the logs that it holds segments of.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    broken: AtomicBool,
}

impl Hold {
    /// Whether a log has given it up.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

/// What a log holds, and for whom.
#[derive(Debug, Default)]
pub(super) struct Holding {
    hold: Option<Arc<Hold>>,
    /// Held segments that are released, with the stamps of their release.
    back: Vec<(u32, Stamp)>,
    /// Segments that are kept free beside those that always are, for a snapshot to come.
    spare: u32,
}

impl Holding {
    pub(super) fn keep_back(&mut self, segment: u32, stamp: Stamp) {
        self.back.push((segment, stamp));
    }
}

/// A segment that a snapshot reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldSegment {
    pub segment: u32,
    pub sequence: u64,
    /// So many bytes of it are of the snapshot.
    pub bytes: u32,
    pub sealed: bool,
    /// What goes first: the lower, the sooner the store has use for it.
    pub rank: (u8, u64),
}

/// Of the segments of a log, this part is spare for a snapshot: some seconds of writes, in which
/// its first segments are read.
const SPARE_PART: u32 = 64;
/// In a small log.
const SPARE_MIN: u32 = 4;

impl Log {
    /// Has background work keep more segments free until a snapshot is taken: half at most of what
    /// it could. Whether they are free, or about to be.
    pub(crate) fn spare_for_snapshot(&mut self) -> bool {
        let live = self.live_bytes().div_ceil(u64::from(self.shape.segment_bytes)) as u32;
        let possible = self.shape.segments.saturating_sub(live + self.free_target());
        let wanted = (self.shape.segments / SPARE_PART).max(SPARE_MIN);
        self.holding.spare = wanted.min(possible / 2);
        self.free_count() + self.releasing_count() >= self.free_in_background()
    }

    /// Segments that background work keeps free, or about to be.
    pub(crate) fn free_in_background(&self) -> u32 {
        self.free_target() + self.holding.spare
    }

    /// Holds all segments in use, as they are now.
    pub(crate) fn hold(&mut self, hold: &Arc<Hold>) -> Vec<HeldSegment> {
        self.holding.hold = Some(Arc::clone(hold));
        self.holding.spare = 0;
        let numbers = 0..self.shape.segments;
        let held: Vec<HeldSegment> = numbers.filter_map(|number| self.held(number)).collect();
        held.iter().for_each(|held| self.segments[held.segment as usize].held = true);
        held
    }

    /// What there is of a segment; `None` if it is not in use. All that was live in one that is
    /// released is in others by now.
    fn held(&self, number: u32) -> Option<HeldSegment> {
        let row = self.segment(number);
        let Segment { sequence, .. } = *row;
        let (rank, bytes) = match row.state {
            SegmentState::Free | SegmentState::Checkpoint | SegmentState::Releasing => return None,
            SegmentState::Open => ((2, sequence), self.filled(number)?),
            SegmentState::Reclaiming => ((1, sequence), self.shape.segment_bytes),
            SegmentState::Journal => ((0, sequence), self.shape.segment_bytes),
            SegmentState::Sealed | SegmentState::Damaged => {
                ((3, u64::from(row.live_bytes)), self.shape.segment_bytes)
            }
        };
        let sealed = row.state != SegmentState::Open;
        Some(HeldSegment { segment: number, sequence, bytes, sealed, rank })
    }

    /// How far an open segment is filled; `None` if it is empty. What continues the last record of
    /// the journal later begins before the end of its last unit.
    fn filled(&self, number: u32) -> Option<u32> {
        let open = self.streams.iter().flatten().find(|open| open.segment == number)?;
        if open.used as usize <= SEGMENT_HEADER_BYTES {
            return None;
        }
        let tail = self.journal.tail.filter(|tail| tail.segment == number);
        let end = tail.map(|tail| tail.end).filter(|end| {
            end.next_multiple_of(RECORD_ALIGNMENT) == open.used as usize
                && !planted!("snapshot-with-what-continues")
        });
        Some(end.map_or(open.used, |end| end as u32))
    }

    /// The snapshot has read the segment, or need not.
    pub(crate) fn let_go(&mut self, number: u32, sequence: u64) {
        let row = &mut self.segments[number as usize];
        if row.sequence != sequence || !row.held {
            return;
        }
        row.held = false;
        let back = self.holding.back.iter().position(|(segment, _)| *segment == number);
        if let Some(at) = back {
            let (segment, stamp) = self.holding.back.swap_remove(at);
            self.releasing.push_back((segment, stamp));
            self.released_at = self.appended_bytes;
            if let Err(error) = self.free_released() {
                self.poison(format!("a released segment could not be erased: {error}"));
            }
        }
    }

    /// Nothing is held any more.
    pub(crate) fn let_all_go(&mut self) {
        self.holding.hold = None;
        for number in 0..self.shape.segments {
            self.let_go(number, self.segments[number as usize].sequence);
        }
    }

    /// Gives up the snapshot that holds segments here. Whether there was one.
    pub(crate) fn break_snapshot(&mut self) -> bool {
        let Some(hold) = self.holding.hold.take() else { return false };
        hold.broken.store(true, Ordering::Release);
        self.let_all_go();
        true
    }

    /// Nothing else is to be reclaimed: gives up the snapshot, if there is one, where only the
    /// reserve is left. Whether it did.
    pub(crate) fn gives_snapshot_up(&mut self) -> bool {
        self.holding.hold.is_some()
            && self.free_count() + self.releasing_count() <= self.reserve()
            && self.break_snapshot()
    }
}
