//! What every process around the engine lends it: a clock, a thread for its background work, the
//! watch over devices that do not answer; and all of these together, with sessions and jobs, for a
//! store in a process that is not made around it.
//!
//! The engine starts no thread and reads no clock; servers, libraries and commands take both from
//! here, and so they do what the system knows of the process, and the [`Metrics`] that servers show
//! of it and of themselves. What a process says of failures, and to whom, is its own; servers have
//! a log for the people who run them, see [`start_log`].

mod buffers;
mod clock;
mod figures;
mod hosted;
mod logs;
mod metrics;
mod priority;
mod process;
mod stall_watch;
mod systemd;
mod upkeep;

pub use buffers::{BUFFER_DIRECTORY, sweep_buffers};
pub use clock::{ForeignClock, now};
pub use figures::FIGURES_WAIT;
pub use hosted::{
    Answer, Extent, Failure, Figures, Given, HostedOptions, HostedStore, Outbox, PageEnd, Request,
    Scan, Waiter, run_on_tables,
};
pub use logs::{LogFormat, LogLevel, set_log_level, start_log};
pub use metrics::{Histogram, Metrics, Reading, Series};
pub use priority::run_when_idle;
pub use process::{ProcessFigures, allow_open_files, is_ignored, open_files};
pub use stall_watch::{LOOK_INTERVAL, Losses, PendingAges, STALLED, STOP_INTERVAL, Stalls};
pub use systemd::Systemd;
pub use upkeep::{Background, Upkeep, keep};
