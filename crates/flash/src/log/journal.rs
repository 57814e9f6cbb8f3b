//! The journal of a shard: records in no index and in no footer, in segments of their own, in the
//! order of their sequences; cut at a watermark.
//!
//! Invariants:
//! 1. Segments of the journal are numbered without a gap. They are erased in this order, each for
//!    good before the next, so that those a crash leaves have no gap either: one that is missing
//!    was damaged.
//! 2. A segment goes once all of its records are below the watermark, and is used again only once
//!    everything that was appended before is durable, as any other.
//! 3. A segment is opened only once the one before it is durable: after a loss of power only the
//!    last one can be torn.
//! 4. Reclaim never takes a segment of the journal.

use std::collections::VecDeque;

use entresol_planted::planted;

use super::continuing::Tail;
use super::{Attempt, Goal, Log, Refusal, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    CONTINUATION_BYTES, Continuation, OWNER_BYTES, RECORD_ALIGNMENT, RecordHeader, RecordKind,
    SEGMENT_HEADER_BYTES, SegmentHeader, owner_of_key, u32_at,
};
use crate::record::{Payloads, Record, Wanted};
use crate::segment::{Segment, SegmentState, Stream};
use crate::types::{JournalRecord, JournalRoom, JournalSequence};

/// Most segments that appends take beyond all that there may be.
const MORE_SEGMENTS: u32 = 4;

/// The journal of a shard, oldest segment first. The last one may be open.
#[derive(Debug)]
pub(crate) struct Journal {
    segments: VecDeque<JournalSegment>,
    next_ordinal: u64,
    /// Records below this sequence are superseded.
    watermark: u64,
    /// The sequences of the last record, and of the last one that is durable; 0: none is known.
    last: u64,
    durable: u64,
    /// The stamp of the last seal.
    sealed: Stamp,
    /// The end of the last record, since its append.
    pub(super) tail: Option<Tail>,
    /// Segments that the append under way may take beyond all that there may be.
    more: u32,
}

/// A segment of the journal. Its row in the table says how far it is filled (`used_bytes`, from the
/// segment's beginning on) and the sequence of its last record (`age`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalSegment {
    pub segment: u32,
    pub ordinal: u64,
    /// What stood behind its records, and was durable, does not verify.
    pub cut_short: bool,
}

/// A journal as it is stored, or was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JournalTable {
    pub segments: Vec<JournalSegment>,
    pub next_ordinal: u64,
    pub watermark: u64,
}

impl Journal {
    pub(super) fn new() -> Journal {
        let segments = VecDeque::new();
        Journal {
            segments,
            next_ordinal: 1,
            watermark: 0,
            last: 0,
            durable: 0,
            sealed: Stamp::default(),
            tail: None,
            more: 0,
        }
    }

    pub(crate) fn segments(&self) -> impl ExactSizeIterator<Item = &JournalSegment> {
        self.segments.iter()
    }

    /// Records below this sequence are superseded.
    pub(crate) fn watermark(&self) -> u64 {
        self.watermark
    }

    /// The sequence of the last record.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The record of the sequence `last`, and all before it, are durable.
    pub(super) fn reach(&mut self, last: u64) {
        self.durable = self.durable.max(last);
    }

    /// What a checkpoint says of it; `None` if nothing was ever appended.
    pub(crate) fn table(&self) -> Option<JournalTable> {
        let segments = self.segments.iter().copied().collect();
        let (next_ordinal, watermark) = (self.next_ordinal, self.watermark);
        (next_ordinal > 1).then_some(JournalTable { segments, next_ordinal, watermark })
    }

    /// Takes the segment that is opened next; what its `header` says of the journal.
    pub(super) fn open(&mut self, segment: u32, header: &mut SegmentHeader) {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        self.segments.push_back(JournalSegment { segment, ordinal, cut_short: false });
        (header.ordinal, header.age, header.follows) = (ordinal, self.watermark, self.last);
    }
}

impl Log {
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Segments that are kept for the journal.
    pub(super) fn journal_kept(&self) -> u32 {
        let most = self.shape.journal_segments.max(self.journal.segments.len() as u32);
        // One more is full of what was trimmed, and not free as yet.
        if most == 0 { 0 } else { most + 1 }
    }

    /// Refuses another segment to a journal that has all it may have.
    pub(super) fn check_journal(&self) -> Attempt<()> {
        let most = self.shape.journal_segments + self.journal.more;
        if (self.journal.segments.len() as u32) < most { Ok(()) } else { Err(self.journal_full()) }
    }

