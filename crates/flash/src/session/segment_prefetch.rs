//! Reading whole segments ahead of gets that follow the log: one large read in place of many small
//! ones. The session only reads; what it read is for a cache in front of the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use entresol_device::{Completion, IoBuffer};

use super::Session;
use crate::engine::Engine;
use crate::error::Result;
use crate::format::{FooterEntry, RecordKind};
use crate::log::footer_of_whole;
use crate::notes::index_hash;
use crate::record::{Record, Wanted};
use crate::shard::Shard;
use crate::types::{Entry, SpaceId, Timestamp, Version};

pub use crate::shard::SegmentUse;

/// Set in the tokens of reads ahead.
const AHEAD_TOKEN: u64 = 1 << 63;
/// Reads ahead of a session in flight or not taken yet, at most.
const AHEAD_MAX: usize = 2;
/// Of the segments that seem to be followed, one in so many is read where it hardly ever helps.
const SELDOM: u32 = 64;

/// How readily a session reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    Never,
    /// Now and then, to find out whether it helps.
    Seldom,
    /// Whenever gets follow the log.
    Always,
}

/// What a session reads ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub mode: ReadAhead,
    refused: u32,
    in_flight: [Option<(SegmentUse, Held)>; AHEAD_MAX],
    done: Vec<(SegmentUse, IoBuffer, Held)>,
    /// Whether another session reads what this one wants.
    left: bool,
    wanted: Option<SegmentUse>,
}

/// Memory of a segment that is read ahead, counted until its entries have been taken.
#[derive(Debug)]
struct Held {
    engine: Arc<Engine>,
    bytes: u64,
}

/// A segment that was read ahead.
#[derive(Debug)]
pub struct AheadSegment {
    held: Held,
    used: SegmentUse,
    bytes: IoBuffer,
    entries: Vec<FooterEntry>,
    scratch: Vec<u8>,
}

/// One entry of a segment that was read ahead.
#[derive(Debug, Clone, Copy)]
pub struct AheadEntry {
    hash: u128,
    at: usize,
}

impl Session {
    /// How readily it reads ahead from now on.
    pub fn set_read_ahead(&mut self, mode: ReadAhead) {
        self.ahead.mode = mode;
    }

    /// Leaves reading ahead to another session, for one that is used now and then: what is read
    /// ahead stays until its session is polled.
    pub fn leave_read_ahead(&mut self) {
        self.ahead.left = true;
    }

    /// What another session should read ahead for this one, by [`Session::read_ahead_for`].
    pub fn wanted_ahead(&mut self) -> Option<SegmentUse> {
        self.ahead.wanted.take()
    }

    /// Reads a segment ahead for a session that leaves that to others.
    pub fn read_ahead_for(&mut self, wanted: SegmentUse) -> Result<()> {
        self.read_ahead(wanted)?;
        Ok(self.queue.submit()?)
    }

    /// Whether reads ahead are in flight: a poll takes them.
    pub fn is_reading_ahead(&self) -> bool {
        self.ahead.in_flight.iter().any(Option::is_some)
    }

    /// A segment whose read ahead is done. Its entries may have been replaced or removed since.
    pub fn next_ahead(&mut self) -> Option<AheadSegment> {
        while let Some((used, bytes, held)) = self.ahead.done.pop() {
            // What does not verify is the business of whoever asks for it.
            let Some(mut entries) = footer_of_whole(&bytes, used.sequence) else { continue };
            entries.retain(|entry| entry.flags.kind == RecordKind::Value);
            return Some(AheadSegment { held, used, bytes, entries, scratch: Vec::new() });
        }
        None
    }

    /// Reads the segment written after `used` ahead, if it is known and was not read lately.
    pub fn read_after(&mut self, used: SegmentUse) -> Result<()> {
        if self.ahead.mode == ReadAhead::Never {
            return Ok(());
        }
        let Some(shard) = self.engine.shards.get(usize::from(used.shard)) else { return Ok(()) };
        let next = shard.lock().segment_after(used);
        next.map_or(Ok(()), |next| self.read_ahead(next))
    }

