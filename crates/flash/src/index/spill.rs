//! Entries that found no slot within seven buckets of their home: exact, ordered by hash, rare.
//!
//! Invariants:
//! 1. An entry is either here or in the table, never in both.
//! 2. The filter has the bit of every entry's leading hash bits.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Place;
use super::slot::Prefix;

/// An entry outside the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spilled {
    /// What is known of its hash.
    pub prefix: Prefix,
    /// Where its record is.
    pub place: Place,
    /// Referenced since the mark was last taken.
    pub(super) referenced: bool,
    pub(super) note: u64,
}

impl Spilled {
    /// An entry that was not referenced and has no note.
    pub fn new(prefix: Prefix, place: Place) -> Spilled {
        Spilled { prefix, place, referenced: false, note: 0 }
    }
}

/// The entries outside the table.
#[derive(Debug)]
pub(super) struct Spill {
    /// By known hash bits, then in order of arrival.
    entries: BTreeMap<(u64, u64), Spilled>,
    arrivals: u64,
    /// A bit for each value of six leading hash bits: spares almost all lookups the search.
    filter: u64,
    /// No entry knows fewer bits of its hash.
    known_min: u32,
}

impl Spill {
    pub(super) fn new() -> Spill {
        Spill { entries: BTreeMap::new(), arrivals: 0, filter: 0, known_min: 64 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// RAM used, bytes, estimated from the node layout of the standard library's B-tree.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.len() as u64 * 2 * (size_of::<((u64, u64), Spilled)>() as u64)
    }

    #[inline]
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        self.filter >> (hash >> 58) & 1 == 1
    }

    pub(super) fn insert(&mut self, spilled: Spilled) {
        self.arrivals += 1;
        self.known_min = self.known_min.min(spilled.prefix.known);
        self.filter |= leading_bits(spilled.prefix);
        self.entries.insert((spilled.prefix.hash, self.arrivals), spilled);
    }

    /// Entries that `hash` may belong to.
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = &Spilled> {
        self.entries
            .range(self.keys(hash))
            .map(|(_, spilled)| spilled)
            .filter(move |spilled| spilled.prefix.matches(hash))
    }

    pub(super) fn find_mut(&mut self, hash: u64, address: u64) -> Option<&mut Spilled> {
        self.entries
            .range_mut(self.keys(hash))
            .map(|(_, spilled)| spilled)
            .find(|spilled| spilled.prefix.matches(hash) && spilled.place.address == address)
    }

    pub(super) fn remove(&mut self, hash: u64, address: u64) -> bool {
        let found = self
            .entries
            .range(self.keys(hash))
            .find(|(_, s)| s.prefix.matches(hash) && s.place.address == address)
            .map(|(key, _)| *key);
        if let Some(key) = found {
            self.entries.remove(&key);
            // Stale bits cost time only, so a large spill is not searched for them.
            if self.entries.len() < 64 {
                self.refilter();
            }
        }
        found.is_some()
    }

    /// Entries whose known hash bits are in `first..=last`.
    pub(super) fn range(&self, first: u64, last: u64) -> impl Iterator<Item = &Spilled> {
        self.entries.range((first, 0)..=(last, u64::MAX)).map(|(_, spilled)| spilled)
    }

    /// Takes out the entries whose known hash bits are in `first..=last`.
    pub(super) fn take_range(&mut self, first: u64, last: u64) -> Vec<Spilled> {
        let keys: Vec<_> =
            self.entries.range((first, 0)..=(last, u64::MAX)).map(|(key, _)| *key).collect();
        let taken = keys.iter().filter_map(|key| self.entries.remove(key)).collect();
        self.refilter();
        taken
    }

    pub(super) fn retain(&mut self, keep: &mut dyn FnMut(Place) -> bool) -> u64 {
        let before = self.entries.len();
        self.entries.retain(|_, spilled| keep(spilled.place));
        self.refilter();
        (before - self.entries.len()) as u64
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Spilled> {
        self.entries.values_mut()
    }

    fn refilter(&mut self) {
        let prefixes = || self.entries.values().map(|spilled| spilled.prefix);
        self.filter = prefixes().fold(0, |filter, prefix| filter | leading_bits(prefix));
        self.known_min = prefixes().map(|prefix| prefix.known).min().unwrap_or(64);
    }

    /// Keys of the entries that may match `hash`.
    fn keys(&self, hash: u64) -> RangeInclusive<(u64, u64)> {
        let unknown = 64 - self.known_min;
        (hash >> unknown << unknown, 0)..=(hash, u64::MAX)
    }
}

/// The filter's bits for a prefix: all of them for one too short to tell.
fn leading_bits(prefix: Prefix) -> u64 {
    if prefix.known < 6 { u64::MAX } else { 1 << (prefix.hash >> 58) }
}
