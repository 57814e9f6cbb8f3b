//! Rounds of group commit: everything appended so far is flushed and, if asked, synced; whoever
//! waits for it shares the round.
//!
//! ```text
//! Idle --begin_round--> Writing --its writes done--> Idle      (goal: flushed, or all are durable)
//!                               '--its writes done--> Syncing --sync done--> Idle
//! ```

use entresol_device::{Completion, WriteMode};
use entresol_planted::planted;

use super::{Log, OpenSegment, SYNC_TOKEN, Stamp};
use crate::error::{Error, Result};
use crate::format::{Flags, RecordHeader, RecordKind};
use crate::segment::{NO_BUFFER, SegmentState, Stream, first_to_go};
use crate::types::{Lifespan, SpaceId};

/// States of segments whose records a recovery may find.
const STANDING: [SegmentState; 4] =
    [SegmentState::Open, SegmentState::Sealed, SegmentState::Reclaiming, SegmentState::Releasing];

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Goal {
    /// Handed to the device.
    Flushed,
    /// Survives power loss.
    Synced,
}

/// What reclaim does where only the device can bring it further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Waits, with the shard locked: a store that closes must.
    Waits,
    /// Returns: nobody is kept waiting by work ahead of need.
    Returns,
}

/// How far reclaim came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Made,
    /// The device has not answered yet.
    Awaited,
    /// A part was decided.
    Decided,
    /// There is nothing to gain.
    None,
}

/// What is durable once a round has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proven {
    /// Segments below this sequence.
    segments: u64,
    /// The journal up to this sequence.
    journal: u64,
}

/// The round under way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Round {
    Idle,
    /// Waits for writes up to number `last`.
    Writing {
        covers: Stamp,
        last: u64,
        goal: Goal,
        proven: Proven,
    },
    Syncing {
        covers: Stamp,
        synced_writes: u64,
        proven: Proven,
    },
}

impl Log {
    /// From now on; all streams are sealed.
    pub(crate) fn refuse_appends(&mut self) {
        self.closed = true;
    }

    /// Whether a segment may be opened.
    pub(super) fn check_open(&self) -> Result<()> {
        self.check_poisoned()?;
        if self.closed { Err(Error::closed()) } else { Ok(()) }
    }

    /// Begins a round that covers everything appended so far, unless one is under way or nothing is
    /// left to do.
    pub(crate) fn begin_round(&mut self, goal: Goal) -> Result<()> {
        self.begin_round_up_to(goal, self.appended)
    }

    /// Begins a round that covers the appends up to the stamp `wanted` at least. A stream whose
    /// whole sync units hold all of those is not padded: what has begun the next unit is left to a
    /// later round.
    fn begin_round_up_to(&mut self, goal: Goal, wanted: Stamp) -> Result<()> {
        self.check_poisoned()?;
        let reached = if goal == Goal::Synced { self.durable } else { self.flushed };
        if !matches!(self.round, Round::Idle) || reached >= wanted {
            return Ok(());
        }
        let mode = if goal == Goal::Synced && self.unsynced_writes == 0 {
            WriteMode::Durable
        } else {
            WriteMode::Flushed
        };
        let mut covers = self.appended;
        let mut proven = self.next_sequence();
        for stream in Stream::ALL {
            match self.begun_unit(stream) {
                Some(begun) if begun > wanted => {
                    self.flush_units(stream, mode)?;
                    if !planted!("begun-unit-reported-durable") {
                        covers = covers.min(begun.before());
                    }
                }
                _ => self.flush_stream(stream, mode)?,
            }
            if let Some(open) = &self.streams[stream as usize] {
                proven = proven.min(self.segments[open.segment as usize].sequence);
            }
        }
        let journal = if covers == self.appended { self.journal.last() } else { 0 };
        let proven = Proven { segments: proven, journal };
        let last = self.writes_begun;
        self.round = Round::Writing { covers, last, goal, proven };
        self.advance_round()
    }

