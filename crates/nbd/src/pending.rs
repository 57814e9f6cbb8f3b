//! Requests that volumes have not answered.

use entresol_page::Kind;
use entresol_wire::nbd::{Command, ReplyTo};

/// Requests that volumes have not answered, by the token they were submitted with.
///
/// Invariant: a token is used again only with another generation, so that an answer that comes
/// twice finds nothing.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    entries: Vec<(u32, Option<Waiting>)>,
    free: Vec<u32>,
    count: usize,
}

/// A request that a volume has not answered.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Who asked.
    pub(crate) asker: Asker,
    /// What is told of it.
    pub(crate) reply: ReplyTo,
    /// What was asked.
    pub(crate) asked: Asked,
    /// What of its reply is known and follows what the volume answers.
    pub(crate) behind: Vec<u8>,
    /// Bytes it holds: a payload, or room for an answer.
    pub(crate) bytes: usize,
    /// When it was submitted, in nanoseconds.
    pub(crate) since_ns: u64,
}

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The client at a place, of a generation.
    Client(usize, u32),
    /// The administrator at a place, of a generation.
    Administrator(usize, u32),
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A read, of which zeros may be told of as a hole.
    Read,
    /// A read to be answered with its bytes in one piece.
    ReadUnbroken,
    /// Zeros that must be fast.
    FastZero,
    /// Another command.
    Plain(Command),
    /// How `length` bytes stand, for the metadata context of that number.
    Status {
        /// The context's number.
        context: u32,
        /// Bytes that were asked about.
        length: u64,
    },
    /// Something that only administrators ask for.
    Administration,
}

impl Asked {
    /// The kind that its latency counts as in charts; `None` where no client asked.
    pub(crate) fn kind(self) -> Option<Kind> {
        match self {
            Asked::Read | Asked::ReadUnbroken => Some(Kind::Read),
            Asked::Plain(Command::Write) => Some(Kind::Write),
            Asked::FastZero | Asked::Plain(_) | Asked::Status { .. } => Some(Kind::Other),
            Asked::Administration => None,
        }
    }
}

impl Pending {
    /// Whether all requests were answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes a request; returns its token.
    pub(crate) fn insert(&mut self, waiting: Waiting) -> u64 {
        self.count += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[place as usize];
        entry.0 = entry.0.wrapping_add(1);
        entry.1 = Some(waiting);
        u64::from(entry.0) << 32 | u64::from(place)
    }

    /// The request with `token`, which is answered now.
    pub(crate) fn remove(&mut self, token: u64) -> Option<Waiting> {
        let entry = self.entries.get_mut(token as u32 as usize)?;
        if entry.0 != (token >> 32) as u32 {
            return None;
        }
        let waiting = entry.1.take()?;
        self.free.push(token as u32);
        self.count -= 1;
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_answers_one_request_once() {
        let waiting = |cookie| Waiting {
            asker: Asker::Client(0, 0),
            reply: ReplyTo { cookie, offset: 0 },
            asked: Asked::Read,
            behind: Vec::new(),
            bytes: 0,
            since_ns: 0,
        };
        let mut pending = Pending::default();
        let first = pending.insert(waiting(1));
        let second = pending.insert(waiting(2));
        assert_eq!(pending.remove(first).map(|found| found.reply.cookie), Some(1));
        assert!(pending.remove(first).is_none());
        let third = pending.insert(waiting(3));
        assert!(pending.remove(first).is_none(), "an old token of a place in use");
        assert_eq!(pending.remove(second).map(|found| found.reply.cookie), Some(2));
        assert_eq!(pending.remove(third).map(|found| found.reply.cookie), Some(3));
        assert!(pending.is_empty() && pending.remove(99).is_none());
    }
}
