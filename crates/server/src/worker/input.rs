//! From bytes of a socket to commands that may begin.

use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use entresol_wire::resp::{Arguments, Decoded, Decoder, Limits};
use tracing::warn;

use super::claim::Claimed;
use super::pipeline_prefetch::Ahead;
use super::{READ_BYTES, Worker};
use crate::client::Client;
use crate::command::arguments::quoted;
use crate::command::introspection::unknown_subcommand;
use crate::command::spec::{
    BARRIER, CONTAINER, EXCLUSIVE, NO_AUTH, NO_MULTI, NO_QUEUE, READONLY, Spec, WRITE,
};
use crate::command::table::{self};
use crate::command::transactions::queue;
use crate::connection::Reach;
use crate::failure::Failure;
use crate::pause::Pause;
use crate::shared::Shared;
use crate::slot_token::SlotToken;

/// Arguments of an unknown command are shown up to so many bytes.
const SHOWN_BYTES_MAX: usize = 128;

/// Writes that wait for the device in memory: from so many bytes on no more of them are begun.
const PUT_OFF_BYTES_MAX: usize = 256 << 10;

/// The memory of a command that is not complete grows by one part in so many.
const GROWTH_PARTS: usize = 8;

/// Whether a command has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Its bytes are used up.
    Taken,
    /// It waits for something other than bytes.
    Wait,
}

impl Worker {
    /// Goes on with all connections that can.
    pub(super) fn run_connections(&mut self) {
        let mut places = std::mem::take(&mut self.runnable);
        for place in places.drain(..) {
            if let Some(Some(connection)) = self.connections.get_mut(place) {
                connection.runnable = false;
                self.lend_output(place);
                self.advance(place);
                self.write_many(place);
                self.make_dirty(place);
            }
        }
        if self.runnable.is_empty() {
            self.runnable = places;
        }
    }

    /// Begins what the connection at `place` has, and reads more.
    fn advance(&mut self, place: usize) {
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        connection.stalled = false;
        if connection.slots.front().is_some_and(|slot| slot.held_back > 0) {
            self.resume_held_back(place);
        }
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        if !connection.input.is_empty() {
            let mut input = std::mem::take(&mut connection.input);
            let used = self.begin_all(place, &input);
            input.drain(..used);
            self.keep_input(place, input);
        }
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        let goes_on = connection.readable && !connection.stalled && !connection.broken;
        if goes_on && self.may_receive(place) {
            self.read(place);
            // What no memory is for is refused before it comes.
            let _asked = self.may_receive(place);
        }
    }

    /// Keeps the bytes of a command that is not complete or has to wait.
    fn keep_input(&mut self, place: usize, mut input: Vec<u8>) {
        if let Some(connection) = self.connections[place].as_mut() {
            if input.is_empty() {
                input = Vec::new();
            }
            connection.input = input;
        }
    }

