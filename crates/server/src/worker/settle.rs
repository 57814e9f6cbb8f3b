//! Outcomes that come later: into their slots, from there to the output, from there to the sockets.

use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use entresol_tier::{Error, Outcome, Timestamp};
use entresol_wire::resp::Reply;

use super::carry::{Answered, write_read_answer, write_write_answer};
use super::{Completes, Touches, Worker};
use crate::client_memory::Taken;
use crate::command::arguments::check_reply;
use crate::connection::{Action, Connection, KEPT_BYTES_MAX, Slot};
use crate::core::TASK_TOKEN;
use crate::failure::Failure;
use crate::operations::{OperationId, TaskId};
use crate::report::report;
use crate::shared::SlowCommand;
use crate::slot_token::SlotToken;
use crate::slow;

/// Replies of one connection that are written before those of others are put together.
const MANY_BYTES: usize = 8 << 10;
/// The memory for replies that connections are lent one after the other, at most.
const SPARE_OUTPUT_MAX: usize = 256 << 10;

impl Worker {
    /// Takes what the device has finished.
    pub(super) fn take_outcomes(&mut self, now: Timestamp) {
        let core = Rc::clone(&self.core);
        let mut session = core.session();
        let in_flight = session.in_flight();
        if in_flight == 0 {
            return;
        }
        let blocks = self.completes == Completes::WhenPolled && self.runnable.is_empty();
        let wait_for = usize::from(blocks);
        let polled = session.poll(wait_for, now, &mut |token, outcome| {
            if token & TASK_TOKEN != 0 {
                core.complete((token & !TASK_TOKEN) as OperationId, outcome);
            } else {
                self.settle_operation(SlotToken(token), outcome);
            }
        });
        if let Err(error) = polled {
            report(&format!("outcomes cannot be taken from the device: {error}"));
        }
    }

    pub(super) fn settle_operation(
        &mut self,
        token: SlotToken,
        outcome: Result<Outcome<'_>, Error>,
    ) {
        if let Ok(Outcome::Larger { bytes }) = outcome {
            return self.hold_back(token, bytes as usize);
        }
        let (now, bytes_max) = (self.core.now(), self.core.shared.output_bytes_max());
        self.settle(token, |slot, out| match slot.action {
            Action::Read(answer) => {
                write_read_answer(answer, outcome, &slot.request(now, bytes_max), out)
            }
            Action::Write(answer) => {
                write_write_answer(answer, outcome, &mut Reply::new(out, slot.protocol))
            }
            Action::Task => Answered::Well,
        });
    }

    /// Answers the command in the slot that `token` names with an error.
    pub(super) fn settle_failed(&mut self, token: SlotToken, failure: &Failure) {
        self.settle(token, |slot, out| {
            Reply::new(out, slot.protocol).error(failure.text());
            Answered::WithError
        });
    }

    /// Answers the command in the slot that `token` names with what `write` appends.
    fn settle(&mut self, token: SlotToken, write: impl FnOnce(&Slot, &mut Vec<u8>) -> Answered) {
        self.in_flight -= 1;
        self.settle_in_connection(token, write);
        if self.gate.granted.is_some_and(|granted| granted.slot == Some(token)) {
            self.end_alone();
        }
    }

    fn settle_in_connection(
        &mut self,
        token: SlotToken,
        write: impl FnOnce(&Slot, &mut Vec<u8>) -> Answered,
    ) {
        let elapsed_ns = self.elapsed_ns();
        let Some(Some(connection)) = self.connections.get_mut(token.place()) else {
            return;
        };
        if connection.generation != token.generation() {
            return;
        }
        let Some(place) = connection.place_of(token.sequence()) else {
            return;
        };
        let Connection { slots, output, client, .. } = connection.as_mut();
        let Some(slot) = slots.get_mut(place) else {
            return;
        };
        let mut reply = std::mem::take(&mut slot.reply);
        let out = if place == 0 { output } else { &mut reply };
        let mark = out.len();
        let answered = write(slot, out);
        if slot.is_silent {
            out.truncate(mark);
        }
        let length = out.len() - mark;
        slot.reply = reply;
        slot.is_ready = true;
        let read_bytes = std::mem::take(&mut slot.reading_bytes);
        let took_ns = elapsed_ns.saturating_sub(slot.started_ns).max(1);
        self.batch.calls.push((slot.command, 1, took_ns));
        if answered == Answered::WithError {
            self.batch.failed.push(slot.command);
            self.batch.errors += 1;
        }
        if self.core.shared.slow_ns().is_some_and(|slow_ns| took_ns >= slow_ns) {
            let name = crate::command::table::SPECS[slot.command].name;
            let arguments = match slot.arguments.view() {
                kept if kept.is_empty() => slot.beginning.shown(name),
                kept => slow::shown(name, kept),
            };
            let slow = slow_command(arguments, client, took_ns, self.core.now());
            self.core.shared.keep_slow(slow);
        }
        connection.held_bytes += connection.slots.get(place).map_or(0, |slot| slot.reply.len());
        connection.reading_bytes -= read_bytes;
        connection.note_reply(length);
        connection.pending -= 1;
        connection.pop_ready(&mut self.spare);
        let resumes = connection.stalled;
        self.make_dirty(token.place());
        if resumes {
            self.make_runnable(token.place());
        }
    }

