//! From what the segments hold to the index: the newest record of each key.

use std::collections::HashMap;

use entresol_device::{Completion, IoBuffer, Queue, QueueOptions};

use super::scan::{Context, Found, Scanner, parse, read_whole, seal_image};
use crate::error::Result;
use crate::format::{FooterEntry, RecordKind, SegmentHeader, Trailer, decode_footer};
use crate::index::{Index, Place, SizeCode};
use crate::large::Pieces;
use crate::notes::index_hash;
use crate::reclaim::read_footer_of;
use crate::segment::{Segment, SegmentState};
use crate::session::decode_manifest;
use crate::shard::Shard;
use crate::types::SpaceId;

/// Memory for the records under comparison, bytes a shard; more records take more passes.
const PASS_BYTES: u64 = 768 << 20;
/// Read from a segment's end in the first request.
const TAIL_BYTES: usize = 32 << 10;
/// Read from a segment's start.
const HEAD_BYTES: usize = 4096;
/// Reads in flight.
const DEPTH: usize = 64;
/// Bits by which records are spread before they are sorted.
const SPREAD_BITS: u32 = 10;

/// A record under comparison.
#[derive(Debug, Clone, Copy)]
struct Claim {
    hash: u128,
    sequence: u64,
    address: u64,
    record_bytes: u32,
    ends_seconds: u32,
    space: SpaceId,
    partition: u16,
    kind: RecordKind,
}

/// Rebuilds a shard from its segments.
pub(super) fn recover(
    shard: &mut Shard,
    images: &HashMap<(u16, u32), IoBuffer>,
    context: Context,
) -> Result<()> {
    let found = survey(shard, images, context)?;
    let mut records = 0u64;
    let mut highest = 0;
    for segment in &found {
        records += u64::from(segment.count);
        let entry = &mut shard.log.segments[segment.segment as usize];
        *entry = Segment {
            sequence: segment.header.sequence,
            age: segment.age,
            stream: segment.header.stream,
            state: SegmentState::Sealed,
            ..Segment::UNUSED
        };
    }
    shard.index = fresh_index(shard, records)?;
    let passes =
        (records * std::mem::size_of::<Claim>() as u64 / PASS_BYTES + 1).next_power_of_two();
    let mut pieces = Gathered::new();
    for pass in 0..passes {
        let mut spread: Vec<Vec<Claim>> = vec![Vec::new(); 1 << SPREAD_BITS];
        let share = (records / passes) as usize / spread.len();
        spread.iter_mut().for_each(|s| s.reserve(share + share / 8));
        for_each_entry(shard, &found, &mut |shard, segment, entry| {
            if pass == 0 {
                highest = highest.max(entry.sequence);
                tally(shard, segment, entry);
            }
            if entry.flags.kind == RecordKind::Piece {
                if pass == 0 {
                    let address = shard.log.shape.address(segment, entry.offset);
                    let (version, number) = ((entry.hash >> 32) as u64, entry.hash as u32);
                    let list = pieces.entry(version).or_default();
                    list.push((number, address, entry.record_bytes));
                }
                return;
            }
            let top = index_hash(entry.hash);
            if passes > 1 && top >> (64 - passes.trailing_zeros()) != pass {
                return;
            }
            let shift = passes.trailing_zeros() + SPREAD_BITS;
            let slot = (top >> (64 - shift)) as usize & ((1 << SPREAD_BITS) - 1);
            spread[slot].push(claim(shard, segment, entry));
        })?;
        if pass == 0 {
            order_pieces(shard, &mut pieces);
        }
        for claims in &mut spread {
            settle_claims(shard, claims, context, &mut pieces)?;
            *claims = Vec::new();
        }
    }
    shard.sequence = highest;
    Ok(())
}

fn fresh_index(shard: &Shard, records: u64) -> Result<Index> {
    let layout_bits = shard.index.address_bits();
    Index::with_expected(layout_bits, shard.index.buckets_max(), records)
}

/// Counts a record into its segment.
fn tally(shard: &mut Shard, segment: u32, entry: &FooterEntry) {
    let counted = SizeCode::covering(u64::from(entry.record_bytes)).bytes() as u32;
    let row = &mut shard.log.segments[segment as usize];
    // Entries of a forged footer may overlap.
    row.used_bytes = row.used_bytes.saturating_add(counted);
    if entry.ends_seconds != 0 {
        row.next_end = row.next_end.min(entry.ends_seconds);
    }
    if entry.flags.kind == RecordKind::Tombstone {
        // Live until reclaim decides it, also beneath a newer record: that one may end first.
        let address = shard.log.shape.address(segment, entry.offset);
        shard.log.change_live(address, i64::from(counted));
    }
}

