//! What a crash left of the journal of a shard: its segments, the last of them up to the first
//! tear.
//!
//! A segment was opened only once the one before it was durable, so only the last can be torn: it
//! is sealed where it ends. Any other, or what a later record says was durable, was damaged where
//! it does not verify: it stays as it is, and whoever replays it is told.

use entresol_device::IoBuffer;

use super::context::Context;
use super::scan::{Source, Whole, read_whole, unreadable};
use super::survey::{Images, put_back};
use crate::error::Result;
use crate::format::{RECORD_HEADER_BYTES_MAX, SegmentHeader, TRAILER_BYTES, Trailer};
use crate::log::{JournalReader, JournalSegment, JournalTable};
use crate::segment::{Segment, Stream};
use crate::shard::Shard;
use crate::unreadable::Gaps;

/// What stands at the ends of a segment of the journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub segment: u32,
    pub header: SegmentHeader,
    pub trailer: Option<Trailer>,
}

/// A journal as it was found.
#[derive(Debug, Default)]
pub(super) struct FoundJournal {
    rows: Vec<(u32, Segment)>,
    table: JournalTable,
    /// The highest sequence of a record.
    pub highest: u64,
}

impl FoundJournal {
    /// Puts what was found where the shard keeps it. Records of the shard have no higher sequence
    /// than `highest`.
    pub(super) fn apply(mut self, shard: &mut Shard, highest: u64) {
        if let Some(last) = self.table.segments.last().filter(|last| last.cut_short) {
            // What is lost of it ends there at most.
            let row = self.rows.iter_mut().find(|(segment, _)| *segment == last.segment);
            row.into_iter().for_each(|(_, row)| row.age = row.age.max(highest));
        }
        for (segment, row) in self.rows {
            shard.log.restore(segment, row);
        }
        shard.log.restore_journal(self.table);
    }
}

/// Finds out what is left of the journal whose segments have these `ends`. Segments below the
/// sequence `proven` were durable.
pub(super) fn recover(
    shard: &Shard,
    images: &Images,
    ends: Vec<Ends>,
    (proven, context): (u64, Context),
) -> Result<FoundJournal> {
    let ends = with_images(shard, images, ends);
    let mut found = FoundJournal::default();
    let mut parts: Vec<Part> = Vec::new();
    for (at, &(end, in_buffer)) in ends.iter().enumerate() {
        found.table.watermark = found.table.watermark.max(end.header.age);
        let sure = at + 1 < ends.len() || end.header.sequence < proven;
        let believed = (sure || context.same_boot) && !in_buffer;
        let mut part = match end.trailer.filter(|_| believed) {
            Some(trailer) => Part::sealed(end, trailer),
            None => Part::read(shard, end, whole_of(shard, images, (end, in_buffer))?, sure)?,
        };
        part.seal(shard, context)?;
        parts.push(part);
    }
    gather(&mut found, &parts);
    Ok(found)
}

/// A segment as the write buffer or the device has it.
fn whole_of(shard: &Shard, images: &Images, (end, in_buffer): (Ends, bool)) -> Result<Whole> {
    let image = images.get(&(shard.log.shape().shard, end.segment));
    let Some(image) = image.filter(|_| in_buffer) else { return read_whole(shard, end.segment) };
    Ok(Whole {
        bytes: copy_of(image.bytes()),
        gaps: Gaps::default(),
        confirmed: image.confirmed,
        source: Source::Buffer,
    })
}

/// The segments in their order, with what stood in write buffers of a former process in place of
/// what the device has of them; and whether it did.
fn with_images(shard: &Shard, images: &Images, mut ends: Vec<Ends>) -> Vec<(Ends, bool)> {
    let shape = shard.log.shape();
    let mut in_buffers = Vec::new();
    for ((of, segment), image) in images {
        let header = image.header().filter(|header| {
            *of == shape.shard && header.shard == shape.shard && header.store == shape.store
        });
        let Some(header) = header.filter(|_| *segment < shape.segments) else { continue };
        let newer = |end: &Ends| end.segment == *segment && end.header.sequence > header.sequence;
        if ends.iter().any(newer) {
            continue;
        }
        ends.retain(|end| end.segment != *segment);
        if header.stream == Stream::Journal as u8 {
            let trailer = Trailer::decode_end(image.bytes());
            let trailer = trailer.filter(|trailer| trailer.sequence == header.sequence);
            in_buffers.push((Ends { segment: *segment, header, trailer }, true));
        }
    }
    let mut all: Vec<(Ends, bool)> = ends.into_iter().map(|end| (end, false)).collect();
    all.append(&mut in_buffers);
    all.sort_unstable_by_key(|(end, _)| end.header.sequence);
    all
}

