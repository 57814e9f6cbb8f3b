//! The way of answers to whoever reaps them.

use std::sync::atomic::{AtomicBool, Ordering};

use entresol_tier::{Error, Outcome};
use parking_lot::Mutex;

use crate::hosted::answer::{Answer, Extent, Outbox, with_answer};
use crate::hosted::bell::Bell;
use crate::hosted::failure::Failure;

/// Answers that wait, and what wakes the one who reaps them. The lock is a leaf.
#[derive(Debug)]
pub(super) struct Outlet<O> {
    outbox: Mutex<O>,
    bell: Bell,
    /// Whether the one who reaps looks at nothing that is begun now unless it is woken.
    resting: AtomicBool,
}

impl<O: Outbox> Outlet<O> {
    pub(super) fn new(bell: Bell) -> Outlet<O> {
        Outlet { outbox: Mutex::default(), bell, resting: AtomicBool::new(true) }
    }

    /// Adds an answer, for one who reaps and is awake or is woken later.
    pub(super) fn add(&self, token: u64, answer: &Answer<'_>) {
        self.outbox.lock().add(token, answer);
    }

    /// The same with an operation's outcome.
    pub(super) fn add_outcome(&self, token: u64, outcome: Result<Outcome<'_>, Error>) {
        with_answer(outcome, |answer| self.add(token, answer));
    }

    /// Adds an answer and has it reaped.
    pub(super) fn give(&self, token: u64, answer: &Answer<'_>) {
        self.add(token, answer);
        self.wake();
    }

    /// Adds a failure and has it reaped.
    pub(super) fn fail(&self, token: u64, failure: &Failure) {
        self.give(token, &Answer::Failed(failure));
    }

    /// Adds answers that were made elsewhere and has them reaped.
    pub(super) fn give_all(&self, answers: &mut O) {
        self.outbox.lock().append(answers);
        self.wake();
    }

    /// Says that the one who reaps is about to look: what is begun from here on wakes it.
    pub(super) fn rest(&self) {
        self.resting.store(true, Ordering::SeqCst);
    }

    /// Says that the one who reaps is on its way with what it has.
    pub(super) fn rise(&self) {
        self.resting.store(false, Ordering::SeqCst);
    }

    /// Moves all that waits to `to`, whose memory is used next; how many answers.
    pub(super) fn take(&self, to: &mut O) -> usize {
        to.truncate(Extent::default());
        std::mem::swap(&mut *self.outbox.lock(), to);
        to.extent().answers
    }

    /// Lets the one who reaps look at what was just begun.
    pub(super) fn wake(&self) {
        if self.resting.swap(false, Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Wakes the one who reaps whatever it does.
    pub(super) fn ring(&self) {
        self.bell.ring();
    }

    /// Closes the bell's descriptor: nobody waits any more.
    pub(super) fn end(&self) {
        self.bell.remove();
    }
}
