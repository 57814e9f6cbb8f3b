//! Handing what was gathered to the device, and waiting until it gives buffers back: by who holds
//! the shard, or by who held it.
//!
//! A whole segment takes the kernel longer than some fifty puts take, and the device longer still;
//! gets and puts of other threads go on with the shard meanwhile.

use std::sync::Arc;

use entresol_device::{Completion, Doorbell, Queue};

use super::{Attempt, Log, Refusal};
use crate::error::Result;
use crate::segment::{NO_BUFFER, Stream};

/// How a log hands over what it gathers.
pub(super) struct Submission {
    /// `None`: only the queue itself can.
    doorbell: Option<Arc<dyn Doorbell>>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// What is gathered is handed over at once.
    AtOnce,
    /// Whoever holds the shard hands it over later; nothing is to be handed over yet.
    Later,
    /// As `Later`, and there is something.
    Due,
}

impl Submission {
    pub(super) fn new(queue: &dyn Queue) -> Submission {
        Submission { doorbell: queue.doorbell(), stage: Stage::AtOnce }
    }
}

impl Log {
    /// From now on what is written is gathered, if it can be handed over without the log.
    #[inline]
    pub(crate) fn hand_over_later(&mut self) {
        if self.submission.doorbell.is_some() {
            self.submission.stage = Stage::Later;
        }
    }

    /// Ends that; what to ring once the shard is given back, if anything was gathered.
    #[inline]
    pub(crate) fn due(&mut self) -> Option<Arc<dyn Doorbell>> {
        match std::mem::replace(&mut self.submission.stage, Stage::AtOnce) {
            Stage::Due => self.submission.doorbell.clone(),
            Stage::AtOnce | Stage::Later => None,
        }
    }

    /// What is appended until this ends is one whole: it waits for buffers where it is.
    pub(crate) fn append_at_once(&mut self) {
        if self.submission.stage != Stage::AtOnce && self.queue.submit().is_ok() {
            self.submission.stage = Stage::AtOnce;
        }
    }

    /// A buffer that nobody writes from: the one sealed longest ago. Waits for the device if all
    /// are in use; refuses a put where that is waited for without the shard.
    pub(super) fn take_buffer(&mut self, stream: Stream) -> Attempt<u16> {
        let mut idle = self.idle_buffer();
        if idle.is_none() {
            self.poll(0)?;
            idle = self.idle_buffer();
        }
        let number = loop {
            match idle {
                Some(number) => break number,
                None => self.await_answer(stream)?,
            }
            idle = self.idle_buffer();
        };
        // One whose write has just failed is the only place where what it holds can be read.
        self.check_poisoned()?;
        if let Some(segment) = self.buffers[number].segment.take() {
            self.segments[segment as usize].buffer = NO_BUFFER;
        }
        self.unconfirm(number as u16);
        Ok(number as u16)
    }

    /// Whether the device has all buffers, and can be waited for without the shard.
    pub(crate) fn lacks_idle_buffer(&mut self) -> Result<bool> {
        if self.idle_buffer().is_some() || self.submission.doorbell.is_none() {
            return Ok(false);
        }
        self.poll(0)?;
        Ok(self.idle_buffer().is_none())
    }

    /// Refuses to begin a value of several segments while the device has more than half of the
    /// buffers: it is written as one whole, and would wait for them with the shard.
    pub(crate) fn demand_buffers(&mut self, value_bytes: usize) -> Attempt<()> {
        let segments = value_bytes / self.shape.segment_bytes as usize;
        if segments == 0 || self.submission.stage == Stage::AtOnce {
            return Ok(());
        }
        // Those of open segments are given back only when these are full.
        let open = self.streams.iter().flatten().count();
        let wanted = (segments + 1).min(self.buffers.len() / 2).min(self.buffers.len() - open);
        let idle = |log: &Log| {
            let idle = log.buffers.iter().filter(|b| b.writes == 0 && b.sealed != u64::MAX);
            idle.count()
        };
        if idle(self) < wanted {
            self.poll(0)?;
        }
        if idle(self) < wanted { self.await_answer(Stream::Cold) } else { Ok(()) }
    }

    fn idle_buffer(&self) -> Option<usize> {
        let idle = self.buffers.iter().enumerate();
        let idle = idle.filter(|(_, b)| b.writes == 0 && b.sealed != u64::MAX);
        idle.min_by_key(|(_, b)| b.sealed).map(|(number, _)| number)
    }

    /// Waits until the device has answered; refuses where that is waited for without the shard.
    /// Reclaim, which cannot decide a record twice, waits in any case.
    pub(super) fn await_answer(&mut self, stream: Stream) -> Attempt<()> {
        if self.submission.stage == Stage::AtOnce || stream.is_reclaim() {
            self.poll(1)?;
            return Ok(self.check_poisoned()?);
        }
        Err(Refusal::NeedsBuffer)
    }

    /// Hands what was gathered to the device, now or later.
    pub(super) fn hand_over(&mut self) -> entresol_device::Result<()> {
        if self.submission.stage == Stage::AtOnce {
            return self.queue.submit();
        }
        self.submission.stage = Stage::Due;
        Ok(())
    }

    /// Takes completions, at least `wait_for`.
    pub(super) fn take_completions(
        &mut self,
        wait_for: usize,
        completions: &mut Vec<Completion>,
    ) -> entresol_device::Result<()> {
        if wait_for == 0 && self.submission.stage != Stage::AtOnce {
            // A request that was cut short is gathered once more.
            if self.queue.take_ready(completions)? {
                self.submission.stage = Stage::Due;
            }
            return Ok(());
        }
        self.queue.reap(wait_for, completions)
    }
}
