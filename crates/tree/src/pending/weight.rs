//! How much there is.

/// How many changes there are, and the bytes of their keys and values. A key counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// Number of changes.
    pub(super) changes: u64,
    /// Bytes of keys and values.
    pub(super) bytes: u64,
}

impl Weight {
    /// Adds another weight.
    pub(super) fn add(&mut self, other: Weight) {
        self.changes += other.changes;
        self.bytes += other.bytes;
    }

    /// Takes another weight away, which was added before.
    pub(super) fn subtract(&mut self, other: Weight) {
        self.changes -= other.changes;
        self.bytes -= other.bytes;
    }
}
