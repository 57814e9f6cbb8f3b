//! Has a device settled? The rule of SNIA's performance test specification 2.0.2.

/// When a device counts as settled: over the last rounds, what is measured stays within a range of
/// its mean, and the straight line through it is nearly level.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyRule {
    /// Rounds that are looked at.
    pub window: usize,
    /// Largest less smallest, % of the mean.
    pub range_percent: f64,
    /// Rise or fall of the best straight line over the window, % of the mean.
    pub slope_percent: f64,
}

/// What was measured in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Completed transfers a second.
    pub done_per_second: f64,
    /// Mean service time of the judged transfers, ns.
    pub service_ns: f64,
}

/// How the rounds stand against the rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// All rounds, in order of time.
    pub rounds: Vec<Round>,
    /// The larger of both figures' ranges over the last window, % of the mean.
    pub range_percent: f64,
    /// The larger of both figures' slopes over the last window, % of the mean.
    pub slope_percent: f64,
    /// The rule holds.
    pub steady: bool,
}

impl SteadyRule {
    /// Holds `rounds` against the rule. Fewer rounds than the window are never steady.
    pub fn assess(&self, rounds: &[Round]) -> Steadiness {
        let last = &rounds[rounds.len().saturating_sub(self.window)..];
        let rates: Vec<f64> = last.iter().map(|round| round.done_per_second).collect();
        let times: Vec<f64> = last.iter().map(|round| round.service_ns).collect();
        let range_percent = range(&rates).max(range(&times));
        let slope_percent = slope(&rates).max(slope(&times));
        Steadiness {
            rounds: rounds.to_vec(),
            range_percent,
            slope_percent,
            steady: last.len() >= self.window.max(1)
                && rates.iter().any(|rate| *rate > 0.0)
                && range_percent <= self.range_percent
                && slope_percent <= self.slope_percent,
        }
    }
}

impl Default for SteadyRule {
    fn default() -> SteadyRule {
        SteadyRule { window: 5, range_percent: 20.0, slope_percent: 10.0 }
    }
}

/// Largest less smallest, % of the mean.
fn range(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    let smallest = values.iter().copied().fold(f64::MAX, f64::min);
    share(largest - smallest, values)
}

/// How far the line of least squares moves from the first value to the last, % of the mean.
fn slope(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        products += x * value;
        squares += x * x;
    }
    if squares == 0.0 { 0.0 } else { share((products / squares * (n - 1.0)).abs(), values) }
}

fn share(part: f64, values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if mean > 0.0 { 100.0 * part / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assess(rates: &[f64]) -> Steadiness {
        let rounds: Vec<Round> =
            rates.iter().map(|rate| Round { done_per_second: 1000.0, service_ns: *rate }).collect();
        SteadyRule::default().assess(&rounds)
    }

    #[test]
    fn the_edge_of_range_and_slope_is_still_steady() {
        assert!(assess(&[100.0; 5]).steady);
        assert!(assess(&[100.0, 90.0, 110.0, 90.0, 110.0]).range_percent <= 20.0);
        assert!(!assess(&[100.0, 90.0, 111.0, 89.0, 110.0]).steady);
        // A line from 95 to 105 has a range and a slope of 10 %.
        let line = assess(&[95.0, 97.5, 100.0, 102.5, 105.0]);
        assert!(line.steady && (line.slope_percent - 10.0).abs() < 1e-9, "{line:?}");
        assert!(!assess(&[94.0, 97.0, 100.0, 103.0, 106.0]).steady);
    }

    #[test]
    fn only_the_last_window_counts_and_it_must_be_full() {
        assert!(!assess(&[100.0; 4]).steady);
        assert!(!assess(&[]).steady);
        assert!(assess(&[900.0, 500.0, 100.0, 100.0, 100.0, 100.0, 100.0]).steady);
    }

    #[test]
    fn a_device_that_does_nothing_is_not_steady() {
        let idle = vec![Round { done_per_second: 0.0, service_ns: 0.0 }; 9];
        assert!(!SteadyRule::default().assess(&idle).steady);
    }
}