    /// Reaps finished writes, at least `wait_for` of those in flight, and moves the round on.
    pub(crate) fn poll(&mut self, wait_for: usize) -> Result<()> {
        let in_flight = self.queue.in_flight();
        if in_flight == 0 {
            self.check_poisoned()?;
            return self.advance_round();
        }
        let mut completions = std::mem::take(&mut self.completions);
        let reaped = self.take_completions(wait_for.min(in_flight), &mut completions);
        for completion in completions.drain(..) {
            self.finish_request(completion);
        }
        self.completions = completions;
        if let Err(error) = reaped {
            self.poison(format!("the device queue failed: {error}"));
            return Err(error.into());
        }
        if !self.is_poisoned() { self.advance_round() } else { Ok(()) }
    }

    /// Blocks until everything appended before the call survives power loss.
    fn commit(&mut self) -> Result<()> {
        let target = self.appended;
        while self.durable < target {
            self.begin_round(Goal::Synced)?;
            self.poll(1)?;
            self.check_poisoned()?;
        }
        Ok(())
    }

    /// What was appended up to `stamp` is to be synced, by [`Log::begin_owed`] as soon as that can.
    pub(crate) fn owe(&mut self, stamp: Stamp) {
        self.owed = self.owed.max(stamp);
    }

    /// Begins a round for what is owed; one that is under way may cover less. Whether it is owed
    /// yet.
    pub(crate) fn begin_owed(&mut self) -> Result<bool> {
        if self.owed > self.durable {
            self.poll(0)?;
            self.begin_round(Goal::Synced)?;
        }
        Ok(self.owed > self.durable)
    }

    /// Ends the use of a segment: free once everything appended so far is durable.
    pub(crate) fn release(&mut self, segment: u32) {
        self.segments[segment as usize].state = SegmentState::Releasing;
        let stamp = if planted!("segment-released-before-copies-synced") {
            Stamp::default()
        } else {
            self.appended
        };
        if self.segments[segment as usize].held && !planted!("held-segment-reclaimed") {
            return self.holding.keep_back(segment, stamp);
        }
        self.releasing.push_back((segment, stamp));
        self.released_at = self.appended_bytes;
        if let Err(error) = self.free_released() {
            self.poison(format!("a released segment could not be erased: {error}"));
        }
    }

    /// Sees to it that released segments become free, without waiting for the device.
    pub(crate) fn begin_release(&mut self) -> Result<()> {
        if let Some(&(_, wanted)) = self.releasing.back() {
            self.begin_round_up_to(Goal::Synced, wanted)?;
            self.free_released()?;
        }
        Ok(())
    }

    /// As `begin_release`, unless a little more that is appended will save the padding before any
    /// stream needs another segment.
    pub(crate) fn begin_release_unpadded(&mut self) -> Result<()> {
        let Some(&(_, wanted)) = self.releasing.back() else { return Ok(()) };
        let units = UNPADDED_UNITS * u64::from(self.shape.sync_unit);
        let patience = units.min(u64::from(self.shape.segment_bytes) / 8);
        let waited = self.appended_bytes - self.released_at;
        let ends = |open: &OpenSegment| {
            u64::from(open.room(self.shape.segment_bytes)) < patience.saturating_sub(waited)
        };
        let pads = |open: &OpenSegment| open.begun_unit().is_some_and(|begun| begun <= wanted);
        let waits = waited < patience
            && self.releasing_count() < 2 * RELEASE_BATCH
            && self.streams.iter().flatten().any(pads)
            && !self.streams.iter().flatten().any(ends);
        if waits { Ok(()) } else { self.begin_release() }
    }

    /// Whether so many segments are released that they are worth a sync, or so much that what it
    /// pads is little beside it.
    pub(crate) fn is_release_due(&self) -> bool {
        let bytes = u64::from(self.releasing_count()) * u64::from(self.shape.segment_bytes);
        let much = bytes >= RELEASE_UNITS * u64::from(self.shape.sync_unit);
        much || self.releasing_count() >= RELEASE_BATCH
    }

