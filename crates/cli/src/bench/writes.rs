//! `load` and `overwrite`: the cost of puts, alone and with reclaim in its steady state.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use entresol_tier::SpaceId;
use entresol_workload::{Distribution, Mix};
use serde_json::json;

use super::driver::{Job, Shared, Tally, Until};
use super::probe::{Probed, WriteProbe};
use super::rounds::{Counted, describe_store, head};
use super::setup::{KEY_BYTES, Setup, Subject, prepared_file};
use crate::failure::{Failure, Outcome};
use crate::progress;
use crate::report::{Report, fraction, latency_us, median, rounded};

/// Puts of new keys in slices, each between two probes of sequential writes to a sibling file that
/// was prepared like the store's.
pub(crate) fn load(setup: &Setup) -> Outcome<Report> {
    const PROBE_FILE_BYTES: u64 = 1 << 30;
    const PROBE_BYTES: usize = 1 << 20;
    let subject = Subject::open(setup, Some(0))?;
    let shared = Shared::new(0);
    let mut report = head("load", setup);
    let mut probes = Vec::new();
    let mut probe = WriteProbe {
        bytes: PROBE_BYTES,
        // As many as the store writes from.
        buffers: (subject.statistics().buffer_bytes / PROBE_BYTES as u64).max(4) as usize,
        depth: 4,
        time: Duration::from_millis(600),
        next: 0,
    };
    let sibling = match subject.fresh_sibling("bench.probe") {
        Some(path) => Some((prepared_file(&path, PROBE_FILE_BYTES)?, path)),
        None => None,
    };
    let mut tallies = Vec::new();
    let mut device_rates = Vec::new();
    let mut counted = Counted::default();
    let rounds = setup.rounds as u64;
    for round in 0..rounds {
        if let Some((device, _)) = &sibling {
            probes.push(probe.run(device)?);
        }
        let at = |r: u64| setup.keys * r / rounds;
        let before = Counted::of(&subject.statistics());
        let tally = subject.fill(setup, &shared, at(round)..at(round + 1))?;
        let span = before.until(&subject.statistics());
        device_rates.push(span.device_written_bytes as f64 / tally.elapsed.as_secs_f64());
        counted.add(&span);
        tallies.push(tally);
    }
    if let Some((device, path)) = sibling {
        probes.push(probe.run(&device)?);
        drop(device);
        drop(std::fs::remove_file(path));
    }
    describe_load(&mut report, &tallies, setup);
    if let Some(store) = subject.store() {
        store.engine.tiered.sync()?;
        let device = Probed::median(&probes);
        report.figure("device_mb_per_second", median(&device_rates) / 1e6);
        let limits: Vec<f64> = probes.iter().map(|probe| probe.bytes_per_second).collect();
        report.figure("fraction_of_device", fraction(&device_rates, &limits));
        report.set("probe", device.json(probe.bytes));
        let each = |p: &Probed| rounded(p.bytes_per_second / 1e6);
        report.set("probes_mb_per_second", json!(probes.iter().map(each).collect::<Vec<_>>()));
        report.figure("write_amplification", counted.write_amplification());
        let statistics = subject.statistics();
        report.figure("write_amplification_after_sync", statistics.write_amplification());
        let count = store.engine.tiered.count(SpaceId(0));
        report.set("lost_keys", read_back(setup, &subject, &shared, count)?);
        // Later: keys whose hashes look alike are counted once the store has been idle.
        report.set("entries", store.engine.tiered.count(SpaceId(0)));
        describe_store(&mut report, &statistics);
    }
    Ok(report)
}

/// Reads a sample of the keys, or all where the store counts fewer than were put; returns how many
/// are missing.
fn read_back(setup: &Setup, subject: &Subject, shared: &Shared, count: u64) -> Outcome<u64> {
    const SAMPLE: u64 = 100_000;
    let until = match count < setup.keys {
        true => Until::Keys(0..setup.keys),
        false => Until::Operations(SAMPLE.min(setup.keys)),
    };
    let job = setup.fast_job(Mix::gets(Distribution::Uniform), until);
    Ok(subject.drive(setup, &job, shared)?.sound()?.misses)
}

fn describe_load(report: &mut Report, tallies: &[Tally], setup: &Setup) {
    let mut total = Tally::default();
    tallies.iter().for_each(|tally| total.merge(tally));
    let rates: Vec<f64> = tallies.iter().map(Tally::per_second).collect();
    let rate = median(&rates);
    report.figure("ops_per_second", rate);
    report.figure("records_per_second", rate);
    report.figure("user_mb_per_second", rate * (setup.sizes.mean() + KEY_BYTES) / 1e6);
    let cpu: Vec<f64> = tallies.iter().map(Tally::cpu_us_per_op).collect();
    report.figure("cpu_us_per_op", median(&cpu));
    report.set("latency_us", latency_us(&total.writes.summary()));
    report
        .set("rounds_ops_per_second", json!(rates.iter().map(|r| rounded(*r)).collect::<Vec<_>>()));
}

