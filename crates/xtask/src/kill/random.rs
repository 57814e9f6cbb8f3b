//! Draws from a seed: SplitMix64 (Steele, Lea and Flood 2014).

#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// A sequence of its own for each `seed` and `purpose`.
    pub(super) fn new(seed: u64, purpose: u64) -> Random {
        let mut mixed = Random(seed ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        Random(mixed.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}
