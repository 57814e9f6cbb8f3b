//! Answers of a store on their way to the threads that wait for them.
//!
//! Most calls are answered at once. The others have a slot by their token, which the one who reaps
//! fills. Both locks are leaves.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_host::{Answer, Extent, Outbox};
use entresol_tier::{Entry, Outcome};
use parking_lot::{Condvar, Mutex};

use crate::failed::Failed;

/// An answer with bytes of its own.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// The entry of a get, or one of a scan; more follows in a scan.
    Entry(Arc<OwnedEntry>),
    /// There is no such entry.
    Missing,
    /// A put or a touch: the new version.
    Stored(u64),
    /// The condition does not hold.
    Refused,
    /// A remove, a sync or a drop.
    Done,
    /// A page of a scan ends.
    PageEnd { goes_on: bool, damage: Option<String> },
    /// There is no outcome.
    Failed(Failed),
}

/// An entry with bytes of its own.
#[derive(Debug)]
pub(crate) struct OwnedEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) version: u64,
    /// Milliseconds since 1970.
    pub(crate) expires_ms: Option<u64>,
}

impl OwnedEntry {
    fn of(entry: &Entry<'_>) -> Arc<OwnedEntry> {
        Arc::new(OwnedEntry {
            key: entry.key.to_vec(),
            value: entry.value.to_vec(),
            version: entry.version.0,
            expires_ms: entry.expiry.at.map(|at| at.0),
        })
    }
}

impl Reply {
    pub(crate) fn of(answer: &Answer<'_>) -> Reply {
        match answer {
            Answer::Outcome(outcome) => Reply::of_outcome(outcome),
            Answer::Entry(entry) => Reply::Entry(OwnedEntry::of(entry)),
            Answer::Done => Reply::Done,
            Answer::PageEnd(end) => Reply::PageEnd {
                goes_on: end.goes_on,
                damage: end.damage.map(|said| format!("{} damaged, first {said}", end.damaged)),
            },
            Answer::Failed(failure) => Reply::Failed(Failed::from(*failure)),
        }
    }

    fn of_outcome(outcome: &Outcome<'_>) -> Reply {
        match outcome {
            Outcome::Found(entry) => Reply::Entry(OwnedEntry::of(entry)),
            // No limit is set, so none is larger.
            Outcome::Missing | Outcome::Larger { .. } => Reply::Missing,
            Outcome::Stored { version } | Outcome::Touched { version } => Reply::Stored(version.0),
            Outcome::Journaled { sequence, .. } => Reply::Stored(sequence.0),
            Outcome::Refused { .. } => Reply::Refused,
            Outcome::Removed { .. } => Reply::Done,
        }
    }

    fn bytes(&self) -> usize {
        let body = match self {
            Reply::Entry(entry) => size_of::<OwnedEntry>() + entry.key.len() + entry.value.len(),
            _ => 0,
        };
        size_of::<Reply>() + body
    }
}

/// Answers that wait to be reaped.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    replies: Vec<(u64, bool, Reply)>,
    bytes: usize,
}

impl Answers {
    /// Gives each to whoever waits for it.
    pub(crate) fn deliver(&self, waits: &Waits) -> usize {
        for (token, is_last, reply) in &self.replies {
            waits.give(*token, reply.clone(), *is_last);
        }
        self.replies.len()
    }
}

impl Outbox for Answers {
    fn add(&mut self, token: u64, answer: &Answer<'_>) {
        let reply = Reply::of(answer);
        self.bytes += reply.bytes();
        self.replies.push((token, !matches!(answer, Answer::Entry(_)), reply));
    }

    fn append(&mut self, others: &mut Answers) {
        self.replies.append(&mut others.replies);
        self.bytes += std::mem::take(&mut others.bytes);
    }

    fn extent(&self) -> Extent {
        Extent { answers: self.replies.len(), bytes: self.bytes }
    }

    fn truncate(&mut self, extent: Extent) {
        self.replies.truncate(extent.answers);
        self.bytes = extent.bytes;
    }
}

/// Calls that wait, by their tokens.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    slots: Mutex<HashMap<u64, Arc<Slot>>>,
    next: AtomicU64,
}

/// Where the answers of one call go.
#[derive(Debug, Default)]
struct Slot {
    replies: Mutex<Replies>,
    ready: Condvar,
}

#[derive(Debug, Default)]
struct Replies {
    list: Vec<Reply>,
    are_all: bool,
}

/// A call that waits, or may have to.
#[derive(Debug)]
pub(crate) struct Waiting<'w> {
    waits: &'w Waits,
    pub(crate) token: u64,
    slot: Arc<Slot>,
}

impl Waits {
    /// A token, and the slot of its answers.
    pub(crate) fn begin(&self) -> Waiting<'_> {
        let (token, slot) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::default());
        self.slots.lock().insert(token, Arc::clone(&slot));
        Waiting { waits: self, token, slot }
    }

    fn give(&self, token: u64, reply: Reply, is_last: bool) {
        let Some(slot) = self.slots.lock().get(&token).cloned() else { return };
        let mut replies = slot.replies.lock();
        replies.list.push(reply);
        replies.are_all |= is_last;
        drop(replies);
        if is_last {
            slot.ready.notify_all();
        }
    }

    /// Answers all that wait with a failure.
    pub(crate) fn fail(&self, failed: &Failed) {
        let tokens: Vec<u64> = self.slots.lock().keys().copied().collect();
        for token in tokens {
            self.give(token, Reply::Failed(failed.clone()), true);
        }
    }
}

impl Waiting<'_> {
    /// Waits for all answers.
    pub(crate) fn all(self) -> Vec<Reply> {
        let mut replies = self.slot.replies.lock();
        while !replies.are_all {
            self.slot.ready.wait(&mut replies);
        }
        std::mem::take(&mut replies.list)
    }

    /// Waits for the one answer.
    pub(crate) fn one(self) -> Reply {
        self.all().pop().unwrap_or(Reply::Missing)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waits.slots.lock().remove(&self.token);
    }
}
