//! xoshiro256++ (Blackman and Vigna, 2019).

use crate::split_mix::SplitMix;

/// A stream of random numbers. Cheap to make; give each thread its own, of its own seed.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Random {
        let mut seeds = SplitMix::new(seed);
        Random { state: std::array::from_fn(|_| seeds.next_u64()) }
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "an endless stream is no iterator")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, which is at least 1. The bias is below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in 0 ≤ x < 1.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
