//! Engine operations that commands of several steps wait for.
//!
//! Invariant: an operation's place is free again once its outcome was taken or its [`Waiting`] was
//! dropped, whichever comes with the engine's answer last.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use entresol_tier::{Entry, Error, Expiry, Outcome, Pinning, Version};

use crate::backup::Copied;
use crate::failure::Failure;

/// Bytes that what one command has begun takes when it begins no more.
const AHEAD_BYTES_MAX: usize = 4 << 20;
/// Operations that one command begins before others have their turn.
const BEGUN_AT_ONCE: usize = 1024;

/// Names a task of a worker.
pub(crate) type TaskId = usize;
/// Names an operation that a task waits for.
pub(crate) type OperationId = usize;

/// An outcome that owns its bytes.
#[derive(Debug)]
pub(crate) enum OwnedOutcome {
    /// The entry of a get.
    Found(OwnedEntry),
    /// There is an entry, of which nothing else is wanted.
    Present,
    /// An entry that takes so many bytes, more than its get may.
    Larger(u64),
    /// There is no such entry.
    Missing,
    /// Put.
    Stored,
    /// The condition does not hold.
    Refused,
    /// Removed.
    Removed,
    /// Touched.
    Touched,
    /// A password was compared.
    Verified(PasswordMatch),
    /// A sync is done.
    Synced,
    /// A snapshot was taken, or a part of one read.
    Copied(Copied),
}

/// Whether a password is the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PasswordMatch {
    Right,
    Wrong,
}

/// An entry that owns its value.
#[derive(Debug)]
pub(crate) struct OwnedEntry {
    pub(crate) value: Vec<u8>,
    pub(crate) version: Version,
    pub(crate) label: u8,
    pub(crate) expiry: Expiry,
    pub(crate) pinning: Pinning,
}

impl OwnedEntry {
    /// The entry of `key`.
    pub(crate) fn view<'a>(&'a self, key: &'a [u8]) -> Entry<'a> {
        Entry {
            key,
            value: &self.value,
            version: self.version,
            label: self.label,
            expiry: self.expiry,
            pinning: self.pinning,
            found: None,
        }
    }
}

impl From<Outcome<'_>> for OwnedOutcome {
    fn from(outcome: Outcome<'_>) -> OwnedOutcome {
        match outcome {
            Outcome::Found(entry) => OwnedOutcome::Found(OwnedEntry {
                value: entry.value.to_vec(),
                version: entry.version,
                label: entry.label,
                expiry: entry.expiry,
                pinning: entry.pinning,
            }),
            Outcome::Larger { bytes } => OwnedOutcome::Larger(bytes),
            Outcome::Missing => OwnedOutcome::Missing,
            Outcome::Stored { .. } | Outcome::Journaled { .. } => OwnedOutcome::Stored,
            Outcome::Refused { .. } => OwnedOutcome::Refused,
            Outcome::Removed { .. } => OwnedOutcome::Removed,
            Outcome::Touched { .. } => OwnedOutcome::Touched,
        }
    }
}

/// The operations that the tasks of one worker wait for.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    places: RefCell<Vec<PendingOperation>>,
    free: RefCell<Vec<OperationId>>,
    /// Tasks to go on with.
    ready: RefCell<Vec<TaskId>>,
    /// Tasks to go on with in the next turn.
    yielded: RefCell<Vec<TaskId>>,
    current: Cell<TaskId>,
}

#[derive(Debug, Default)]
struct PendingOperation {
    outcome: Option<Result<OwnedOutcome, Error>>,
    task: Option<TaskId>,
    abandoned: bool,
    wants: Wants,
}

/// What is to be kept of an entry that is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Wants {
    /// All of it.
    #[default]
    Entry,
    /// That it is there.
    Presence,
}

impl Operations {
    /// A place for the outcome of an operation about to begin.
    pub(crate) fn begin(&self) -> OperationId {
        self.begin_wanting(Wants::Entry)
    }

