//! The state in memory that all users of one collection share: the transaction that changes it, and
//! the live views.
//!
//! ```text
//! idle ──enter──► held by a transaction ──its end──► idle
//! ```
//!
//! Invariants:
//! 1. Between the first change of a transaction and its end no other transaction changes the
//!    collection.
//! 2. A transaction waits for another only while it holds nothing or is the older one, so no
//!    transactions wait for each other in a circle.
//! 3. A block of generation `g` belongs to every view whose generation is above `g`; it is changed
//!    in place only if no such view is alive.
//!
//! The lock of `state` is a leaf: nothing is called under it but the heap's guard.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::attendance::Witness;
use crate::error::{Error, ErrorKind, Result};
use crate::transaction::PATIENCE;
use crate::{Heap, ReadGuard, Transaction};

/// The state in memory of the collection at one handle; one for each heap and handle.
#[derive(Debug)]
pub(super) struct Shared {
    heap: Heap,
    handle: u64,
    /// Number of the transaction that changes the collection; 0 if none does.
    holder: AtomicU64,
    state: Mutex<State>,
    released: Condvar,
    /// Generation of the newest view alive; 0 if there is none.
    newest: AtomicU64,
    /// What is born now gets this generation; changed under the lock of `state`.
    generation: AtomicU64,
    /// Odd while words change: readers of more than one word compare it.
    version: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// The thread that made the holder the holder.
    thread: Option<ThreadId>,
    /// Views alive, by generation.
    views: BTreeMap<u64, usize>,
}

/// Collections in use in this process, by the heap's base and the handle.
static IN_USE: Mutex<BTreeMap<(usize, u64), Weak<Shared>>> = Mutex::new(BTreeMap::new());

/// Why a transaction that others may wait for does not wait.
const OLDER: &str = "an older transaction changes it; abort this one, try again";

/// A change going on; ends when dropped.
pub(super) struct Change<'s> {
    shared: &'s Shared,
    /// Generation of what this change makes.
    pub(super) generation: u64,
    /// Blocks below this generation belong to a view.
    pub(super) frozen_below: u64,
}

/// A view's hold on the blocks it sees.
pub(super) struct Hold {
    shared: Arc<Shared>,
    generation: u64,
    _guard: ReadGuard,
}

impl Shared {
    /// The shared state of the collection at `handle`, whose blocks are of `generation` at most.
    pub(super) fn of(heap: &Heap, handle: u64, generation: u64) -> Arc<Shared> {
        let key = (heap.base() as usize, handle);
        let mut in_use = IN_USE.lock();
        if let Some(shared) = in_use.get(&key).and_then(Weak::upgrade) {
            // A block may be freed and become another collection while its last user is about.
            shared.generation.fetch_max(generation, Ordering::AcqRel);
            return shared;
        }
        let state = State { thread: None, views: BTreeMap::new() };
        let shared = Arc::new(Shared {
            heap: heap.clone(),
            handle,
            holder: AtomicU64::new(0),
            state: Mutex::new(state),
            released: Condvar::new(),
            newest: AtomicU64::new(0),
            generation: AtomicU64::new(generation),
            version: AtomicU64::new(0),
        });
        in_use.insert(key, Arc::downgrade(&shared));
        shared
    }

