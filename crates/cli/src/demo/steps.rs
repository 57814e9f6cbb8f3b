//! The demo's steps, in order: load, read, compare with memory, crash, restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_device::Device;
use entresol_tier::{Durability, WriteMode};
use entresol_workload::{Arrivals, Distribution, Grid, Mix, Sizes};
use serde_json::json;

use super::crash::{VALUE_BYTES, check, write_and_kill};
use super::packages::packages;
use super::{DemoArgs, rate, say, tell};
use crate::bench::driver::{Shared, Tally, Until};
use crate::bench::grid;
use crate::bench::probe::{Probed, ReadProbe};
use crate::bench::setup::{Setup, Subject, prepared_file};
use crate::client::Reply;
use crate::failure::{Failure, Outcome};
use crate::holder::{Holder, Item, Served};
use crate::meter;
use crate::progress;
use crate::report::{Report, fraction, median, rounded};
use crate::scratch::Scratch;
use crate::service::Service;
use crate::units;

/// The demo's server and what is known of its data.
pub(super) struct Stage<'a> {
    args: &'a DemoArgs,
    directory: &'a Scratch,
    buffers: &'a Scratch,
    service: Option<Service>,
    shared: Shared,
    setup: Setup,
    real: Vec<Item>,
}

const KEY_BYTES: u64 = 16;
/// Generated records at least: each writer and reader has some.
const KEYS_MIN: u64 = 1_000;
/// A read of a record of 1,700 bytes that may lie anywhere: four sectors of 512 bytes, or five.
const PROBE_BYTES: usize = 2_048;

impl<'a> Stage<'a> {
    pub(super) fn new(args: &'a DemoArgs, directory: &'a Scratch, buffers: &'a Scratch) -> Self {
        let setup = Setup {
            keys: 1,
            sizes: Sizes::Fixed(VALUE_BYTES as u32),
            threads: 2,
            in_flight: 64,
            memory: None,
            capacity: None,
            fill: 0.7,
            seconds: 6.0,
            rounds: 3,
            arrivals: Arrivals::Closed,
            distribution: None,
            durability: Durability::Process,
            write_mode: WriteMode::Through,
            shards: 2,
            absent_filter_bits: 0,
            seed: 1,
            target: None,
            server_pid: None,
            server_threads: None,
            directory: None,
            buffers: None,
            stop: Arc::default(),
        };
        let shared = Shared::new(0);
        Stage { args, directory, buffers, service: None, shared, setup, real: Vec::new() }
    }

    /// Starts the server and loads real records, then generated ones up to the data's size.
    pub(super) fn load(&mut self, report: &mut Report) -> Outcome<()> {
        let args = self.args;
        say(args, "A server with a small memory cap");
        let service = self.start()?;
        let cap = units::bytes(args.memory as f64);
        tell(
            args,
            &format!(
                "entresol serve, memory cap {cap}, file of {}",
                units::bytes(args.capacity_bytes() as f64)
            ),
        );
        let title = "Real records, then as many generated ones as make";
        say(args, &format!("{title} {} times the cap", args.times));
        let found = packages();
        let real_bytes: u64 =
            found.items.iter().map(|item| (item.key.len() + item.value.len()) as u64).sum();
        let began = Instant::now();
        put_all(&service, &found.items)?;
        let seconds = began.elapsed().as_secs_f64();
        tell(
            args,
            &format!(
                "{} package records from {}: {}",
                units::number(found.items.len() as f64),
                found.source,
                rate(real_bytes as f64, seconds)
            ),
        );
        let record = KEY_BYTES + VALUE_BYTES as u64;
        let keys = args.data_bytes().saturating_sub(real_bytes) / record;
        self.setup.keys = keys.max(KEYS_MIN);
        let subject = self.subject(&service);
        let tally = subject.fill(&self.setup, &self.shared, 0..self.setup.keys)?;
        let bytes = (self.setup.keys * record) as f64;
        tell(
            args,
            &format!(
                "{} records of 1,700 bytes: {}",
                units::number(self.setup.keys as f64),
                rate(bytes, tally.elapsed.as_secs_f64())
            ),
        );
        let pid = service.pid().to_string();
        let (resident, _) = meter::resident_bytes(&pid);
        let peak = meter::peak_resident_bytes(&pid);
        let data = real_bytes as f64 + bytes;
        tell(
            args,
            &format!(
                "data {}, server's memory {} (peak {}): {:.1} times as much data",
                units::bytes(data),
                units::bytes(resident as f64),
                units::bytes(peak as f64),
                data / resident as f64
            ),
        );
        report.set("real_records", found.items.len());
        report.set("real_records_source", found.source);
        report.set("generated_records", self.setup.keys);
        report.figure("data_bytes", data);
        report.set("memory_cap_bytes", args.memory);
        report.set("resident_bytes", resident);
        report.set("peak_resident_bytes", peak);
        report.figure("load_records_per_second", tally.per_second());
        self.real = found.items;
        self.service = Some(service);
        Ok(())
    }

