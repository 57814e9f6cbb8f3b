//! Entries by space and partition.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::types::{Owner, SpaceId};

/// Entries by space and partition. Below zero for a while where a key was removed that had hidden
/// another one and was not counted itself.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    of: HashMap<Owner, i64, BuildHasherDefault<OwnerHasher>>,
}

impl Counts {
    #[inline]
    pub(crate) fn add(&mut self, owner: Owner, change: i64) {
        match self.of.get_mut(&owner) {
            Some(count) => *count += change,
            None => drop(self.of.insert(owner, change)),
        }
    }

    pub(crate) fn set(&mut self, owner: Owner, count: i64) {
        self.of.insert(owner, count);
    }

    /// Of one partition.
    pub(crate) fn of_partition(&self, owner: Owner) -> i64 {
        self.of.get(&owner).copied().unwrap_or(0)
    }

    /// Of every space.
    pub(crate) fn by_space(&self) -> BTreeMap<SpaceId, i64> {
        let mut spaces = BTreeMap::new();
        for (Owner { space, .. }, count) in self.iter() {
            *spaces.entry(space).or_default() += count;
        }
        spaces
    }

    /// Of every partition that has or had entries.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (Owner, i64)> {
        self.of.iter().map(|(owner, count)| (*owner, *count))
    }

    /// Forgets a space, or one partition of it.
    pub(crate) fn drop_all(&mut self, space: SpaceId, partition: Option<u16>) {
        self.of.retain(|of, _| of.space != space || partition.is_some_and(|p| p != of.partition));
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
