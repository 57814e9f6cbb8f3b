//! What the heap's own thread is asked to do, and how it waits for that.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// What the thread is asked to do.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wanted {
    checkpoint: bool,
    sync_at: Option<Instant>,
    stop: bool,
}

impl Signal {
    /// A checkpoint, soon.
    pub(crate) fn want_checkpoint(&self) {
        let mut wanted = self.wanted.lock();
        if !wanted.checkpoint {
            wanted.checkpoint = true;
            self.changed.notify_all();
        }
    }

    /// A sync at most `within` from now.
    pub(crate) fn want_sync(&self, within: Duration) {
        let mut wanted = self.wanted.lock();
        let at = Instant::now() + within;
        if wanted.sync_at.is_none_or(|earlier| at < earlier) {
            wanted.sync_at = Some(at);
            self.changed.notify_all();
        }
    }

    /// Whether the time for a sync has come; then it is not asked for any more.
    pub(crate) fn take_sync(&self) -> bool {
        let mut wanted = self.wanted.lock();
        let is_due = wanted.sync_at.is_some_and(|at| at <= Instant::now());
        if is_due {
            wanted.sync_at = None;
        }
        is_due
    }

    pub(crate) fn stop(&self) {
        self.wanted.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits for something to do: whether a checkpoint and whether a sync; `None` to end.
    pub(crate) fn wait(&self) -> Option<(bool, bool)> {
        let mut wanted = self.wanted.lock();
        loop {
            let now = Instant::now();
            let sync = wanted.sync_at.is_some_and(|at| at <= now);
            if wanted.stop {
                return None;
            }
            if wanted.checkpoint || sync {
                let checkpoint = std::mem::take(&mut wanted.checkpoint);
                if sync {
                    wanted.sync_at = None;
                }
                return Some((checkpoint, sync));
            }
            match wanted.sync_at {
                Some(at) => drop(self.changed.wait_until(&mut wanted, at)),
                None => self.changed.wait(&mut wanted),
            }
        }
    }
}