    /// Reads a segment that gets seem to follow.
    pub(super) fn read_followed(&mut self, used: SegmentUse) -> Result<()> {
        if self.ahead.mode == ReadAhead::Seldom {
            self.ahead.refused = (self.ahead.refused + 1) % SELDOM;
            if self.ahead.refused != 0 {
                return Ok(());
            }
        }
        self.read_ahead(used)
    }

    pub(super) fn is_ahead(completion: &Completion) -> bool {
        completion.token & AHEAD_TOKEN != 0
    }

    pub(super) fn finish_ahead(&mut self, completion: Completion) {
        let slot = (completion.token & !AHEAD_TOKEN) as usize;
        let read = self.ahead.in_flight[slot].take();
        // A failed one is nobody's loss: whoever wants an entry of it reads that.
        if let (Some((used, held)), Ok(()), Some(bytes)) =
            (read, completion.result, completion.buffer)
        {
            self.ahead.done.push((used, bytes, held));
        }
    }

    fn read_ahead(&mut self, used: SegmentUse) -> Result<()> {
        if self.ahead.left {
            self.ahead.wanted = Some(used);
            return Ok(());
        }
        let free = self.ahead.in_flight.iter().position(Option::is_none);
        let Some(slot) = free.filter(|_| self.ahead.done.len() < AHEAD_MAX) else { return Ok(()) };
        if self.queue.in_flight() >= self.queue.depth() {
            return Ok(());
        }
        let shape = self.engine.shards[usize::from(used.shard)].lock().log.shape();
        let offset = shape.offset_of(used.segment);
        self.queue.read(AHEAD_TOKEN | slot as u64, offset, shape.segment_bytes as usize)?;
        let held = Held::new(&self.engine, u64::from(shape.segment_bytes));
        self.ahead.in_flight[slot] = Some((used, held));
        self.count(|c| &c.segments_ahead);
        Ok(())
    }
}

impl Held {
    fn new(engine: &Arc<Engine>, bytes: u64) -> Held {
        engine.ahead_bytes.fetch_add(bytes, Ordering::Relaxed);
        Held { engine: Arc::clone(engine), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.engine.ahead_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl AheadSegment {
    /// What was read.
    pub fn segment_use(&self) -> SegmentUse {
        self.used
    }

    /// Its entries, in the order they were written.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = AheadEntry> + use<> {
        let hashes: Vec<u128> = self.entries.iter().map(|entry| entry.hash).collect();
        hashes.into_iter().enumerate().map(|(at, hash)| AheadEntry { hash, at })
    }

    /// Whether the store would answer a get of the entry's key with the entry now. Locks its shard.
    pub fn is_current(&self, entry: AheadEntry) -> bool {
        let Some(found) = self.entries.get(entry.at) else { return false };
        let shard = self.held.engine.shards[usize::from(self.used.shard)].lock();
        let place = shard.log.shape().address(self.used.segment, found.offset);
        let below = shard.floor_of(found.owner()) > self.used.sequence;
        let same = shard.segment_sequence(place) == self.used.sequence;
        same && !below && shard.index.contains(index_hash(found.hash), place)
    }

    /// The space of an entry and the entry itself; `None` if it does not verify or has ended.
    pub fn open(&mut self, entry: AheadEntry, now: Timestamp) -> Option<(SpaceId, Entry<'_>)> {
        let found = self.entries.get(entry.at)?;
        let at = found.offset as usize;
        let bytes = self.bytes.get(at..at + found.record_bytes as usize)?;
        let wanted = Wanted::any(self.used.sequence);
        let opened =
            self.held.engine.payloads.open(self.used.shard, bytes, wanted, &mut self.scratch);
        let record: Record<'_> = opened.ok().filter(|record| !Shard::has_ended(record, now))?;
        let header = &record.header;
        Some((
            header.space,
            Entry {
                key: record.key,
                value: record.value,
                version: Version(header.version),
                label: header.label,
                expiry: record.expiry(),
                pinning: record.pinning(),
                found: None,
            },
        ))
    }
}

impl AheadEntry {
    /// The hash of its space and key, as [`crate::Store::hash`] has it.
    pub fn hash(&self) -> u128 {
        self.hash
    }
}
