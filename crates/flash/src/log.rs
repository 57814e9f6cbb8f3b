//! The log of one shard: records appended to open segments, in streams; segments sealed, made
//! durable, freed and used again.
//!
//! Invariants:
//! 1. A segment is written front to back; what was handed to the device is never changed.
//! 2. Bytes of a partial flush end at a sync unit, filled with a padding record, so that no later
//!    write touches a unit that may have been acknowledged.
//! 3. `durable` and `flushed` are append stamps: every append up to them is synced, or handed to
//!    the device. They only grow.
//! 4. A released segment is free only once everything appended before its release is durable.
//! 5. After a failed write or sync `Siblings::failure` says why, and no shard writes any more.
//!
//! It knows nothing of keys or of the index. The caller holds the shard's lock.

mod commit;
mod confirmed;
mod continuing;
mod footer;
mod free;
mod held;
mod journal;
mod open_segment;
mod refusal;
mod segment_read;
mod siblings;
mod stamp;
mod submission;
mod succession;
mod table;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use entresol_device::{
    Completion, Device, Queue, QueueOptions, WriteBuffer, WriteMode, WriteRequest,
};
use entresol_planted::planted;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    FooterEntry, LastWrite, RECORD_ALIGNMENT, RecordHeader, RecordKind, SEGMENT_HEADER_BYTES,
    SegmentHeader, SizeCode, TRAILER_BYTES,
};
use crate::segment::{ENTRY_STREAMS, STREAMS, Segment, SegmentState, Stream};
use commit::Round;
pub(crate) use commit::{Goal, Patience, Progress, RELEASE_BATCH};
pub(crate) use confirmed::ShardBuffers;
use confirmed::Write;
pub(crate) use continuing::Continued;
pub(crate) use footer::{footer_of, footer_of_whole, read_footer};
use free::{Free, Syncs};
use held::Holding;
pub(crate) use held::{HeldSegment, Hold};
use journal::Journal;
pub(crate) use journal::{JournalReader, JournalSegment, JournalTable};
use open_segment::OpenSegment;
pub(crate) use refusal::{Attempt, Refusal};
use segment_read::SegmentRead;
pub(crate) use siblings::Siblings;
pub(crate) use stamp::Stamp;
use submission::Submission;
use succession::Succession;

/// Where the shard's segments are and how large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub store: u64,
    pub shard: u16,
    pub shards: u16,
    pub segment_bytes: u32,
    pub segments: u32,
    /// Where segment 0 of shard 0 starts.
    pub base: u64,
    pub sync_unit: u32,
    /// Whether seal writes are durable on completion.
    pub durable_writes: bool,
    /// Whether released segments are erased one by one, the oldest first, each for good before the
    /// next: a cache leaves no newer record behind that would outrank what an older segment holds.
    pub erases_in_order: bool,
    /// Segments that the journal of the shard may take; 0: nothing is appended to it.
    pub journal_segments: u32,
}

impl Shape {
    /// The device offset of a segment. Shards take turns, so that each is spread over the device.
    pub(crate) fn offset_of(&self, segment: u32) -> u64 {
        let turn = u64::from(segment) * u64::from(self.shards) + u64::from(self.shard);
        self.base + turn * u64::from(self.segment_bytes)
    }

    /// Whether a segment with `padding` bytes of it is worth being copied for the room alone.
    /// What is copied is padded, too: once for each time that released segments become free.
    pub(crate) fn is_much_padding(&self, padding: u32) -> bool {
        padding > (self.segment_bytes / PADDING_PART).max(2 * self.sync_unit)
    }

    /// The segment of an address and the offset in it, bytes.
    #[inline]
    pub(crate) fn split(&self, address: u64) -> (u32, u32) {
        let units = u64::from(self.segment_bytes) / RECORD_ALIGNMENT as u64;
        let (segment, unit) = match units.is_power_of_two() {
            true => (address >> units.trailing_zeros(), address & (units - 1)),
            false => (address / units, address % units),
        };
        (segment as u32, unit as u32 * RECORD_ALIGNMENT as u32)
    }

    /// Addresses of the shard are below this.
    pub(crate) fn addresses_end(&self) -> u64 {
        self.address(self.segments, 0)
    }