/// Half gets, half puts, until reclaim is in its steady state; then rounds of gets alone and of the
/// mix by turns.
pub(crate) fn overwrite(setup: &Setup) -> Outcome<Report> {
    let subject = Subject::open(setup, Some(0))?;
    let shared = Shared::new(setup.keys);
    super::reads::fill_to_flash(setup, &subject, &shared)?;
    let mut report = head("overwrite", setup);
    let distribution = setup.distribution.unwrap_or(Distribution::Uniform);
    report.set("distribution", distribution.to_string());
    let files = subject.store().map(|store| FileShape::of(&store.path)).transpose()?;
    let mix = Mix::updating(50, distribution);
    settle(setup, &subject, &shared, mix)?;
    let mut mixed = Vec::new();
    let mut idle = Tally::default();
    let mut counted = Counted::default();
    let round = Duration::from_secs_f64((setup.seconds / 6.0 / setup.rounds as f64).max(1.0));
    for number in 0..setup.rounds as u64 {
        let reads = setup.job(Mix::gets(distribution), Until::Elapsed(round / 2));
        idle.merge(&subject.drive(setup, &Job { seed: number, ..reads }, &shared)?.sound()?);
        let before = Counted::of(&subject.statistics());
        let job = setup.job(mix, Until::Elapsed(round));
        let job = Job { seed: setup.seed + number + 100, ..job };
        mixed.push(subject.drive(setup, &job, &shared)?.sound()?);
        counted.add(&before.until(&subject.statistics()));
    }
    let mut total = Tally::default();
    mixed.iter().for_each(|tally| total.merge(tally));
    report
        .figure("ops_per_second", median(&mixed.iter().map(Tally::per_second).collect::<Vec<_>>()));
    report.figure(
        "cpu_us_per_op",
        median(&mixed.iter().map(Tally::cpu_us_per_op).collect::<Vec<_>>()),
    );
    report.set("latency_us", latency_us(&total.latencies().summary()));
    let (busy, quiet) = (total.reads.summary(), idle.reads.summary());
    report.set("read_latency_us", latency_us(&busy));
    report.set("write_latency_us", latency_us(&total.writes.summary()));
    report.set("idle_read_latency_us", latency_us(&quiet));
    report.figure("read_p999_over_idle", busy.p999 as f64 / quiet.p999.max(1) as f64);
    report.set("lost_keys", total.misses + idle.misses);
    if let (Some(store), Some(files)) = (subject.store(), files) {
        report.figure("write_amplification", counted.write_amplification());
        report.set("files_unlinked_or_extended", files.changes(&store.path)?);
        describe_store(&mut report, &subject.statistics());
    }
    Ok(report)
}

/// Runs `mix` until twice the capacity was written, but no longer than `--seconds`.
fn settle(setup: &Setup, subject: &Subject, shared: &Shared, mix: Mix) -> Outcome<()> {
    let Some(store) = subject.store() else { return Ok(()) };
    let spinner = progress::spinner("overwriting until reclaim is in its steady state");
    let target = 2 * store.engine.device.geometry().capacity_bytes;
    let first = Counted::of(&subject.statistics());
    let began = Instant::now();
    let step = setup.fast_job(mix, Until::Elapsed(Duration::from_millis(500)));
    let mut number = 1_000;
    while began.elapsed().as_secs_f64() < setup.seconds {
        number += 1;
        let job = Job { seed: setup.seed + number, ..step.clone() };
        subject.drive(setup, &job, shared)?.sound()?;
        let written = first.until(&subject.statistics()).device_written_bytes;
        spinner.set_message(format!("overwritten {} of {} MB", written >> 20, target >> 20));
        if written >= target {
            break;
        }
    }
    spinner.finish_and_clear();
    Ok(())
}

/// What must stay as it is in the steady state: the store's file, and that it is the only one.
struct FileShape {
    inode: u64,
    size: u64,
    blocks: u64,
    names: Vec<std::ffi::OsString>,
}

impl FileShape {
    fn of(path: &Path) -> Outcome<FileShape> {
        let failed = |e| Failure::doing(format!("cannot look at {}", path.display()), e);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path.parent().unwrap_or(path)).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
        }
        names.sort();
        Ok(FileShape {
            inode: metadata.ino(),
            size: metadata.size(),
            blocks: metadata.blocks(),
            names,
        })
    }

    /// How many files changed their inode, size or blocks, came or went.
    fn changes(&self, path: &Path) -> Outcome<u64> {
        let now = FileShape::of(path)?;
        let same = (self.inode, self.size, self.blocks) == (now.inode, now.size, now.blocks);
        let came = now.names.iter().filter(|name| !self.names.contains(name)).count();
        let went = self.names.iter().filter(|name| !now.names.contains(name)).count();
        Ok(u64::from(!same) + came as u64 + went as u64)
    }
}
