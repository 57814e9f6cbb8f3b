//! SplitMix64 (Steele, Lea and Flood, 2014).

/// What the state grows by: the golden ratio, odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of numbers whose whole state is one number, which the seed begins.
#[derive(Debug, Clone)]
pub struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix { state: seed }
    }

    /// The next number, uniform over all of `u64`.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix64(self.state)
    }

    /// A number below `bound`; 0 for a bound of 0. The bias is below 2⁻³² for bounds below 2³².
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// What a division of the next number by `divisor`, which is not 0, leaves. Streams of seeds
    /// that were drawn so stay as they were; new ones take [`SplitMix::below`].
    #[inline]
    pub fn remainder(&mut self, divisor: u64) -> u64 {
        self.next_u64() % divisor
    }

    /// A place in a list of `count`, which is not 0; drawn likewise.
    #[inline]
    pub fn index(&mut self, count: usize) -> usize {
        self.remainder(count as u64) as usize
    }

    /// One of `all`, which are not none; drawn likewise.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.index(all.len())]
    }

    /// True once in `bound` times.
    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Any order of `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// A one-to-one scramble of 64 bits.
#[inline]
pub fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
