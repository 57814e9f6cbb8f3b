//! Measurements of a running system, as far as they are known.

use super::DeviceLoad;
use crate::config::{LoadModel, SizeHistogram, Storage};

/// A load, of one namespace on one node. Rates are per second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Reads of records from devices.
    pub reads: Option<f64>,
    /// Records written.
    pub writes: Option<f64>,
    /// Sizes read.
    pub read_sizes: Option<SizeHistogram>,
    /// Sizes written.
    pub write_sizes: Option<SizeHistogram>,
    /// Mean size of a record, bytes; where there are no histograms.
    pub record_bytes: Option<u32>,
    /// Large blocks written.
    pub large_writes: Option<f64>,
    /// Large blocks read to be defragmented.
    pub defrag_reads: Option<f64>,
    /// Large blocks that became free without being read.
    pub direct_frees: Option<f64>,
    /// KiB of a large block.
    pub large_block_kbytes: Option<u32>,
    /// Fill below which blocks are defragmented, %.
    pub defrag_lwm_pct: Option<u32>,
    /// Where transfers go.
    pub model: Option<LoadModel>,
    /// What a device did, as the kernel counts it.
    pub device_load: Option<DeviceLoad>,
}

/// KiB of the large block that transfers of `mean` bytes are likely to be of.
pub(super) fn large_block_kbytes(mean: f64) -> Option<u32> {
    let kbytes = [64u32, 128, 256, 512, 1024, 2048, 4096, 8192];
    let distance = |kbytes: &u32| (f64::from(*kbytes * 1024) - mean).abs();
    let nearest = kbytes.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.filter(|_| mean >= 32.0 * 1024.0)
}

/// Records written a second behind so many large blocks, at the amplification of the defaults.
pub(super) fn records_behind(large_blocks: f64, block_kbytes: u32, record_bytes: u32) -> f64 {
    let stored = record_bytes.max(1).next_multiple_of(16);
    let records = (block_kbytes * 1024 / stored).max(1);
    let amplification = 100.0 / f64::from(100 - Storage::default().defrag_lwm_pct);
    large_blocks * f64::from(records) / amplification
}

impl Profile {
    /// Fills what is open here with what `other` knows.
    pub fn complete(self, other: Profile) -> Profile {
        Profile {
            reads: self.reads.or(other.reads),
            writes: self.writes.or(other.writes),
            read_sizes: self.read_sizes.or(other.read_sizes),
            write_sizes: self.write_sizes.or(other.write_sizes),
            record_bytes: self.record_bytes.or(other.record_bytes),
            large_writes: self.large_writes.or(other.large_writes),
            defrag_reads: self.defrag_reads.or(other.defrag_reads),
            direct_frees: self.direct_frees.or(other.direct_frees),
            large_block_kbytes: self.large_block_kbytes.or(other.large_block_kbytes),
            defrag_lwm_pct: self.defrag_lwm_pct.or(other.defrag_lwm_pct),
            model: self.model.or(other.model),
            device_load: self.device_load.or(other.device_load),
        }
    }

    /// Puts what is known into a configuration; rates of requests stay the caller's, who knows
    /// over how many drives they are spread.
    pub fn apply(&self, it: &mut Storage) {
        if let Some(kbytes) = self.large_block_kbytes {
            it.large_block_op_kbytes = kbytes;
        }
        if let Some(percent) = self.defrag_lwm_pct {
            it.defrag_lwm_pct = percent;
        }
        if let Some(model) = self.model {
            it.test.model = model;
        }
        if let Some(bytes) = self.record_bytes {
            it.record_bytes = bytes;
        }
        // Histograms count what a device does, copies and updates included, and only together
        // they say all sizes.
        let both = self.read_sizes.is_some() && self.write_sizes.is_some();
        if both {
            it.record_bytes = 0;
            it.record_bytes_range_max = 0;
            (it.replication_factor, it.update_pct) = (1, 0);
            it.paper.read_histogram.clone_from(&self.read_sizes);
            it.paper.write_histogram.clone_from(&self.write_sizes);
        } else if let Some(sizes) = self.write_sizes.as_ref().or(self.read_sizes.as_ref()) {
            it.record_bytes = (sizes.mean_bytes(100).round() as u32).max(1);
        }
        if let (Some(frees), Some(total)) = (self.direct_frees, self.large_writes) {
            it.paper.total_lbw_per_sec = total.round() as u32;
            it.paper.direct_frees = (frees.round() as u32).min(it.paper.total_lbw_per_sec);
        }
    }
}