fn claim(shard: &Shard, segment: u32, entry: &FooterEntry) -> Claim {
    Claim {
        hash: entry.hash,
        sequence: entry.sequence,
        address: shard.log.shape.address(segment, entry.offset),
        record_bytes: entry.record_bytes,
        ends_seconds: entry.ends_seconds,
        space: entry.space,
        partition: entry.partition,
        kind: entry.flags.kind,
    }
}

/// Indexes the newest claim of each key. Of equal ones (copies) the last in the log wins: the
/// segment
/// of an older one may have been written over in part. A large value of which a piece is missing
/// never was whole: the next older claim counts.
fn settle_claims(
    shard: &mut Shard,
    claims: &mut [Claim],
    context: Context,
    pieces: &mut Gathered,
) -> Result<()> {
    let rank = |claim: &Claim| (claim.sequence, shard.segment_sequence(claim.address));
    claims.sort_unstable_by(|a, b| (a.hash, rank(b)).cmp(&(b.hash, rank(a))));
    let mut last = None;
    for claim in claims.iter() {
        if last == Some(claim.hash) {
            continue;
        }
        let ended =
            claim.ends_seconds != 0 && u64::from(claim.ends_seconds) * 1000 <= context.now.0;
        let whole = if claim.kind == RecordKind::Manifest {
            match gather(shard, claim, pieces)? {
                None => continue,
                some => some,
            }
        } else {
            None
        };
        last = Some(claim.hash);
        let dropped =
            shard.segment_sequence(claim.address) < shard.floor_of(claim.space, claim.partition);
        let size = SizeCode::covering(u64::from(claim.record_bytes));
        // A large value that ended is dropped by a sweep, with a tombstone: without its pieces it
        // would look like one that never was whole, and hide nothing.
        let ended = ended && whole.is_none();
        if claim.kind == RecordKind::Tombstone || ended || dropped {
            continue;
        }
        let place = Place { address: claim.address, size };
        shard.index.insert(index_hash(claim.hash), place);
        shard.log.change_live(place.address, size.bytes() as i64);
        shard.count(claim.space, claim.partition, 1);
        if let Some((version, value)) = whole {
            for (address, bytes) in &value.places {
                let size = SizeCode::covering(u64::from(*bytes));
                shard.log.change_live(*address, size.bytes() as i64);
            }
            shard.large.insert(place.address, version, value);
        }
    }
    Ok(())
}

/// Pieces found, by the value they belong to: number, address, record bytes.
type Gathered = HashMap<u64, Vec<(u32, u64, u32)>>;

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

/// What the value whose manifest is `claim` is known by, and its pieces, which are taken out: they
/// belong to one value. `None` if it is not whole.
fn gather(shard: &Shard, claim: &Claim, pieces: &mut Gathered) -> Result<Option<(u64, Pieces)>> {
    let (segment, offset) = shard.log.shape.split(claim.address);
    let sector = 4096;
    let start = u64::from(offset) / sector * sector;
    let end = u64::from(offset) + u64::from(claim.record_bytes);
    let end = end.next_multiple_of(sector).min(u64::from(shard.log.shape.segment_bytes));
    let mut bytes = IoBuffer::aligned(end.saturating_sub(start).max(sector) as usize);
    shard.log.device.read_at(shard.log.shape.offset_of(segment) + start, &mut bytes)?;
    let record = bytes.get((u64::from(offset) - start) as usize..).unwrap_or_default();
    let wanted = (shard.segment_sequence(claim.address) as u32, None);
    let mut scratch = Vec::new();
    let opened = shard.payloads.open(shard.log.shape.shard, record, wanted, &mut scratch);
    let Ok(record) = opened else { return Ok(None) };
    let version = record.header.sequence;
    let Some((stored_bytes, _, _, count)) = decode_manifest(record.value) else { return Ok(None) };
    if pieces.get(&version).map_or(0, Vec::len) != count as usize {
        return Ok(None);
    }
    let list = pieces.remove(&version).unwrap_or_default();
    let places = list.iter().map(|(_, address, bytes)| (*address, *bytes)).collect();
    Ok(Some((version, Pieces { stored_bytes, places })))
}

