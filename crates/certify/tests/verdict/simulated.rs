//! A rig in virtual time: a device whose latency rises with its load, and its faults.
//!
//! Service times are exponential; the mean is `idle_ns` on an idle device and grows as in a queue,
//! so the load at which a share of operations is slow is known by formula. Each interval has evenly
//! spaced quantiles of the distribution: no randomness, no noise.

use std::ops::ControlFlow;

use entresol_certify::load::{Ending, Interval, Kind, Series, SeriesInterval, Telemetry};
use entresol_certify::{Preparation, Prepared, Rig, RigError};

/// The device, its load, and its faults.
#[derive(Debug, Clone)]
pub(crate) struct Simulated {
    /// Reads a second of the configured load.
    pub(crate) reads_per_second: f64,
    /// Reads a second that the device can do at most.
    pub(crate) capacity: f64,
    /// Mean service time when idle, ns.
    pub(crate) idle_ns: f64,
    /// Seconds between reports.
    pub(crate) interval: u32,
    /// What goes wrong.
    pub(crate) fault: Fault,
    /// Seconds of all loads and rests so far.
    pub(crate) clock: f64,
    /// Each load's factor.
    pub(crate) loads: Vec<f64>,
    /// Each rest's seconds.
    pub(crate) rests: Vec<u32>,
    /// How often it was prepared.
    pub(crate) preparations: usize,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// One read in so many fails.
    ErrorEvery(u64),
    /// A single large write fails.
    OneWriteError,
    /// A block reads back wrong.
    WrongBlock,
    /// From then on nothing completes.
    StallFrom(f64),
    /// The same, and the load does not stop by itself.
    StallForEver,
    /// The service time grows by this share of the idle one each second.
    SlowDown(f64),
    /// This share of what is due is never done.
    Shortfall(f64),
    /// No intervals between the two times.
    Gap(f64, f64),
    /// Somebody interrupts at that time.
    Interrupt(f64),
    /// The same, after an interval in which everything was slow.
    SlowThenInterrupt(f64),
    /// The load breaks at that time.
    Break(f64),
    /// The device is slower until so many seconds passed by its own clock.
    Fresh(f64),
    /// One device of two is slow.
    SlowDevice,
    /// One device is due this share more than it gets, and the other as much less.
    Uneven(f64),
    /// Threads of the load wait for a processor for 2 % of the time.
    BusyMachine,
    /// The devices tell of wear, media errors and throttling.
    Hot,
    /// Somebody asks to stop while the devices rest.
    StopResting,
    /// After so many loads the device is gone.
    Gone(usize),
    /// Everything waits so long, in ns, before it is issued.
    Waiting(u64),
}

impl Simulated {
    pub(crate) fn new(reads_per_second: f64, capacity: f64) -> Simulated {
        Simulated {
            reads_per_second,
            capacity,
            idle_ns: 150_000.0,
            interval: 10,
            fault: Fault::None,
            clock: 0.0,
            loads: Vec::new(),
            rests: Vec::new(),
            preparations: 0,
        }
    }

    pub(crate) fn with(mut self, fault: Fault) -> Simulated {
        self.fault = fault;
        self
    }

    /// The largest factor at which less than `percent` take `threshold_ms` or longer.
    pub(crate) fn knee(&self, percent: f64, threshold_ms: f64) -> f64 {
        let mean_ns = threshold_ms * 1e6 / (100.0 / percent).ln();
        self.capacity * (1.0 - self.idle_ns / mean_ns) / self.reads_per_second
    }

    fn interval(&self, number: u64, factor: f64) -> Interval {
        let start = (number - 1) as f64 * f64::from(self.interval);
        let end = start + f64::from(self.interval);
        let stalled = match self.fault {
            Fault::StallFrom(at) => start >= at,
            Fault::StallForEver => true,
            _ => false,
        };
        let rate = self.reads_per_second * factor;
        let due = (rate * f64::from(self.interval)).round() as u64;
        let use_of_capacity = rate / self.capacity;
        let mut idle_ns = self.idle_ns;
        match self.fault {
            Fault::SlowThenInterrupt(at) if end + f64::from(self.interval) > at => idle_ns *= 20.0,
            Fault::SlowDown(share) => idle_ns *= 1.0 + share * start,
            Fault::Fresh(until) if self.clock + start < until => {
                idle_ns *= 1.0 + (until - self.clock - start) / until;
            }
            _ => {}
        }
        let mean_ns = idle_ns / (1.0 - use_of_capacity).max(0.02);
        let mut behind_ns = ((use_of_capacity - 1.0).max(0.0) * end * 1e9) as u64;
        if let Fault::Waiting(ns) = self.fault {
            behind_ns += ns;
        }
        let done = match self.fault {
            _ if stalled => 0,
            Fault::Shortfall(share) => due - (due as f64 * share).round() as u64,
            _ => (due as f64 / use_of_capacity.max(1.0)) as u64,
        };
        let half = |mean| reads(due / 2, done / 2, mean, behind_ns);
        let shifted = match self.fault {
            Fault::Uneven(share) => (due as f64 / 2.0 * share) as u64,
            _ => 0,
        };
        let slow = if self.fault == Fault::SlowDevice { 2.2 } else { 1.0 };
        let mut devices = [half(mean_ns), half(mean_ns * slow)];
        devices[0].due += shifted;
        devices[1].due -= shifted;
        let mut all = SeriesInterval { due, bytes: done * 1536, ..SeriesInterval::default() };
        for device in &devices {
            all.service.merge(&device.service);
            all.response.merge(&device.response);
        }
        let large = due / 85 + 1;
        let mut series = vec![all];
        series.extend(devices);
        series.push(reads(large, if stalled { 0 } else { large }, mean_ns * 2.0, behind_ns));
        match self.fault {
            Fault::ErrorEvery(n) => series[0].errors = done / n,
            Fault::OneWriteError if number == 2 => series[3].errors = 1,
            Fault::WrongBlock if number == 3 => series[0].wrong = 1,
            _ => {}
        }
        let telemetry = self.telemetry(number, done, use_of_capacity);
        let lag_ns = if stalled { ((end - start) * 1e9) as u64 } else { behind_ns };
        let (start_seconds, end_seconds) = (start, end);
        Interval { number, start_seconds, end_seconds, series, lag_ns, telemetry }
    }

