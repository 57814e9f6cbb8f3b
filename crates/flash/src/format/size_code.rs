//! How long a record is, in seven bits.
//!
//! 128 lengths: multiples of 64 bytes up to 2 KiB, of 128 bytes up to 4 KiB, then eight steps an
//! octave up to 1 MiB and two an octave above. Records are read in one request of the code's
//! length, so the steps bound what is read for nothing: at most 63 bytes up to 2 KiB, an eighth up
//! to 1 MiB.

/// The length class of a record; every length from 1 byte to 256 MiB has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SizeCode(u8);

impl SizeCode {
    /// Bits a code takes.
    pub const BITS: u32 = 7;

    /// The smallest code of at least `bytes`; the largest code for anything longer than 256 MiB.
    #[inline]
    pub fn covering(bytes: u64) -> SizeCode {
        let code = match bytes {
            0..=LINEAR_MAX => bytes.max(1).div_ceil(64) - 1,
            LINEAR_END..=DOUBLE_MAX => FIRST_DOUBLE + (bytes - LINEAR_MAX).div_ceil(128) - 1,
            DOUBLE_END..=EIGHTH_MAX => FIRST_EIGHTH + step(bytes, DOUBLE_MAX, 3),
            EIGHTH_END..=HALF_MAX => FIRST_HALF + step(bytes, EIGHTH_MAX, 1),
            _ => u64::from(Self::LARGEST.0),
        };
        SizeCode(code as u8)
    }

    /// The largest code.
    pub const LARGEST: SizeCode = SizeCode(127);

    /// The length the code stands for, bytes.
    #[inline]
    pub fn bytes(self) -> u64 {
        let code = u64::from(self.0);
        if code < FIRST_DOUBLE {
            (code + 1) * 64
        } else if code < FIRST_EIGHTH {
            LINEAR_MAX + (code - FIRST_DOUBLE + 1) * 128
        } else if code < FIRST_HALF {
            length(code - FIRST_EIGHTH, DOUBLE_MAX, 3)
        } else {
            length(code - FIRST_HALF, EIGHTH_MAX, 1)
        }
    }

    /// The code as stored.
    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.0)
    }

    /// The code in the low seven bits of `bits`.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> SizeCode {
        SizeCode((bits & 0x7f) as u8)
    }
}

const LINEAR_MAX: u64 = 2 << 10;
const DOUBLE_MAX: u64 = 4 << 10;
const EIGHTH_MAX: u64 = 1 << 20;
const LINEAR_END: u64 = LINEAR_MAX + 1;
const DOUBLE_END: u64 = DOUBLE_MAX + 1;
const EIGHTH_END: u64 = EIGHTH_MAX + 1;
const HALF_MAX: u64 = 256 << 20;
const FIRST_DOUBLE: u64 = 32;
const FIRST_EIGHTH: u64 = 48;
const FIRST_HALF: u64 = 112;

/// Which step above `start` (a power of two) covers `bytes`, with 2^`fine` steps an octave.
fn step(bytes: u64, start: u64, fine: u32) -> u64 {
    let octave = (bytes - 1).ilog2() - start.ilog2();
    let low = start << octave;
    let width = low >> fine;
    (u64::from(octave) << fine) + (bytes - low).div_ceil(width) - 1
}

/// The length at the end of step `step` above `start`.
fn length(step: u64, start: u64, fine: u32) -> u64 {
    let low = start << (step >> fine);
    low + ((step & ((1 << fine) - 1)) + 1) * (low >> fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gets_the_smallest_code_that_covers_it() {
        let codes: Vec<u64> = (0..128).map(|c| SizeCode(c).bytes()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        let lengths = (1..20_000).chain((20_000..(256 << 20)).step_by(9_973)).chain(codes.clone());
        for bytes in lengths {
            let expected = codes.partition_point(|c| *c < bytes);
            assert_eq!(SizeCode::covering(bytes).0 as usize, expected, "{bytes} bytes");
        }
        assert_eq!(SizeCode::covering(u64::MAX), SizeCode::LARGEST);
    }

    #[test]
    fn small_multiples_of_64_are_exact_and_long_records_read_an_eighth_more_at_most() {
        for bytes in (64..=2048).step_by(64) {
            assert_eq!(SizeCode::covering(bytes).bytes(), bytes);
        }
        for bytes in (512..1 << 20).step_by(61) {
            assert!(SizeCode::covering(bytes).bytes() <= bytes + (bytes / 8).max(64), "{bytes}");
        }
    }
}
