//! `ordered-get` and `ordered-scan`.

use entresol_workload::{Distribution, KeyLayout, Mix};

use super::counted::Counted;
use super::store::{OrderedStore, Sizing};
use super::{Baseline, Figures, begin, figure, lift};
use crate::bench::driver::{Job, Shared, Tally, Until};
use crate::bench::probe::{Probed, ReadProbe};
use crate::bench::setup::Setup;
use crate::failure::Outcome;
use crate::report::{Report, fraction, latency_us, median};

/// Rows of a scan.
const SCAN_ROWS: u64 = 100;
/// A leaf and its delta page in the cache, bytes.
const CACHED_LEAF_BYTES: u64 = 16 << 10;
/// Gets of what is to be in the cache, for each row of it, before anything is measured.
const WARM_UP: u64 = 8;

/// Gets of rows that are there, all alike; of rows that are not; with Zipf; of rows whose leaves
/// are in the cache.
pub(crate) fn get(setup: &Setup) -> Outcome<Report> {
    let mut report = begin("ordered-get", setup);
    let table = Loaded::new(setup, KeyLayout::Scattered)?;
    table.describe(&mut report);
    let uniform = Mix::gets(Distribution::Uniform);
    let present = table.read(&table.job(uniform))?;
    report.set("lost_keys", present.misses());
    lift(&mut report, present.figures("get"));
    let absent = table.read(&Job { first_key: setup.keys * 4, ..table.job(uniform) })?;
    report.set("found_of_absent_keys", absent.operations() - absent.misses());
    report.part("absent", absent.figures("get"));
    let zipf = table.job(Mix::gets(Distribution::Zipf { theta: 0.99 }));
    table.drive(&Job { until: Until::Operations(setup.keys), ..zipf.clone() })?;
    report.part("zipf", table.read(&zipf)?.figures("get"));
    report.part("cached", table.read_cached(uniform)?.figures("get"));
    Ok(report)
}

/// Scans of a hundred rows: of a table that was loaded in random order, of leaves in the cache, of
/// a table that was loaded in the order of its keys.
pub(crate) fn scan(setup: &Setup) -> Outcome<Report> {
    let mut report = begin("ordered-scan", setup);
    let scans = Mix { reads: 0, scans: 100, ..Mix::gets(Distribution::Uniform) };
    let table = Loaded::new(setup, KeyLayout::Scattered)?;
    table.describe(&mut report);
    lift(&mut report, table.read(&table.job(scans))?.figures("scan"));
    report.part("cached", table.read_cached(scans)?.figures("scan"));
    report.set("lost_keys", table.store.missing(setup, &table.shared)?);
    drop(table);
    let table = Loaded::new(setup, KeyLayout::Ascending)?;
    report.part("sequential", table.read(&table.job(scans))?.figures("scan"));
    Ok(report)
}

/// A table that has all its rows.
struct Loaded<'s> {
    setup: &'s Setup,
    store: OrderedStore,
    shared: Shared,
    baseline: Baseline,
}

