//! Which entries that a get found on flash are put in at their first get.
//!
//! Of keys drawn at random, however skewed, hardly any is asked for again before it has passed the
//! small queue: putting all of them in costs a copy and an eviction each, and keeps the same few
//! hits as putting in some, which stay longer. So the shard *thins* them then: one in some is put
//! in, and of the others the fingerprint is remembered, so that the next get puts them into the
//! main queue. Where those put in are asked for again, all are put in.

/// Newcomers that are put in while they are thinned: one in so many.
const ONE_IN: u32 = 4;
/// Newcomers that leave the small queue between two decisions.
const SPAN: u32 = 256;
/// Of a span's newcomers, fewer hit than these begin the thinning, more end it. One of four stays
/// four times as long, so it is hit more often by the same gets.
const HIT_TO_BEGIN: u32 = SPAN / 8;
const HIT_TO_END: u32 = SPAN * 3 / 8;

/// A shard's decision, by how those fared that were put in.
#[derive(Debug, Default)]
pub(super) struct Thinning {
    thins: bool,
    turn: u32,
    passed: u32,
    hit: u32,
}

impl Thinning {
    /// Whether the next newcomer is put in.
    #[inline]
    pub(super) fn takes(&mut self) -> bool {
        self.turn = (self.turn + 1) % ONE_IN;
        !self.thins || self.turn == 0
    }

    /// A newcomer has come to the small queue's tail, `hit` since it was put in or not.
    #[inline]
    pub(super) fn passed(&mut self, hit: bool) {
        self.passed += 1;
        self.hit += u32::from(hit);
        if self.passed == SPAN {
            let bound = if self.thins { HIT_TO_END + 1 } else { HIT_TO_BEGIN };
            *self = Thinning { thins: self.hit < bound, turn: self.turn, passed: 0, hit: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(thinning: &mut Thinning) -> usize {
        (0..100).filter(|_| thinning.takes()).count()
    }

    #[test]
    fn newcomers_are_thinned_while_hardly_any_is_hit() {
        let mut thinning = Thinning::default();
        let mut spans = |hit_of_8: u32, spans: u32| {
            (0..spans * SPAN).for_each(|number| thinning.passed(number % 8 < hit_of_8));
            taken(&mut thinning)
        };
        assert_eq!(spans(1, 1), 100, "an eighth begins nothing");
        assert_eq!(spans(0, 1), 25);
        assert_eq!(spans(3, 5), 25, "three eighths end nothing");
        assert_eq!(spans(4, 1), 100);
        assert_eq!(spans(3, 5), 100);
    }
}
