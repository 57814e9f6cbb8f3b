//! `ordered-put`, `ordered-overwrite` and `ordered-load`.
//!
//! A part begins with all changes merged and ends so: its time, its processor time and its bytes
//! have all merges that its puts caused. What waited as the last put was answered is said.

use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_device::Device;
use entresol_workload::{Distribution, KeyLayout, Mix};
use serde_json::json;

use super::counted::Counted;
use super::store::OrderedStore;
use super::{Baseline, Figures, begin, figure, lift};
use crate::bench::driver::{Job, Shared, Tally, Until};
use crate::bench::probe::{Probed, WriteProbe};
use crate::bench::setup::{Setup, prepared_file};
use crate::failure::Outcome;
use crate::meter::own_cpu_us;
use crate::report::{Report, latency_us, rounded};

const ZIPF: Distribution = Distribution::Zipf { theta: 0.99 };

/// Blind puts of rows that are there, for a time: all rows alike, then with Zipf.
pub(crate) fn put(setup: &Setup) -> Outcome<Report> {
    let mut report = begin("ordered-put", setup);
    let mut table = Table::new(setup, KeyLayout::Scattered)?;
    table.store.fill(setup, &table.shared)?;
    table.store.settle()?;
    let time = Until::Elapsed(Duration::from_secs_f64(setup.seconds / 2.0));
    for (name, distribution) in [("uniform", Distribution::Uniform), ("zipf", ZIPF)] {
        let job = setup.job(Mix::updating(0, distribution), time.clone());
        let figures = table.write(&job)?;
        report_part(&mut report, name, "uniform", figures);
    }
    table.describe(&mut report)?;
    Ok(report)
}

/// Every row put again as often as there are rows, once the store is in its steady state: all rows
/// alike, then with Zipf.
pub(crate) fn overwrite(setup: &Setup) -> Outcome<Report> {
    let mut report = begin("ordered-overwrite", setup);
    let mut table = Table::new(setup, KeyLayout::Scattered)?;
    table.store.fill(setup, &table.shared)?;
    for (name, distribution) in [("uniform", Distribution::Uniform), ("zipf", ZIPF)] {
        let once = Until::Operations(setup.keys);
        let job = setup.job(Mix::updating(0, distribution), once);
        table.store.drive(setup, &Job { seed: job.seed + 99, ..job.clone() }, &table.shared)?;
        table.store.settle()?;
        let figures = table.write(&job)?;
        report_part(&mut report, name, "uniform", figures);
    }
    table.describe(&mut report)?;
    Ok(report)
}

/// Puts of new rows: in random order, then in the order of their keys.
pub(crate) fn load(setup: &Setup) -> Outcome<Report> {
    let mut report = begin("ordered-load", setup);
    for (name, layout) in [("random", KeyLayout::Scattered), ("sequential", KeyLayout::Ascending)] {
        let mut table = Table::new(setup, layout)?;
        let figures = table.write(&setup.fill_job(0..setup.keys))?;
        report_part(&mut report, name, "random", figures);
        if layout == KeyLayout::Scattered {
            table.describe(&mut report)?;
        }
    }
    Ok(report)
}

/// Writes a part under its name, and the first one as the whole bench's figures, too.
fn report_part(report: &mut Report, name: &str, whole: &str, figures: Figures) {
    match name == whole {
        true => lift(report, figures),
        false => report.part(name, figures),
    }
}

/// A table that is written to.
struct Table<'s> {
    setup: &'s Setup,
    store: OrderedStore,
    shared: Shared,
    baseline: Baseline,
    sibling: Option<Arc<dyn Device>>,
    probe: WriteProbe,
}

