//! Carrying out commands: at once where memory answers, else as slots that wait for the device.

use std::rc::Rc;

use entresol_tier::{Error, Key, Operation, Outcome, Version};
use entresol_wire::resp::{Arguments, OwnedArguments, Reply};

use super::settle::slow_command;
use super::turnstile::Granted;
use super::{Task, Touches, Worker};
use crate::command::plan::{
    Change, Done, Plan, ReadAnswer, Request, Steps, StepsFuture, Update, WriteAnswer,
};
use crate::command::table::{ADMIN, EXCLUSIVE, Execution, LOUD, Local, NO_ENTRIES, Spec};
use crate::command::transactions::is_told_first;
use crate::connection::{Action, Connection, Reach, SEQUENCE_MASK, Slot, SlotToken};
use crate::core::{Core, TASK_TOKEN};
use crate::failure::Failure;
use crate::operations::{OperationId, OwnedOutcome};
use crate::slow;

/// What a command depends on, and when it was read (nanoseconds since the worker began).
pub(super) type Since = (Reach, u64);

/// What a command had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// At once, with about so many bytes.
    Bytes(usize),
    /// A task does it, whose end is noted.
    OfTask,
}

/// A command with less than so many bytes does not take a millisecond, where nothing is waited for.
const HEAVY_BYTES: usize = 64 << 10;
const LIGHT_NS: u64 = 1_000_000;

/// Whether an answer is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    Well,
    WithError,
}

impl Worker {
    /// Carries out a command that may begin.
    pub(super) fn carry_out(
        &mut self,
        place: usize,
        spec: &'static Spec,
        arguments: Arguments<'_>,
        since: Since,
    ) {
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        let client = &connection.client;
        let request = Request {
            arguments,
            space: client.space.get(),
            now: self.core.now(),
            protocol: client.protocol.get(),
            reply_bytes_max: self.core.shared.output_bytes_max(),
        };
        if is_told_first(spec) {
            self.core.shared.tell_monitors(client, spec, arguments);
        }
        let is_silent = !spec.has(LOUD) && client.take_silence();
        let pending = connection.pending;
        let command = Command { place, spec, request, since, is_silent };
        let work = match spec.handler {
            Execution::Local(_) => {
                let client = Rc::clone(client);
                let work = self.answer_locally(&command);
                // Afterwards, for the line has the space that `SELECT` chose.
                self.core.shared.tell_monitors(&client, spec, arguments);
                work
            }
            Execution::Plan(plan) => match plan(&request) {
                Err(failure) => {
                    self.answer_error(&command, &failure);
                    Work::Bytes(0)
                }
                Ok(Plan::Read { key, answer }) => self.read_entry(&command, key, answer),
                Ok(Plan::Write { operation, answer }) => {
                    self.write_entry(&command, operation, answer)
                }
                Ok(Plan::Update { key, update }) => self.update_entry(&command, key, update),
                Ok(Plan::Steps(begin)) => {
                    let steps = self.steps(&command);
                    self.spawn(&command, begin(steps));
                    Work::OfTask
                }
            },
        };
        self.keep_if_slow(&command, pending, work);
        if spec.has(EXCLUSIVE) {
            self.note_alone(place, pending);
        }
    }

    /// Keeps a command that was answered at once for `SLOWLOG` if it took long. The clock is read
    /// only where that may be.
    fn keep_if_slow(&mut self, command: &Command<'_>, pending_before: usize, work: Work) {
        let (Some(slow_ns), Work::Bytes(bytes)) = (self.core.shared.slow_ns(), work) else {
            return;
        };
        if bytes < HEAVY_BYTES && slow_ns >= LIGHT_NS {
            return;
        }
        let present_ns = self.elapsed_ns();
        let took_ns = present_ns.saturating_sub(std::mem::replace(&mut self.read_ns, present_ns));
        let Some(connection) = self.connections[command.place].as_ref() else {
            return;
        };
        if connection.pending == pending_before && took_ns >= slow_ns {
            let arguments = slow::shown(command.spec.name, command.request.arguments);
            let slow = slow_command(arguments, &connection.client, took_ns, self.core.now());
            self.core.shared.keep_slow(slow);
        }
    }

