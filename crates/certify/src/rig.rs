//! Devices and a load on them, as certification and search drive them.

mod devices;

use std::ops::ControlFlow;

use crate::load::{Ending, Interval, Series};

pub use devices::{Configured, DeviceRig, Doors, Filling, TROUBLES_MAX};

/// Devices, and what can be done to them. Real ones issue transfers, simulated ones make up
/// intervals.
pub trait Rig {
    /// What the intervals of its loads list.
    fn series(&self) -> Vec<Series>;

    /// How often its loads report, in seconds.
    fn interval_seconds(&self) -> u32;

    /// Fills the devices so that they behave as used ones.
    fn prepare(&mut self, which: Preparation) -> Result<Prepared, RigError>;

    /// Loads the devices with `factor` times the configured rates for so many seconds, and shows
    /// each interval as it ends. Where `visit` says `Break` the load ends as interrupted.
    fn load(
        &mut self,
        factor: f64,
        seconds: u32,
        visit: &mut dyn FnMut(&Interval) -> ControlFlow<()>,
    ) -> Result<Ending, RigError>;

    /// How long threads of the last load waited for a processor, in seconds, all together; `None`:
    /// not known. What they wait makes operations late without the device's doing.
    fn processor_wait_seconds(&self) -> Option<f64>;

    /// Leaves the devices alone for so long, so that they can tidy up. `Break`: somebody asked to
    /// stop.
    fn rest(&mut self, seconds: u32) -> ControlFlow<()>;
}

/// Which devices are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// Those that were not filled before, to their end.
    IfNeeded,
    /// All.
    Again,
}

/// What preparation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prepared {
    /// Bytes written, both passes.
    pub bytes: u64,
    /// Seconds it took.
    pub seconds: u64,
    /// Devices that were left as they were.
    pub left: usize,
    /// It was stopped before its end.
    pub stopped: bool,
}

/// Why a rig could not do what it was asked to. The sentence says what, where, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RigError(pub String);

impl std::fmt::Display for RigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RigError {}
