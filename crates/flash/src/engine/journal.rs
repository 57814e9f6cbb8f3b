//! The journal of a store: a lane in each shard, appended to, cut, and replayed by whole segments.

use entresol_device::IoBuffer;

use super::ahead::Ahead;
use super::{Engine, Waits};
use crate::error::{Error, ErrorKind, Result};
use crate::format::FORMAT_VERSION;
use crate::log::{JournalReader, JournalSegment, Log};
use crate::segment::Segment;
use crate::shard::Appended;
use crate::types::{JournalAppend, JournalRecord, JournalSequence, Timestamp};

/// What a replay visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalReplay {
    /// Segments read.
    pub segments: u64,
    /// Records visited.
    pub records: u64,
    /// Bytes of theirs.
    pub bytes: u64,
}

/// How a lane of the journal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalState {
    /// Segments that it takes.
    pub segments: u32,
    /// Segments that it may take: with all of them full, appends are refused but for those that go
    /// beyond.
    pub segments_max: u32,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Bytes filled of the segments that it takes.
    pub bytes: u64,
    /// Records below this are superseded.
    pub watermark: JournalSequence,
}

/// Segments that are given out together take so many bytes, where each is not longer.
const TOGETHER_BYTES: usize = 4 << 20;
/// So many they are at least and at most.
const TOGETHER_MIN: usize = 2;
const TOGETHER_MAX: usize = 16;

/// A segment of the journal that a replay has read. Several can be visited at the same time.
pub struct JournalRead<'e> {
    reader: JournalReader<'e>,
    bytes: IoBuffer,
    /// Where its records end, as far as is known, and where a visit found their end.
    end: usize,
    walked: Option<usize>,
    first: JournalSequence,
    records: u64,
    value_bytes: u64,
}

impl<'e> JournalRead<'e> {
    fn new(reader: JournalReader<'e>, bytes: IoBuffer, end: usize, first: JournalSequence) -> Self {
        JournalRead { reader, bytes, end, walked: None, first, records: 0, value_bytes: 0 }
    }

    /// Visits the records of the segment, in their order, up to the first that does not verify: the
    /// replay says so when whoever has the segments returns.
    pub fn visit(&mut self, visit: &mut dyn FnMut(JournalRecord<'_>)) {
        let (mut records, mut value_bytes) = (0, 0);
        let first = self.first;
        let mut take = |record: JournalRecord<'_>| {
            if record.sequence >= first {
                records += 1;
                value_bytes += record.bytes.len() as u64;
                visit(record);
            }
        };
        self.walked = Some(self.reader.walk(&self.bytes, self.end, &mut take));
        (self.records, self.value_bytes) = (records, value_bytes);
    }

    /// Where the records end that verify.
    fn walked(&mut self) -> usize {
        if self.walked.is_none() {
            self.visit(&mut |_| {});
        }
        self.walked.unwrap_or_default()
    }
}

/// A segment of the journal as it was under the lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub of: JournalSegment,
    pub row: Segment,
}

impl Engine {
    /// Appends to the journal; `None`: the device has still to answer.
    pub(crate) fn append_journal(
        &self,
        append: &JournalAppend<'_>,
        now: Timestamp,
        waits: Waits,
    ) -> Result<Option<Appended>> {
        let lane = self.lane(append.lane)?;
        let continues = append.continues.map_or(0, |continues| continues.bytes.len());
        self.check_append(lane, append.bytes.len().max(continues))?;
        self.demand_format(FORMAT_VERSION)?;
        self.write_in_reserve(lane, now, waits, |shard| shard.append_journal(append))
    }

    /// Records of the lane below `below` are superseded, for good.
    pub(crate) fn trim_journal(&self, lane: u16, below: JournalSequence) -> Result<()> {
        self.check_open()?;
        self.shards[self.lane(lane)?].lock().trim_journal(below.0)
    }

    /// On return the segments that the lane released are free, and erased for good.
    pub(crate) fn free_journal(&self, lane: u16) -> Result<()> {
        let number = self.lane(lane)?;
        self.sync_shard(number)?;
        self.free_released(number)?;
        Ok(self.device.sync()?)
    }

    pub(crate) fn journal_state(&self, lane: u16) -> Result<JournalState> {
        let shard = self.shards[self.lane(lane)?].lock();
        let (shape, journal) = (shard.log.shape(), shard.log.journal());
        let filled = |one: &JournalSegment| u64::from(shard.log.segment(one.segment).used_bytes);
        Ok(JournalState {
            segments: journal.segments().len() as u32,
            segments_max: shape.journal_segments,
            segment_bytes: shape.segment_bytes,
            bytes: journal.segments().map(filled).sum(),
            watermark: JournalSequence(journal.watermark()),
        })
    }

    /// Most bytes of a record of the journal.
    pub(crate) fn journal_bytes_max(&self) -> usize {
        self.shards.first().map_or(0, |shard| shard.lock().journal_bytes_max())
    }