    /// Takes the next steps of all tasks that can.
    pub(super) fn run_tasks(&mut self) {
        while let Some(id) = self.core.operations.next_ready() {
            self.run_task(id);
        }
    }

    /// Takes the next steps of one task.
    pub(super) fn run_task(&mut self, id: TaskId) {
        let Some(mut task) = self.tasks.get_mut(id).and_then(Option::take) else {
            return;
        };
        self.core.operations.set_current(id);
        let mut context = Context::from_waker(Waker::noop());
        match task.future.as_mut().poll(&mut context) {
            Poll::Pending => self.tasks[id] = Some(task),
            Poll::Ready(result) => {
                self.free_tasks.push(id);
                self.aside -= usize::from(task.touches == Touches::Nothing);
                self.finish_task(task.token, result);
            }
        }
    }

    fn finish_task(&mut self, token: SlotToken, result: Result<Vec<u8>, Failure>) {
        let bytes_max = self.core.shared.output_bytes_max();
        let result = result.and_then(|reply| check_reply(reply.len(), bytes_max).map(|()| reply));
        self.settle(token, |slot, out| match result {
            Ok(mut reply) if out.is_empty() && reply.len() > KEPT_BYTES_MAX => {
                // It may have grown to twice what it takes.
                reply.shrink_to_fit();
                *out = reply;
                Answered::Well
            }
            Ok(reply) => {
                out.extend_from_slice(&reply);
                Answered::Well
            }
            Err(failure) => {
                Reply::new(out, slot.protocol).error(failure.text());
                Answered::WithError
            }
        });
    }

    /// Writes what is ready, one call for each client, and closes connections that are done.
    pub(super) fn write_dirty(&mut self) {
        let mut places = std::mem::take(&mut self.dirty);
        for place in places.drain(..) {
            let Some(Some(connection)) = self.connections.get_mut(place) else {
                continue;
            };
            connection.dirty = false;
            self.write_output(place);
            self.account(place);
            if self.connections[place].as_ref().is_some_and(|one| one.is_finished()) {
                self.remove(place);
            }
        }
        if self.dirty.is_empty() {
            self.dirty = places;
        }
    }

    /// Writes the replies of the connection at `place` where they are many: those of the next one
    /// are put together in the same memory, which the processor's cache still holds.
    pub(super) fn write_many(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get(place) else {
            return;
        };
        if connection.output.len() - connection.written >= MANY_BYTES {
            // Before the replies, as at the end of a turn.
            self.core.shared.meters[self.core.worker].record(&mut self.batch);
            self.write_output(place);
        }
    }

    /// Writes what the peer at `place` takes, and lets it go on where it waited for that.
    fn write_output(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        let before = connection.waiting_bytes();
        let written = write(connection, self.core.now());
        self.batch.output_bytes += written as u64;
        if connection.output.is_empty() && connection.output.capacity() > KEPT_BYTES_MAX {
            let output = std::mem::take(&mut connection.output);
            if output.capacity() <= SPARE_OUTPUT_MAX {
                self.spare_output = output;
            }
        }
        if connection.stalled && written > 0 && before > 0 {
            self.make_runnable(place);
        }
    }

    /// Gives the connection at `place` memory for its replies, if it has none.
    pub(super) fn lend_output(&mut self, place: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(place)
            && connection.output.capacity() == 0
        {
            connection.output = std::mem::take(&mut self.spare_output);
        }
    }