    /// Notes whether the command that is alone is answered or in flight.
    fn note_alone(&mut self, place: usize, pending_before: usize) {
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        connection.asked = false;
        if connection.pending == pending_before {
            self.end_alone();
            return;
        }
        let last = connection.next_sequence.wrapping_sub(1) & SEQUENCE_MASK;
        let slot = Some(SlotToken::new(place, connection.generation, last));
        let connection = SlotToken::new(place, connection.generation, 0);
        self.gate.granted = Some(Granted { connection, slot });
    }

    /// What a command of several steps works with.
    fn steps(&self, command: &Command<'_>) -> Steps {
        let client = self.connections[command.place].as_ref().map(|c| Rc::clone(&c.client));
        Steps {
            core: Rc::clone(&self.core),
            client: client.expect("a command is carried out while its connection is there"),
            arguments: OwnedArguments::copy(command.request.arguments),
            space: command.request.space,
            protocol: command.request.protocol,
        }
    }

    fn answer_locally(&mut self, command: &Command<'_>) -> Work {
        let mut bytes = 0;
        let Execution::Local(function) = command.spec.handler else {
            return Work::Bytes(bytes);
        };
        let core = Rc::clone(&self.core);
        self.answer(command.place, Some(command), |reply, connection, answered| {
            let mark = reply.mark();
            let client = &connection.client;
            let request = command.request;
            let mut local = Local { core: &core, client, request, reply: reply.reborrow() };
            if let Err(failure) = function(&mut local) {
                reply.rewind(mark);
                reply.error(failure.text());
                *answered = Answered::WithError;
            }
            bytes = reply.mark() - mark;
        });
        // What these do besides is not told by how much they answer.
        Work::Bytes(if command.spec.has(ADMIN) { usize::MAX } else { bytes })
    }

    fn answer_error(&mut self, command: &Command<'_>, failure: &Failure) {
        self.answer(command.place, Some(command), |reply, _, answered| {
            reply.error(failure.text());
            *answered = Answered::WithError;
        });
    }

    /// Answers at once: into the output, or into a slot if earlier replies are not ready.
    pub(super) fn answer(
        &mut self,
        place: usize,
        command: Option<&Command<'_>>,
        write: impl FnOnce(&mut Reply<'_>, &ConnectionFacts, &mut Answered),
    ) {
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        let protocol = connection.client.protocol.get();
        let facts = ConnectionFacts { client: Rc::clone(&connection.client) };
        let silent = match command {
            Some(command) => command.is_silent,
            None => connection.client.silence.get() != crate::client::Silence::Off,
        };
        let mut answered = Answered::Well;
        if connection.slots.is_empty() {
            let mut reply = Reply::new(&mut connection.output, protocol);
            let mark = reply.mark();
            write(&mut reply, &facts, &mut answered);
            if silent {
                reply.rewind(mark);
            }
        } else {
            let mut slot = self.spare.pop().unwrap_or_default();
            slot.reach = Reach::Nothing;
            slot.is_ready = true;
            write(&mut Reply::new(&mut slot.reply, protocol), &facts, &mut answered);
            if silent {
                slot.reply.clear();
            }
            connection.push(slot);
        }
        if let Some(command) = command {
            self.count(command.spec.id(), answered);
        }
    }

    /// Sends a line that answers no command to the connection that `token` names.
    pub(super) fn show(&mut self, token: SlotToken, line: &[u8]) {
        let Some(Some(connection)) = self.connections.get_mut(token.place()) else {
            return;
        };
        if connection.generation != token.generation() || !connection.client.is_monitor.get() {
            return;
        }
        if connection.slots.is_empty() {
            connection.output.extend_from_slice(line);
        } else {
            let mut slot = self.spare.pop().unwrap_or_default();
            slot.reach = Reach::Nothing;
            slot.is_ready = true;
            slot.reply.extend_from_slice(line);
            connection.push(slot);
        }
        if connection.waiting_bytes() > self.core.shared.output_bytes_max() {
            connection.broken = true;
        }
        self.make_dirty(token.place());
    }

    /// Counts a command that was answered at once; how long it took is filled in later.
    fn count(&mut self, command: usize, answered: Answered) {
        match self.batch.calls.last_mut() {
            Some((last, calls, 0)) if *last == command => *calls += 1,
            _ => self.batch.calls.push((command, 1, 0)),
        }
        if answered == Answered::WithError {
            self.batch.failed.push(command);
            self.batch.errors += 1;
        }
    }

    fn read_entry(&mut self, command: &Command<'_>, key: Key<'_>, answer: ReadAnswer) -> Work {
        let mut bytes = 0;
        let finish = |outcome: Result<Outcome<'_>, Error>, out: &mut Vec<u8>| {
            if let Ok(Outcome::Found(entry)) = &outcome {
                bytes = entry.value.len();
            }
            write_read_answer(answer, outcome, &command.request, out)
        };
        self.submit(command, Operation::Get { key }, Action::Read(answer), finish);
        Work::Bytes(bytes)
    }