    fn telemetry(&self, number: u64, done: u64, use_of_capacity: f64) -> Vec<Telemetry> {
        let of = |device: &str| Telemetry {
            device: device.to_owned(),
            reads: done / 2,
            busy: use_of_capacity.min(1.0),
            temperature: Some(40.0 + use_of_capacity * 20.0),
            ..Telemetry::default()
        };
        let mut second = of("/dev/b");
        if self.fault == Fault::Hot {
            (second.wear_percent, second.spare_percent) = (Some(3.0), Some(99.0));
            second.media_errors = Some(u64::from(number == 2));
            second.throttled_seconds = Some(2);
            second.warnings = Some(if number == 3 { 0b10 } else { 0 });
        }
        vec![of("/dev/a"), second]
    }
}

impl Rig for Simulated {
    fn series(&self) -> Vec<Series> {
        let of = |name: &str, kind, device| Series { name: name.to_owned(), kind, device };
        vec![
            of("reads", Kind::Read, None),
            of("/dev/a-reads", Kind::Read, Some(0)),
            of("/dev/b-reads", Kind::Read, Some(1)),
            of("large-block-writes", Kind::LargeWrite, None),
        ]
    }

    fn interval_seconds(&self) -> u32 {
        self.interval
    }

    fn prepare(&mut self, _which: Preparation) -> Result<Prepared, RigError> {
        self.preparations += 1;
        Ok(Prepared { bytes: 2 << 30, seconds: 10, ..Prepared::default() })
    }

    fn load(
        &mut self,
        factor: f64,
        seconds: u32,
        visit: &mut dyn FnMut(&Interval) -> ControlFlow<()>,
    ) -> Result<Ending, RigError> {
        self.loads.push(factor);
        if let Fault::Gone(after) = self.fault
            && self.loads.len() > after
        {
            return Err(RigError("/dev/a: cannot be opened: No such device".to_owned()));
        }
        let started = self.clock;
        for number in 1.. {
            let interval = self.interval(number, factor);
            let end = interval.end_seconds;
            if self.fault != Fault::StallForEver && interval.start_seconds >= f64::from(seconds) {
                break;
            }
            match self.fault {
                Fault::Interrupt(at) | Fault::SlowThenInterrupt(at) if end > at => {
                    return Ok(Ending::Interrupted);
                }
                Fault::Break(at) if end > at => {
                    return Ok(Ending::Broken("/dev/a: the ring was closed".to_owned()));
                }
                Fault::Gap(from, to) if end > from && interval.start_seconds < to => continue,
                _ => {}
            }
            let lag_ns = interval.lag_ns;
            self.clock = started + end;
            if visit(&interval).is_break() {
                return Ok(Ending::Interrupted);
            }
            if lag_ns > 10_000_000_000 && self.fault != Fault::StallForEver {
                return Ok(Ending::Lagged { kind: Kind::Read, lag_ns });
            }
            self.clock = started;
        }
        self.clock = started + f64::from(seconds);
        Ok(Ending::Completed)
    }

    fn processor_wait_seconds(&self) -> Option<f64> {
        (self.fault == Fault::BusyMachine).then_some(self.clock * 0.02)
    }

    fn rest(&mut self, seconds: u32) -> ControlFlow<()> {
        self.clock += f64::from(seconds);
        self.rests.push(seconds);
        match self.fault {
            Fault::StopResting => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// `done` transfers of `due`, at evenly spaced quantiles.
fn reads(due: u64, done: u64, mean_ns: f64, behind_ns: u64) -> SeriesInterval {
    let mut series = SeriesInterval { due, bytes: done * 1536, ..SeriesInterval::default() };
    for index in 0..done {
        let quantile = (index as f64 + 0.5) / done as f64;
        let service = (-mean_ns * (1.0 - quantile).ln()) as u64;
        series.service.record(service);
        series.response.record(service + behind_ns);
    }
    series
}
