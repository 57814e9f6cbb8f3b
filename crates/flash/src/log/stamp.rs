//! The moment of an append to a log.

/// Counts the appends to one log: what was appended up to a stamp is durable once the log's durable
/// stamp has reached it. No sequence of a record or of a segment, and of one opening only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// Of the next append.
    #[inline]
    pub(crate) fn next(self) -> Stamp {
        Stamp(self.0 + 1)
    }

    /// Of the append before.
    #[inline]
    pub(crate) fn before(self) -> Stamp {
        Stamp(self.0.saturating_sub(1))
    }
}
