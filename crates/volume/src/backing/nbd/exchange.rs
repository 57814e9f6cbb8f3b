//! Requests and replies on one connection.
//!
//! Invariant: the exchange gives back every sent request once with its answer, or hands it over by
//! [`Exchange::into_unanswered`] when the connection is given up.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use bytes::Bytes;
use entresol_wire::nbd::{
    ALLOCATION_CONTEXT, Agreement, Chunk, Command, CommandFlags, ErrorCode, ReadAssembly,
    ReplyHeader, ReplyStyle, Request, STATE_HOLE, STATE_ZERO,
};
use mio::Registry;

use super::connect::Connected;
use super::ledger::Change;
use super::link::SOCKET;
use super::stream::ReadyStream;
use crate::backing::{Extent, ExtentKind};

/// Bytes that wait to be written, from which no request is added.
const OUTPUT_BYTES: usize = 1 << 20;

/// Requests that a server has at a time.
const DEPTH: usize = 64;

/// Bytes of one read from the socket.
const INPUT_BYTES: usize = 256 << 10;

/// A request as it goes over the wire.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) purpose: Purpose,
    pub(super) change: Change,
}

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The task of this number.
    Task(u64),
    /// A change that was answered before, performed again.
    Replay,
    /// A flush that nobody asked for.
    OwnFlush,
}

/// What a server answered.
pub(super) type Answer = Result<Found, (ErrorCode, String)>;

/// What a request found.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Bytes(Bytes),
    Extents(Vec<Extent>),
}

/// One connection.
pub(super) struct Exchange {
    stream: ReadyStream,
    agreement: Agreement,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    sent: BTreeMap<u64, Sent>,
    next_cookie: u64,
    scratch: Box<[u8]>,
    has_answered: bool,
}

struct Sent {
    wire: Wire,
    at: Instant,
    /// Where the ledger stood.
    position: u64,
    assembly: Option<ReadAssembly>,
    extents: Vec<Extent>,
    failure: Option<(ErrorCode, String)>,
}

/// A request and its answer.
pub(super) struct Answered {
    pub(super) wire: Wire,
    /// Where the ledger stood when it was sent.
    pub(super) position: u64,
    pub(super) answer: Answer,
}

impl Exchange {
    pub(super) fn new(connected: Connected, registry: &Arc<Registry>) -> io::Result<Exchange> {
        let Connected { mut stream, agreement, input } = connected;
        stream.register(registry, SOCKET)?;
        Ok(Exchange {
            stream,
            agreement,
            input,
            output: Vec::new(),
            written: 0,
            sent: BTreeMap::new(),
            next_cookie: 1,
            scratch: vec![0; INPUT_BYTES].into_boxed_slice(),
            has_answered: false,
        })
    }

