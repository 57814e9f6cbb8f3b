//! Leaves that kept their changes: the journal keeps what they have not merged.

use entresol_flash::Error;

use crate::sequence::Sequence;

/// What became of rows that no leaf holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LargeFolds {
    /// There were none.
    Nothing,
    /// All are written once more.
    Written,
    /// Some wait for room in the journal, or for writers.
    Waiting,
}

/// A leaf that kept its changes.
pub(super) struct Held {
    pub why: Error,
    /// It waits for room that merges of other leaves make, or for writers.
    pub waits: bool,
    /// The oldest of the changes.
    pub oldest: Option<Sequence>,
}

impl Held {
    /// All changes of its range up to this one are merged.
    pub(super) fn merged_through(&self) -> Sequence {
        self.oldest.map_or(Sequence(u64::MAX), |oldest| Sequence(oldest.0.saturating_sub(1)))
    }
}

/// What a sweep's leaves that kept their changes say.
#[derive(Default)]
pub(super) struct HeldBack {
    /// Why one did that does not wait.
    refused: Option<Error>,
    waiting: Option<Error>,
    /// Where the journal began as the sweep did.
    low: Sequence,
}

impl HeldBack {
    /// Of a sweep that begins while the journal begins at `low`.
    pub(super) fn since(low: Sequence) -> HeldBack {
        HeldBack { low, ..HeldBack::default() }
    }

    pub(super) fn add(&mut self, held: Held) {
        match held.waits {
            true => self.waiting = Some(held.why),
            false => self.refused = Some(held.why),
        }
    }

    /// Why a leaf kept its changes, once the sweep has left the journal to begin at `low`. Those
    /// that wait are no matter where it moved on: there is more room now.
    pub(super) fn end(self, low: Sequence) -> Option<Error> {
        self.refused.or(self.waiting.filter(|_| low == self.low))
    }
}
