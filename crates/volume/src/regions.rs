//! The regions of a volume where writes may have reached the backing before the removal of the
//! cached copies was durable. After power loss, clean blocks of these regions are let go.
//!
//! A region is opened, durably, before the first write to it begins; it is closed once the backing
//! was flushed and the cache synced with no write to it in between.

use std::ops::Range;

use crate::meta::{BLOCK_BYTES, RegionsRecord};

/// Regions of a volume at most.
const REGIONS_MAX: u64 = 4096;
/// Smallest region.
const REGION_BYTES_MIN: u64 = 16 << 20;

/// The regions of one volume.
#[derive(Debug)]
pub(crate) struct Regions {
    region_bytes: u64,
    /// Open on the medium.
    durable: Vec<u64>,
    /// Open, or to be opened with the next record.
    wanted: Vec<u64>,
    /// What the record that was made last opens once it is durable.
    opening: Vec<u64>,
    /// Written since the last sweep began.
    written: Vec<u64>,
    /// Writes begun and not ended, a region.
    writing: Vec<u32>,
}

impl Regions {
    /// All closed, for a volume of `bytes`.
    pub(crate) fn new(bytes: u64) -> Regions {
        let fitting = bytes.div_ceil(REGIONS_MAX).next_power_of_two();
        let region_bytes = fitting.max(REGION_BYTES_MIN);
        let words = bytes.div_ceil(region_bytes).div_ceil(64) as usize;
        let none = vec![0; words];
        Regions {
            region_bytes,
            durable: none.clone(),
            wanted: none.clone(),
            opening: none.clone(),
            written: none,
            writing: vec![0; words * 64],
        }
    }

    /// Notes that a write to `blocks` wants to begin: it may once [`Regions::are_open`], and must
    /// end with [`Regions::end_write`].
    pub(crate) fn begin_write(&mut self, blocks: &Range<u64>) {
        for region in self.of(blocks) {
            let (word, bit) = ((region / 64) as usize, 1u64 << (region % 64));
            self.wanted[word] |= bit;
            self.written[word] |= bit;
            self.writing[region as usize] += 1;
        }
    }

    /// Whether the regions of `blocks` are open durably.
    pub(crate) fn are_open(&self, blocks: &Range<u64>) -> bool {
        self.of(blocks).all(|region| self.durable[(region / 64) as usize] >> (region % 64) & 1 != 0)
    }

    /// A write has ended.
    pub(crate) fn end_write(&mut self, blocks: &Range<u64>) {
        for region in self.of(blocks) {
            self.writing[region as usize] -= 1;
        }
    }

    /// The record that opens what is wanted; [`Regions::opened`] once it is durable.
    pub(crate) fn record(&mut self) -> RegionsRecord {
        self.opening.clone_from(&self.wanted);
        RegionsRecord { region_bytes: self.region_bytes, bits: self.wanted.clone() }
    }

    /// The record that was made last is durable.
    pub(crate) fn opened(&mut self) {
        self.durable.iter_mut().zip(&self.opening).for_each(|(open, opening)| *open |= opening);
    }

    /// Begins a sweep: what is being written, or will be from now on, stays open.
    pub(crate) fn begin_sweep(&mut self) {
        for (word, writing) in self.written.iter_mut().zip(self.writing.chunks(64)) {
            let bits = writing.iter().enumerate();
            *word = bits.fold(0, |word, (bit, writes)| word | u64::from(*writes > 0) << bit);
        }
    }

    /// Ends a sweep, backing flushed and cache synced: closes what was not written meanwhile, at
    /// once for writers, and returns the record to put; `None`: nothing was closed.
    pub(crate) fn end_sweep(&mut self) -> Option<RegionsRecord> {
        if self.durable == self.written || self.durable.iter().all(|word| *word == 0) {
            return None;
        }
        self.durable.iter_mut().zip(&self.written).for_each(|(open, written)| *open &= written);
        self.wanted.clone_from(&self.written);
        // It stays closed too where a record of before opened it: that is not the newest any more.
        self.opening.iter_mut().zip(&self.written).for_each(|(open, written)| *open &= written);
        Some(RegionsRecord { region_bytes: self.region_bytes, bits: self.wanted.clone() })
    }

    /// The record that says that all are closed.
    pub(crate) fn closed(&self) -> RegionsRecord {
        RegionsRecord { region_bytes: self.region_bytes, bits: Vec::new() }
    }

    /// Whether any region is open.
    pub(crate) fn any_open(&self) -> bool {
        self.durable.iter().any(|word| *word != 0)
    }

    /// The blocks of the regions that a record found on the medium says were open.
    pub(crate) fn blocks_of(record: &RegionsRecord) -> Vec<Range<u64>> {
        let blocks = (record.region_bytes / BLOCK_BYTES).max(1);
        let words = record.bits.iter().enumerate();
        let regions = words.flat_map(|(at, word)| {
            (0..64u64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at as u64 * 64 + bit)
        });
        regions.map(|region| region * blocks..(region + 1) * blocks).collect()
    }

    fn of(&self, blocks: &Range<u64>) -> Range<u64> {
        let per_region = self.region_bytes / BLOCK_BYTES;
        let end = blocks.end.div_ceil(per_region).min(self.wanted.len() as u64 * 64);
        blocks.start / per_region..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_written_during_a_sweep_stays_open() {
        let mut regions = Regions::new(1 << 30);
        let per_region = REGION_BYTES_MIN / BLOCK_BYTES;
        let across = per_region * 3 - 1..per_region * 3 + 1;
        let begins = |regions: &mut Regions, blocks: &Range<u64>| {
            regions.begin_write(blocks);
            regions.are_open(blocks)
        };
        assert!(!begins(&mut regions, &(0..1)));
        assert!(!begins(&mut regions, &across));
        let record = regions.record();
        assert_eq!(record.bits, [0b1101]);
        regions.opened();
        assert!(regions.are_open(&across));
        regions.end_write(&across);
        regions.begin_sweep();
        assert!(!begins(&mut regions, &(per_region..per_region + 1)));
        let closed = regions.end_sweep().unwrap();
        // The first write is still on its way, the last began during the sweep.
        assert_eq!(closed.bits, [0b0011]);
        assert!(regions.are_open(&(0..1)) && !regions.are_open(&across));
        assert!(!regions.are_open(&(per_region..per_region + 1)));
        assert_eq!(Regions::blocks_of(&closed), [0..per_region, per_region..2 * per_region]);
    }

    /// A write waits for the record that opens its region while a sweep ends, and another begins in
    /// a region which that record held open and the sweep closed.
    #[test]
    fn a_region_that_a_sweep_closed_is_not_opened_by_a_record_of_before() {
        let mut regions = Regions::new(1 << 30);
        let per_region = REGION_BYTES_MIN / BLOCK_BYTES;
        let [third, fifth] = [3, 5].map(|region| region * per_region..region * per_region + 1);
        regions.begin_write(&third);
        assert_eq!(regions.record().bits, [0b1000]);
        regions.opened();
        regions.end_write(&third);
        regions.begin_sweep();
        regions.begin_write(&fifth);
        assert_eq!(regions.record().bits, [0b10_1000]);
        assert_eq!(regions.end_sweep().unwrap().bits, [0b10_0000]);
        regions.begin_write(&third);
        regions.opened();
        assert!(regions.are_open(&fifth) && !regions.are_open(&third));
    }
}