    /// Refuses `bytes` that would leave a journal less of all that it may have than `room` says.
    /// The append that follows has this room.
    pub(crate) fn check_journal_room(&mut self, bytes: usize, room: JournalRoom) -> Attempt<()> {
        let is_filled = planted!("journal-filled-to-its-end");
        let (reserve, more) = match room {
            JournalRoom::Leaving(bytes) if !is_filled => (bytes, 0),
            JournalRoom::Beyond if !is_filled && !planted!("journal-without-more") => {
                (0, MORE_SEGMENTS)
            }
            _ => (0, 0),
        };
        self.journal.more = more;
        if reserve == 0 {
            return Ok(());
        }
        let held = self.journal.segments.len() as u32;
        let free = u64::from(self.shape.journal_segments.saturating_sub(held));
        let open = self.streams[Stream::Journal as usize].as_ref();
        let left = open.map_or(0, |open| self.shape.segment_bytes - open.used);
        let left = u64::from(left) + free * u64::from(self.shape.segment_bytes);
        if bytes as u64 + u64::from(reserve) <= left { Ok(()) } else { Err(self.journal_full()) }
    }

    fn journal_full(&self) -> Refusal {
        let (held, most) = (self.journal.segments.len(), self.shape.journal_segments);
        let detail = format!(
            "the journal of shard {} takes {held} of the {most} segments that it may; trim it, or \
             open the store with more bytes for the journal",
            self.shape.shard
        );
        Refusal::Full(Error::new(ErrorKind::Full, detail))
    }

    /// A segment of the journal was sealed: that has a stamp of its own.
    pub(super) fn note_sealed_journal(&mut self) {
        self.appended = self.appended.next();
        self.journal.sealed = self.appended;
    }

    /// Waits until the last segment of the journal is durable, as [`Log::await_answer`] does.
    pub(super) fn await_sealed_journal(&mut self) -> Attempt<()> {
        while self.durable < self.journal.sealed && !planted!("journal-opened-too-soon") {
            self.poll(0)?;
            self.begin_round(Goal::Synced)?;
            if self.durable < self.journal.sealed {
                self.await_answer(Stream::Journal)?;
            }
        }
        Ok(())
    }

    /// Appends a record to the journal. It says which of those before it are durable.
    pub(crate) fn append_journal(
        &mut self,
        mut header: RecordHeader,
        key: &[u8],
        bytes: &[u8],
    ) -> Attempt<()> {
        let aligned = header.record_bytes().next_multiple_of(RECORD_ALIGNMENT) as u32;
        header.set_durable(self.journal.durable);
        self.write_record(Stream::Journal, header, (key, bytes))?;
        let stamp = self.appended.next();
        let open = self.streams[Stream::Journal as usize].as_mut();
        let open = open.expect("the record was written to it");
        let (start, sequence) = (open.used as usize, header.sequence);
        let end = start + header.record_bytes();
        let memory = self.buffers[open.buffer as usize].memory.bytes_mut();
        // So that nothing there looks as if it continued the record.
        memory[end..end.next_multiple_of(RECORD_ALIGNMENT)].fill(0);
        let crc = u32_at(memory, start).unwrap_or_default();
        let segment = open.segment;
        let tail = Tail { segment, start, end, head: sequence, last: sequence, crc };
        self.journal.tail = Some(tail);
        open.push_unlisted(aligned, sequence, stamp, self.shape.sync_unit);
        self.note_journaled(stamp, sequence, aligned);
        Ok(())
    }

    /// The journal has `bytes` more, of the sequence `sequence`.
    pub(super) fn note_journaled(&mut self, stamp: Stamp, sequence: u64, bytes: u32) {
        let open = self.streams[Stream::Journal as usize].as_ref();
        let open = open.expect("it is in the open segment");
        let row = &mut self.segments[open.segment as usize];
        (row.used_bytes, row.age) = (open.used, sequence);
        self.appended = stamp;
        self.appended_bytes += u64::from(bytes);
        self.latest = self.latest.max(sequence);
        self.journal.last = sequence;
    }

    /// Records below the sequence `below` are superseded, for good: segments that hold no others
    /// are released.
    pub(crate) fn trim_journal(&mut self, below: u64) -> Result<()> {
        self.check_open()?;
        self.journal.watermark = self.journal.watermark.max(below);
        while let Some(JournalSegment { segment, .. }) = self.journal.segments.front().copied() {
            let row = self.segments[segment as usize];
            let past = row.age < self.journal.watermark || planted!("journal-trimmed-too-far");
            if row.state != SegmentState::Journal || !past {
                break;
            }
            // They go in their order: those behind one that a snapshot has still to read wait, too.
            if row.held && !(self.is_journal_crowded() && self.break_snapshot()) {
                break;
            }
            self.journal.segments.pop_front();
            self.release(segment);
        }
        Ok(())
    }

    /// Whether appends soon find no room in the journal.
    fn is_journal_crowded(&self) -> bool {
        self.journal.segments.len() + 1 >= self.shape.journal_segments as usize
    }

    pub(super) fn is_of_journal(&self, segment: u32) -> bool {
        self.segments[segment as usize].stream == Stream::Journal as u8
    }

