//! Where requests wait for their turn if any volume has a reservation, a limit or a weight.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::cache::core::Core;
use crate::policy::qos::{Cost, MClock, Options, Turn};
use crate::tasks::{Answer, Tasks, reply};
use crate::types::{Moment, Qos, VolumeId};

/// Requests that are served at once: enough to keep devices busy, few enough that the order counts.
const SERVED_MAX: usize = 64;
/// Bytes that double what a request costs.
const BYTES_DOUBLING: f64 = 64.0 * 1024.0;

/// Where requests wait for their turn.
#[derive(Default)]
pub(crate) struct Gate {
    clock: RefCell<Option<MClock>>,
    waiting: RefCell<HashMap<u64, Answer<()>>>,
    tokens: Cell<u64>,
    served: Rc<Cell<usize>>,
    rings_at: Cell<Option<Moment>>,
}

/// A place among the requests that are served; given back when dropped.
pub(crate) struct Place(Rc<Cell<usize>>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Gate {
    /// Sets what a volume gets. The gate stands from the first volume on that asks for anything,
    /// and then for all `volumes`.
    pub(crate) fn set(&self, volumes: &[(VolumeId, Qos)], now: Moment) {
        let mut clock = self.clock.borrow_mut();
        if clock.is_none() && volumes.iter().all(|(_, qos)| *qos == Qos::default()) {
            return;
        }
        let clock = clock.get_or_insert_with(|| MClock::new(Options::default(), now));
        volumes.iter().for_each(|(id, qos)| clock.set(*id, *qos, now));
    }

    /// Takes a place in the order; `None`: no volume asks for any.
    pub(crate) fn enter(
        &self,
        core: &Rc<Core>,
        volume: VolumeId,
        bytes: u64,
    ) -> Option<impl Future<Output = Place> + use<>> {
        let mut clock = self.clock.borrow_mut();
        let clock = clock.as_mut()?;
        self.tokens.set(self.tokens.get() + 1);
        let token = self.tokens.get();
        let cost = Cost { bytes_doubling: BYTES_DOUBLING }.of(bytes);
        clock.push(volume, token, cost, core.now.get());
        let (answer, admitted) = reply(&core.tasks);
        self.waiting.borrow_mut().insert(token, answer);
        let served = Rc::clone(&self.served);
        Some(async move {
            admitted.await;
            Place(served)
        })
    }

    /// Lets requests in whose turn it is; all that wait, where the cache is being closed: nobody
    /// comes after them, and their turn may be hours away.
    pub(crate) fn turn(&self, core: &Rc<Core>) {
        if core.stopping.get() {
            return self.admit_all();
        }
        let mut clock = self.clock.borrow_mut();
        let Some(clock) = clock.as_mut() else { return };
        while self.served.get() < SERVED_MAX {
            match clock.pop(core.now.get()) {
                Turn::Idle => return,
                Turn::Serve { token, .. } => {
                    if let Some(answer) = self.waiting.borrow_mut().remove(&token) {
                        self.served.set(self.served.get() + 1);
                        answer.give(());
                    }
                }
                Turn::Wait(until) => {
                    self.ring_at(core, until);
                    return;
                }
            }
        }
    }

    fn admit_all(&self) {
        let mut waiting: Vec<_> = self.waiting.borrow_mut().drain().collect();
        waiting.sort_unstable_by_key(|(token, _)| *token);
        for (_, answer) in waiting {
            self.served.set(self.served.get() + 1);
            answer.give(());
        }
    }

    /// Sees to it that there is a turn at a moment.
    fn ring_at(&self, core: &Rc<Core>, at: Moment) {
        if self.rings_at.get().is_some_and(|set| set <= at && set > core.now.get()) {
            return;
        }
        self.rings_at.set(Some(at));
        let rung = core.sleep_until(at);
        // The timer alone makes the turn.
        Tasks::spawn(&core.tasks, rung);
    }
}
