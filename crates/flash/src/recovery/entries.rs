//! From what the segments hold to the index: the newest record of each key.
//!
//! Every record is counted into its segment and claims its key; what wins goes into the index in
//! the order of hashes. Where footers are believed as they stand and there is memory for all
//! claims, that is done with each footer as it is read. Otherwise footers are kept, or read again,
//! for one walk that counts and takes the first claims, and one for each further pass.
//!
//! A pass takes what memory there is: the index's share of the cap, less what of the index is
//! filled, and what the open may use beside.

use std::collections::HashMap;
use std::ops::Range;

use super::claims::{Claims, Cut, Settling};
use super::scan::{Context, ROOM_BYTES_MIN};
use super::slots::demand_slots;
use super::survey::{Found, Images, Sample, Survey, sample, survey};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    FOOTER_ENTRY_BYTES, FooterLine, PieceName, RECORD_ALIGNMENT, RecordKind, SEGMENT_HEADER_BYTES,
    TRAILER_BYTES,
};
use crate::index::{Index, SizeCode};
use crate::log::Shape;
use crate::segment::{Segment, SegmentState};
use crate::shard::{Shard, seconds_of};

/// Pieces found, by the value they belong to: number, address, record bytes.
pub(super) type Gathered = HashMap<u64, Vec<(u32, u64, u32)>>;

/// What the segments of a shard hold, and the claims of the first pass.
pub(super) struct Taken {
    survey: Survey,
    intake: Intake,
}

/// Looks at the segments of a shard, and takes in the first pass.
pub(super) fn take(shard: &mut Shard, images: &Images, context: Context) -> Result<Taken> {
    // What has ended by now is not taken in.
    shard.ended_until = shard.ended_until.max(seconds_of(context.now));
    let copies = images.keys().filter(|(of, _)| *of == shard.log.shape.shard).count() as u64;
    let held_bytes = copies * u64::from(shard.log.shape.segment_bytes);
    let bytes = context.first_room_bytes(&shard.limits, held_bytes);
    let sample = sample(shard, (context, bytes))?;
    let cut = Cut::new(sample.records);
    if context.same_boot && cut.pass(0, bytes).len() == cut.parts() {
        let intake = Intake::new(shard.log.shape, (cut, 0..cut.parts()), bytes)?;
        if let Some(taken) = take_at_once(shard, images, (context, sample), intake)? {
            return Ok(taken);
        }
        // There are many more records than the sample let expect.
    }
    let survey = survey(shard, images, (context, sample), None)?;
    let records = survey.found.iter().map(|segment| u64::from(segment.count)).sum();
    let cut = Cut::new(records);
    let bytes = bytes.saturating_sub(survey.kept_bytes()).max(ROOM_BYTES_MIN);
    let mut first = cut.pass(0, bytes);
    loop {
        let mut intake = Intake::new(shard.log.shape, (cut, first.clone()), bytes)?;
        survey.for_each_line(shard, |segment, line| intake.take(segment, line))?;
        if !intake.claims.overflowed() {
            return Ok(Taken { survey, intake });
        }
        first = halved(first)?;
    }
}

/// Takes each footer in as it is read; `None` if that takes more memory than there is.
fn take_at_once(
    shard: &Shard,
    images: &Images,
    found: (Context, Sample),
    mut intake: Intake,
) -> Result<Option<Taken>> {
    let survey = survey(shard, images, found, Some(&mut intake))?;
    survey.for_each_line(shard, |segment, line| intake.take(segment, line))?;
    Ok(if intake.claims.overflowed() { None } else { Some(Taken { survey, intake }) })
}

/// Half of the parts of a pass for which there was no memory.
fn halved(pass: Range<usize>) -> Result<Range<usize>> {
    if pass.len() > 1 {
        return Ok(pass.start..pass.start + pass.len() / 2);
    }
    let detail = "the keys of a shard lie so close together that there is no memory to compare \
                  them; open the store with a larger memory cap";
    Err(Error::new(ErrorKind::InvalidInput, detail))
}

