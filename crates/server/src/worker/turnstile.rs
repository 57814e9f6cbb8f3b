//! A worker's side of the gate: who waits to be alone, and when to stand still.

use std::collections::VecDeque;

use super::Worker;
use crate::slot_token::SlotToken;

/// How a worker stands to the gate.
#[derive(Default)]
pub(super) struct Turnstile {
    /// Whether the worker begins no shared command.
    pub(super) parked: bool,
    /// Connections whose next command must be alone; tokens with slot number 0.
    pub(super) waiting: VecDeque<SlotToken>,
    /// The one whose turn it is.
    pub(super) granted: Option<Granted>,
    /// Places of connections to go on with once the gate is open.
    pub(super) held: Vec<usize>,
    /// Rounds until those that were held have had their turn.
    pub(super) rounds_left: u32,
}

/// Rounds that those who were held have: the one in which the gate opens may be half over.
const ROUNDS_OF_HELD: u32 = 2;

/// The command that is alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Granted {
    /// Its connection, with slot number 0.
    pub(super) connection: SlotToken,
    /// Its slot, once it has begun and is not answered at once.
    pub(super) slot: Option<SlotToken>,
}

impl Worker {
    /// Whether shared commands must wait at the gate.
    pub(super) fn is_held(&self) -> bool {
        self.gate.parked || self.engine.shared.gate.is_closed()
    }

    /// Whether the connection at `place` must wait until shared commands may begin.
    pub(super) fn must_hold(&mut self, place: usize) -> bool {
        while self.is_held() {
            self.step_gate();
            if self.is_held() && self.engine.shared.gate.hold_back(self.engine.worker) {
                self.gate.held.push(place);
                return true;
            }
        }
        false
    }

    /// Whether it is the turn of the connection that `token` names to be alone; asks for it if not.
    pub(super) fn may_be_alone(&mut self, token: SlotToken, asked: bool) -> bool {
        if !asked {
            self.gate.waiting.push_back(token);
            let wake = self.engine.shared.gate.request(self.engine.worker);
            self.engine.shared.wake(wake);
            self.step_gate();
        }
        self.gate.granted.is_some_and(|granted| granted.connection == token)
    }

    /// Parks, takes a turn, or goes on, as the gate allows.
    pub(super) fn step_gate(&mut self) {
        let engine = &self.engine;
        let gate = &engine.shared.gate;
        if gate.is_closed() {
            if self.in_flight > self.aside && !self.gate.parked {
                return;
            }
            if !self.gate.parked {
                self.gate.parked = true;
                engine.shared.wake(gate.park(engine.worker));
            }
            let wants = self.gate.granted.is_none() && !self.gate.waiting.is_empty();
            if wants && gate.try_own(engine.worker) {
                let Some(connection) = self.gate.waiting.pop_front() else {
                    return;
                };
                self.gate.granted = Some(Granted { connection, slot: None });
                self.make_runnable(connection.place());
            }
        } else if !self.gate.parked || gate.unpark(engine.worker) {
            self.gate.parked = false;
            self.go_on_with_held();
        }
    }

    fn go_on_with_held(&mut self) {
        if self.gate.held.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut self.gate.held);
        held.drain(..).for_each(|place| self.make_runnable(place));
        self.gate.held = held;
        self.gate.rounds_left = ROUNDS_OF_HELD;
    }

    /// A round of the turn is over.
    pub(super) fn end_round(&mut self) {
        self.step_gate();
        if self.gate.rounds_left > 0 && self.gate.held.is_empty() {
            self.gate.rounds_left -= 1;
            if self.gate.rounds_left == 0 {
                let wake = self.engine.shared.gate.has_carried_out(self.engine.worker);
                self.engine.shared.wake(wake);
                self.step_gate();
            }
        }
    }

    /// The command that was alone is answered.
    pub(super) fn end_alone(&mut self) {
        self.gate.granted = None;
        let wake = self.engine.shared.gate.release();
        self.engine.shared.wake(wake);
        self.step_gate();
    }

    /// Takes back what the connection that `token` names asked for.
    pub(super) fn leave_gate(&mut self, token: SlotToken) {
        let granted = self.gate.granted.filter(|granted| granted.connection == token);
        match granted {
            Some(Granted { slot: None, .. }) => self.end_alone(),
            Some(_) => {}
            None => {
                self.gate.waiting.retain(|other| *other != token);
                let wake = self.engine.shared.gate.withdraw(self.engine.worker);
                self.engine.shared.wake(wake);
                self.step_gate();
            }
        }
    }

    /// Stands still for good, so that no other worker waits for this one.
    pub(super) fn abandon_gate(&mut self) {
        if self.gate.granted.take().is_some() {
            let wake = self.engine.shared.gate.release();
            self.engine.shared.wake(wake);
        }
        let wakes = self.engine.shared.gate.retire(self.engine.worker);
        wakes.into_iter().for_each(|wake| self.engine.shared.wake(wake));
    }
}
