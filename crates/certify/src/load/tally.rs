//! The counts of a load's threads, and their sum as an interval.
//!
//! Each thread adds to one tally under a lock that only the reporter contends; the reporter takes
//! the counts away at the end of an interval.

use entresol_workload::Recorder;
use parking_lot::Mutex;

use crate::load::interval::{Kind, Series, SeriesInterval};

/// Counts of some threads since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    devices: usize,
    cells: Vec<SeriesCell>,
    lag_ns: u64,
}

/// Counts of one kind on one device.
#[derive(Debug, Default, Clone)]
struct SeriesCell {
    due: u64,
    errors: u64,
    wrong: u64,
    bytes: u64,
    /// Service and response; made when the first transfer is done, for they are large.
    times: Option<Box<(Recorder, Recorder)>>,
}

/// A completed transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) kind: Kind,
    pub(crate) device: usize,
    pub(crate) bytes: usize,
    pub(crate) service_ns: u64,
    pub(crate) response_ns: u64,
}

const KINDS: usize = 5;

impl Tally {
    /// Nothing counted yet, for so many devices.
    pub(crate) fn new(devices: usize) -> Tally {
        Tally { devices, cells: vec![SeriesCell::default(); KINDS * devices], lag_ns: 0 }
    }

    pub(crate) fn done(&mut self, done: Done) {
        let cell = self.cell(done.kind, done.device);
        cell.bytes += done.bytes as u64;
        let times = cell.times.get_or_insert_with(Box::default);
        times.0.record(done.service_ns);
        times.1.record(done.response_ns);
    }

    pub(crate) fn due(&mut self, kind: Kind, device: usize) {
        self.cell(kind, device).due += 1;
    }

    pub(crate) fn failed(&mut self, kind: Kind, device: usize) {
        self.cell(kind, device).errors += 1;
    }

    pub(crate) fn wrong(&mut self, kind: Kind, device: usize) {
        self.cell(kind, device).wrong += 1;
    }

    /// A stream was so far behind.
    pub(crate) fn lagged(&mut self, lag_ns: u64) {
        self.lag_ns = self.lag_ns.max(lag_ns);
    }

    fn cell(&mut self, kind: Kind, device: usize) -> &mut SeriesCell {
        &mut self.cells[position(kind) * self.devices + device]
    }
}

/// Takes what all `tallies` counted: each of `series`, and the longest lag.
pub(crate) fn take(tallies: &[Mutex<Tally>], series: &[Series]) -> (Vec<SeriesInterval>, u64) {
    let taken: Vec<Tally> = tallies
        .iter()
        .map(|tally| {
            let mut tally = tally.lock();
            let fresh = Tally::new(tally.devices);
            std::mem::replace(&mut *tally, fresh)
        })
        .collect();
    let lag_ns = taken.iter().map(|tally| tally.lag_ns).max().unwrap_or_default();
    let summed = series.iter().map(|series| {
        let mut sum = SeriesInterval::default();
        for tally in &taken {
            let devices = match series.device {
                Some(device) => device..device + 1,
                None => 0..tally.devices,
            };
            let first = position(series.kind) * tally.devices;
            for cell in &tally.cells[first + devices.start..first + devices.end] {
                add(&mut sum, cell);
            }
        }
        sum
    });
    (summed.collect(), lag_ns)
}

fn add(sum: &mut SeriesInterval, cell: &SeriesCell) {
    sum.due += cell.due;
    sum.errors += cell.errors;
    sum.wrong += cell.wrong;
    sum.bytes += cell.bytes;
    if let Some(times) = &cell.times {
        sum.service.merge(&times.0);
        sum.response.merge(&times.1);
    }
}

fn position(kind: Kind) -> usize {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::LargeRead => 2,
        Kind::LargeWrite => 3,
        Kind::Raid => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_of_all_devices_is_the_sum_of_those_of_each() {
        let series = |name: &str, device| Series { name: name.into(), kind: Kind::Read, device };
        let series = [series("reads", None), series("a", Some(0)), series("b", Some(1))];
        let tallies = [Mutex::new(Tally::new(2)), Mutex::new(Tally::new(2))];
        let done = |device, service_ns| Done {
            kind: Kind::Read,
            device,
            bytes: 512,
            service_ns,
            response_ns: 2 * service_ns,
        };
        tallies[0].lock().done(done(0, 1000));
        tallies[1].lock().done(done(1, 3000));
        tallies[1].lock().done(Done { kind: Kind::LargeRead, ..done(1, 9000) });
        tallies[1].lock().failed(Kind::Read, 1);
        tallies[0].lock().lagged(17);
        let (taken, lag_ns) = take(&tallies, &series);
        let counts: Vec<u64> = taken.iter().map(|one| one.service.count()).collect();
        assert_eq!((counts, lag_ns), (vec![2, 1, 1], 17));
        assert_eq!((taken[0].errors, taken[1].errors, taken[2].errors), (1, 0, 1));
        assert_eq!(taken[2].response.summary().max, 6000);
        let (again, lag_ns) = take(&tallies, &series);
        assert!(again.iter().all(|one| one.service.count() == 0) && lag_ns == 0, "taken once");
    }
}
