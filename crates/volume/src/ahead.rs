//! Blocks that were read ahead, in memory until their reader comes for them.
//!
//! They are not in the cache: most blocks of a stream are read once, and would push out blocks that
//! are read again. A block goes when it is taken, when a write reaches it, or when there are too
//! many blocks; then the oldest goes.
//!
//! Invariant: a block equals that of its backing. A caller that puts a block has held its range
//! shared since before it read the block, and a writer forgets the block while it holds the range
//! alone.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use crate::types::VolumeId;

/// Blocks that were read ahead, of all volumes of a cache.
#[derive(Debug)]
pub(crate) struct Ahead {
    bytes_max: usize,
    bytes: usize,
    blocks: BTreeMap<Place, Held>,
    /// Places by the number of the put.
    order: BTreeMap<u64, Place>,
    puts: u64,
}

type Place = (u16, u64);

#[derive(Debug)]
struct Held {
    number: u64,
    bytes: Bytes,
}

impl Ahead {
    /// None yet, and never more than so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Ahead {
        Ahead { bytes_max, bytes: 0, blocks: BTreeMap::new(), order: BTreeMap::new(), puts: 0 }
    }

    /// Holds a copy of `bytes`, so that the read it came with need not be kept as a whole.
    pub(crate) fn put(&mut self, volume: VolumeId, block: u64, bytes: &[u8]) {
        self.remove((volume.0, block));
        self.puts += 1;
        let held = Held { number: self.puts, bytes: Bytes::copy_from_slice(bytes) };
        self.bytes += held.bytes.len();
        self.order.insert(self.puts, (volume.0, block));
        self.blocks.insert((volume.0, block), held);
        while self.bytes > self.bytes_max
            && let Some((_, first)) = self.order.first_key_value()
        {
            let first = *first;
            self.remove(first);
        }
    }

    pub(crate) fn holds(&self, volume: VolumeId, block: u64) -> bool {
        self.blocks.contains_key(&(volume.0, block))
    }

    pub(crate) fn take(&mut self, volume: VolumeId, block: u64) -> Option<Bytes> {
        self.remove((volume.0, block))
    }

    /// `blocks` are about to change.
    pub(crate) fn forget(&mut self, volume: VolumeId, blocks: &Range<u64>) {
        if blocks.is_empty() {
            return;
        }
        let within = (volume.0, blocks.start)..(volume.0, blocks.end);
        let found: Vec<Place> = self.blocks.range(within).map(|(place, _)| *place).collect();
        found.into_iter().for_each(|place| drop(self.remove(place)));
    }

    fn remove(&mut self, place: Place) -> Option<Bytes> {
        let held = self.blocks.remove(&place)?;
        self.order.remove(&held.number);
        self.bytes -= held.bytes.len();
        Some(held.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_taken_once_and_the_first_go_where_there_are_too_many() {
        let mut ahead = Ahead::new(3 * 4096);
        let (one, other) = (VolumeId(1), VolumeId(2));
        for block in 0..4 {
            ahead.put(one, block, &[block as u8; 4096]);
        }
        assert!(!ahead.holds(one, 0));
        assert_eq!(ahead.take(one, 1).as_deref(), Some(&[1; 4096][..]));
        assert_eq!(ahead.take(one, 1), None);
        ahead.put(one, 2, &[9; 4096]);
        ahead.put(other, 2, &[8; 4096]);
        ahead.put(other, 5, &[7; 4096]);
        assert!(!ahead.holds(one, 3), "it came before the others");
        ahead.forget(other, &(0..3));
        assert!(!ahead.holds(other, 2) && ahead.holds(other, 5));
        assert_eq!(ahead.take(one, 2).as_deref(), Some(&[9; 4096][..]));
        assert_eq!(ahead.take(other, 5).as_deref(), Some(&[7; 4096][..]));
        assert_eq!((ahead.bytes, ahead.order.len()), (0, 0));
    }
}
