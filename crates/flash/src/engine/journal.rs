//! The journal of a store: a lane in each shard, appended to, cut, and replayed by whole segments.

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
    /// Segments that it may take: with all of them full, appends are refused.
    pub segments_max: u32,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Bytes filled of the segments that it takes.
    pub bytes: u64,
    /// Records below this are superseded.
    pub watermark: JournalSequence,
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
        let number = self.lane(lane)?;
        let stretches: Vec<_> = {
            let shard = self.shards[number].lock();
            let row = |of: &JournalSegment| *shard.log.segment(of.segment);
            let journal = shard.log.journal().segments();
            journal.map(|of| Stretch { of: *of, row: row(of) }).collect()
        };
        let mut replay = JournalReplay::default();
        let mut ahead = Ahead::new(self, number, &stretches)?;
        let mut before: Option<JournalSegment> = None;
        for &stretch in &stretches {
            if before.is_some_and(|before| before.ordinal + 1 != stretch.of.ordinal) {
                return Err(self.lost(number, stretch.of, "a segment before it is missing"));
            }
            before = Some(stretch.of);
            let Some(bytes) = ahead.next()? else { break };
            replay.segments += 1;
            let mut take = |record: JournalRecord<'_>| {
                if record.sequence >= first {
                    replay.records += 1;
                    replay.bytes += record.bytes.len() as u64;
                    visit(record);
                }
            };
            let sequence = stretch.row.sequence;
            let reader = JournalReader { payloads: &self.payloads, shard: lane, sequence };
            let end = stretch.row.used_bytes as usize;
            let walked = reader.walk(&bytes, end, &mut take);
            if (walked < end || stretch.of.cut_short) && self.stands(number, stretch) {
                let what = format!("what stands at offset {walked} of it does not verify");
                return Err(self.lost(number, stretch.of, &what));
            }
        }
        Ok(replay)
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