    /// The same of an operation of whose outcome only what `wants` says is kept.
    pub(crate) fn begin_wanting(&self, wants: Wants) -> OperationId {
        let place = PendingOperation { wants, ..PendingOperation::default() };
        let mut places = self.places.borrow_mut();
        if let Some(id) = self.free.borrow_mut().pop() {
            places[id] = place;
            return id;
        }
        places.push(place);
        places.len() - 1
    }

    /// The outcome of operation `id` with what is wanted of it.
    pub(crate) fn owned(&self, id: OperationId, outcome: Outcome<'_>) -> OwnedOutcome {
        let wants = self.places.borrow().get(id).map_or(Wants::Entry, |place| place.wants);
        match (wants, outcome) {
            (Wants::Presence, Outcome::Found(_)) => OwnedOutcome::Present,
            (_, outcome) => outcome.into(),
        }
    }

    /// Bytes of the entry that waits in the place of operation `id` to be taken.
    pub(crate) fn held_bytes(&self, id: OperationId) -> usize {
        match self.places.borrow().get(id).and_then(|place| place.outcome.as_ref()) {
            Some(Ok(OwnedOutcome::Found(entry))) => entry.value.len(),
            _ => 0,
        }
    }

    /// Hands over the outcome of operation `id` and readies the task that waits for it.
    pub(crate) fn complete(&self, id: OperationId, outcome: Result<OwnedOutcome, Error>) {
        let mut places = self.places.borrow_mut();
        let Some(place) = places.get_mut(id) else {
            return;
        };
        if place.abandoned {
            self.free.borrow_mut().push(id);
            return;
        }
        place.outcome = Some(outcome);
        if let Some(task) = place.task.take() {
            self.ready.borrow_mut().push(task);
        }
    }

    /// The outcome of operation `id` where it is at hand; the place is free again then.
    pub(crate) fn take(&self, id: OperationId) -> Option<Result<OwnedOutcome, Error>> {
        let outcome = self.places.borrow_mut().get_mut(id)?.outcome.take()?;
        self.free.borrow_mut().push(id);
        Some(outcome)
    }

    /// Frees the place of operation `id`, whose outcome was not put there and never will be.
    pub(crate) fn release(&self, id: OperationId) {
        self.free.borrow_mut().push(id);
    }

    /// Hands an operation to another thread by `send`, and waits for it; `None` if that thread does
    /// not take it.
    pub(crate) fn hand_over(&self, send: impl FnOnce(OperationId) -> bool) -> Option<Waiting<'_>> {
        let id = self.begin();
        if send(id) {
            return Some(self.wait(id));
        }
        self.release(id);
        None
    }

    /// Waits for operation `id`.
    pub(crate) fn wait(&self, id: OperationId) -> Waiting<'_> {
        Waiting { operations: self, id: Some(id) }
    }

    /// Visits the outcomes of `begun` in their order: of operations that begin as they are asked
    /// for, each with the bytes that it takes until then. At most `ahead_max` are under way.
    pub(crate) async fn visit_each(
        &self,
        mut begun: impl Iterator<Item = Result<(OperationId, usize), Failure>>,
        ahead_max: usize,
        mut visit: impl FnMut(OwnedOutcome) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut ahead, mut ahead_bytes, mut count) = (VecDeque::new(), 0usize, 0usize);
        loop {
            // The next one may be as large as the largest.
            while ahead.len() < ahead_max
                && (ahead.is_empty() || ahead_bytes <= AHEAD_BYTES_MAX)
                && let Some((id, bytes)) = begun.next().transpose()?
            {
                ahead.push_back((self.wait(id), bytes));
                ahead_bytes += bytes;
                count += 1;
                if count.is_multiple_of(BEGUN_AT_ONCE) {
                    self.yield_now().await;
                }
            }
            let Some((waiting, bytes)) = ahead.pop_front() else {
                return Ok(());
            };
            ahead_bytes -= bytes;
            visit(waiting.await?)?;
        }
    }

    /// Lets other work go first.
    pub(crate) fn yield_now(&self) -> Yield<'_> {
        Yield { operations: self, yielded: false }
    }

    /// The task that is running: waits of now on belong to it.
    pub(crate) fn set_current(&self, task: TaskId) {
        self.current.set(task);
    }

    /// A task that can go on.
    pub(crate) fn next_ready(&self) -> Option<TaskId> {
        self.ready.borrow_mut().pop()
    }

    /// Readies the tasks that let others go first; whether there were any.
    pub(crate) fn resume_yielded(&self) {
        self.ready.borrow_mut().append(&mut self.yielded.borrow_mut());
    }

    /// Whether tasks wait for the next turn.
    pub(crate) fn has_yielded(&self) -> bool {
        !self.yielded.borrow().is_empty()
    }
}

