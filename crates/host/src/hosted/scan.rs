//! Scans, and how far they are.

use std::collections::HashSet;

use entresol_tier::{EntryName, SpaceId};
use parking_lot::Mutex;

/// A scan that goes on page by page.
#[derive(Debug)]
pub struct Scan {
    pub(super) space: SpaceId,
    /// `None`: all.
    partitions: Option<HashSet<u16>>,
    pub(super) with_values: bool,
    /// Entries in one step.
    pub(super) step: usize,
    pub(super) progress: Mutex<Progress>,
}

/// How far a scan is.
#[derive(Debug)]
pub(super) enum Progress {
    Start,
    /// All entries are read, and others may be noted.
    Cursor(u64, Notes),
    /// Those that are named are read, from a number on.
    Named(Vec<EntryName>, usize),
    End,
}

/// What becomes of entries that a scan reads and does not want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notes {
    None,
    /// The roster has them.
    Taken,
    /// As above, but some are damaged.
    Partial,
}

impl Scan {
    /// A scan of those `partitions` of `space`, or of all, in steps of so many entries.
    pub(super) fn new(step: usize, space: SpaceId, partitions: Option<HashSet<u16>>) -> Scan {
        let progress = Mutex::new(Progress::Start);
        Scan { space, partitions, with_values: true, step, progress }
    }

    /// The same without the values.
    #[must_use]
    pub fn of_keys(self) -> Scan {
        Scan { with_values: false, ..self }
    }

    pub(super) fn wants(&self, partition: u16) -> bool {
        self.partitions.as_ref().is_none_or(|wanted| wanted.contains(&partition))
    }

    /// The partition that is wanted, where it is one alone.
    pub(super) fn only_partition(&self) -> Option<u16> {
        let only = self.partitions.as_ref().filter(|wanted| wanted.len() == 1);
        only.and_then(|wanted| wanted.iter().next().copied())
    }
}
