//! The faults that a test has ordered, and the calls a device was asked for.

use std::ops::Range;

/// One call that could change the medium. Reads are not numbered: a crash before a read leaves the
/// same medium as a crash before the next call that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A write, blocking or from a queue when submitted.
    Write {
        /// Where, bytes.
        offset: u64,
        /// How much, bytes.
        length: usize,
    },
    /// A sync.
    Sync,
    /// A discard.
    Discard {
        /// Where, bytes.
        offset: u64,
        /// How much, bytes.
        length: u64,
    },
}

/// How long an error lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// One call fails.
    Transient,
    /// That call and all later ones of its kind fail.
    Persistent,
}

/// How long completions are withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// Not at all.
    None,
    /// For so many calls of a queue's `reap`.
    Reaps(u32),
    /// Until a test ends it. Meanwhile `reap` returns without completions, whatever it was to wait
    /// for.
    Endless,
}

/// What was ordered.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    pub(crate) crash_at: Option<u64>,
    pub(crate) write_errors: Vec<(u64, Persistence)>,
    pub(crate) sync_errors: Vec<(u64, Persistence)>,
    pub(crate) full_from: Option<u64>,
    pub(crate) unreadable: Vec<Range<u64>>,
    pub(crate) misdirected_writes: Vec<(u64, u64)>,
    pub(crate) misdirected_reads: Vec<(u64, u64)>,
    pub(crate) stall: Stall,
}

impl Faults {
    pub(crate) fn none() -> Faults {
        Faults {
            crash_at: None,
            write_errors: Vec::new(),
            sync_errors: Vec::new(),
            full_from: None,
            unreadable: Vec::new(),
            misdirected_writes: Vec::new(),
            misdirected_reads: Vec::new(),
            stall: Stall::None,
        }
    }

    pub(crate) fn write_fails(&self, call: u64) -> bool {
        strikes(&self.write_errors, call)
    }

    pub(crate) fn sync_fails(&self, call: u64) -> bool {
        strikes(&self.sync_errors, call)
    }

    /// The first unreadable byte of a range.
    pub(crate) fn unreadable_in(&self, range: &Range<u64>) -> Option<u64> {
        let overlaps = |bad: &&Range<u64>| bad.start < range.end && range.start < bad.end;
        self.unreadable.iter().filter(overlaps).map(|bad| bad.start.max(range.start)).min()
    }

    /// Writing to a sector makes it readable again: drives replace bad sectors at a write.
    pub(crate) fn heal(&mut self, written: &Range<u64>) {
        let bad = std::mem::take(&mut self.unreadable);
        for range in bad {
            let before = range.start..range.end.min(written.start);
            let behind = range.start.max(written.end)..range.end;
            let rest = [before, behind].into_iter().filter(|rest| rest.start < rest.end);
            self.unreadable.extend(rest);
        }
    }
}

fn strikes(errors: &[(u64, Persistence)], call: u64) -> bool {
    errors.iter().any(|&(at, persistence)| match persistence {
        Persistence::Transient => call == at,
        Persistence::Persistent => call >= at,
    })
}
