//! Which segments are in use, and what each of them holds.
//!
//! Footers that are believed as they stand are kept as their words, one copy after they were read;
//! those of segments that had to be read record by record are kept as entries.

use std::collections::HashMap;
use std::sync::Arc;

use entresol_device::{Completion, IoBuffer, Queue, QueueOptions, Table, WriteBuffer};
use entresol_planted::planted;

use super::again::Again;
use super::context::{Context, PASS_BYTES, scratch_table};
use super::footers::{Found, Lines, copy_lines};
use super::intake::Intake;
use super::journal::{self, FoundJournal};
use super::scan::{Scanner, Source, Whole, parse, read_whole, scan_whole, seal_image, unreadable};
use crate::error::Result;
use crate::format::{
    FOOTER_ENTRY_BYTES, FooterEntry, FooterLine, LINE_WORDS, SegmentHeader, TRAILER_BYTES, Trailer,
};
use crate::log::footer_of;
use crate::segment::{SegmentState, Stream};
use crate::shard::Shard;
use crate::unreadable::{Gaps, read_around};

/// Most that is read from a segment's end in one request; the rest of a longer footer follows.
const TAIL_BYTES_MAX: usize = 512 << 10;
/// Read from a segment's start.
const HEAD_BYTES: usize = 4096;
/// Reads in flight, at least and at most.
const DEPTH_MIN: usize = 8;
const DEPTH_MAX: usize = 256;
/// Segments from which the others are guessed.
const SAMPLE: u32 = 64;
/// A device reads so many bytes more in about the time that another request takes.
const REQUEST_BYTES: usize = 16 << 10;

/// Copies of segments that stood in write buffers of a former process, by shard and segment.
pub(crate) type Images = HashMap<(u16, u32), Image>;

/// A copy of a segment that stood in a write buffer of a former process.
pub(crate) struct Image {
    pub buffer: WriteBuffer,
    /// Bytes from its beginning on that the device is known to hold. What it shows of others may
    /// be of a write that failed, and be gone later.
    pub confirmed: usize,
}

impl Image {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    pub(crate) fn header(&self) -> Option<SegmentHeader> {
        SegmentHeader::decode(self.bytes())
    }
}

/// What a shard's segments hold.
pub(super) struct Survey {
    pub found: Vec<Found>,
    pub journal: FoundJournal,
    kept: Kept,
}

impl Survey {
    /// Memory that footers take, bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept.words.len() as u64 * 8
    }

    /// Visits the lines of all footers not yet taken in, with the number of their segment.
    pub(super) fn for_each_line(
        &self,
        shard: &Shard,
        mut visit: impl FnMut(u32, FooterLine),
    ) -> Result<()> {
        let kept = self.kept.words.as_chunks::<LINE_WORDS>().0;
        let mut again = Again::new();
        for segment in &self.found {
            let number = segment.segment;
            match &segment.lines {
                Lines::Taken => {}
                Lines::Kept(first) => {
                    let lines = &kept[*first..*first + segment.count as usize];
                    lines.iter().for_each(|words| visit(number, FooterLine(*words)));
                }
                Lines::Own(entries) => {
                    entries.iter().for_each(|entry| visit(number, FooterLine::of(entry)));
                }
                Lines::Unread | Lines::Damaged => {
                    again.for_each_line(shard, segment, |line| visit(number, line))?;
                }
            }
        }
        Ok(())
    }
}

/// What a shard may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// About how many records there are.
    pub records: u64,
    /// How much of each segment's end is read at first.
    tail_bytes: usize,
    /// Memory for reads in flight.
    flight_bytes: usize,
    /// Memory for footers that are kept.
    kept_bytes: u64,
}

