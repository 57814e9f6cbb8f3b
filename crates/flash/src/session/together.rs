//! One read of the device for records that lie together, for sessions that ask for neighbours.
//!
//! Invariants:
//! 1. Reads are gathered in the order in which they were asked for; only neighbours in that order
//!    become one, within one use of a segment.
//! 2. Where a read of several fails, each is read alone: a sector that cannot be read harms its own
//!    record only.

use std::collections::VecDeque;

use entresol_device::Completion;

use super::{Session, Visit};
use crate::error::Result;
use crate::types::Timestamp;

/// Set in the tokens of reads of several records.
const TOGETHER_TOKEN: u64 = 1 << 62;
/// Most bytes of such a read, and of one of a medium that answers so long a one at once only.
const TOGETHER_BYTES_MAX: u64 = 256 << 10;
const AT_ONCE_BYTES_MAX: u64 = 64 << 10;

/// What a session reads together.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Most bytes of one read; 0: each record is read alone.
    bytes_max: u64,
    groups: Vec<Group>,
    unused: Vec<u32>,
    /// Operations whose records are to be read alone.
    alone: VecDeque<u32>,
}

/// Operations that wait for one read.
#[derive(Debug, Default)]
struct Group {
    offset: u64,
    slots: Vec<u32>,
}

impl Together {
    pub(super) fn is_on(&self) -> bool {
        self.bytes_max > 0
    }
}

impl Session {
    /// Has reads wait for [`Session::flush`] or [`Session::poll`], where those of records that lie
    /// together become one read of the device.
    pub fn read_together(&mut self) {
        let device = &self.engine.device;
        let at_once = |bytes| device.answers_at_once(bytes as usize);
        let short = at_once(AT_ONCE_BYTES_MAX) && !at_once(TOGETHER_BYTES_MAX);
        self.together.bytes_max = if short { AT_ONCE_BYTES_MAX } else { TOGETHER_BYTES_MAX };
    }

    pub(super) fn is_together(completion: &Completion) -> bool {
        completion.token & TOGETHER_TOKEN != 0
    }

    /// Hands gathered reads to the queue, as many as it takes.
    pub(super) fn hand_over(&mut self) -> Result<()> {
        while self.queue.in_flight() < self.queue.depth() {
            if let Some(slot) = self.together.alone.pop_front() {
                self.ask_for(slot)?;
                continue;
            }
            let Some(slot) = self.backlog.pop_front() else { break };
            match self.range_of(slot).filter(|_| self.together.is_on()) {
                Some(range) => self.ask_for_neighbours(slot, range)?,
                None => self.ask_for(slot)?,
            }
        }
        Ok(())
    }

    /// Hands over the read of a pending operation, and with it those behind it that lie next to it.
    fn ask_for_neighbours(&mut self, first: u32, (start, mut end): (u64, u64)) -> Result<()> {
        let place = self.together.unused.pop().unwrap_or_else(|| {
            self.together.groups.push(Group::default());
            self.together.groups.len() as u32 - 1
        });
        let mut slots = std::mem::take(&mut self.together.groups[place as usize].slots);
        slots.clear();
        slots.push(first);
        while let Some(next) = self.backlog.front().copied()
            && let Some((from, to)) = self.range_of(next)
            && (start..=end).contains(&from)
            && to.max(end) - start <= self.together.bytes_max
            && self.segment_of(next) == self.segment_of(first)
        {
            end = to.max(end);
            slots.push(next);
            self.backlog.pop_front();
        }
        let is_alone = slots.len() == 1;
        let group = &mut self.together.groups[place as usize];
        group.offset = start;
        group.slots = slots;
        if is_alone {
            self.together.unused.push(place);
            return self.ask_for(first);
        }
        let token = TOGETHER_TOKEN | u64::from(place);
        Ok(self.queue.read(token, start, (end - start) as usize)?)
    }

    pub(super) fn finish_together(
        &mut self,
        completion: Completion,
        now: Timestamp,
        visit: Visit<'_>,
    ) {
        let place = (completion.token & !TOGETHER_TOKEN) as u32;
        let offset = self.together.groups[place as usize].offset;
        let slots = std::mem::take(&mut self.together.groups[place as usize].slots);
        let read = completion.buffer.filter(|_| completion.result.is_ok());
        for slot in &slots {
            let range = self.range_of(*slot).filter(|_| read.is_some());
            let bytes = range.zip(read.as_ref()).and_then(|((start, end), read)| {
                read.get((start - offset) as usize..(end - offset) as usize)
            });
            match bytes {
                Some(bytes) => self.finish_bytes(*slot, bytes, now, visit),
                None => self.together.alone.push_back(*slot),
            }
        }
        self.together.groups[place as usize].slots = slots;
        self.together.unused.push(place);
    }

    /// Where on the device the read of a pending operation begins and ends.
    fn range_of(&self, slot: u32) -> Option<(u64, u64)> {
        let plan = self.pending[slot as usize].plan.as_ref()?;
        let (offset, length) = self.engine.read_range(plan);
        Some((offset, offset + length as u64))
    }

    /// The shard, and the use of a segment, that a pending operation reads from.
    fn segment_of(&self, slot: u32) -> Option<(usize, u64)> {
        let pending = &self.pending[slot as usize];
        let plan = pending.plan.as_ref()?;
        Some((self.engine.shard_of(pending.hash), plan.segment_sequence))
    }
}
