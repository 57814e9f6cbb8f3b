//! The sizing paper's mode: sizes and rates measured on a cluster, not derived from requests.
//!
//! Reads and writes are those of a device, so they already include replicas and updates. The
//! modelled size of a bucket is its lower bound: only so do the paper's own rates come out.

use super::{DeriveError, StorageRates, explain};
use crate::config::{SizeHistogram, Storage};

/// Rates where sizes come from histograms.
pub(super) fn derive(it: &Storage) -> Result<StorageRates, DeriveError> {
    if it.read_reqs_per_sec == 0 && it.write_reqs_per_sec == 0 {
        return Err(DeriveError::NoRequests);
    }
    let needed = |histogram: &Option<SizeHistogram>, rate: u32, names: [&str; 2]| {
        if histogram.is_none() && rate != 0 {
            let [rate_name, histogram_name] = names;
            return Err(DeriveError::Paper(format!(
                "`{rate_name}` is {rate} and `record-bytes` is 0, but there is no \
                 `{histogram_name}` to take sizes from; add it"
            )));
        }
        Ok(())
    };
    let options = &it.paper;
    let names = ["write-reqs-per-sec", "storage-write-histogram"];
    needed(&options.write_histogram, it.write_reqs_per_sec, names)?;
    needed(
        &options.read_histogram,
        it.read_reqs_per_sec,
        ["read-reqs-per-sec", "storage-read-histogram"],
    )?;
    let mean = |histogram: &Option<SizeHistogram>, offset| {
        histogram.as_ref().map_or(0.0, |sizes| sizes.mean_bytes(offset))
    };
    let stored_bytes_mean = mean(&options.write_histogram, options.write_size_offset);
    let read_bytes_mean = mean(&options.read_histogram, options.read_size_offset);
    let block = it.large_block_bytes();
    let records_per_block = block.checked_div(stored_bytes_mean as u32).unwrap_or(0);
    let amplification = 100.0 / f64::from(100 - it.defrag_lwm_pct);
    let new_blocks = match it.write_reqs_per_sec {
        0 => 0.0,
        writes => f64::from(writes) / f64::from(records_per_block),
    };
    let base = new_blocks * amplification;
    let written = if it.commit_to_device { new_blocks * (amplification - 1.0) } else { base };
    let sizes = options.write_histogram.as_ref().or(options.read_histogram.as_ref());
    let shares = sizes.map(|sizes| sizes.shares(options.write_size_offset)).unwrap_or_default();
    let stored = |size: Option<f64>| (size.unwrap_or(0.0).max(1.0) as u32).next_multiple_of(16);
    let mut rates = StorageRates {
        stored_bytes_min: stored(shares.first().map(|size| size.bytes)),
        stored_bytes_max: stored(shares.last().map(|size| size.bytes)),
        stored_bytes_mean,
        read_bytes_mean,
        records_per_block,
        amplification,
        internal_reads: it.read_reqs_per_sec,
        internal_writes: if it.commit_to_device { it.write_reqs_per_sec } else { 0 },
        record_writes: f64::from(it.write_reqs_per_sec),
        large_reads: if it.no_defrag_reads { 0.0 } else { base * read_factor(it)? },
        large_writes: written * f64::from(options.lbw_req_offset) / 100.0,
        steps: Vec::new(),
    };
    rates.steps = explain::paper(it, &rates, base);
    Ok(rates)
}

/// What large-block reads are multiplied with: the offset, and the share of the blocks written
/// that do not become free by themselves.
pub(super) fn read_factor(it: &Storage) -> Result<f64, DeriveError> {
    let (frees, total) = (it.paper.direct_frees, it.paper.total_lbw_per_sec);
    let offset = f64::from(it.paper.lbr_req_offset) / 100.0;
    if total == 0 {
        return Ok(offset);
    }
    if frees > total {
        return Err(DeriveError::Paper(format!(
            "`direct-frees` is {frees}, more than the {total} large blocks a second of \
             `total-lbw-per-sec`; no more blocks can become free than are written"
        )));
    }
    Ok(offset * f64::from(total - frees) / f64::from(total))
}