    pub(crate) fn address(&self, segment: u32, offset: u32) -> u64 {
        let units = u64::from(self.segment_bytes) / RECORD_ALIGNMENT as u64;
        u64::from(segment) * units + u64::from(offset) / RECORD_ALIGNMENT as u64
    }
}

/// A buffer of one segment's bytes.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: WriteBuffer,
    segment: Option<u32>,
    writes: u32,
    /// The end of what the device has said it holds.
    written: usize,
    /// When it was sealed, a count; open buffers are `u64::MAX`.
    sealed: u64,
}

impl Buffer {
    fn idle(memory: WriteBuffer) -> Buffer {
        Buffer { memory, segment: None, writes: 0, written: 0, sealed: 0 }
    }
}

/// The log of one shard.
pub(crate) struct Log {
    shape: Shape,
    segments: Vec<Segment>,
    succession: Succession,
    journal: Journal,
    device: Arc<dyn Device>,
    queue: Box<dyn Queue>,
    submission: Submission,
    completions: Vec<Completion>,
    free: VecDeque<Free>,
    releasing: VecDeque<(u32, Stamp)>,
    holding: Holding,
    /// Segments whose header is being erased: (write number, segment).
    erasing: Vec<(u64, u32)>,
    zeros: WriteBuffer,
    /// Former uses of erased or reused segments whose end is not yet durable: (sequence, stamp).
    ghosts: Vec<(u64, Stamp)>,
    buffers: Vec<Buffer>,
    /// See `confirmed`.
    marks: Option<WriteBuffer>,
    last_write: Option<LastWrite>,
    streams: [Option<OpenSegment>; STREAMS],
    siblings: Arc<Siblings>,
    sealed_count: u64,
    /// No segment is opened any more: a checkpoint says what there is.
    closed: bool,
    /// The highest record sequence appended.
    latest: u64,
    appended: Stamp,
    appended_bytes: u64,
    /// `appended_bytes` when a segment was released last.
    released_at: u64,
    durable: Stamp,
    syncs: Syncs,
    /// Stamp of the last append that a period, or a put that nobody waits for, has to see synced.
    owed: Stamp,
    flushed: Stamp,
    /// Segments below this sequence are durable as a whole.
    proven_below: u64,
    round: Round,
    writes: Vec<Write>,
    writes_begun: u64,
    unsynced_writes: u64,
    read: SegmentRead,
    reserve: u32,
    /// Mean of what lately filled segments have no record in: padding, and what the next record
    /// did not fit.
    lost_bytes: u64,
    /// Live bytes of all segments.
    live_bytes: u64,
    /// Those of the live bytes that are tombstones.
    tombstone_bytes: u64,
}

/// A record to append; `header.generation` is filled in.
pub(crate) struct Append<'a> {
    pub stream: Stream,
    pub header: RecordHeader,
    pub payload: (&'a [u8], &'a [u8]),
    pub hash: u128,
    /// When the record was first put, as a record sequence.
    pub age: u64,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// Free segments that only reclaim may take: one for each of its streams, and one to spare.
const RECLAIM_SEGMENTS: u32 = 3;
/// Share of a segment from which on padding is much.
const PADDING_PART: u32 = 8;
/// Segments beyond the reserve that are kept free in the smallest store.
const AHEAD_SEGMENTS: u32 = 6;
const SYNC_TOKEN: u64 = u64::MAX;
/// Write requests of a shard in flight at once.
const WRITE_DEPTH: usize = 64;

impl Log {
    /// A log without write buffers: it takes appends once it has some ([`Log::attach`]).
    pub(crate) fn new(
        shape: Shape,
        device: Arc<dyn Device>,
        siblings: Arc<Siblings>,
    ) -> Result<Log> {
        let queue = device.queue(QueueOptions { depth: WRITE_DEPTH, buffer_bytes: 4096 })?;
        let submission = Submission::new(&*queue);
        let reserve = (ENTRY_STREAMS + 1 + shape.segments / 1024).min(shape.segments / 3);
        Ok(Log {
            shape,
            segments: vec![Segment::UNUSED; shape.segments as usize],
            succession: Succession::new(shape.segments),
            journal: Journal::new(),
            device,
            queue,
            submission,
            completions: Vec::new(),
            free: VecDeque::new(),
            releasing: VecDeque::new(),
            holding: Holding::default(),
            erasing: Vec::new(),
            zeros: WriteBuffer::anonymous(shape.sync_unit.max(4096) as usize)?,
            ghosts: Vec::new(),
            buffers: Vec::new(),
            marks: None,
            last_write: None,
            streams: [const { None }; STREAMS],
            siblings,
            sealed_count: 0,
            closed: false,
            latest: 0,
            appended: Stamp::default(),
            appended_bytes: 0,
            released_at: 0,
            durable: Stamp::default(),
            syncs: Syncs::default(),
            owed: Stamp::default(),
            flushed: Stamp::default(),
            proven_below: 0,
            round: Round::Idle,
            writes: Vec::new(),
            writes_begun: 0,
            unsynced_writes: 0,
            read: SegmentRead::None,
            reserve,
            lost_bytes: 0,
            live_bytes: 0,
            tombstone_bytes: 0,
        })
    }

