//! Filling the cache ahead of readers that follow the log.
//!
//! The flash session reads whole segments where gets follow them; their entries go into the cache.
//! Some entries of each are *marked*: a get that finds a marked one tells that the segment is
//! wanted, and that the one written after it will be. Where marked entries are hardly ever asked
//! for, segments are read ahead only now and then, to find out when that changes.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use entresol_flash::{AheadEntry, AheadSegment, ReadAhead, SegmentUse, Timestamp};
use parking_lot::Mutex;

use crate::session::cached_entry;
use crate::tiered::Tiered;

/// Marks; a power of two.
const MARKS: usize = 256;
/// Entries marked of each segment.
const MARKS_OF_SEGMENT: usize = 8;
/// What a mark that was found is worth, in marks that were set.
const FOUND_WORTH: i32 = 4;
/// Marks that may be set without one being found.
const CREDIT_MAX: i32 = 512;
/// The cache has to hold so many segments.
const CACHE_SEGMENTS_MIN: u64 = 16;

/// The marked entries of segments that were read ahead. Thread-safe; costs one load a memory hit.
#[derive(Debug)]
pub(crate) struct Marks {
    hashes: Vec<AtomicU64>,
    segments: Mutex<Vec<Option<SegmentUse>>>,
    credit: AtomicI32,
}

impl Marks {
    pub(crate) fn new() -> Marks {
        Marks {
            hashes: (0..MARKS).map(|_| AtomicU64::new(0)).collect(),
            segments: Mutex::new(vec![None; MARKS]),
            credit: AtomicI32::new(CREDIT_MAX),
        }
    }

    /// The segment of the entry with this hash, if it is marked; the mark goes.
    #[inline]
    pub(crate) fn find(&self, hash: u128) -> Option<SegmentUse> {
        let (at, mark) = mark_of(hash);
        if self.hashes[at].load(Ordering::Relaxed) == mark { self.take(at, mark) } else { None }
    }

    #[cold]
    fn take(&self, at: usize, mark: u64) -> Option<SegmentUse> {
        let mut segments = self.segments.lock();
        self.hashes[at].compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        self.earn(FOUND_WORTH);
        segments[at].take()
    }

    fn set(&self, hash: u128, used: SegmentUse) {
        let (at, mark) = mark_of(hash);
        let mut segments = self.segments.lock();
        self.hashes[at].store(mark, Ordering::Relaxed);
        segments[at] = Some(used);
        self.earn(-1);
    }

    fn earn(&self, marks: i32) {
        // Two at once may lose one's share: it is an estimate.
        let credit = self.credit.load(Ordering::Relaxed) + marks;
        self.credit.store(credit.clamp(0, CREDIT_MAX), Ordering::Relaxed);
    }
}

impl Tiered {
    /// How readily sessions read ahead now.
    pub(crate) fn read_ahead(&self) -> ReadAhead {
        let segment_bytes = u64::from(self.store.options().segment_bytes);
        if self.cache_capacity() < CACHE_SEGMENTS_MIN * segment_bytes {
            ReadAhead::Never
        } else if self.marks.credit.load(Ordering::Relaxed) > 0 {
            ReadAhead::Always
        } else {
            ReadAhead::Seldom
        }
    }

    /// Puts the entries of a segment that was read ahead into the cache.
    pub(crate) fn absorb(&self, mut segment: AheadSegment, now: Timestamp) {
        let entries = segment.entries();
        let step = (entries.len() / MARKS_OF_SEGMENT).max(1);
        for (number, entry) in entries.enumerate() {
            self.absorb_entry(&mut segment, entry, now);
            if number % step == 0 {
                self.marks.set(entry.hash(), segment.segment_use());
            }
        }
    }

    fn absorb_entry(&self, segment: &mut AheadSegment, entry: AheadEntry, now: Timestamp) {
        let hash = entry.hash();
        let gate = self.gate(hash);
        // As a get: its stamp, the look at the store, and the insert while the stamp is the same.
        let stamp = gate.stamp.load(Ordering::Acquire);
        if !gate.is_open() || !segment.is_current(entry) {
            return;
        }
        let Some((space, found)) = segment.open(entry, now) else { return };
        if found.expiry.idle_seconds.is_some() {
            return;
        }
        self.memory.insert_ahead_if(hash, cached_entry(space, &found), &|| gate.is_at(stamp));
    }
}

/// Where the mark of a hash is, and the mark, which is never 0.
fn mark_of(hash: u128) -> (usize, u64) {
    ((hash >> 96) as usize & (MARKS - 1), hash as u64 | 1)
}
