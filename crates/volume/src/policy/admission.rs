//! Whether a block that missed is worth caching: at its n-th miss.
//!
//! A table of fixed size counts misses. In each of its sets it forgets the block that missed
//! longest ago. A block that is read once, as by a scan, takes four bytes here and not a block of
//! the cache.
//!
//! Two blocks whose hashes agree are counted as one: the table is a hint, and a block that is
//! admitted early does no harm.

/// Blocks that share a set.
const WAYS: usize = 8;

/// Misses that are counted up to, at most.
pub const HITS_MAX: u8 = 15;

/// Counts misses of blocks. Memory: four bytes for each block remembered.
#[derive(Debug)]
pub struct Admission {
    /// Each set from the block that missed last to the one that missed longest ago.
    sets: Box<[[Slot; WAYS]]>,
}

/// 28 bits of the hash of a block, and how often it missed: 0 for an empty slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Slot(u32);

/// What to do with a block that missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Cache it.
    Admit,
    /// Not yet.
    Reject,
}

impl Admission {
    /// Remembers about so many blocks (at least eight).
    pub fn new(blocks: usize) -> Admission {
        let sets = blocks.div_ceil(WAYS).max(1).next_power_of_two();
        Admission { sets: vec![[Slot::default(); WAYS]; sets].into_boxed_slice() }
    }

    /// A block missed; `hash` tells blocks of all volumes apart. It is admitted at its `hits`-th
    /// miss (0 and 1: at its first; at most [`HITS_MAX`]) and then forgotten.
    pub fn on_miss(&mut self, hash: u64, hits: u8) -> Verdict {
        if hits <= 1 {
            return Verdict::Admit;
        }
        let tag = (hash >> 36) as u32;
        let at = hash as usize & (self.sets.len() - 1);
        let set = &mut self.sets[at];
        let found = set.iter().position(|slot| slot.0 & 0xf != 0 && slot.0 >> 4 == tag);
        let misses = found.map_or(0, |way| set[way].0 & 0xf) + 1;
        if misses >= u32::from(hits.min(HITS_MAX)) {
            if let Some(way) = found {
                set[way..].rotate_left(1);
                set[WAYS - 1] = Slot::default();
            }
            return Verdict::Admit;
        }
        set[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = Slot(tag << 4 | misses);
        Verdict::Reject
    }
}
