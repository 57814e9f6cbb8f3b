//! The loop that does a store's background work: reclaim, expiry, periodic syncs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use entresol_tier::{Budget, Error, Maintenance, Tiered, Timestamp};

use crate::clock::now;

/// Segments reclaimed before the store is asked again.
const BUDGET: Budget = Budget { segments: 4 };

/// What a process adds to the upkeep of its store.
pub trait Upkeep {
    /// Whether the loop ends.
    fn is_over(&self) -> bool;

    /// The moment that the store is told.
    fn now(&self) -> Timestamp {
        now()
    }

    /// Does what comes before each call.
    fn prepare(&mut self) {}

    /// Does what follows each call, whether it succeeded or not.
    fn follow_up(&mut self) {}

    /// Maintains what the process keeps in the store and the store knows nothing of, after each
    /// call that succeeded.
    ///
    /// # Errors
    /// As of the store's own work.
    fn maintain_above(&mut self) -> Result<Maintenance, Error> {
        Ok(Maintenance { quiet: true, ..Maintenance::default() })
    }

    /// Takes the first failure of a series. A store that cannot be kept is poisoned: writers are
    /// told so in any case.
    fn report(&mut self, _error: &Error) {}
}

/// Does the background work of `tiered` until `upkeep` is over. Whoever unparks the thread has it
/// look at once.
pub fn keep(tiered: &Tiered, upkeep: &mut impl Upkeep) {
    let mut fails = false;
    while !upkeep.is_over() {
        upkeep.prepare();
        let done = tiered.maintain(upkeep.now(), BUDGET);
        upkeep.follow_up();
        let done = done.and_then(|done| Ok(both(done, upkeep.maintain_above()?)));
        let rest = match done {
            Ok(done) => {
                fails = false;
                done.rest()
            }
            Err(error) => {
                if !std::mem::replace(&mut fails, true) {
                    upkeep.report(&error);
                }
                Some(Maintenance::IDLE)
            }
        };
        if let Some(rest) = rest {
            std::thread::park_timeout(rest);
        }
    }
}

/// What is left to do of the store's work and of that above it.
fn both(store: Maintenance, above: Maintenance) -> Maintenance {
    Maintenance {
        segments_freed: store.segments_freed + above.segments_freed,
        more: store.more || above.more,
        awaits_device: store.awaits_device || above.awaits_device,
        quiet: store.quiet && above.quiet,
    }
}

/// A thread that keeps a store until this is dropped.
#[derive(Debug)]
pub struct Background {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct UntilOver(Arc<AtomicBool>);

impl Upkeep for UntilOver {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Background {
    /// Begins to keep `tiered`.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(tiered: Arc<Tiered>) -> std::io::Result<Background> {
        let over = Arc::new(AtomicBool::new(false));
        let mut upkeep = UntilOver(Arc::clone(&over));
        let body = move || keep(&tiered, &mut upkeep);
        let thread = std::thread::Builder::new().name("upkeep".to_owned()).spawn(body)?;
        Ok(Background { over, thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}
