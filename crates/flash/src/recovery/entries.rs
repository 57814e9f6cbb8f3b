//! From what the segments hold to the index: the newest record of each key.
//!
//! Every record is counted into its segment and claims its key; what wins goes into the index in
//! the order of hashes. Where footers are believed as they stand and there is memory for all
//! claims, that is done with each footer as it is read. Otherwise footers are kept, or read again,
//! for one walk that counts and takes the first claims, and one for each further pass.
//!
//! A pass takes what memory there is: the index's share of the cap, less what of the index is
//! filled, and what the open may use beside.

use std::ops::Range;

use super::claims::{Claims, Cut, Settling};
use super::context::{Context, ROOM_BYTES_MIN};
use super::footers::Found;
use super::intake::Intake;
use super::rows::{Gathered, Places};
use super::survey::{Images, Sample, Survey, sample, survey};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FOOTER_ENTRY_BYTES, SEGMENT_HEADER_BYTES, TRAILER_BYTES};
use crate::index::Index;
use crate::segment::{Segment, SegmentState};
use crate::shard::{Shard, seconds_of};

/// What the segments of a shard hold, and the claims of the first pass.
pub(super) struct Taken {
    survey: Survey,
    intake: Intake,
}

/// Looks at the segments of a shard, and takes in the first pass.
pub(super) fn take(shard: &mut Shard, images: &Images, context: Context) -> Result<Taken> {
    // What has ended by now is not taken in.
    shard.know_ended(shard.ended_until().max(seconds_of(context.now)));
    let copies = images.keys().filter(|(of, _)| *of == shard.log.shape().shard).count() as u64;
    let held_bytes = copies * u64::from(shard.log.shape().segment_bytes);
    let bytes = context.first_room_bytes(shard.limits(), held_bytes);
    let sample = sample(shard, (context, bytes))?;
    let cut = Cut::new(sample.records);
    if context.same_boot && cut.pass(0, bytes).len() == cut.parts() {
        let intake = Intake::new(shard.log.shape(), (cut, 0..cut.parts()), bytes)?;
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
        let mut intake = Intake::new(shard.log.shape(), (cut, first.clone()), bytes)?;
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
    let Taken { mut survey, intake } = taken;
    let journal = std::mem::take(&mut survey.journal);
    for segment in &survey.found {
        let row = Segment {
            sequence: segment.header.sequence,
            age: segment.age,
            stream: segment.header.stream,
            state: SegmentState::Sealed,
            ..Segment::UNUSED
        };
        shard.log.restore(segment.segment, row);
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
            shard.demand_slots(all - margin)?;
            shard.index = Index::with_expected(bits, buckets_max, all + margin)?;
        }
        end = shard.index.append_ordered(end, claims.winners());
        shard.demand_slots(shard.index.len())?;
        if pass.end == cut.parts() {
            break;
        }
        let filled_bytes = (end * 8) as u64 + survey.kept_bytes();
        let bytes = context.room_bytes(shard.limits(), filled_bytes);
        let next = cut.pass(pass.end, bytes);
        gather(shard, &survey, (&mut claims, rows.places), (next, bytes))?;
    }
    rows.apply(shard);
    learn_padding(shard, &survey.found);
    let highest = highest.max(journal.highest);
    journal.apply(shard, highest);
    shard.begin_after(highest);
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
    let shape = shard.log.shape();
    let (mut lost_bytes, mut filled) = (0, 0);
    for found in found {
        let mut segment = *shard.log.segment(found.segment);
        // A little less than there is: records count as a little more than they take.
        let records = segment.used_bytes.saturating_add(SEGMENT_HEADER_BYTES as u32);
        let padding = found.end.saturating_sub(records);
        segment.padded = shape.is_much_padding(padding);
        shard.log.restore(found.segment, segment);
        let footer = u64::from(found.count) * FOOTER_ENTRY_BYTES as u64 + TRAILER_BYTES as u64;
        let taken = u64::from(found.end) + footer;
        let lost = u64::from(shape.segment_bytes).saturating_sub(taken) + u64::from(padding);
        // More than the longest record is left only where a segment was sealed early.
        if !segment.padded && lost <= u64::from(shape.segment_bytes) / 4 {
            lost_bytes += lost;
            filled += 1;
        }
    }
    shard.log.restore_lost_bytes(lost_bytes / u64::max(filled, 1));
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
