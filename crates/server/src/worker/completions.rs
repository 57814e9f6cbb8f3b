//! Outcomes that come later: into their slots, and from there to the output.

use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use entresol_tier::{Error, Outcome, Timestamp};
use entresol_wire::resp::Reply;
use tracing::error;

use super::execute::{Answered, write_read_answer, write_write_answer};
use super::{Completes, Touches, Worker};
use crate::command::arguments::check_reply;
use crate::connection::{Action, Connection, KEPT_BYTES_MAX, Slot};
use crate::engine_session::TASK_TOKEN;
use crate::failure::Failure;
use crate::operations::{OperationId, TaskId};
use crate::slot_token::SlotToken;
use crate::slow;

impl Worker {
    /// Takes what the device has finished.
    pub(super) fn take_outcomes(&mut self, now: Timestamp) {
        let engine = Rc::clone(&self.engine);
        let mut session = engine.session();
        let in_flight = session.in_flight();
        if in_flight == 0 {
            return;
        }
        let blocks = self.completes == Completes::WhenPolled && self.runnable.is_empty();
        let wait_for = usize::from(blocks);
        let polled = session.poll(wait_for, now, &mut |token, outcome| {
            if token & TASK_TOKEN != 0 {
                engine.complete((token & !TASK_TOKEN) as OperationId, outcome);
            } else {
                self.settle_operation(SlotToken(token), outcome);
            }
        });
        if let Err(error) = polled {
            error!("outcomes cannot be taken from the device: {error}");
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
        let (now, bytes_max) = (self.engine.now(), self.engine.shared.output_bytes_max());
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
        if self.engine.shared.slow_ns().is_some_and(|slow_ns| took_ns >= slow_ns) {
            let name = crate::command::table::SPECS[slot.command].name;
            let arguments = match slot.arguments.view() {
                kept if kept.is_empty() => slot.beginning.shown(name),
                kept => slow::shown(name, kept),
            };
            let slow = slow::command(arguments, client, took_ns, self.engine.now());
            self.engine.shared.keep_slow(slow);
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
        while let Some(id) = self.engine.operations.next_ready() {
            self.run_task(id);
        }
    }

    /// Takes the next steps of one task.
    pub(super) fn run_task(&mut self, id: TaskId) {
        let Some(mut task) = self.tasks.get_mut(id).and_then(Option::take) else {
            return;
        };
        self.engine.operations.set_current(id);
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
        let bytes_max = self.engine.shared.output_bytes_max();
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
}
