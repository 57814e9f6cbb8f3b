//! Entries by space and partition.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::types::SpaceId;

/// Entries by space and partition. Below zero for a while where a key was removed that had hidden
/// another one and was not counted itself.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    of: HashMap<(SpaceId, u16), i64, BuildHasherDefault<OwnerHasher>>,
}

impl Counts {
    #[inline]
    pub(crate) fn add(&mut self, space: SpaceId, partition: u16, change: i64) {
        match self.of.get_mut(&(space, partition)) {
            Some(count) => *count += change,
            None => drop(self.of.insert((space, partition), change)),
        }
    }

    pub(crate) fn set(&mut self, space: SpaceId, partition: u16, count: i64) {
        self.of.insert((space, partition), count);
    }

    /// Of one partition.
    pub(crate) fn of_partition(&self, space: SpaceId, partition: u16) -> i64 {
        self.of.get(&(space, partition)).copied().unwrap_or(0)
    }

    /// Of every space.
    pub(crate) fn by_space(&self) -> BTreeMap<SpaceId, i64> {
        let mut spaces = BTreeMap::new();
        for (space, _, count) in self.iter() {
            *spaces.entry(space).or_default() += count;
        }
        spaces
    }

    /// Of every partition that has or had entries: space, partition, entries.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (SpaceId, u16, i64)> {
        self.of.iter().map(|((space, partition), count)| (*space, *partition, *count))
    }

    /// Forgets a space, or one partition of it.
    pub(crate) fn drop_all(&mut self, space: SpaceId, partition: Option<u16>) {
        self.of.retain(|(of, part), _| *of != space || partition.is_some_and(|p| p != *part));
    }
}

/// Spaces and partitions are few and small numbers: multiplied together they spread enough.
#[derive(Debug, Default)]
struct OwnerHasher(u64);

impl Hasher for OwnerHasher {
    /// The upper half of a product depends on all of both factors.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u16(u16::from(*byte)));
    }

    #[inline]
    fn write_u16(&mut self, part: u16) {
        self.0 = (self.0 << 16 | u64::from(part)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
