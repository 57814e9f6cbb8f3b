//! Rounds of a job, each with a probe of the device before and after it, and what the engine
//! counted meanwhile. Interleaving is what makes rates comparable on machines whose speed wanders.

use entresol_tier::Statistics;
use serde_json::{Value, json};

use super::driver::{Job, Shared, Tally};
use super::probe::{Probed, ReadProbe};
use super::setup::{Setup, Subject};
use crate::failure::Outcome;
use crate::report::{Report, fraction, latency_us, median, rounded};

/// What rounds gave.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Each round's tally.
    pub(crate) tallies: Vec<Tally>,
    /// The probes: one before each round and one after the last.
    pub(crate) probes: Vec<Probed>,
    /// What the engine counted during the rounds, probes left out.
    pub(crate) counted: Counted,
}

/// Engine counts of some span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) gets: u64,
    pub(crate) memory_hits: u64,
    pub(crate) buffer_hits: u64,
    pub(crate) flash_hits: u64,
    pub(crate) misses: u64,
    pub(crate) device_reads: u64,
    pub(crate) device_read_bytes: u64,
    pub(crate) device_written_bytes: u64,
    pub(crate) user_written_bytes: u64,
    pub(crate) reclaim_moved_bytes: u64,
    pub(crate) collisions: u64,
}

/// Runs `setup.rounds` rounds of `job`, with `probe` around each where there is a device to probe.
pub(crate) fn interleave(
    setup: &Setup,
    subject: &Subject,
    shared: &Shared,
    job: &Job,
    probe: Option<&ReadProbe>,
) -> Outcome<Rounds> {
    let mut rounds = Rounds::default();
    let probe = probe.zip(subject.store());
    for round in 0..setup.rounds as u64 {
        if let Some((probe, store)) = probe {
            rounds.probes.push(probe.run(&store.engine.device, round)?);
        }
        // None has the keys of the warm-up before it: they would be in memory.
        let job = Job { seed: job.seed.wrapping_add(round + 1), ..job.clone() };
        let before = Counted::of(&subject.statistics());
        let tally = subject.drive(setup, &job, shared)?.sound()?;
        rounds.counted.add(&before.until(&subject.statistics()));
        rounds.tallies.push(tally);
    }
    if let Some((probe, store)) = probe {
        rounds.probes.push(probe.run(&store.engine.device, setup.rounds as u64)?);
    }
    Ok(rounds)
}

impl Rounds {
    /// All rounds as one.
    pub(crate) fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.tallies.iter().for_each(|tally| total.merge(tally));
        total
    }

    /// The median rate, operations a second.
    pub(crate) fn per_second(&self) -> f64 {
        median(&self.tallies.iter().map(Tally::per_second).collect::<Vec<_>>())
    }

    /// The rate over the device's, round by round.
    pub(crate) fn fraction_of_device(&self) -> f64 {
        let runs: Vec<f64> = self.tallies.iter().map(Tally::per_second).collect();
        let probes: Vec<f64> = self.probes.iter().map(|probe| probe.per_second).collect();
        fraction(&runs, &probes)
    }

    /// The median processor time of an operation, µs.
    pub(crate) fn cpu_us(&self) -> f64 {
        median(&self.tallies.iter().map(Tally::cpu_us_per_op).collect::<Vec<_>>())
    }

    /// Writes rates, latencies and processor time into `report`.
    pub(crate) fn describe(&self, report: &mut Report) {
        let total = self.total();
        report.figure("ops_per_second", self.per_second());
        report.figure("cpu_us_per_op", self.cpu_us());
        report.set("latency_us", latency_us(&total.latencies().summary()));
        if total.reads.count() > 0 && total.writes.count() > 0 {
            report.set("read_latency_us", latency_us(&total.reads.summary()));
            report.set("write_latency_us", latency_us(&total.writes.summary()));
        }
        report.set("service_us", latency_us(&total.service.summary()));
        report.set("misses", total.misses);
        if total.not_begun > 0 {
            report.set("not_begun", total.not_begun);
            report.note(format!(
                "{} requests were due and did not begin within five seconds after their round: \
                 latencies leave them out, and --rate is more than the target serves.",
                total.not_begun
            ));
        }
        let runs: Vec<f64> = self.tallies.iter().map(|t| rounded(t.per_second())).collect();
        report.set("rounds_ops_per_second", json!(runs));
        if !self.probes.is_empty() {
            let probes: Vec<f64> = self.probes.iter().map(|p| rounded(p.per_second)).collect();
            report.set("probes_ops_per_second", json!(probes));
        }
    }

    /// Writes what the engine did on the device into `report`.
    pub(crate) fn describe_engine(&self, report: &mut Report) {
        let counted = &self.counted;
        // Reclaim reads too, and nobody counts its reads apart.
        if counted.gets > 0 && counted.user_written_bytes == 0 {
            report.figure("device_reads_per_get", counted.device_reads_per_get());
            report.figure("device_bytes_per_get", counted.bytes_per_read());
        }
        if counted.gets > 0 {
            let gets = counted.gets as f64;
            report.figure("memory_hit_ratio", counted.memory_hits as f64 / gets);
            report.figure("buffer_hit_ratio", counted.buffer_hits as f64 / gets);
        }
        if counted.user_written_bytes > 0 {
            report.figure("write_amplification", counted.write_amplification());
        }
        report.set("tag_collisions", counted.collisions);
    }
}

