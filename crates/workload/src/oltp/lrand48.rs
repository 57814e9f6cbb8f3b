//! The 48-bit linear congruential generator of POSIX `lrand48` and `drand48`.
//!
//! The multiplier and the addend are those POSIX states. A C library whose caller never seeds it
//! begins at zero, and the original benchmark never did: that stream is a constant.

/// A stream of numbers; each draw takes one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lrand48 {
    state: u64,
}

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const ADDEND: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

impl Lrand48 {
    /// The stream of a program that never seeds it.
    pub fn unseeded() -> Lrand48 {
        Lrand48 { state: 0 }
    }

    /// The stream after `srand48(seed)`, which uses the low 32 bits.
    pub fn seeded(seed: u64) -> Lrand48 {
        Lrand48 { state: ((seed & 0xFFFF_FFFF) << 16) | 0x330E }
    }

    /// A number below `bound`. The bias is that of the original: a remainder of 31 bits.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        (self.step() >> 17) % bound
    }

    /// A number in 0 ≤ x < 1, a multiple of 2^-48.
    pub fn fraction(&mut self) -> f64 {
        self.step() as f64 / (1u64 << 48) as f64
    }

    fn step(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(ADDEND) & MASK;
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeded_stream_is_the_one_posix_describes() {
        let mut seeded = Lrand48::seeded(0);
        // What `srand48(0); lrand48()` returns everywhere.
        assert_eq!(seeded.below(1 << 31), 366_850_414);
        assert_eq!(seeded.below(1 << 31), 1_610_402_240);
    }

    #[test]
    fn the_unseeded_stream_begins_at_zero() {
        let mut unseeded = Lrand48::unseeded();
        assert_eq!(unseeded.below(1 << 31), 0);
        assert_eq!(unseeded.below(1 << 31), 2_116_118);
    }
}
