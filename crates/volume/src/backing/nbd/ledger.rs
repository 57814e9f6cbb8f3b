//! Changes that a server has answered and no flush has covered: they would be lost with it.
//!
//! Invariants:
//! 1. Changes stand in the order of their answers, so that performing them again gives the same
//!    result. A durable write is among them if a change stood before it, because the two may
//!    overlap.
//! 2. The ledger is bounded: at half of [`BYTES_MAX`] or [`CHANGES_MAX`] a flush is due; at the
//!    whole, no new change may begin.

use std::collections::VecDeque;

use bytes::Bytes;
use entresol_wire::nbd::{Command, CommandFlags};

/// Most bytes kept.
const BYTES_MAX: u64 = 64 << 20;

/// Most changes kept.
const CHANGES_MAX: usize = 1 << 16;

/// A change as it goes over the wire.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) command: Command,
    pub(super) flags: CommandFlags,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) payload: Bytes,
}

/// Changes that no flush has covered.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    changes: VecDeque<Change>,
    bytes: u64,
    /// Changes that were covered.
    covered: u64,
}

impl Ledger {
    /// A change was answered.
    pub(super) fn add(&mut self, change: Change) {
        let is_durable = change.flags.contains(CommandFlags::FUA);
        if is_durable && self.changes.is_empty() {
            return;
        }
        self.bytes += change.payload.len() as u64;
        self.changes.push_back(change);
    }

    /// What a flush that is sent now will cover.
    pub(super) fn position(&self) -> u64 {
        self.covered + self.changes.len() as u64
    }

    /// A flush that was sent at `position` succeeded.
    pub(super) fn cover(&mut self, position: u64) {
        while self.covered < position
            && let Some(change) = self.changes.pop_front()
        {
            self.bytes -= change.payload.len() as u64;
            self.covered += 1;
        }
    }

    /// Whether a flush is due although nobody asked for one.
    pub(super) fn is_flush_due(&self) -> bool {
        self.bytes > BYTES_MAX / 2 || self.changes.len() > CHANGES_MAX / 2
    }

    /// Whether no change may begin before a flush.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX || self.changes.len() > CHANGES_MAX
    }

    /// All of them, to be performed again.
    pub(super) fn changes(&self) -> VecDeque<Change> {
        self.changes.clone()
    }
}

impl Change {
    /// Whether two changes touch the same byte.
    pub(super) fn overlaps(&self, offset: u64, length: u64) -> bool {
        self.offset < offset + length && offset < self.offset + self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(length: usize, flags: CommandFlags) -> Change {
        let payload = Bytes::from(vec![1; length]);
        Change { command: Command::Write, flags, offset: 0, length: length as u64, payload }
    }

    #[test]
    fn a_flush_covers_what_was_answered_before_it_was_sent() {
        let mut ledger = Ledger::default();
        ledger.add(write(10, CommandFlags::NONE));
        let sent = ledger.position();
        ledger.add(write(20, CommandFlags::NONE));
        ledger.cover(sent);
        assert_eq!(ledger.changes().len(), 1);
        assert_eq!(ledger.changes()[0].length, 20);
        // A flush that was sent before another, and answered after it.
        let (first, second) = (ledger.position(), ledger.position());
        ledger.cover(second);
        ledger.add(write(30, CommandFlags::NONE));
        ledger.cover(first);
        assert_eq!(ledger.changes().len(), 1);
    }

    #[test]
    fn a_durable_write_is_kept_only_behind_one_that_is_not() {
        let mut ledger = Ledger::default();
        ledger.add(write(10, CommandFlags::FUA));
        assert!(ledger.changes().is_empty());
        ledger.add(write(10, CommandFlags::NONE));
        ledger.add(write(10, CommandFlags::FUA));
        assert_eq!(ledger.changes().len(), 2);
    }

    #[test]
    fn flushes_fall_due_before_it_is_full_by_bytes_and_by_count() {
        for length in [1 << 20, 0] {
            let mut ledger = Ledger::default();
            while !ledger.is_flush_due() {
                ledger.add(write(length, CommandFlags::NONE));
            }
            assert!(!ledger.is_full());
            let position = ledger.position();
            while !ledger.is_full() {
                ledger.add(write(length, CommandFlags::NONE));
            }
            ledger.cover(position);
            assert!(!ledger.is_full());
        }
    }
}
