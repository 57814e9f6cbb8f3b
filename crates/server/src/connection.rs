//! One client's connection: bytes not yet understood, commands in flight, replies not yet written.
//!
//! ```text
//! socket --read--> input --decode--> slots (in order of arrival) --settle, pop--> output
//! --write--> socket
//! ```
//!
//! Invariants:
//! 1. Replies leave in the order of their commands: a slot's reply is appended to the output once
//!    all slots before it are gone. The slot at the front writes to the output itself.
//! 2. Commands in flight at the same time do not depend on each other: see [`Reach`].
//! 3. While a slot reaches everything, it is the last one.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use entresol_net::Stream;
use entresol_tier::{SpaceId, Timestamp};
use entresol_wire::resp::{Decoder, Limits, OwnedArguments, Protocol};

use crate::client::Client;
use crate::client_memory::Taken;
use crate::command::plan::{ReadAnswer, WriteAnswer};
use crate::command::request::Request;
use crate::slot_token::SEQUENCE_MASK;
use crate::slow::Beginning;

/// Buffers up to this size are kept for reuse, bytes.
pub(crate) const KEPT_BYTES_MAX: usize = 16 << 10;

/// One client's connection.
pub(crate) struct Connection {
    /// Its byte stream.
    pub(crate) stream: Stream,
    /// Who the client is.
    pub(crate) client: Rc<Client>,
    /// Where the client stands within a command.
    pub(crate) decoder: Decoder,
    /// Whether the decoder holds the client to the limits of one who has authenticated.
    pub(crate) was_known: bool,
    /// Bytes read and not yet begun.
    pub(crate) input: Vec<u8>,
    /// Replies that are ready.
    pub(crate) output: Vec<u8>,
    /// Bytes of the output that were written.
    pub(crate) written: usize,
    /// Bytes of replies that are ready and wait for earlier ones.
    pub(crate) held_bytes: usize,
    /// Bytes of the arguments of commands in flight.
    pub(crate) argument_bytes: usize,
    /// Bytes of the entries that commands in flight read, which their replies will have.
    pub(crate) reading_bytes: usize,
    /// Commands begun whose replies are not in the output.
    pub(crate) slots: VecDeque<Slot>,
    /// Those of them that are not answered.
    pub(crate) pending: usize,
    /// Bytes that one of their replies may take, by those of late; 0: none was seen.
    pub(crate) reply_bytes: usize,
    /// Distinguishes the connection from earlier ones in its place.
    pub(crate) generation: u32,
    /// The number of the next slot.
    pub(crate) next_sequence: u32,
    /// Whether the socket may have bytes.
    pub(crate) readable: bool,
    /// Whether the peer is known to send no more than what the socket has.
    pub(crate) last_read: bool,
    /// Whether the peer sends no more.
    pub(crate) ended: bool,
    /// Whether the connection cannot go on.
    pub(crate) broken: bool,
    /// Whether the next command waits for something other than bytes.
    pub(crate) stalled: bool,
    /// Whether the next command has asked to be alone.
    pub(crate) asked: bool,
    /// Whether it is on the worker's list of those to go on with.
    pub(crate) runnable: bool,
    /// Whether it is on the worker's list of those with output.
    pub(crate) dirty: bool,
    /// When the peer last took bytes, or had none to take.
    pub(crate) progress_ms: u64,
    /// Whether bytes were left for the peer when some were last written.
    pub(crate) was_owing: bool,
    /// What was counted of it.
    pub(crate) taken: Taken,
    /// Memory that its next command needs.
    pub(crate) claim: OwnClaim,
    /// Bytes that the request takes which is being received, as far as it says.
    pub(crate) needed: usize,
    /// Whether monitors were told of the next command, which waits for memory.
    pub(crate) told: bool,
}

/// What a connection claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OwnClaim {
    /// Bytes that were granted.
    pub(crate) granted: usize,
    /// Bytes that it waits for.
    pub(crate) asked: usize,
    /// Bytes that it took when it was granted the first of them.
    base: usize,
}