    /// Makes `transaction` the one that changes this collection, until it ends.
    pub(super) fn enter<'s>(
        self: &'s Arc<Shared>,
        transaction: &mut Transaction,
    ) -> Result<Change<'s>> {
        if self.holder.load(Ordering::Acquire) != transaction.attendance_mut().number() {
            self.hold(transaction)?;
        }
        self.version.fetch_add(1, Ordering::AcqRel);
        let generation = self.generation.load(Ordering::Acquire);
        let frozen_below = self.newest.load(Ordering::Acquire);
        Ok(Change { shared: self, generation, frozen_below })
    }

    /// Calls `see` at a moment without changes and keeps what it saw from being changed or reused.
    /// With a transaction, its own changes are seen.
    pub(super) fn freeze<T>(
        self: &Arc<Shared>,
        transaction: Option<&Transaction>,
        see: impl FnOnce() -> Result<T>,
    ) -> Result<(Hold, T)> {
        let patience = transaction.map_or(PATIENCE, Transaction::patience);
        self.freeze_within(patience, transaction, see)
    }

    /// As [`Shared::freeze`], waiting at most so long for a transaction that makes changes.
    pub(super) fn freeze_within<T>(
        self: &Arc<Shared>,
        patience: Duration,
        transaction: Option<&Transaction>,
        see: impl FnOnce() -> Result<T>,
    ) -> Result<(Hold, T)> {
        let own = transaction.and_then(|transaction| transaction.attendance().number_given());
        let mut state = self.state.lock();
        let mut until = None;
        loop {
            let holder = self.holder.load(Ordering::Acquire);
            if holder == 0 || Some(holder) == own {
                break;
            }
            let holds = transaction.is_some_and(|transaction| !transaction.attendance().is_empty());
            if holds && own.is_some_and(|own| own > holder) {
                return Err(self.busy(OLDER));
            }
            let why = "a transaction of this thread changes it; end that first";
            self.wait(&mut state, patience, &mut until, why)?;
        }
        let guard = self.heap.guard();
        let seen = see()?;
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        *state.views.entry(generation).or_default() += 1;
        self.newest.store(generation, Ordering::Release);
        drop(state);
        Ok((Hold { shared: Arc::clone(self), generation, _guard: guard }, seen))
    }

    /// Reads more than one word as they were together: `read` is repeated until no change went on
    /// beside it.
    pub(super) fn read<T>(&self, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            let before = self.version.load(Ordering::Acquire);
            if before & 1 == 1 {
                std::thread::yield_now();
                continue;
            }
            let result = read();
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Acquire) == before {
                return result;
            }
        }
    }

    /// Odd while words change.
    pub(super) fn version(&self) -> &AtomicU64 {
        &self.version
    }

    fn hold(self: &Arc<Shared>, transaction: &mut Transaction) -> Result<()> {
        if transaction.heap().base() != self.heap.base() {
            let detail =
                format!("the transaction is of another heap than collection {}", { self.handle });
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let number = transaction.attendance_mut().number();
        let mut state = self.state.lock();
        let mut until = None;
        loop {
            let holder = self.holder.load(Ordering::Acquire);
            if holder == 0 {
                break;
            }
            if !transaction.attendance().is_empty() && number > holder {
                return Err(self.busy(OLDER));
            }
            let why = "another transaction of this thread changes it";
            self.wait(&mut state, transaction.patience(), &mut until, why)?;
        }
        state.thread = Some(std::thread::current().id());
        self.holder.store(number, Ordering::Release);
        drop(state);
        transaction.attendance_mut().add(Arc::clone(self) as Arc<dyn Witness>);
        Ok(())
    }

    /// Waits for the holder to end, at most `patience` since the first call with this `until`; not
    /// at all for a holder of the same thread, which could not end meanwhile, nor without patience.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        patience: Duration,
        until: &mut Option<Instant>,
        own: &str,
    ) -> Result<()> {
        if patience.is_zero() {
            let detail = format!("collection {}: another transaction changes it", self.handle);
            return Err(Error::new(ErrorKind::Held, detail));
        }
        if state.thread == Some(std::thread::current().id()) {
            return Err(self.busy(own));
        }
        let end = until.or_else(|| Instant::now().checked_add(patience));
        let Some(end) = end else {
            // Longer than time goes on.
            self.released.wait(state);
            return Ok(());
        };
        *until = Some(end);
        if self.released.wait_until(state, end).timed_out() {
            let detail = format!(
                "collection {}: another transaction has been changing it for {patience:?}",
                self.handle
            );
            return Err(Error::new(ErrorKind::Held, detail));
        }
        Ok(())
    }

    #[cold]
    fn busy(&self, why: &str) -> Error {
        Error::new(ErrorKind::Busy, format!("collection {}: {why}", self.handle))
    }
}

impl Witness for Shared {
    fn restoring(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    fn restored(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    fn ended(&self) {
        let mut state = self.state.lock();
        state.thread = None;
        self.holder.store(0, Ordering::Release);
        drop(state);
        self.released.notify_all();
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.shared.version.fetch_add(1, Ordering::AcqRel);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        if let Some(count) = state.views.get_mut(&self.generation) {
            *count -= 1;
            if *count == 0 {
                state.views.remove(&self.generation);
            }
        }
        let newest = state.views.keys().next_back().copied().unwrap_or(0);
        self.shared.newest.store(newest, Ordering::Release);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut in_use = IN_USE.lock();
        let key = (self.heap.base() as usize, self.handle);
        // Another one may stand there already, made after this one's last user went.
        if in_use.get(&key).is_some_and(|shared| shared.strong_count() == 0) {
            in_use.remove(&key);
        }
    }
}
