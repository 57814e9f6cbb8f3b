//! What whoever calls maintenance again and again is told.

use std::time::Duration;

/// What a step of maintenance did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether it did anything; if not, it may rest a while.
    pub did_work: bool,
    /// It goes on when the device has answered: call again within a millisecond.
    pub awaits_device: bool,
}

impl Progress {
    /// How long whoever maintains in a loop may rest before the next call.
    pub fn rest(&self) -> Option<Duration> {
        let rest = Duration::from_micros(if self.awaits_device { 100 } else { 500 });
        (!self.did_work).then_some(rest)
    }
}