    /// Gets of random records over RESP, by turns with a probe of the device.
    pub(super) fn read(&mut self, report: &mut Report) -> Outcome<()> {
        const PROBE_FILE_BYTES: u64 = 512 << 20;
        let args = self.args;
        say(args, "Random reads, by turns with raw reads of the device");
        let service = self.running()?;
        let device: Arc<dyn Device> =
            prepared_file(&self.directory.fresh("probe.data"), PROBE_FILE_BYTES)?;
        let probe = ReadProbe {
            bytes: PROBE_BYTES,
            extent: PROBE_FILE_BYTES,
            depth: self.setup.threads * self.setup.in_flight,
            threads: 1,
            time: Duration::from_secs(1),
        };
        let subject = self.subject(service);
        let mix = Mix::gets(Distribution::Uniform);
        let (mut rates, mut probes, mut total) = (Vec::new(), Vec::new(), Tally::default());
        for round in 0..self.setup.rounds as u64 {
            probes.push(probe.run(&device, round)?);
            let mut job = self.setup.job(mix, Until::Elapsed(self.setup.round_time()));
            job.seed = round + 1;
            let tally = subject.drive(&self.setup, &job, &self.shared)?.sound()?;
            rates.push(tally.per_second());
            total.merge(&tally);
        }
        probes.push(probe.run(&device, self.setup.rounds as u64)?);
        let limits: Vec<f64> = probes.iter().map(|probe| probe.per_second).collect();
        let share = fraction(&rates, &limits);
        let device_rate = Probed::median(&probes).per_second;
        let ours = median(&rates);
        tell(
            args,
            &format!(
                "over RESP {} gets/s, the bare device {} reads/s: {:.0} %",
                units::number(ours.round()),
                units::number(device_rate.round()),
                share * 100.0
            ),
        );
        let summary = total.reads.summary();
        let ms = |ns: u64| ns as f64 / 1e9;
        tell(
            args,
            &format!(
                "{} of {} gets found nothing; latency p50 {}, p99 {}, 128 in flight",
                units::number(total.misses as f64),
                units::number(summary.count as f64),
                units::seconds(ms(summary.p50)),
                units::seconds(ms(summary.p99))
            ),
        );
        report.figure("gets_per_second", ours);
        report.figure("device_reads_per_second", device_rate);
        report.figure("fraction_of_device", share);
        add_lost(report, total.misses);
        Ok(())
    }

    /// The data grid tutorial's table, small.
    pub(super) fn tables(&mut self, report: &mut Report) -> Outcome<()> {
        const ITERATIONS: u64 = 2_000;
        let args = self.args;
        say(args, "A table in memory against a table on flash: 10 clients, 10 KB values");
        let grid = Grid { iterations: ITERATIONS, ..Grid::TUTORIAL };
        let setup = Setup {
            sizes: Sizes::Fixed(grid.payload_bytes),
            threads: grid.threads as usize,
            in_flight: 1,
            directory: Some(self.directory.path().to_owned()),
            ..self.setup.clone()
        };
        let result = grid::grid(&setup, grid)?.into_json();
        let mut shown = Report::default();
        shown.set("tables", result["tables"].clone());
        shown.set("flash_over_ram", result["flash_over_ram"].clone());
        shown.set(
            "source_document_flash_over_ram",
            result["source_document_flash_over_ram"].clone(),
        );
        if !args.json {
            shown.print(crate::report::Format::Table);
        }
        report.set("flash_over_ram", result["flash_over_ram"].clone());
        add_lost(report, result["lost_keys"].as_u64().unwrap_or(0));
        Ok(())
    }

