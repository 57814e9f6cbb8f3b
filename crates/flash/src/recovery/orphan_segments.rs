//! Is a device without a root really without a store? Segments of ours say no: a new store made
//! over them would destroy what can perhaps be brought back.
//!
//! A lost root does not say how large its segments were, so the first bytes of every place where
//! one may start are looked at over the device's beginning, which is used first, and of every
//! segment of the store to be made beyond.

use entresol_device::{Completion, Device, QueueOptions};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{SUPERBLOCK_BYTES, SegmentHeader};
use crate::options::SEGMENT_BYTES_MIN;

/// Looked at closely, bytes.
const BEGINNING_BYTES: u64 = 1 << 30;
/// Read of each place.
const HEAD_BYTES: usize = 4096;
/// Reads in flight.
const DEPTH: usize = 64;

/// `Corrupt` if a segment's header stands on `device`, which has no root that verifies.
pub(super) fn refuse(device: &dyn Device, segment_bytes: u32) -> Result<()> {
    let Some((offset, header)) = find(device, segment_bytes)? else { return Ok(()) };
    let detail = format!(
        "{} has no superblock (bytes 0 and {SUPERBLOCK_BYTES}), but holds a segment of store \
         {:016x} at byte {offset}: a store's root was lost; restore the superblock from a copy of \
         the device, or force a new store to be made over what is there",
        device.name(),
        header.store
    );
    Err(Error::unless_forced(ErrorKind::Corrupt, detail))
}

/// The first segment header found, and where.
fn find(device: &dyn Device, segment_bytes: u32) -> Result<Option<(u64, SegmentHeader)>> {
    let capacity = device.geometry().capacity_bytes;
    let mut places = places(capacity, u64::from(segment_bytes));
    let mut queue = device.queue(QueueOptions { depth: DEPTH, buffer_bytes: HEAD_BYTES })?;
    let mut completions: Vec<Completion> = Vec::new();
    let mut found: Option<(u64, SegmentHeader)> = None;
    loop {
        while found.is_none() && queue.in_flight() < DEPTH {
            let Some(offset) = places.next() else { break };
            queue.read(offset, offset, HEAD_BYTES)?;
        }
        let in_flight = queue.in_flight();
        if in_flight == 0 {
            return Ok(found);
        }
        queue.reap(in_flight.min(DEPTH / 4), &mut completions)?;
        for completion in completions.drain(..) {
            completion.result?;
            let header = completion.buffer.as_deref().and_then(SegmentHeader::decode);
            let here = header.map(|header| (completion.token, header));
            let first = found.map_or(u64::MAX, |(offset, _)| offset);
            found = here.filter(|(offset, _)| *offset < first).or(found);
        }
    }
}

/// Where a segment may start.
fn places(capacity: u64, segment_bytes: u64) -> impl Iterator<Item = u64> {
    let step = u64::from(SEGMENT_BYTES_MIN);
    let end = capacity.saturating_sub(HEAD_BYTES as u64 - 1);
    let beginning = end.min(BEGINNING_BYTES);
    let close = (2 * SUPERBLOCK_BYTES as u64..beginning).step_by(step as usize);
    close.chain((BEGINNING_BYTES..end).step_by(segment_bytes as usize))
}
