//! One client: its handshake, its requests, what it is owed.
//!
//! ```text
//! Handshake ──STARTTLS──▶ Encrypting ──acknowledgement sent──▶ Handshake
//!     │ GO                                                         │
//!     └──▶ Transmission ──disconnect, end of stream, stop──▶ Closing
//! ```
//!
//! Invariants:
//! 1. A request is begun only if [`Quota`] admits it: what a client can make the server hold is
//!    bounded, in requests and in bytes. So it is while hands are shaken.
//! 2. Every request is answered once, unless the connection breaks first.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use entresol_net::Stream;
use entresol_volume::{Moment, Request as VolumeRequest, Run, VolumeId, Volumes};
use entresol_wire::nbd::{
    Availability, Command, Error, ErrorCode, Export, Offer, ReplyEncoder, ReplyStyle, ReplyTo,
    Request, ServerHandshake, ServerStep, StatusFilter, TlsRule,
};
use rustls::ServerConfig;
use tracing::warn;

use crate::figures::Figures;
use crate::listen::export_of;
use crate::output::Output;
use crate::pending::{Asked, Asker, Pending, Waiting};
use crate::quota::Quota;
use crate::status::{EXTENTS_MAX, Status, told};
use crate::validate::{Action, Refusal, StatusQuestion, Terms, error_code};

/// Requests begun for a client before the others have their turn.
const REQUESTS_AT_ONCE: usize = 64;
/// Bytes looked at for a client before the others have their turn.
const BYTES_AT_ONCE: usize = 2 << 20;
/// Shortest run of zeros that is told of as a hole.
const HOLE_BYTES_MIN: usize = 512;
/// The metadata context of what is cached: bit 0, cached; bit 1, dirty.
pub const RESIDENCY_CONTEXT: &str = "x-entresol:residency";
/// The names of the metadata contexts, in the order of their numbers.
const CONTEXTS: [&str; 2] = [entresol_wire::nbd::ALLOCATION_CONTEXT, RESIDENCY_CONTEXT];

/// One client.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) generation: u32,
    phase: Phase,
    /// How replies are written; outlives the session, whose last replies may come later.
    encoder: ReplyEncoder,
    input: Vec<u8>,
    output: Output,
    quota: Quota,
    /// The socket may have bytes.
    pub(crate) readable: bool,
    /// It is in the queue of those to be gone on with.
    pub(crate) runnable: bool,
    /// It waits for room.
    pub(crate) stalled: bool,
    /// Broken: it ends whatever is owed.
    pub(crate) broken: bool,
}

enum Phase {
    Handshake(ServerHandshake),
    Encrypting(ServerHandshake),
    Transmission(Box<Session>),
    Closing,
}

struct Session {
    terms: Terms,
    incoming: Option<Incoming>,
}

/// A request whose payload is on its way.
struct Incoming {
    request: Request,
    action: Action,
    payload: Vec<u8>,
    left: u64,
}

/// What a connection works with in a turn.
pub(crate) struct Turn<'a> {
    pub(crate) place: usize,
    pub(crate) volumes: &'a mut dyn Volumes,
    pub(crate) pending: &'a mut Pending,
    pub(crate) figures: &'a mut Figures,
    pub(crate) scratch: &'a mut Vec<u8>,
    pub(crate) now: Moment,
    pub(crate) tls: Option<&'a Arc<ServerConfig>>,
    pub(crate) tls_rule: TlsRule,
    pub(crate) availability: Availability,
    pub(crate) held_bytes: &'a mut usize,
}

/// Why consuming stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// More bytes are needed.
    Hungry,
    /// The client has no room, or TLS must begin first.
    Stalled,
    /// It is the others' turn.
    Turn,
}

impl Connection {
    /// A client that has just connected: it is greeted.
    pub(crate) fn new(stream: Stream, generation: u32) -> Connection {
        let mut output = Output::default();
        let mut handshake = None;
        output.append(|out| handshake = Some(ServerHandshake::begin(out)));
        Connection {
            stream,
            generation,
            phase: handshake.map_or(Phase::Closing, Phase::Handshake),
            encoder: ReplyEncoder::new(ReplyStyle::Simple),
            input: Vec::new(),
            output,
            quota: Quota::default(),
            readable: true,
            runnable: false,
            stalled: false,
            broken: false,
        }
    }

