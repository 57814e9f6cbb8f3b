//! A victim that is reclaimed in steps, between which it may lie for as long as there is room.
//!
//! ```text
//! Chosen --begin the read--> Reading --done--> Read --its records decided, part by part--> ended
//!                                  '--failed--> Unreadable: for whoever reads around the damage
//! ```
//! A write pays for the room it takes with a share of the victim: bytes written over the share of
//! the victim that is to gain, and more the more segments are short. So writers keep up with
//! themselves where maintenance does not, at a few microseconds a write.

use entresol_device::IoBuffer;
use entresol_planted::planted;

use super::decide::Judged;
use super::{Pace, Shard};
use crate::error::Result;
use crate::format::FooterEntry;
use crate::log::{Attempt, footer_of_whole};
use crate::policy::{Field, OfDamaged};
use crate::segment::{Segment, Stream};

use crate::types::Timestamp;

/// Records decided under one hold of the lock.
pub(crate) const BATCH: usize = 32;
/// Segments looked at for one victim.
const VICTIM_WINDOW: usize = 1 << 15;
/// The least part of a victim worth a step, bytes.
const STEP_BYTES_MIN: u64 = 4096;
/// Segments that maintenance may be behind before writers step in.
const BEHIND_MAX: u32 = 2;
/// Free segments beyond those kept at which released ones are made free without waiting for more.
const RELEASE_AHEAD: u32 = 1;
/// A victim counts as one that gives back this part of a segment at least.
const GAIN_PARTS: u64 = 50;

/// A victim and how far it has come.
#[derive(Debug)]
pub(crate) struct Victim {
    number: u32,
    /// As it was when it was chosen.
    segment: Segment,
    stage: Stage,
    /// Whether every live record so far could be copied or dropped.
    kept: bool,
}

/// How much of a victim to decide: up to the first of both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub bytes: u64,
    pub records: usize,
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes of the victim were decided.
    Decided(u64),
    /// The victim is released.
    Ended,
    /// The victim is being read.
    Awaits,
    /// The victim has to be read around what is damaged, which takes long.
    Unreadable,
    /// There is no victim.
    None,
}

#[derive(Debug)]
enum Stage {
    Chosen,
    Reading,
    Unreadable,
    Read { bytes: IoBuffer, footer: Vec<FooterEntry>, next: usize },
    Decided(Option<IoBuffer>),
}

impl Victim {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether there is nothing in it to decide.
    pub(crate) fn is_empty(&self) -> bool {
        let segment = &self.segment;
        segment.live_bytes == 0 && segment.notes == 0 && segment.next_end == u32::MAX
    }

    pub(crate) fn is_read(&self) -> bool {
        matches!(self.stage, Stage::Read { .. } | Stage::Decided(_))
    }

    pub(crate) fn is_decided(&self) -> bool {
        matches!(self.stage, Stage::Decided(_))
    }

    /// What was read of it: what does not verify as a whole is not touched.
    pub(crate) fn take_bytes(&mut self, bytes: IoBuffer) {
        let footer = footer_of_whole(&bytes, self.segment.sequence);
        self.kept &= footer.is_some();
        self.stage = match footer {
            Some(footer) => Stage::Read { bytes, footer, next: 0 },
            None => Stage::Decided(Some(bytes)),
        };
    }

    fn end(&mut self) {
        if let Stage::Read { bytes, .. } = std::mem::replace(&mut self.stage, Stage::Chosen) {
            self.stage = Stage::Decided(Some(bytes));
        }
    }

    /// The memory of one that is decided.
    pub(crate) fn give_bytes(&mut self) -> Option<IoBuffer> {
        match &mut self.stage {
            Stage::Decided(bytes) => bytes.take(),
            _ => None,
        }
    }

