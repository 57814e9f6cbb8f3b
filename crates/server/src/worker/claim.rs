//! Memory for large commands: claimed before they begin, waited for with their bytes left in the
//! input.

use entresol_tier::{Operation, Outcome};
use entresol_wire::resp::Arguments;

use super::Worker;
use crate::client_memory::{Asked, Claim, LARGE_BYTES, Need, Taken};
use crate::command::request::key_in;
use crate::command::spec::Spec;
use crate::failure::Failure;
use crate::operations::OwnedOutcome;
use crate::slot_token::{SEQUENCE_MASK, SlotToken};

/// Copies of an entry that a command has at a time: as it was put together, and its reply.
pub(super) const COPIES_READ: usize = 2;
/// The same of one that changes it: as it was, as it will be, and as it is written.
pub(super) const COPIES_CHANGED: usize = 3;
/// Copies of large arguments while their command is a task: as they came, as the task and its slot
/// have them.
const COPIES_KEPT: usize = 3;
/// Bytes that a key takes in the reply of `KEYS`, about, and once more while it is made.
const KEY_BYTES: usize = 64;

/// How a claim stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claimed {
    /// There is memory.
    Granted,
    /// Its turn comes.
    Later,
    /// There never is.
    Never(Failure),
}

impl Worker {
    /// Claims what `copies` of `bytes` take for the next command of the connection at `place`.
    pub(super) fn claim(&mut self, place: usize, bytes: usize, copies: usize) -> Claimed {
        let Some(connection) = self.connections[place].as_mut() else {
            return Claimed::Later;
        };
        let memory = &self.engine.shared.memory;
        memory.see_entry(bytes);
        if connection.claim.is_waiting() || !connection.slots.is_empty() {
            return Claimed::Later;
        }
        if bytes > memory.alone_max() {
            return Claimed::Never(too_large(bytes, memory.alone_max()));
        }
        let wanted = bytes.saturating_mul(copies).saturating_add(LARGE_BYTES);
        self.claim_in_all(place, wanted)
    }

    /// Claims so much that it is `wanted` with what was granted before.
    fn claim_in_all(&mut self, place: usize, wanted: usize) -> Claimed {
        let Some(connection) = self.connections[place].as_mut() else {
            return Claimed::Later;
        };
        let granted = connection.claim.granted;
        if wanted <= granted {
            return Claimed::Granted;
        }
        let has_part = granted > 0 || connection.input.len() > LARGE_BYTES;
        let claim = Claim {
            worker: self.engine.worker,
            connection: SlotToken::new(place, connection.generation, 0),
            bytes: wanted - granted,
            need: if has_part { Need::More } else { Need::First },
            held_bytes: granted,
        };
        let (asked, turns) = self.engine.shared.memory.ask(claim);
        self.engine.shared.hand_out(turns);
        match asked {
            Asked::Granted => {
                connection.take_granted(claim.bytes);
                Claimed::Granted
            }
            Asked::Waits => {
                connection.claim.asked = claim.bytes;
                Claimed::Later
            }
        }
    }

    /// Takes the memory that a connection claimed, if it is still there.
    pub(super) fn take_granted(&mut self, token: SlotToken, bytes: usize) {
        let memory = &self.engine.shared.memory;
        if let Some(Some(connection)) = self.connections.get_mut(token.place())
            && connection.generation == token.generation()
        {
            connection.claim.asked = 0;
            connection.take_granted(bytes);
            self.make_runnable(token.place());
            return;
        }
        memory.settle(bytes);
        let taken = Taken { bytes, replies: 0 };
        let turns = memory.change(taken, Taken::default());
        self.engine.shared.hand_out(turns);
    }

    /// Bytes of an entry that the next command of the connection at `place` may read.
    pub(super) fn allowance(&self, place: usize) -> u64 {
        let first = self.connections[place].as_ref().filter(|one| one.slots.is_empty());
        first.map_or(0, |one| one.claim.granted).max(LARGE_BYTES) as u64
    }

    /// Claims what a command needs that is about several entries, or moves one, or asks for all
    /// keys.
    pub(super) fn claim_for_many(
        &mut self,
        place: usize,
        spec: &Spec,
        arguments: Arguments<'_>,
    ) -> Claimed {
        let Some(connection) = self.connections[place].as_ref() else {
            return Claimed::Later;
        };
        let client = &connection.client;
        let mut bytes = self.measure(spec, arguments, client.space.get());
        if spec.name == "exec"
            && let Some(transaction) = client.transaction.borrow().as_ref()
        {
            let commands = transaction.commands.iter();
            let measured =
                commands.map(|(spec, kept)| self.measure(spec, kept.view(), client.space.get()));
            bytes = measured.fold(0, usize::saturating_add);
        }
        // Of what was received under a claim there are copies beside it.
        let received = if connection.claim.granted > 0 { arguments.kept_bytes() } else { 0 };
        let copied = if received > LARGE_BYTES { received * COPIES_KEPT } else { 0 };
        if bytes.max(copied) <= LARGE_BYTES {
            return Claimed::Granted;
        }
        if connection.claim.is_waiting() || !connection.slots.is_empty() {
            return Claimed::Later;
        }
        self.engine.shared.memory.see_entry(bytes);
        let read = bytes.min(self.engine.shared.output_bytes_max()) * COPIES_READ;
        self.claim_in_all(place, read + copied + LARGE_BYTES)
    }

