//! How fast dirty data is written back, by its amount.
//!
//! A proportional-integral controller, as bcache's: the rate is the one that would bring the dirty
//! share back to its target within ten seconds, plus the rate that has held it there so far.
//! Between the marks writers set the pace. Below the low mark dirty data trickles out, so that an
//! idle volume ends up clean. Above the high mark nothing holds the cleaner back.
//!
//! Invariants:
//! 1. The rate is never 0 while anything is dirty.
//! 2. The integral grows only while the cleaner reaches the rate that it is given, and above the
//!    high mark it follows the real rate. So a backing that cannot keep up leaves no debt behind,
//!    and the return below the mark changes the rate by little.

use crate::types::Moment;

/// Seconds in which the proportional part alone reaches the target.
const SECONDS_TO_TARGET: f64 = 10.0;

/// Seconds in which a steady distance from the target has the integral match the proportional part:
/// four times the time to the target, with which the share does not swing around it.
const SECONDS_TO_INTEGRATE: f64 = 4.0 * SECONDS_TO_TARGET;

/// Seconds in which the integral follows what is written back above the high mark.
const SECONDS_TO_FOLLOW: f64 = 5.0;

/// Longest time that one update counts for, seconds.
const STEP_MAX: f64 = 5.0;

/// Seconds of work that may be handed out at once.
const BURST_SECONDS: f64 = 0.25;

/// Between which shares of the log, and how fast, dirty data is written back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Marks {
    /// Share of the room for dirty data that is held while writers write.
    pub low: f64,
    /// Share from which the cleaner is not held back.
    pub high: f64,
    /// Bytes a second that are written back however little is dirty.
    pub trickle: u64,
    /// Bytes a second that the controller never goes beyond, below the high mark.
    pub most: u64,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { low: 0.1, high: 0.7, trickle: 1 << 20, most: 1 << 30 }
    }
}

/// The pace of write-back.
#[derive(Debug)]
pub struct Pace {
    marks: Marks,
    updated: Moment,
    /// Bytes a second that it took to hold the target.
    integral: f64,
    /// Bytes a second.
    rate: f64,
    /// Bytes that may be written back at once; less than nothing after one that was larger.
    allowance: f64,
    unlimited: bool,
    /// Bytes written back above the high mark since the last update.
    unlimited_bytes: f64,
}

/// What may be written back now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// As much as the backing takes.
    Unlimited,
    /// So many bytes, more than 0; a write that is larger may still be made whole.
    Bytes(u64),
    /// Nothing before this moment.
    Wait(Moment),
    /// Nothing is dirty.
    Clean,
}

impl Pace {
    /// Nothing is dirty. Marks out of order count as the nearest that are in order.
    pub fn new(marks: Marks, now: Moment) -> Pace {
        let low = if marks.low.is_finite() { marks.low.clamp(0.0, 1.0) } else { 0.0 };
        let high = if marks.high.is_finite() { marks.high.clamp(low, 1.0) } else { 1.0 };
        let trickle = marks.trickle.max(4096);
        let marks = Marks { low, high, trickle, most: marks.most.max(trickle) };
        Pace {
            marks,
            updated: now,
            integral: 0.0,
            rate: 0.0,
            allowance: 0.0,
            unlimited: false,
            unlimited_bytes: 0.0,
        }
    }

    /// What may be written back at `now`, of `dirty_bytes` in a room of `room_bytes`.
    pub fn on_turn(&mut self, dirty_bytes: u64, room_bytes: u64, now: Moment) -> Allowance {
        self.update(dirty_bytes as f64, room_bytes.max(1) as f64, now);
        if dirty_bytes == 0 {
            return Allowance::Clean;
        }
        if self.unlimited {
            return Allowance::Unlimited;
        }
        if self.allowance >= 1.0 {
            return Allowance::Bytes(self.allowance as u64);
        }
        // Until there is enough for a write worth making.
        let needed = (self.rate * BURST_SECONDS / 4.0).max(4096.0) - self.allowance;
        let wait = (needed / self.rate * 1e9) as u64;
        Allowance::Wait(Moment(now.0.saturating_add(wait.max(1))))
    }

    /// So many bytes are being written back.
    pub fn on_written_back(&mut self, bytes: u64) {
        if self.unlimited {
            self.unlimited_bytes += bytes as f64;
        } else {
            self.allowance -= bytes as f64;
        }
    }

    /// Bytes a second at present.
    pub fn rate(&self) -> u64 {
        self.rate as u64
    }

    fn update(&mut self, dirty: f64, room: f64, now: Moment) {
        let elapsed = now.0.saturating_sub(self.updated.0) as f64 / 1e9;
        self.updated = self.updated.max(now);
        let error = dirty - self.marks.low * room;
        let proportional = error / SECONDS_TO_TARGET;
        let burst = self.rate * BURST_SECONDS;
        // What was not used did not hold the cleaner back: the backing did.
        let keeps_up = self.allowance < burst;
        self.allowance = (self.allowance + self.rate * elapsed).min(burst.max(4096.0));
        if self.unlimited && elapsed > 0.0 {
            let part = 1.0 - (-elapsed / SECONDS_TO_FOLLOW).exp();
            let real = std::mem::take(&mut self.unlimited_bytes) / elapsed;
            self.integral += (real - self.integral) * part;
        } else if error < 0.0 || keeps_up {
            self.integral += proportional * elapsed.min(STEP_MAX) / SECONDS_TO_INTEGRATE;
        }
        self.integral = self.integral.clamp(0.0, self.marks.most as f64);
        let least = self.marks.trickle as f64;
        self.rate = (proportional + self.integral).clamp(least, self.marks.most as f64);
        let unlimited = dirty >= self.marks.high * room && dirty > 0.0;
        if self.unlimited && !unlimited {
            self.allowance = 0.0;
        }
        self.unlimited = unlimited;
    }
}