    /// Appends a record; returns its address.
    pub(crate) fn append(&mut self, append: Append<'_>) -> Attempt<u64> {
        let Append { stream, header, payload, hash, age } = append;
        let record_bytes = header.record_bytes();
        self.write_record(stream, header, payload)?;
        let open = self.streams[stream as usize].as_mut().expect("the record was written to it");
        let segment = &mut self.segments[open.segment as usize];
        let ends_seconds = header.ends_seconds();
        let entry = FooterEntry {
            hash,
            sequence: header.sequence,
            offset: open.used,
            flags: header.flags,
            record_bytes: record_bytes as u32,
            ends_seconds,
            space: header.space,
            partition: header.partition,
        };
        let address = self.shape.address(open.segment, open.used);
        let stamp = self.appended.next();
        open.push(&entry, age, stamp, self.shape.sync_unit);
        let counted = SizeCode::covering(record_bytes as u64).bytes() as u32;
        segment.live_bytes += counted;
        segment.used_bytes += counted;
        self.live_bytes += u64::from(counted);
        if header.flags.kind == RecordKind::Tombstone {
            segment.tombstone_bytes += counted;
            self.tombstone_bytes += u64::from(counted);
        }
        if ends_seconds != 0 {
            segment.next_end = segment.next_end.min(ends_seconds);
        }
        self.appended = stamp;
        self.appended_bytes += u64::from(counted);
        self.latest = self.latest.max(header.sequence);
        Ok(address)
    }

    /// Writes a record behind the last one of the open segment of `stream`, which is not told.
    fn write_record(
        &mut self,
        stream: Stream,
        mut header: RecordHeader,
        (head, tail): (&[u8], &[u8]),
    ) -> Attempt<()> {
        let record_bytes = header.record_bytes();
        self.ensure_open(stream, record_bytes.next_multiple_of(RECORD_ALIGNMENT))?;
        let open = self.streams[stream as usize].as_ref().expect("ensure_open opened it");
        header.generation = self.segments[open.segment as usize].sequence as u32;
        let at = open.used as usize;
        let bytes =
            &mut self.buffers[open.buffer as usize].memory.bytes_mut()[at..at + record_bytes];
        header.encode(bytes);
        let start = header.header_bytes();
        let split = start + head.len();
        bytes[start..split].copy_from_slice(head);
        bytes[split..].copy_from_slice(tail);
        Ok(())
    }

    /// Where the next record of `stream` goes if it fits its open segment.
    pub(crate) fn next_address(&self, stream: Stream) -> u64 {
        let open = self.streams[stream as usize].as_ref();
        open.map_or(0, |open| self.shape.address(open.segment, open.used))
    }

    /// Adds to (or takes from) the live bytes of the segment of `address`.
    pub(crate) fn change_live(&mut self, address: u64, bytes: i64) {
        let (segment, _) = self.shape.split(address);
        let segment = &mut self.segments[segment as usize];
        let before = i64::from(segment.live_bytes);
        segment.live_bytes = (before + bytes).clamp(0, i64::from(u32::MAX)) as u32;
        let change = i64::from(segment.live_bytes) - before;
        self.live_bytes = self.live_bytes.wrapping_add_signed(change);
        if change < 0 {
            segment.try_again();
        }
    }

    /// The tombstone at `address` is live elsewhere now.
    pub(crate) fn move_tombstone(&mut self, address: u64, size: SizeCode) {
        let (segment, _) = self.shape.split(address);
        let row = &mut self.segments[segment as usize].tombstone_bytes;
        let moved = (size.bytes() as u32).min(*row);
        *row -= moved;
        self.tombstone_bytes -= u64::from(moved);
    }