/// Builds the index, with the first pass taken in.
pub(super) fn rebuild(shard: &mut Shard, taken: Taken, context: Context) -> Result<()> {
    let Taken { survey, intake } = taken;
    for segment in &survey.found {
        shard.log.segments[segment.segment as usize] = Segment {
            sequence: segment.header.sequence,
            age: segment.age,
            stream: segment.header.stream,
            state: SegmentState::Sealed,
            ..Segment::UNUSED
        };
    }
    let Intake { mut rows, mut claims, mut pieces, highest, cut } = intake;
    order_pieces(shard, &mut pieces);
    let mut end = 0;
    loop {
        let pass = claims.pass();
        let mut settling = Settling::new(shard, context, &mut pieces, &mut rows);
        let winners = claims.settle(&mut settling)? as u64;
        if pass.start == 0 {
            // The other parts index about as much, so a little more is enough.
            let all = winners * cut.parts() as u64 / pass.len() as u64;
            let margin = if pass.len() == cut.parts() { 0 } else { all / 64 };
            let (bits, buckets_max) = (shard.index.address_bits(), shard.index.buckets_max());
            demand_slots(shard, all - margin)?;
            shard.index = Index::with_expected(bits, buckets_max, all + margin)?;
        }
        end = shard.index.append_ordered(end, claims.winners());
        demand_slots(shard, shard.index.len())?;
        if pass.end == cut.parts() {
            break;
        }
        let filled_bytes = (end * 8) as u64 + survey.kept_bytes();
        let bytes = context.room_bytes(&shard.limits, filled_bytes);
        let next = cut.pass(pass.end, bytes);
        gather(shard, &survey, (&mut claims, rows.places), (next, bytes))?;
    }
    rows.apply(shard);
    learn_padding(shard, &survey.found);
    shard.sequence = highest;
    Ok(())
}

/// Gathers the claims of a further pass, of fewer parts where these take more than `bytes`.
fn gather(
    shard: &Shard,
    survey: &Survey,
    (claims, places): (&mut Claims, Places),
    (mut pass, bytes): (Range<usize>, u64),
) -> Result<()> {
    loop {
        claims.begin(pass.clone(), bytes)?;
        survey.for_each_line(shard, |segment, line| {
            if let Some(address) = places.address_of(segment, line) {
                claims.add(line, address);
            }
        })?;
        if !claims.overflowed() {
            return Ok(());
        }
        pass = halved(pass)?;
    }
}

/// Finds out which segments hold much padding, and how much the others lost where they were filled.
fn learn_padding(shard: &mut Shard, found: &[Found]) {
    let shape = shard.log.shape;
    let (mut lost_bytes, mut filled) = (0, 0);
    for found in found {
        let segment = &mut shard.log.segments[found.segment as usize];
        // A little less than there is: records count as a little more than they take.
        let records = segment.used_bytes.saturating_add(SEGMENT_HEADER_BYTES as u32);
        let padding = found.end.saturating_sub(records);
        segment.padded = shape.is_much_padding(padding);
        let footer = u64::from(found.count) * FOOTER_ENTRY_BYTES as u64 + TRAILER_BYTES as u64;
        let taken = u64::from(found.end) + footer;
        let lost = u64::from(shape.segment_bytes).saturating_sub(taken) + u64::from(padding);
        // More than the longest record is left only where a segment was sealed early.
        if !segment.padded && lost <= u64::from(shape.segment_bytes) / 4 {
            lost_bytes += lost;
            filled += 1;
        }
    }
    shard.log.lost_bytes = lost_bytes / u64::max(filled, 1);
}

/// Brings the pieces of each value in order. One that reclaim copied stands twice; the copy in the
/// younger segment is kept.
fn order_pieces(shard: &Shard, pieces: &mut Gathered) {
    for list in pieces.values_mut() {
        list.sort_unstable_by_key(|(number, address, _)| {
            (*number, std::cmp::Reverse(shard.segment_sequence(*address)))
        });
        list.dedup_by_key(|(number, ..)| *number);
    }
}

