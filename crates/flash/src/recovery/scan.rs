//! What one segment holds, found out from its own bytes.

use entresol_device::IoBuffer;
use entresol_planted::planted;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    FOOTER_ENTRY_BYTES, FooterEntry, PieceName, RECORD_ALIGNMENT, RECORD_HEADER_BYTES,
    RECORD_HEADER_BYTES_MAX, RecordHeader, RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader,
    TRAILER_BYTES, Trailer, decode_footer,
};
use crate::record::{HashSeed, Payloads, Wanted, hash_key};
use crate::shard::Shard;
use crate::types::Key;
use crate::unreadable::{Gaps, read_around};

/// Everything a scan of a segment's records needs.
pub(crate) struct Scanner<'a> {
    pub payloads: &'a Payloads,
    pub hash_seed: HashSeed,
    pub shard: u16,
}

impl<'a> Scanner<'a> {
    /// For the segments of `shard`, whose payloads are `payloads`.
    pub(crate) fn of(shard: &Shard, payloads: &'a Payloads) -> Scanner<'a> {
        Scanner { payloads, hash_seed: shard.hash_seed(), shard: shard.log.shape().shard }
    }

    /// The records of the segment in `bytes` that verify, from front to back, up to the first
    /// header that does not, and where that one is. After a power loss a gap may precede records
    /// that were never acknowledged.
    pub(crate) fn scan(&self, bytes: &[u8], header: &SegmentHeader) -> (Vec<FooterEntry>, usize) {
        let mut entries = Vec::new();
        let mut at = SEGMENT_HEADER_BYTES.next_multiple_of(RECORD_ALIGNMENT);
        let mut scratch = Vec::new();
        let limit = bytes.len() - TRAILER_BYTES;
        while let Some(rest) = bytes.get(at..limit) {
            let Some(record) = RecordHeader::decode(rest) else { break };
            let length = record.record_bytes();
            if record.generation != header.sequence as u32
                || length > rest.len()
                || record.flags.kind == RecordKind::Journal
            {
                break;
            }
            let end = at + length.next_multiple_of(RECORD_ALIGNMENT);
            if record.flags.kind != RecordKind::Padding {
                if end + (entries.len() + 1) * FOOTER_ENTRY_BYTES > limit {
                    break;
                }
                // The header verifies, so the next record's place is known even if this one is
                // torn.
                entries.extend(self.entry(at as u32, rest, &record, &mut scratch));
            }
            at = end;
        }
        (entries, at)
    }

    /// The entries of a footer whose records verify, or cannot be read: of those whoever reads them
    /// is told.
    pub(crate) fn checked(
        &self,
        bytes: &[u8],
        gaps: &Gaps,
        header: &SegmentHeader,
        footer: Vec<FooterEntry>,
    ) -> Vec<FooterEntry> {
        let mut scratch = Vec::new();
        let holds = |entry: &FooterEntry| {
            let rest = bytes.get(entry.offset as usize..).unwrap_or_default();
            RecordHeader::decode(rest).is_some_and(|record| {
                record.generation == header.sequence as u32
                    && self.entry(entry.offset, rest, &record, &mut scratch).as_ref() == Some(entry)
            })
        };
        let mut holds = holds;
        let unread = |entry: &FooterEntry| {
            let start = entry.offset as usize;
            gaps.touch(&(start..start + entry.record_bytes as usize))
        };
        let left_out = planted!("unreadable-record-left-out");
        footer.into_iter().filter(|entry| (unread(entry) && !left_out) || holds(entry)).collect()
    }

    /// The footer entry of the record at the start of `rest`, if all of it verifies.
    fn entry(
        &self,
        offset: u32,
        rest: &[u8],
        record: &RecordHeader,
        scratch: &mut Vec<u8>,
    ) -> Option<FooterEntry> {
        let wanted = Wanted::any(u64::from(record.generation));
        let found = self.payloads.open(self.shard, rest, wanted, scratch).ok()?;
        let hash = if record.flags.kind == RecordKind::Piece {
            PieceName { value: record.version, ..PieceName::of_key(found.key)? }.hash()
        } else {
            let key = Key { space: record.space, partition: record.partition, bytes: found.key };
            hash_key(self.hash_seed, key)
        };
        Some(FooterEntry {
            hash,
            sequence: record.sequence,
            offset,
            flags: record.flags,
            record_bytes: record.record_bytes() as u32,
            ends_seconds: record.ends_seconds(),
            space: record.space,
            partition: record.partition,
        })
    }
}

/// Writes footer and trailer for `entries` into `bytes`: what `seal` would have written. Nothing
/// else changes in the sync units (of `unit` bytes) that hold `entries`.
pub(crate) fn seal_image(
    bytes: &mut [u8],
    unit: u32,
    header: &SegmentHeader,
    entries: &[FooterEntry],
) -> u64 {
    let footer: Vec<u8> = entries.iter().flat_map(FooterEntry::encode).collect();
    let end = |e: &FooterEntry| e.offset + e.aligned_bytes();
    let used_bytes = entries.last().map_or(SEGMENT_HEADER_BYTES as u32, end);
    let age_sum: u128 = entries.iter().map(|e| u128::from(e.sequence)).sum();
    let age = (age_sum / entries.len().max(1) as u128) as u64;
    let trailer = Trailer {
        sequence: header.sequence,
        entries: entries.len() as u32,
        used_bytes,
        footer_crc: crc32c::crc32c(&footer),
        age,
    };
    let trailer_at = bytes.len() - TRAILER_BYTES;
    let footer_at = trailer_at - footer.len();
    let gap_at = (used_bytes.next_multiple_of(unit) as usize).min(footer_at);
    bytes[gap_at..footer_at].fill(0);
    bytes[footer_at..trailer_at].copy_from_slice(&footer);
    trailer.encode(&mut bytes[trailer_at..]);
    age
}

/// A trailer and what it vouches for.
pub(crate) type Footer = (Trailer, Vec<FooterEntry>);

/// Takes apart a whole segment in memory: its header, and its footer if that verifies.
pub(crate) fn parse(
    bytes: &[u8],
    store: u64,
    shard: u16,
) -> Option<(SegmentHeader, Option<Footer>)> {
    let header = SegmentHeader::decode(bytes)?;
    if header.store != store || header.shard != shard {
        return None;
    }
    let trailer = Trailer::decode_end(bytes).filter(|t| t.sequence == header.sequence);
    let footer = trailer.and_then(|t| Some((t, decode_footer(&t, bytes, bytes.len() as u32)?)));
    Some((header, footer))
}

/// A segment as far as the device gives it; zeros where it does not.
pub(crate) struct Whole {
    pub bytes: IoBuffer,
    pub gaps: Gaps,
    /// Bytes from its beginning on that need not be written again where they are as they should.
    pub confirmed: usize,
    pub source: Source,
}

/// Where the bytes of a segment are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Device,
    /// The write buffer of a former process. A device that is only read has them laid over it.
    Buffer,
}