    /// Whether another request may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < DEPTH && self.output.len() - self.written < OUTPUT_BYTES
    }

    /// Whether nothing waits for an answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether something of a kind that was sent waits for an answer.
    pub(super) fn has_sent(&self, is_wanted: fn(&Wire) -> bool) -> bool {
        self.sent.values().any(|sent| is_wanted(&sent.wire))
    }

    /// Whether the server answered anything on this connection.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Whether something that was sent touches a range.
    pub(super) fn is_touching(&self, offset: u64, length: u64) -> bool {
        self.sent.values().any(|sent| sent.wire.change.overlaps(offset, length))
    }

    /// When the request was sent that waits longest.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.sent.values().next().map(|sent| sent.at)
    }

    /// Adds a request to what is written. Lengths fit the agreed style.
    pub(super) fn send(&mut self, wire: Wire, position: u64, now: Instant) {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        let Change { command, flags, offset, length, ref payload } = wire.change;
        let request = Request::new(command, cookie, offset, length).with_flags(flags);
        let encoded = request.encode(self.agreement.style, &mut self.output);
        encoded.expect("parts of requests are short enough for every style");
        self.output.extend_from_slice(payload);
        let assembly = (command == Command::Read).then(|| ReadAssembly::new(offset, length as u32));
        let sent = Sent { wire, at: now, position, assembly, extents: Vec::new(), failure: None };
        self.sent.insert(cookie, sent);
    }

    /// Writes what the socket takes.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        loop {
            let written = match self.output.get(self.written..) {
                Some([]) | None => self.stream.flush().map(|()| 0),
                Some(rest) => self.stream.write(rest),
            };
            match written {
                Ok(0) => break,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.written == self.output.len() {
            self.output.clear();
            self.output.shrink_to(2 * OUTPUT_BYTES);
            self.written = 0;
        }
        Ok(())
    }

    /// Reads what the socket has; appends what was answered.
    ///
    /// Errors: the connection ended or cannot be followed any more.
    pub(super) fn read_in(&mut self, answered: &mut Vec<Answered>) -> Result<(), String> {
        // What came behind the handshake may hold a whole reply.
        self.take_replies(answered)?;
        loop {
            match self.stream.read(&mut self.scratch) {
                Ok(0) => return Err("the server hung up".to_owned()),
                Ok(count) => {
                    let bytes = self.scratch.get(..count).unwrap_or_default();
                    self.input.extend_from_slice(bytes);
                    self.take_replies(answered)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Gives the connection up; what was not answered, in the order in which it was sent.
    pub(super) fn into_unanswered(mut self) -> Vec<Wire> {
        // The loop forgets a closed socket by itself too.
        let _either_way = self.stream.deregister();
        self.sent.into_values().map(|sent| sent.wire).collect()
    }

    /// Says goodbye, as far as the server listens.
    pub(super) fn leave(mut self) {
        let request = Request::new(Command::Disconnect, self.next_cookie, 0, 0);
        if request.encode(self.agreement.style, &mut self.output).is_ok() {
            let _either_way = self.write_out();
        }
    }

    fn take_replies(&mut self, answered: &mut Vec<Answered>) -> Result<(), String> {
        let mut at = 0;
        let input = std::mem::take(&mut self.input);
        let payload_max = self.agreement.sizes.payload_max.max(1 << 20);
        let result = loop {
            let rest = input.get(at..).unwrap_or_default();
            let (header, size) = match ReplyHeader::decode(rest, self.agreement.style, payload_max)
            {
                Ok(Some(head)) => head,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
            };
            let length = match self.payload_bytes(&header) {
                Ok(length) => length,
                Err(detail) => break Err(detail),
            };
            let Some(payload) = rest.get(size..size + length) else { break Ok(()) };
            if let Err(detail) = self.take_reply(&header, payload, answered) {
                break Err(detail);
            }
            at += size + length;
        };
        self.input = input;
        self.input.drain(..at);
        self.has_answered |= !answered.is_empty();
        result
    }

    fn payload_bytes(&self, header: &ReplyHeader) -> Result<usize, String> {
        let cookie = header.cookie();
        let Some(sent) = self.sent.get(&cookie) else {
            return Err(format!("it answers request {cookie}, which was not sent or is answered"));
        };
        let is_read = sent.wire.change.command == Command::Read;
        match *header {
            ReplyHeader::Simple { .. } if is_read && self.agreement.style != ReplyStyle::Simple => {
                Err("it answers a read by a simple reply, where chunks were agreed on".to_owned())
            }
            ReplyHeader::Simple { error: None, .. } if is_read => {
                Ok(sent.wire.change.length as usize)
            }
            ReplyHeader::Simple { .. } => Ok(0),
            ReplyHeader::Chunk { length, .. } => Ok(length as usize),
        }
    }

    fn take_reply(
        &mut self,
        header: &ReplyHeader,
        payload: &[u8],
        answered: &mut Vec<Answered>,
    ) -> Result<(), String> {
        let cookie = header.cookie();
        let context = self.agreement.contexts.iter().find(|(_, name)| name == ALLOCATION_CONTEXT);
        let context = context.map(|(number, _)| *number);
        let sent = self.sent.get_mut(&cookie).expect("its payload was measured by it");
        let is_last = match *header {
            ReplyHeader::Simple { error, .. } => {
                sent.failure = error.map(|code| (code, String::new()));
                if let Some(assembly) = &mut sent.assembly
                    && error.is_none()
                {
                    let offset = sent.wire.change.offset;
                    let chunk = Chunk::Data { offset, bytes: payload };
                    assembly.put(chunk).map_err(|error| error.to_string())?;
                }
                true
            }
            ReplyHeader::Chunk { kind, is_last, .. } => {
                let chunk = Chunk::decode(kind, payload).map_err(|error| error.to_string())?;
                sent.take_chunk(chunk, context)?;
                is_last
            }
        };
        if is_last {
            let sent = self.sent.remove(&cookie).expect("it was there just now");
            let position = sent.position;
            let (wire, answer) = sent.finish()?;
            answered.push(Answered { wire, position, answer });
        }
        Ok(())
    }
}

impl Sent {
    fn take_chunk(&mut self, chunk: Chunk<'_>, context: Option<u32>) -> Result<(), String> {
        match (chunk, &mut self.assembly) {
            (chunk, Some(assembly)) => assembly.put(chunk).map_err(|error| error.to_string()),
            (Chunk::None, None) => Ok(()),
            (Chunk::Error { code, message, .. }, None) => {
                self.failure.get_or_insert_with(|| (code, message.to_owned()));
                Ok(())
            }
            (Chunk::Status { context: number, extents }, None)
                if self.wire.change.command == Command::BlockStatus =>
            {
                if context == Some(number) {
                    self.extents.extend(extents.map(|extent| Extent {
                        length: extent.length,
                        kind: kind_of(extent.flags),
                    }));
                }
                Ok(())
            }
            (chunk, None) => Err(format!(
                "it answers a {} by {}",
                self.wire.change.command.name(),
                if matches!(chunk, Chunk::Status { .. }) { "a block status" } else { "data" }
            )),
        }
    }

    fn finish(self) -> Result<(Wire, Answer), String> {
        let answer = match (self.failure, self.assembly) {
            (Some(failure), _) => Err(failure),
            (None, Some(assembly)) => {
                let bytes = assembly.finish().map_err(|error| error.to_string())?;
                bytes.map(|bytes| Found::Bytes(Bytes::from(bytes)))
            }
            (None, None) if self.wire.change.command == Command::BlockStatus => {
                if self.extents.is_empty() {
                    return Err("it answers a block status by nothing".to_owned());
                }
                Ok(Found::Extents(self.extents))
            }
            (None, None) => Ok(Found::Nothing),
        };
        Ok((self.wire, answer))
    }
}

fn kind_of(flags: u64) -> ExtentKind {
    match (flags & u64::from(STATE_HOLE) != 0, flags & u64::from(STATE_ZERO) != 0) {
        (true, true) => ExtentKind::Hole,
        (false, true) => ExtentKind::Zero,
        // A hole that may read as anything is as good as data.
        (_, false) => ExtentKind::Data,
    }
}

impl Wire {
    /// A request without a payload.
    pub(super) fn new(purpose: Purpose, command: Command, offset: u64, length: u64) -> Wire {
        let flags = CommandFlags::NONE;
        let change = Change { command, flags, offset, length, payload: Bytes::new() };
        Wire { purpose, change }
    }
}

/// Where the answer of a task goes.
#[derive(Debug)]
pub(super) enum Return {
    /// To the owner of the backing, under this token.
    Token(u64),
    /// The same, of extents.
    Told(u64),
    /// To somebody who waits for extents.
    Extents(Sender<crate::error::Result<Vec<Extent>>>),
}
