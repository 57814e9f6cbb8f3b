//! A bound on bytes a second.

use std::thread;
use std::time::{Duration, Instant};

/// How fast bytes may be asked for.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: Option<u64>,
    began: Instant,
    asked_bytes: u64,
}

impl Pace {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Pace {
        Pace { bytes_per_second, began: Instant::now(), asked_bytes: 0 }
    }

    /// Waits until `bytes` more may be asked for.
    pub(crate) fn wait(&mut self, bytes: u64) {
        if let Some(rate) = self.bytes_per_second {
            thread::sleep(due(self.asked_bytes, rate).saturating_sub(self.began.elapsed()));
            self.asked_bytes += bytes;
        }
    }
}

/// When, from the beginning on, what follows so many bytes may be asked for.
fn due(asked_bytes: u64, bytes_per_second: u64) -> Duration {
    Duration::from_secs_f64(asked_bytes as f64 / bytes_per_second.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_puts_off_what_follows_in_proportion() {
        assert_eq!(due(0, 10), Duration::ZERO);
        assert_eq!(due(25, 10), Duration::from_millis(2500));
        assert_eq!(due(1, 0), Duration::from_secs(1));
    }
}
