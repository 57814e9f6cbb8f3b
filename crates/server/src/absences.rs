//! Keys that were watched (`WATCH`) while there was no entry: an entry's version tells that it
//! changed, an absent one has none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use entresol_tier::{Condition, Key, Operation, SpaceId};

use crate::lock::lock;

/// Absent keys that somebody watches. Thread-safe; costs one load where there are none.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    count: AtomicUsize,
    keys: Mutex<HashMap<WatchedKey, Weak<AtomicBool>>>,
}

type WatchedKey = (SpaceId, Box<[u8]>);

/// One watcher's share in the watch over an absent key; ends when dropped.
#[derive(Debug)]
pub(crate) struct Absence {
    all: Arc<Absences>,
    key: WatchedKey,
    /// Shared by all who watch the key since it was last seen absent.
    ended: Option<Arc<AtomicBool>>,
}

impl Absences {
    /// Watches over `key` from now on. The caller looks afterwards whether it is absent.
    pub(crate) fn watch(self: &Arc<Self>, space: SpaceId, key: &[u8]) -> Absence {
        let key: WatchedKey = (space, key.into());
        let mut keys = lock(&self.keys);
        let present = keys.get(&key).and_then(Weak::upgrade);
        // One whose absence has ended says nothing about a watch that begins now.
        let flag = present.filter(|flag| !flag.load(Ordering::Acquire)).unwrap_or_else(|| {
            let flag = Arc::default();
            keys.insert(key.clone(), Arc::downgrade(&flag));
            flag
        });
        self.count.store(keys.len(), Ordering::SeqCst);
        Absence { all: Arc::clone(self), key, ended: Some(flag) }
    }

    /// Takes note that `operation` was begun. It may end the absence of its key, or not: whoever
    /// watches is told all the same.
    #[inline]
    pub(crate) fn see(&self, operation: &Operation<'_>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Operation::Put { key, options, .. } = operation
            && matches!(options.condition, Condition::Always | Condition::Absent)
        {
            self.end(*key);
        }
    }

    fn end(&self, key: Key<'_>) {
        let keys = lock(&self.keys);
        let flag = keys.get(&(key.space, key.bytes.into())).and_then(Weak::upgrade);
        if let Some(flag) = flag {
            flag.store(true, Ordering::Release);
        }
    }
}

impl Absence {
    /// Whether there may have been an entry since the watch began.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.as_ref().is_none_or(|flag| flag.load(Ordering::Acquire))
    }
}

impl Drop for Absence {
    fn drop(&mut self) {
        let mut keys = lock(&self.all.keys);
        self.ended = None;
        if keys.get(&self.key).is_some_and(|flag| flag.strong_count() == 0) {
            keys.remove(&self.key);
        }
        self.all.count.store(keys.len(), Ordering::SeqCst);
    }
}