impl OwnClaim {
    /// Whether it waits for its turn.
    pub(crate) fn is_waiting(&self) -> bool {
        self.asked > 0
    }
}

/// A command in flight.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Whether the reply is ready.
    pub(crate) is_ready: bool,
    /// What the command depends on.
    pub(crate) reach: Reach,
    /// What is to be done with the engine's answer.
    pub(crate) action: Action,
    /// Which command it is.
    pub(crate) command: usize,
    /// When it was read, nanoseconds since the worker began.
    pub(crate) started_ns: u64,
    /// Its arguments, where the answer needs them.
    pub(crate) arguments: OwnedArguments,
    /// How it began, where they are not kept.
    pub(crate) beginning: Beginning,
    /// Bytes of all copies of its arguments.
    pub(crate) argument_bytes: usize,
    /// Bytes of the entry that is read for it.
    pub(crate) reading_bytes: usize,
    /// Bytes of an entry that was not read, for it needs a claim first.
    pub(crate) held_back: usize,
    /// The reply, where earlier ones are not ready.
    pub(crate) reply: Vec<u8>,
    /// The version that replies are written in.
    pub(crate) protocol: Protocol,
    /// The table it works on.
    pub(crate) space: SpaceId,
    /// Whether the client does not want the reply.
    pub(crate) is_silent: bool,
}

/// What a command in flight depends on, and what depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reach {
    /// Nothing.
    #[default]
    Nothing,
    /// It reads the entry with this hash.
    Reads(u64),
    /// It writes the entry with this hash.
    Writes(u64),
    /// Everything.
    Everything,
}

impl Reach {
    /// Whether the later of the two commands must wait for the earlier one.
    pub(crate) fn meets(self, earlier: Reach) -> bool {
        match (self, earlier) {
            (Reach::Nothing, other) => other == Reach::Everything,
            (Reach::Everything, other) | (other, Reach::Everything) => other != Reach::Nothing,
            (Reach::Reads(a), Reach::Writes(b))
            | (Reach::Writes(a), Reach::Reads(b) | Reach::Writes(b)) => a == b,
            (_, Reach::Nothing) | (Reach::Reads(_), Reach::Reads(_)) => false,
        }
    }
}

/// What is to be done with the engine's answer to a slot's operation.
#[derive(Clone, Copy, Default)]
pub(crate) enum Action {
    /// Answer from an entry.
    Read(ReadAnswer),
    /// Answer with whether it was done.
    Write(WriteAnswer),
    /// A task answers.
    #[default]
    Task,
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Action::Read(_) => "Read",
            Action::Write(_) => "Write",
            Action::Task => "Task",
        })
    }
}

impl Slot {
    /// Forgets everything but memory worth keeping.
    pub(crate) fn clear(&mut self) {
        self.is_ready = false;
        self.arguments.clear();
        self.beginning.clear();
        self.argument_bytes = 0;
        self.reading_bytes = 0;
        self.held_back = 0;
        self.reply.clear();
        self.reply.shrink_to(KEPT_BYTES_MAX);
    }

    /// The command as a request at `now`, whose reply takes at most `reply_bytes_max`.
    pub(crate) fn request(&self, now: Timestamp, reply_bytes_max: usize) -> Request<'_> {
        Request {
            arguments: self.arguments.view(),
            space: self.space,
            now,
            protocol: self.protocol,
            reply_bytes_max,
        }
    }
}

impl Connection {
    /// A connection that was just made.
    pub(crate) fn new(
        stream: Stream,
        client: Rc<Client>,
        generation: u32,
        limits: Limits,
    ) -> Connection {
        let progress_ms = client.facts.connected_ms;
        let was_known = client.user.borrow().is_some();
        Connection {
            stream,
            client,
            decoder: Decoder::new(limits),
            was_known,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            held_bytes: 0,
            argument_bytes: 0,
            reading_bytes: 0,
            slots: VecDeque::new(),
            pending: 0,
            generation,
            next_sequence: 0,
            readable: true,
            last_read: false,
            ended: false,
            broken: false,
            stalled: false,
            reply_bytes: 0,
            asked: false,
            runnable: false,
            dirty: false,
            progress_ms,
            was_owing: false,
            taken: Taken::default(),
            claim: OwnClaim::default(),
            needed: 0,
            told: false,
        }
    }

