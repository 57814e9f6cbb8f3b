//! The gate where requests wait for their turn, if any volume has a reservation, a limit or a
//! weight.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::cache::core::Core;
use crate::policy::qos::{Cost, MClock, Options, Turn};
use crate::tasks::{Answer, Reply, Tasks, reply};
use crate::types::{Moment, Qos, VolumeId};

/// Requests that are served at once: enough to keep devices busy, few enough that the order counts.
const SERVED_MAX: usize = 64;
/// How long a request counts among those: one that takes longer waits for a device that does not
/// answer, which the others must not wait for.
const SERVED_NS: u64 = 1_000_000_000;
/// Bytes that double what a request costs.
const BYTES_DOUBLING: f64 = 64.0 * 1024.0;

/// Where requests wait for their turn.
#[derive(Default)]
pub(crate) struct Gate {
    clock: RefCell<Option<MClock>>,
    waiting: RefCell<HashMap<u64, Answer<Place>>>,
    tokens: Cell<u64>,
    served: Rc<Cell<usize>>,
    /// Places that were given, and until when they count, oldest first.
    given: RefCell<VecDeque<(Moment, Rc<Cell<bool>>)>>,
    rings_at: Cell<Option<Moment>>,
}

/// A place among the requests that are served; given back when dropped.
pub(crate) struct Place {
    served: Rc<Cell<usize>>,
    counts: Rc<Cell<bool>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.counts.take() {
            self.served.set(self.served.get() - 1);
        }
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

    /// A volume is gone: those that wait for their turn there go on, and find that.
    pub(crate) fn forget(&self, volume: VolumeId, now: Moment) {
        let mut clock = self.clock.borrow_mut();
        let tokens: Vec<u64> = clock.iter_mut().flat_map(|clock| clock.remove(volume)).collect();
        drop(clock);
        let waiting = tokens.iter().filter_map(|token| self.waiting.borrow_mut().remove(token));
        waiting.collect::<Vec<_>>().into_iter().for_each(|answer| answer.give(self.place(now)));
    }

    /// Takes a place in the order; `None`: no volume asks for any.
    pub(crate) fn enter(
        &self,
        core: &Rc<Core>,
        volume: VolumeId,
        bytes: u64,
    ) -> Option<Reply<Place>> {
        let mut clock = self.clock.borrow_mut();
        let clock = clock.as_mut()?;
        self.tokens.set(self.tokens.get() + 1);
        let token = self.tokens.get();
        let cost = Cost { bytes_doubling: BYTES_DOUBLING }.of(bytes);
        clock.push(volume, token, cost, core.now.get());
        let (answer, admitted) = reply(&core.tasks);
        self.waiting.borrow_mut().insert(token, answer);
        Some(admitted)
    }

    /// Lets requests in whose turn it is; all that wait, where the cache is being closed: nobody
    /// comes after them, and their turn may be hours away.
    pub(crate) fn turn(&self, core: &Rc<Core>) {
        if core.stopping.get() {
            return self.admit_all(core.now.get());
        }
        let mut clock = self.clock.borrow_mut();
        let Some(clock) = clock.as_mut() else { return };
        let now = core.now.get();
        self.expire(now);
        while self.served.get() < SERVED_MAX {
            match clock.pop(now) {
                Turn::Idle => return,
                Turn::Serve { token, .. } => {
                    if let Some(answer) = self.waiting.borrow_mut().remove(&token) {
                        answer.give(self.place(now));
                    }
                }
                Turn::Wait(until) => {
                    self.ring_at(core, until);
                    return;
                }
            }
        }
        let oldest = self.given.borrow().front().map(|(until, _)| *until);
        if let Some(until) = oldest.filter(|_| clock.queued() > 0) {
            self.ring_at(core, until);
        }
    }

    fn place(&self, now: Moment) -> Place {
        let counts = Rc::new(Cell::new(true));
        let until = Moment(now.0.saturating_add(SERVED_NS));
        self.given.borrow_mut().push_back((until, Rc::clone(&counts)));
        self.served.set(self.served.get() + 1);
        Place { served: Rc::clone(&self.served), counts }
    }

    /// Counts no more who has had a place for long.
    fn expire(&self, now: Moment) {
        let mut given = self.given.borrow_mut();
        while let Some((until, counts)) = given.front()
            && (!counts.get() || *until <= now)
        {
            if counts.take() {
                self.served.set(self.served.get() - 1);
            }
            given.pop_front();
        }
    }

    fn admit_all(&self, now: Moment) {
        let mut waiting: Vec<_> = self.waiting.borrow_mut().drain().collect();
        waiting.sort_unstable_by_key(|(token, _)| *token);
        waiting.into_iter().for_each(|(_, answer)| answer.give(self.place(now)));
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
