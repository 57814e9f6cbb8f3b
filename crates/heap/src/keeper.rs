//! The heap's own thread: checkpoints beside commits, and syncs of buffered commits.
//!
//! Invariant: the thread holds the core of the heap and never the heap itself, so that it never
//! drops the last handle; closing stops and joins the thread.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::core::Core;
use crate::error::{Error, Result};

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
    fn wait(&self) -> Option<(bool, bool)> {
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

/// Starts the thread.
pub(crate) fn start(core: &Arc<Core>) -> Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    let thread = std::thread::Builder::new().name("heap".to_owned());
    let started = thread.spawn(move || {
        while let Some((checkpoint, sync)) = core.signal.wait() {
            // A failure poisons the heap, and every later commit tells of it.
            if sync {
                let _told_to_commits = core.log.sync();
            }
            if checkpoint {
                let _told_to_commits = core.checkpoint();
            }
        }
    });
    started.map_err(|error| Error::io("cannot start the heap's thread", error))
}
