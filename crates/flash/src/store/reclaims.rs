//! How long one write goes on to reclaim for the room that it lacks.

use crate::shard::Shard;

/// Segments that one write reclaims at most without a gain before it gives up: where each gives
/// back a fiftieth of itself, one is free by then.
const FRUITLESS_MAX: u32 = 64;

/// How often one write of a cache seals what is open: what it then reclaims it may have to copy
/// once before it can be evicted.
const SEALS_MAX: u32 = 3;

/// Whether what one write reclaims still leads somewhere.
#[derive(Default)]
pub(super) struct Reclaims {
    /// The most segments that were free, or about to be.
    best: u32,
    fruitless: u32,
    seals: u32,
    pub(super) counted: bool,
    /// The last step waited for the device.
    pub(super) awaited: bool,
}

impl Reclaims {
    /// Those of a write that was counted before.
    pub(super) fn counted() -> Reclaims {
        Reclaims { counted: true, ..Reclaims::default() }
    }

    /// Counts the write among those that found no room.
    pub(super) fn count(&mut self, shard: &mut Shard) {
        if !std::mem::replace(&mut self.counted, true) {
            shard.counters.reclaims_by_writers += 1;
        }
    }

    /// Whether segments that are open may be sealed once more to be reclaimed.
    pub(super) fn seals(&mut self) -> bool {
        self.seals += 1;
        self.seals <= SEALS_MAX
    }

    /// Takes note of how many segments are `free`, or about to be; false if reclaim has gained none
    /// for so long that it never will: of 64 victims, or of all the `turn` has that come in turn.
    pub(super) fn gain(&mut self, free: u32, turn: u32) -> bool {
        self.fruitless = if self.grew(free) { 0 } else { self.fruitless + 1 };
        self.fruitless <= turn.max(FRUITLESS_MAX)
    }

    /// Takes note of how many segments are `free`, or about to be; whether that is more than ever.
    pub(super) fn grew(&mut self, free: u32) -> bool {
        let grew = free > self.best;
        self.best = self.best.max(free);
        grew
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_reclaims_for_as_long_as_that_gains_a_segment_now_and_then() {
        let mut reclaims = Reclaims::default();
        // Each of these victims gives back a fiftieth of itself: more than 64 of them are needed.
        assert!((0..5_000).all(|round| reclaims.gain(5 + round / 50, 0)));
        // What comes and goes is no gain.
        let more = (0..1_000).take_while(|round| reclaims.gain(100 + round % 5, 0)).count();
        assert!(more <= FRUITLESS_MAX as usize + 5, "{more} rounds for nothing");
    }
}