/// Looks at every segment: which are in use, and what those without a footer hold.
fn survey(
    shard: &mut Shard,
    images: &HashMap<(u16, u32), IoBuffer>,
    context: Context,
) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut unsealed = Vec::new();
    let mut kept_bytes = 0;
    let segment_bytes = shard.log.shape.segment_bytes;
    read_ends(shard, &mut |segment, head, tail| {
        let Some(header) = SegmentHeader::decode(head) else { return };
        if header.segment != segment {
            return;
        }
        let trailer = Trailer::decode_end(tail).filter(|t| {
            t.sequence == header.sequence && t.region_bytes() <= segment_bytes as usize
        });
        match trailer {
            None => unsealed.push((segment, header)),
            Some(trailer) => {
                kept_bytes +=
                    u64::from(trailer.entries) * std::mem::size_of::<FooterEntry>() as u64;
                let keep = kept_bytes < PASS_BYTES;
                found.push(Found {
                    segment,
                    header,
                    age: trailer.age,
                    entries: if keep { decode_footer(&trailer, tail, segment_bytes) } else { None },
                    count: trailer.entries,
                });
            }
        }
    })?;
    let shape = shard.log.shape;
    found.retain(|f| f.header.store == shape.store && f.header.shard == shape.shard);
    unsealed.retain(|(_, h)| h.store == shape.store && h.shard == shape.shard);
    let proven = found.iter().map(|f| f.header.proven_below);
    let proven = proven.chain(unsealed.iter().map(|(_, h)| h.proven_below)).max().unwrap_or(0);
    let seed_holder = shard.payloads.clone();
    let scanner =
        Scanner { payloads: &seed_holder, hash_seed: shard.hash_seed, shard: shape.shard };
    for segment in &mut found {
        let unproven = segment.header.sequence >= proven && !context.same_boot;
        let unread = segment.entries.is_none() && segment.footer_bytes() <= TAIL_BYTES;
        if unproven || unread {
            check_whole(shard, segment, (&scanner, context))?;
        }
    }
    for (segment, header) in unsealed {
        let image =
            images.get(&(shape.shard, segment)).and_then(|image| SegmentHeader::decode(image));
        if image.is_some_and(|image| image.sequence > header.sequence) {
            continue;
        }
        let mut bytes = read_whole(shard, segment)?;
        let entries = scanner.scan(&bytes, &header);
        found.push(sealed(shard, segment, (header, entries), &mut bytes, context)?);
    }
    adopt_images(shard, images, &mut found, (&scanner, context))?;
    found.retain(|f| f.count > 0);
    Ok(found)
}

