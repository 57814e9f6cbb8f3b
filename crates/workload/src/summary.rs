//! Latencies and sizes, recorded by the million and summed up in a line.
//!
//! A [`Recorder`] keeps an HDR histogram (three digits) and exact count, minimum, maximum and sum.
//! The geometric mean and the standard deviation are computed from the histogram on request, so
//! recording stays cheap; both are exact to the histogram's tenth of a percent.

use hdrhistogram::Histogram;

/// Values from 0 to 2^42 (an hour and more in nanoseconds). One thread's own; merge them after.
#[derive(Debug, Clone)]
pub struct Recorder {
    histogram: Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

/// What a recorder saw, in the unit that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The geometric mean of value + 1, less 1.
    pub geometric_mean: f64,
    /// The standard deviation.
    pub standard_deviation: f64,
    /// Half were at most this.
    pub p50: u64,
    /// 90 % were at most this.
    pub p90: u64,
    /// 99 % were at most this.
    pub p99: u64,
    /// 99.9 % were at most this.
    pub p999: u64,
    /// 99.99 % were at most this.
    pub p9999: u64,
}

const VALUE_MAX: u64 = 1 << 42;

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Recorder {
        let histogram = Histogram::new_with_bounds(1, VALUE_MAX, 3)
            .expect("the bounds are constants that the histogram accepts");
        Recorder { histogram, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Records `value`; what lies beyond the range counts as its end in percentiles.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.histogram.saturating_record(value);
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds what `other` saw.
    pub fn merge(&mut self, other: &Recorder) {
        if other.count() == 0 {
            return;
        }
        self.histogram
            .add(&other.histogram)
            .expect("all recorders have histograms of the same bounds");
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Values recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// How many were `value` or more; those less than a tenth of a percent below it may be counted.
    pub fn count_at_least(&self, value: u64) -> u64 {
        match value {
            0 => self.count(),
            _ if value > VALUE_MAX => 0,
            _ => self.histogram.count_between(value, u64::MAX),
        }
    }

    /// Each value that was recorded, to a tenth of a percent, and how often; rising.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.histogram.iter_recorded().map(|step| {
            let value = self.histogram.median_equivalent(step.value_iterated_to());
            (value.clamp(self.min, self.max), step.count_at_value())
        })
    }

    /// The figures so far.
    pub fn summary(&self) -> Summary {
        let count = self.count();
        if count == 0 {
            return Summary::default();
        }
        let mean = self.sum as f64 / count as f64;
        let (mut logarithms, mut squares) = (0.0, 0.0);
        for step in self.histogram.iter_recorded() {
            let value = self.histogram.median_equivalent(step.value_iterated_to()) as f64;
            let times = step.count_at_value() as f64;
            logarithms += times * value.ln_1p();
            squares += times * (value - mean) * (value - mean);
        }
        let at = |quantile| self.histogram.value_at_quantile(quantile).min(self.max);
        Summary {
            count,
            min: self.min,
            max: self.max,
            mean,
            geometric_mean: (logarithms / count as f64).exp_m1(),
            standard_deviation: (squares / count as f64).sqrt(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
        }
    }
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}