    /// The earliest end of a record in the open segment of `stream`, seconds; `u32::MAX`: none.
    pub(crate) fn first_end(&self, stream: Stream) -> u32 {
        let open = self.streams[stream as usize].as_ref();
        open.map_or(u32::MAX, |open| self.segments[open.segment as usize].next_end)
    }

    /// The sequence of the open segment of `stream`, if there is one.
    pub(crate) fn open_sequence(&self, stream: Stream) -> Option<u64> {
        let open = self.streams[stream as usize].as_ref();
        open.map(|open| self.segments[open.segment as usize].sequence)
    }

    /// All records from now on are in segments of this sequence or a higher one.
    pub(crate) fn lowest_open(&self) -> u64 {
        let open = self.streams.iter().flatten();
        let open = open.map(|open| self.segments[open.segment as usize].sequence);
        open.min().unwrap_or(u64::MAX).min(self.next_sequence())
    }

    /// Stamp of the last append: durable once `durable()` reaches it.
    pub(crate) fn appended(&self) -> Stamp {
        self.appended
    }

    pub(crate) fn durable(&self) -> Stamp {
        self.durable
    }

    pub(crate) fn flushed(&self) -> Stamp {
        self.flushed
    }

    pub(crate) fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    pub(crate) fn releasing_count(&self) -> u32 {
        (self.releasing.len() + self.erasing.len()) as u32
    }

    /// Segments that are kept free ahead of need, or about to be: those that become free together
    /// are among them twice, once while the next ones are gathered.
    pub(crate) fn free_target(&self) -> u32 {
        let ahead = AHEAD_SEGMENTS + self.shape.segments / 1024;
        (self.reserve + ahead).min(self.shape.segments / 3)
    }

    /// Segments that only reclaim and removes may take.
    pub(crate) fn reserve(&self) -> u32 {
        self.reserve
    }

    /// Bytes that records and their lines in the footers may take beside the reserve, while each
    /// stream has a segment open that is empty as yet.
    pub(crate) fn room(&self) -> u64 {
        let segments = self.shape.segments - self.reserve - 1 - ENTRY_STREAMS;
        let segments = segments.saturating_sub(self.journal_kept());
        let frame = (SEGMENT_HEADER_BYTES + TRAILER_BYTES) as u64;
        // Releases pad segments that writers did not have to.
        let lost = self.lost_bytes.max(u64::from(self.shape.sync_unit));
        u64::from(segments) * u64::from(self.shape.segment_bytes).saturating_sub(frame + lost)
    }

    pub(crate) fn pending_writes(&self) -> usize {
        self.queue.in_flight()
    }