    /// Bytes of replies that the peer has not taken.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.output.len() - self.written + self.held_bytes
    }

    /// Whether replies that wait, and those that commands in flight are about to bring, take more
    /// than `limit`.
    pub(crate) fn replies_exceed(&self, limit: usize) -> bool {
        if self.reply_bytes == 0 && self.pending >= UNKNOWN_MAX {
            return true;
        }
        let expected = self.pending.saturating_mul(self.reply_bytes).max(self.reading_bytes);
        self.waiting_bytes().saturating_add(expected) > limit
    }

    /// Takes note of how long a reply was: what is expected of the next ones goes down slowly.
    pub(crate) fn note_reply(&mut self, bytes: usize) {
        let less = self.reply_bytes - self.reply_bytes / 8;
        self.reply_bytes = bytes.max(less).max(1);
    }

    /// Bytes of memory that it takes beyond itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.input.capacity()
            + self.output.capacity()
            + self.held_bytes
            + self.argument_bytes
            + self.slots.capacity() * size_of::<Slot>()
            + self.decoder.held_bytes()
            + self.client.kept_bytes()
            + self.stream.held_bytes()
    }

    /// What is to be counted of it: nothing where its buffers are small.
    pub(crate) fn takes(&self) -> Taken {
        let claimed = if self.claim.granted > 0 { self.claim.base + self.claim.granted } else { 0 };
        let bytes = self.memory_bytes().max(claimed);
        match bytes <= KEPT_BYTES_MAX {
            true => Taken::default(),
            false => Taken { bytes, replies: self.output.capacity() + self.held_bytes },
        }
    }

    /// Takes note of memory that was granted, and counted as taken.
    pub(crate) fn take_granted(&mut self, bytes: usize) {
        if self.claim.granted == 0 {
            // Of a request that is being received the claim covers what is there.
            let covered = if self.needed > 0 { self.input.capacity() } else { 0 };
            self.claim.base = self.memory_bytes() - covered;
        }
        self.claim.granted += bytes;
        self.taken.bytes += bytes;
    }

    /// Whether what it claimed is in use, or about to be.
    pub(crate) fn uses_claim(&self) -> bool {
        self.pending > 0 || self.stalled || self.needed > 0 || self.claim.is_waiting()
    }

    /// Whether the client was silent for `idle_ms`, and nothing for it was under way: no command,
    /// no reply that it still took, no wait that the server has it do. One that watches every
    /// command is to be silent.
    pub(crate) fn is_idle(&self, now_ms: u64, idle_ms: u64) -> bool {
        let is_held = self.stalled && !self.owes_bytes();
        if idle_ms == 0 || self.pending > 0 || is_held || self.client.is_monitor.get() {
            return false;
        }
        now_ms > self.latest_ms().saturating_add(idle_ms)
    }

    /// Whether the peer has taken no byte of what is due to it for `stall_ms`, and sent none.
    pub(crate) fn is_stuck(&self, now_ms: u64, stall_ms: u64) -> bool {
        self.owes_bytes() && stall_ms > 0 && now_ms > self.latest_ms().saturating_add(stall_ms)
    }

    /// Whether the peer has sent no byte for `stall_ms` of a request that memory was claimed for.
    pub(crate) fn is_hoarding(&self, now_ms: u64, stall_ms: u64) -> bool {
        let waits_for_peer = self.needed > 0 && self.claim.granted > 0 && !self.claim.is_waiting();
        waits_for_peer && stall_ms > 0 && now_ms > self.latest_ms().saturating_add(stall_ms)
    }

    /// When the peer last took or sent a byte, or had its time begin anew.
    fn latest_ms(&self) -> u64 {
        self.client.facts.active_ms.load(Ordering::Relaxed).max(self.progress_ms)
    }

    /// Begins the peer's time anew: nobody looked for a while.
    pub(crate) fn forgive(&mut self, now_ms: u64) {
        self.progress_ms = now_ms;
        self.client.facts.active_ms.fetch_min(now_ms, Ordering::Relaxed);
    }

    /// Whether it and the peer wait for each other: the peer takes no replies, maybe since it has
    /// commands to send first, and these are not read while it takes none.
    pub(crate) fn is_at_odds(&self, now_ms: u64) -> bool {
        let waits = self.readable && self.owes_bytes() && !self.claim.is_waiting();
        waits && self.stalled && now_ms > self.progress_ms.saturating_add(AT_ODDS_MS)
    }

    /// Whether the peer has yet to take something that it could.
    pub(crate) fn owes_bytes(&self) -> bool {
        self.written < self.output.len() || self.stream.holds_output()
    }

    /// Whether a command of this reach must wait for one in flight.
    pub(crate) fn must_wait(&self, reach: Reach) -> bool {
        self.pending > 0 && self.slots.iter().any(|slot| !slot.is_ready && reach.meets(slot.reach))
    }

    /// Whether a command in flight reaches everything.
    pub(crate) fn is_blocked(&self) -> bool {
        let reaches_all = |slot: &Slot| !slot.is_ready && slot.reach == Reach::Everything;
        self.slots.back().is_some_and(reaches_all)
    }

    /// The place among the slots of number `sequence`.
    pub(crate) fn place_of(&self, sequence: u32) -> Option<usize> {
        let back = self.next_sequence.wrapping_sub(sequence) & SEQUENCE_MASK;
        self.slots.len().checked_sub(back as usize)
    }

    /// Moves the replies that are ready from the front of the slots to the output. Returns the
    /// slots for reuse through `spare`.
    pub(crate) fn pop_ready(&mut self, spare: &mut Vec<Slot>) {
        while self.slots.front().is_some_and(|slot| slot.is_ready) {
            let Some(mut slot) = self.slots.pop_front() else {
                return;
            };
            self.held_bytes -= slot.reply.len();
            self.argument_bytes -= slot.argument_bytes;
            self.output.extend_from_slice(&slot.reply);
            if spare.len() < SPARE_SLOTS_MAX {
                slot.clear();
                spare.push(slot);
            }
        }
        if self.slots.is_empty() && self.slots.capacity() > KEPT_SLOTS_MAX {
            self.slots.shrink_to(KEPT_SLOTS_MAX);
        }
    }

    /// Whether nothing is left to do but to close it.
    pub(crate) fn is_finished(&self) -> bool {
        let no_more = self.client.closing.get() || (self.ended && !self.stalled);
        self.broken || (no_more && self.slots.is_empty() && !self.owes_bytes())
    }
}

