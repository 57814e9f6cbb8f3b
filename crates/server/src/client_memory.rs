//! The part of the memory cap for clients: what their buffers take, and who waits for more.
//!
//! Commands on small entries take what they need. One on a large entry claims what its copies will
//! take before it begins, and so does a client that announces a large argument; claims that find no
//! room wait in their order.
//!
//! Invariants:
//! 1. A command that waits has not begun, and is the first of its connection: it keeps nothing that
//!    another waits for. Requests that are being received may wait for more of them
//!    ([`Need::More`]) and go before all others. What nobody waits with goes away as clients take
//!    and send, and `stall-timeout` ends those who do neither.
//! 2. Where all that is claimed belongs to claims that wait, the first of them is granted whatever
//!    it takes, and the cache lends what it can: so every claim has its turn.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use entresol_tier::{SpaceId, Tiered};

use crate::lock::lock;
use crate::slot_token::SlotToken;

/// Entries and arguments up to so many bytes need no claim.
pub(crate) const LARGE_BYTES: usize = 64 << 10;
/// Entries that one command is about need no claim up to so many bytes.
const MANY_BYTES: usize = 1 << 20;

/// The memory of all clients. Thread-safe.
pub(crate) struct ClientMemory {
    /// Bytes of the buffers beyond small ones and of what was claimed.
    used: AtomicUsize,
    /// Those of them that are replies on their way.
    replies: AtomicUsize,
    /// Those that were claimed, and are not counted as what they became.
    granted: AtomicUsize,
    /// Most of them.
    max: usize,
    /// Claims that wait, in their order.
    queue: Mutex<VecDeque<Claim>>,
    /// How many wait: looked at without the lock.
    waiting: AtomicUsize,
    /// Most bytes that an entry may take, by what was seen; `usize::MAX` after a restart.
    largest: AtomicUsize,
    /// Bytes that the cache lends.
    lent: AtomicUsize,
    lender: Arc<Tiered>,
}

/// What a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    pub(crate) bytes: usize,
    /// Those of them that are replies, which go away as the client takes them.
    pub(crate) replies: usize,
}

/// What a connection asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) worker: usize,
    /// With slot number 0.
    pub(crate) connection: SlotToken,
    pub(crate) bytes: usize,
    pub(crate) need: Need,
    /// What the connection was granted before.
    pub(crate) held_bytes: usize,
}

/// What a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// To begin.
    First,
    /// To go on with a request of which a part is there.
    More,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Granted,
    /// It is granted later.
    Waits,
}

impl ClientMemory {
    /// Memory for clients of `max` bytes, to which the cache of `lender` lends. Entries that are
    /// in one of its `spaces` may be of any size.
    pub(crate) fn new(max: usize, lender: Arc<Tiered>, spaces: u16) -> ClientMemory {
        let is_empty = (0..spaces).all(|space| lender.count(SpaceId(space)) == 0);
        ClientMemory {
            used: AtomicUsize::new(0),
            replies: AtomicUsize::new(0),
            granted: AtomicUsize::new(0),
            max,
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            largest: AtomicUsize::new(if is_empty { 0 } else { usize::MAX }),
            lent: AtomicUsize::new(0),
            lender,
        }
    }

    /// Bytes that clients take.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Most bytes that they take together.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Most bytes that one of them may take, all others waiting.
    pub(crate) fn alone_max(&self) -> usize {
        self.room() + self.lender.lendable_bytes() as usize
    }

    /// Whether clients take so much that those with replies waiting must take these first.
    pub(crate) fn is_crowded(&self) -> bool {
        self.used() > self.max / 2
    }

    /// Whether what clients keep without a claim is more than there is. Replies do not count: they
    /// go away by themselves, and a client that grows beside them is not at fault.
    pub(crate) fn is_exceeded(&self) -> bool {
        let claimed = self.granted.load(Ordering::Relaxed);
        let passing = claimed + self.replies.load(Ordering::Relaxed);
        self.used() > self.max + passing + self.lent.load(Ordering::Relaxed)
    }

