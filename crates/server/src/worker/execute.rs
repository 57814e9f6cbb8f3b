//! Carrying out commands: at once where memory answers, else as slots that wait for the device.

use std::rc::Rc;

use entresol_tier::{Error, Key, Operation, Outcome};
use entresol_wire::resp::{Arguments, OwnedArguments, Reply};

use super::claim::{COPIES_READ, Claimed};
use super::input::Step;
use super::turnstile::Granted;
use super::{Task, Touches, Worker};
use crate::command::arguments::check_reply;
use crate::command::dispatch::execution;
use crate::command::plan::{Done, Plan, ReadAnswer, Steps, StepsFuture, WriteAnswer};
use crate::command::plan::{Execution, Local};
use crate::command::request::Request;
use crate::command::spec::{ADMIN, EXCLUSIVE, LOUD, NO_ENTRIES, Spec};
use crate::command::transactions::is_told_first;
use crate::connection::{Action, Connection, Reach, Slot};
use crate::engine_session::EngineSession;
use crate::failure::Failure;
use crate::slot_token::{SEQUENCE_MASK, SlotToken};
use crate::slow;

/// What a command depends on, and when it was read (nanoseconds since the worker began).
pub(super) type Since = (Reach, u64);

/// What a command had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// At once, with about so many bytes.
    Bytes(usize),
    /// A task does it, whose end is noted.
    OfTask,
    /// Nothing was done: the entry takes so many bytes, in so many copies, and needs a claim.
    Larger(usize, usize),
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
    ) -> Step {
        let Some(connection) = self.connections[place].as_mut() else {
            return Step::Taken;
        };
        let was_told = std::mem::take(&mut connection.told);
        let client = &connection.client;
        let request = Request {
            arguments,
            space: client.space.get(),
            now: self.engine.now(),
            protocol: client.protocol.get(),
            reply_bytes_max: self.engine.shared.output_bytes_max(),
        };
        if is_told_first(spec) && !was_told {
            self.engine.shared.tell_monitors(client, spec, arguments);
        }
        let silence = client.silence.get();
        let is_silent = !spec.has(LOUD) && client.take_silence();
        let pending = connection.pending;
        let command = Command { place, spec, request, since, is_silent };
        let work = match execution(spec) {
            Execution::Local(_) => {
                let client = Rc::clone(client);
                let work = self.answer_locally(&command);
                // Afterwards, for the line has the space that `SELECT` chose.
                self.engine.shared.tell_monitors(&client, spec, arguments);
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
        if let Work::Larger(bytes, copies) = work {
            if let Some(connection) = self.connections[place].as_mut() {
                connection.client.silence.set(silence);
                connection.told = true;
            }
            return match self.claim(place, bytes, copies) {
                Claimed::Granted => self.carry_out(place, spec, arguments, since),
                Claimed::Later => Step::Wait,
                Claimed::Never(failure) => {
                    self.refuse_begun(&command, &failure);
                    Step::Taken
                }
            };
        }
        self.keep_if_slow(&command, pending, work);
        if spec.has(EXCLUSIVE) {
            self.note_alone(place, pending);
        }
        Step::Taken
    }

    /// Answers a command with an error that monitors were told of, and that was not begun.
    fn refuse_begun(&mut self, command: &Command<'_>, failure: &Failure) {
        if let Some(connection) = self.connections[command.place].as_mut() {
            connection.told = false;
            connection.client.take_silence();
        }
        self.answer_error(command, failure);
    }

    /// Keeps a command that was answered at once for `SLOWLOG` if it took long. The clock is read
    /// only where that may be.
    fn keep_if_slow(&mut self, command: &Command<'_>, pending_before: usize, work: Work) {
        let (Some(slow_ns), Work::Bytes(bytes)) = (self.engine.shared.slow_ns(), work) else {
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
            let slow = slow::command(arguments, &connection.client, took_ns, self.engine.now());
            self.engine.shared.keep_slow(slow);
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
    pub(super) fn steps(&self, command: &Command<'_>) -> Steps {
        let client = self.connections[command.place].as_ref().map(|c| Rc::clone(&c.client));
        Steps {
            engine: Rc::clone(&self.engine),
            client: client.expect("a command is carried out while its connection is there"),
            arguments: OwnedArguments::copy(command.request.arguments),
            space: command.request.space,
            protocol: command.request.protocol,
        }
    }

    fn answer_locally(&mut self, command: &Command<'_>) -> Work {
        let mut bytes = 0;
        let Execution::Local(function) = execution(command.spec) else {
            return Work::Bytes(bytes);
        };
        let engine = Rc::clone(&self.engine);
        self.answer(command.place, Some(command), |reply, connection, answered| {
            let mark = reply.mark();
            let client = &connection.client;
            let request = command.request;
            let mut local = Local { engine: &engine, client, request, reply: reply.reborrow() };
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

    pub(super) fn answer_error(&mut self, command: &Command<'_>, failure: &Failure) {
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
        if connection.waiting_bytes() > self.engine.shared.output_bytes_max() {
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
        let get = Operation::Get { key };
        match self.submit(command, get, Action::Read(answer), finish) {
            Some(larger) => Work::Larger(larger, COPIES_READ),
            None => Work::Bytes(bytes),
        }
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
        self.engine.shared.memory.see_entry(bytes);
        let finish = |outcome: Result<Outcome<'_>, Error>, out: &mut Vec<u8>| {
            write_write_answer(answer, outcome, &mut Reply::new(out, command.request.protocol))
        };
        self.submit(command, operation, Action::Write(answer), finish);
        Work::Bytes(bytes)
    }

    /// Submits the one operation of a command, and answers if the outcome is at hand; bytes of an
    /// entry that needs a claim first.
    fn submit(
        &mut self,
        command: &Command<'_>,
        operation: Operation<'_>,
        action: Action,
        mut finish: impl FnMut(Result<Outcome<'_>, Error>, &mut Vec<u8>) -> Answered,
    ) -> Option<usize> {
        let allowance = self.allowance(command.place);
        let connection = self.connections[command.place].as_mut()?;
        let token = connection.next_token(command.place);
        let mut slot = (!connection.slots.is_empty()).then(|| self.spare.pop().unwrap_or_default());
        let out = slot.as_mut().map_or(&mut connection.output, |slot| &mut slot.reply);
        let mark = out.len();
        let (mut answered, mut larger) = (None, None);
        let engine: &EngineSession = &self.engine;
        let operation = (command.request.now, operation);
        let reading =
            engine.submit_within(token.0, allowance, operation, &mut |_, outcome| match outcome {
                Ok(Outcome::Larger { bytes }) => larger = Some(bytes as usize),
                outcome => answered = Some(finish(outcome, out)),
            });
        if larger.is_some() {
            self.spare.extend(slot);
            return larger;
        }
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
            return None;
        }
        let mut slot = slot.or_else(|| self.spare.pop()).unwrap_or_default();
        slot.reading_bytes = if matches!(action, Action::Read(_)) { reading } else { 0 };
        self.wait_for(command, slot, action);
        None
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
        // A read may have to be begun once more, and a task has to know them.
        let are_kept = match action {
            Action::Read(_) => true,
            Action::Task => arguments.len() > 2,
            Action::Write(_) => false,
        };
        if are_kept {
            slot.arguments.replace(arguments);
            // A task has a copy of its own.
            let copies = 1 + usize::from(matches!(action, Action::Task));
            slot.argument_bytes = copies * arguments.kept_bytes();
        } else if self.engine.shared.slow_ns().is_some() {
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

    pub(super) fn answer_raw(&mut self, command: &Command<'_>, encoded: &[u8]) {
        self.answer(command.place, Some(command), |reply, _, answered| {
            reply.raw(encoded);
            if encoded.first() == Some(&b'-') {
                *answered = Answered::WithError;
            }
        });
    }

    /// Makes a command of several steps a task and takes its first steps.
    pub(super) fn spawn(&mut self, command: &Command<'_>, future: StepsFuture) {
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
    let length = reply.mark() - mark;
    match written.and_then(|()| check_reply(length, request.reply_bytes_max)) {
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
