//! The events between two reports.

use entresol_workload::Recorder;

/// One kind of transfer, on one device or on all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// As ACT names its histogram: `reads`, `/dev/a-reads`, `large-block-writes`.
    pub name: String,
    /// What is transferred.
    pub kind: Kind,
    /// Which device, as a position in the configuration; `None`: all together.
    pub device: Option<usize>,
}

/// Kinds of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A record, or a page of the index.
    Read,
    /// A record committed, or a page of the index.
    Write,
    /// A block that defragmentation reads.
    LargeRead,
    /// A block of records.
    LargeWrite,
    /// A block that the tomb raider reads; ACT has no histogram of them.
    Raid,
}

/// One report interval. Counts are of this interval alone.
#[derive(Debug, Clone)]
pub struct Interval {
    /// 1 is the first.
    pub number: u64,
    /// When it began, seconds since the start of the load.
    pub start_seconds: f64,
    /// When it ended, seconds since the start of the load.
    pub end_seconds: f64,
    /// In the order of the plan's list of series; the same in each interval.
    pub series: Vec<SeriesInterval>,
    /// The furthest that any stream was behind its schedule, ns.
    pub lag_ns: u64,
    /// One for each device, where the system tells.
    pub telemetry: Vec<Telemetry>,
}

/// One series in one interval.
#[derive(Debug, Clone, Default)]
pub struct SeriesInterval {
    /// Transfers that the schedule made due.
    pub due: u64,
    /// Transfers that failed.
    pub errors: u64,
    /// Blocks that held something else than what was written there.
    pub wrong: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// From submission to completion, ns; its count is that of the completed transfers.
    pub service: Recorder,
    /// From the due time to completion, ns.
    pub response: Recorder,
}

/// What the system says of one device, differences over the interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Telemetry {
    /// As configured.
    pub device: String,
    /// Reads that the device completed, all processes together.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes that the device completed.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Share of the time it was busy, 0 to 1.
    pub busy: f64,
    /// Mean requests in its queue.
    pub queue_depth: f64,
    /// °C, where the device tells.
    pub temperature: Option<f64>,
    /// Share of its endurance used, %, where the device tells.
    pub wear_percent: Option<f64>,
    /// Share of its spare blocks that is left, %, where the device tells.
    pub spare_percent: Option<f64>,
    /// Data that the device could not bring back by itself, where it tells.
    pub media_errors: Option<u64>,
    /// Seconds that the device went slower so as not to get too hot, where it tells.
    pub throttled_seconds: Option<u64>,
    /// What the device warns of, as the bits of NVMe's critical warning; 0: nothing.
    pub warnings: Option<u8>,
}

/// Why a load ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// Its time was over.
    Completed,
    /// A stream of `kind` fell further behind than allowed.
    Lagged {
        /// Of what.
        kind: Kind,
        /// How far, ns.
        lag_ns: u64,
    },
    /// Somebody asked it to stop.
    Interrupted,
    /// It could not go on.
    Broken(String),
}