/// Guesses from the trailers of some segments, evenly spaced, what all of them hold.
pub(super) fn sample(shard: &Shard, (context, room_bytes): (Context, u64)) -> Result<Sample> {
    let shape = shard.log.shape();
    let count = SAMPLE.min(shape.segments);
    let options = QueueOptions { depth: SAMPLE as usize, buffer_bytes: HEAD_BYTES };
    let mut queue = shard.log.device().queue(options)?;
    for number in 0..count {
        let segment = u64::from(number) * u64::from(shape.segments) / u64::from(count);
        let end = shape.offset_of(segment as u32) + u64::from(shape.segment_bytes);
        queue.read(segment, end - HEAD_BYTES as u64, HEAD_BYTES)?;
    }
    let mut completions: Vec<Completion> = Vec::new();
    queue.reap(count as usize, &mut completions)?;
    let (mut entries, mut regions) = (0, Vec::new());
    for completion in completions.into_iter().filter(|completion| completion.result.is_ok()) {
        let trailer = completion.buffer.and_then(|tail| Trailer::decode_end(&tail));
        let plausible = |t: &Trailer| t.region_bytes() <= shape.segment_bytes as usize;
        if let Some(trailer) = trailer.filter(plausible) {
            entries += u64::from(trailer.entries);
            regions.push(trailer.region_bytes().next_multiple_of(HEAD_BYTES));
        }
    }
    let records = entries * u64::from(shape.segments) / u64::from(count.max(1));
    let flight_bytes = context.flight_bytes(shard.limits());
    // A quarter of what there is for the survey may be footers; what is not kept is read again.
    let kept_bytes = match 2 * FOOTER_ENTRY_BYTES as u64 * records <= room_bytes {
        true => room_bytes / 2,
        false => 0,
    };
    let tail_bytes = tail_bytes(&regions, count as usize);
    Ok(Sample { records, tail_bytes, flight_bytes, kept_bytes })
}

/// How much of each segment's end should be read at first where `regions` are what the footers of
/// some of `count` segments take: the rest of a longer one costs another request, and what is
/// beyond a shorter one is read in vain.
fn tail_bytes(regions: &[usize], count: usize) -> usize {
    let cost = |tail: usize| {
        let rests = regions.iter().filter(|region| **region > tail);
        count * tail + rests.map(|region| region - tail + REQUEST_BYTES).sum::<usize>()
    };
    regions.iter().copied().min_by_key(|tail| (cost(*tail), *tail)).unwrap_or(HEAD_BYTES)
}

/// Looks at every segment: which are in use, and what those without a footer hold. What is believed
/// as it stands goes into `taken`, where given.
pub(super) fn survey(
    shard: &Shard,
    images: &Images,
    (context, sample): (Context, Sample),
    taken: Option<&mut Intake>,
) -> Result<Survey> {
    let mut ends = Ends::new(shard, images, sample, taken)?;
    ends.read()?;
    let Ends { mut found, mut unsealed, journal, kept, .. } = ends;
    let proven = found.iter().map(|f| f.header.proven_below);
    let proven = proven.chain(unsealed.iter().map(|(_, h)| h.proven_below));
    let proven = proven.chain(journal.iter().map(|ends| ends.header.proven_below));
    let proven = proven.max().unwrap_or(0);
    // Where a buffer has a later use of a segment, what the device has of an earlier one is over.
    let over = |segment: u32, header: &SegmentHeader| {
        let image = images.get(&(shard.log.shape().shard, segment)).and_then(Image::header);
        image.is_some_and(|image| {
            image.stream == Stream::Journal as u8 && image.sequence > header.sequence
        })
    };
    found.retain(|found| !over(found.segment, &found.header));
    unsealed.retain(|(segment, header)| !over(*segment, header));
    let journal = journal::recover(shard, images, journal, (proven, context))?;
    let payloads = Arc::clone(shard.payloads());
    let scanner = Scanner::of(shard, &payloads);
    for segment in &mut found {
        let unproven = segment.header.sequence >= proven && !context.same_boot;
        if unproven || matches!(segment.lines, Lines::Damaged) {
            check_whole(shard, segment, (&scanner, context), sample.kept_bytes > 0)?;
        }
    }
    for (segment, header) in unsealed {
        let image = images.get(&(shard.log.shape().shard, segment));
        let image = image.and_then(|image| SegmentHeader::decode(image.bytes()));
        if image.is_some_and(|image| image.sequence > header.sequence) {
            continue;
        }
        let whole = read_whole(shard, segment)?;
        if image.is_some_and(|image| image == header) && !whole.gaps.is_empty() {
            // What cannot be read stands in the write buffer.
            continue;
        }
        let entries = scan_whole(shard, segment, &header, &whole)?;
        found.push(sealed(shard, segment, (header, entries), whole, context)?);
    }
    adopt_images(shard, images, &mut found, (&scanner, context))?;
    found.retain(|f| f.count > 0);
    Ok(Survey { found, journal, kept })
}

