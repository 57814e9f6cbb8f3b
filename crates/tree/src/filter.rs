//! Which keys a delta page may hold: a Bloom filter of one word (B. H. Bloom, 1970).

use xxhash_rust::xxh3::xxh3_64;

/// Bits that a key sets. With the ten keys that a delta page has on average, one key in twenty that
/// it does not have is looked for in vain.
const BITS_OF_KEY: u32 = 3;

/// A set of keys that is never wrongly without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter(pub u64);

impl Filter {
    /// Of a delta page that nobody has looked at since the store was opened.
    pub const UNKNOWN: Filter = Filter(u64::MAX);

    /// Adds `key`.
    pub fn insert(&mut self, key: &[u8]) {
        self.0 |= bits(key);
    }

    /// Whether `key` may have been added.
    pub fn may_hold(self, key: &[u8]) -> bool {
        let bits = bits(key);
        self.0 & bits == bits
    }
}

fn bits(key: &[u8]) -> u64 {
    let hash = xxh3_64(key);
    (0..BITS_OF_KEY).fold(0, |bits, place| bits | 1 << (hash >> (6 * place) & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_never_wrongly_without_a_key_and_seldom_wrongly_with_one() {
        let key = |number: u32| number.to_be_bytes();
        let mut wrongly_with = 0;
        for round in 0..100_u32 {
            let mut filter = Filter::default();
            (0..10).for_each(|number| filter.insert(&key(round * 1000 + number)));
            assert!((0..10).all(|number| filter.may_hold(&key(round * 1000 + number))));
            let absent = (10..110).filter(|number| filter.may_hold(&key(round * 1000 + number)));
            wrongly_with += absent.count();
        }
        assert!(wrongly_with < 800, "{wrongly_with} of 10,000");
        assert!(Filter::UNKNOWN.may_hold(b"any"));
    }
}