    fn write_entry(
        &mut self,
        command: &Command<'_>,
        operation: Operation<'_>,
        answer: WriteAnswer,
    ) -> Work {
        let bytes = match operation {
            Operation::Put { value, .. } => value.len(),
            _ => 0,
        };
        let finish = |outcome: Result<Outcome<'_>, Error>, out: &mut Vec<u8>| {
            write_write_answer(answer, outcome, &mut Reply::new(out, command.request.protocol))
        };
        self.submit(command, operation, Action::Write(answer), finish);
        Work::Bytes(bytes)
    }

    /// Submits the one operation of a command, and answers if the outcome is at hand.
    fn submit(
        &mut self,
        command: &Command<'_>,
        operation: Operation<'_>,
        action: Action,
        mut finish: impl FnMut(Result<Outcome<'_>, Error>, &mut Vec<u8>) -> Answered,
    ) {
        let Some(connection) = self.connections[command.place].as_mut() else {
            return;
        };
        let token = connection.next_token(command.place);
        let mut slot = (!connection.slots.is_empty()).then(|| self.spare.pop().unwrap_or_default());
        let out = slot.as_mut().map_or(&mut connection.output, |slot| &mut slot.reply);
        let mark = out.len();
        let mut answered = None;
        let core: &Core = &self.core;
        let reading =
            core.submit(token.0, command.request.now, operation, &mut |found, outcome| {
                if found == token.0 && answered.is_none() {
                    answered = Some(finish(outcome, out));
                } else {
                    core.arrive(found, outcome);
                }
            });
        if let Some(answered) = answered {
            if command.is_silent {
                out.truncate(mark);
            }
            if let Some(mut slot) = slot {
                slot.reach = Reach::Nothing;
                slot.is_ready = true;
                connection.push(slot);
            }
            self.count(command.spec.id(), answered);
            return;
        }
        let mut slot = slot.or_else(|| self.spare.pop()).unwrap_or_default();
        slot.reading_bytes = if matches!(action, Action::Read(_)) { reading } else { 0 };
        self.wait_for(command, slot, action);
    }

    /// Keeps a command whose outcome comes later.
    fn wait_for(&mut self, command: &Command<'_>, mut slot: Slot, action: Action) -> SlotToken {
        let (reach, started_ns) = command.since;
        slot.is_ready = false;
        slot.reach = reach;
        slot.action = action;
        slot.command = command.spec.id();
        slot.started_ns = started_ns;
        slot.protocol = command.request.protocol;
        slot.space = command.request.space;
        slot.is_silent = command.is_silent;
        let arguments = command.request.arguments;
        if arguments.len() > 2 && !matches!(action, Action::Write(_)) {
            slot.arguments.replace(arguments);
            // A task has a copy of its own.
            let copies = 1 + usize::from(matches!(action, Action::Task));
            slot.argument_bytes = copies * arguments.kept_bytes();
        } else if self.core.shared.slow_ns().is_some() {
            slot.beginning.note(arguments);
            slot.argument_bytes = slot.beginning.kept_bytes();
        }
        let connection = self.connections[command.place].as_mut();
        let connection = connection.expect("a command is begun while its connection is there");
        connection.argument_bytes += slot.argument_bytes;
        connection.reading_bytes += slot.reading_bytes;
        let token = connection.next_token(command.place);
        connection.pending += 1;
        connection.push(slot);
        self.in_flight += 1;
        token
    }

    /// Reads an entry, decides, and writes; at once as long as memory answers.
    fn update_entry(&mut self, command: &Command<'_>, key: Key<'_>, update: Update) -> Work {
        let core = Rc::clone(&self.core);
        let request = &command.request;
        let mut change = std::mem::take(&mut self.change);
        change.clear();
        let read = core.operations.begin();
        let mut decided: Option<Result<Option<Version>, Failure>> = None;
        let mut bytes = 0;
        submit_once(&core, read, Operation::Get { key }, &mut |outcome| {
            decided = Some(match outcome {
                Err(error) => Err(error.into()),
                Ok(Outcome::Found(entry)) => {
                    bytes = entry.value.len();
                    update(Some(&entry), request, &mut change).map(|()| Some(entry.version))
                }
                Ok(_) => update(None, request, &mut change).map(|()| None),
            });
        });
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
        submit_once(&core, write, operation, &mut |outcome| {
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

    fn answer_raw(&mut self, command: &Command<'_>, encoded: &[u8]) {
        self.answer(command.place, Some(command), |reply, _, answered| {
            reply.raw(encoded);
            if encoded.first() == Some(&b'-') {
                *answered = Answered::WithError;
            }
        });
    }

    /// Makes a command of several steps a task and takes its first steps.
    fn spawn(&mut self, command: &Command<'_>, future: StepsFuture) {
        let slot = self.spare.pop().unwrap_or_default();
        let token = self.wait_for(command, slot, Action::Task);
        let touches =
            if command.spec.has(NO_ENTRIES) { Touches::Nothing } else { Touches::Entries };
        self.aside += usize::from(touches == Touches::Nothing);
        let task = Task { future, token, touches };
        let id = match self.free_tasks.pop() {
            Some(id) => {
                self.tasks[id] = Some(task);
                id
            }
            None => {
                self.tasks.push(Some(task));
                self.tasks.len() - 1
            }
        };
        self.run_task(id);
    }
}

/// A command that is being carried out.
pub(super) struct Command<'a> {
    pub(super) place: usize,
    pub(super) spec: &'static Spec,
    pub(super) request: Request<'a>,
    pub(super) since: Since,
    pub(super) is_silent: bool,
}

/// What writing an answer may need of its connection.
pub(super) struct ConnectionFacts {
    pub(super) client: Rc<crate::client::Client>,
}

impl Connection {
    /// The token of the next slot.
    fn next_token(&self, place: usize) -> SlotToken {
        SlotToken::new(place, self.generation, self.next_sequence)
    }

    /// Adds a slot behind the others.
    fn push(&mut self, slot: Slot) {
        self.held_bytes += slot.reply.len();
        self.next_sequence = self.next_sequence.wrapping_add(1) & SEQUENCE_MASK;
        self.slots.push_back(slot);
    }
}

/// Submits an operation in the place `id`; `visit` is called if the outcome is at hand.
fn submit_once(
    core: &Core,
    id: OperationId,
    operation: Operation<'_>,
    visit: &mut dyn FnMut(Result<Outcome<'_>, Error>),
) {
    let token = TASK_TOKEN | id as u64;
    core.submit(token, core.now(), operation, &mut |found, outcome| {
        if found == token { visit(outcome) } else { core.arrive(found, outcome) }
    });
}

/// Writes the answer to a read.
pub(super) fn write_read_answer(
    answer: ReadAnswer,
    outcome: Result<Outcome<'_>, Error>,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Answered {
    let mut reply = Reply::new(out, request.protocol);
    let mark = reply.mark();
    let written = match outcome {
        Ok(Outcome::Found(entry)) => answer(Some(&entry), request, &mut reply),
        Ok(_) => answer(None, request, &mut reply),
        Err(error) => Err(error.into()),
    };
    match written {
        Ok(()) => Answered::Well,
        Err(failure) => {
            reply.rewind(mark);
            reply.error(failure.text());
            Answered::WithError
        }
    }
}

/// Writes the answer to a write.
pub(super) fn write_write_answer(
    answer: WriteAnswer,
    outcome: Result<Outcome<'_>, Error>,
    reply: &mut Reply<'_>,
) -> Answered {
    match outcome {
        Ok(outcome) => {
            answer.write(Done::from(&outcome), reply);
            Answered::Well
        }
        Err(error) => {
            reply.error(Failure::from(error).text());
            Answered::WithError
        }
    }
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