    /// Released segments that the device alone keeps from being free; of a cache none of those that
    /// wait for an older one to be reclaimed.
    pub(crate) fn coming_free(&self) -> u32 {
        let first = || first_to_go(&self.segments, &STANDING);
        let is_released =
            |first: u32| self.segments[first as usize].state == SegmentState::Releasing;
        match self.shape.erases_in_order && !first().is_some_and(is_released) {
            true => self.erasing.len() as u32,
            false => self.releasing_count(),
        }
    }

    /// Begins to make released segments free; whether that takes the device any time.
    pub(crate) fn releases(&mut self) -> Result<bool> {
        self.begin_release()?;
        let at_work = self.queue.in_flight() > 0 || !matches!(self.round, Round::Idle);
        Ok(self.releasing_count() > 0 && at_work)
    }

    /// Where reclaim has nothing to gain but tombstones: sees to it that what they hide goes, if it
    /// is in a segment that is not sealed, or in a former use whose end is not durable. Whether it
    /// takes the device any time, or is done.
    pub(crate) fn frees_tombstones(&mut self) -> Result<bool> {
        if self.tombstone_bytes == 0 {
            return Ok(false);
        }
        let oldest = self.oldest_dead(None);
        let sequence = |open: &OpenSegment| self.segments[open.segment as usize].sequence;
        let of_stream = |stream: &Stream| self.streams[*stream as usize].as_ref().map(sequence);
        let hiding = Stream::ALL.into_iter().find(|s| oldest.is_some() && of_stream(s) == oldest);
        if let Some(stream) = hiding.filter(|_| !self.shape.erases_in_order) {
            // Little is appended to it, or it would be full by now. Now it can be reclaimed.
            self.seal(stream)?;
            return Ok(true);
        }
        if self.ghosts.is_empty() {
            return Ok(false);
        }
        if self.ghosts.iter().any(|(_, stamp)| *stamp > self.appended) {
            // A round is begun for what was appended, and nothing may be any more: erasures do not
            // count, so this one has a stamp of its own.
            self.appended = self.appended.next();
        }
        self.begin_round(Goal::Synced)?;
        let at_work = self.queue.in_flight() > 0 || !matches!(self.round, Round::Idle);
        Ok(at_work || self.ghosts.is_empty())
    }

    /// Blocks until released segments are free, those excepted that must not go before an older
    /// one.
    pub(crate) fn wait_released(&mut self) -> Result<()> {
        while self.releasing_count() > 0 {
            self.begin_release()?;
            if self.queue.in_flight() == 0 && matches!(self.round, Round::Idle) {
                // What is left waits for an older segment that another thread reclaims.
                return Ok(());
            }
            self.poll(1)?;
            self.check_poisoned()?;
        }
        Ok(())
    }

    /// Erases the headers of released segments whose successors are durable. What recovery does not
    /// find need not be reclaimed again; a lost erasure only brings back what is known to be dead.
    pub(super) fn free_released(&mut self) -> Result<()> {
        if self.is_poisoned() {
            return Ok(());
        }
        let durable = self.durable;
        self.ghosts.retain(|(_, stamp)| *stamp > durable);
        while let Some(at) = self.next_to_erase() {
            if self.queue.in_flight() + 2 >= self.queue.depth() {
                break;
            }
            let Some((segment, _)) = self.releasing.remove(at) else { break };
            // It will be opened before another round syncs it.
            let scarce =
                self.free.len() as u32 <= RELEASE_BATCH && !planted!("erasure-not-awaited");
            let ordered = self.shape.erases_in_order || self.erases_in_turn(segment);
            let durable = ordered || scarce;
            self.erase(segment, if durable { WriteMode::Durable } else { WriteMode::Flushed })?;
        }
        Ok(())
    }

