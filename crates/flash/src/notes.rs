//! Overwrites that nobody has checked yet.
//!
//! The index knows some 35 to 45 bits of a key's hash. A put that finds a matching slot therefore
//! cannot tell, without reading, whether it overwrites its own key or would hide another one. It
//! assumes the first and leaves a note: where the hidden record is, and the whole hash of the key
//! that was put. The footer of the hidden record's segment settles the note: the same whole hash,
//! it was an overwrite; another one, the hidden record gets its slot back. Until then a get that
//! finds only records of other keys asks the notes. So an overwrite needs no read and no key is
//! lost.
//!
//! Invariants:
//! 1. A hidden record is reachable through its note as long as the note stands.
//! 2. Every note is settled before its segment is freed.
//! 3. A key that has a slot has no record hidden by another key: a put looks for one first. So what
//!    a note brings back is never out of date.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use smallvec::SmallVec;

use crate::format::PIECE_SPACE;
use crate::format::SizeCode;
use crate::types::{Owner, SpaceId};

/// One unchecked overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    /// Where the hidden record is.
    pub address: u64,
    /// The whole hash of the key that was put over it.
    pub by: u128,
    /// Space and partition of the key that was put, which was not counted as a new one. The space
    /// of pieces once it was dropped.
    pub owner: Owner,
    /// How long the hidden record is.
    pub size: SizeCode,
    /// How many leading bits of the index hash the two keys are known to share.
    pub shared_bits: u8,
}

/// The pending notes of a shard.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// By the leading bits of the index hash; hardly ever more than one.
    by_prefix: HashMap<u32, SmallVec<[Note; 1]>, BuildHasherDefault<PrefixHasher>>,
    /// Addresses of the hidden records of each segment, so that most records of a segment are seen
    /// to have no note without a look among all notes.
    by_segment: HashMap<u32, Vec<u64>, BuildHasherDefault<PrefixHasher>>,
    count: usize,
}

/// Bits of the prefix notes are found by; slots always know more.
const PREFIX_BITS: u32 = 20;

impl Notes {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds a note on a record in `segment`.
    pub(crate) fn add(&mut self, segment: u32, note: Note) {
        self.by_prefix.entry(prefix(index_hash(note.by))).or_default().push(note);
        self.by_segment.entry(segment).or_default().push(note.address);
        self.count += 1;
    }

    /// Hidden records that may be of the key with `hash`: those hidden by another key that shares
    /// with it what the slot knew.
    pub(crate) fn hidden(&self, hash: u128) -> impl Iterator<Item = Note> + '_ {
        let wanted = index_hash(hash);
        let list = if self.count == 0 { None } else { self.by_prefix.get(&prefix(wanted)) };
        list.into_iter().flatten().copied().filter(move |note| {
            let differing = index_hash(note.by) ^ wanted;
            note.by != hash && differing.leading_zeros() >= u32::from(note.shared_bits)
        })
    }

    /// Removes and returns the note on the record at `address` in `segment` whose own whole hash is
    /// `hash`, or the one that was put over it: both share the prefix.
    pub(crate) fn take(&mut self, hash: u128, segment: u32, address: u64) -> Option<Note> {
        let noted = self.by_segment.get_mut(&segment)?;
        let seen = noted.iter().position(|noted| *noted == address)?;
        let key = prefix(index_hash(hash));
        let list = self.by_prefix.get_mut(&key)?;
        let at = list.iter().position(|note| note.address == address)?;
        noted.swap_remove(seen);
        if noted.is_empty() {
            self.by_segment.remove(&segment);
        }
        let note = list.swap_remove(at);
        if list.is_empty() {
            self.by_prefix.remove(&key);
        }
        self.count -= 1;
        Some(note)
    }

    /// Addresses of the hidden records in `segment`, in order.
    pub(crate) fn in_segment(&self, segment: u32) -> Vec<u64> {
        let mut noted = self.by_segment.get(&segment).cloned().unwrap_or_default();
        noted.sort_unstable();
        noted
    }

    /// What was put into a space, or into one partition of it, was dropped and counts no more.
    pub(crate) fn disown(&mut self, space: SpaceId, partition: Option<u16>) {
        for note in self.by_prefix.values_mut().flatten() {
            if note.owner.space == space && partition.is_none_or(|p| p == note.owner.partition) {
                note.owner.space = PIECE_SPACE;
            }
        }
    }

    /// Visits the notes whose hidden record may have an index hash in `first..=last`.
    pub(crate) fn in_range(&self, first: u64, last: u64, visit: &mut dyn FnMut(&Note)) {
        let reaches = |note: &&Note| {
            let unknown = u64::MAX.checked_shr(u32::from(note.shared_bits)).unwrap_or(0);
            let by = index_hash(note.by);
            by & !unknown <= last && by | unknown >= first
        };
        let prefixes = prefix(first)..=prefix(last);
        if (prefixes.end() - prefixes.start()) as usize >= self.by_prefix.len() {
            self.iter().filter(reaches).for_each(visit);
            return;
        }
        let lists = prefixes.filter_map(|prefix| self.by_prefix.get(&prefix));
        lists.flatten().filter(reaches).for_each(visit);
    }

    /// Every note.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Note> {
        self.by_prefix.values().flatten()
    }

    /// Memory used, bytes, about.
    pub(crate) fn bytes(&self) -> u64 {
        let bucket = std::mem::size_of::<(u32, SmallVec<[Note; 1]>)>() + 1;
        let segment = std::mem::size_of::<(u32, Vec<u64>)>() + 1;
        let tables = self.by_prefix.capacity() * bucket + self.by_segment.capacity() * segment;
        (tables * 8 / 7 + self.count * 2 * std::mem::size_of::<u64>()) as u64
    }
}

/// The half of the whole hash that the index uses.
pub(crate) fn index_hash(hash: u128) -> u64 {
    (hash >> 64) as u64
}

fn prefix(hash: u64) -> u32 {
    (hash >> (64 - PREFIX_BITS)) as u32
}

/// Prefixes are bits of a good hash already.
#[derive(Debug, Default)]
pub(crate) struct PrefixHasher(u64);

impl std::hash::Hasher for PrefixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u32(&mut self, prefix: u32) {
        self.0 = u64::from(prefix).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
