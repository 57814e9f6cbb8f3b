//! The 64 bits of a slot. 0 is an empty slot.
//!
//! ```text
//!  63      61 60   56  55   54  48 47            A A-1     0
//! | distance | tag | read | size  | hash bits, 1  | address |
//! ```
//!
//! `distance`: buckets between home and this bucket. `tag`: the low bits of the granule's fine
//! number. `read`: referenced since the mark was last taken. `hash bits`: the hash's bits below the
//! granule, from the top, ended by a 1; how many a slot holds depends on when it was written,
//! because each doubling of the table moves the first of them into the granule.
//!
//! Home and tag name the granule, so a slot knows its hash down to the last of its hash bits.

use super::Place;
use super::growth::Moved;
use super::mapping::Mapping;
use super::spill::Spilled;
use crate::format::SizeCode;

/// The leading bits of a hash, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The known bits at the top, zeros below.
    pub hash: u64,
    /// How many are known, 1 to 64.
    pub known: u32,
}

impl Prefix {
    pub(super) fn whole(hash: u64) -> Prefix {
        Prefix { hash, known: 64 }
    }

    pub(super) fn matches(self, hash: u64) -> bool {
        (self.hash ^ hash) >> (64 - self.known) == 0
    }
}

/// How slots of one index are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotFormat {
    address_bits: u32,
    hash_field_bits: u32,
}

/// What a lookup compares slots with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub(super) home: usize,
    /// The top byte of a matching slot in its home bucket.
    top: u64,
    hash_field: u64,
}

const TAG_SHIFT: u32 = 56;
const SIZE_SHIFT: u32 = 48;
const DISTANCE_SHIFT: u32 = 61;
/// Adding it to a slot moves the slot one bucket further from its home.
pub(super) const ONE_BUCKET: u64 = 1 << DISTANCE_SHIFT;
/// Set when the entry was referenced.
pub(super) const REFERENCED: u64 = 1 << 55;
/// Most buckets between an entry and its home.
pub(super) const DISTANCE_MAX: u64 = 7;

/// Buckets between the slot and its home.
#[inline]
pub(super) fn distance(slot: u64) -> u64 {
    slot >> DISTANCE_SHIFT
}

/// Orders the slots of one bucket by the granules of their hashes; an empty slot has no order.
#[inline]
pub(super) fn order(slot: u64) -> u64 {
    (slot >> TAG_SHIFT) ^ DISTANCE_MAX << 5
}

/// What one more bucket from home adds to the top byte of a slot.
const TOP_STEP: u64 = 1 << 5;

impl SlotFormat {
    pub(super) fn new(address_bits: u32) -> SlotFormat {
        assert!((20..=36).contains(&address_bits), "addresses have 20 to 36 bits");
        SlotFormat { address_bits, hash_field_bits: SIZE_SHIFT - address_bits }
    }

    pub(super) fn address_bits(&self) -> u32 {
        self.address_bits
    }

    /// Hash bits that a freshly written slot holds below its granule.
    pub(super) fn hash_bits_max(&self) -> u32 {
        self.hash_field_bits - 1
    }

    /// The home bucket and the slot (at distance 0) of an entry.
    pub(super) fn pack(&self, mapping: &Mapping, prefix: Prefix, place: Place) -> (usize, u64) {
        assert!(place.address >> self.address_bits == 0, "an address fits the bits promised");
        debug_assert!(prefix.known >= mapping.bits());
        let held = (prefix.known - mapping.bits()).min(self.hash_bits_max());
        let end = 1 << (self.hash_bits_max() - held);
        let field = (self.hash_field(mapping, prefix.hash) & !(end * 2 - 1)) | end;
        let fine = mapping.fine(prefix.hash);
        let slot = place.address
            | field << self.address_bits
            | place.size.to_bits() << SIZE_SHIFT
            | (fine & 31) << TAG_SHIFT;
        ((fine >> 5) as usize, slot)
    }

    pub(super) fn place(&self, slot: u64) -> Place {
        Place { address: self.address(slot), size: SizeCode::from_bits(slot >> SIZE_SHIFT) }
    }

    #[inline]
    pub(super) fn address(&self, slot: u64) -> u64 {
        slot & ((1 << self.address_bits) - 1)
    }

    /// Whether the slot ends its hash bits as every slot does.
    pub(super) fn is_well_formed(&self, slot: u64) -> bool {
        self.field(slot) != 0
    }