    /// Whether there are `bytes` that nobody waits for.
    pub(crate) fn has_slack(&self, bytes: usize) -> bool {
        !self.is_awaited() && self.used() + bytes <= self.room()
    }

    /// Whether somebody waits for memory.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes note of an entry of so many bytes.
    #[inline]
    pub(crate) fn see_entry(&self, bytes: usize) {
        if bytes > self.largest.load(Ordering::Relaxed) {
            self.largest.fetch_max(bytes, Ordering::Relaxed);
        }
    }

    /// Whether so many entries may take so much that they need a claim.
    pub(crate) fn may_be_large(&self, entries: usize) -> bool {
        let most = self.largest.load(Ordering::Relaxed).saturating_mul(entries);
        most > MANY_BYTES
    }

    /// Counts that a client takes `after` in place of `before`; whose turn it is by that.
    pub(crate) fn change(&self, before: Taken, after: Taken) -> Vec<Claim> {
        self.used.fetch_add(after.bytes, Ordering::Relaxed);
        self.used.fetch_sub(before.bytes, Ordering::Relaxed);
        self.replies.fetch_add(after.replies, Ordering::Relaxed);
        self.replies.fetch_sub(before.replies, Ordering::Relaxed);
        let is_awaited = self.waiting.load(Ordering::Relaxed) > 0;
        match is_awaited || self.lent.load(Ordering::Relaxed) > 0 {
            true => self.go_on(&mut lock(&self.queue)),
            false => Vec::new(),
        }
    }

    /// Asks for memory, which counts as taken once it is granted; whose turn it is by that, for the
    /// others may have waited for this one.
    pub(crate) fn ask(&self, claim: Claim) -> (Asked, Vec<Claim>) {
        let mut queue = lock(&self.queue);
        let place = match claim.need {
            Need::First => queue.len(),
            Need::More => queue.iter().take_while(|other| other.need == Need::More).count(),
        };
        queue.insert(place, claim);
        let mut turns = self.go_on(&mut queue);
        match turns.iter().position(|turn| *turn == claim) {
            Some(own) => {
                turns.remove(own);
                (Asked::Granted, turns)
            }
            None => (Asked::Waits, turns),
        }
    }

