//! Refusals of values, in ACT's order: the error names the first wrong item.

use super::{Index, Storage};

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation {
    /// The item.
    pub(super) item: &'static str,
    /// What its value must be.
    pub(super) expected: &'static str,
}

const RECORD_BYTES_MAX: u32 = 8 << 20;

/// What is wrong up to where ACT counts processors: only the devices.
pub(super) fn devices(names: &[String]) -> Option<Violation> {
    refuse(names.is_empty(), "device-names", "one or more devices, partitions or files")
}

/// What else is wrong with a storage configuration.
pub(super) fn storage(it: &Storage) -> Option<Violation> {
    let range_max = it.record_bytes_range_max;
    let block = it.large_block_bytes();
    refuse(it.test_duration_sec == 0, "test-duration-sec", "1 or more seconds")
        .or_else(|| refuse(it.report_interval_sec == 0, "report-interval-sec", "1 or more seconds"))
        .or_else(|| {
            let wrong = it.record_bytes == 0 || it.record_bytes > RECORD_BYTES_MAX;
            refuse(
                wrong && !it.sizes_from_histograms(),
                "record-bytes",
                "1 to 8388608 bytes, or 0 with `storage-read-histogram` and \
                 `storage-write-histogram`",
            )
        })
        .or_else(|| {
            let wrong = range_max <= it.record_bytes || range_max > RECORD_BYTES_MAX;
            refuse(
                range_max != 0 && wrong,
                "record-bytes-range-max",
                "0, or more than `record-bytes` and at most 8388608 bytes",
            )
        })
        .or_else(|| {
            let wrong = block & block.wrapping_sub(1) != 0 || block > RECORD_BYTES_MAX;
            refuse(wrong, "large-block-op-kbytes", "a power of two from 1 to 8192 KiB")
        })
        .or_else(|| refuse(it.replication_factor == 0, "replication-factor", "1 or more"))
        .or_else(|| refuse(it.update_pct > 100, "update-pct", "0 to 100 %"))
        .or_else(|| refuse(it.defrag_lwm_pct >= 100, "defrag-lwm-pct", "0 to 99 %"))
        .or_else(|| refuse(it.compress_pct > 100, "compress-pct", "0 to 100 %"))
        .or_else(|| {
            let both = it.disable_odsync && it.commit_to_device;
            refuse(both, "disable-odsync", "`no`, since `commit-to-device` needs O_DSYNC")
        })
}

/// What else is wrong with an index configuration.
pub(super) fn index(it: &Index) -> Option<Violation> {
    refuse(it.cache_threads == 0, "cache-threads", "1 or more threads")
        .or_else(|| refuse(it.test_duration_sec == 0, "test-duration-sec", "1 or more seconds"))
        .or_else(|| refuse(it.report_interval_sec == 0, "report-interval-sec", "1 or more seconds"))
        .or_else(|| refuse(it.replication_factor == 0, "replication-factor", "1 or more"))
        .or_else(|| refuse(it.defrag_lwm_pct >= 100, "defrag-lwm-pct", "0 to 99 %"))
}

fn refuse(wrong: bool, item: &'static str, expected: &'static str) -> Option<Violation> {
    wrong.then_some(Violation { item, expected })
}
