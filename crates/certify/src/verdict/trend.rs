//! Does a device get slower while it is loaded?
//!
//! Sources: Mann (1945) and Kendall (1975) for the test, Theil (1950) and Sen (1968) for the slope.
//! Both compare pairs, so that a single outlier neither makes a trend nor hides one.

/// How a figure moved over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The figure where the line through the points begins.
    pub first: f64,
    /// The figure where it ends.
    pub last: f64,
    /// How unlikely the order of the points is without a trend, in standard deviations; above 0 it
    /// rises.
    pub score: f64,
}

const POINTS_MIN: usize = 6;
const POINTS_MAX: usize = 24;
const SCORE_MIN: f64 = 2.33;
const RISE_MIN: f64 = 1.2;

impl Trend {
    /// Of values at even distances of time; `None` where there are too few to tell.
    pub fn of(values: &[f64]) -> Option<Trend> {
        let points = grouped(values);
        let n = points.len();
        if n < POINTS_MIN {
            return None;
        }
        let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
        let mut sum = 0.0;
        for later in 1..n {
            for earlier in 0..later {
                let rise = points[later] - points[earlier];
                slopes.push(rise / (later - earlier) as f64);
                sum += if rise == 0.0 { 0.0 } else { rise.signum() };
            }
        }
        let slope = median(&mut slopes);
        let mut levels: Vec<f64> =
            points.iter().enumerate().map(|(index, value)| value - slope * index as f64).collect();
        let first = median(&mut levels);
        let count = n as f64;
        let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
        let score = if sum == 0.0 { 0.0 } else { (sum - sum.signum()) / deviation };
        Some(Trend { first, last: first + slope * (count - 1.0), score })
    }

    /// It rises by a fifth or more, and that is no chance (1 %).
    pub fn is_degradation(&self) -> bool {
        self.score >= SCORE_MIN && self.first > 0.0 && self.last >= self.first * RISE_MIN
    }
}

/// Means of equal groups, so that there are at most 24 points.
fn grouped(values: &[f64]) -> Vec<f64> {
    let size = values.len().div_ceil(POINTS_MAX).max(1);
    let mean = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
    values.chunks_exact(size).map(mean).collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entresol_workload::Random;

    #[test]
    fn a_rise_is_found_under_noise() {
        for seed in 1..=20 {
            let mut random = Random::new(seed);
            let values: Vec<f64> = (0..24)
                .map(|hour| 500.0 + 20.0 * f64::from(hour) + 100.0 * random.fraction())
                .collect();
            let trend = Trend::of(&values).unwrap();
            assert!(trend.is_degradation(), "seed {seed}: {trend:?}");
        }
    }

    #[test]
    fn noise_and_outliers_and_improvement_are_no_degradation() {
        let mut false_alarms = 0;
        for seed in 1..=100 {
            let mut random = Random::new(seed);
            let mut values: Vec<f64> =
                (0..240).map(|_| 500.0 + 500.0 * random.fraction()).collect();
            values[239] = 50_000.0;
            false_alarms += u32::from(Trend::of(&values).unwrap().is_degradation());
        }
        assert!(false_alarms <= 2, "{false_alarms} of 100");
        let falling: Vec<f64> = (0..24).map(|hour| 900.0 - 20.0 * f64::from(hour)).collect();
        assert!(!Trend::of(&falling).unwrap().is_degradation());
    }

    #[test]
    fn few_points_and_level_ones_say_nothing() {
        assert_eq!(Trend::of(&[1.0; 5]), None);
        assert_eq!(Trend::of(&[]), None);
        let level = Trend::of(&[7.0; 30]).unwrap();
        assert_eq!((level.first, level.last, level.score), (7.0, 7.0, 0.0));
    }
}
