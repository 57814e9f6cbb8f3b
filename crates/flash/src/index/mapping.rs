//! From hash to bucket, for any number of buckets.
//!
//! The top bits of a hash are its *granule*; a bucket is home to 16 to 32 consecutive granules. A
//! granule's *fine number* is `granule × buckets / 2^(bits - 5)`: its upper part is the home
//! bucket, its low five bits tell the bucket's granules apart.
//!
//! Invariants:
//! 1. The fine number grows strictly with the granule: bucket order is hash order, and a fine
//!    number names exactly one granule.
//! 2. With more buckets no granule's home moves to a lower bucket.

/// Most buckets of one index: 32 GiB of slots.
pub(super) const BUCKETS_MAX: u64 = 1 << 29;

/// Where hashes live while the table has a given number of buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    buckets: u64,
    /// Bits of a granule: 2^bits is at least 16 × buckets and less than 32 × buckets.
    bits: u32,
    /// floor((2^64 - 1) / buckets).
    reciprocal: u64,
}

impl Mapping {
    pub(super) fn new(buckets: u64) -> Mapping {
        assert!((8..=BUCKETS_MAX).contains(&buckets), "an index has 8 to 2^29 buckets");
        Mapping {
            buckets,
            bits: (buckets * 16).next_power_of_two().trailing_zeros(),
            reciprocal: u64::MAX / buckets,
        }
    }

    #[inline]
    pub(super) fn buckets(&self) -> usize {
        self.buckets as usize
    }

    #[inline]
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// The fine number of the granule of `hash`.
    #[inline]
    pub(super) fn fine(&self, hash: u64) -> u64 {
        self.fine_of_granule(hash >> (64 - self.bits))
    }

    #[inline]
    pub(super) fn fine_of_granule(&self, granule: u64) -> u64 {
        (granule * self.buckets) >> (self.bits - 5)
    }

    #[inline]
    pub(super) fn home(&self, hash: u64) -> usize {
        (self.fine(hash) >> 5) as usize
    }

    /// The granule with this fine number; for a fine number that no granule has, the next granule.
    #[inline]
    pub(super) fn granule(&self, fine: u64) -> u64 {
        let target = fine << (self.bits - 5);
        let rounding_up = target + (self.buckets - 1);
        let granule = ((u128::from(rounding_up) * u128::from(self.reciprocal)) >> 64) as u64;
        // The reciprocal is rounded down, so the quotient is short by one at most.
        granule + u64::from(granule * self.buckets < target)
    }

    /// The lowest hash whose home is `bucket`. `bucket` is below the number of buckets.
    pub(super) fn first_hash(&self, bucket: usize) -> u64 {
        self.granule((bucket as u64) << 5) << (64 - self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fine_numbers_grow_strictly_and_name_their_granule() {
        for buckets in (8..200).chain([1023, 1024, 1025, 99_991]) {
            let mapping = Mapping::new(buckets);
            let mut last = None;
            for granule in 0..1u64 << mapping.bits() {
                let fine = mapping.fine_of_granule(granule);
                assert!(last < Some(fine), "{buckets} buckets, granule {granule}");
                assert!(fine >> 5 < buckets);
                assert_eq!(mapping.granule(fine), granule, "{buckets} buckets");
                last = Some(fine);
            }
        }
    }

    #[test]
    fn growing_moves_no_hash_to_a_lower_bucket() {
        let hashes: Vec<u64> =
            (0..5_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut mapping = Mapping::new(64);
        while mapping.buckets < 1 << 28 {
            let larger = Mapping::new(mapping.buckets + mapping.buckets / 16 + 1);
            assert!(hashes.iter().all(|h| larger.home(*h) >= mapping.home(*h)));
            assert!(hashes.iter().all(|h| {
                let first = mapping.first_hash(mapping.home(*h));
                first <= *h && mapping.home(first) == mapping.home(*h)
            }));
            mapping = larger;
        }
    }
}
