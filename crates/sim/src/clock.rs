//! Time that a test moves.

use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that stands still until told otherwise. Milliseconds since the Unix epoch. Thread-safe.
#[derive(Debug)]
pub struct Clock {
    now_ms: AtomicU64,
}

impl Clock {
    /// A clock that shows `now_ms`.
    pub fn new(now_ms: u64) -> Clock {
        Clock { now_ms: AtomicU64::new(now_ms) }
    }

    /// What the clock shows.
    pub fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    /// Moves on by `ms` and returns the new time.
    pub fn advance(&self, ms: u64) -> u64 {
        self.now_ms.fetch_add(ms, Ordering::SeqCst) + ms
    }

    /// Shows `now_ms` from now on, be it in the past: a clock jump.
    pub fn jump(&self, now_ms: u64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }
}