    /// Which of the released segments may be erased now.
    fn next_to_erase(&self) -> Option<usize> {
        let ready = |(_, stamp): &(u32, Stamp)| *stamp <= self.durable;
        if !self.shape.erases_in_order {
            let waits = |segment| self.erases_in_turn(segment) && self.erases_journal();
            let mut released = self.releasing.iter();
            return released.position(|released| ready(released) && !waits(released.0));
        }
        if !self.erasing.is_empty() || self.releasing.is_empty() {
            return None;
        }
        let first = first_to_go(&self.segments, &STANDING);
        self.releasing.iter().position(|released| {
            let (segment, _) = *released;
            // What was pinned was not evicted: something younger that is durable outranks it.
            let pinned = self.segments[segment as usize].stream == Stream::Hot as u8;
            ready(released) && (pinned || Some(segment) == first)
        })
    }

    /// The stamp of the first append to a stream that its whole sync units do not hold.
    fn begun_unit(&self, stream: Stream) -> Option<Stamp> {
        self.streams[stream as usize].as_ref().and_then(OpenSegment::begun_unit)
    }

    /// Writes the whole sync units of the stream's open segment.
    fn flush_units(&mut self, stream: Stream, mode: WriteMode) -> Result<()> {
        let unit = self.shape.sync_unit;
        let Some(open) = &mut self.streams[stream as usize] else { return Ok(()) };
        let range = open.submitted as usize..(open.used / unit * unit) as usize;
        if range.is_empty() {
            return Ok(());
        }
        open.submitted = range.end as u32;
        let (segment, buffer) = (open.segment, open.buffer);
        self.write(segment, buffer, range, mode)
    }

    /// Writes what the stream's open segment holds, up to a sync unit.
    fn flush_stream(&mut self, stream: Stream, mode: WriteMode) -> Result<()> {
        let unit = self.shape.sync_unit;
        let Some(open) = &mut self.streams[stream as usize] else { return Ok(()) };
        if open.used == open.submitted {
            return Ok(());
        }
        let mut gap = open.used.next_multiple_of(unit) - open.used;
        if gap != 0 && gap < PADDING_BYTES_MIN {
            gap += unit;
        }
        if !open.fits(gap as usize, self.shape.segment_bytes) {
            return self.seal(stream);
        }
        if gap != 0 {
            let at = open.used as usize;
            let segment = &self.segments[open.segment as usize];
            let bytes = self.buffers[open.buffer as usize].memory.bytes_mut();
            bytes[at..at + gap as usize].fill(0);
            padding(segment.sequence as u32, gap).encode(&mut bytes[at..]);
            open.pad(gap);
        }
        let range = open.submitted as usize..open.used as usize;
        let (segment, buffer) = (open.segment, open.buffer);
        open.submitted = open.used;
        self.write(segment, buffer, range, mode)
    }

    fn finish_request(&mut self, completion: Completion) {
        let Some(completion) = self.finish_read(completion) else { return };
        if let Err(error) = &completion.result {
            let what = if completion.token == SYNC_TOKEN { "sync" } else { "write" };
            self.poison(format!("a {what} of shard {} failed: {error}", self.shape.shard));
        }
        if completion.token == SYNC_TOKEN {
            if let Round::Syncing { covers, synced_writes, proven } = self.round {
                self.round = Round::Idle;
                if !self.is_poisoned() {
                    self.syncs.ended = self.syncs.begun;
                    self.unsynced_writes -= synced_writes;
                    self.reach(Goal::Synced, covers, proven);
                }
            }
            return;
        }
        if let Some(at) = self.writes.iter().position(|write| write.number == completion.token) {
            let write = self.writes.swap_remove(at);
            match self.buffers.get_mut(write.buffer as usize) {
                Some(buffer) => buffer.writes -= 1,
                // Nothing is erased after one that failed: it may be younger.
                None if completion.result.is_err() => {}
                None => self.finish_erasing(write.number, write.mode),
            }
            if write.buffer != NO_BUFFER && !self.is_poisoned() {
                self.confirm(&write);
            }
        }
        let in_order = self.shape.erases_in_order
            || self.releasing.iter().any(|(segment, _)| self.is_of_journal(*segment));
        if in_order && !self.is_poisoned() {
            // The next one waited for this one.
            if let Err(error) = self.free_released() {
                self.poison(format!("a released segment could not be erased: {error}"));
            }
        }
    }