    /// Whether a segment of the journal is being erased: the next one waits for it.
    pub(super) fn erases_journal(&self) -> bool {
        self.erasing.iter().any(|(_, segment)| self.is_of_journal(*segment))
    }

    /// Whether the segment is erased in its turn, and for good before the next.
    pub(super) fn erases_in_turn(&self, segment: u32) -> bool {
        self.is_of_journal(segment) && !planted!("journal-erased-out-of-order")
    }

    /// Takes a journal over from a checkpoint or from a recovery; its rows are in the table.
    pub(crate) fn restore_journal(&mut self, table: JournalTable) {
        let JournalTable { segments, next_ordinal, watermark } = table;
        // An opening makes durable what it found.
        let ages = segments.iter().map(|one| self.segments[one.segment as usize].age);
        let last = ages.max().unwrap_or(0);
        let segments = segments.into();
        let (durable, sealed) = (last, Stamp::default());
        let fresh = Journal::new();
        self.journal =
            Journal { segments, next_ordinal, watermark, last, durable, sealed, ..fresh };
    }
}

impl JournalSegment {
    /// The row of a segment of the journal that is sealed, in its use `sequence`: filled up to
    /// `end`, where the last record has the sequence `last`.
    pub(crate) fn row(sequence: u64, end: u32, last: u64) -> Segment {
        Segment {
            sequence,
            age: last,
            used_bytes: end,
            stream: Stream::Journal as u8,
            state: SegmentState::Journal,
            ..Segment::UNUSED
        }
    }
}

/// A segment of the journal in memory: whose it is, and how to read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalReader<'a> {
    pub payloads: &'a Payloads,
    pub shard: u16,
    /// The use of the segment.
    pub sequence: u64,
}

impl JournalReader<'_> {
    /// Visits the records in `bytes`, a segment from its beginning on, and what continues them, up
    /// to `end` or to the first that does not verify; where it stopped.
    pub(crate) fn walk(
        &self,
        bytes: &[u8],
        end: usize,
        visit: &mut dyn FnMut(JournalRecord<'_>),
    ) -> usize {
        let mut at = SEGMENT_HEADER_BYTES.next_multiple_of(RECORD_ALIGNMENT);
        let mut scratch = Vec::new();
        let bytes = &bytes[..end.min(bytes.len())];
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(header) = RecordHeader::decode(rest) else { break };
            let mut length = header.record_bytes();
            if header.generation != self.sequence as u32 || length > rest.len() {
                break;
            }
            match header.flags.kind {
                RecordKind::Padding => {}
                RecordKind::Journal if header.key_bytes as usize == OWNER_BYTES => {
                    let wanted = Wanted::any(self.sequence);
                    match self.payloads.open(self.shard, rest, wanted, &mut scratch) {
                        Ok(record) => length += self.walk_record(&record, rest, visit),
                        Err(_) => break,
                    }
                }
                _ => break,
            }
            at += length.next_multiple_of(RECORD_ALIGNMENT);
        }
        at
    }

    /// Visits a record of the journal, the first one in `bytes`, and what continues it; how many
    /// bytes that takes.
    fn walk_record(
        &self,
        record: &Record<'_>,
        bytes: &[u8],
        visit: &mut dyn FnMut(JournalRecord<'_>),
    ) -> usize {
        let (mut header, head) = (record.header, JournalSequence(record.header.sequence));
        let owner = owner_of_key(record.key).unwrap_or_default();
        visit(JournalRecord { sequence: head, head, owner, bytes: record.value });
        let (start, mut scratch) = (header.record_bytes(), Vec::new());
        let (mut at, mut crc) = (start, u32_at(bytes, 0).unwrap_or_default());
        while let Some((found, stored)) = Continuation::decode(&bytes[at..], crc) {
            header.sequence += u64::from(found.distance);
            let opened = self.payloads.open_continuation(self.shard, header, stored, &mut scratch);
            let Ok(bytes) = opened else { break };
            visit(JournalRecord { sequence: JournalSequence(header.sequence), head, owner, bytes });
            at += CONTINUATION_BYTES + stored.len();
            crc = found.crc;
        }
        at - start
    }

    /// The highest sequence of a record that those in `bytes` from `start` on, wherever they
    /// stand, say was durable before they were appended; 0: none.
    pub(crate) fn durable_by(&self, bytes: &[u8], start: usize) -> u64 {
        let mut scratch = Vec::new();
        let places =
            (start.next_multiple_of(RECORD_ALIGNMENT)..bytes.len()).step_by(RECORD_ALIGNMENT);
        let mut durable = 0;
        for at in places {
            let wanted = Wanted::any(self.sequence);
            let opened = self.payloads.open(self.shard, &bytes[at..], wanted, &mut scratch);
            if let Ok(record) = opened
                && record.header.flags.kind == RecordKind::Journal
            {
                durable = durable.max(record.header.durable());
            }
        }
        durable
    }
}
