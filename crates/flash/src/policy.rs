//! What reclaim does with live records, and all that follows from it: a policy for each kind of
//! store. The log, the shard and the engine ask it and act; a third policy would be one more file.
//!
//! A policy is a pure function from a description to a decision. It changes nothing itself.

mod compact;
mod evict;

use crate::options::Reclaim;
use crate::segment::{Segment, Stream};

/// The policy of a store with this option.
pub(crate) fn of(reclaim: Reclaim) -> &'static dyn ReclaimPolicy {
    match reclaim {
        Reclaim::Compact => &compact::Compact,
        Reclaim::Evict => &evict::Evict,
    }
}

/// Decides where stores differ in what they do with live records.
pub(crate) trait ReclaimPolicy: std::fmt::Debug + Send + Sync {
    /// Which segment to reclaim, sealed or open; `None`: none has anything to gain.
    fn choose(&self, field: &Field<'_>) -> Option<u32>;

    /// In which order segments go.
    fn order(&self) -> Order;

    /// What becomes of a live record of a segment under reclaim.
    fn of_live(&self, live: Live) -> Keep;

    /// What becomes of a live record, or a segment of them, that does not verify.
    fn of_damaged(&self) -> OfDamaged;

    /// Whether what is live may be let go without a removal, so that an older record of its key
    /// might come back.
    fn lets_go(&self) -> bool;

    /// Whether records are marked as they are read, for [`Keep::IfRead`].
    fn marks_reads(&self) -> bool;

    /// What comes of an entry for which there is no place below a mark, or no slot.
    fn when_full(&self) -> WhenFull;

    /// The stream that a record really goes to.
    fn stream_of(&self, stream: Stream, pinned: bool) -> Stream;

    /// The stream of copies, of records that are `young` or not.
    fn stream_of_copy(&self, young: bool) -> Stream;

    /// Whether the segments of a stream hold what stays until it is removed, among what does not:
    /// the shard remembers how much of them is of which partition.
    fn keeps_apart(&self, stream: Stream) -> bool;
}

/// What a policy chooses a victim from.
pub(crate) struct Field<'a> {
    pub segments: &'a [Segment],
    pub segment_bytes: u32,
    /// Tombstones in all segments, bytes.
    pub tombstone_bytes: u64,
    /// The sequence of the last record.
    pub now: u64,
    /// Where a search that does not look at all segments begins, and how many it looks at.
    pub start: usize,
    pub window: usize,
    /// The oldest use of a segment with records that are no longer live; it takes a while to find.
    pub oldest_dead: &'a dyn Fn() -> Option<u64>,
}

/// A live record of a victim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    /// It was put as one that stays until it is removed.
    pub pinned: bool,
    /// The stream of its segment, as the segment's header has it.
    pub stream: u8,
}

/// In which order segments go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Those first that give back the most; each is free as soon as its copies are durable.
    ByGain,
    /// In turn, however little there is to gain, and each for good before the next.
    InTurn,
}

/// What becomes of a live record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It is copied.
    Always,
    /// It is copied if it was read since the last look, and not too much else was; else it goes.
    IfRead,
}

/// What becomes of what does not verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfDamaged {
    /// It stays where it is: whoever asks for it is told.
    Stays,
    /// It goes, and counts as missing.
    Goes,
}

/// What comes of an entry for which there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// It is refused: entries stay until they are removed or end.
    Refuses,
    /// Others go for it.
    MakesRoom,
}