    /// Victim bytes that a write of `bytes` pays with where `missing` segments are short: what it
    /// takes, and half as much again for each of them.
    fn price(&self, bytes: u64, missing: u32, segment_bytes: u64) -> u64 {
        let gain = segment_bytes.saturating_sub(u64::from(self.segment.live_bytes));
        let taken = bytes * segment_bytes / gain.max(segment_bytes / GAIN_PARTS);
        taken + taken * u64::from(missing) / 2
    }
}

impl Shard {
    /// A write's share of reclaim after `bytes` were appended, if segments are short: what it takes
    /// and, as long as there is more owed than that, as much again.
    pub(crate) fn contribute(&mut self, bytes: u64, pace: Pace, now: Timestamp) {
        let log = &self.log;
        let (free, releasing) = (log.free_count(), log.releasing_count());
        let kept = self.kept_free(bytes, pace);
        let ahead = log.free_target() - log.reserve();
        // What fails here fails the next write, which says so: this one is done.
        let mut going = Ok(());
        if free <= kept + RELEASE_AHEAD && self.log.is_release_due() {
            going = self.log.poll(0).and_then(|()| match free <= kept {
                true => self.log.begin_release(),
                false => self.log.begin_release_unpadded(),
            });
        }
        let missing = (kept + ahead).saturating_sub(free + releasing + BEHIND_MAX);
        if missing == 0 {
            self.owed_bytes = 0;
        } else if going.is_ok() {
            let _failed = self.pay(bytes, missing, now);
        }
    }

    fn pay(&mut self, bytes: u64, missing: u32, now: Timestamp) -> Attempt<()> {
        self.log.poll(0)?;
        if self.log.lacks_idle_buffer()? {
            // Copies would wait for the device, with the shard locked.
            return Ok(());
        }
        if self.under_way.is_none() {
            self.under_way = self.choose()?;
        }
        let segment_bytes = u64::from(self.log.shape().segment_bytes);
        let Some(victim) = &self.under_way else { return Ok(()) };
        let price = victim.price(bytes, missing, segment_bytes);
        self.owed_bytes += price;
        let due = self.owed_bytes.min((2 * price).max(STEP_BYTES_MIN)).min(segment_bytes);
        if due < STEP_BYTES_MIN {
            return Ok(());
        }
        self.counters.steps_by_writers += 1;
        let paid = match self.step(Part { bytes: due, records: usize::MAX }, now)? {
            Step::Decided(bytes) => bytes,
            Step::Ended => due,
            Step::Awaits | Step::Unreadable | Step::None => 0,
        };
        self.owed_bytes = self.owed_bytes.saturating_sub(paid);
        Ok(())
    }

    /// Brings the victim under way, or a new one, a step further.
    pub(crate) fn step(&mut self, part: Part, now: Timestamp) -> Attempt<Step> {
        let chosen = match self.under_way.take() {
            Some(victim) => Some(victim),
            None => self.choose()?,
        };
        let Some(mut victim) = chosen else { return Ok(Step::None) };
        if victim.is_empty() {
            self.end_reclaim(&victim);
            return Ok(Step::Ended);
        }
        let step = if self.begin_reading(&mut victim) {
            Ok(Step::Awaits)
        } else if victim.is_read() {
            self.decide(&mut victim, part, now).map(Step::Decided)
        } else {
            Ok(Step::Unreadable)
        };
        if victim.is_decided() {
            self.end_reclaim(&victim);
            return step.map(|_| Step::Ended);
        }
        self.under_way = Some(victim);
        step
    }

    /// Sees to it that the victim is read; true while that is under way.
    fn begin_reading(&mut self, victim: &mut Victim) -> bool {
        if matches!(victim.stage, Stage::Chosen) {
            let start = self.log.shape().address(victim.number, 0);
            if let Some(memory) = self.log.in_memory(start) {
                let mut bytes = IoBuffer::aligned(memory.len());
                bytes.copy_from_slice(memory);
                victim.take_bytes(bytes);
                return false;
            }
            let begun = self.log.begin_read(victim.number);
            victim.stage = if begun { Stage::Reading } else { Stage::Unreadable };
        }
        self.awaits_read(victim)
    }

