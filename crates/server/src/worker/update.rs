//! Commands that read an entry, decide, and write it: at once as long as memory answers, else as
//! tasks.

use std::rc::Rc;

use entresol_tier::{Error, Key, Operation, Outcome, Version};

use super::Worker;
use super::carry::{Command, Work};
use super::claim::COPIES_CHANGED;
use crate::command::plan::{Change, Done, Steps, Update};
use crate::core::{Core, TASK_TOKEN};
use crate::failure::Failure;
use crate::operations::{OperationId, OwnedOutcome};

impl Worker {
    /// Reads an entry, decides, and writes; at once as long as memory answers.
    pub(super) fn update_entry(
        &mut self,
        command: &Command<'_>,
        key: Key<'_>,
        update: Update,
    ) -> Work {
        let core = Rc::clone(&self.core);
        let request = &command.request;
        let mut change = std::mem::take(&mut self.change);
        change.clear();
        let read = core.operations.begin();
        let mut decided: Option<Result<Option<Version>, Failure>> = None;
        let (mut bytes, mut larger) = (0, None);
        let allowance = self.allowance(command.place);
        submit_once(&core, (read, allowance), Operation::Get { key }, &mut |outcome| {
            decided = Some(match outcome {
                Ok(Outcome::Larger { bytes }) => {
                    larger = Some(bytes as usize);
                    Ok(None)
                }
                Err(error) => Err(error.into()),
                Ok(Outcome::Found(entry)) => {
                    bytes = entry.value.len();
                    update(Some(&entry), request, &mut change).map(|()| Some(entry.version))
                }
                Ok(_) => update(None, request, &mut change).map(|()| None),
            });
        });
        if let Some(larger) = larger {
            core.operations.release(read);
            self.change = change;
            return Work::Larger(larger, COPIES_CHANGED);
        }
        core.shared.memory.see_entry(change.value.len());
        let mut work = Work::Bytes(bytes.max(change.value.len()));
        match decided {
            None => {
                let steps = self.steps(command);
                self.spawn(command, Box::pin(update_after_read(steps, update, read)));
                work = Work::OfTask;
            }
            Some(Err(failure)) => {
                core.operations.release(read);
                self.answer_error(command, &failure);
            }
            Some(Ok(version)) => {
                core.operations.release(read);
                if self.apply(command, (key, version), update, &mut change) == Work::OfTask {
                    work = Work::OfTask;
                }
            }
        }
        self.change = change;
        work
    }

    /// Carries out a decided change, and begins anew if another writer came first.
    fn apply(
        &mut self,
        command: &Command<'_>,
        (key, version): (Key<'_>, Option<Version>),
        update: Update,
        change: &mut Change,
    ) -> Work {
        let Some(operation) = change.operation(key, version) else {
            self.answer_raw(command, &change.reply);
            return Work::Bytes(0);
        };
        let core = Rc::clone(&self.core);
        let write = core.operations.begin();
        let mut done: Option<Result<Done, Failure>> = None;
        submit_once(&core, (write, u64::MAX), operation, &mut |outcome| {
            done = Some(outcome.map(|outcome| Done::from(&outcome)).map_err(Failure::from));
        });
        if done.is_some() {
            core.operations.release(write);
        }
        match done {
            Some(Ok(Done::Yes)) => self.answer_raw(command, &change.reply),
            Some(Ok(Done::No)) => {
                let steps = self.steps(command);
                self.spawn(command, Box::pin(update_from_start(steps, update)));
                return Work::OfTask;
            }
            Some(Err(failure)) => self.answer_error(command, &failure),
            None => {
                let steps = self.steps(command);
                let reply = change.reply.clone();
                self.spawn(command, Box::pin(update_after_write(steps, update, write, reply)));
                return Work::OfTask;
            }
        }
        Work::Bytes(0)
    }
}

/// Submits an operation in the place `id` on an entry of at most `bytes_max`; `visit` is called if
/// the outcome is at hand.
fn submit_once(
    core: &Core,
    (id, bytes_max): (OperationId, u64),
    operation: Operation<'_>,
    visit: &mut dyn FnMut(Result<Outcome<'_>, Error>),
) {
    let token = TASK_TOKEN | id as u64;
    core.submit_within(token, bytes_max, (core.now(), operation), &mut |_, outcome| visit(outcome));
}

async fn update_from_start(steps: Steps, update: Update) -> Result<Vec<u8>, Failure> {
    let request = steps.request();
    let key = request.key(1)?;
    let mut change = Change::default();
    steps.core.update(key, update, &request, &mut change).await?;
    Ok(change.reply)
}

async fn update_after_read(
    steps: Steps,
    update: Update,
    read: OperationId,
) -> Result<Vec<u8>, Failure> {
    let outcome = steps.core.operations.wait(read).await?;
    let request = steps.request();
    let key = request.key(1)?;
    let entry = match outcome {
        // Compressed, it takes more than was known when it was claimed.
        OwnedOutcome::Larger(_) => return update_from_start(steps, update).await,
        OwnedOutcome::Found(entry) => Some(entry),
        _ => None,
    };
    let mut change = Change::default();
    update(entry.as_ref().map(|entry| entry.view(key.bytes)).as_ref(), &request, &mut change)?;
    let Some(operation) = change.operation(key, entry.as_ref().map(|entry| entry.version)) else {
        return Ok(change.reply);
    };
    match Done::from(&steps.core.run(operation).await?) {
        Done::Yes => Ok(change.reply),
        Done::No => update_from_start(steps, update).await,
    }
}

async fn update_after_write(
    steps: Steps,
    update: Update,
    write: OperationId,
    reply: Vec<u8>,
) -> Result<Vec<u8>, Failure> {
    match Done::from(&steps.core.operations.wait(write).await?) {
        Done::Yes => Ok(reply),
        Done::No => update_from_start(steps, update).await,
    }
}