    /// Reads once from the connection at `place` and begins what came.
    fn read(&mut self, place: usize) {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        match connection.stream.read(&mut buffer) {
            Ok(0) => {
                connection.ended = true;
                connection.readable = false;
            }
            Ok(length) => {
                let more =
                    length == READ_BYTES || connection.stream.holds_back() || connection.last_read;
                self.batch.input_bytes += length as u64;
                let active = &connection.client.facts.active_ms;
                active.store(self.engine.now().0, Ordering::Relaxed);
                if more {
                    self.make_runnable(place);
                } else {
                    connection.readable = false;
                }
                self.begin_read(place, &buffer[..length]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => connection.readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.make_runnable(place),
            Err(_) => connection.broken = true,
        }
        self.read_buffer = buffer;
    }

    /// Takes in what clients send that take no replies before they have sent all: as far as there
    /// is memory, they are not left waiting for a server that waits for them.
    pub(super) fn take_in_all(&mut self, now_ms: u64) {
        for place in 0..self.connections.len() {
            if self.connections[place].as_ref().is_some_and(|one| one.is_at_odds(now_ms)) {
                self.take_in(place);
            }
        }
    }

    fn take_in(&mut self, place: usize) {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        while let Some(connection) = self.connections[place].as_mut() {
            let is_known = connection.client.user.borrow().is_some();
            if !is_known || !self.engine.shared.memory.has_slack(READ_BYTES) {
                break;
            }
            match connection.stream.read(&mut buffer) {
                Ok(0) => {
                    connection.ended = true;
                    connection.readable = false;
                    break;
                }
                Ok(length) => {
                    self.batch.input_bytes += length as u64;
                    let active = &connection.client.facts.active_ms;
                    active.store(self.engine.now().0, Ordering::Relaxed);
                    append(&mut connection.input, &buffer[..length]);
                    self.account(place);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    connection.readable = false;
                    connection.broken |= error.kind() != ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        self.read_buffer = buffer;
        self.make_dirty(place);
    }

    /// Begins the commands in `bytes`, which follow what the connection kept.
    fn begin_read(&mut self, place: usize, bytes: &[u8]) {
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        if connection.input.is_empty() {
            let used = self.begin_all(place, bytes);
            self.keep_input(place, bytes[used..].to_vec());
        } else {
            let mut input = std::mem::take(&mut connection.input);
            if (input.capacity()..=connection.claim.granted).contains(&connection.needed) {
                input.reserve_exact(connection.needed - input.len());
            }
            append(&mut input, bytes);
            let used = self.begin_all(place, &input);
            input.drain(..used);
            self.keep_input(place, input);
        }
    }

    /// Begins as many commands of `input` as can; how many bytes they took.
    fn begin_all(&mut self, place: usize, input: &[u8]) -> usize {
        let Some(connection) = self.connections[place].as_mut() else {
            return 0;
        };
        let mut decoder =
            std::mem::replace(&mut connection.decoder, Decoder::new(Limits::default()));
        let started_ns = self.elapsed_ns();
        self.read_ns = started_ns;
        let recorded = self.batch.calls.len();
        let mut at = 0;
        let mut ahead = Ahead::default();
        let limits = self.engine.shared.limits();
        while let Some(connection) = self.connections[place].as_mut() {
            connection.needed = 0;
            if connection.client.closing.get() || connection.broken {
                at = input.len();
                break;
            }
            let stall_bytes = self.engine.shared.stall_bytes();
            let crowded = self.engine.shared.memory.is_crowded();
            let full = connection.slots.len() >= limits.pipeline_max
                || connection.replies_exceed(stall_bytes)
                || (connection.waiting_bytes() > 0 && crowded)
                // Its own reads let it go on.
                || (connection.reading_bytes > 0
                    && (crowded || self.engine.reading_bytes() > stall_bytes));
            // One that has asked to be alone keeps everybody else waiting.
            let full = full && !connection.asked || connection.claim.is_waiting();
            // What follows a command that changes who the client is, is read as that client's.
            if full || (connection.is_blocked() && at < input.len()) {
                connection.stalled = true;
                break;
            }
            let is_known = connection.client.user.borrow().is_some();
            if std::mem::replace(&mut connection.was_known, is_known) != is_known {
                decoder.set_limits(limits_of(&self.engine.shared, &connection.client));
            }
            let space = connection.client.space.get();
            ahead.step(at, |from| self.ahead.load(&self.engine, &input[from..], space));
            let rest = &input[at..];
            match decoder.decode(rest) {
                Ok(Decoded::Incomplete { needed }) => {
                    connection.needed = needed;
                    break;
                }
                Ok(Decoded::Empty { consumed }) => at += consumed,
                Ok(Decoded::Command { consumed }) => {
                    let arguments = decoder.arguments(rest);
                    if self.begin(place, arguments, started_ns) == Step::Wait {
                        decoder.restart();
                        if let Some(connection) = self.connections[place].as_mut() {
                            connection.stalled = true;
                        }
                        break;
                    }
                    at += consumed;
                    self.end_claim(place);
                }
                Err(error) => {
                    self.refuse(place, &Failure::new(format!("ERR {error}")));
                    if let Some(connection) = self.connections[place].as_mut() {
                        connection.client.closing.set(true);
                    }
                }
            }
        }
        self.note_times(recorded, self.elapsed_ns() - started_ns);
        if let Some(connection) = self.connections[place].as_mut() {
            connection.decoder = decoder;
        }
        at
    }

    /// Notes how long those calls took that were recorded from number `first` on and have no time
    /// of their own.
    fn note_times(&mut self, first: usize, took_ns: u64) {
        self.batch.calls[first..].iter_mut().filter(|call| call.2 == 0).for_each(|call| {
            call.2 = took_ns;
        });
    }

    /// Answers with an error, in its turn.
    pub(super) fn refuse(&mut self, place: usize, failure: &Failure) {
        self.batch.errors += 1;
        self.answer(place, None, |reply, _, _| reply.error(failure.text()));
    }

    /// Begins one command if it may begin now.
    fn begin(&mut self, place: usize, arguments: Arguments<'_>, started_ns: u64) -> Step {
        let Some(connection) = self.connections[place].as_mut() else {
            return Step::Taken;
        };
        if connection.is_blocked() {
            return Step::Wait;
        }
        if is_http(arguments.at(0)) {
            // Any page can have a browser post to an address that only its machine reaches, and the
            // body would be commands.
            connection.broken = true;
            let remote = &connection.stream.addresses().remote;
            warn!("client {remote} is dropped: it speaks HTTP, and this port RESP");
            return Step::Taken;
        }
        let client = Rc::clone(&connection.client);
        let spec = match checked(&client, arguments) {
            Ok(spec) => spec,
            Err((spec, failure)) => {
                let failure = abort(&client, spec, failure);
                self.batch.rejected.extend(spec.map(Spec::id));
                self.refuse(place, &failure);
                client.take_silence();
                return Step::Taken;
            }
        };
        client.facts.last_command.store(spec.id() as u16, Ordering::Relaxed);
        if !spec.has(NO_QUEUE) && client.transaction.borrow().is_some() {
            self.queue(place, &client, spec, arguments);
            return Step::Taken;
        }
        let reach = reach(spec, arguments, client.space.get().0);
        if connection.must_wait(reach) {
            return Step::Wait;
        }
        let is_large = connection.claim.granted > 0 && keeps_arguments(spec);
        if (is_large || needs_measure(spec, reach)) && !connection.asked {
            match self.claim_for_many(place, spec, arguments) {
                Claimed::Granted => {}
                Claimed::Later => return Step::Wait,
                Claimed::Never(failure) => {
                    self.refuse(place, &failure);
                    return Step::Taken;
                }
            }
        }
        if !self.may_write(place, spec) || !self.may_begin(place, spec) {
            return Step::Wait;
        }
        self.carry_out(place, spec, arguments, (reach, started_ns))
    }

    /// Whether the device lets the connection at `place` begin a write, or a command that is alone:
    /// where it answers no more, few writes wait for it in memory, and nobody keeps everybody else
    /// waiting for it.
    fn may_write(&self, place: usize, spec: &Spec) -> bool {
        if !self.stall.any || !(spec.has(WRITE) || spec.has(EXCLUSIVE)) {
            return true;
        }
        let asked = self.connections[place].as_ref().is_some_and(|one| one.asked);
        let put_off_bytes = self.engine.session().put_off_bytes();
        asked || (!spec.has(EXCLUSIVE) && put_off_bytes < PUT_OFF_BYTES_MAX)
    }

    /// Whether gate and pause let the connection at `place` begin a command.
    fn may_begin(&mut self, place: usize, spec: &Spec) -> bool {
        self.look_for_pause(self.engine.now());
        let Some(connection) = self.connections[place].as_mut() else {
            return false;
        };
        let paused = match self.pause {
            Pause::None => false,
            Pause::Writes if spec.name == "exec" => connection.client.is_about_to_write(),
            Pause::Writes => spec.has(WRITE),
            Pause::All => spec.container() != Some("client"),
        };
        // One that has asked to be alone would keep everybody waiting, the end of the pause too.
        let held = paused && !connection.asked;
        // Others read the flag, but its thread alone writes it: most commands need no write.
        let known = &connection.client.facts.paused;
        if known.load(Ordering::Relaxed) != held {
            known.store(held, Ordering::Relaxed);
        }
        if held {
            return false;
        }
        if spec.has(EXCLUSIVE) {
            let token = SlotToken::new(place, connection.generation, 0);
            let asked = std::mem::replace(&mut connection.asked, true);
            return self.may_be_alone(token, asked);
        }
        !self.must_hold(place)
    }

    /// Keeps a command for the transaction.
    fn queue(
        &mut self,
        place: usize,
        client: &Rc<Client>,
        spec: &'static Spec,
        arguments: Arguments<'_>,
    ) {
        let bytes_max = self.engine.shared.limits().request_bytes_max;
        let queued = match client.transaction.borrow_mut().as_mut() {
            Some(transaction) => queue(transaction, spec, arguments, bytes_max),
            None => Ok(()),
        };
        match queued {
            Ok(()) => {
                let count = client.transaction.borrow().as_ref().map_or(0, |t| t.commands.len());
                client.facts.queued.store(count, Ordering::Relaxed);
                self.answer(place, None, |reply, _, _| reply.simple("QUEUED"));
            }
            Err(failure) => self.refuse(place, &failure),
        }
        client.take_silence();
    }
}

/// Whether the name of a command is how a request of HTTP begins, or a line that each of them has.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// The command that `arguments` name, if the client may give it and its form is right.
fn checked(
    client: &Client,
    arguments: Arguments<'_>,
) -> Result<&'static Spec, (Option<&'static Spec>, Failure)> {
    let mut spec = table::find(arguments.at(0)).filter(|spec| spec.container().is_none());
    if let Some(container) = spec.filter(|spec| spec.has(CONTAINER) && arguments.len() > 1) {
        spec = table::find_subcommand(container.name, arguments.at(1));
        if spec.is_none() {
            let failure = unknown_subcommand(arguments.at(0), arguments.at(1));
            return Err((Some(container), failure));
        }
    }
    let spec = spec.ok_or_else(|| (None, unknown_command(arguments)))?;
    let refused = |failure| Err((Some(spec), failure));
    if !spec.takes(arguments.len()) {
        return refused(Failure::arity(spec.name));
    }
    if spec.has(NO_AUTH) {
        return Ok(spec);
    }
    let user = client.user.borrow();
    let Some(user) = user.as_ref() else {
        return refused(Failure::NO_AUTH);
    };
    if spec.has(NO_MULTI) && client.transaction.borrow().is_some() {
        return refused(Failure::NOT_IN_TRANSACTION);
    }
    if !user.may(spec) {
        return refused(Failure::new(format!(
            "NOPERM this user has no permissions to run the '{}' command",
            spec.name
        )));
    }
    let is_whole_space = spec.keys.first == 0 && (spec.has(READONLY) || spec.has(WRITE));
    if user.is_restricted() && is_whole_space {
        return refused(Failure::new(format!(
            "NOPERM this user has permissions for some keys only, and '{}' is about all of a space",
            spec.name
        )));
    }
    let may_touch = |place| user.may_touch(arguments.at(place));
    if user.is_restricted() && !spec.key_places(arguments.len()).all(may_touch) {
        return refused(Failure::fixed(
            "NOPERM this user has no permissions to access one of the keys used as arguments",
        ));
    }
    Ok(spec)
}

/// Lets the transaction of `client` fail, for `spec` is refused; what is answered.
fn abort(client: &Client, spec: Option<&Spec>, failure: Failure) -> Failure {
    if spec.is_some_and(|spec| spec.name == "exec") {
        client.discard();
        return Failure::execution_refused(&failure);
    }
    if let Some(transaction) = client.transaction.borrow_mut().as_mut() {
        transaction.aborted = true;
    }
    failure
}

/// Appends to a command that is not complete. Doubled, the memory of a large value would be twice
/// what it needs.
fn append(input: &mut Vec<u8>, bytes: &[u8]) {
    if input.capacity() - input.len() < bytes.len() {
        input.reserve_exact(bytes.len().max(input.len() / GROWTH_PARTS));
    }
    input.extend_from_slice(bytes);
}

fn unknown_command(arguments: Arguments<'_>) -> Failure {
    let mut rest = String::new();
    for argument in arguments.from(1) {
        if rest.len() >= SHOWN_BYTES_MAX {
            break;
        }
        let left = SHOWN_BYTES_MAX - rest.len();
        rest.push_str(&format!("'{}' ", quoted(argument, left)));
    }
    let name = quoted(arguments.at(0), SHOWN_BYTES_MAX);
    Failure::new(format!("ERR unknown command '{name}', with args beginning with: {rest}"))
}

/// Whether a command may have copies of its arguments, for it does not only write them.
fn keeps_arguments(spec: &Spec) -> bool {
    !matches!(spec.name, "set" | "setex" | "psetex")
}

/// Whether what a command reads is measured before it begins: it is about several entries, or is a
/// task, and cannot wait for memory later.
fn needs_measure(spec: &Spec, reach: Reach) -> bool {
    let is_of_all = matches!(spec.name, "exec" | "keys" | "hrandfield");
    is_of_all || (reach == Reach::Everything && spec.keys.first > 0)
}

/// What a command depends on.
fn reach(spec: &Spec, arguments: Arguments<'_>, space: u16) -> Reach {
    if spec.has(EXCLUSIVE) || spec.has(BARRIER) {
        return Reach::Everything;
    }
    let first = spec.keys.first as usize;
    if first == 0 {
        return Reach::Nothing;
    }
    let only = spec.keys.last == spec.keys.first || arguments.len() == first + 1;
    if !only {
        return Reach::Everything;
    }
    let hash = xxhash_rust::xxh3::xxh3_64_with_seed(arguments.at(first), u64::from(space));
    if spec.has(WRITE) { Reach::Writes(hash) } else { Reach::Reads(hash) }
}

/// The limits that `client` is held to.
pub(super) fn limits_of(shared: &Shared, client: &Client) -> Limits {
    if client.user.borrow().is_none() {
        return Limits::UNAUTHENTICATED;
    }
    Limits { request_bytes_max: shared.limits().request_bytes_max, ..Limits::default() }
}