    pub(crate) fn poll_fd(&self) -> Option<std::os::fd::RawFd> {
        self.queue.poll_fd()
    }

    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.buffers.len() as u64 * u64::from(self.shape.segment_bytes)
    }

    pub(crate) fn check_poisoned(&self) -> Result<()> {
        match self.siblings.failure.get() {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::Poisoned,
                format!("writes are refused since {why}; reopen the store to recover"),
            )),
        }
    }

    fn is_poisoned(&self) -> bool {
        self.siblings.failure.get().is_some()
    }

    /// Refuses writes to the whole store from now on.
    pub(crate) fn poison(&mut self, why: String) {
        if !planted!("sync-error-swallowed") {
            // The first failure is the one to report.
            let _later = self.siblings.failure.set(why);
        }
    }

    /// The oldest use of any segment but `except` that may hold records no longer live, former uses
    /// whose end is not durable included. `None`: there is none.
    pub(crate) fn oldest_dead(&self, except: Option<u32>) -> Option<u64> {
        let segments = self.segments.iter().enumerate();
        segments
            .filter(|(number, s)| Some(*number as u32) != except && s.has_dead())
            .map(|(_, s)| s.sequence)
            .chain(self.ghosts.iter().map(|(sequence, _)| *sequence))
            .min()
    }

    /// The next segment sequence: every segment opened from now on has this or a higher one.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.siblings.sequences.load(Ordering::Relaxed)
    }

    /// Makes room for `aligned` bytes in the open segment of `stream`.
    fn ensure_open(&mut self, stream: Stream, aligned: usize) -> Attempt<()> {
        if let Some(open) = &self.streams[stream as usize] {
            if open.fits(aligned, self.shape.segment_bytes) {
                return Ok(());
            }
            let (lost, padding) = (open.lost_bytes(self.shape.segment_bytes), open.padding());
            if !self.shape.is_much_padding(padding) && stream != Stream::Journal {
                self.lost_bytes = (self.lost_bytes * 15 + u64::from(lost)).div_ceil(16);
            }
            self.seal(stream)?;
        }
        self.open_segment(stream)
    }

    fn open_segment(&mut self, stream: Stream) -> Attempt<()> {
        self.check_open()?;
        if !stream.is_reclaim() && self.free.len() as u32 <= RECLAIM_SEGMENTS {
            return Err(Refusal::NeedsRoom);
        }
        if stream == Stream::Journal {
            self.check_journal()?;
            self.await_sealed_journal()?;
        }
        let buffer = self.take_buffer(stream)?;
        let segment = self.take_free(stream)?;
        self.succession.open(segment, stream as usize);
        let entry = &mut self.segments[segment as usize];
        let sequence = self.siblings.sequences.fetch_add(1, Ordering::Relaxed);
        *entry = Segment {
            sequence,
            state: SegmentState::Open,
            stream: stream as u8,
            buffer,
            ..Segment::UNUSED
        };
        let mut header = SegmentHeader {
            store: self.shape.store,
            shard: self.shape.shard,
            stream: stream as u8,
            segment,
            sequence,
            proven_below: self.proven_below,
            age: 0,
            ordinal: 0,
            follows: 0,
        };
        if stream == Stream::Journal {
            self.journal.open(segment, &mut header);
        }
        let slot = &mut self.buffers[buffer as usize];
        slot.segment = Some(segment);
        slot.sealed = u64::MAX;
        header.encode(&mut slot.memory.bytes_mut()[..SEGMENT_HEADER_BYTES]);
        self.streams[stream as usize] = Some(OpenSegment::new(segment, buffer));
        Ok(())
    }

    /// Writes footer and trailer of the open segment of `stream` and hands the rest of it to the
    /// device. No effect if none is open.
    pub(crate) fn seal(&mut self, stream: Stream) -> Result<()> {
        let Some(open) = self.streams[stream as usize].take() else { return Ok(()) };
        let segment = &mut self.segments[open.segment as usize];
        segment.age = open.age();
        segment.sealed_at = self.latest;
        segment.state = match stream {
            Stream::Journal => SegmentState::Journal,
            _ => SegmentState::Sealed,
        };
        segment.padded = self.shape.is_much_padding(open.padding());
        if stream == Stream::Journal {
            segment.used_bytes = open.used;
        }
        let buffer = &mut self.buffers[open.buffer as usize];
        open.finish(segment.sequence, buffer.memory.bytes_mut());
        self.sealed_count += 1;
        buffer.sealed = self.sealed_count;
        let mode = if self.shape.durable_writes { WriteMode::Durable } else { WriteMode::Flushed };
        if stream == Stream::Journal {
            self.note_sealed_journal();
        }
        let range = open.submitted as usize..self.shape.segment_bytes as usize;
        self.write(open.segment, open.buffer, range, mode)
    }

    fn write(
        &mut self,
        segment: u32,
        buffer: u16,
        range: std::ops::Range<usize>,
        mode: WriteMode,
    ) -> Result<()> {
        self.check_poisoned()?;
        while self.queue.in_flight() + 1 >= self.queue.depth() {
            self.poll(1)?;
        }
        self.writes_begun += 1;
        let request = WriteRequest {
            token: self.writes_begun,
            offset: self.shape.offset_of(segment) + range.start as u64,
            buffer: &self.buffers[buffer as usize].memory,
            range: range.clone(),
            mode,
        };
        let begun = self.queue.write(request).and_then(|()| self.hand_over());
        if let Err(error) = begun {
            self.poison(format!("a write failed: {error}"));
            return Err(error.into());
        }
        self.buffers[buffer as usize].writes += 1;
        self.writes.push(Write { number: self.writes_begun, buffer, mode, range });
        if mode == WriteMode::Flushed {
            self.unsynced_writes += 1;
        }
        Ok(())
    }
}