/// Reads a sealed segment whole and keeps the entries that verify. A footer that says more is
/// written anew: the next recovery would believe it.
fn check_whole(
    shard: &Shard,
    segment: &mut Found,
    (scanner, context): (&Scanner<'_>, Context),
    keeps: bool,
) -> Result<()> {
    let whole = read_whole(shard, segment.segment)?;
    let header = &segment.header;
    let (entries, kept) = match footer_of(&whole.bytes, header.sequence) {
        Some(footer) => {
            let before = footer.len();
            let entries = scanner.checked(&whole.bytes, &whole.gaps, header, footer);
            let kept = entries.len() == before;
            (entries, kept)
        }
        None => (scan_whole(shard, segment.segment, header, &whole)?, false),
    };
    segment.count = entries.len() as u32;
    if kept {
        // What the device says is right, and read again where there is no memory for all.
        segment.lines = if keeps { Lines::Own(entries) } else { Lines::Unread };
        return Ok(());
    }
    let found = (segment.header, entries);
    *segment = sealed(shard, segment.segment, found, whole, context)?;
    Ok(())
}

/// Segments whose newest bytes stood in write buffers that outlived the process. The device may
/// lack some of what the buffer has: a write that was under way when the process ended.
fn adopt_images(
    shard: &Shard,
    images: &Images,
    found: &mut Vec<Found>,
    (scanner, context): (&Scanner<'_>, Context),
) -> Result<()> {
    let shape = shard.log.shape();
    for ((_, segment), image) in images.iter().filter(|((s, _), _)| *s == shape.shard) {
        let confirmed = if planted!("unconfirmed-believed") { usize::MAX } else { image.confirmed };
        let image = image.bytes();
        let whole = confirmed >= image.len();
        let Some((header, footer)) = parse(image, shape.store, shape.shard) else { continue };
        if *segment >= shape.segments || header.stream == Stream::Journal as u8 {
            continue;
        }
        let at = found.iter().position(|f| f.segment == *segment);
        if let Some(present) = at.map(|at| &found[at]) {
            let newer = present.header.sequence > header.sequence;
            let same = present.header == header && footer.is_some();
            if newer || whole && same && *read_whole(shard, *segment)?.bytes == *image {
                continue;
            }
        }
        let entries = match footer {
            Some((_, footer)) => scanner.checked(image, &Gaps::default(), &header, footer),
            None => scanner.scan(image, &header).0,
        };
        if let Some(at) = at {
            let present = (found[at].header.sequence, found[at].count);
            let is_checked = matches!(found[at].lines, Lines::Own(_));
            let held = (header.sequence, entries.len() as u32);
            if present > held || whole && present == held && is_checked {
                continue;
            }
            found.swap_remove(at);
        }
        let mut bytes = IoBuffer::aligned(image.len());
        bytes.copy_from_slice(image);
        let source = Source::Buffer;
        let whole = Whole { bytes, gaps: Gaps::default(), confirmed, source };
        found.push(sealed(shard, *segment, (header, entries), whole, context)?);
    }
    Ok(())
}

/// Writes a segment back with a footer for what it was found to hold. Confirmed units that are as
/// they should be are not written again: power may fail, and they may hold what was acknowledged.
fn sealed(
    shard: &Shard,
    segment: u32,
    (header, entries): (SegmentHeader, Vec<FooterEntry>),
    Whole { mut bytes, gaps, confirmed, source }: Whole,
    context: Context,
) -> Result<Found> {
    let unit = shard.log.shape().sync_unit;
    let age = seal_image(&mut bytes, unit, &header, &entries);
    let end = entries.last().map_or(0, |last| last.offset + last.aligned_bytes());
    if entries.is_empty() {
        bytes.fill(0);
    }
    let whole = Whole { bytes, gaps, confirmed, source };
    put_back(shard, segment, whole, (end, context))?;
    let count = entries.len() as u32;
    Ok(Found { segment, header, age, count, end, lines: Lines::Own(entries) })
}

/// Writes what differs of a segment whose records end at `end`, and what was not confirmed.
pub(super) fn put_back(
    shard: &Shard,
    segment: u32,
    Whole { mut bytes, gaps, confirmed, source }: Whole,
    (end, context): (u32, Context),
) -> Result<()> {
    if context.read_only && source != Source::Buffer {
        return Ok(());
    }
    let unit = shard.log.shape().sync_unit;
    let before = read_whole(shard, segment)?.bytes;
    // What could not be read among the records stays as it is: it may be readable by now.
    for gap in gaps.until(end.next_multiple_of(unit) as usize) {
        bytes[gap.clone()].copy_from_slice(&before[gap]);
    }
    let units = || before.chunks(unit as usize).zip(bytes.chunks(unit as usize)).enumerate();
    let differs = |(number, (is, should)): (usize, (&[u8], &[u8]))| {
        is != should || (number + 1) * unit as usize > confirmed
    };
    if let Some(first) = units().position(differs) {
        let last = units().rposition(differs).unwrap_or(first);
        let range = first * unit as usize..((last + 1) * unit as usize).min(bytes.len());
        let at = shard.log.shape().offset_of(segment) + range.start as u64;
        shard.log.device().write_at(at, &bytes[range])?;
    }
    Ok(())
}

/// Reads head and tail of every segment, many at a time, and keeps the footers.
struct Ends<'a> {
    shard: &'a Shard,
    images: &'a Images,
    queue: Box<dyn Queue>,
    tail_bytes: usize,
    waiting: HashMap<u32, Pair>,
    found: Vec<Found>,
    unsealed: Vec<(u32, SegmentHeader)>,
    journal: Vec<journal::Ends>,
    kept: Kept,
    taken: Option<&'a mut Intake>,
    /// The footer being taken in.
    footer: Vec<u64>,
}

/// The reads of one segment that are done.
#[derive(Default)]
struct Pair {
    head: Option<IoBuffer>,
    tail: Option<IoBuffer>,
    /// The part of a long footer that stands before the tail, and whose it is.
    rest: Option<(SegmentHeader, Trailer)>,
}

/// Which of a segment's reads a token stands for.
const HEAD: u64 = 0;
const TAIL: u64 = 1;
const REST: u64 = 2;

impl<'a> Ends<'a> {
    fn new(
        shard: &'a Shard,
        images: &'a Images,
        sample: Sample,
        taken: Option<&'a mut Intake>,
    ) -> Result<Ends<'a>> {
        let shape = shard.log.shape();
        let most = u64::from(shape.segments) * u64::from(shape.segment_bytes);
        let each = (sample.flight_bytes / DEPTH_MIN).next_multiple_of(HEAD_BYTES);
        let longest = TAIL_BYTES_MAX.min(shape.segment_bytes as usize).min(each);
        let tail_bytes = sample.tail_bytes.clamp(HEAD_BYTES, longest);
        let depth = (sample.flight_bytes / tail_bytes).clamp(DEPTH_MIN, DEPTH_MAX);
        Ok(Ends {
            shard,
            images,
            queue: shard.log.device().queue(QueueOptions { depth, buffer_bytes: tail_bytes })?,
            tail_bytes,
            waiting: HashMap::new(),
            found: Vec::new(),
            unsealed: Vec::new(),
            journal: Vec::new(),
            kept: Kept {
                words: scratch_table(most.min(PASS_BYTES).min(sample.kept_bytes))?,
                full: sample.kept_bytes == 0,
            },
            taken,
            footer: Vec::new(),
        })
    }

    fn read(&mut self) -> Result<()> {
        let shape = self.shard.log.shape();
        let mut completions: Vec<Completion> = Vec::new();
        let mut next = 0;
        while next < shape.segments || self.queue.in_flight() > 0 {
            // Of each segment two reads are in flight at most.
            while next < shape.segments && 2 * self.waiting.len() + 2 <= self.queue.depth() {
                let start = shape.offset_of(next);
                let end = start + u64::from(shape.segment_bytes);
                let tail = self.tail_bytes;
                self.queue.read(u64::from(next) * 4 + HEAD, start, HEAD_BYTES)?;
                self.queue.read(u64::from(next) * 4 + TAIL, end - tail as u64, tail)?;
                self.waiting.insert(next, Pair::default());
                next += 1;
            }
            self.queue.reap(1, &mut completions)?;
            for completion in completions.drain(..) {
                let (segment, which) = ((completion.token / 4) as u32, completion.token % 4);
                match (completion.result, completion.buffer) {
                    (Ok(()), Some(buffer)) => self.take(segment, which, buffer)?,
                    _ => self.read_again(segment, which)?,
                }
            }
        }
        Ok(())
    }

    /// Takes what is left of a read that failed, part by part. A segment can do without its footer,
    /// but without its header nobody knows whether it is in use.
    fn read_again(&mut self, segment: u32, which: u64) -> Result<()> {
        let shape = self.shard.log.shape();
        let start = shape.offset_of(segment);
        let tail = start + u64::from(shape.segment_bytes) - self.tail_bytes as u64;
        let rest = self.waiting.get(&segment).and_then(|pair| pair.rest.as_ref());
        let rest = rest.map_or(0, |(_, trailer)| self.rest_bytes(trailer));
        let (offset, length) = match which {
            HEAD => (start, HEAD_BYTES),
            TAIL => (tail, self.tail_bytes),
            _ => (tail - rest as u64, rest),
        };
        let mut buffer = IoBuffer::aligned(length.max(HEAD_BYTES));
        let gaps = read_around(&**self.shard.log.device(), offset, &mut buffer)?;
        if which == HEAD && !gaps.is_empty() {
            let sector = self.shard.log.device().geometry().sector_bytes as usize;
            let first =
                self.shard.log.device().read_at(start, &mut buffer[..sector.min(HEAD_BYTES)]);
            let holds_records = self.shard.log.segment(segment).state != SegmentState::Checkpoint;
            if first.is_err() && holds_records {
                let why = "whether the segment is in use is not known";
                return Err(unreadable(self.shard, segment, 0..sector, why));
            }
        }
        self.take(segment, which, buffer)
    }

    /// Bytes of the part of a footer that the tail did not reach.
    fn rest_bytes(&self, trailer: &Trailer) -> usize {
        (trailer.region_bytes() - self.tail_bytes).next_multiple_of(HEAD_BYTES)
    }

    /// Takes one read of a segment; with the last one, what the segment says.
    fn take(&mut self, segment: u32, which: u64, buffer: IoBuffer) -> Result<()> {
        let Some(mut pair) = self.waiting.remove(&segment) else { return Ok(()) };
        match which {
            HEAD => pair.head = Some(buffer),
            TAIL => pair.tail = Some(buffer),
            _ => {
                let Some(((header, trailer), tail)) = pair.rest.zip(pair.tail) else {
                    return Ok(());
                };
                self.keep((segment, header), &trailer, [&buffer, &tail]);
                return Ok(());
            }
        }
        let (Some(head), Some(tail)) = (&pair.head, &pair.tail) else {
            self.waiting.insert(segment, pair);
            return Ok(());
        };
        let shape = self.shard.log.shape();
        let header = SegmentHeader::decode(head)
            .filter(|h| h.segment == segment && h.store == shape.store && h.shard == shape.shard);
        let Some(header) = header else { return Ok(()) };
        let trailer = Trailer::decode_end(tail).filter(|t| {
            t.sequence == header.sequence && t.region_bytes() <= shape.segment_bytes as usize
        });
        if header.stream == Stream::Journal as u8 {
            let trailer = trailer.filter(|t| t.entries == 0 && t.used_bytes < shape.segment_bytes);
            self.journal.push(journal::Ends { segment, header, trailer });
            return Ok(());
        }
        let Some(trailer) = trailer else {
            self.unsealed.push((segment, header));
            return Ok(());
        };
        let region = trailer.region_bytes();
        if region <= tail.len() || self.kept.full && self.taken.is_none() {
            self.keep((segment, header), &trailer, [&[], tail]);
            return Ok(());
        }
        let rest = self.rest_bytes(&trailer);
        let end = shape.offset_of(segment) + u64::from(shape.segment_bytes) - tail.len() as u64;
        self.queue.read(u64::from(segment) * 4 + REST, end - rest as u64, rest)?;
        pair.rest = Some((header, trailer));
        self.waiting.insert(segment, pair);
        Ok(())
    }

    /// Notes a sealed segment, with its footer if that is at the end of `parts`.
    fn keep(
        &mut self,
        (segment, header): (u32, SegmentHeader),
        trailer: &Trailer,
        parts: [&[u8]; 2],
    ) {
        // A write buffer may have to say more of the segment.
        let doubtful = self.images.contains_key(&(self.shard.log.shape().shard, segment));
        let lines = match &mut self.taken {
            Some(intake) if !doubtful => {
                self.footer.resize((trailer.region_bytes() - TRAILER_BYTES) / 8, 0);
                let segment_bytes = self.shard.log.shape().segment_bytes;
                let lines = copy_lines(trailer, segment_bytes, parts, &mut self.footer);
                if let Lines::Kept(_) = lines {
                    let footer = self.footer.as_chunks::<LINE_WORDS>().0;
                    footer.iter().for_each(|words| intake.take(segment, FooterLine(*words)));
                    Lines::Taken
                } else {
                    lines
                }
            }
            _ => self.kept.add(trailer, self.shard.log.shape().segment_bytes, parts),
        };
        let (age, count, end) = (trailer.age, trailer.entries, trailer.used_bytes);
        self.found.push(Found { segment, header, age, count, end, lines });
    }
}

