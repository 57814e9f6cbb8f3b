//! Issuing a load and reporting what the devices made of it.

mod interval;

pub use interval::{Ending, Interval, Kind, Series, SeriesInterval, Telemetry};
