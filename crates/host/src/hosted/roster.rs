//! The names of a space's entries by partition, for as long as its partitions are scanned one after
//! another: the first of those scans reads all entries and notes the others, and each that follows
//! reads its own alone.
//!
//! Invariants:
//! 1. From the moment that a scan begins to note, every put that is answered is noted too, by
//!    [`Roster::wrote`] once it can be read. So a list names all that was there when it is taken.
//! 2. Names of what is gone are harmless: nothing is found by them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use entresol_tier::{EntryName, Key, SpaceId};
use parking_lot::Mutex;

use crate::hosted::scan::Scan;

/// Names that are noted, at most; 16 bytes each.
const NAMES_MAX: usize = 1 << 20;
/// How long lists are kept that nobody takes.
const KEPT: Duration = Duration::from_secs(30);

/// Lists of names, while there are any. Thread-safe; costs a put one load while there are none.
#[derive(Debug, Default)]
pub(super) struct Roster {
    active: AtomicBool,
    lists: Mutex<Option<Lists>>,
    /// Puts that are not answered yet, by their tokens.
    pending: Mutex<HashMap<u64, Written>>,
}

/// An entry that was put.
#[derive(Debug, Clone, Copy)]
struct Written {
    space: SpaceId,
    partition: u16,
    name: EntryName,
}

#[derive(Debug)]
struct Lists {
    space: SpaceId,
    names: HashMap<u16, Vec<EntryName>>,
    count: usize,
    /// Who notes; none once all is noted.
    noting: Option<Weak<Scan>>,
    used: Instant,
}

impl Roster {
    /// The names of all entries of a partition, if they are noted; their list goes.
    pub(super) fn take(&self, space: SpaceId, partition: u16) -> Option<Vec<EntryName>> {
        let mut guard = self.lists.lock();
        let lists = guard.as_mut().filter(|l| l.space == space && l.noting.is_none())?;
        let mut names = lists.names.remove(&partition)?;
        lists.count -= names.len();
        lists.used = Instant::now();
        if lists.names.is_empty() {
            self.end(&mut guard);
        }
        names.sort_unstable();
        names.dedup();
        Some(names)
    }

    /// Begins to note for `scan` the entries of as many partitions as there is room for; whether it
    /// does. `counts` gives partitions, in the order in which they may be wanted, and how many
    /// entries they have.
    pub(super) fn begin(&self, scan: &Arc<Scan>, counts: impl Iterator<Item = (u16, u64)>) -> bool {
        let mut guard = self.lists.lock();
        let busy =
            |lists: &Lists| lists.noting.as_ref().is_some_and(|noting| noting.upgrade().is_some());
        if guard.as_ref().is_some_and(busy) {
            return false;
        }
        let mut room = NAMES_MAX as u64 / 2;
        let fits = |(partition, count): (u16, u64)| {
            room = room.checked_sub(count)?;
            Some((partition, Vec::new()))
        };
        let names: HashMap<u16, Vec<EntryName>> = counts.map_while(fits).collect();
        if names.is_empty() {
            self.end(&mut guard);
            return false;
        }
        *guard = Some(Lists {
            space: scan.space,
            names,
            count: 0,
            noting: Some(Arc::downgrade(scan)),
            used: Instant::now(),
        });
        // From here on puts are noted; those that were begun before and cannot be read yet are in
        // `pending`, as they will be told of later.
        self.active.store(true, Ordering::SeqCst);
        let pending: Vec<_> = self.pending.lock().values().copied().collect();
        for written in pending {
            self.add(&mut guard, written);
        }
        true
    }

    /// Notes what a scan read, if it is still the one that notes.
    pub(super) fn note(&self, scan: &Scan, noted: &[(u16, EntryName)]) {
        let mut guard = self.lists.lock();
        for (partition, name) in noted {
            let Some(lists) = guard.as_ref().filter(|lists| lists.are_noted_by(scan)) else {
                return;
            };
            let read = Written { space: lists.space, partition: *partition, name: *name };
            self.add(&mut guard, read);
        }
    }

    /// All that `scan` notes is noted, or, where damaged entries have unknown partitions, not all
    /// can be.
    pub(super) fn finish(&self, scan: &Scan, whole: bool) {
        let mut guard = self.lists.lock();
        let Some(lists) = guard.as_mut().filter(|lists| lists.are_noted_by(scan)) else { return };
        if whole {
            lists.noting = None;
            lists.used = Instant::now();
        } else {
            self.end(&mut guard);
        }
    }

    /// A put is done that `name` names: to be called before it is answered. With a token it is not
    /// done yet, and [`Roster::answered`] follows.
    pub(super) fn wrote(
        &self,
        key: Key<'_>,
        token: Option<u64>,
        name: &dyn Fn() -> Option<EntryName>,
    ) {
        let written = |name| Written { space: key.space, partition: key.partition, name };
        if let Some((token, name)) = token.zip(token.and_then(|_| name())) {
            self.pending.lock().insert(token, written(name));
        }
        if self.active.load(Ordering::SeqCst)
            && let Some(name) = name()
        {
            self.add(&mut self.lists.lock(), written(name));
        }
    }

    /// What was begun with a token is done.
    pub(super) fn answered(&self, token: u64) {
        self.pending.lock().remove(&token);
    }

    /// Gives lists up that nobody takes any more.
    pub(super) fn tidy(&self) {
        if !self.active.load(Ordering::Relaxed) {
            return;
        }
        let mut guard = self.lists.lock();
        let over = guard.as_ref().is_none_or(|lists| {
            let abandoned = lists.noting.as_ref().is_some_and(|noting| noting.upgrade().is_none());
            abandoned || lists.used.elapsed() > KEPT && lists.noting.is_none()
        });
        if over {
            self.end(&mut guard);
        }
    }

    /// How many puts are not answered yet.
    #[cfg(test)]
    pub(super) fn pending_puts(&self) -> usize {
        self.pending.lock().len()
    }

    fn add(&self, lists: &mut Option<Lists>, written: Written) {
        let of_space = |lists: &&mut Lists| lists.space == written.space;
        let Some(some) = lists.as_mut().filter(of_space) else { return };
        if let Some(names) = some.names.get_mut(&written.partition) {
            names.push(written.name);
            some.count += 1;
            if some.count > NAMES_MAX {
                self.end(lists);
            }
        }
    }

    fn end(&self, lists: &mut Option<Lists>) {
        *lists = None;
        self.active.store(false, Ordering::SeqCst);
    }
}

impl Lists {
    fn are_noted_by(&self, scan: &Scan) -> bool {
        self.noting.as_ref().is_some_and(|noting| std::ptr::eq(noting.as_ptr(), scan))
    }
}
