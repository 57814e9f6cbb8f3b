//! How much of a hash an entry stands for.

use super::{Index, SLOTS, distance};

impl Index {
    /// How many leading bits of `hash` the entry that matches it and is at `address` knows; `None`
    /// if there is none.
    pub fn known_bits(&self, hash: u64, address: u64) -> Option<u32> {
        if let Some(position) = self.locate(hash, address) {
            let slot = self.table[position];
            let home = position / SLOTS - distance(slot) as usize;
            return Some(self.format.prefix(self.mapping(hash), home, slot).known);
        }
        self.spilled(hash, address).map(|spilled| spilled.prefix.known)
    }
}

impl Index {
    /// Bits of an address, as given when the index was made.
    pub fn address_bits(&self) -> u32 {
        self.format.address_bits()
    }

    /// Buckets it may grow to.
    pub fn buckets_max(&self) -> u64 {
        self.buckets_max
    }
}