    /// Whether it has no more to come and no more to get.
    pub(crate) fn is_over(&self) -> bool {
        self.broken || (self.is_idle() && matches!(self.phase, Phase::Closing))
    }

    /// Whether nothing is in flight or owed.
    pub(crate) fn is_idle(&self) -> bool {
        self.quota.requests() == 0 && self.output.len() == 0
    }

    /// The volume that it uses.
    pub(crate) fn volume(&self) -> Option<VolumeId> {
        let Phase::Transmission(session) = &self.phase else { return None };
        Some(session.terms.volume.id)
    }

    /// Whether it is still in its handshake.
    pub(crate) fn is_in_handshake(&self) -> bool {
        matches!(self.phase, Phase::Handshake(_) | Phase::Encrypting(_))
    }

    /// Takes what the client has sent, up to its share of a turn. Returns whether there is more to
    /// do at once.
    pub(crate) fn advance(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut budget = Budget { requests: REQUESTS_AT_ONCE, bytes: BYTES_AT_ONCE };
        self.stalled = false;
        loop {
            if matches!(self.phase, Phase::Closing) {
                // What still comes is not looked at; the socket goes with the last reply.
                self.readable = false;
                return false;
            }
            let pause = match self.readable && self.input.is_empty() {
                // Straight from where the socket's bytes are put: payloads are copied once.
                true => self.read_and_consume(turn, &mut budget),
                false => {
                    let input = std::mem::take(&mut self.input);
                    let (used, pause) = self.consume(&input, turn, &mut budget);
                    self.input = input;
                    self.input.drain(..used);
                    pause
                }
            };
            if !self.goes_on(pause, turn) {
                return pause == Pause::Turn && !self.broken;
            }
            if !self.readable {
                return false;
            }
            if !self.input.is_empty() {
                self.read_more(turn, &mut budget);
            }
        }
    }

    /// Reads from the socket and looks at what came; what is not whole is kept.
    fn read_and_consume(&mut self, turn: &mut Turn<'_>, budget: &mut Budget) -> Pause {
        let mut scratch = std::mem::take(turn.scratch);
        let length = self.read(&mut scratch, turn, budget);
        let (used, pause) = self.consume(&scratch[..length], turn, budget);
        self.input.extend_from_slice(&scratch[used..length]);
        *turn.scratch = scratch;
        pause
    }

    /// Reads from the socket behind what is kept.
    fn read_more(&mut self, turn: &mut Turn<'_>, budget: &mut Budget) {
        let mut scratch = std::mem::take(turn.scratch);
        let length = self.read(&mut scratch, turn, budget);
        self.input.extend_from_slice(&scratch[..length]);
        *turn.scratch = scratch;
    }

    /// Reads from the socket; how many bytes came.
    fn read(&mut self, scratch: &mut [u8], turn: &mut Turn<'_>, budget: &mut Budget) -> usize {
        match self.stream.read(scratch) {
            Ok(0) => {
                // As after a disconnect.
                (self.readable, self.phase) = (false, Phase::Closing);
                0
            }
            Ok(length) => {
                turn.figures.bytes_in += length as u64;
                budget.bytes = budget.bytes.saturating_sub(length);
                length
            }
            Err(error) => {
                let blocks = error.kind() == ErrorKind::WouldBlock;
                self.readable &= !blocks;
                self.broken |= !blocks && error.kind() != ErrorKind::Interrupted;
                0
            }
        }
    }

    /// Whether more may be read, now that consuming has paused.
    fn goes_on(&mut self, pause: Pause, turn: &mut Turn<'_>) -> bool {
        self.count(turn.held_bytes);
        match pause {
            Pause::Hungry => !self.broken,
            Pause::Stalled => {
                self.stalled = !matches!(self.phase, Phase::Encrypting(_));
                false
            }
            Pause::Turn => false,
        }
    }

