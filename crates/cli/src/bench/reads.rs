//! `flash-get` and `zipf-get`: gets on a filled store, against the device's own rate.

use std::time::Duration;

use entresol_workload::{Distribution, Mix, Recorder};
use serde_json::json;

use super::driver::{Job, Shared, Until};
use super::probe::{Probed, ReadProbe};
use super::rounds::{Counted, Rounds, describe_store, head, interleave};
use super::setup::{Setup, Subject};
use crate::failure::Outcome;
use crate::report::{Report, median, rounded};

/// How long reads go on before anything is measured.
const WARM_UP: Duration = Duration::from_secs(1);

/// Uniform gets with no cache; then the same with one request in flight, and gets of absent keys.
pub(crate) fn flash_get(setup: &Setup) -> Outcome<Report> {
    let subject = Subject::open(setup, Some(0))?;
    let shared = Shared::new(setup.keys);
    fill_to_flash(setup, &subject, &shared)?;
    let mut report = head("flash-get", setup);
    let mix = Mix::gets(Distribution::Uniform);
    let probe = warm_probe(setup, &subject, &shared, mix)?;
    let job = setup.job(mix, Until::Elapsed(setup.round_time()));
    let rounds = interleave(setup, &subject, &shared, &job, probe.as_ref())?;
    rounds.describe(&mut report);
    report.set("lost_keys", rounds.total().misses);
    if let Some(probe) = &probe {
        rounds.describe_engine(&mut report);
        compare(&mut report, &rounds, probe);
        one_in_flight(setup, &subject, &shared, &mut report, probe)?;
    }
    absent_keys(setup, &subject, &shared, &mut report)?;
    if subject.store().is_some() {
        describe_store(&mut report, &subject.statistics());
    }
    Ok(report)
}

/// Zipf gets with a cache of 15 % of the data.
pub(crate) fn zipf_get(setup: &Setup) -> Outcome<Report> {
    const CACHE_SHARE: f64 = 0.15;
    let data = setup.keys as f64 * (setup.sizes.mean() + 16.0);
    let cache = setup.memory.is_none().then_some((data * CACHE_SHARE) as u64);
    let subject = Subject::open(setup, cache)?;
    let shared = Shared::new(setup.keys);
    fill_to_flash(setup, &subject, &shared)?;
    let mut report = head("zipf-get", setup);
    let mix = Mix::gets(Distribution::Zipf { theta: 0.99 });
    let warm = setup.fast_job(mix, Until::Operations(setup.keys * 3));
    subject.drive(setup, &warm, &shared)?.sound()?;
    let probe = warm_probe(setup, &subject, &shared, mix)?;
    let job = setup.job(mix, Until::Elapsed(setup.round_time()));
    let rounds = interleave(setup, &subject, &shared, &job, probe.as_ref())?;
    rounds.describe(&mut report);
    report.set("lost_keys", rounds.total().misses);
    if probe.is_some() {
        rounds.describe_engine(&mut report);
        let total = rounds.total();
        let from_flash = rounds.counted.device_reads as f64 / total.operations() as f64;
        let over_device = rounds.fraction_of_device();
        report.figure("device_reads_per_second", from_flash * rounds.per_second());
        report.figure("fraction_of_device", from_flash * over_device);
        report.figure("ops_over_device", over_device);
        describe_store(&mut report, &subject.statistics());
    }
    Ok(report)
}

/// Fills the store and waits until all of it is on the device.
pub(crate) fn fill_to_flash(setup: &Setup, subject: &Subject, shared: &Shared) -> Outcome<()> {
    subject.fill(setup, shared, 0..setup.keys)?;
    match subject.store() {
        Some(store) => Ok(store.engine.tiered.sync()?),
        None => Ok(()),
    }
}

/// Warms up with `mix` and shapes a probe after the reads that it made.
pub(crate) fn warm_probe(
    setup: &Setup,
    subject: &Subject,
    shared: &Shared,
    mix: Mix,
) -> Outcome<Option<ReadProbe>> {
    let before = Counted::of(&subject.statistics());
    let warm = setup.job(mix, Until::Elapsed(WARM_UP));
    subject.drive(setup, &warm, shared)?.sound()?;
    let counted = before.until(&subject.statistics());
    Ok(subject.store().map(|store| {
        let geometry = store.engine.device.geometry();
        let sector = u64::from(geometry.sector_bytes);
        let mean = (counted.bytes_per_read() as u64).max(sector).next_multiple_of(sector);
        ReadProbe {
            bytes: mean as usize,
            extent: geometry.capacity_bytes,
            depth: setup.in_flight,
            threads: setup.threads,
            time: setup.round_time().mul_f64(0.6),
        }
    }))
}

/// Writes the rounds' rate over the probe's into `report`.
pub(crate) fn compare(report: &mut Report, rounds: &Rounds, probe: &ReadProbe) {
    let probed = Probed::median(&rounds.probes);
    report.figure("fraction_of_device", rounds.fraction_of_device());
    report.set("probe", probed.json(probe.bytes));
}

/// Latency of one request at a time beside the device's.
fn one_in_flight(
    setup: &Setup,
    subject: &Subject,
    shared: &Shared,
    report: &mut Report,
    probe: &ReadProbe,
) -> Outcome<()> {
    // Devices wander by more than the difference within a second: many short rounds by turns.
    let single = Setup { threads: 1, in_flight: 1, seconds: 3.0, rounds: 30, ..setup.clone() };
    let time = single.round_time();
    let job = single.fast_job(Mix::gets(Distribution::Uniform), Until::Elapsed(time));
    let probe = ReadProbe { depth: 1, threads: 1, time, ..probe.clone() };
    let rounds = interleave(&single, subject, shared, &job, Some(&probe))?;
    let ours = rounds.total().reads.summary();
    let device = Probed::median(&rounds.probes).latency.summary();
    let p50s = |recorder: &Recorder| recorder.summary().p50 as f64 / 1e3;
    let around =
        rounds.probes.windows(2).map(|p| f64::midpoint(p50s(&p[0].latency), p50s(&p[1].latency)));
    let differences: Vec<f64> = rounds
        .tallies
        .iter()
        .zip(around)
        .map(|(tally, probe)| p50s(&tally.reads) - probe)
        .collect();
    let difference = median(&differences);
    report.set(
        "one_in_flight",
        json!({
            "p50_us": rounded(ours.p50 as f64 / 1e3),
            "probe_p50_us": rounded(device.p50 as f64 / 1e3),
            "p50_over_probe_us": rounded(difference),
            "p99_us": rounded(ours.p99 as f64 / 1e3),
            "probe_p99_us": rounded(device.p99 as f64 / 1e3),
            "cpu_us_per_op": rounded(rounds.cpu_us()),
        }),
    );
    Ok(())
}

/// Device reads of gets that find nothing.
fn absent_keys(
    setup: &Setup,
    subject: &Subject,
    shared: &Shared,
    report: &mut Report,
) -> Outcome<()> {
    let job = Job {
        first_key: setup.keys * 4,
        ..setup.fast_job(Mix::gets(Distribution::Uniform), Until::Operations(1_000_000))
    };
    let before = Counted::of(&subject.statistics());
    let tally = subject.drive(setup, &job, shared)?;
    let counted = before.until(&subject.statistics());
    report.figure("absent_ops_per_second", tally.per_second());
    if subject.store().is_some() {
        let reads = counted.device_reads as f64 / tally.misses.max(1) as f64;
        report.set("device_reads_per_miss", reads);
    }
    report.set("found_of_absent_keys", tally.operations() - tally.misses);
    Ok(())
}
