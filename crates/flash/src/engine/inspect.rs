//! Looking at a store as a whole: entries in the order of the log, verification, segments.

use entresol_device::IoBuffer;

use super::Engine;
use crate::error::{ErrorKind, Result};
use crate::format::{FooterEntry, PieceName, RecordKind};
use crate::index::{Place, SizeCode};
use crate::log::footer_of_whole;
use crate::notes::index_hash;
use crate::record::{Record, Wanted};
use crate::segment::{SegmentState, Stream};
use crate::shard::Shard;
use crate::types::{Entry, JournalSequence, SpaceId, Timestamp, Version};

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Segments read.
    pub segments: u64,
    /// Records read, those no longer live included.
    pub records: u64,
    /// Records that are live.
    pub live: u64,
    /// Records of the journal.
    pub journaled: u64,
    /// Live records that do not verify, and where the journal does not: sentences saying where.
    pub damaged: Vec<String>,
}

/// What a scan of the log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogScan {
    /// Entries visited.
    pub visited: u64,
    /// Live records that do not verify, and so were not: sentences saying where.
    pub damaged: Vec<String>,
}

/// A place in the log: what is appended from some moment on is behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPosition {
    /// Segments with lower sequences were sealed before.
    pub segment: u64,
    /// Highest versions that the shards had given before; 0 where a shard is not named.
    pub versions: Vec<u64>,
}

/// One segment, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Shard.
    pub shard: u16,
    /// Number within the shard.
    pub segment: u32,
    /// Device offset, bytes.
    pub offset: u64,
    /// Generation; 0: not in use.
    pub sequence: u64,
    /// `free`, `open`, `sealed`, …
    pub state: String,
    /// Bytes of live records.
    pub live_bytes: u32,
    /// Bytes of all records.
    pub used_bytes: u32,
    /// Bytes of its tombstones, which count as live.
    pub tombstone_bytes: u32,
}