    /// Writers, a `kill -9`, a restart, and every record checked.
    pub(super) fn crash(&mut self, report: &mut Report) -> Outcome<()> {
        const WRITING: Duration = Duration::from_secs(3);
        let args = self.args;
        say(args, "kill -9 in the middle of writing");
        let service = self.service.take().ok_or_else(not_running)?;
        let crashed = write_and_kill(service, &self.shared, self.setup.keys, WRITING)?;
        tell(
            args,
            &format!(
                "{} overwrites were acknowledged, {} keys had one unanswered",
                units::number(crashed.acknowledged as f64),
                crashed.unanswered
            ),
        );
        let service = self.start()?;
        let ready = service.ready().as_secs_f64();
        let entries = (self.setup.keys as usize + self.real.len()) as f64;
        tell(
            args,
            &format!(
                "restarted: from start to first answer {}, {} records",
                units::seconds(ready),
                units::number(entries)
            ),
        );
        let began = Instant::now();
        let checked = check(&service, &self.shared, &crashed)?;
        let lost_real = self.missing_packages(&service)?;
        tell(
            args,
            &format!(
                "every record read and compared in {}: {} generated ({} overwritten before the \
                 kill), {} real; {} lost",
                units::seconds(began.elapsed().as_secs_f64()),
                units::number(checked.keys as f64),
                units::number(checked.overwritten as f64),
                units::number(self.real.len() as f64),
                checked.lost + lost_real
            ),
        );
        if let Some(problem) = &checked.first_problem {
            tell(args, &format!("the first problem: {problem}"));
        }
        report.set("acknowledged_before_kill", crashed.acknowledged);
        report.set("records_checked", checked.keys + self.real.len() as u64);
        report.set("unanswered_puts_present", checked.newer);
        report.set(
            "restart_after_kill",
            json!({
                "seconds_to_first_answer": rounded(ready),
                "records_per_second": rounded(entries / ready),
            }),
        );
        add_lost(report, checked.lost + lost_real);
        self.service = Some(service);
        Ok(())
    }

    /// A clean stop and a restart from the checkpoint.
    pub(super) fn restart(&mut self, report: &mut Report) -> Outcome<()> {
        let args = self.args;
        say(args, "A clean stop, and a restart from the checkpoint");
        let stopped = self.service.take().ok_or_else(not_running)?.stop()?;
        let service = self.start()?;
        let ready = service.ready().as_secs_f64();
        tell(
            args,
            &format!(
                "stopped in {}, from start to first answer {}",
                units::seconds(stopped.as_secs_f64()),
                units::seconds(ready)
            ),
        );
        let expected = self.setup.keys + self.real.len() as u64;
        let count = service.connect()?.call(&[b"DBSIZE"], |reply| match reply {
            Reply::Integer(count) => u64::try_from(count).unwrap_or(0),
            _ => 0,
        })?;
        tell(args, &format!("{} records", units::number(count as f64)));
        report.set(
            "restart_after_clean_stop",
            json!({
                "seconds_to_stop": rounded(stopped.as_secs_f64()),
                "seconds_to_first_answer": rounded(ready),
            }),
        );
        // The count may lag behind what can be read: reading decides.
        let mut lost = self.missing_packages(&service)?;
        if count < expected {
            let all = Until::Keys(0..self.setup.keys);
            let job = self.setup.job(Mix::gets(Distribution::Sequential), all);
            lost += self.subject(&service).drive(&self.setup, &job, &self.shared)?.sound()?.misses;
        }
        add_lost(report, lost);
        service.stop()?;
        Ok(())
    }

    fn start(&self) -> Outcome<Service> {
        let spinner = progress::spinner("starting the server");
        let service = Service::start(&self.args.options(self.directory, self.buffers));
        spinner.finish_and_clear();
        service
    }

    fn running(&self) -> Outcome<&Service> {
        self.service.as_ref().ok_or_else(not_running)
    }

    fn subject(&self, service: &Service) -> Subject {
        Subject::Remote(service.address().clone(), Some(service.pid()))
    }

    /// How many real records are gone or changed.
    fn missing_packages(&self, service: &Service) -> Outcome<u64> {
        const AT_ONCE: usize = 64;
        let mut client = service.connect()?;
        let mut missing = 0;
        for items in self.real.chunks(AT_ONCE) {
            for item in items {
                client.gather(&[b"GET", &item.key]);
            }
            let mut next = items.iter();
            let mut taken = 0;
            while taken < items.len() {
                taken += client.receive(1, &mut |reply| {
                    let same = next.next().is_some_and(|i| reply == Reply::Bulk(&i.value));
                    missing += u64::from(!same);
                })?;
            }
        }
        Ok(missing)
    }
}

fn put_all(service: &Service, items: &[Item]) -> Outcome<()> {
    let bar = progress::bar("loading real records", items.len() as u64);
    let mut holder = Holder::Served(Box::new(Served::new(service.connect()?)));
    for item in items {
        holder.put(item)?;
        bar.inc(1);
    }
    holder.finish()?;
    bar.finish_and_clear();
    Ok(())
}

fn add_lost(report: &mut Report, lost: u64) {
    let before = report.get("records_lost").unwrap_or(0.0) as u64;
    report.set("records_lost", before + lost);
}

fn not_running() -> Failure {
    Failure::CannotRun("the demo's server is not running".into())
}
