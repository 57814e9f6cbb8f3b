//! The log's table of segments, as others see it and where they may change it.
//!
//! Invariant: the sums of live bytes and tombstones are those of the rows.

use std::sync::Arc;

use entresol_device::Device;

use super::journal::Journal;
use super::{Log, Shape};
use crate::segment::{Segment, SegmentState};

impl Log {
    /// Where the shard's segments are and how large.
    #[inline]
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// All segments, by their numbers.
    #[inline]
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    #[inline]
    pub(crate) fn segment(&self, number: u32) -> &Segment {
        &self.segments[number as usize]
    }

    /// Live bytes of all segments.
    #[inline]
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Those of the live bytes that are tombstones.
    #[inline]
    pub(crate) fn tombstone_bytes(&self) -> u64 {
        self.tombstone_bytes
    }

    /// Mean of what lately filled segments have no record in: padding, and what the next record did
    /// not fit.
    #[inline]
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// The segment that was opened after `segment` in its stream; it may be free by now.
    pub(crate) fn opened_after(&self, segment: u32) -> Option<u32> {
        self.succession.after(segment)
    }

    /// Puts what an opening found out about a segment into its row.
    pub(crate) fn restore(&mut self, number: u32, row: Segment) {
        let before = std::mem::replace(&mut self.segments[number as usize], row);
        let change = |sum: u64, old: u32, new: u32| sum - u64::from(old) + u64::from(new);
        self.live_bytes = change(self.live_bytes, before.live_bytes, row.live_bytes);
        self.tombstone_bytes =
            change(self.tombstone_bytes, before.tombstone_bytes, row.tombstone_bytes);
    }

    /// The same of what filled segments have no record in.
    pub(crate) fn restore_lost_bytes(&mut self, bytes: u64) {
        self.lost_bytes = bytes;
    }

    /// Back to an empty table.
    pub(crate) fn forget_table(&mut self) {
        self.segments.fill(Segment::UNUSED);
        self.journal = Journal::new();
        (self.live_bytes, self.tombstone_bytes, self.lost_bytes) = (0, 0, 0);
    }

    /// A segment that there may be is a part of a checkpoint: no record stands in it.
    pub(crate) fn hold_checkpoint(&mut self, number: u32) {
        if let Some(row) = self.segments.get_mut(number as usize) {
            row.state = SegmentState::Checkpoint;
        }
    }

    /// One more note is pending on a record of the segment.
    #[inline]
    pub(crate) fn add_note(&mut self, number: u32) {
        let notes = &mut self.segments[number as usize].notes;
        *notes = notes.saturating_add(1);
    }

    /// One note less is.
    pub(crate) fn settle_note(&mut self, number: u32) {
        let notes = &mut self.segments[number as usize].notes;
        *notes = notes.saturating_sub(1);
    }

    /// Nothing is left to be done for the notes on the segment.
    pub(crate) fn forget_notes(&mut self, number: u32) {
        self.segments[number as usize].notes = 0;
    }

    /// The earliest end of a record in the segment is this, seconds.
    pub(crate) fn ends_next(&mut self, number: u32, next_end: u32) {
        self.segments[number as usize].next_end = next_end;
    }

    /// All segments that `are` such are to be looked through for what ended.
    pub(crate) fn look_through(&mut self, are: impl Fn(&Segment) -> bool) {
        let wanted = self.segments.iter_mut().filter(|segment| are(segment));
        wanted.for_each(|segment| segment.next_end = 0);
    }

    /// Something of the segment has gone.
    pub(crate) fn try_again(&mut self, number: u32) {
        self.segments[number as usize].try_again();
    }

    /// Something of any segment may have gone.
    pub(crate) fn try_all_again(&mut self) {
        self.segments.iter_mut().for_each(Segment::try_again);
    }

    /// So many more of the live bytes of the segment are of partitions that were dropped.
    pub(crate) fn add_dropped(&mut self, number: u32, bytes: u32) {
        let dropped = &mut self.segments[number as usize].dropped_bytes;
        *dropped = dropped.saturating_add(bytes);
    }

    /// The segment is a victim from now on; its row as it was.
    pub(crate) fn begin_reclaim(&mut self, number: u32) -> Segment {
        let row = &mut self.segments[number as usize];
        let before = *row;
        row.state = SegmentState::Reclaiming;
        before
    }

    /// The segment stays what it was before it was to be reclaimed.
    pub(crate) fn keep(&mut self, number: u32) {
        self.segments[number as usize].state = SegmentState::Sealed;
    }

    /// The segment holds what does not verify, and stays until something in it goes.
    pub(crate) fn set_aside(&mut self, number: u32) {
        self.segments[number as usize].state = SegmentState::Damaged;
    }
}