    fn advance_round(&mut self) -> Result<()> {
        let Round::Writing { covers, last, goal, proven } = self.round else {
            return Ok(());
        };
        let early = planted!("partial-flush-reported-durable");
        if self.writes.iter().any(|write| write.number <= last) && !early {
            return Ok(());
        }
        // A stream may have been sealed by a plain write while the round began: asked only now.
        if goal == Goal::Synced && self.unsynced_writes > 0 {
            self.round =
                Round::Syncing { covers, synced_writes: self.completed_unsynced(), proven };
            self.syncs.begun += 1;
            let begun = self.queue.sync(SYNC_TOKEN).and_then(|()| self.hand_over());
            if let Err(error) = begun {
                self.poison(format!("a sync failed: {error}"));
                return Err(error.into());
            }
            return Ok(());
        }
        self.round = Round::Idle;
        self.reach(goal, covers, proven);
        Ok(())
    }

    /// Unsynced writes that have completed: those that a sync begun now covers.
    fn completed_unsynced(&self) -> u64 {
        let in_flight = self.writes.iter().filter(|write| write.mode == WriteMode::Flushed);
        self.unsynced_writes - in_flight.count() as u64
    }

    fn reach(&mut self, goal: Goal, covers: Stamp, proven: Proven) {
        self.flushed = self.flushed.max(covers);
        if goal == Goal::Synced {
            self.durable = self.durable.max(covers);
            self.proven_below = self.proven_below.max(proven.segments);
            self.journal.reach(proven.journal);
            if let Err(error) = self.free_released() {
                self.poison(format!("a released segment could not be erased: {error}"));
            }
        }
    }

    /// Blocks until every write is done and synced, and every released segment is free.
    pub(crate) fn commit_all(&mut self) -> Result<()> {
        self.commit()?;
        self.wait_released()?;
        while self.queue.in_flight() > 0 {
            self.poll(1)?;
        }
        self.check_poisoned()?;
        Ok(self.device.sync()?)
    }

    /// Seals a segment if it is open: little may be appended to it for long.
    pub(crate) fn seal_segment(&mut self, segment: u32) -> Result<()> {
        let row = &self.segments[segment as usize];
        if row.state != SegmentState::Open {
            return Ok(());
        }
        let number = row.stream;
        let stream = Stream::ALL.into_iter().find(|stream| *stream as u8 == number);
        stream.map_or(Ok(()), |stream| self.seal(stream))
    }

    /// Seals every open segment.
    pub(crate) fn seal_all(&mut self) -> Result<()> {
        Stream::ALL.into_iter().try_for_each(|stream| self.seal(stream))
    }
}

/// Released segments that are worth a sync.
pub(crate) const RELEASE_BATCH: u32 = 4;
/// Sync units appended that released segments wait for, so that no stream need be padded for them.
const UNPADDED_UNITS: u64 = 32;
/// Sync units released for each time that what is under way is padded by a few of them.
const RELEASE_UNITS: u64 = 64;
/// Header and the one byte of key that every record has.
const PADDING_BYTES_MIN: u32 = 64;

fn padding(generation: u32, bytes: u32) -> RecordHeader {
    let value_bytes = bytes - crate::format::RECORD_HEADER_BYTES as u32 - 1;
    RecordHeader {
        payload_crc: 0,
        sequence: 0,
        version: 0,
        generation,
        value_bytes,
        raw_bytes: value_bytes,
        expiry_ms: 0,
        idle_seconds: 0,
        touched_seconds: 0,
        space: SpaceId(0),
        partition: 0,
        key_bytes: 1,
        flags: Flags::of(RecordKind::Padding),
        label: 0,
        lifespan: Lifespan::Learned,
    }
}