    /// Whether a read of the victim is under way; takes what it gave if it is done.
    pub(crate) fn awaits_read(&mut self, victim: &mut Victim) -> bool {
        if !matches!(victim.stage, Stage::Reading) {
            return false;
        }
        let Some(read) = self.log.take_read() else { return true };
        match read {
            Some(bytes) => victim.take_bytes(bytes),
            None => victim.stage = Stage::Unreadable,
        }
        false
    }

    /// Decides a part of what is left of a victim that was read; how many bytes of it.
    pub(crate) fn decide(
        &mut self,
        victim: &mut Victim,
        part: Part,
        now: Timestamp,
    ) -> Attempt<u64> {
        let Stage::Read { bytes, footer, next } = &mut victim.stage else { return Ok(0) };
        let of = Judged::new(victim.number, &victim.segment);
        let (mut decided, first) = (0, *next);
        while let Some(entry) = footer.get(*next) {
            if decided >= part.bytes || *next - first >= part.records {
                break;
            }
            let at = entry.offset as usize;
            let record = bytes.get(at..at + entry.record_bytes as usize).unwrap_or_default();
            victim.kept &= self.reclaim_record(&of, entry, record, now)?;
            decided += u64::from(entry.aligned_bytes());
            *next += 1;
        }
        let ended = *next == footer.len() || planted!("victim-released-half-decided");
        if ended {
            victim.end();
        }
        Ok(decided)
    }

    /// Ends the reclaim of a victim all of whose records are decided.
    pub(crate) fn end_reclaim(&mut self, victim: &Victim) {
        self.reclaiming -= 1;
        // A cache lets go of what it cannot read; what it evicted with it must not come back.
        if victim.kept || self.limits.policy.of_damaged() == OfDamaged::Goes {
            self.counters.segments_reclaimed += 1;
            if victim.segment.stream == Stream::Hot as u8 && !victim.is_empty() {
                self.learn_lifespan(&victim.segment);
            }
            self.log.release(victim.number);
        } else {
            self.log.set_aside(victim.number);
        }
    }

    /// Ends the reclaim of a victim that could not be brought to its end: it stays what it was.
    pub(crate) fn keep_victim(&mut self, victim: &Victim) {
        self.reclaiming -= 1;
        self.log.keep(victim.number);
    }

    /// Chooses a segment to reclaim.
    pub(crate) fn choose(&mut self) -> Result<Option<Victim>> {
        let mut number = self.best_victim();
        if number.is_none() && self.log.gives_snapshot_up() {
            number = self.best_victim();
        }
        self.victim_cursor =
            (self.victim_cursor + VICTIM_WINDOW) % self.log.segments().len().max(1);
        let Some(number) = number else { return Ok(None) };
        self.log.seal_segment(number)?;
        let segment = self.log.begin_reclaim(number);
        self.reclaiming += 1;
        Ok(Some(Victim { number, segment, stage: Stage::Chosen, kept: true }))
    }

    fn best_victim(&self) -> Option<u32> {
        self.limits.policy.choose(&Field {
            segments: self.log.segments(),
            segment_bytes: self.log.shape().segment_bytes,
            tombstone_bytes: self.log.tombstone_bytes(),
            now: self.sequence,
            start: self.victim_cursor,
            window: VICTIM_WINDOW,
            oldest_dead: &|| self.log.oldest_dead(None),
        })
    }

    fn learn_lifespan(&mut self, segment: &Segment) {
        let age = self.sequence.saturating_sub(segment.age) as f64;
        self.lifespan = if self.lifespan == f64::INFINITY || self.lifespan == 0.0 {
            age
        } else {
            self.lifespan * 0.9 + age * 0.1
        };
    }
}