impl Counted {
    /// The counts in `statistics`.
    pub(crate) fn of(statistics: &Statistics) -> Counted {
        Counted {
            gets: statistics.gets,
            memory_hits: statistics.memory_hits,
            buffer_hits: statistics.buffer_hits,
            flash_hits: statistics.flash_hits,
            misses: statistics.misses,
            device_reads: statistics.device_reads,
            device_read_bytes: statistics.device_read_bytes,
            device_written_bytes: statistics.device_written_bytes,
            user_written_bytes: statistics.user_written_bytes,
            reclaim_moved_bytes: statistics.reclaim_moved_bytes,
            collisions: statistics.collisions_get + statistics.collisions_put,
        }
    }

    /// What was counted from here until `statistics`.
    pub(crate) fn until(&self, statistics: &Statistics) -> Counted {
        let later = Counted::of(statistics);
        Counted {
            gets: later.gets - self.gets,
            memory_hits: later.memory_hits - self.memory_hits,
            buffer_hits: later.buffer_hits - self.buffer_hits,
            flash_hits: later.flash_hits - self.flash_hits,
            misses: later.misses - self.misses,
            device_reads: later.device_reads - self.device_reads,
            device_read_bytes: later.device_read_bytes - self.device_read_bytes,
            device_written_bytes: later.device_written_bytes - self.device_written_bytes,
            user_written_bytes: later.user_written_bytes - self.user_written_bytes,
            reclaim_moved_bytes: later.reclaim_moved_bytes - self.reclaim_moved_bytes,
            collisions: later.collisions - self.collisions,
        }
    }

    /// Adds another span.
    pub(crate) fn add(&mut self, other: &Counted) {
        self.gets += other.gets;
        self.memory_hits += other.memory_hits;
        self.buffer_hits += other.buffer_hits;
        self.flash_hits += other.flash_hits;
        self.misses += other.misses;
        self.device_reads += other.device_reads;
        self.device_read_bytes += other.device_read_bytes;
        self.device_written_bytes += other.device_written_bytes;
        self.user_written_bytes += other.user_written_bytes;
        self.reclaim_moved_bytes += other.reclaim_moved_bytes;
        self.collisions += other.collisions;
    }

    /// Device reads for each get that memory did not answer.
    pub(crate) fn device_reads_per_get(&self) -> f64 {
        let from_flash = self.gets - self.memory_hits - self.buffer_hits;
        self.device_reads as f64 / from_flash.max(1) as f64
    }

    /// Mean size of a device read, bytes.
    pub(crate) fn bytes_per_read(&self) -> f64 {
        self.device_read_bytes as f64 / self.device_reads.max(1) as f64
    }

    /// Bytes written to the device for each byte of keys and values put.
    pub(crate) fn write_amplification(&self) -> f64 {
        self.device_written_bytes as f64 / self.user_written_bytes.max(1) as f64
    }
}

/// What was run, for the top of a report.
pub(crate) fn head(bench: &str, setup: &Setup) -> Report {
    let mut report = Report::new(bench);
    let target = setup.target.as_ref().map_or("embedded".to_owned(), |a| a.to_string());
    report.set("target", target);
    report.set("keys", setup.keys);
    report.set("value_bytes", setup.sizes.to_string());
    report.set("threads", setup.threads as u64);
    report.set("in_flight", setup.in_flight as u64);
    // That of a server is its own, and not told.
    if setup.target.is_none() {
        report.set("durability", setup.durability_name());
    }
    report
}

/// Where the engine's memory is, and how full its flash.
pub(crate) fn describe_store(report: &mut Report, statistics: &Statistics) {
    let memory = json!({
        "index": statistics.index_bytes,
        "buffers": statistics.buffer_bytes,
        "cache": statistics.cache_bytes,
        "other": statistics.other_bytes,
    });
    report.set("memory_bytes", memory);
    let fill = statistics.flash_live_bytes as f64 / statistics.flash_allocated_bytes.max(1) as f64;
    let flash: Value = json!({
        "allocated_bytes": statistics.flash_allocated_bytes,
        "live_bytes": statistics.flash_live_bytes,
        "live_share": rounded(fill),
        "segments": statistics.segments,
        "segments_free": statistics.segments_free,
    });
    report.set("flash", flash);
}
