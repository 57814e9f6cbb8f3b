//! Commands that must be alone: while one worker carries out a transaction, no other command runs.
//!
//! ```text
//! Open --request--> Closed --every worker parked--> Owned --release--> Open, or the next one's
//!  ^                                                                     |
//!  '-- the workers that held commands back have carried them out ----- Passing, if others asked
//! ```
//!
//! Invariants:
//! 1. A worker that is parked carries out nothing but what it owns the gate for.
//! 2. A worker parks only when nothing that touches entries is in flight, so the owner sees the
//!    outcome of everything acknowledged before, and nobody sees half of what the owner does.
//! 3. Owners take turns in the order of their requests.
//! 4. Who asks while commands are held back comes after these: however many ask again and again,
//!    nobody waits for more owners than have asked before.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::lock;

/// The gate between shared and exclusive commands. Thread-safe.
#[derive(Debug)]
pub(crate) struct TransactionGate {
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    parked: Vec<bool>,
    /// Whether a worker holds commands back that have not had their turn.
    holding: Vec<bool>,
    queue: VecDeque<usize>,
    /// Requests that come after the commands that are held back.
    later: VecDeque<usize>,
    owned: bool,
}

/// Whom to wake after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Nobody,
    Worker(usize),
    Everyone,
}

impl TransactionGate {
    /// An open gate for `workers` workers.
    pub(crate) fn new(workers: usize) -> TransactionGate {
        let state = State {
            parked: vec![false; workers],
            holding: vec![false; workers],
            queue: VecDeque::new(),
            later: VecDeque::new(),
            owned: false,
        };
        TransactionGate { closed: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Whether shared commands must not begin.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Asks to be alone.
    #[must_use]
    pub(crate) fn request(&self, worker: usize) -> Wake {
        let mut state = lock(&self.state);
        if state.is_held_back() || !state.later.is_empty() {
            state.later.push_back(worker);
            return Wake::Nobody;
        }
        state.queue.push_back(worker);
        self.closed.store(true, Ordering::Release);
        state.everyone()
    }

    /// Whether `worker` must hold a command back; it says so with
    /// [`TransactionGate::has_carried_out`] once all of them have had their turn.
    pub(crate) fn hold_back(&self, worker: usize) -> bool {
        let mut state = lock(&self.state);
        let closed = self.is_closed();
        state.holding[worker] |= closed;
        closed
    }

    /// What `worker` held back has had its turn at the open gate.
    #[must_use]
    pub(crate) fn has_carried_out(&self, worker: usize) -> Wake {
        let mut state = lock(&self.state);
        state.holding[worker] = false;
        if self.is_closed() || state.later.is_empty() {
            return Wake::Nobody;
        }
        self.go_on(&mut state)
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
        self.go_on(&mut state)
    }

    /// Takes back a request of `worker` that it does not own yet.
    #[must_use]
    pub(crate) fn withdraw(&self, worker: usize) -> Wake {
        let mut state = lock(&self.state);
        if let Some(found) = state.later.iter().rposition(|other| *other == worker) {
            state.later.remove(found);
            return Wake::Nobody;
        }
        let owned = usize::from(state.owned);
        let Some(found) = state.queue.iter().skip(owned).rposition(|other| *other == worker) else {
            return Wake::Nobody;
        };
        state.queue.remove(owned + found);
        match state.queue.is_empty() {
            true => self.go_on(&mut state),
            false => state.everyone(),
        }
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

    /// `worker` stands still for good: nobody waits for it, nor for what it held back.
    #[must_use]
    pub(crate) fn retire(&self, worker: usize) -> [Wake; 2] {
        [self.park(worker), self.has_carried_out(worker)]
    }

    /// Lets the next owner have the gate; without one, those who were held back, or those who asked
    /// after them.
    fn go_on(&self, state: &mut State) -> Wake {
        if let Some(next) = state.queue.front() {
            return Wake::Worker(*next);
        }
        if !state.is_held_back() {
            state.queue = std::mem::take(&mut state.later);
        }
        self.closed.store(!state.queue.is_empty(), Ordering::Release);
        state.everyone()
    }
}

impl State {
    /// Whether a worker holds commands back.
    fn is_held_back(&self) -> bool {
        self.holding.contains(&true)
    }

    /// Everyone, unless that is who calls.
    fn everyone(&self) -> Wake {
        if self.parked.len() > 1 { Wake::Everyone } else { Wake::Nobody }
    }

    fn all_parked(&self) -> bool {
        self.parked.iter().all(|parked| *parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alone_and_owners_take_turns() {
        let gate = TransactionGate::new(2);
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

    /// Those who asked again and again came before all who waited at the gate: reads waited for
    /// seconds where many clients had transactions.
    #[test]
    fn who_asks_while_commands_are_held_back_comes_after_them() {
        let gate = TransactionGate::new(2);
        assert!(!gate.hold_back(1), "the gate is open");
        assert_eq!(gate.request(0), Wake::Everyone);
        assert_eq!(gate.request(0), Wake::Everyone, "nobody is held back yet");
        assert!(gate.hold_back(1));
        assert_eq!(gate.request(0), Wake::Nobody);
        assert_eq!((gate.park(0), gate.park(1)), (Wake::Nobody, Wake::Worker(0)));
        assert!(gate.try_own(0));
        assert_eq!(gate.release(), Wake::Worker(0));
        assert!(gate.try_own(0));
        assert_eq!(gate.release(), Wake::Everyone);
        assert!(!gate.is_closed() && gate.unpark(1));
        assert_eq!(gate.request(1), Wake::Nobody);
        assert!(!gate.is_closed(), "worker 1 has not carried them out");
        assert_eq!(gate.withdraw(1), Wake::Nobody);
        assert_eq!(gate.has_carried_out(1), Wake::Everyone);
        assert!(gate.is_closed());
        assert_eq!(gate.park(1), Wake::Worker(0));
        assert!(gate.try_own(0));
        assert_eq!(gate.release(), Wake::Everyone);
    }

    #[test]
    fn nobody_waits_for_what_a_worker_held_back_that_is_gone() {
        let gate = TransactionGate::new(2);
        assert_eq!(gate.request(0), Wake::Everyone);
        assert!(gate.hold_back(1));
        assert_eq!(gate.request(0), Wake::Nobody);
        assert_eq!(gate.park(0), Wake::Nobody);
        assert_eq!(gate.retire(1), [Wake::Worker(0), Wake::Nobody]);
        assert!(gate.try_own(0));
        assert_eq!(gate.release(), Wake::Everyone);
        assert!(gate.try_own(0), "who asked after it has its turn");
        assert_eq!(gate.release(), Wake::Everyone);
        assert!(!gate.is_closed());
    }

    #[test]
    fn a_withdrawn_request_opens_the_gate() {
        let gate = TransactionGate::new(1);
        assert_eq!(gate.request(0), Wake::Nobody);
        assert_eq!(gate.withdraw(0), Wake::Nobody);
        assert!(!gate.is_closed());
    }
}
