//! One request to the backing, as the parts that go over the wire.
//!
//! Invariant: at most [`PARTS_MAX`] parts are under way; the next part begins when one is answered.

use std::time::Instant;

use bytes::Bytes;
use entresol_wire::nbd::{Command, CommandFlags, ExportFlags};

use super::exchange::{Purpose, Return, Wire};
use super::ledger::Change;
use crate::backing::{BackingRequest, Extent};
use crate::error::{Error, Result};
use crate::request::{Durable, Hole};

/// Parts of one task that are under way at a time.
const PARTS_MAX: usize = 4;

/// Bytes of a part that carries nothing: fits a compact request, a multiple of every block size.
const PART_BYTES: u64 = 1 << 30;

/// Bytes of a part that carries zeros.
const ZEROS_BYTES: u64 = 1 << 20;

/// A request, or a question about extents.
pub(super) struct Task {
    pub(super) back: Return,
    pub(super) begun: Instant,
    pub(super) name: &'static str,
    /// Parts under way.
    pub(super) parts: usize,
    /// What was not made a part yet: from, to.
    rest: (u64, u64),
    like: Change,
    part_bytes: u64,
    /// Whether a flush follows, because the server knows no durable writes.
    pub(super) then_flush: bool,
    pub(super) error: Option<Error>,
    pub(super) bytes: Bytes,
    pub(super) extents: Vec<Extent>,
    /// The range that extents are wanted of: bytes before it that were asked for too, and its own.
    wanted: (u64, u64),
}

impl Task {
    /// The task of `request`; `None` if there is nothing to do for a server that can what `flags`
    /// say.
    pub(super) fn new(
        token: u64,
        request: BackingRequest,
        flags: ExportFlags,
        begun: Instant,
    ) -> Option<Task> {
        let name = request.name();
        let (offset, length) = request.range().unwrap_or_default();
        let (command, mut wished, mut payload) =
            (command(&request), CommandFlags::NONE, Bytes::new());
        let mut part_bytes = PART_BYTES;
        let mut then_flush = false;
        let command = match request {
            BackingRequest::Read { .. } => command,
            BackingRequest::Flush if !flags.contains(ExportFlags::FLUSH) => return None,
            BackingRequest::Flush => command,
            BackingRequest::Trim { .. } if !flags.contains(ExportFlags::TRIM) => return None,
            BackingRequest::Trim { .. } => command,
            BackingRequest::Write { bytes, durable, .. } => {
                payload = bytes;
                match durable {
                    Durable::AtFlush => {}
                    Durable::AtOnce if flags.contains(ExportFlags::FUA) => {
                        wished = CommandFlags::FUA;
                    }
                    Durable::AtOnce => then_flush = flags.contains(ExportFlags::FLUSH),
                }
                command
            }
            BackingRequest::Zero { .. } if !flags.contains(ExportFlags::WRITE_ZEROES) => {
                part_bytes = ZEROS_BYTES;
                payload = Bytes::from(vec![0; length.min(ZEROS_BYTES) as usize]);
                Command::Write
            }
            BackingRequest::Zero { hole, .. } => {
                if hole == Hole::Forbidden {
                    wished = CommandFlags::NO_HOLE;
                }
                command
            }
        };
        let like = Change { command, flags: wished, offset, length, payload };
        let mut task = Task::of(Return::Token(token), name, like, begun);
        (task.part_bytes, task.then_flush) = (part_bytes, then_flush);
        Some(task)
    }

    /// The question how a range stands, for a server that is asked for whole units of `unit` bytes.
    pub(super) fn status(
        back: Return,
        (offset, length): (u64, u64),
        unit: u64,
        begun: Instant,
    ) -> Task {
        let before = offset % unit;
        let asked = (before + length.min(PART_BYTES)).next_multiple_of(unit).min(PART_BYTES);
        let (command, flags) = (Command::BlockStatus, CommandFlags::NONE);
        let like = Change {
            command,
            flags,
            offset: offset - before,
            length: asked,
            payload: Bytes::new(),
        };
        Task { wanted: (before, length), ..Task::of(back, "block status", like, begun) }
    }

    fn of(back: Return, name: &'static str, like: Change, begun: Instant) -> Task {
        Task {
            back,
            begun,
            name,
            parts: 0,
            rest: (like.offset, like.offset + like.length),
            like,
            part_bytes: PART_BYTES,
            then_flush: false,
            error: None,
            bytes: Bytes::new(),
            extents: Vec::new(),
            wanted: (0, 0),
        }
    }

    /// What the server told, cut to the range that was wanted.
    pub(super) fn take_extents(&mut self, told: Vec<Extent>) {
        let (before, length) = self.wanted;
        let (start, end) = (before, before.saturating_add(length));
        let mut at = 0_u64;
        self.extents = told
            .into_iter()
            .map(|extent| {
                let from = at;
                at = at.saturating_add(extent.length);
                Extent { length: at.min(end).saturating_sub(from.max(start)), ..extent }
            })
            .filter(|extent| extent.length > 0)
            .collect();
    }

    /// The first parts.
    pub(super) fn first_parts(&mut self, number: u64) -> Vec<Wire> {
        if self.like.command == Command::Flush {
            return vec![self.flush(number)];
        }
        let mut parts = Vec::new();
        while parts.len() < PARTS_MAX
            && let Some(part) = self.next_part(number)
        {
            parts.push(part);
        }
        parts
    }

    /// The next part, unless there is none or one failed.
    pub(super) fn next_part(&mut self, number: u64) -> Option<Wire> {
        let (offset, end) = self.rest;
        if offset == end || self.error.is_some() {
            return None;
        }
        let length = (end - offset).min(self.part_bytes);
        self.rest.0 += length;
        self.parts += 1;
        // What is written comes in one part, and zeros are the same everywhere.
        let payload = match self.like.payload.is_empty() {
            true => Bytes::new(),
            false => self.like.payload.slice(..length as usize),
        };
        let change = Change { offset, length, payload, ..self.like.clone() };
        Some(Wire { purpose: Purpose::Task(number), change })
    }

    /// The flush that makes it durable, or that it is.
    pub(super) fn flush(&mut self, number: u64) -> Wire {
        self.parts += 1;
        Wire::new(Purpose::Task(number), Command::Flush, 0, 0)
    }

    /// How it ended.
    pub(super) fn result(&mut self) -> Result<Bytes> {
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut self.bytes)),
        }
    }
}

fn command(request: &BackingRequest) -> Command {
    match request {
        BackingRequest::Read { .. } => Command::Read,
        BackingRequest::Write { .. } => Command::Write,
        BackingRequest::Flush => Command::Flush,
        BackingRequest::Trim { .. } => Command::Trim,
        BackingRequest::Zero { .. } => Command::WriteZeroes,
    }
}