    /// Counts what a connection takes. When all together are over the limit, one is closed that has
    /// the server keep more than before: replies go away by themselves.
    pub(super) fn account(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        let memory = &self.core.shared.memory;
        if connection.claim.granted > 0 && !connection.uses_claim() {
            memory.settle(std::mem::take(&mut connection.claim.granted));
        }
        let takes = connection.takes();
        let before = std::mem::replace(&mut connection.taken, takes);
        if takes == before {
            return;
        }
        let turns = memory.change(before, takes);
        connection.client.facts.buffered_bytes.store(takes.bytes, Ordering::Relaxed);
        let kept = |taken: Taken| taken.bytes.saturating_sub(taken.replies);
        let is_claimed = connection.claim.granted > 0;
        if !is_claimed && kept(takes) > kept(before) && memory.is_exceeded() {
            report(&format!(
                "client {} is closed: buffers of clients take more than {} bytes; raise `memory`",
                connection.client.facts.address,
                memory.max()
            ));
            connection.broken = true;
        }
        self.core.shared.hand_out(turns);
    }
}

/// Writes as much of the output as the peer takes; how many bytes.
fn write(connection: &mut Connection, now: Timestamp) -> usize {
    if !connection.was_owing {
        connection.progress_ms = now.0;
    }
    let before = (connection.written, connection.stream.sent_bytes());
    loop {
        while connection.written < connection.output.len() && !connection.broken {
            match connection.stream.write(&connection.output[connection.written..]) {
                Ok(0) => connection.broken = true,
                Ok(length) => connection.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => connection.broken = true,
            }
        }
        let left = connection.written < connection.output.len() && !connection.broken;
        match connection.stream.flush() {
            // The socket has room again, and took all that TLS had: it tells of none.
            Ok(()) if left && connection.stream.holds_back() => {}
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                connection.broken = true;
                break;
            }
            _ => break,
        }
    }
    let written = connection.written - before.0;
    if connection.written == connection.output.len() {
        connection.output.clear();
        connection.written = 0;
    } else if connection.written >= KEPT_BYTES_MAX.max(connection.output.len() / 4) {
        // A peer that never quite catches up would have all that it ever took kept.
        connection.output.drain(..connection.written);
        connection.written = 0;
    }
    // What TLS took and holds back is with no peer yet.
    let sent = match connection.stream.holds_output() {
        true => connection.stream.sent_bytes() > before.1,
        false => written > 0 || connection.output.is_empty(),
    };
    if sent {
        connection.progress_ms = now.0;
    }
    connection.was_owing = connection.owes_bytes();
    written
}

/// What is kept of a command that took long, of whose arguments `arguments` are shown.
pub(super) fn slow_command(
    arguments: Vec<Vec<u8>>,
    client: &crate::client::Client,
    took_ns: u64,
    now: Timestamp,
) -> SlowCommand {
    SlowCommand {
        id: 0,
        at_seconds: now.0 / 1000,
        microseconds: took_ns / 1000,
        arguments,
        address: client.facts.address.clone(),
        name: crate::lock::lock(&client.facts.name).clone(),
    }
}

#[cfg(test)]
mod tests {
    use entresol_wire::resp::Limits;
    use mio::net::UnixStream;

    use super::*;
    use crate::client::{Client, Clients};
    use crate::stream::Stream;

    /// Where the socket was full to the byte with what the peer had not read, the time for the next
    /// reply had begun with the one before.
    #[test]
    fn the_time_to_take_a_reply_begins_with_the_reply() {
        let (ours, _peer) = UnixStream::pair().unwrap();
        let stream = Stream::unix(ours, "test");
        let facts = Clients::default().enter(0, stream.addresses().clone(), 0);
        let client = Rc::new(Client::new(facts, None, SlotToken::new(0, 0, 0)));
        let mut connection = Connection::new(stream, client, 0, Limits::default());
        connection.output = vec![b'x'; 64 << 20];
        assert!(write(&mut connection, Timestamp(1)) < 64 << 20);
        connection.output.clear();
        connection.written = 0;
        write(&mut connection, Timestamp(2));
        connection.output = b"+PONG\r\n".to_vec();
        assert_eq!(write(&mut connection, Timestamp(1000)), 0);
        assert!(!connection.is_stuck(1010, 10) && connection.is_stuck(1011, 10));
        assert_eq!(write(&mut connection, Timestamp(1005)), 0);
        assert!(connection.is_stuck(1011, 10), "it goes on");
    }
}