impl<'s> Table<'s> {
    fn new(setup: &'s Setup, layout: KeyLayout) -> Outcome<Table<'s>> {
        const PROBE_FILE_BYTES: u64 = 256 << 20;
        const PROBE_BYTES: usize = 1 << 20;
        let baseline = Baseline::take();
        let store = OrderedStore::new(setup, layout)?;
        let sibling = match store.fresh_sibling("bench.probe") {
            Some(path) => Some(prepared_file(&path, PROBE_FILE_BYTES)?),
            None => None,
        };
        let time = Duration::from_millis(600);
        let probe = WriteProbe { bytes: PROBE_BYTES, buffers: 16, depth: 4, time, next: 0 };
        Ok(Table { setup, store, shared: Shared::new(setup.keys), baseline, sibling, probe })
    }

    /// Runs `job`, which puts, until all that it caused is done.
    fn write(&mut self, job: &Job) -> Outcome<Figures> {
        let mut probes = Vec::new();
        self.probe_into(&mut probes)?;
        let before = self.store.counted();
        let (began, cpu) = (Instant::now(), own_cpu_us());
        let tally = self.store.drive(self.setup, job, &self.shared)?;
        let unsettled = before.until(&self.store.counted());
        let backlog_bytes = self.store.tree_statistics().waiting_bytes;
        self.store.settle()?;
        let (seconds, cpu_us) = (began.elapsed().as_secs_f64(), own_cpu_us() - cpu);
        let counted = before.until(&self.store.counted());
        self.probe_into(&mut probes)?;
        let written = Written { tally, counted, unsettled, backlog_bytes, seconds, cpu_us, probes };
        Ok(written.figures())
    }

    fn probe_into(&mut self, probes: &mut Vec<Probed>) -> Outcome<()> {
        if let Some(device) = &self.sibling {
            probes.push(self.probe.run(device)?);
        }
        Ok(())
    }

    /// Writes what a row takes, and how many rows are lost, into `report`.
    fn describe(&self, report: &mut Report) -> Outcome<()> {
        self.baseline.describe(report, &self.store, self.setup);
        report.set("lost_keys", self.store.missing(self.setup, &self.shared)?);
        Ok(())
    }
}

/// What a part of puts gave.
struct Written {
    tally: Tally,
    /// All that it caused.
    counted: Counted,
    /// What it had caused as the last put was answered.
    unsettled: Counted,
    /// What waited then.
    backlog_bytes: u64,
    /// Until all was done.
    seconds: f64,
    cpu_us: f64,
    probes: Vec<Probed>,
}

impl Written {
    fn figures(&self) -> Figures {
        let operations = self.tally.operations().max(1) as f64;
        let counted = &self.counted;
        let mut figures = Figures::new();
        figure(&mut figures, "ops_per_second", operations / self.seconds);
        figure(&mut figures, "cpu_us_per_op", self.cpu_us / operations);
        figure(&mut figures, "reads_per_put", counted.merge_pages as f64 / operations);
        figure(&mut figures, "reads_per_put_by_caller", counted.pages as f64 / operations);
        figure(&mut figures, "device_reads_per_put", counted.device_reads as f64 / operations);
        figure(&mut figures, "write_amplification", counted.write_amplification());
        let unsettled = self.unsettled.write_amplification();
        figure(&mut figures, "write_amplification_before_settling", unsettled);
        let share = |bytes: u64| rounded(bytes as f64 / counted.change_bytes.max(1) as f64);
        let parts = json!({
            "journal": share(counted.journal_bytes),
            "pages": share(counted.page_bytes),
            "reclaim": share(counted.reclaim_moved_bytes),
            "leaf_writes": counted.leaf_writes,
            "delta_writes": counted.delta_writes,
        });
        figures.insert("written".to_owned(), parts);
        figures.insert("puts".to_owned(), json!(self.tally.operations()));
        figures.insert("backlog_bytes".to_owned(), json!(self.backlog_bytes));
        figure(&mut figures, "settle_seconds", self.seconds - self.tally.elapsed.as_secs_f64());
        figures.insert("latency_us".to_owned(), latency_us(&self.tally.writes.summary()));
        if !self.probes.is_empty() {
            let device = Probed::median(&self.probes);
            let rate = counted.device_written_bytes as f64 / self.seconds;
            figure(&mut figures, "device_mb_per_second", rate / 1e6);
            figure(&mut figures, "fraction_of_device", rate / device.bytes_per_second);
            figures.insert("probe".to_owned(), device.json(self.probe_bytes()));
        }
        figures
    }

    fn probe_bytes(&self) -> usize {
        let probed = Probed::median(&self.probes);
        (probed.bytes_per_second / probed.per_second.max(1.0)).round() as usize
    }
}
