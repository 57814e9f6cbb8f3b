//! How many rows are at or below each child of a node, with the changes that wait.
//!
//! A total is known once somebody has counted, and unknown again with the next change of what it
//! covers. An unknown total has a stamp: who counted meanwhile compares it, so that nobody takes a
//! count for newer than it is.

/// The last change of what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp(pub u64);

/// The rows at or below a child, or since which change they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Total(u64);

const IS_KNOWN: u64 = 1 << 63;

impl Total {
    fn unknown(since: Stamp) -> Total {
        Total(since.0 % IS_KNOWN)
    }

    fn rows(self) -> Option<u64> {
        (self.0 & IS_KNOWN != 0).then_some(self.0 & !IS_KNOWN)
    }
}

/// Totals of the children of a node; none where the table keeps no counts.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    are_kept: bool,
    totals: Vec<Total>,
}

impl Totals {
    /// Of `children` children that nobody has counted.
    pub(crate) fn new(children: usize, since: Stamp) -> Totals {
        Totals { are_kept: true, totals: vec![Total::unknown(since); children] }
    }

    pub(crate) fn are_kept(&self) -> bool {
        self.are_kept
    }

    /// Of a node without children in the same table.
    pub(crate) fn empty_like(&self) -> Totals {
        Totals { are_kept: self.are_kept, totals: Vec::new() }
    }

    pub(crate) fn known(&self, index: usize) -> Option<u64> {
        self.totals.get(index).copied().and_then(Total::rows)
    }

    /// Since when nobody knows the total.
    pub(crate) fn unknown_since(&self, index: usize) -> Option<Stamp> {
        let total = self.totals.get(index)?;
        total.rows().is_none().then_some(Stamp(total.0))
    }

    pub(crate) fn set(&mut self, index: usize, rows: u64) {
        if let Some(total) = self.totals.get_mut(index) {
            *total = Total(rows | IS_KNOWN);
        }
    }

    pub(crate) fn forget(&mut self, index: usize, since: Stamp) {
        if let Some(total) = self.totals.get_mut(index) {
            *total = Total::unknown(since);
        }
    }

    pub(super) fn insert(&mut self, index: usize) {
        if self.are_kept {
            self.totals.insert(index, Total::unknown(Stamp(0)));
        }
    }

    pub(super) fn remove(&mut self, range: std::ops::Range<usize>) {
        if self.are_kept {
            self.totals.drain(range);
        }
    }

    pub(super) fn append(&mut self, mut other: Totals) {
        self.totals.append(&mut other.totals);
    }

    pub(super) fn split_off(&mut self, at: usize) -> Totals {
        let totals = if self.are_kept { self.totals.split_off(at) } else { Vec::new() };
        Totals { are_kept: self.are_kept, totals }
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.totals.shrink_to_fit();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.totals.capacity() * size_of::<Total>()
    }
}