impl<'s> Loaded<'s> {
    /// One that was loaded by keys of `layout`; half of its rows were put again where they came in
    /// random order, so that there are delta pages. All is merged.
    fn new(setup: &'s Setup, layout: KeyLayout) -> Outcome<Loaded<'s>> {
        let baseline = Baseline::take();
        let store = OrderedStore::new(setup, layout)?;
        let shared = Shared::new(setup.keys);
        store.fill(setup, &shared)?;
        if layout == KeyLayout::Scattered {
            let again = Mix::updating(0, Distribution::Uniform);
            let job = setup.fast_job(again, Until::Operations(setup.keys / 2));
            store.drive(setup, &job, &shared)?;
        }
        store.settle()?;
        Ok(Loaded { setup, store, shared, baseline })
    }

    fn describe(&self, report: &mut Report) {
        self.baseline.describe(report, &self.store, self.setup);
    }

    /// Rounds of `mix`.
    fn job(&self, mix: Mix) -> Job {
        let until = Until::Elapsed(self.setup.round_time());
        Job { scan_entries: SCAN_ROWS..=SCAN_ROWS, ..self.setup.job(mix, until) }
    }

    fn drive(&self, job: &Job) -> Outcome<Tally> {
        self.store.drive(self.setup, job, &self.shared)
    }

    /// Rounds of `job`, with a probe of the device around each.
    fn read(&self, job: &Job) -> Outcome<Reading> {
        let setup = self.setup;
        let device = &self.store.engine.device;
        let before = self.store.counted();
        self.drive(&Job {
            until: Until::Operations(2_000),
            seed: job.seed + 7_777,
            ..job.clone()
        })?;
        let warm = before.until(&self.store.counted());
        let geometry = device.geometry();
        let sector = u64::from(geometry.sector_bytes);
        let mean = (warm.bytes_per_read() as u64).max(sector).next_multiple_of(sector);
        let probe = ReadProbe {
            bytes: mean as usize,
            extent: geometry.capacity_bytes,
            depth: setup.in_flight,
            threads: setup.threads,
            time: setup.round_time().mul_f64(0.4),
        };
        let mut reading = Reading::default();
        for round in 0..setup.rounds as u64 {
            reading.probes.push(probe.run(device, round)?);
            self.round(job, round, &mut reading)?;
        }
        reading.probes.push(probe.run(device, setup.rounds as u64)?);
        Ok(reading)
    }

    /// Rounds of `mix` over so few rows that their leaves fit the cache.
    fn read_cached(&self, mix: Mix) -> Outcome<Reading> {
        let leaves = Sizing::of(self.setup).cache / 2 / CACHED_LEAF_BYTES;
        let rows = match mix.scans {
            0 => leaves,
            // A scan has several leaves.
            _ => leaves / 16,
        };
        let keys = rows.clamp(1, self.setup.keys);
        let job = Job { keys, ..self.job(mix) };
        self.drive(&Job { until: Until::Operations(keys * WARM_UP), ..job.clone() })?;
        let mut reading = Reading::default();
        for round in 0..self.setup.rounds as u64 {
            self.round(&job, round, &mut reading)?;
        }
        Ok(reading)
    }

    fn round(&self, job: &Job, round: u64, reading: &mut Reading) -> Outcome<()> {
        // None has the rows of another one: they would be in memory.
        let job = Job { seed: job.seed.wrapping_add(round + 1), ..job.clone() };
        let before = self.store.counted();
        reading.tallies.push(self.drive(&job)?);
        reading.counted = reading.counted.and(&before.until(&self.store.counted()));
        Ok(())
    }
}

/// What rounds of gets or scans gave.
#[derive(Default)]
struct Reading {
    tallies: Vec<Tally>,
    probes: Vec<Probed>,
    counted: Counted,
}

impl Reading {
    fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.tallies.iter().for_each(|tally| total.merge(tally));
        total
    }

    fn operations(&self) -> u64 {
        self.total().operations()
    }

    fn misses(&self) -> u64 {
        self.total().misses
    }

    /// The figures, of which some are for each `unit`.
    fn figures(&self, unit: &str) -> Figures {
        let total = self.total();
        let each = |count: u64| count as f64 / total.operations().max(1) as f64;
        let rates: Vec<f64> = self.tallies.iter().map(Tally::per_second).collect();
        let cpu: Vec<f64> = self.tallies.iter().map(Tally::cpu_us_per_op).collect();
        let mut figures = Figures::new();
        figure(&mut figures, "ops_per_second", median(&rates));
        figure(&mut figures, "cpu_us_per_op", median(&cpu));
        figure(&mut figures, &format!("reads_per_{unit}"), each(self.counted.pages));
        figure(&mut figures, &format!("device_reads_per_{unit}"), each(self.counted.device_reads));
        let bytes = each(self.counted.device_read_bytes);
        figure(&mut figures, &format!("device_bytes_per_{unit}"), bytes);
        if total.scanned > 0 {
            figure(&mut figures, "rows_per_scan", each(total.scanned));
        }
        figures.insert("latency_us".to_owned(), latency_us(&total.latencies().summary()));
        if !self.probes.is_empty() {
            let probes: Vec<f64> = self.probes.iter().map(|probe| probe.per_second).collect();
            let over_device = fraction(&rates, &probes);
            let reads = each(self.counted.device_reads);
            figure(&mut figures, "fraction_of_device", over_device * reads);
            figure(&mut figures, "ops_over_device", over_device);
            let bytes = self.counted.bytes_per_read() as usize;
            figures.insert("probe".to_owned(), Probed::median(&self.probes).json(bytes));
        }
        figures
    }
}
