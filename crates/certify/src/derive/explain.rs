//! The derivation in words: each rate with its formula and the numbers in it.

use super::StorageRates;
use crate::config::{Index, Storage};

/// One derived figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it is.
    pub name: &'static str,
    /// How it comes about, with the numbers put in.
    pub formula: String,
    /// What it is equal to.
    pub value: f64,
    /// Of what, per what.
    pub unit: &'static str,
}

fn step(name: &'static str, formula: String, value: f64, unit: &'static str) -> Step {
    Step { name, formula, value, unit }
}

/// Steps of a storage configuration. `asked` are the large blocks before factors.
pub(super) fn storage(it: &Storage, rates: &StorageRates, writes: u32, asked: f64) -> Vec<Step> {
    let (reads, requests) = (it.read_reqs_per_sec, it.write_reqs_per_sec);
    let mut steps = vec![
        step(
            "internal-read-reqs-per-sec",
            format!("{reads} reads + {requests} writes x {} % updates", it.update_pct),
            f64::from(rates.internal_reads),
            "reads/s",
        ),
        step(
            "writes with replicas",
            format!("{requests} writes x {} copies", it.replication_factor),
            f64::from(writes),
            "writes/s",
        ),
        step(
            "internal-write-reqs-per-sec",
            match it.commit_to_device {
                true => "every write, as commit-to-device is on".to_owned(),
                false => "none, as commit-to-device is off".to_owned(),
            },
            f64::from(rates.internal_writes),
            "writes/s",
        ),
        step(
            "mean stored record",
            format!(
                "({} + {}) / 2, each rounded up to 16",
                rates.stored_bytes_min, rates.stored_bytes_max
            ),
            rates.stored_bytes_mean,
            "bytes",
        ),
        records_per_block(it, rates),
        amplification(it, rates),
    ];
    if it.large_block_ops_per_sec != 0 {
        steps.push(step("large blocks", "as given".to_owned(), asked, "blocks/s"));
    } else {
        steps.push(step(
            "large blocks",
            format!("{writes} / {} x {:.4}", rates.records_per_block, rates.amplification),
            asked,
            "blocks/s",
        ));
    }
    steps.extend(large_blocks(it, rates));
    steps
}

/// Steps of the paper's mode. `base` are the large blocks before factors.
pub(super) fn paper(it: &Storage, rates: &StorageRates, base: f64) -> Vec<Step> {
    let mean = |offset: u32| format!("sum of lower bound of bucket x share, x {offset} %");
    let mut steps = vec![
        step(
            "internal-read-reqs-per-sec",
            "reads of a device, as measured".to_owned(),
            f64::from(rates.internal_reads),
            "reads/s",
        ),
        step("mean read", mean(it.paper.read_size_offset), rates.read_bytes_mean, "bytes"),
        step(
            "mean stored record",
            mean(it.paper.write_size_offset),
            rates.stored_bytes_mean,
            "bytes",
        ),
        records_per_block(it, rates),
        amplification(it, rates),
        step(
            "large blocks",
            format!(
                "{} / {} x {:.4}",
                it.write_reqs_per_sec, rates.records_per_block, rates.amplification
            ),
            base,
            "blocks/s",
        ),
    ];
    steps.extend(large_blocks(it, rates));
    steps
}

/// Steps of an index configuration.
pub(super) fn index(it: &Index, writes: u32, service: u32, cache: u64) -> Vec<Step> {
    let (reads, requests) = (it.read_reqs_per_sec, it.write_reqs_per_sec);
    let free = 100 - it.defrag_lwm_pct;
    vec![
        step(
            "writes with replicas",
            format!("{requests} writes x {} copies", it.replication_factor),
            f64::from(writes),
            "writes/s",
        ),
        step(
            "service-thread-reads-per-sec",
            format!("{reads} reads + {writes} writes"),
            f64::from(service),
            "reads/s",
        ),
        step(
            "cache-thread-reads-and-writes-per-sec",
            format!("{writes} writes x 100 / {free}"),
            cache as f64,
            "reads/s and writes/s",
        ),
    ]
}

fn records_per_block(it: &Storage, rates: &StorageRates) -> Step {
    step(
        "records in a large block",
        format!(
            "{} / {:.0}, whole records",
            it.large_block_bytes(),
            rates.stored_bytes_mean.floor()
        ),
        f64::from(rates.records_per_block),
        "records",
    )
}

fn amplification(it: &Storage, rates: &StorageRates) -> Step {
    let free = 100 - it.defrag_lwm_pct;
    step("write amplification", format!("100 / {free} % free"), rates.amplification, "times")
}

fn large_blocks(it: &Storage, rates: &StorageRates) -> [Step; 2] {
    let options = &it.paper;
    let mut reads = "large blocks".to_owned();
    if options.total_lbw_per_sec != 0 {
        let (frees, total) = (options.direct_frees, options.total_lbw_per_sec);
        reads.push_str(&format!(" x ({total} - {frees} direct frees) / {total}"));
    }
    if options.lbr_req_offset != 100 {
        reads.push_str(&format!(" x {} %", options.lbr_req_offset));
    }
    if it.no_defrag_reads {
        "none, as no-defrag-reads is on".clone_into(&mut reads);
    }
    let mut writes = match it.commit_to_device {
        true => "large blocks less those of new records, which are committed".to_owned(),
        false => "large blocks".to_owned(),
    };
    if options.lbw_req_offset != 100 {
        writes.push_str(&format!(" x {} %", options.lbw_req_offset));
    }
    [
        step("large-block-reads-per-sec", reads, rates.large_reads, "blocks/s"),
        step("large-block-writes-per-sec", writes, rates.large_writes, "blocks/s"),
    ]
}
