//! `bigmemory`: the test of billions of entries, as large as this machine allows: fill, then nine
//! gets to one put, uniform. The costs here give those of the full size.

use entresol_workload::{BIGMEMORY, Distribution, Mix, Slopes};
use serde_json::json;

use super::driver::{Shared, Until};
use super::reads::warm_probe;
use super::rounds::{describe_store, head, interleave};
use super::setup::{Setup, Subject};
use crate::failure::Outcome;
use crate::report::{Report, latency_us, rounded};
use crate::units;

/// Fill, test, extrapolation.
pub(crate) fn bigmemory(setup: &Setup) -> Outcome<Report> {
    let cache = setup.memory.is_none().then_some(64 << 20);
    let subject = Subject::open(setup, cache)?;
    let shared = Shared::new(setup.keys);
    let mut report = head("bigmemory", setup);
    let fill = subject.fill(setup, &shared, 0..setup.keys)?;
    report.set(
        "fill",
        json!({
            "ops_per_second": rounded(fill.per_second()),
            "mb_per_second": rounded(fill.per_second() * setup.sizes.mean() / 1e6),
            "latency_us": latency_us(&fill.writes.summary()),
        }),
    );
    let mix = Mix::updating(BIGMEMORY.reads, Distribution::Uniform);
    let probe = warm_probe(setup, &subject, &shared, mix)?;
    let job = setup.job(mix, Until::Elapsed(setup.round_time()));
    let rounds = interleave(setup, &subject, &shared, &job, probe.as_ref())?;
    rounds.describe(&mut report);
    report.set("lost_keys", rounds.total().misses);
    report.set(
        "test_of_record",
        json!({
            "entries": BIGMEMORY.entries,
            "ops_per_second": BIGMEMORY.ops_per_second,
            "latency_ms": BIGMEMORY.latency_ms,
            "nodes": 4,
        }),
    );
    report.note(
        "The test of record ran on four servers with 1 TB of memory each and was bound by a \
         network of 1 Gbit/s; this one runs in one process.",
    );
    if let Some(store) = subject.store() {
        rounds.describe_engine(&mut report);
        let reads = f64::from(BIGMEMORY.reads) / 100.0;
        report.figure("fraction_of_device", rounds.fraction_of_device() * reads);
        let statistics = store.engine.tiered.statistics();
        let entries = statistics.entries.max(1) as f64;
        let slopes = Slopes {
            memory_bytes_per_entry: statistics.index_bytes as f64 / entries,
            flash_bytes_per_entry: statistics.flash_live_bytes as f64 / entries,
            fill: filled(setup, statistics.flash_live_bytes),
            load_per_second: fill.per_second(),
            recover_per_second: None,
        };
        extrapolate(&mut report, &slopes, setup.sizes.mean());
        describe_store(&mut report, &statistics);
    }
    Ok(report)
}

/// The share of the device that is live: what was asked for, unless its capacity was.
fn filled(setup: &Setup, live_bytes: u64) -> f64 {
    match setup.capacity {
        Some(_) => live_bytes as f64 / setup.capacity_bytes().max(1) as f64,
        None => setup.fill,
    }
}

fn extrapolate(report: &mut Report, slopes: &Slopes, value_bytes: f64) {
    let far = slopes.extrapolate(BIGMEMORY.entries);
    report.figure("bytes_per_record", slopes.memory_bytes_per_entry);
    report.set(
        "extrapolation",
        json!({
            "entries": far.entries,
            "value_bytes": rounded(value_bytes),
            "fill": rounded(slopes.fill),
            "memory_bytes": far.memory_bytes.round(),
            "flash_bytes": far.flash_bytes.round(),
            "load_seconds": far.load_seconds.round(),
        }),
    );
    report.note(format!(
        "{} entries with values of {} bytes would take {} of memory for the index, {} of flash \
         filled to {:.1} %, and {} to load at this machine's rate.",
        units::number(far.entries as f64),
        units::number(value_bytes),
        units::bytes(far.memory_bytes),
        units::bytes(far.flash_bytes),
        slopes.fill * 100.0,
        units::seconds(far.load_seconds),
    ));
}