    /// Bytes of all entries that a command reads, by the index alone.
    fn measure(
        &self,
        spec: &Spec,
        arguments: Arguments<'_>,
        space: entresol_tier::SpaceId,
    ) -> usize {
        if spec.name == "keys" {
            return self.engine.shared.tier.count(space) as usize * KEY_BYTES;
        }
        let places = spec.key_places(arguments.len());
        if !self.engine.shared.memory.may_be_large(arguments.len()) || reads_none(spec) {
            return 0;
        }
        let session = self.engine.session();
        let measured = places.map(|at| {
            let key = key_in(space, arguments.at(at)).ok();
            key.and_then(|key| session.measure(key).ok()).unwrap_or_default() as usize
        });
        measured.fold(0, usize::saturating_add)
    }

    /// Whether the connection at `place` may receive more of its request. What is announced is
    /// claimed before it comes.
    pub(super) fn may_receive(&mut self, place: usize) -> bool {
        let Some(connection) = self.connections[place].as_ref() else {
            return false;
        };
        let needed = connection.needed;
        if needed <= LARGE_BYTES || needed + LARGE_BYTES <= connection.claim.granted {
            return true;
        }
        if connection.claim.is_waiting() {
            return false;
        }
        let alone_max = self.engine.shared.memory.alone_max();
        let claimed = match needed > alone_max {
            true => Claimed::Never(too_large(needed, alone_max)),
            false => self.claim_in_all(place, needed + LARGE_BYTES),
        };
        match claimed {
            Claimed::Granted => true,
            Claimed::Later => false,
            Claimed::Never(failure) => {
                self.refuse(place, &failure);
                if let Some(connection) = self.connections[place].as_mut() {
                    connection.client.closing.set(true);
                }
                false
            }
        }
    }

    /// Holds a read back whose entry, compressed, turned out to be larger than what was claimed: it
    /// is asked for again once there is memory.
    pub(super) fn hold_back(&mut self, token: SlotToken, bytes: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token.place()) else {
            self.in_flight -= 1;
            return;
        };
        let is_there = connection.generation == token.generation();
        let slot = connection.place_of(token.sequence()).filter(|_| is_there);
        let Some(slot) = slot.and_then(|place| connection.slots.get_mut(place)) else {
            self.in_flight -= 1;
            return;
        };
        connection.reading_bytes -= std::mem::take(&mut slot.reading_bytes);
        slot.held_back = bytes;
        // Whoever wants to be alone does not wait for it: it has read nothing.
        self.aside += 1;
        self.make_runnable(token.place());
    }

    /// Begins the read at the front of the connection at `place` again, if there is memory for it.
    pub(super) fn resume_held_back(&mut self, place: usize) {
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        let bytes = connection.slots.front().map_or(0, |slot| slot.held_back);
        let first = connection.next_sequence.wrapping_sub(connection.slots.len() as u32);
        let token = SlotToken::new(place, connection.generation, first & SEQUENCE_MASK);
        if connection.claim.is_waiting() {
            return;
        }
        let alone_max = self.engine.shared.memory.alone_max();
        let claimed = match bytes > alone_max {
            true => Claimed::Never(too_large(bytes, alone_max)),
            false => self.claim_in_all(place, bytes * COPIES_READ + LARGE_BYTES),
        };
        if claimed == Claimed::Later || self.must_hold(place) {
            return;
        }
        self.aside -= 1;
        let (engine, now) = (std::rc::Rc::clone(&self.engine), self.engine.now());
        let Some(connection) = self.connections[place].as_mut() else {
            return;
        };
        let granted = connection.claim.granted as u64;
        let Some(slot) = connection.slots.front_mut() else {
            return;
        };
        slot.held_back = 0;
        let key = match (claimed, slot.request(now, 0).key(1)) {
            (Claimed::Never(failure), _) | (_, Err(failure)) => {
                return self.settle_failed(token, &failure);
            }
            (_, Ok(key)) => key,
        };
        let get = (now, Operation::Get { key });
        let mut found = None;
        engine.submit_within(token.0, granted, get, &mut |_, outcome| {
            found = Some(outcome.map(OwnedOutcome::from));
        });
        // Afterwards: the session is in use until then, and whoever is answered may want it.
        match found {
            None => {}
            Some(Ok(OwnedOutcome::Found(entry))) => {
                self.settle_operation(token, Ok(Outcome::Found(entry.view(&[]))));
            }
            Some(Ok(OwnedOutcome::Larger(bytes))) => {
                self.settle_operation(token, Ok(Outcome::Larger { bytes }));
            }
            Some(Ok(_)) => self.settle_operation(token, Ok(Outcome::Missing)),
            Some(Err(error)) => self.settle_operation(token, Err(error)),
        }
    }

    /// Ends the claim of a command that was taken: what is left of it is counted as what it is, and
    /// is not for the next one.
    pub(super) fn end_claim(&mut self, place: usize) {
        if let Some(connection) = self.connections[place].as_mut()
            && connection.claim.granted > 0
        {
            connection.needed = 0;
            self.account(place);
        }
    }
}

/// Whether a command about several entries reads none of them whole.
fn reads_none(spec: &Spec) -> bool {
    matches!(spec.name, "del" | "unlink" | "mset")
}

fn too_large(bytes: usize, most: usize) -> Failure {
    Failure::new(format!(
        "ERR this takes {bytes} bytes, and one client may take {most} of `memory`; raise it, or \
         ask for less"
    ))
}
