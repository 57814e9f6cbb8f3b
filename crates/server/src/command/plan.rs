//! What a command comes to: a read, a write or an update of one entry, or several steps.
//!
//! A command's function only decides. The worker carries the decision out, at once where memory
//! answers and later where the device has to, so no command knows of waiting.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use entresol_tier::{
    Condition, Entry, Expiry, Key, Operation, Outcome, PutOptions, SpaceId, Version,
};
use entresol_wire::resp::{OwnedArguments, Protocol, Reply};

use super::request::Request;
use crate::client::Client;
use crate::engine_session::EngineSession;
use crate::failure::Failure;
use crate::operations::OwnedOutcome;

/// What carries out a command.
#[derive(Clone, Copy)]
pub(crate) enum Execution {
    /// Decides on work for the engine.
    Plan(for<'a> fn(&Request<'a>) -> Result<Plan<'a>, Failure>),
    /// Answers at once.
    Local(fn(&mut Local<'_, '_>) -> Result<(), Failure>),
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Execution::Plan(_) => "Plan",
            Execution::Local(_) => "Local",
        })
    }
}

/// What a command that answers at once works with.
pub(crate) struct Local<'a, 'r> {
    /// The thread's engine session.
    pub(crate) engine: &'a Rc<EngineSession>,
    /// Who asked.
    pub(crate) client: &'a Rc<Client>,
    /// The command.
    pub(crate) request: Request<'a>,
    /// Where the answer goes.
    pub(crate) reply: Reply<'r>,
}

/// What to do for a command.
pub(crate) enum Plan<'a> {
    /// Read one entry and answer from it.
    Read { key: Key<'a>, answer: ReadAnswer },
    /// Write one entry without looking at it.
    Write { operation: Operation<'a>, answer: WriteAnswer },
    /// Read one entry, decide, and write it if it is still the same one.
    Update { key: Key<'a>, update: Update },
    /// Anything else.
    Steps(StepsFunction),
}

/// Writes the answer to a read. Of a command with one argument it may see none: they are not kept
/// while the entry is read.
pub(crate) type ReadAnswer =
    fn(Option<&Entry<'_>>, &Request<'_>, &mut Reply<'_>) -> Result<(), Failure>;

/// Decides how an entry changes; called again if another writer came first.
pub(crate) type Update = fn(Option<&Entry<'_>>, &Request<'_>, &mut Change) -> Result<(), Failure>;

/// How the outcome of a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteAnswer {
    /// `OK`, or null where the condition did not hold.
    OkOrNull,
    /// 1 where something was done, 0 where not.
    OneOrZero,
}

impl WriteAnswer {
    /// Writes the answer to a write that was `done`, or refused by its condition.
    pub(crate) fn write(self, done: Done, reply: &mut Reply<'_>) {
        match (self, done) {
            (WriteAnswer::OkOrNull, Done::Yes) => reply.simple("OK"),
            (WriteAnswer::OkOrNull, Done::No) => reply.null(),
            (WriteAnswer::OneOrZero, _) => reply.integer(i64::from(done == Done::Yes)),
        }
    }
}

/// Whether a write changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    Yes,
    No,
}

impl From<&Outcome<'_>> for Done {
    fn from(outcome: &Outcome<'_>) -> Done {
        match outcome {
            Outcome::Stored { .. } | Outcome::Removed { .. } | Outcome::Touched { .. } => Done::Yes,
            _ => Done::No,
        }
    }
}

impl From<&OwnedOutcome> for Done {
    fn from(outcome: &OwnedOutcome) -> Done {
        match outcome {
            OwnedOutcome::Stored | OwnedOutcome::Removed | OwnedOutcome::Touched => Done::Yes,
            _ => Done::No,
        }
    }
}

/// The change that an update decided on, with its answer.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// What happens to the entry.
    pub(crate) effect: Effect,
    /// The new value, where the effect is to put one.
    pub(crate) value: Vec<u8>,
    /// The encoded reply.
    pub(crate) reply: Vec<u8>,
}

/// What an update does to its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Effect {
    /// Nothing.
    #[default]
    Keep,
    /// Put [`Change::value`].
    Put {
        /// The value's type.
        label: u8,
        /// When the entry ends.
        expiry: Expiry,
    },
    /// Remove it.
    Remove,
    /// Change when it ends.
    Touch(Expiry),
}

impl Change {
    /// A writer of the answer.
    pub(crate) fn reply(&mut self, request: &Request<'_>) -> Reply<'_> {
        Reply::new(&mut self.reply, request.protocol)
    }

    /// The operation that carries the decision out on the entry of `key` if that is still of
    /// `version` (`None`: still absent); `None` where nothing is to be done.
    pub(crate) fn operation<'a>(
        &'a self,
        key: Key<'a>,
        version: Option<Version>,
    ) -> Option<Operation<'a>> {
        let condition = version.map_or(Condition::Absent, Condition::Version);
        match self.effect {
            Effect::Keep => None,
            Effect::Put { label, expiry } => {
                let options = PutOptions { expiry, condition, label, ..PutOptions::default() };
                Some(Operation::Put { key, value: &self.value, options })
            }
            Effect::Remove => Some(Operation::Remove { key, condition }),
            Effect::Touch(expiry) => Some(Operation::Touch { key, expiry, condition }),
        }
    }

    /// Forgets the last decision; memory is kept unless it is large.
    pub(crate) fn clear(&mut self) {
        self.effect = Effect::Keep;
        self.value.clear();
        self.value.shrink_to(64 << 10);
        self.reply.clear();
        self.reply.shrink_to(64 << 10);
    }
}

/// The several steps of a command, still to be taken.
pub(crate) type StepsFuture = Pin<Box<dyn Future<Output = Result<Vec<u8>, Failure>>>>;

/// Begins the steps of a command.
pub(crate) type StepsFunction = fn(Steps) -> StepsFuture;

/// What a command of several steps works with. It owns everything, for it outlives the bytes the
/// command came in.
pub(crate) struct Steps {
    /// The thread's engine session.
    pub(crate) engine: Rc<EngineSession>,
    /// Who asked.
    pub(crate) client: Rc<Client>,
    /// The command's name and arguments.
    pub(crate) arguments: OwnedArguments,
    /// The table it works on.
    pub(crate) space: SpaceId,
    /// The version replies are written in.
    pub(crate) protocol: Protocol,
}

impl Steps {
    /// The command as a request at the present moment.
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            arguments: self.arguments.view(),
            space: self.space,
            now: self.engine.now(),
            protocol: self.protocol,
            reply_bytes_max: self.engine.shared.output_bytes_max(),
        }
    }
}