    /// Answers a request, as its volume has.
    pub(crate) fn answer(
        &mut self,
        waiting: &Waiting,
        result: Result<Bytes, entresol_volume::Error>,
        turn: &mut Turn<'_>,
    ) {
        self.quota.end(waiting.bytes);
        let encoder = self.encoder;
        match result {
            Ok(bytes) => match waiting.asked {
                Asked::Read if bytes.len() >= HOLE_BYTES_MIN && is_zero(&bytes) => {
                    let length = bytes.len() as u32;
                    self.output.append(|out| encoder.hole(waiting.reply, length, out));
                }
                Asked::Read | Asked::ReadUnbroken => {
                    let length = bytes.len() as u32;
                    self.output.append(|out| encoder.data(waiting.reply, length, out));
                    self.output.push(bytes);
                }
                Asked::Status { context, length } => {
                    let runs = told(Run::decode(&bytes), length, EXTENTS_MAX);
                    self.output.append(|out| {
                        encoder.status(waiting.reply, context, &runs, out);
                        out.extend_from_slice(&waiting.behind);
                        encoder.done(waiting.reply, out);
                    });
                }
                _ => self.output.append(|out| encoder.done(waiting.reply, out)),
            },
            Err(error) => {
                let code = error_code(error.kind(), waiting.asked);
                if code == ErrorCode::Io {
                    turn.figures.note_failure(error.to_string());
                }
                self.refuse(waiting.reply, code, &error.to_string(), turn);
            }
        }
        self.count(turn.held_bytes);
    }

    /// Writes what the client is owed, as far as it takes it.
    pub(crate) fn write(&mut self, turn: &mut Turn<'_>) {
        let before = self.output.len();
        if self.output.write_to(&mut self.stream).is_err() {
            self.broken = true;
        }
        turn.figures.bytes_out += (before - self.output.len()) as u64;
        if self.output.len() == 0 && matches!(self.phase, Phase::Encrypting(_)) {
            self.encrypt(turn);
        }
        self.count(turn.held_bytes);
    }

    /// Whether there is room for what it waits for.
    pub(crate) fn may_go_on(&self, held_by_all: usize) -> bool {
        self.quota.may_go_on(self.output.len(), held_by_all)
    }

    /// Takes the connection out of the total, but for requests that are in flight.
    pub(crate) fn leave(&mut self, held_by_all: &mut usize) {
        self.quota.leave(held_by_all);
    }

    /// Brings the total up to date.
    fn count(&mut self, held_by_all: &mut usize) {
        let arriving = match &self.phase {
            Phase::Transmission(session) => session.incoming.as_ref().map(|one| one.payload.len()),
            _ => None,
        };
        self.quota.count(self.output.len() + arriving.unwrap_or(0), held_by_all);
    }

