//! Issuing a load, and reporting how the devices performed.
//!
//! A [`Plan`] describes the transfers, their places and their rates. [`Target`]s are the devices,
//! opened with care. [`run`] issues the plan on the targets and reports each [`Interval`] to an
//! [`Observer`].

mod arrival;
mod content;
mod error;
mod foreign;
mod health;
mod interval;
mod journal;
mod judging;
mod ledger;
mod model;
mod observer;
mod pace;
mod plan;
mod port;
mod psync;
mod ring;
mod serial;
mod session;
mod shape;
mod tally;
mod target;
mod telemetry;

pub use arrival::{Arrival, Recording};
pub use content::{
    Content, Description, Fault, Marking, OWN_MAGIC, Place, UNIT_BYTES, Unit, Verified, Wrong,
    read_unit,
};
pub use error::{Error, Result, errno_text};
pub use interval::{Ending, Interval, Kind, Series, SeriesInterval, Telemetry};
pub use journal::{JournalReport, check_journal};
pub use ledger::{Floor, Floors};
pub use model::{ModelOptions, NewBlocks, ReclaimRule};
pub use observer::{Observer, Trouble};
pub use pace::{Loop, Pace, Steps};
pub(crate) use plan::fresh_number;
pub use plan::{Engine, Judging, Pacing, Plan, Stream, Timing, Writing};
pub use serial::{serial, token};
pub use session::{check, run};
pub use shape::{Shape, Sizes};
pub use target::{Durability, Manner, Target, TargetOptions};
