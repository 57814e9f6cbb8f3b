//! The devices under a cache and its volumes, for another thread to watch while the thread that
//! owns the cache may wait for one of them.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use entresol_device::{Attended, Device, PendingCount, PendingIo};
use parking_lot::Mutex;

/// The cache device and the backings. Thread-safe.
pub struct Devices {
    /// What all moments are reckoned from: whoever asks has to name moments of one clock.
    opened: Instant,
    /// Time that they were watched.
    attended: Mutex<Attended>,
    cache: Option<Arc<dyn Device>>,
    backings: Mutex<Vec<Counted>>,
}

/// A backing, whose volume counts what it has begun.
struct Counted {
    volume: String,
    backing: String,
    pending: Weak<PendingCount>,
}

/// The oldest request that a device has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The volume whose backing it is; `None`: the cache device.
    pub volume: Option<String>,
    /// The name of the device, and for how long.
    pub pending: PendingIo,
}

impl Devices {
    /// The device of a cache, if it has one.
    pub fn new(cache: Option<Arc<dyn Device>>) -> Devices {
        Devices {
            opened: Instant::now(),
            attended: Mutex::default(),
            cache,
            backings: Mutex::default(),
        }
    }

    /// A volume's backing; its requests are counted in what is returned, for as long as that is.
    pub(crate) fn add(&self, volume: &str, backing: &str) -> Arc<PendingCount> {
        let pending = Arc::new(PendingCount::default());
        let counted = Counted {
            volume: volume.to_owned(),
            backing: backing.to_owned(),
            pending: Arc::downgrade(&pending),
        };
        let mut backings = self.backings.lock();
        backings.retain(|known| known.pending.strong_count() > 0);
        backings.push(counted);
        pending
    }

    /// The oldest request of each device that has any. One that begins between two calls seems
    /// younger than it is by the time between them: whoever watches asks every second.
    pub fn unanswered(&self) -> Vec<Unanswered> {
        let now = self.attended.lock().look(self.opened.elapsed());
        let of_cache = self.cache.as_ref().and_then(|cache| cache.oldest_pending(now));
        let of_cache = of_cache.map(|pending| Unanswered { volume: None, pending });
        let backings = self.backings.lock();
        let of_backings = backings.iter().filter_map(|counted| counted.unanswered(now));
        of_cache.into_iter().chain(of_backings).collect()
    }
}

impl Counted {
    fn unanswered(&self, now: Duration) -> Option<Unanswered> {
        let age = self.pending.upgrade()?.oldest(now)?;
        let pending = PendingIo { device: self.backing.clone(), age };
        Some(Unanswered { volume: Some(self.volume.clone()), pending })
    }
}

impl std::fmt::Debug for Devices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Devices").field("opened", &self.opened).finish_non_exhaustive()
    }
}