    /// Visits the records of a lane from the watermark on.
    pub(crate) fn replay_journal(
        &self,
        lane: u16,
        visit: &mut dyn FnMut(JournalRecord<'_>),
    ) -> Result<JournalReplay> {
        let watermark = self.shards[self.lane(lane)?].lock().log.journal().watermark();
        self.replay_from(lane, JournalSequence(watermark), visit)
    }

    /// Visits the records of a lane from the sequence `first` on that have not been released.
    pub(super) fn replay_from(
        &self,
        lane: u16,
        first: JournalSequence,
        visit: &mut dyn FnMut(JournalRecord<'_>),
    ) -> Result<JournalReplay> {
        self.replay_reads(lane, Some(first), 1, &mut |reads| {
            reads.iter_mut().for_each(|read| read.visit(visit));
        })
    }

    /// Reads a lane from its watermark on, and gives out what it has read, some segments at a time.
    pub(crate) fn replay_together(
        &self,
        lane: u16,
        take: &mut dyn FnMut(&mut [JournalRead<'_>]),
    ) -> Result<JournalReplay> {
        let segment_bytes = self.options.segment_bytes as usize;
        let together = (TOGETHER_BYTES / segment_bytes).clamp(TOGETHER_MIN, TOGETHER_MAX);
        self.replay_reads(lane, None, together, take)
    }

    /// Reads a lane from the sequence `first` on, or from its watermark on.
    fn replay_reads(
        &self,
        lane: u16,
        first: Option<JournalSequence>,
        together: usize,
        take: &mut dyn FnMut(&mut [JournalRead<'_>]),
    ) -> Result<JournalReplay> {
        let number = self.lane(lane)?;
        let (first, stretches): (_, Vec<_>) = {
            let shard = self.shards[number].lock();
            let row = |of: &JournalSegment| *shard.log.segment(of.segment);
            let journal = shard.log.journal();
            let first = first.unwrap_or(JournalSequence(journal.watermark()));
            (first, journal.segments().map(|of| Stretch { of: *of, row: row(of) }).collect())
        };
        let gap = stretches.windows(2).position(|two| two[0].of.ordinal + 1 != two[1].of.ordinal);
        let whole = gap.map_or(stretches.len(), |at| at + 1);
        let mut replay = JournalReplay::default();
        let mut ahead = Ahead::new(self, number, &stretches[..whole], together)?;
        for round in stretches[..whole].chunks(together) {
            let mut reads = Vec::with_capacity(round.len());
            for stretch in round {
                let Some(bytes) = ahead.next()? else { break };
                let sequence = stretch.row.sequence;
                let reader = JournalReader { payloads: &self.payloads, shard: lane, sequence };
                let end = stretch.row.used_bytes as usize;
                reads.push(JournalRead::new(reader, bytes, end, first));
            }
            // The device reads the next ones while somebody looks at these.
            ahead.begin()?;
            take(&mut reads);
            for (read, stretch) in reads.iter_mut().zip(round) {
                let walked = read.walked();
                replay.segments += 1;
                replay.records += read.records;
                replay.bytes += read.value_bytes;
                let is_short = walked < stretch.row.used_bytes as usize || stretch.of.cut_short;
                if is_short && self.stands(number, *stretch) {
                    let what = format!("what stands at offset {walked} of it does not verify");
                    return Err(self.lost(number, stretch.of, &what));
                }
            }
        }
        match gap {
            Some(at) => {
                let after = stretches[at + 1].of;
                Err(self.lost(number, after, "a segment before it is missing"))
            }
            None => Ok(replay),
        }
    }

    /// Whether the segment is the journal's yet: it may have been trimmed while it was read.
    fn stands(&self, number: usize, stretch: Stretch) -> bool {
        let shard = self.shards[number].lock();
        let same = |one: &JournalSegment| one.segment == stretch.of.segment;
        shard.log.journal().segments().any(same)
            && shard.log.segment(stretch.of.segment).sequence == stretch.row.sequence
    }

    /// The number of the shard that has the lane.
    fn lane(&self, lane: u16) -> Result<usize> {
        if usize::from(lane) < self.shards.len() {
            return Ok(usize::from(lane));
        }
        let detail =
            format!("lane {lane} of the journal; one below {} expected", self.shards.len());
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    fn check_append(&self, number: usize, bytes: usize) -> Result<()> {
        let shard = self.shards[number].lock();
        let most = shard.journal_bytes_max();
        let detail = if shard.log.shape().journal_segments == 0 {
            "a record for the journal of a store that was opened with `journal_bytes` of 0; open \
             it with more"
                .to_owned()
        } else if bytes > most {
            format!("a record of {bytes} bytes for the journal; at most {most} expected")
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    fn lost(&self, number: usize, of: JournalSegment, what: &str) -> Error {
        let log: &Log = &self.shards[number].lock().log;
        let at = log.shape().offset_of(of.segment);
        let detail = format!(
            "the journal of shard {number} is damaged at segment {} (byte {at} of {}): {what}; the \
             medium returned other bytes than were written; what was appended behind may be lost, \
             until the journal is trimmed past it",
            of.segment,
            self.device.name()
        );
        Error::new(ErrorKind::Corrupt, detail)
    }
}