    /// What the slot knows of its entry's hash.
    pub(super) fn prefix(&self, mapping: &Mapping, home: usize, slot: u64) -> Prefix {
        let field = self.field(slot);
        let held = self.hash_bits_max() - field.trailing_zeros();
        let below = ((field & (field - 1)) << (64 - self.hash_field_bits)) >> mapping.bits();
        Prefix {
            hash: self.granule(mapping, home, slot) << (64 - mapping.bits()) | below,
            known: mapping.bits() + held,
        }
    }

    /// The fine number of the slot's granule.
    #[inline]
    pub(super) fn fine(home: usize, slot: u64) -> u64 {
        (home as u64) << 5 | ((slot >> TAG_SHIFT) & 31)
    }

    #[inline]
    pub(super) fn granule(&self, mapping: &Mapping, home: usize, slot: u64) -> u64 {
        mapping.granule(SlotFormat::fine(home, slot))
    }

    /// The same entry's home and slot (at distance 0) after the table grew from `old` to `new`;
    /// `None` if that takes a bit of the hash that the slot does not hold.
    #[inline]
    pub(super) fn remap(
        &self,
        old: &Mapping,
        new: &Mapping,
        home: usize,
        slot: u64,
    ) -> Option<(usize, u64)> {
        let mut granule = self.granule(old, home, slot);
        let mut field = self.field(slot);
        if new.bits() != old.bits() {
            granule = granule << 1 | field >> self.hash_bits_max();
            field = (field << 1) & ((1 << self.hash_field_bits) - 1);
            if field == 0 {
                return None;
            }
        }
        let fine = new.fine_of_granule(granule);
        let kept = ((1 << self.address_bits) - 1) | 0xff << SIZE_SHIFT;
        let slot = (slot & kept) | field << self.address_bits | (fine & 31) << TAG_SHIFT;
        Some(((fine >> 5) as usize, slot))
    }

    /// A slot (at distance 0) as an entry of the spill.
    pub(super) fn spilled(&self, mapping: &Mapping, moved: Moved) -> Spilled {
        Spilled {
            prefix: self.prefix(mapping, moved.home, moved.slot),
            place: self.place(moved.slot),
            referenced: moved.slot & REFERENCED != 0,
            note: moved.note,
        }
    }

    /// `slot` with another place and all hash bits of `hash`; distance, tag and mark stay.
    pub(super) fn replaced(&self, mapping: &Mapping, hash: u64, slot: u64, place: Place) -> u64 {
        let kept = slot & (0xff << TAG_SHIFT | REFERENCED);
        self.pack(mapping, Prefix::whole(hash), place).1 | kept
    }

    #[inline]
    pub(super) fn probe(&self, mapping: &Mapping, hash: u64) -> Probe {
        let fine = mapping.fine(hash);
        Probe {
            home: (fine >> 5) as usize,
            top: fine & 31,
            hash_field: self.hash_field(mapping, hash) | 1,
        }
    }

    /// Which of a bucket's slots have the probe's home and tag, as a bit each. `distance` is the
    /// bucket's from the probe's home. An empty slot may be among them.
    #[inline]
    pub(super) fn tagged(probe: &Probe, distance: u64, bucket: &[u64; 8]) -> u32 {
        let wanted = probe.top + distance * TOP_STEP;
        let mut found = 0;
        for (i, slot) in bucket.iter().enumerate() {
            found |= u32::from(slot >> TAG_SHIFT == wanted) << i;
        }
        found
    }

    /// Whether no bucket after one with this last slot holds the probe's home and tag.
    #[inline]
    pub(super) fn ends_at(probe: &Probe, distance: u64, last: u64) -> bool {
        last == 0 || order(last) > order((probe.top + distance * TOP_STEP) << TAG_SHIFT)
    }

    /// Whether a slot of the probe's home and tag agrees with the probe in all hash bits it holds.
    #[inline]
    pub(super) fn agrees(&self, probe: &Probe, slot: u64) -> bool {
        let field = self.field(slot);
        field != 0 && (field ^ probe.hash_field) >> (field.trailing_zeros() + 1) == 0
    }

    #[inline]
    fn field(&self, slot: u64) -> u64 {
        (slot >> self.address_bits) & ((1 << self.hash_field_bits) - 1)
    }

    #[inline]
    fn hash_field(&self, mapping: &Mapping, hash: u64) -> u64 {
        (hash << mapping.bits()) >> (64 - self.hash_field_bits)
    }
}