    /// The acknowledgement of STARTTLS is sent: what comes now is TLS.
    fn encrypt(&mut self, turn: &mut Turn<'_>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Closing);
        let (Phase::Encrypting(mut handshake), Some(config)) = (phase, turn.tls) else {
            self.broken = true;
            return;
        };
        let early = std::mem::take(&mut self.input);
        let begun =
            self.stream.start_tls(config, &early).and_then(|()| match self.stream.flush() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
                _ => Ok(()),
            });
        if begun.is_err() {
            self.broken = true;
            return;
        }
        handshake.secured();
        self.phase = Phase::Handshake(handshake);
        self.readable = true;
    }

    /// Looks at `bytes`; returns how many are done with, and why no more.
    fn consume(
        &mut self,
        bytes: &[u8],
        turn: &mut Turn<'_>,
        budget: &mut Budget,
    ) -> (usize, Pause) {
        let mut used = 0;
        loop {
            if budget.requests == 0 || budget.bytes == 0 {
                return (used, Pause::Turn);
            }
            let rest = &bytes[used..];
            let taken = match &mut self.phase {
                Phase::Handshake(_) => self.shake_hands(rest, turn),
                Phase::Encrypting(_) => Err(Pause::Stalled),
                Phase::Closing => return (bytes.len(), Pause::Hungry),
                Phase::Transmission(session) => match session.incoming.take() {
                    Some(incoming) => Ok(self.take_payload(incoming, rest, turn)),
                    None => {
                        budget.requests -= 1;
                        self.take_head(rest, turn)
                    }
                },
            };
            match taken {
                Ok(0) => return (used, Pause::Hungry),
                Ok(taken) => used += taken,
                Err(pause) => return (used, pause),
            }
        }
    }

    /// A step of the handshake; returns how many bytes it took, 0 if more are needed.
    fn shake_hands(&mut self, rest: &[u8], turn: &mut Turn<'_>) -> Result<usize, Pause> {
        let Phase::Handshake(handshake) = &mut self.phase else {
            return Ok(0);
        };
        if !self.quota.may_be_told(self.output.len()) {
            return Err(Pause::Stalled);
        }
        let list = turn.volumes.list();
        let exports: Vec<Export> = list.iter().map(export_of).collect();
        let offer = Offer {
            exports: &exports,
            contexts: &CONTEXTS,
            tls: turn.tls_rule,
            availability: turn.availability,
        };
        let mut step = Ok(ServerStep::End);
        self.output.append(|out| step = handshake.step(rest, offer, out));
        match step {
            Ok(ServerStep::Incomplete { .. }) => Ok(0),
            Ok(ServerStep::Continue { consumed }) => Ok(consumed),
            Ok(ServerStep::StartTls { consumed }) => {
                let phase = std::mem::replace(&mut self.phase, Phase::Closing);
                if let Phase::Handshake(handshake) = phase {
                    self.phase = Phase::Encrypting(handshake);
                }
                Ok(consumed)
            }
            Ok(ServerStep::Ready { consumed, agreement }) => {
                let volume = list.into_iter().find(|volume| volume.name == agreement.name);
                self.encoder = ReplyEncoder::new(agreement.style);
                self.phase = match volume {
                    None => Phase::Closing,
                    Some(volume) => {
                        let terms = Terms { agreement, volume };
                        Phase::Transmission(Box::new(Session { terms, incoming: None }))
                    }
                };
                turn.figures.handshakes += 1;
                Ok(consumed)
            }
            Ok(ServerStep::End) => {
                self.phase = Phase::Closing;
                Ok(rest.len())
            }
            Err(error) => {
                self.give_up(&error, turn);
                Ok(rest.len())
            }
        }
    }

    /// The peer does not speak the protocol.
    fn give_up(&mut self, error: &Error, turn: &mut Turn<'_>) {
        turn.figures.protocol_errors += 1;
        let remote = &self.stream.addresses().remote;
        warn!("client {remote} is dropped: {error}");
        self.phase = Phase::Closing;
        self.readable = false;
    }

    /// The head of a request; returns how many bytes it took, 0 if more are needed.
    fn take_head(&mut self, rest: &[u8], turn: &mut Turn<'_>) -> Result<usize, Pause> {
        let Phase::Transmission(session) = &self.phase else {
            return Ok(0);
        };
        let style = session.terms.agreement.style;
        let request = match Request::decode(rest, style) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(0),
            Err(error) => {
                self.give_up(&error, turn);
                return Ok(rest.len());
            }
        };
        let payload = request.payload_bytes(style);
        let action = match (turn.availability, session.terms.validate(&request)) {
            (Availability::Stopping, action) if action != Action::Disconnect => {
                Action::Refuse(Refusal::stopping())
            }
            (_, action) => action,
        };
        let holds = match &action {
            Action::Ask(_, _, bytes) => *bytes,
            Action::Write(_) => payload as usize,
            _ => 0,
        };
        if !self.quota.admits(holds, self.output.len(), *turn.held_bytes) {
            return Err(Pause::Stalled);
        }
        turn.figures.count(request.command, request.length);
        match payload {
            0 => self.act(&request, action, Vec::new(), turn),
            left if left > u64::from(u32::MAX) => {
                let detail = format!("expected a payload below 4 GiB, found {left}");
                let kind = entresol_wire::nbd::ErrorKind::TooLong;
                self.give_up(&Error::new(kind, "length of a request", detail), turn);
            }
            left => self.await_payload(Incoming { request, action, payload: Vec::new(), left }),
        }
        Ok(Request::head_bytes(style))
    }

    fn await_payload(&mut self, incoming: Incoming) {
        if let Phase::Transmission(session) = &mut self.phase {
            session.incoming = Some(incoming);
        }
    }

    /// A piece of a payload; returns how many bytes it took, 0 if there are none.
    fn take_payload(&mut self, mut incoming: Incoming, rest: &[u8], turn: &mut Turn<'_>) -> usize {
        let taken = incoming.left.min(rest.len() as u64) as usize;
        // A payload that is not wanted is not kept.
        if matches!(incoming.action, Action::Write(_) | Action::FilteredStatus(_)) {
            incoming.payload.reserve(incoming.left as usize);
            incoming.payload.extend_from_slice(&rest[..taken]);
        }
        incoming.left -= taken as u64;
        if incoming.left > 0 {
            self.await_payload(incoming);
            return taken;
        }
        let Incoming { request, action, payload, .. } = incoming;
        self.act(&request, action, payload, turn);
        taken
    }

    /// Does what `action` says of `request`.
    fn act(&mut self, request: &Request, action: Action, payload: Vec<u8>, turn: &mut Turn<'_>) {
        let to = ReplyTo { cookie: request.cookie, offset: request.offset };
        let encoder = self.encoder;
        match action {
            Action::Refuse(Refusal { code, detail }) => self.refuse(to, code, &detail, turn),
            Action::Done => self.output.append(|out| encoder.done(to, out)),
            Action::Disconnect => self.phase = Phase::Closing,
            Action::Ask(asked, kind, bytes) => {
                let waiting = Waiting { bytes, ..self.waiting(to, kind, turn) };
                self.submit(asked, waiting, turn);
            }
            Action::Write(durable) => {
                let bytes = payload.len();
                let waiting =
                    Waiting { bytes, ..self.waiting(to, Asked::Plain(Command::Write), turn) };
                let write = VolumeRequest::Write {
                    offset: request.offset,
                    bytes: Bytes::from(payload),
                    durable,
                };
                self.submit(write, waiting, turn);
            }
            Action::Status(question) => self.tell_status(to, question, None, turn),
            Action::FilteredStatus(extents) => match StatusFilter::decode(&payload) {
                Err(error) => self.refuse(to, ErrorCode::Invalid, &error.to_string(), turn),
                Ok(filter) => {
                    let question = StatusQuestion { length: filter.length, extents };
                    self.tell_status(to, question, Some(&filter.contexts), turn);
                }
            },
        }
    }

    /// A request for a volume, of no bytes so far.
    fn waiting(&self, reply: ReplyTo, asked: Asked, turn: &Turn<'_>) -> Waiting {
        let asker = Asker::Client(turn.place, self.generation);
        Waiting { asker, reply, asked, behind: Vec::new(), bytes: 0, since_ns: turn.now.0 }
    }

    /// Hands `request` to the client's volume.
    fn submit(&mut self, request: VolumeRequest, waiting: Waiting, turn: &mut Turn<'_>) {
        let Phase::Transmission(session) = &self.phase else {
            return;
        };
        let volume = session.terms.volume.id;
        self.quota.begin(waiting.bytes);
        let token = turn.pending.insert(waiting);
        turn.volumes.submit(volume, token, request, turn.now);
        self.count(turn.held_bytes);
    }

    /// Answers a block status, of all contexts or those that `filter` names.
    fn tell_status(
        &mut self,
        to: ReplyTo,
        question: StatusQuestion,
        filter: Option<&[u32]>,
        turn: &mut Turn<'_>,
    ) {
        let Phase::Transmission(session) = &self.phase else {
            return;
        };
        let encoder = self.encoder;
        let Status { known, asks, most } =
            match session.terms.status(to.offset, question, filter, turn.volumes) {
                Ok(status) => status,
                Err((code, message)) => return self.refuse(to, code, &message, turn),
            };
        let mut chunks = Vec::new();
        known.iter().for_each(|(number, runs)| encoder.status(to, *number, runs, &mut chunks));
        let Some(context) = asks else {
            return self.output.append(|out| {
                out.append(&mut chunks);
                encoder.done(to, out);
            });
        };
        let length = question.length;
        let request = VolumeRequest::Allocation { offset: to.offset, length, most };
        let waiting = self.waiting(to, Asked::Status { context, length }, turn);
        self.submit(request, Waiting { bytes: chunks.len(), behind: chunks, ..waiting }, turn);
    }

    fn refuse(&mut self, to: ReplyTo, code: ErrorCode, message: &str, turn: &mut Turn<'_>) {
        turn.figures.errors += 1;
        let encoder = self.encoder;
        self.output.append(|out| encoder.error(to, code, message, out));
    }
}

/// What of a turn is left for a client.
struct Budget {
    requests: usize,
    bytes: usize,
}

fn is_zero(bytes: &[u8]) -> bool {
    // The compiler makes a comparison of vectors of it.
    let (chunks, rest) = bytes.as_chunks::<64>();
    chunks.iter().all(|chunk| *chunk == [0; 64]) && rest.iter().all(|byte| *byte == 0)
}
