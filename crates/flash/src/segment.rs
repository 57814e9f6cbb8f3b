//! The table of a shard's segments: state, generation, live bytes. In memory only; recovery
//! rebuilds it.
//!
//! ```text
//! Free --open--> Open --seal--> Sealed --begin_reclaim--> Reclaiming --release--> Releasing
//!   ^                             |  ^--- keep, or try again -'                      |
//!   |                             '-- take for a checkpoint --> Checkpoint           |
//!   |                 Open, of the journal --seal--> Journal --trim------------------|
//!   '---------- free (what superseded its records is durable) ----------------------'
//! ```
//! Invariants:
//! 1. `sequence` identifies one use of a segment: its generation. Locations are checked against it.
//! 2. The header of a free segment is erased; until that is durable, the log's ghosts remember its
//!    use.
//! 3. `live_bytes` counts records that the index points to, tombstones and pieces included.

use entresol_planted::planted;

/// What a segment is being used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentState {
    Free,
    Open,
    Sealed,
    Reclaiming,
    Releasing,
    Checkpoint,
    /// Holds live records that do not verify: kept as it is until something in it goes.
    Damaged,
    /// Sealed, of the journal: released once it is trimmed, and never reclaimed.
    Journal,
}

/// Sequence and number of no segment.
const NONE: (u64, u32) = (u64::MAX, u32::MAX);

/// No buffer holds the segment.
pub(crate) const NO_BUFFER: u16 = u16::MAX;

/// One segment of a shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// Generation; 0: never used.
    pub sequence: u64,
    /// Mean record sequence at which its records were put: the older, the colder.
    pub age: u64,
    /// The shard's record sequence when it was sealed.
    pub sealed_at: u64,
    pub live_bytes: u32,
    /// Record bytes appended.
    pub used_bytes: u32,
    /// Those of the live bytes that are tombstones.
    pub tombstone_bytes: u32,
    /// The earliest end of a record in it, seconds; `u32::MAX`: none ends.
    pub next_end: u32,
    /// Pending notes on records of this segment.
    pub notes: u32,
    /// About how many of the live bytes are of partitions that were dropped. Not more than a hint:
    /// what was removed before counts as well.
    pub dropped_bytes: u32,
    pub buffer: u16,
    pub stream: u8,
    /// Whether so much of it is padding that copying what is live gains room.
    pub padded: bool,
    /// Whether a snapshot has still to read it: it is neither reclaimed nor erased until then.
    pub held: bool,
    pub state: SegmentState,
}

impl Segment {
    pub(crate) const UNUSED: Segment = Segment {
        sequence: 0,
        age: 0,
        sealed_at: 0,
        live_bytes: 0,
        used_bytes: 0,
        tombstone_bytes: 0,
        next_end: u32::MAX,
        notes: 0,
        dropped_bytes: 0,
        buffer: NO_BUFFER,
        stream: 0,
        padded: false,
        held: false,
        state: SegmentState::Free,
    };

    /// Something in it has gone: if it was kept for a damaged record, that may have been the one.
    pub(crate) fn try_again(&mut self) {
        if self.state == SegmentState::Damaged && !planted!("damaged-for-good") {
            self.state = SegmentState::Sealed;
        }
    }

    /// Whether records that are no longer live may stand in it.
    pub(crate) fn has_dead(&self) -> bool {
        match self.state {
            SegmentState::Free | SegmentState::Checkpoint => false,
            _ if self.stream == Stream::Journal as u8 => false,
            _ => self.live_bytes < self.used_bytes,
        }
    }
}

/// Which log a record is appended to: records of like lifetime share segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Puts that replaced a young record. In a cache: what is pinned.
    Hot = 0,
    /// Other puts. In a cache: everything that is not pinned.
    Cold = 1,
    /// Survivors that were young.
    ReclaimedYoung = 2,
    /// Survivors that were old.
    ReclaimedOld = 3,
    /// The journal.
    Journal = 4,
}

/// Streams of a shard.
pub(crate) const STREAMS: usize = 5;
/// Those of entries.
pub(crate) const ENTRY_STREAMS: u32 = 4;

impl Stream {
    pub(crate) const ALL: [Stream; STREAMS] =
        [Stream::Hot, Stream::Cold, Stream::ReclaimedYoung, Stream::ReclaimedOld, Stream::Journal];

    /// Whether reclaim writes it, and so may use the reserve of free segments.
    pub(crate) fn is_reclaim(self) -> bool {
        matches!(self, Stream::ReclaimedYoung | Stream::ReclaimedOld)
    }
}

/// The segment in one of `states` that a cache lets go of first, so that no older record of a key
/// outlives one that was evicted. New records go to a segment of [`Stream::Cold`] until the next
/// one of that stream is opened, so it may hold younger ones than what was opened before the next;
/// copies and pinned records are as old as the opening of their segment.
pub(crate) fn first_to_go(segments: &[Segment], states: &[SegmentState]) -> Option<u32> {
    let (mut cold, mut next_cold, mut other) = (NONE, NONE, NONE);
    for (number, segment) in segments.iter().enumerate() {
        let this = (segment.sequence, number as u32);
        if !states.contains(&segment.state) {
            continue;
        }
        if segment.stream != Stream::Cold as u8 {
            other = other.min(this);
        } else if this < cold {
            (cold, next_cold) = (this, cold);
        } else {
            next_cold = next_cold.min(this);
        }
    }
    let until = if planted!("evicted-out-of-turn") { cold } else { next_cold };
    let first = if cold == NONE || other < until { other } else { cold };
    (first != NONE).then_some(first.1)
}
