//! Fingerprints of entries that left the small queue without a second hit, or were left out.
//!
//! A fixed table of buckets of eight; a full bucket forgets its oldest. A fingerprint counts only
//! while fewer entries came here since than the cache holds. The paper has it so many as the main
//! queue holds: none as long as that is empty, so that gets in a loop longer than the cache would
//! never find anything.

/// Which entries left the small queue lately.
#[derive(Debug)]
pub(super) struct Ghosts {
    buckets: Vec<Bucket>,
    stamp: u32,
}

const WAYS: usize = 8;

/// A cache line of fingerprints: hash bits in the upper half, stamp in the lower; 0 is empty.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Bucket([u64; WAYS]);

impl Ghosts {
    /// Room for about `count` fingerprints.
    pub(super) fn new(count: usize) -> Ghosts {
        Ghosts { buckets: vec![Bucket([0; WAYS]); count.max(1).div_ceil(WAYS)], stamp: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<Bucket>()
    }

    pub(super) fn remember(&mut self, hash: u128) {
        self.stamp = self.stamp.wrapping_add(1);
        let (fresh, stamp) = (entry(hash, self.stamp), self.stamp);
        let age = |slot: u64| if slot == 0 { u32::MAX } else { stamp.wrapping_sub(slot as u32) };
        if let Some(oldest) = self.bucket(hash).iter_mut().max_by_key(|slot| age(**slot)) {
            *oldest = fresh;
        }
    }

    /// Whether `hash` was remembered, and fewer than `count` others since; forgets it.
    pub(super) fn recall(&mut self, hash: u128, count: u64) -> bool {
        if count == 0 {
            return false;
        }
        let stamp = self.stamp;
        let wanted = entry(hash, 0);
        let found = self.bucket(hash).iter_mut().find(|slot| **slot & !STAMP == wanted);
        let slot = found.map_or(0, std::mem::take);
        slot != 0 && u64::from(stamp.wrapping_sub(slot as u32)) < count
    }

    fn bucket(&mut self, hash: u128) -> &mut [u64; WAYS] {
        let buckets = self.buckets.len() as u128;
        let bucket = ((u128::from(hash as u64) * buckets) >> 64) as usize;
        &mut self.buckets[bucket].0
    }
}

const STAMP: u64 = u32::MAX as u64;

/// The fingerprint is never 0, so that no entry looks empty.
fn entry(hash: u128, stamp: u32) -> u64 {
    let fingerprint = (hash >> 64) as u64 | 1 << 32;
    fingerprint & !STAMP | u64::from(stamp)
}