/// The outcome of an operation, to be awaited.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    operations: &'a Operations,
    id: Option<OperationId>,
}

impl Future for Waiting<'_> {
    type Output = Result<OwnedOutcome, Error>;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        let id = self.id.expect("a future is not polled again after it was ready");
        if let Some(outcome) = self.operations.take(id) {
            self.id = None;
            return Poll::Ready(outcome);
        }
        if let Some(place) = self.operations.places.borrow_mut().get_mut(id) {
            place.task = Some(self.operations.current.get());
        }
        Poll::Pending
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else {
            return;
        };
        if self.operations.take(id).is_none()
            && let Some(place) = self.operations.places.borrow_mut().get_mut(id)
        {
            place.abandoned = true;
        }
    }
}

/// One turn's wait.
#[derive(Debug)]
pub(crate) struct Yield<'a> {
    operations: &'a Operations,
    yielded: bool,
}

impl Future for Yield<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        let task = self.operations.current.get();
        self.operations.yielded.borrow_mut().push(task);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Passwords that were not compared, for too many waited, each took a place for ever: whoever
    /// reached the server could fill its memory.
    #[test]
    fn the_place_of_an_operation_that_nobody_takes_is_free_again() {
        let operations = Operations::default();
        for _ in 0..3 {
            assert!(operations.hand_over(|_| false).is_none());
        }
        assert_eq!(operations.places.borrow().len(), 1);
        let mut taken = None;
        let waiting = operations.hand_over(|id| taken.replace(id).is_none()).unwrap();
        operations.complete(taken.unwrap(), Ok(OwnedOutcome::Synced));
        let outcome = std::pin::pin!(waiting).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(outcome, Poll::Ready(Ok(OwnedOutcome::Synced))));
        assert!(operations.hand_over(|_| false).is_none());
        assert_eq!(operations.places.borrow().len(), 1);
    }

    /// `DEL` and `MSET` began all that they had to do at once: whoever else was served by the same
    /// thread waited for the end, and the places for millions of outcomes were kept for ever.
    #[test]
    fn a_command_of_many_operations_has_few_under_way_and_lets_others_go_on() {
        let operations = Operations::default();
        let begun = (0..10_000).map(|_| {
            let id = operations.begin();
            operations.complete(id, Ok(OwnedOutcome::Removed));
            Ok((id, 0))
        });
        let visited = Cell::new(0);
        let mut all = std::pin::pin!(operations.visit_each(begun, 100, |_| {
            visited.set(visited.get() + 1);
            Ok(())
        }));
        let mut turns = 1;
        while all.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            turns += 1;
        }
        assert_eq!((visited.get(), turns), (10_000, 1 + 10_000 / BEGUN_AT_ONCE));
        assert_eq!(operations.places.borrow().len(), 100);
    }

    /// Values of all keys of an `EXISTS` were copied to count them.
    #[test]
    fn nothing_is_kept_of_an_entry_whose_presence_alone_is_wanted() {
        let operations = Operations::default();
        let entry = Entry {
            key: b"k",
            value: b"value",
            version: Version(1),
            label: 0,
            expiry: Expiry::default(),
            pinning: Pinning::default(),
            found: None,
        };
        let presence = operations.begin_wanting(Wants::Presence);
        let whole = operations.begin();
        let found = operations.owned(presence, Outcome::Found(entry));
        assert!(matches!(found, OwnedOutcome::Present));
        let found = operations.owned(whole, Outcome::Found(entry));
        assert!(matches!(found, OwnedOutcome::Found(entry) if entry.value == b"value"));
        assert!(matches!(operations.owned(presence, Outcome::Missing), OwnedOutcome::Missing));
    }
}
