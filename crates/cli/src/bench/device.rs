//! `device`: the probe of the device alone, and `fio` for a second opinion.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::probe::{ReadProbe, WriteProbe};
use super::setup::{BENCH_FILE, Setup, prepared_file};
use crate::failure::{Failure, Outcome};
use crate::report::{Report, rounded};

/// Random reads at several depths and sequential writes.
pub(crate) fn device(setup: &Setup) -> Outcome<Report> {
    let scratch = setup.scratch()?;
    let path = scratch.fresh(BENCH_FILE);
    let device = prepared_file(&path, setup.capacity_bytes())?;
    let geometry = device.geometry();
    let mut report = Report::new("device");
    report.set("device", device.name());
    report.set("capacity_bytes", geometry.capacity_bytes);
    report.set("sector_bytes", geometry.sector_bytes);
    let sector = u64::from(geometry.sector_bytes);
    let bytes = (setup.sizes.mean() as u64 + 64).next_multiple_of(sector) + sector;
    let time = Duration::from_secs_f64(setup.seconds / 9.0);
    let mut rows = Vec::new();
    for depth in [1, 8, 32, 64, setup.in_flight.max(65)] {
        let probe = ReadProbe {
            bytes: bytes as usize,
            extent: geometry.capacity_bytes,
            depth,
            threads: setup.threads,
            time,
        };
        let probed = probe.run(&device, depth as u64)?;
        let summary = probed.latency.summary();
        rows.push(json!({
            "access": "random read",
            "bytes": bytes,
            "depth": depth,
            "ops_per_second": rounded(probed.per_second),
            "mb_per_second": rounded(probed.bytes_per_second / 1e6),
            "cpu_us_per_op": rounded(probed.cpu_us),
            "p50_us": rounded(summary.p50 as f64 / 1e3),
            "p99_us": rounded(summary.p99 as f64 / 1e3),
            "p999_us": rounded(summary.p999 as f64 / 1e3),
        }));
    }
    for depth in [1, 4] {
        let mut probe = WriteProbe { bytes: 1 << 20, buffers: 16, depth, time, next: 0 };
        let probed = probe.run(&device)?;
        let summary = probed.latency.summary();
        rows.push(json!({
            "access": "sequential write",
            "bytes": 1 << 20,
            "depth": depth,
            "ops_per_second": rounded(probed.per_second),
            "mb_per_second": rounded(probed.bytes_per_second / 1e6),
            "cpu_us_per_op": rounded(probed.cpu_us),
            "p50_us": rounded(summary.p50 as f64 / 1e3),
            "p99_us": rounded(summary.p99 as f64 / 1e3),
            "p999_us": rounded(summary.p999 as f64 / 1e3),
        }));
    }
    let best = rows.iter().filter_map(|row| row["ops_per_second"].as_f64()).fold(0.0, f64::max);
    report.figure("ops_per_second", best);
    report.set("probes", rows);
    Ok(report)
}

/// What `fio` does on a file of its own in the bench's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FioJob {
    /// Random reads, as many in flight as the bench has.
    Reads,
    /// Sequential writes, as the probe's, to a file that is laid out before.
    Writes,
}

/// Runs `fio`, four seconds.
pub(crate) fn fio(setup: &Setup, job: FioJob) -> Outcome<Value> {
    let scratch = setup.scratch()?;
    let path = scratch.fresh("bench.fio");
    let depth = format!("--iodepth={}", setup.in_flight.min(256));
    let (field, options) = match job {
        FioJob::Reads => ("read", ["--rw=randread", "--bs=2k", "--size=512m", &depth]),
        FioJob::Writes => ("write", ["--rw=write", "--bs=1m", "--size=1g", "--iodepth=4"]),
    };
    let output = Command::new("fio")
        .args(["--name=probe", "--direct=1", "--ioengine=io_uring", "--fixedbufs=1"])
        .args(["--runtime=4", "--time_based", "--overwrite=1", "--output-format=json"])
        .args(options)
        .arg(format!("--filename={}", path.display()))
        .output();
    drop(std::fs::remove_file(&path));
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(json!("fio is not installed"));
        }
        Err(error) => return Err(Failure::doing("cannot run fio", error)),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let from = text.find('{').unwrap_or(0);
    let parsed: Value = serde_json::from_str(&text[from..])
        .map_err(|e| Failure::doing("fio's output is not the JSON it promises", e))?;
    let found = &parsed["jobs"][0][field];
    let percentile = |name: &str| found["clat_ns"]["percentile"][name].as_f64().map(|ns| ns / 1e3);
    Ok(json!({
        "ops_per_second": found["iops"],
        "mb_per_second": found["bw_bytes"].as_f64().map(|bytes| bytes / 1e6),
        "p50_us": percentile("50.000000"),
        "p99_us": percentile("99.000000"),
    }))
}