/// What has been found out about all records, and the claims of one pass.
pub(super) struct Intake {
    rows: Rows,
    claims: Claims,
    pieces: Gathered,
    /// The highest sequence.
    highest: u64,
    cut: Cut,
}

impl Intake {
    /// For the parts of `pass` first, in memory of `bytes`.
    fn new(shape: Shape, (cut, pass): (Cut, Range<usize>), bytes: u64) -> Result<Intake> {
        let mut claims = Claims::new(cut, bytes)?;
        claims.begin(pass, bytes)?;
        Ok(Intake { rows: Rows::new(shape), claims, pieces: Gathered::new(), highest: 0, cut })
    }

    /// Takes one record in.
    #[inline]
    pub(super) fn take(&mut self, segment: u32, line: FooterLine) {
        let Some(address) = self.rows.places.address_of(segment, line) else { return };
        self.highest = self.highest.max(line.sequence());
        let counted = SizeCode::covering(u64::from(line.record_bytes())).bytes();
        let row = &mut self.rows.rows[segment as usize];
        row.used_bytes += counted;
        row.before_end = row.before_end.min(line.ends_seconds().wrapping_sub(1));
        if line.is_kind(RecordKind::Tombstone) {
            // Live until reclaim decides it, also beneath a newer record: that one may end first.
            row.live_bytes += counted;
            row.tombstone_bytes += counted;
        }
        if line.is_kind(RecordKind::Piece) {
            let PieceName { value, number } = line.piece_name();
            let piece = (number, address, line.record_bytes());
            self.pieces.entry(value).or_default().push(piece);
            return;
        }
        self.claims.add(line, address);
    }
}

/// What is added up for each segment.
pub(super) struct Rows {
    rows: Vec<Row>,
    places: Places,
}

/// Where records can be.
#[derive(Debug, Clone, Copy)]
struct Places {
    segment_bytes: u64,
    /// Bits of an address that count units within a segment.
    unit_bits: u32,
}

impl Places {
    /// The address of the record of `line`; `None` if no segment has such a place. Checksums do not
    /// rule that out: someone may have made them.
    #[inline]
    fn address_of(self, segment: u32, line: FooterLine) -> Option<u64> {
        let place = u64::from(line.place());
        let end = place * RECORD_ALIGNMENT as u64 + u64::from(line.record_bytes());
        (end <= self.segment_bytes).then_some(u64::from(segment) << self.unit_bits | place)
    }
}

#[derive(Debug, Clone, Copy)]
struct Row {
    used_bytes: u64,
    live_bytes: u64,
    tombstone_bytes: u64,
    /// The second before the earliest end. No end is 0 on the medium, so the last of all here.
    before_end: u32,
}

impl Rows {
    fn new(shape: Shape) -> Rows {
        let units = shape.segment_bytes / RECORD_ALIGNMENT as u32;
        let segment_bytes = u64::from(shape.segment_bytes);
        let places = Places { segment_bytes, unit_bits: units.trailing_zeros() };
        let empty = Row { used_bytes: 0, live_bytes: 0, tombstone_bytes: 0, before_end: u32::MAX };
        let rows = vec![empty; shape.segments as usize];
        Rows { rows, places }
    }

    /// Counts `bytes` at `address` as live.
    #[inline]
    pub(super) fn add_live(&mut self, address: u64, bytes: u64) {
        if let Some(row) = self.rows.get_mut((address >> self.places.unit_bits) as usize) {
            row.live_bytes += bytes;
        }
    }

    /// Puts the sums where the shard keeps them.
    fn apply(&self, shard: &mut Shard) {
        let saturated = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        for (row, segment) in self.rows.iter().zip(&mut shard.log.segments) {
            segment.used_bytes = segment.used_bytes.saturating_add(saturated(row.used_bytes));
            segment.live_bytes = saturated(row.live_bytes);
            segment.next_end = segment.next_end.min(row.before_end.saturating_add(1));
            segment.tombstone_bytes = saturated(row.tombstone_bytes);
            shard.log.live_bytes += u64::from(segment.live_bytes);
            shard.log.tombstone_bytes += u64::from(segment.tombstone_bytes);
        }
    }
}
