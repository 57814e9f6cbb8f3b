//! Handing what was gathered to the device: by who holds the shard, or right after by who held it.
//!
//! A whole segment takes the kernel longer than some fifty puts; gets and puts of other threads go
//! on with the shard meanwhile.

use std::sync::Arc;

use entresol_device::{Completion, Doorbell, Queue};

use super::Log;

/// How a log hands over what it gathers.
pub(super) struct Handing {
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

impl Handing {
    pub(super) fn new(queue: &dyn Queue) -> Handing {
        Handing { doorbell: queue.doorbell(), stage: Stage::AtOnce }
    }
}

impl Log {
    /// From now on what is written is gathered, if it can be handed over without the log.
    pub(crate) fn hand_over_later(&mut self) {
        if self.handing.doorbell.is_some() {
            self.handing.stage = Stage::Later;
        }
    }

    /// Ends that; what to ring once the shard is given back, if anything was gathered.
    pub(crate) fn due(&mut self) -> Option<Arc<dyn Doorbell>> {
        let stage = std::mem::replace(&mut self.handing.stage, Stage::AtOnce);
        if stage == Stage::Due { self.handing.doorbell.clone() } else { None }
    }

    /// Hands what was gathered to the device, now or later.
    pub(super) fn hand_over(&mut self) -> entresol_device::Result<()> {
        if self.handing.stage == Stage::AtOnce {
            return self.queue.submit();
        }
        self.handing.stage = Stage::Due;
        Ok(())
    }

    /// Takes completions, at least `wait_for`.
    pub(super) fn take_completions(
        &mut self,
        wait_for: usize,
        completions: &mut Vec<Completion>,
    ) -> entresol_device::Result<()> {
        if wait_for == 0 && self.handing.stage != Stage::AtOnce {
            // A request that was cut short is gathered once more.
            if self.queue.take_ready(completions)? {
                self.handing.stage = Stage::Due;
            }
            return Ok(());
        }
        self.queue.reap(wait_for, completions)
    }
}
