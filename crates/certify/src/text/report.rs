//! A report: the histograms of a test so far. They only grow, as ACT's do.

use std::fmt::Write;

use crate::buckets::{BucketUnit, Buckets};
use crate::load::{Interval, Series};

/// Turns intervals, which count for themselves, into reports, which count from the beginning.
#[derive(Debug, Clone)]
pub struct ReportText {
    names: Vec<String>,
    buckets: Vec<Buckets>,
    unit: BucketUnit,
    interval_seconds: u64,
}

impl ReportText {
    /// Reports on `series` every `interval_seconds`.
    pub fn new(series: &[Series], unit: BucketUnit, interval_seconds: u32) -> ReportText {
        ReportText {
            names: series.iter().map(|one| one.name.clone()).collect(),
            buckets: vec![Buckets::new(); series.len()],
            unit,
            interval_seconds: u64::from(interval_seconds),
        }
    }

    /// The report after `interval`, with service times as ACT measures them.
    pub fn report(&mut self, interval: &Interval) -> String {
        for (buckets, one) in self.buckets.iter_mut().zip(&interval.series) {
            buckets.merge(&one.service, self.unit);
        }
        self.text(self.seconds_at_end(interval))
    }

    /// Whole seconds. Interval after interval, but for a last one that ended sooner: rates are
    /// counts by these seconds.
    fn seconds_at_end(&self, interval: &Interval) -> u64 {
        let nominal = interval.number.saturating_mul(self.interval_seconds);
        let ended = interval.end_seconds.ceil() as u64;
        // Each report is later than the one before.
        let before = nominal.saturating_sub(self.interval_seconds);
        ended.max(before.saturating_add(1)).min(nominal)
    }

    /// The report at `seconds`, of buckets counted elsewhere; they hold everything so far.
    pub fn report_buckets(&mut self, seconds: u64, buckets: &[Buckets]) -> String {
        self.buckets.clone_from_slice(buckets);
        self.text(seconds)
    }

    fn text(&self, seconds: u64) -> String {
        let mut text = format!("after {seconds} sec:\n");
        for (name, buckets) in self.names.iter().zip(&self.buckets) {
            write!(text, "{name} ({} total)\n{buckets}", buckets.total())
                .expect("writing to a string cannot fail");
        }
        text.push('\n');
        text
    }
}
