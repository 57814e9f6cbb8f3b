//! Appends to the journal, and those that wait until the device has a buffer or room for them.
//!
//! Invariant: a session's appends to a lane are in the order in which they were submitted.

use std::collections::VecDeque;

use super::{Ack, Session, Visit};
use crate::engine::Waits;
use crate::error::Result;
use crate::shard::Appended;
use crate::types::{Durability, JournalAppend, JournalRoom, JournalSequence, Timestamp};

/// Appends that wait, in their order.
#[derive(Debug, Default)]
pub(super) struct Appends {
    waiting: VecDeque<Append>,
    bytes: usize,
}

#[derive(Debug)]
struct Append {
    token: u64,
    now: Timestamp,
    lane: u16,
    owner: u64,
    bytes: Vec<u8>,
    durability: Option<Durability>,
    room: JournalRoom,
}

impl Appends {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of theirs.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The lane that is waited for first.
    pub(super) fn first_lane(&self) -> Option<usize> {
        self.waiting.front().map(|append| usize::from(append.lane))
    }

    fn push(&mut self, append: Append) {
        self.bytes += append.bytes.len();
        self.waiting.push_back(append);
    }

    fn pop(&mut self) -> Option<Append> {
        let append = self.waiting.pop_front()?;
        self.bytes -= append.bytes.len();
        Some(append)
    }

    fn push_first(&mut self, append: Append) {
        self.bytes += append.bytes.len();
        self.waiting.push_front(append);
    }
}

impl Append {
    fn of(token: u64, now: Timestamp, append: &JournalAppend<'_>) -> Append {
        // Others may be appended before it is: it will continue none.
        let JournalAppend { lane, owner, bytes, durability, room, .. } = *append;
        Append { token, now, lane, owner, bytes: bytes.to_vec(), durability, room }
    }

    fn append(&self) -> JournalAppend<'_> {
        let Append { lane, owner, durability, room, .. } = *self;
        let (bytes, continues) = (&self.bytes[..], None);
        JournalAppend { lane, owner, bytes, durability, continues, room }
    }
}

impl Session {
    /// Begins to append a record to the journal. As with [`Session::submit`], `visit` is called
    /// before return where the answer is at hand, else from a later [`Session::poll`].
    ///
    /// Errors, as outcomes: `Full` where the lane has all the segments that it may have, until it
    /// is trimmed; `InvalidInput` for a store without a journal, a lane that there is not, or a
    /// record that is too long.
    pub fn submit_journal(
        &mut self,
        token: u64,
        now: Timestamp,
        append: JournalAppend<'_>,
        visit: Visit<'_>,
    ) {
        self.in_flight += 1;
        self.submitted = Some(token);
        // Behind those of its lane that wait.
        if self.appends.waiting.iter().any(|waiting| waiting.lane == append.lane) {
            self.appends.push(Append::of(token, now, &append));
        } else {
            match self.append(token, now, &append, visit) {
                Ok(true) => {}
                Ok(false) => self.appends.push(Append::of(token, now, &append)),
                Err(error) => self.finish(token, Err(error), visit),
            }
        }
        self.submitted = None;
    }

    /// Tries the appends that wait, up to the first that has to wait on.
    pub(super) fn retry_appends(&mut self, visit: Visit<'_>) {
        self.waits = Waits::OF_RETRY;
        while let Some(append) = self.appends.pop() {
            let (token, now) = (append.token, append.now);
            match self.append(token, now, &append.append(), visit) {
                Ok(true) => {}
                Ok(false) => {
                    self.appends.push_first(append);
                    break;
                }
                Err(error) => self.finish(token, Err(error), visit),
            }
        }
        self.waits = Waits::OF_FIRST_TRY;
    }

    /// Whether it is appended: else the device has still to answer.
    fn append(
        &mut self,
        token: u64,
        now: Timestamp,
        append: &JournalAppend<'_>,
        visit: Visit<'_>,
    ) -> Result<bool> {
        let appended = self.engine.append_journal(append, now, self.waits)?;
        let Some(Appended { written, head }) = appended else { return Ok(false) };
        let sequence = JournalSequence(written.version.0);
        let ack = Ack::Journaled { sequence, head: JournalSequence(head) };
        // A hash by which the shard of the lane is chosen.
        let hash = u128::from(append.lane);
        self.acknowledge((token, hash), written, (append.durability, ack), visit);
        Ok(true)
    }
}
