//! The wall clock, as the engine takes it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use entresol_tier::Timestamp;

/// The present moment.
pub fn now() -> Timestamp {
    Timestamp(system_ms() as u64)
}

/// The clock of a caller that gives its own moments, as far as known: the system's, moved.
#[derive(Debug, Default)]
pub struct ForeignClock {
    ahead_ms: AtomicI64,
}

impl ForeignClock {
    /// The moment `given_ms`, which later ones are reckoned from; for 0 the present one.
    pub fn read(&self, given_ms: i64) -> Timestamp {
        if given_ms <= 0 {
            let now = system_ms() + self.ahead_ms.load(Ordering::Relaxed);
            return Timestamp(now.max(0) as u64);
        }
        self.ahead_ms.store(given_ms - system_ms(), Ordering::Relaxed);
        Timestamp(given_ms as u64)
    }
}

fn system_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}
