//! The configuration of a test: the items of a configuration file, with their defaults.
//!
//! Integers are unsigned 32-bit as in ACT, and keep its names with `_` for `-`. Two readers fill
//! the same types: [`Storage::parse`] refuses text that ACT silently misreads, and
//! [`Storage::parse_compat`] reads and prints as ACT 6 does. The same holds for [`Index`].

mod compat;
mod grammar;
mod histogram;
mod items;
mod legacy;
mod strict;
mod test_options;
mod validate;
mod write;

use crate::buckets::BucketUnit;

pub use compat::CompatReading;
pub use histogram::{SizeHistogram, SizeShare};
pub use items::{ItemFamily, index_item_names, storage_item_names};
pub use strict::{ConfigError, Finding, Parsed};
pub use test_options::{ArrivalKind, EngineKind, LatencyRule, LoadModel, TestOptions};

/// Load on data devices: record reads, large-block reads and writes, optional record writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// Devices, partitions or files, in the order of the file.
    pub device_names: Vec<String>,
    /// Not 0: targets are files of so many MiB.
    pub file_size_mbytes: u32,
    /// Threads of record reads and writes; 0: five for each processor.
    pub service_threads: u32,
    /// Seconds.
    pub test_duration_sec: u32,
    /// Seconds.
    pub report_interval_sec: u32,
    /// Buckets in µs, not ms.
    pub microsecond_histograms: bool,
    /// All devices together.
    pub read_reqs_per_sec: u32,
    /// All devices together.
    pub write_reqs_per_sec: u32,
    /// Bytes.
    pub record_bytes: u32,
    /// Bytes; 0: all records are `record_bytes` long.
    pub record_bytes_range_max: u32,
    /// KiB.
    pub large_block_op_kbytes: u32,
    /// Multiplies writes.
    pub replication_factor: u32,
    /// Share of writes that read first, %.
    pub update_pct: u32,
    /// Fill below which a block is defragmented, %.
    pub defrag_lwm_pct: u32,
    /// No large-block reads.
    pub no_defrag_reads: bool,
    /// Share of random bytes in what is written, %.
    pub compress_pct: u32,
    /// Without O_DSYNC.
    pub disable_odsync: bool,
    /// Each record is written synchronously besides.
    pub commit_to_device: bool,
    /// Granule of such writes, bytes; 0: the device's own.
    pub commit_min_bytes: u32,
    /// A thread per device that reads all of it in a row.
    pub tomb_raider: bool,
    /// µs before each of its reads.
    pub tomb_raider_sleep_usec: u32,
    /// Lag that stops the test, seconds; 0: none does.
    pub max_lag_sec: u32,
    /// Large blocks a second of each kind, all devices together; 0: derived. Legacy of ACT 1 and 2.
    pub large_block_ops_per_sec: u32,
    /// The options of the sizing paper.
    pub paper: PaperOptions,
    /// How the load is issued and judged.
    pub test: TestOptions,
}

/// Load on index devices: reads and writes of 4 KiB.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// Devices, partitions or files, in the order of the file.
    pub device_names: Vec<String>,
    /// Not 0: targets are files of so many MiB.
    pub file_size_mbytes: u32,
    /// Threads that read; 0: five for each processor.
    pub service_threads: u32,
    /// Threads that read and write.
    pub cache_threads: u32,
    /// Seconds.
    pub test_duration_sec: u32,
    /// Seconds.
    pub report_interval_sec: u32,
    /// Buckets in µs, not ms.
    pub microsecond_histograms: bool,
    /// All devices together.
    pub read_reqs_per_sec: u32,
    /// All devices together.
    pub write_reqs_per_sec: u32,
    /// Multiplies writes.
    pub replication_factor: u32,
    /// Fill below which a block is defragmented, %.
    pub defrag_lwm_pct: u32,
    /// Without O_DSYNC.
    pub disable_odsync: bool,
    /// Lag that stops the test, seconds; 0: none does.
    pub max_lag_sec: u32,
    /// How the load is issued and judged.
    pub test: TestOptions,
}

/// Options that only the paper on sizing with ACT describes.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperOptions {
    /// Sizes of small reads; `None`: those of the records.
    pub read_histogram: Option<SizeHistogram>,
    /// Sizes of records written; `None`: those of the records.
    pub write_histogram: Option<SizeHistogram>,
    /// Blocks a second that become free without being read.
    pub direct_frees: u32,
    /// Large blocks a second that the cluster writes; 0: not known, `direct_frees` has no effect.
    pub total_lbw_per_sec: u32,
    /// Factor on large-block reads, %.
    pub lbr_req_offset: u32,
    /// Factor on large-block writes, %.
    pub lbw_req_offset: u32,
    /// Factor on sizes read, %.
    pub read_size_offset: u32,
    /// Factor on sizes written, %.
    pub write_size_offset: u32,
}

impl Storage {
    /// The unit of the log's histograms.
    pub fn bucket_unit(&self) -> BucketUnit {
        unit(self.microsecond_histograms)
    }

    /// Bytes of a large block; ACT's arithmetic, which wraps around where it is not validated.
    pub fn large_block_bytes(&self) -> u32 {
        self.large_block_op_kbytes.wrapping_mul(1024)
    }

    /// Do sizes come from the paper's histograms instead of `record-bytes`?
    pub fn sizes_from_histograms(&self) -> bool {
        self.record_bytes == 0
            && (self.paper.read_histogram.is_some() || self.paper.write_histogram.is_some())
    }
}

impl Index {
    /// The unit of the log's histograms.
    pub fn bucket_unit(&self) -> BucketUnit {
        unit(self.microsecond_histograms)
    }
}

impl Default for Storage {
    fn default() -> Storage {
        Storage {
            device_names: Vec::new(),
            file_size_mbytes: 0,
            service_threads: 0,
            test_duration_sec: 0,
            report_interval_sec: 1,
            microsecond_histograms: false,
            read_reqs_per_sec: 0,
            write_reqs_per_sec: 0,
            record_bytes: 1536,
            record_bytes_range_max: 0,
            large_block_op_kbytes: 128,
            replication_factor: 1,
            update_pct: 0,
            defrag_lwm_pct: 50,
            no_defrag_reads: false,
            compress_pct: 100,
            disable_odsync: false,
            commit_to_device: false,
            commit_min_bytes: 0,
            tomb_raider: false,
            tomb_raider_sleep_usec: 0,
            max_lag_sec: 10,
            large_block_ops_per_sec: 0,
            paper: PaperOptions::default(),
            test: TestOptions::default(),
        }
    }
}

impl Default for Index {
    fn default() -> Index {
        Index {
            device_names: Vec::new(),
            file_size_mbytes: 0,
            service_threads: 0,
            cache_threads: 8,
            test_duration_sec: 0,
            report_interval_sec: 1,
            microsecond_histograms: false,
            read_reqs_per_sec: 0,
            write_reqs_per_sec: 0,
            replication_factor: 1,
            defrag_lwm_pct: 50,
            disable_odsync: false,
            max_lag_sec: 10,
            test: TestOptions::default(),
        }
    }
}

impl Default for PaperOptions {
    fn default() -> PaperOptions {
        PaperOptions {
            read_histogram: None,
            write_histogram: None,
            direct_frees: 0,
            total_lbw_per_sec: 0,
            lbr_req_offset: 100,
            lbw_req_offset: 100,
            read_size_offset: 100,
            write_size_offset: 100,
        }
    }
}

fn unit(microsecond_histograms: bool) -> BucketUnit {
    if microsecond_histograms { BucketUnit::Microseconds } else { BucketUnit::Milliseconds }
}