/// Reads a sealed segment whole and keeps the entries that verify. A footer that says more is
/// written
/// anew: the next recovery would believe it.
fn check_whole(
    shard: &Shard,
    segment: &mut Found,
    (scanner, context): (&Scanner<'_>, Context),
) -> Result<()> {
    let shape = shard.log.shape;
    let mut bytes = read_whole(shard, segment.segment)?;
    let (entries, kept) = match parse(&bytes, shape.store, shape.shard) {
        Some((_, Some((_, footer)))) => {
            let before = footer.len();
            let entries = scanner.checked(&bytes, &segment.header, footer);
            let kept = entries.len() == before;
            (entries, kept)
        }
        _ => (scanner.scan(&bytes, &segment.header), false),
    };
    segment.count = entries.len() as u32;
    if kept {
        segment.entries = Some(entries);
        return Ok(());
    }
    let found = (segment.header, entries);
    *segment = sealed(shard, segment.segment, found, &mut bytes, context)?;
    Ok(())
}

/// Segments whose newest bytes stood in write buffers that outlived the process.
fn adopt_images(
    shard: &Shard,
    images: &HashMap<(u16, u32), IoBuffer>,
    found: &mut Vec<Found>,
    (scanner, context): (&Scanner<'_>, Context),
) -> Result<()> {
    let shape = shard.log.shape;
    for ((_, segment), image) in images.iter().filter(|((s, _), _)| *s == shape.shard) {
        let Some((header, footer)) = parse(image, shape.store, shape.shard) else { continue };
        if *segment >= shape.segments {
            continue;
        }
        let entries = match footer {
            Some((_, footer)) => scanner.checked(image, &header, footer),
            None => scanner.scan(image, &header),
        };
        if let Some(at) = found.iter().position(|f| f.segment == *segment) {
            let present = (found[at].header.sequence, found[at].count);
            if present >= (header.sequence, entries.len() as u32) {
                continue;
            }
            found.swap_remove(at);
        }
        let mut bytes = IoBuffer::aligned(image.len());
        bytes.copy_from_slice(image);
        found.push(sealed(shard, *segment, (header, entries), &mut bytes, context)?);
    }
    Ok(())
}

/// Writes a segment back with a footer for what it was found to hold. Units that are as they should
/// be
/// are not written again: power may fail, and they may hold what was acknowledged.
fn sealed(
    shard: &Shard,
    segment: u32,
    (header, entries): (SegmentHeader, Vec<FooterEntry>),
    bytes: &mut IoBuffer,
    context: Context,
) -> Result<Found> {
    let unit = shard.log.shape.sync_unit;
    let age = seal_image(bytes, unit, &header, &entries);
    if entries.is_empty() {
        bytes.fill(0);
    }
    if !context.read_only {
        let before = read_whole(shard, segment)?;
        let units = || before.chunks(unit as usize).zip(bytes.chunks(unit as usize));
        let differs = |(is, should): (&[u8], &[u8])| is != should;
        if let Some(first) = units().position(differs) {
            let last = units().rposition(differs).unwrap_or(first);
            let range = first * unit as usize..((last + 1) * unit as usize).min(bytes.len());
            let at = shard.log.shape.offset_of(segment) + range.start as u64;
            shard.log.device.write_at(at, &bytes[range])?;
        }
    }
    Ok(Found { segment, header, age, count: entries.len() as u32, entries: Some(entries) })
}

/// Called with a segment's number, first and last bytes.
type VisitEnds<'v> = &'v mut dyn FnMut(u32, &[u8], &[u8]);

/// Reads head and tail of every segment, many at a time.
fn read_ends(shard: &Shard, visit: VisitEnds<'_>) -> Result<()> {
    let shape = shard.log.shape;
    let mut queue =
        shard.log.device.queue(QueueOptions { depth: DEPTH * 2, buffer_bytes: TAIL_BYTES })?;
    let mut heads: HashMap<u32, IoBuffer> = HashMap::new();
    let mut tails: HashMap<u32, IoBuffer> = HashMap::new();
    let mut completions: Vec<Completion> = Vec::new();
    let tail_bytes = TAIL_BYTES.min(shape.segment_bytes as usize);
    let mut next = 0;
    while next < shape.segments || queue.in_flight() > 0 {
        while next < shape.segments && queue.in_flight() + 2 <= DEPTH * 2 {
            let start = shape.offset_of(next);
            let end = start + u64::from(shape.segment_bytes);
            queue.read(u64::from(next) * 2, start, HEAD_BYTES)?;
            queue.read(u64::from(next) * 2 + 1, end - tail_bytes as u64, tail_bytes)?;
            next += 1;
        }
        reap(&mut *queue, &mut completions)?;
        for completion in completions.drain(..) {
            let segment = (completion.token / 2) as u32;
            completion.result?;
            let Some(buffer) = completion.buffer else { continue };
            let (mine, other) = if completion.token % 2 == 0 {
                (&mut heads, &mut tails)
            } else {
                (&mut tails, &mut heads)
            };
            match other.remove(&segment) {
                None => {
                    mine.insert(segment, buffer);
                }
                Some(pair) if completion.token % 2 == 0 => visit(segment, &buffer, &pair),
                Some(pair) => visit(segment, &pair, &buffer),
            }
        }
    }
    Ok(())
}

fn reap(queue: &mut dyn Queue, completions: &mut Vec<Completion>) -> Result<()> {
    let wait_for = queue.in_flight().min(16);
    Ok(queue.reap(wait_for, completions)?)
}

/// Visits the footer entries of all segments found.
fn for_each_entry(
    shard: &mut Shard,
    found: &[Found],
    visit: &mut dyn FnMut(&mut Shard, u32, &FooterEntry),
) -> Result<()> {
    for segment in found {
        if let Some(entries) = &segment.entries {
            entries.iter().for_each(|entry| visit(shard, segment.segment, entry));
            continue;
        }
        let shape = shard.log.shape;
        let sequence = segment.header.sequence;
        let base = shape.offset_of(segment.segment);
        let footer = read_footer_of(&*shard.log.device, base, shape.segment_bytes, sequence)?;
        let Some(footer) = footer else {
            // A trailer without its footer: the records speak for themselves.
            let bytes = read_whole(shard, segment.segment)?;
            let payloads = shard.payloads.clone();
            let scanner =
                Scanner { payloads: &payloads, hash_seed: shard.hash_seed, shard: shape.shard };
            let entries = scanner.scan(&bytes, &segment.header);
            entries.iter().for_each(|entry| visit(shard, segment.segment, entry));
            continue;
        };
        footer.iter().for_each(|entry| visit(shard, segment.segment, entry));
    }
    Ok(())
}