    /// A claim of `bytes` that was granted is over: what is left of it the client counts as taken.
    pub(crate) fn settle(&self, bytes: usize) {
        self.granted.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes back what a connection that is gone asked for; whose turn it is by that.
    pub(crate) fn leave(&self, worker: usize, connection: SlotToken) -> Vec<Claim> {
        let mut queue = lock(&self.queue);
        queue.retain(|claim| claim.worker != worker || claim.connection != connection);
        self.go_on(&mut queue)
    }

    /// Grants what now has room.
    fn go_on(&self, queue: &mut VecDeque<Claim>) -> Vec<Claim> {
        let mut granted = Vec::new();
        while self.has_room(queue)
            && let Some(first) = queue.pop_front()
        {
            self.grant(first.bytes);
            granted.push(first);
        }
        self.waiting.store(queue.len(), Ordering::Relaxed);
        self.borrow();
        granted
    }

    /// Claims leave a part to commands that need none.
    fn room(&self) -> usize {
        self.max - self.max / 8
    }

    /// Whether the first claim fits, or nothing is about to go away that it could wait for.
    fn has_room(&self, queue: &VecDeque<Claim>) -> bool {
        let Some(first) = queue.front() else {
            return false;
        };
        if self.used() + first.bytes <= self.room() {
            return true;
        }
        let waiting: usize = queue.iter().map(|claim| claim.held_bytes).sum();
        let is_stuck = self.granted.load(Ordering::Relaxed) <= waiting;
        is_stuck && self.replies.load(Ordering::Relaxed) <= self.max / 8
    }

    fn grant(&self, bytes: usize) {
        self.granted.fetch_add(bytes, Ordering::Relaxed);
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.borrow();
    }

    /// Borrows from the cache what claims and replies take beyond the part of clients, and gives it
    /// back after.
    fn borrow(&self) {
        let passing = self.granted.load(Ordering::Relaxed) + self.replies.load(Ordering::Relaxed);
        let wanted = self.used().saturating_sub(self.room()).min(passing) as u64;
        let wanted = wanted.min(self.lender.lendable_bytes()) as usize;
        if self.lent.swap(wanted, Ordering::Relaxed) != wanted {
            self.lender.lend(wanted as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use entresol_device::MemoryDevice;
    use entresol_tier::{Admission, Durability, StoreOptions, TieredOptions, Timestamp};

    use super::*;

    const MAX: usize = 8 << 20;

    fn memory() -> ClientMemory {
        let store = StoreOptions { durability: Durability::Memory, ..StoreOptions::default() };
        let admission = Admission::Always;
        let options = TieredOptions { store, memory_bytes: 64 << 20, cache_bytes: None, admission };
        let device = Arc::new(MemoryDevice::new(64 << 20).unwrap());
        ClientMemory::new(MAX, Tiered::open(device, options, Timestamp(1)).unwrap(), 16)
    }

    fn claim(connection: usize, mib: usize, held_mib: usize) -> Claim {
        let need = if held_mib > 0 { Need::More } else { Need::First };
        let connection = SlotToken::new(connection, 0, 0);
        Claim { worker: 0, connection, bytes: mib << 20, need, held_bytes: held_mib << 20 }
    }

    /// What is left of a claim that was granted, as a reply.
    fn reply(mib: usize) -> Taken {
        Taken { bytes: mib << 20, replies: mib << 20 }
    }

    #[test]
    fn claims_have_their_turn_in_order_as_replies_leave() {
        let memory = memory();
        let all = [claim(1, 5, 0), claim(2, 5, 0), claim(3, 1, 0), claim(4, 20, 0)];
        let asked = all.map(|claim| memory.ask(claim).0);
        assert_eq!(asked, [Asked::Granted, Asked::Waits, Asked::Waits, Asked::Waits]);
        // The third would fit, and waits behind the second.
        memory.settle(5 << 20);
        assert_eq!(memory.change(Taken { bytes: 5 << 20, replies: 0 }, reply(5)), []);
        assert_eq!(memory.change(reply(5), Taken::default()), all[1..3]);
        assert!(!memory.is_exceeded() && memory.used() == 6 << 20);
        assert_eq!(memory.leave(0, all[3].connection), []);
        assert!(!memory.is_awaited());
    }

    #[test]
    fn a_claim_beyond_the_part_has_its_turn_alone_and_the_cache_lends() {
        let memory = memory();
        let before = memory.lender.cache_capacity();
        assert_eq!(memory.ask(claim(1, 20, 0)), (Asked::Granted, vec![]));
        assert!(memory.lender.cache_capacity() < before && !memory.is_exceeded());
        assert_eq!(memory.ask(claim(2, 20, 0)), (Asked::Waits, vec![]));
        memory.settle(20 << 20);
        let turns = memory.change(Taken { bytes: 20 << 20, replies: 0 }, Taken::default());
        assert_eq!(turns, [claim(2, 20, 0)]);
        memory.settle(20 << 20);
        assert_eq!(memory.change(Taken { bytes: 20 << 20, replies: 0 }, Taken::default()), []);
        assert_eq!(memory.lender.cache_capacity(), before);
    }

    #[test]
    fn of_requests_that_wait_for_each_other_the_first_goes_on() {
        let memory = memory();
        assert_eq!(memory.ask(claim(1, 3, 0)), (Asked::Granted, vec![]));
        assert_eq!(memory.ask(claim(2, 3, 0)), (Asked::Granted, vec![]));
        assert_eq!(memory.ask(claim(3, 3, 0)), (Asked::Waits, vec![]));
        // The second may still end.
        assert_eq!(memory.ask(claim(1, 3, 3)), (Asked::Waits, vec![]));
        assert_eq!(memory.ask(claim(2, 3, 3)), (Asked::Waits, vec![claim(1, 3, 3)]));
        memory.settle(6 << 20);
        let turns = memory.change(Taken { bytes: 6 << 20, replies: 0 }, Taken::default());
        assert_eq!(turns, [claim(2, 3, 3)]);
    }
}
