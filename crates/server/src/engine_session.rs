//! One thread's door to the engine, for commands: operations to await, and the moment they happen
//! at.
//!
//! An [`EngineSession`] belongs to one worker thread. Commands that the worker answers without
//! waiting use the session directly; all others are tasks that await [`EngineSession::get`] and
//! [`EngineSession::run`].

use std::cell::{Cell, RefCell, RefMut};
use std::sync::Arc;

use entresol_random::SplitMix;
use entresol_tier::{Entry, Error, Key, Operation, Outcome, Session, SpaceId, Timestamp, Visit};

use crate::failure::Failure;
use crate::operations::{OperationId, Operations, OwnedEntry, OwnedOutcome, Wants};
use crate::shared::Shared;

/// Set in the tokens of operations that a task waits for.
pub(crate) const TASK_TOKEN: u64 = 1 << 63;

/// Most entries that one command reads ahead.
const READS_AHEAD_MAX: usize = 128;
/// Most writes of one command that are under way.
const WRITES_AHEAD_MAX: usize = 16 << 10;

/// One worker thread's engine session with its clock.
pub(crate) struct EngineSession {
    /// What all threads share.
    pub(crate) shared: Arc<Shared>,
    /// The operations that tasks wait for.
    pub(crate) operations: Operations,
    /// The number of the worker.
    pub(crate) worker: usize,
    session: RefCell<Session>,
    now: Cell<Timestamp>,
    random: RefCell<SplitMix>,
}

impl EngineSession {
    /// The door of worker number `worker`.
    pub(crate) fn new(shared: Arc<Shared>, session: Session, worker: usize) -> EngineSession {
        let seed = shared.seed ^ (worker as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        EngineSession {
            shared,
            operations: Operations::default(),
            worker,
            session: RefCell::new(session),
            now: Cell::new(Timestamp(0)),
            random: RefCell::new(SplitMix::new(seed)),
        }
    }

    /// The moment of the present turn.
    pub(crate) fn now(&self) -> Timestamp {
        self.now.get()
    }

    /// Begins a turn at `now`.
    pub(crate) fn set_now(&self, now: Timestamp) {
        self.now.set(now);
    }

    /// The session, for the length of one call.
    pub(crate) fn session(&self) -> RefMut<'_, Session> {
        self.session.borrow_mut()
    }

    /// The next number of a stream of its own.
    pub(crate) fn random(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// Begins `operation`. Before return `visit` is called for it where its outcome is at hand, and
    /// for nothing else; bytes that are read for it where it is not.
    pub(crate) fn submit(
        &self,
        token: u64,
        now: Timestamp,
        operation: Operation<'_>,
        visit: Visit<'_>,
    ) -> usize {
        self.submit_within(token, u64::MAX, (now, operation), visit)
    }

    /// The same where an entry of more than `bytes_max` is not read: its get answers with how many
    /// bytes it takes.
    pub(crate) fn submit_within(
        &self,
        token: u64,
        bytes_max: u64,
        (now, operation): (Timestamp, Operation<'_>),
        visit: Visit<'_>,
    ) -> usize {
        let mut session = self.session.borrow_mut();
        session.set_entry_bytes_max(bytes_max);
        let before = session.reading_bytes();
        session.submit(token, now, operation, visit);
        let reading = session.reading_bytes().saturating_sub(before);
        drop(session);
        // Afterwards: a watch that begins between the two sees the entry itself.
        self.shared.absences.see(&operation);
        reading as usize
    }

    /// Bytes of records that this worker's operations wait for.
    pub(crate) fn reading_bytes(&self) -> usize {
        self.session.borrow().reading_bytes() as usize
    }

    /// Begins `operation`; its outcome is awaited by the returned number.
    pub(crate) fn begin(&self, operation: Operation<'_>) -> OperationId {
        self.begin_wanting(operation, Wants::Entry).0
    }

    /// The same of an operation of whose outcome only what `wants` says is kept, and the bytes that
    /// it takes until then.
    fn begin_wanting(&self, operation: Operation<'_>, wants: Wants) -> (OperationId, usize) {
        let id = self.operations.begin_wanting(wants);
        let token = TASK_TOKEN | id as u64;
        let reading = self.submit(token, self.now(), operation, &mut |_, outcome| {
            self.complete(id, outcome);
        });
        (id, reading + self.operations.held_bytes(id))
    }

    /// Hands the outcome of operation `id` to the task that waits for it.
    pub(crate) fn complete(&self, id: OperationId, outcome: Result<Outcome<'_>, Error>) {
        let outcome = outcome.map(|outcome| self.operations.owned(id, outcome));
        self.operations.complete(id, outcome);
    }

    /// Carries out one operation.
    pub(crate) async fn run(&self, operation: Operation<'_>) -> Result<OwnedOutcome, Failure> {
        let id = self.begin(operation);
        Ok(self.operations.wait(id).await?)
    }

    /// Reads one entry.
    pub(crate) async fn get(&self, key: Key<'_>) -> Result<Option<OwnedEntry>, Failure> {
        match self.run(Operation::Get { key }).await? {
            OwnedOutcome::Found(entry) => Ok(Some(entry)),
            _ => Ok(None),
        }
    }

    /// Reads the entries of `keys` in their order, some ahead of the one that `visit` has.
    pub(crate) async fn read_each<'k>(
        &self,
        keys: impl Iterator<Item = Result<Key<'k>, Failure>>,
        wants: Wants,
        visit: impl FnMut(OwnedOutcome) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = keys.map(|key| Ok(self.begin_wanting(Operation::Get { key: key? }, wants)));
        self.operations.visit_each(begun, READS_AHEAD_MAX, visit).await
    }

    /// Carries out writes in their order, many of them side by side: they share a sync.
    pub(crate) async fn write_each<'k>(
        &self,
        writes: impl Iterator<Item = Result<Operation<'k>, Failure>>,
        visit: impl FnMut(OwnedOutcome) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = writes.map(|write| Ok(self.begin_wanting(write?, Wants::Presence)));
        self.operations.visit_each(begun, WRITES_AHEAD_MAX, visit).await
    }

    /// Visits about so many entries (`from.1`) of `space` from a cursor (`from.0`) on; the next
    /// cursor, 0 at the end.
    pub(crate) fn scan(
        &self,
        space: SpaceId,
        from: (u64, usize),
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<u64, Failure> {
        // A damaged record is counted by the store and named by `entresol store verify`; here it
        // must not hide the sound ones.
        let mut visit_sound = |entry: entresol_tier::Result<Entry<'_>>| {
            if let Ok(entry) = entry {
                visit(entry);
            }
        };
        Ok(self.session.borrow_mut().scan(space, from, self.now(), &mut visit_sound)?)
    }
}