/// The footers kept, as words.
struct Kept {
    words: Table,
    full: bool,
}

impl Kept {
    /// Adds the footer that ends where the trailer at the end of both parts together starts.
    fn add(&mut self, trailer: &Trailer, segment_bytes: u32, parts: [&[u8]; 2]) -> Lines {
        let before = self.words.len();
        let after = before + (trailer.region_bytes() - TRAILER_BYTES) / 8;
        self.full |= self.words.grow(after).is_err();
        if self.full {
            return Lines::Unread;
        }
        match copy_lines(trailer, segment_bytes, parts, &mut self.words[before..]) {
            Lines::Kept(_) => Lines::Kept(before / LINE_WORDS),
            lines => lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The longest footer of a sample was what was read of each segment: a store of 2,300 segments
    // read 600 MB for 30 MB of footers, because some of them had small records alone.
    #[test]
    fn a_few_long_footers_do_not_make_all_reads_long() {
        let regions = [vec![16 << 10; 60], vec![480 << 10; 2]].concat();
        assert_eq!(tail_bytes(&regions, 64), 16 << 10);
        assert_eq!(tail_bytes(&[480 << 10; 64], 64), 480 << 10);
        // Most segments are free.
        assert_eq!(tail_bytes(&[], 64), HEAD_BYTES);
        assert_eq!(tail_bytes(&[16 << 10, 16 << 10], 2), 16 << 10);
    }
}
