//! Commands that must be alone: while one worker carries out a transaction, no other command runs.
//!
//! ```text
//! Open --request--> Closed --every worker parked--> Owned --release--> Open, or the next one's
//! ```
//!
//! Invariants:
//! 1. A worker that is parked carries out nothing but what it owns the gate for.
//! 2. A worker parks only when nothing that touches entries is in flight, so the owner sees the
//!    outcome of everything acknowledged before, and nobody sees half of what the owner does.
//! 3. Owners take turns in the order of their requests.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::lock;

/// The gate between shared and exclusive commands. Thread-safe.
#[derive(Debug)]
pub(crate) struct Gate {
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    parked: Vec<bool>,
    queue: VecDeque<usize>,
    owned: bool,
}

/// Whom to wake after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Nobody,
    Worker(usize),
    Everyone,
}

impl Gate {
    /// An open gate for `workers` workers.
    pub(crate) fn new(workers: usize) -> Gate {
        let state = State { parked: vec![false; workers], queue: VecDeque::new(), owned: false };
        Gate { closed: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Whether shared commands must not begin.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Asks to be alone.
    #[must_use]
    pub(crate) fn request(&self, worker: usize) -> Wake {
        let mut state = lock(&self.state);
        state.queue.push_back(worker);
        self.closed.store(true, Ordering::Release);
        if state.parked.len() > 1 { Wake::Everyone } else { Wake::Nobody }
    }

    /// `worker` touches no entry and begins nothing until it is unparked.
    #[must_use]
    pub(crate) fn park(&self, worker: usize) -> Wake {
        let mut state = lock(&self.state);
        state.parked[worker] = true;
        match state.queue.front() {
            Some(next) if *next != worker && state.all_parked() => Wake::Worker(*next),
            _ => Wake::Nobody,
        }
    }

    /// Whether `worker` now is the owner. It must be parked.
    pub(crate) fn try_own(&self, worker: usize) -> bool {
        let mut state = lock(&self.state);
        let alone = !state.owned && state.queue.front() == Some(&worker) && state.all_parked();
        state.owned |= alone;
        alone
    }

    /// The owner is done.
    #[must_use]
    pub(crate) fn release(&self) -> Wake {
        let mut state = lock(&self.state);
        state.owned = false;
        state.queue.pop_front();
        match state.queue.front() {
            Some(next) => Wake::Worker(*next),
            None => {
                self.closed.store(false, Ordering::Release);
                if state.parked.len() > 1 { Wake::Everyone } else { Wake::Nobody }
            }
        }
    }

    /// Takes back a request of `worker` that it does not own yet.
    #[must_use]
    pub(crate) fn withdraw(&self, worker: usize) -> Wake {
        let mut state = lock(&self.state);
        let owned = usize::from(state.owned);
        let Some(found) = state.queue.iter().skip(owned).rposition(|other| *other == worker) else {
            return Wake::Nobody;
        };
        state.queue.remove(owned + found);
        if state.queue.is_empty() {
            self.closed.store(false, Ordering::Release);
        }
        if state.parked.len() > 1 { Wake::Everyone } else { Wake::Nobody }
    }

    /// Whether `worker` may begin shared commands again.
    pub(crate) fn unpark(&self, worker: usize) -> bool {
        let mut state = lock(&self.state);
        if self.is_closed() {
            return false;
        }
        state.parked[worker] = false;
        true
    }
}

impl State {
    fn all_parked(&self) -> bool {
        self.parked.iter().all(|parked| *parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alone_and_owners_take_turns() {
        let gate = Gate::new(2);
        assert_eq!(gate.request(0), Wake::Everyone);
        assert_eq!(gate.request(1), Wake::Everyone);
        assert_eq!(gate.park(0), Wake::Nobody);
        assert!(!gate.try_own(0), "worker 1 is not parked");
        assert_eq!(gate.park(1), Wake::Worker(0));
        assert!(!gate.try_own(1), "worker 0 asked first");
        assert!(gate.try_own(0));
        assert!(!gate.try_own(0), "it is owned already");
        assert!(!gate.unpark(1));
        assert_eq!(gate.release(), Wake::Worker(1));
        assert!(gate.try_own(1));
        assert_eq!(gate.release(), Wake::Everyone);
        assert!(gate.unpark(0) && gate.unpark(1) && !gate.is_closed());
    }

    #[test]
    fn a_withdrawn_request_opens_the_gate() {
        let gate = Gate::new(1);
        assert_eq!(gate.request(0), Wake::Nobody);
        assert_eq!(gate.withdraw(0), Wake::Nobody);
        assert!(!gate.is_closed());
    }
}
