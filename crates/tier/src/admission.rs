//! Which entries may enter flash.
//!
//! A write budget is kept twice: a probability, adapted every tenth of a second to what is offered,
//! spreads the budget evenly over all entries; a bucket of one second's bytes bounds what is
//! written while the offer grows faster than the probability falls.
//!
//! It reads no clock: that comes in as an argument. What it draws follows from how many it drew.

use entresol_flash::Timestamp;
use parking_lot::Mutex;

/// Which entries may enter flash.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Admission {
    /// All.
    #[default]
    Always,
    /// As many as keep writes to flash under a budget, bytes per second.
    WriteBudget(u64),
}

/// What admission says of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admit,
    Reject,
}

/// Decides entry by entry. Thread-safe.
#[derive(Debug)]
pub(crate) struct AdmissionPolicy {
    /// `None` admits all.
    budget: Option<Mutex<Budget>>,
}

#[derive(Debug)]
struct Budget {
    bytes_per_second: f64,
    /// Share of what is offered that is admitted.
    probability: f64,
    /// Bytes that may be written at once.
    tokens: f64,
    refilled: Timestamp,
    window_start: Timestamp,
    /// Bytes offered in this window.
    offered: f64,
    /// Entries decided on: each draws a number of its own.
    decided: u64,
}

const WINDOW_MS: u64 = 100;

impl AdmissionPolicy {
    pub(crate) fn new(admission: Admission, now: Timestamp) -> AdmissionPolicy {
        let budget = match admission {
            Admission::Always => None,
            Admission::WriteBudget(bytes) => Some(Mutex::new(Budget {
                bytes_per_second: bytes as f64,
                probability: 1.0,
                tokens: bytes as f64,
                refilled: now,
                window_start: now,
                offered: 0.0,
                decided: 0,
            })),
        };
        AdmissionPolicy { budget }
    }

    /// Whether an entry of `bytes` may be written. Who is refused is as likely as anybody to be
    /// admitted when it comes again.
    pub(crate) fn decide(&self, bytes: u64, now: Timestamp) -> Verdict {
        match &self.budget {
            None => Verdict::Admit,
            Some(budget) => budget.lock().decide(bytes as f64, now),
        }
    }

    /// Counts bytes against the budget that are written without asking.
    pub(crate) fn spend(&self, bytes: u64) {
        if let Some(budget) = &self.budget {
            budget.lock().tokens -= bytes as f64;
        }
    }
}

impl Budget {
    fn decide(&mut self, bytes: f64, now: Timestamp) -> Verdict {
        self.refill(now);
        self.adapt(now);
        self.offered += bytes;
        self.decided += 1;
        let draw = drawn(self.decided);
        let lucky = (draw as f64) < self.probability * u64::MAX as f64 || self.probability >= 1.0;
        if lucky && self.tokens >= bytes.min(self.bytes_per_second) {
            self.tokens -= bytes;
            Verdict::Admit
        } else {
            Verdict::Reject
        }
    }

    fn refill(&mut self, now: Timestamp) {
        let elapsed = now.0.saturating_sub(self.refilled.0) as f64 / 1000.0;
        let limit = self.bytes_per_second;
        self.tokens = (self.tokens + elapsed * self.bytes_per_second).min(limit);
        // A clock that was set back refills nothing until it has caught up by itself.
        self.refilled = now;
    }

    fn adapt(&mut self, now: Timestamp) {
        let elapsed = now.0.saturating_sub(self.window_start.0);
        if now >= self.window_start && elapsed < WINDOW_MS {
            return;
        }
        let allowed = self.bytes_per_second * elapsed as f64 / 1000.0;
        if allowed > 0.0 {
            let wanted = (allowed / self.offered.max(1.0)).min(1.0);
            self.probability = (self.probability + wanted) / 2.0;
        }
        self.offered = 0.0;
        self.window_start = now;
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): numbers in turn give numbers that
/// look random.
fn drawn(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes admitted of `offered` bytes a second during `seconds`, one entry a millisecond at
    /// least.
    fn admitted(policy: &AdmissionPolicy, start: u64, seconds: u64, offered: u64) -> u64 {
        let entry = 1700;
        let each_ms = offered / 1000 / entry;
        let entries = (start * 1000..(start + seconds) * 1000)
            .flat_map(|ms| (0..each_ms).map(move |_| Timestamp(ms)));
        let count = entries.filter(|now| policy.decide(entry, *now) == Verdict::Admit);
        count.count() as u64 * entry
    }

    #[test]
    fn writes_stay_within_the_budget_and_use_it() {
        let budget = 20_000_000;
        let policy = AdmissionPolicy::new(Admission::WriteBudget(budget), Timestamp(0));
        // Changing offers: the same, five times, fifty times, half of the budget.
        for (start, offered, expected) in [
            (0, 20_400_000, 19_000_000..=22_000_000),
            (20, 100_000_000, 18_500_000..=20_500_000),
            (40, 1_000_000_000, 18_500_000..=20_500_000),
            (60, 10_200_000, 9_500_000..=10_200_000),
        ] {
            let mean = admitted(&policy, start, 10, offered) / 10;
            assert!(mean <= budget + budget / 10, "one second's burst in ten at most");
            // The first second after a change is spent adapting.
            let mean = admitted(&policy, start + 10, 10, offered) / 10;
            assert!(expected.contains(&mean), "{offered} offered: {mean} a second");
        }
    }

    /// Each key had a draw of its own for good: nine of ten never came in.
    #[test]
    fn entries_that_come_again_until_they_are_admitted_all_are_in_time() {
        let policy = AdmissionPolicy::new(Admission::WriteBudget(1_000_000), Timestamp(0));
        let mut waiting = 4000_u64;
        for ms in 0..30_000 {
            // Ten times the budget, as long as all are waiting.
            let come = (waiting * 10).div_ceil(4000);
            let admitted =
                (0..come).filter(|_| policy.decide(1000, Timestamp(ms)) == Verdict::Admit);
            waiting -= admitted.count().min(waiting as usize) as u64;
        }
        assert!(waiting < 40, "{waiting} of 4000 are out yet");
    }

    #[test]
    fn without_a_budget_all_are_admitted() {
        let policy = AdmissionPolicy::new(Admission::Always, Timestamp(0));
        policy.spend(u64::MAX);
        assert!((0..100).all(|_| policy.decide(1 << 30, Timestamp(0)) == Verdict::Admit));
    }

    #[test]
    fn writes_that_did_not_ask_take_from_the_budget() {
        let policy = AdmissionPolicy::new(Admission::WriteBudget(1_000_000), Timestamp(0));
        policy.spend(1_000_000);
        assert_eq!(policy.decide(1000, Timestamp(0)), Verdict::Reject);
        assert_eq!(policy.decide(1000, Timestamp(100)), Verdict::Admit);
    }
}