/// Reads a whole segment.
pub(crate) fn read_whole(shard: &Shard, segment: u32) -> Result<Whole> {
    let mut bytes = IoBuffer::aligned(shard.log.shape().segment_bytes as usize);
    let offset = shard.log.shape().offset_of(segment);
    let gaps = read_around(&**shard.log.device(), offset, &mut bytes)?;
    let confirmed = bytes.len();
    Ok(Whole { bytes, gaps, confirmed, source: Source::Device })
}

/// The records of a segment without a footer. An error if they lead to what cannot be read: what
/// stands there and behind it may have been acknowledged.
pub(crate) fn scan_whole(
    shard: &Shard,
    segment: u32,
    header: &SegmentHeader,
    whole: &Whole,
) -> Result<Vec<FooterEntry>> {
    let (entries, end) = Scanner::of(shard, shard.payloads()).scan(&whole.bytes, header);
    match whole.gaps.first_before(end + RECORD_HEADER_BYTES_MAX) {
        None => Ok(entries),
        Some(gap) => Err(unreadable(shard, segment, gap, "which records follow is not known")),
    }
}

/// The error that `at`, bytes of a segment, cannot be read and that recovery cannot do without.
pub(crate) fn unreadable(
    shard: &Shard,
    segment: u32,
    at: std::ops::Range<usize>,
    why: &str,
) -> Error {
    let shape = &shard.log.shape();
    let start = shape.offset_of(segment);
    let detail = format!(
        "bytes {} to {} of {} (segment {segment} of shard {}) cannot be read: {why}, so the store \
         is not opened; bring these bytes back from a copy of the device, or write zeros over them \
         to open it without the entries that stood there",
        start + at.start as u64,
        start + at.end as u64,
        shard.log.device().name(),
        shape.shard,
    );
    Error::new(ErrorKind::Io, detail)
}

const _: () = assert!(FOOTER_ENTRY_BYTES == 40 && RECORD_HEADER_BYTES == 32, "the format's sizes");
