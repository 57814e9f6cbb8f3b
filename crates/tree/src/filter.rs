//! Which keys a page may hold: Bloom filters (B. H. Bloom, 1970). One of a word tells of a delta
//! page, one of a few bits a key of a leaf and its delta page together.

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

/// Bits that a key sets in the filter of a leaf.
const PROBES: u32 = 6;
/// Most bits a key: more would tell nothing.
const KEY_BITS_MAX: usize = 32;
/// Most bytes of a leaf's filter.
const LEAF_FILTER_BYTES_MAX: usize = u16::MAX as usize;

/// What the filter of a leaf knows a key by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn of(key: &[u8]) -> KeyHash {
        KeyHash(xxh3_64(key))
    }

    /// The bits that the key sets among so many: each is as likely as all others.
    fn places(self, bits: usize) -> impl Iterator<Item = usize> {
        let (first, step) = (self.0 as u32, (self.0 >> 32) as u32 | 1);
        let hashes = (0..PROBES).map(move |probe| first.wrapping_add(step.wrapping_mul(probe)));
        hashes.map(move |hash| ((u64::from(hash) * bits as u64) >> 32) as usize)
    }
}

/// The filter of a leaf that has these keys, with so many bits for each. Empty, where there are no
/// bits or too many: an empty filter tells nothing.
pub(crate) fn leaf_filter(keys: &[KeyHash], key_bits: u8) -> Vec<u8> {
    let bytes = (keys.len() * usize::from(key_bits).min(KEY_BITS_MAX)).div_ceil(8).max(1);
    if key_bits == 0 || bytes > LEAF_FILTER_BYTES_MAX {
        return Vec::new();
    }
    let mut filter = vec![0; bytes];
    add_keys(&mut filter, keys);
    filter
}

/// Adds keys to the filter of a leaf.
pub(crate) fn add_keys(filter: &mut [u8], keys: &[KeyHash]) {
    let bits = 8 * filter.len();
    for place in keys.iter().flat_map(|key| key.places(bits)) {
        filter[place / 8] |= 1 << (place % 8);
    }
}

/// Whether a leaf with this filter may hold the key.
pub(crate) fn leaf_may_hold(filter: &[u8], key: KeyHash) -> bool {
    filter.is_empty()
        || key.places(8 * filter.len()).all(|place| filter[place / 8] & 1 << (place % 8) != 0)
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

    #[test]
    fn a_leaf_filter_is_never_wrongly_without_a_key_and_seldom_wrongly_with_one() {
        for (key_bits, most) in [(8, 450), (10, 190), (16, 40)] {
            let mut wrongly_with = 0;
            for round in 0..100_u32 {
                let hash = |number: u32| KeyHash::of(&(round * 1000 + number).to_be_bytes());
                let mut filter = leaf_filter(&(0..40).map(hash).collect::<Vec<_>>(), key_bits);
                add_keys(&mut filter, &(40..44).map(hash).collect::<Vec<_>>());
                assert!((0..44).all(|number| leaf_may_hold(&filter, hash(number))));
                wrongly_with += (50..150).filter(|&key| leaf_may_hold(&filter, hash(key))).count();
            }
            assert!(wrongly_with < most, "{wrongly_with} of 10,000 with {key_bits} bits a key");
        }
        assert!(leaf_filter(&[], 0).is_empty() && leaf_may_hold(&[], KeyHash::of(b"any")));
    }
}
