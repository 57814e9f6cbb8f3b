//! Sweeping a segment: notes settled, ended and dropped records let go, by its footer alone.

use entresol_device::IoBuffer;

use super::Engine;
use crate::error::Result;
use crate::format::FooterEntry;
use crate::log::{Attempt, Refusal, footer_of, read_footer};
use crate::policy::OfDamaged;
use crate::record::{HashedKey, Wanted};
use crate::segment::SegmentState;
use crate::shard::{Ending, Plan};
use crate::types::{Key, Timestamp};
use crate::unreadable::read_around;

/// `next_end` of a segment where all that will end has ended: its records may still need
/// tombstones, so it is not as one where nothing ends. Beyond every real end.
const ENDED: u32 = u32::MAX - 1;

impl Engine {
    /// Settles the notes on a segment and drops what ended in it, by its footer alone. False if
    /// large values are left for want of room for their tombstones: the segment is to be swept
    /// again.
    pub(crate) fn sweep(&self, number: usize, segment: u32, now: Timestamp) -> Result<bool> {
        let (shape, state, held) = {
            let shard = self.shards[number].lock();
            let (shape, state) = (shard.log.shape(), *shard.log.segment(segment));
            // Its last write may be under way: the device may have the footer of a former use yet.
            let memory = shard.log.in_memory(shape.address(segment, 0));
            let sealed = memory.filter(|_| state.state == SegmentState::Sealed);
            (shape, state, sealed.map(|memory| footer_of(memory, state.sequence)))
        };
        let footer = match held {
            Some(footer) => footer,
            None => read_footer(&*self.device, &shape, segment, state.sequence)?,
        };
        let mut shard = self.shards[number].lock();
        let current = *shard.log.segment(segment);
        if current.sequence != state.sequence || current.state != SegmentState::Sealed {
            return Ok(true);
        }
        let Some(footer) = footer else {
            // Not swept again, nor freed unread.
            shard.log.ends_next(segment, ENDED);
            match self.policy.of_damaged() {
                // It goes in its turn: older records of its keys must go before it.
                OfDamaged::Goes => shard.log.forget_notes(segment),
                OfDamaged::Stays => shard.log.set_aside(segment),
            }
            return Ok(true);
        };
        let mut next_end = u32::MAX;
        let mut ended = false;
        let mut large = Vec::new();
        let noted = shard.notes.in_segment(segment);
        for entry in &footer {
            if noted.binary_search(&shape.address(segment, entry.offset)).is_ok() {
                shard.settle(segment, entry);
            }
            if state.sequence < shard.floor_of(entry.owner()) {
                let place = shard.place_of(segment, entry);
                shard.let_go(entry.hash, place);
                continue;
            }
            if entry.ends_seconds == 0 {
                continue;
            }
            let ending = shard.ending_of(segment, entry);
            let over = shard.is_over_at(entry.hash, ending, now);
            ended |= over;
            if over {
                if shard.large.is_manifest(ending.place.address) {
                    large.push((entry.hash, ending));
                    continue;
                }
                shard.expire(entry.hash, ending, entry.owner());
            } else {
                next_end = next_end.min(entry.ends_seconds);
            }
        }
        if ended {
            next_end = next_end.min(ENDED);
        }
        shard.log.ends_next(segment, next_end);
        drop(shard);
        self.bury_all(number, segment, state.sequence, large)
    }

    /// Buries large values of a segment whose time is over. False if there was no room for all of
    /// their tombstones.
    fn bury_all(
        &self,
        number: usize,
        segment: u32,
        sequence: u64,
        large: Vec<(u128, Ending)>,
    ) -> Result<bool> {
        for (hash, ending) in large {
            match self.bury_large(number, hash, ending) {
                Err(Refusal::NeedsBuffer | Refusal::NeedsRoom) => {
                    let log = &mut self.shards[number].lock().log;
                    let row = *log.segment(segment);
                    if (row.sequence, row.state) == (sequence, SegmentState::Sealed) {
                        log.ends_next(segment, row.next_end.min(ending.seconds));
                    }
                    return Ok(false);
                }
                buried => buried?,
            }
        }
        Ok(true)
    }

    /// Leaves a tombstone for a large value whose time is over: its pieces go, and what is left of
    /// it would look like one that never was whole.
    fn bury_large(&self, number: usize, hash: u128, ending: Ending) -> Attempt<()> {
        let Ending { place, seconds } = ending;
        let (plan, held) = {
            let shard = self.shards[number].lock();
            let held = shard.log.in_memory(place.address);
            let held =
                held.map(|bytes| bytes[..bytes.len().min(place.size.bytes() as usize)].to_vec());
            (shard.plan(place, false), held)
        };
        let (offset, length) = self.read_range(&plan);
        let mut bytes = IoBuffer::aligned(length);
        if held.is_none() {
            read_around(&*self.device, offset, &mut bytes)?;
        }
        let read = bytes.get((plan.offset - offset) as usize..).unwrap_or_default();
        let record = held.as_deref().unwrap_or(read);
        let wanted = Wanted::any(plan.segment_sequence);
        let mut scratch = Vec::new();
        let mut shard = self.shards[number].lock();
        let opened = self.payloads.open(shard.log.shape().shard, record, wanted, &mut scratch);
        // What does not verify, or was just replaced, is left to reads and to reclaim.
        let Ok(record) = opened else { return Ok(()) };
        let key = Key {
            space: record.header.space,
            partition: record.header.partition,
            bytes: record.key,
        };
        shard.bury(HashedKey { key, hash }, plan.location(), seconds)
    }

    /// What the footer of its segment says of the record that `plan` was to read.
    pub(crate) fn line_at(&self, number: usize, plan: &Plan) -> Option<FooterEntry> {
        let shape = self.shards[number].lock().log.shape();
        let (segment, at) = shape.split(plan.place.address);
        let footer = read_footer(&*self.device, &shape, segment, plan.segment_sequence);
        let footer = footer.ok().flatten();
        footer?.into_iter().find(|entry| entry.offset == at)
    }
}
