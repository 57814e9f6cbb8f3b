//! The global schedule of an open load.

use std::path::Path;
use std::sync::Arc;

use entresol_workload::Random;

use crate::load::error::{Error, Result};

/// When transfers are due.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrival {
    /// At even distances.
    Even,
    /// Independently of each other.
    Poisson,
    /// Like these, seconds since the beginning, again and again, sped up or slowed down to the rate
    /// of the stream.
    Recorded(Arc<Recording>),
}

/// Recorded arrivals.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Distances as multiples of the mean one.
    distances: Vec<f64>,
}

/// The due times of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    arrival: Arrival,
    mean_ns: f64,
    next_ns: f64,
    position: usize,
}

impl Recording {
    /// Reads a file of times in seconds, one a line. Blank lines and `#` to the end of a line are
    /// skipped.
    pub fn read(path: &Path) -> Result<Recording> {
        let failed =
            |what: String| Error::Plan(format!("arrivals: recorded {}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let mut seconds = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let time: f64 = line.parse().map_err(|_| {
                let number = index + 1;
                failed(format!("line {number} is `{line}`; expected seconds such as 12.345"))
            })?;
            seconds.push(time);
        }
        Recording::of(&seconds).ok_or_else(|| {
            failed("expected two times or more that do not fall and are not all the same".into())
        })
    }

    /// Takes times in seconds that do not fall; `None` if fewer than two differ.
    pub fn of(seconds: &[f64]) -> Option<Recording> {
        let sorted = seconds.windows(2).all(|pair| pair[0] <= pair[1]);
        let (first, last) = (seconds.first()?, seconds.last()?);
        if !sorted || !first.is_finite() || !last.is_finite() || last <= first {
            return None;
        }
        let mean = (last - first) / (seconds.len() - 1) as f64;
        let distances = seconds.windows(2).map(|pair| (pair[1] - pair[0]) / mean).collect();
        Some(Recording { distances })
    }
}

impl Arrivals {
    /// At `per_sec` on average; the first somewhere within the first mean distance, so that streams
    /// and threads do not move in step.
    pub(crate) fn new(arrival: &Arrival, per_sec: f64, random: &mut Random) -> Arrivals {
        let mean_ns = 1e9 / per_sec;
        let next_ns = random.fraction() * mean_ns;
        let position = match arrival {
            Arrival::Recorded(recording) => random.below(recording.distances.len() as u64) as usize,
            Arrival::Even | Arrival::Poisson => 0,
        };
        Arrivals { arrival: arrival.clone(), mean_ns, next_ns, position }
    }

    /// When the next transfer is due, ns.
    pub(crate) fn peek(&self) -> u64 {
        self.next_ns as u64
    }

    /// Goes on to the one after it.
    pub(crate) fn advance(&mut self, random: &mut Random) {
        let distance = match &self.arrival {
            Arrival::Even => 1.0,
            Arrival::Poisson => -(1.0 - random.fraction()).ln(),
            Arrival::Recorded(recording) => {
                self.position = (self.position + 1) % recording.distances.len();
                recording.distances[self.position]
            }
        };
        self.next_ns += distance * self.mean_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arrival_process_keeps_the_rate() {
        let recording = Recording::of(&[0.0, 0.5, 0.5, 0.6, 3.0]).expect("it is one");
        let all = [Arrival::Even, Arrival::Poisson, Arrival::Recorded(Arc::new(recording))];
        for arrival in all {
            let mut random = Random::new(11);
            let mut arrivals = Arrivals::new(&arrival, 2000.0, &mut random);
            let mut count = 0;
            while arrivals.peek() < 10_000_000_000 {
                arrivals.advance(&mut random);
                count += 1;
            }
            assert!((19_500..20_500).contains(&count), "{count} of {arrival:?}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        for seconds in [&[][..], &[1.0], &[1.0, 1.0], &[2.0, 1.0], &[0.0, f64::NAN]] {
            assert_eq!(Recording::of(seconds), None, "{seconds:?}");
        }
    }
}