/// Called with the engine, the record's hash and place, the record, and whether it is live. What is
/// `Corrupt` is noted; other errors end the visits.
type VisitRecord<'v> = &'v mut dyn FnMut(&Engine, (u128, Place), &Record<'_>, bool) -> Result<()>;

impl Engine {
    /// Visits every live entry, segment by segment in the order they were written: large reads,
    /// fast on any device. Entries that are put meanwhile, or moved by reclaim, may or may not be
    /// visited. Damaged records are noted, and the scan goes on.
    pub(crate) fn scan_log(
        &self,
        since: &LogPosition,
        now: Timestamp,
        visit: &mut dyn FnMut(SpaceId, Entry<'_>),
    ) -> Result<LogScan> {
        let mut visited = 0;
        let found =
            self.each_record(since.segment, &mut |engine, (hash, place), record, live| {
                let entry =
                    matches!(record.header.flags.kind, RecordKind::Value | RecordKind::Manifest);
                let before = since.versions.get(engine.shard_of(hash)).copied().unwrap_or(0);
                if !live
                    || !entry
                    || record.header.version <= before
                    || Shard::has_ended(record, now)
                {
                    return Ok(());
                }
                let Some(value) = engine.whole_value(hash, place, record)? else {
                    return Ok(());
                };
                visited += 1;
                visit(
                    record.header.space,
                    Entry {
                        key: record.key,
                        value: &value,
                        version: Version(record.header.version),
                        label: record.header.label,
                        expiry: record.expiry(),
                        pinning: record.pinning(),
                        found: None,
                    },
                );
                Ok(())
            })?;
        Ok(LogScan { visited, damaged: found.damaged })
    }

    /// Where the log goes on.
    pub(crate) fn log_position(&self) -> LogPosition {
        let mut position = LogPosition { segment: u64::MAX, versions: Vec::new() };
        for shard in &self.shards {
            let shard = shard.lock();
            let segment = shard.log.lowest_open();
            position.segment = position.segment.min(segment);
            position.versions.push(shard.sequence());
        }
        position
    }

    /// Reads every record of every segment and checks it; changes nothing.
    pub(crate) fn verify(&self) -> Result<Verification> {
        let mut found = Verification::default();
        let mut live = 0;
        let damaged = self.each_record(0, &mut |_, _, _, is_live| {
            live += u64::from(is_live);
            Ok(())
        })?;
        found.segments = damaged.segments;
        found.records = damaged.records;
        found.live = live;
        found.damaged = damaged.damaged;
        for lane in 0..self.options.shards {
            let mut journaled = 0;
            let replayed = self.replay_from(lane, JournalSequence(0), &mut |_| journaled += 1);
            found.journaled += journaled;
            match replayed {
                Ok(replay) => found.segments += replay.segments,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    found.damaged.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Every segment, in order of shard and number.
    pub(crate) fn segments(&self) -> Vec<SegmentInfo> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let shape = shard.log.shape();
            all.extend(shard.log.segments().iter().enumerate().map(|(number, s)| SegmentInfo {
                shard: shape.shard,
                segment: number as u32,
                offset: shape.offset_of(number as u32),
                sequence: s.sequence,
                state: format!("{:?}", s.state).to_lowercase(),
                // What is trimmed goes as a whole.
                live_bytes: match s.stream == Stream::Journal as u8 {
                    true => s.used_bytes,
                    false => s.live_bytes,
                },
                used_bytes: s.used_bytes,
                tombstone_bytes: s.tombstone_bytes,
            }));
        }
        all
    }

    /// Calls `visit` for each record that verifies of the segments from sequence `first` on, with
    /// its hash and whether it is live; says of
    /// live ones that do not verify where they are.
    fn each_record(&self, first: u64, visit: VisitRecord<'_>) -> Result<Verification> {
        let mut found = Verification::default();
        for (number, shard) in self.shards.iter().enumerate() {
            let shape = {
                let mut shard = shard.lock();
                if self.check_open().is_ok() {
                    shard.log.seal_all()?;
                }
                shard.log.shape()
            };
            let mut order: Vec<(u64, u32)> = {
                let shard = shard.lock();
                let sealed = shard.log.segments().iter().enumerate();
                let in_use = |s: &crate::segment::Segment| {
                    // Records of a victim that are not decided yet are nowhere else.
                    let states =
                        [SegmentState::Sealed, SegmentState::Reclaiming, SegmentState::Damaged];
                    s.sequence >= first && states.contains(&s.state)
                };
                sealed.filter(|(_, s)| in_use(s)).map(|(n, s)| (s.sequence, n as u32)).collect()
            };
            order.sort_unstable();
            let mut bytes = IoBuffer::aligned(shape.segment_bytes as usize);
            for (sequence, segment) in order {
                found.segments += 1;
                self.read_segment(number, segment, &mut bytes)?;
                let Some(footer) = footer_of_whole(&bytes, sequence) else {
                    self.note_lost_segment(number, segment, sequence, &mut found);
                    continue;
                };
                for entry in &footer {
                    self.each_of_segment(
                        (number, segment, sequence),
                        entry,
                        (&bytes, &mut found),
                        visit,
                    )?;
                }
            }
        }
        Ok(found)
    }

    fn each_of_segment(
        &self,
        (number, segment, sequence): (usize, u32, u64),
        entry: &FooterEntry,
        (bytes, found): (&[u8], &mut Verification),
        visit: VisitRecord<'_>,
    ) -> Result<()> {
        let shard = self.shards[number].lock();
        let address = shard.log.shape().address(segment, entry.offset);
        let live = match entry.flags.kind {
            RecordKind::Piece => shard.large.holds(PieceName::of_hash(entry.hash), address),
            _ => {
                let hidden = || shard.notes.hidden(entry.hash).any(|n| n.address == address);
                // It may be in use anew by now, with another record of the key at that place.
                shard.segment_sequence(address) == sequence
                    && (shard.index.contains(index_hash(entry.hash), address) || hidden())
                    && shard.floor_of(entry.owner()) <= sequence
            }
        };
        drop(shard);
        found.records += 1;
        let mut scratch = Vec::new();
        let rest = bytes.get(entry.offset as usize..).unwrap_or_default();
        let wanted = Wanted::any(sequence);
        match self.payloads.open(number as u16, rest, wanted, &mut scratch) {
            Ok(record) => {
                let size = SizeCode::covering(u64::from(entry.record_bytes));
                match visit(self, (entry.hash, Place { address, size }), &record, live) {
                    Err(error) if error.kind() == ErrorKind::Corrupt => {
                        found.damaged.push(error.to_string());
                        Ok(())
                    }
                    ended => ended,
                }
            }
            Err(mismatch) => {
                if live {
                    let shard = self.shards[number].lock();
                    let sentence = crate::shard::damaged(&shard.log, address, mismatch).to_string();
                    found.damaged.push(sentence);
                }
                Ok(())
            }
        }
    }

    fn note_lost_segment(
        &self,
        number: usize,
        segment: u32,
        sequence: u64,
        found: &mut Verification,
    ) {
        let shard = self.shards[number].lock();
        let row = *shard.log.segment(segment);
        if row.sequence == sequence && row.live_bytes > 0 {
            found.damaged.push(format!(
                "segment {segment} of shard {number} (byte {}) has no footer that verifies; {} \
                 bytes in it are live",
                shard.log.shape().offset_of(segment),
                row.live_bytes
            ));
        }
    }
}