/// How long a peer takes no replies before more of its commands are taken into memory.
const AT_ODDS_MS: u64 = 500;
/// Commands in flight before it is known how long their replies are.
const UNKNOWN_MAX: usize = 16;
/// Slots that an idle connection has memory for, at most.
const KEPT_SLOTS_MAX: usize = 64;
/// Most slots kept for reuse.
const SPARE_SLOTS_MAX: usize = 1024;
#[cfg(test)]
mod tests {
    use mio::net::UnixStream;

    use super::*;
    use crate::client::Clients;
    use crate::slot_token::SlotToken;

    /// A connection made at 0 ms, and its peer.
    fn connected() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let stream = Stream::unix(ours, "test");
        let facts = Clients::default().enter(0, stream.addresses().clone(), 0);
        let client = Rc::new(Client::new(facts, None, SlotToken::new(0, 0, 0)));
        (Connection::new(stream, client, 0, Limits::default()), theirs)
    }

    /// A client was closed in the middle of a large reply that it was taking, right after a command
    /// that took longer than the time, and during a pause. The longest times overflowed, and
    /// everybody was closed.
    #[test]
    fn a_client_is_idle_once_it_sent_and_took_nothing_for_long_and_nothing_is_under_way() {
        let (mut connection, _peer) = connected();
        assert!(!connection.is_idle(10, 10) && connection.is_idle(11, 10));
        assert!(!connection.is_idle(u64::MAX, 0) && !connection.is_idle(1 << 41, u64::MAX));
        connection.client.facts.active_ms.store(5, Ordering::Relaxed);
        assert!(!connection.is_idle(15, 10) && connection.is_idle(16, 10));
        connection.progress_ms = 8;
        assert!(!connection.is_idle(18, 10) && connection.is_idle(19, 10));
        connection.pending = 1;
        assert!(!connection.is_idle(1000, 10), "a command is in flight");
        connection.pending = 0;
        connection.stalled = true;
        assert!(!connection.is_idle(1000, 10), "its next command has to wait");
        connection.output.push(b'+');
        assert!(connection.is_idle(1000, 10), "it does so because of the client");
        connection.client.is_monitor.set(true);
        assert!(!connection.is_idle(1000, 10), "who watches says nothing");
    }

    /// With a reply behind one that took longer than the time, clients were closed.
    #[test]
    fn a_client_that_could_take_nothing_is_not_closed_for_taking_nothing() {
        let (mut connection, _peer) = connected();
        let reply = b"+PONG\r\n".to_vec();
        connection.held_bytes = reply.len();
        connection.slots.push_back(Slot::default());
        connection.slots.push_back(Slot { is_ready: true, reply, ..Slot::default() });
        assert!(!connection.is_stuck(100, 10));
        connection.slots[0].is_ready = true;
        connection.pop_ready(&mut Vec::new());
        assert!(!connection.is_stuck(10, 10) && connection.is_stuck(11, 10));
        assert!(!connection.is_stuck(u64::MAX, 0) && !connection.is_stuck(1 << 41, u64::MAX));
    }

    /// A client that was still sending was reset, and after a pause of the whole machine were all
    /// that read on.
    #[test]
    fn a_client_that_sends_is_not_stuck_and_after_a_pause_its_time_begins_anew() {
        let (mut connection, _peer) = connected();
        connection.output.push(b'+');
        assert!(connection.is_stuck(11, 10));
        connection.client.facts.active_ms.store(5, Ordering::Relaxed);
        assert!(!connection.is_stuck(15, 10) && connection.is_stuck(16, 10));
        connection.forgive(70_000);
        assert!(!connection.is_stuck(70_010, 10) && connection.is_stuck(70_011, 10));
        assert!(!connection.is_idle(70_010, 10));
        connection.forgive(3);
        assert!(connection.is_stuck(14, 10), "the clock went back");
    }

    #[test]
    fn memory_is_hoarded_by_who_sends_no_more_of_a_request_that_it_was_claimed_for() {
        let (mut connection, _peer) = connected();
        connection.needed = 1 << 20;
        assert!(!connection.is_hoarding(1000, 10), "nothing was claimed");
        connection.take_granted(1 << 20);
        assert!(!connection.is_hoarding(10, 10) && connection.is_hoarding(11, 10));
        connection.claim.asked = 1;
        assert!(!connection.is_hoarding(1000, 10), "it waits for its turn");
    }

    #[test]
    fn only_commands_on_the_same_entry_wait_for_each_other_and_readers_never_do() {
        use Reach::{Everything, Nothing, Reads, Writes};
        for (later, earlier, expected) in [
            (Nothing, Nothing, false),
            (Nothing, Reads(1), false),
            (Nothing, Everything, true),
            (Reads(1), Reads(1), false),
            (Reads(1), Writes(1), true),
            (Reads(1), Writes(2), false),
            (Writes(1), Reads(1), true),
            (Writes(1), Writes(1), true),
            (Writes(1), Nothing, false),
            (Everything, Nothing, false),
            (Everything, Reads(1), true),
            (Writes(1), Everything, true),
        ] {
            assert_eq!(later.meets(earlier), expected, "{later:?} after {earlier:?}");
        }
    }
}
