//! Time during which the process ran. Waits do not count time in which the process was stopped, or
//! in which its machine was saved as a snapshot.

use std::time::Duration;

/// Longest step from one look to the next that counts as a whole.
const STEP_MAX: Duration = Duration::from_secs(5);

/// A clock that goes on while it is looked at, every second or so.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attended {
    looked: Option<Duration>,
    passed: Duration,
}

impl Attended {
    /// Looks at `now`, of any clock; what has passed while it was looked at.
    pub fn look(&mut self, now: Duration) -> Duration {
        let step = now.saturating_sub(self.looked.unwrap_or(now));
        self.looked = Some(now);
        self.passed += step.min(STEP_MAX);
        self.passed
    }

    /// Looks at `now`; whether nobody had looked for long, or the clock was set.
    pub fn was_away(&mut self, now: Duration) -> bool {
        let before = self.looked.replace(now).unwrap_or(now);
        now < before || now - before > STEP_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// After a pause of 70 s requests that had just begun passed for such that were not answered,
    /// and clients for such that took nothing.
    #[test]
    fn time_that_nobody_looked_does_not_count() {
        let mut attended = Attended::default();
        assert_eq!(attended.look(at(100)), at(0));
        assert_eq!(attended.look(at(101)), at(1));
        assert_eq!(attended.look(at(171)), at(6));
        assert_eq!(attended.look(at(172)), at(7));
        assert_eq!(attended.look(at(50)), at(7), "the clock was set");
        assert_eq!(attended.look(at(51)), at(8));
    }

    #[test]
    fn a_look_after_a_pause_or_a_set_clock_is_one_after_an_absence() {
        let mut attended = Attended::default();
        let looks = [(100, false), (101, false), (106, false), (176, true), (177, false)];
        for (now, away) in looks.into_iter().chain([(50, true), (51, false)]) {
            assert_eq!(attended.was_away(at(now)), away, "at {now}");
        }
    }
}