fn gather(found: &mut FoundJournal, parts: &[Part]) {
    for (at, part) in parts.iter().enumerate() {
        let SegmentHeader { sequence, ordinal, .. } = part.ends.header;
        let (segment, cut_short) = (part.ends.segment, part.cut_short);
        // What a damaged one lacks ends where the next one begins.
        let next = parts.get(at + 1).filter(|_| cut_short);
        let last = next.map_or(part.last, |next| next.ends.header.follows.max(part.last));
        found.rows.push((segment, JournalSegment::row(sequence, part.end, last)));
        found.table.segments.push(JournalSegment { segment, ordinal, cut_short });
        found.table.next_ordinal = ordinal + 1;
        found.highest = found.highest.max(last);
    }
    found.table.next_ordinal = found.table.next_ordinal.max(1);
}

/// One segment of the journal.
struct Part {
    ends: Ends,
    /// Where its records end.
    end: u32,
    /// The sequence of its last record.
    last: u64,
    cut_short: bool,
    /// Its bytes, where it is to be written anew.
    whole: Option<Whole>,
}

impl Part {
    /// One whose trailer is believed as it stands.
    fn sealed(ends: Ends, trailer: Trailer) -> Part {
        let (end, last) = (trailer.used_bytes, trailer.age);
        Part { ends, end, last, cut_short: false, whole: None }
    }

    /// One whose records were looked at. It was durable, if that is `sure`.
    fn read(shard: &Shard, ends: Ends, whole: Whole, sure: bool) -> Result<Part> {
        let shape = shard.log.shape();
        let sequence = ends.header.sequence;
        let payloads = shard.payloads();
        let reader = JournalReader { payloads, shard: shape.shard, sequence };
        let claimed = ends.trailer.map(|trailer| trailer.used_bytes as usize);
        let limit = claimed.unwrap_or(whole.bytes.len() - TRAILER_BYTES);
        let mut last = ends.header.follows;
        let end = reader.walk(&whole.bytes, limit, &mut |record| last = record.sequence.0);
        let lacks = claimed.is_none_or(|claimed| end < claimed);
        // A record behind the end may say that another one there was durable.
        let cut_short = lacks && (sure || reader.durable_by(&whole.bytes, end) > last);
        if let Some(gap) = whole.gaps.first_before(end + RECORD_HEADER_BYTES_MAX)
            && lacks
            && !cut_short
        {
            let why = "which records of the journal follow is not known";
            return Err(unreadable(shard, ends.segment, gap, why));
        }
        let whole = Some(whole).filter(|_| !cut_short);
        Ok(Part { ends, end: end as u32, last, cut_short, whole })
    }

    /// Writes it back with a trailer that says what was found, if the device lacks that.
    fn seal(&mut self, shard: &Shard, context: Context) -> Result<()> {
        let Some(mut whole) = self.whole.take() else { return Ok(()) };
        let unit = shard.log.shape().sync_unit;
        let trailer = Trailer {
            sequence: self.ends.header.sequence,
            entries: 0,
            used_bytes: self.end,
            footer_crc: crc32c::crc32c(&[]),
            age: self.last,
        };
        let trailer_at = whole.bytes.len() - TRAILER_BYTES;
        let gap_at = (self.end.next_multiple_of(unit) as usize).min(trailer_at);
        whole.bytes[gap_at..trailer_at].fill(0);
        trailer.encode(&mut whole.bytes[trailer_at..]);
        put_back(shard, self.ends.segment, whole, (self.end, context))
    }
}

fn copy_of(image: &[u8]) -> IoBuffer {
    let mut bytes = IoBuffer::aligned(image.len());
    bytes.copy_from_slice(image);
    bytes
}
