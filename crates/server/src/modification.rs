//! Reading an entry, deciding, and writing it unless another writer came first: then anew.
//!
//! ```text
//! Read ──> Reading ──> Decided ──> Writing ──> changed
//!   └──────────────────^  │ └────────────────────^
//!   ^                     └ nothing to write: done
//!   └──────────────────────────── Writing: another writer came first
//! ```
//!
//! One machine serves all: a worker takes its steps at once as long as memory answers, and a task
//! goes on with it where the device has to.

use entresol_tier::{Error, Key, Operation, Outcome, Version};

use crate::command::plan::{Change, Done, Update};

use crate::command::request::Request;
use crate::engine_session::{EngineSession, TASK_TOKEN};
use crate::failure::Failure;
use crate::operations::{OperationId, OwnedOutcome};

/// An entry to change, and how. `change` is to hold the decision.
pub(crate) struct Modify<'a> {
    /// The thread's engine session.
    pub(crate) engine: &'a EngineSession,
    /// The command.
    pub(crate) request: &'a Request<'a>,
    /// The entry's key.
    pub(crate) key: Key<'a>,
    /// What decides.
    pub(crate) update: Update,
}

/// How far a modification is.
#[derive(Debug)]
pub(crate) struct Modification {
    stage: Stage,
    /// An entry of more bytes is not read.
    bytes_max: u64,
    /// Bytes of the value that was read.
    pub(crate) read_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The entry is to be read.
    Read,
    /// It is being read.
    Reading(OperationId),
    /// The decision is made, on an entry of this version, or on none.
    Decided(Option<Version>),
    /// The decision is being written.
    Writing(OperationId),
}

/// What a step has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The entry is as it was decided; the change has the reply.
    Done,
    /// The outcome of this operation is needed next.
    Waits(OperationId),
    /// The entry takes so many bytes, more than may be read; nothing was done.
    Larger(u64),
}

impl Modification {
    /// One that reads an entry of any size.
    pub(crate) fn new() -> Modification {
        Modification::within(u64::MAX)
    }

    /// One that reads no entry of more than `bytes_max` as long as it need not wait.
    pub(crate) fn within(bytes_max: u64) -> Modification {
        Modification { stage: Stage::Read, bytes_max, read_bytes: 0 }
    }

    /// Takes all steps that need no waiting.
    pub(crate) fn advance(
        &mut self,
        modify: &Modify<'_>,
        change: &mut Change,
    ) -> Result<Progress, Failure> {
        loop {
            let next = match self.stage {
                Stage::Read => self.read(modify, change)?,
                Stage::Decided(version) => self.write(modify, (version, change))?,
                Stage::Reading(id) | Stage::Writing(id) => Some(Progress::Waits(id)),
            };
            if let Some(progress) = next {
                return Ok(progress);
            }
        }
    }

    /// Takes all steps, waiting where it has to.
    pub(crate) async fn finish(
        mut self,
        modify: &Modify<'_>,
        change: &mut Change,
    ) -> Result<(), Failure> {
        loop {
            match self.advance(modify, change)? {
                Progress::Done => return Ok(()),
                // Compressed, it takes more than was known when it was claimed.
                Progress::Larger(_) => self = Modification::new(),
                Progress::Waits(id) => {
                    let outcome = modify.engine.operations.wait(id).await?;
                    if self.take(modify, change, outcome)? == Some(Progress::Done) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads the entry and decides, if it is at hand.
    fn read(
        &mut self,
        modify: &Modify<'_>,
        change: &mut Change,
    ) -> Result<Option<Progress>, Failure> {
        change.clear();
        let engine = modify.engine;
        let id = engine.operations.begin();
        let mut decided = None;
        let get = (engine.now(), Operation::Get { key: modify.key });
        engine.submit_within(token_of(id), self.bytes_max, get, &mut |_, outcome| {
            decided = Some(self.decide(modify, outcome, change));
        });
        match decided {
            None => {
                self.stage = Stage::Reading(id);
                Ok(None)
            }
            Some(decided) => {
                engine.operations.release(id);
                decided
            }
        }
    }

    /// Decides on what was read.
    fn decide(
        &mut self,
        modify: &Modify<'_>,
        read: Result<Outcome<'_>, Error>,
        change: &mut Change,
    ) -> Result<Option<Progress>, Failure> {
        let version = match read? {
            Outcome::Larger { bytes } => return Ok(Some(Progress::Larger(bytes))),
            Outcome::Found(entry) => {
                self.read_bytes = entry.value.len();
                (modify.update)(Some(&entry), modify.request, change)?;
                Some(entry.version)
            }
            _ => {
                (modify.update)(None, modify.request, change)?;
                None
            }
        };
        self.stage = Stage::Decided(version);
        Ok(None)
    }

    /// Writes what was decided.
    fn write(
        &mut self,
        modify: &Modify<'_>,
        (version, change): (Option<Version>, &Change),
    ) -> Result<Option<Progress>, Failure> {
        let engine = modify.engine;
        let Some(operation) = change.operation(modify.key, version) else {
            return Ok(Some(Progress::Done));
        };
        engine.shared.memory.see_entry(change.value.len());
        let id = engine.operations.begin();
        let mut done = None;
        engine.submit(token_of(id), engine.now(), operation, &mut |_, outcome| {
            done = Some(outcome.map(|outcome| Done::from(&outcome)));
        });
        match done {
            None => {
                self.stage = Stage::Writing(id);
                Ok(None)
            }
            Some(done) => {
                engine.operations.release(id);
                Ok(self.written(done?))
            }
        }
    }

    /// Takes an outcome that was waited for.
    fn take(
        &mut self,
        modify: &Modify<'_>,
        change: &mut Change,
        outcome: OwnedOutcome,
    ) -> Result<Option<Progress>, Failure> {
        if matches!(self.stage, Stage::Writing(_)) {
            return Ok(self.written(Done::from(&outcome)));
        }
        let read = match &outcome {
            OwnedOutcome::Found(entry) => Outcome::Found(entry.view(modify.key.bytes)),
            OwnedOutcome::Larger(_) => {
                *self = Modification::new();
                return Ok(None);
            }
            _ => Outcome::Missing,
        };
        self.decide(modify, Ok(read), change)
    }

    fn written(&mut self, done: Done) -> Option<Progress> {
        if done == Done::Yes {
            return Some(Progress::Done);
        }
        // Another writer came first.
        self.stage = Stage::Read;
        None
    }
}

fn token_of(id: OperationId) -> u64 {
    TASK_TOKEN | id as u64
}
