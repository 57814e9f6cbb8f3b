//! Pauses of all clients (`CLIENT PAUSE`): which commands wait, and until when.

use std::sync::atomic::{AtomicU64, Ordering};

use entresol_tier::Timestamp;

/// Which commands wait for the end of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    None,
    Writes,
    All,
}

/// The present pause. Thread-safe.
///
/// One word, so that nobody sees the end of one pause with the kind of another: when it ends,
/// milliseconds since the epoch, and in the lowest bit whether all commands wait.
#[derive(Debug, Default)]
pub(crate) struct Pauses(AtomicU64);

impl Pauses {
    /// Lets commands of this kind wait until `until`. A pause that lasts already does not become
    /// shorter or let more commands through.
    pub(crate) fn begin(&self, kind: Pause, until: Timestamp, now: Timestamp) {
        let word = until.0.min(u64::MAX >> 1) << 1 | u64::from(kind == Pause::All);
        let longer = |present: u64| match Pauses::kind(present, now) {
            Pause::None => Some(word),
            _ => Some((word >> 1).max(present >> 1) << 1 | (word | present) & 1),
        };
        // The function always gives a word.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, longer);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// What waits at `now`.
    pub(crate) fn at(&self, now: Timestamp) -> Pause {
        Pauses::kind(self.0.load(Ordering::Relaxed), now)
    }

    fn kind(word: u64, now: Timestamp) -> Pause {
        match (word >> 1 > now.0, word & 1) {
            (false, _) => Pause::None,
            (true, 0) => Pause::Writes,
            (true, _) => Pause::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short pause of writes turned a long one of everything into a long one of writes.
    #[test]
    fn a_pause_that_lasts_becomes_neither_shorter_nor_weaker() {
        let kinds = [Pause::Writes, Pause::All];
        for (first, second) in kinds.iter().flat_map(|a| kinds.map(|b| (*a, b))) {
            for (early, late) in [(60, 10), (10, 60)] {
                let pauses = Pauses::default();
                pauses.begin(first, Timestamp(early), Timestamp(5));
                pauses.begin(second, Timestamp(late), Timestamp(6));
                let stricter = if first == second { first } else { Pause::All };
                assert_eq!(pauses.at(Timestamp(59)), stricter, "{first:?} {second:?}");
                assert_eq!(pauses.at(Timestamp(60)), Pause::None);
            }
        }
    }

    #[test]
    fn a_pause_that_is_over_leaves_nothing_behind() {
        let pauses = Pauses::default();
        assert_eq!(pauses.at(Timestamp(0)), Pause::None);
        pauses.begin(Pause::All, Timestamp(10), Timestamp(5));
        pauses.begin(Pause::Writes, Timestamp(20), Timestamp(10));
        assert_eq!(pauses.at(Timestamp(19)), Pause::Writes);
        pauses.end();
        assert_eq!(pauses.at(Timestamp(11)), Pause::None);
        pauses.begin(Pause::All, Timestamp(u64::MAX), Timestamp(11));
        assert_eq!(pauses.at(Timestamp(u64::MAX >> 2)), Pause::All);
    }
}
