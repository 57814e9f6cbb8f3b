//! The observer of a running load.

use crate::load::interval::{Interval, Kind};

/// Hears of intervals and of what goes wrong, on the thread that runs the load.
pub trait Observer {
    /// An interval is over. What went wrong in it was told before.
    fn interval(&mut self, interval: &Interval);

    /// Something went wrong; the load goes on, or ends for this reason.
    fn trouble(&mut self, _trouble: &Trouble) {}

    /// Whether the load is to end, as if it had been interrupted. Asked often.
    fn has_seen_enough(&self) -> bool {
        false
    }
}

impl<F: FnMut(&Interval)> Observer for F {
    fn interval(&mut self, interval: &Interval) {
        self(interval);
    }
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Trouble {
    /// A transfer failed.
    Failed {
        /// Of what.
        kind: Kind,
        /// As configured.
        device: String,
        /// The system's error number; 0 where it gave none.
        errno: i32,
        /// What, where and why.
        text: String,
    },
    /// A read brought something else than what was written there.
    Wrong {
        /// Of what.
        kind: Kind,
        /// As configured.
        device: String,
        /// Where, and what was found.
        text: String,
    },
    /// A stream fell too far behind its schedule.
    Lagged {
        /// Of what.
        kind: Kind,
        /// How far, ns.
        lag_ns: u64,
    },
    /// So much went wrong that the rest is only counted.
    Unlisted {
        /// How many more.
        count: u64,
    },
}

impl Kind {
    /// Whether it changes the device.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::LargeWrite)
    }
}
