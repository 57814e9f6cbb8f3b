//! A contestant's own process: opens it, plays one phase for each line it is sent, and answers each
//! with a line of JSON. The program that drives the comparison sits at the other end.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use entresol_workload::Recorder;
use serde::{Deserialize, Serialize};

use crate::contestant::{Contestant, Fault, Result, Settings, entrants};
use crate::plan::{Course, Phase, Plan};
use crate::turn::{Field, Tally, Turn};
use crate::usage::{Usage, device_reads};

/// What a contestant's process is told at its start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Brief {
    /// Its name in the list of contestants.
    pub name: String,
    /// Its directory, empty.
    pub directory: PathBuf,
    /// The files to write 0 to, to come under the memory cap.
    pub cap: Vec<PathBuf>,
    /// The file that counts reads of devices.
    pub io_counts: Option<PathBuf>,
    /// The memory cap in force, bytes.
    pub memory_bytes: u64,
    /// The sizes.
    pub plan: Plan,
}

/// What it says once it is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Opened {
    /// How long opening took.
    pub open_seconds: f64,
}

/// What one phase gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// Which.
    pub phase: Phase,
    /// Gets and puts done.
    pub operations: u64,
    /// Gets done.
    pub gets: u64,
    /// Puts done.
    pub puts: u64,
    /// Gets that found nothing.
    pub misses: u64,
    /// Gets of wrong bytes and refused puts.
    pub wrong: u64,
    /// How long it took, flush included in a load.
    pub seconds: f64,
    /// The rate the load was held to, puts a second.
    pub paced: Option<f64>,
    /// How long background work went on afterwards.
    pub quiesce_seconds: f64,
    /// CPU of the contestant's process, background work included.
    pub cpu_us_per_op: f64,
    /// CPU of the client where the contestant is a server.
    pub client_cpu_us_per_op: Option<f64>,
    /// Rows that scans found.
    pub rows: u64,
    /// Reads of the device, where a control group counts them.
    pub device_reads: Option<u64>,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Bytes written to the device, background work after the phase included.
    pub written_bytes: u64,
    /// Bytes of keys and values put.
    pub user_bytes: u64,
    /// Most resident memory so far.
    pub peak_rss_bytes: u64,
    /// Latency of gets.
    pub get_us: Latency,
    /// Latency of puts.
    pub put_us: Latency,
    /// The contestant's own figures.
    pub notes: Vec<String>,
}

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Half took at most this.
    pub p50: f64,
    /// 99 % took at most this.
    pub p99: f64,
    /// 99.9 % took at most this.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Figures {
    /// Operations a second. Of rows in order, all work that they caused belongs to them.
    pub fn rate(&self, course: Course) -> f64 {
        let rest = if course.is_ordered() { self.quiesce_seconds } else { 0.0 };
        self.operations as f64 / (self.seconds + rest)
    }

    /// Bytes written to the device for each byte of keys and values put.
    pub fn write_amplification(&self) -> f64 {
        self.written_bytes as f64 / self.user_bytes as f64
    }

    /// Operations a second without the gets that found nothing.
    pub fn rate_found(&self, course: Course) -> f64 {
        self.rate(course) * (self.operations - self.misses) as f64 / self.operations as f64
    }
}

/// Plays `brief`'s contestant until standard input ends.
pub fn serve(brief: &Brief) -> Result<()> {
    for entrance in &brief.cap {
        std::fs::write(entrance, "0")?;
    }
    let entrant =
        entrants(brief.plan.course).into_iter().find(|entrant| entrant.name == brief.name);
    let entrant = entrant.ok_or_else(|| format!("there is no contestant '{}'", brief.name))?;
    let settings = Settings {
        directory: brief.directory.clone(),
        plan: brief.plan.clone(),
        memory_bytes: brief.memory_bytes,
    };
    let started = Instant::now();
    let contestant = (entrant.open)(&settings)?;
    say(&Opened { open_seconds: started.elapsed().as_secs_f64() })?;
    let mut loaded = 0;
    for line in std::io::stdin().lock().lines() {
        let name = line?;
        let phases = brief.plan.course.phases();
        let phase = phases.into_iter().find(|phase| phase.name() == name.trim());
        let phase = phase.ok_or_else(|| format!("there is no phase '{name}'"))?;
        let figures = play(contestant.as_ref(), brief, phase, &mut loaded)?;
        say(&figures)?;
    }
    Ok(())
}

fn say(answer: &impl Serialize) -> Result<()> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, answer)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}

fn play(
    contestant: &dyn Contestant,
    brief: &Brief,
    phase: Phase,
    loaded: &mut u64,
) -> Result<Option<Figures>> {
    let Brief { plan, io_counts, .. } = brief;
    let workers = contestant.workers(phase);
    if workers == 0 {
        return Ok(None);
    }
    let own = std::process::id();
    let server = contestant.server_pid();
    let measured = server.unwrap_or(own);
    let rate = contestant.load_rate().filter(|_| phase.is_load());
    let field = Field::new(plan, phase, *loaded, rate);
    let turns = (0..workers as u64).map(|worker| Turn::new(&field, worker)).collect();
    let reads = || io_counts.as_deref().map(device_reads);
    let reads_before = reads();
    let (before, client_before) = (Usage::of(measured), Usage::of(own));
    let turns = contestant.play(turns)?;
    if phase.is_load() {
        contestant.flush()?;
        *loaded = field.handed_out();
    } else if phase == Phase::Queue {
        *loaded += field.handed_out() / 2;
    }
    let seconds = field.started().elapsed().as_secs_f64();
    let client_after = Usage::of(own);
    let quiescing = Instant::now();
    if phase != Phase::Warm && phase.put_percent() > 0 {
        contestant.flush()?;
        contestant.quiesce()?;
    }
    let quiesce_seconds = quiescing.elapsed().as_secs_f64();
    let after = Usage::of(measured);
    let device_reads = reads().zip(reads_before).map(|(after, before)| after - before);
    let mut tally = Tally::default();
    turns.into_iter().map(Turn::into_tally).for_each(|one| tally.merge(&one));
    let (gets, puts) = (tally.gets.count(), tally.puts.count());
    let per_op = |us: u64| us as f64 / ((gets + puts).max(1)) as f64;
    Ok(Some(Figures {
        phase,
        operations: gets + puts,
        gets,
        puts,
        misses: tally.misses,
        wrong: tally.wrong,
        seconds,
        paced: rate,
        quiesce_seconds,
        cpu_us_per_op: per_op(after.cpu_us - before.cpu_us),
        client_cpu_us_per_op: server.map(|_| per_op(client_after.cpu_us - client_before.cpu_us)),
        rows: tally.rows,
        device_reads,
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
        user_bytes: puts * plan.record_bytes(),
        peak_rss_bytes: after.peak_rss_bytes,
        get_us: latency(&tally.gets),
        put_us: latency(&tally.puts),
        notes: contestant.notes(),
    }))
}

fn latency(recorder: &Recorder) -> Latency {
    let summary = recorder.summary();
    let us = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
    Latency {
        p50: us(summary.p50),
        p99: us(summary.p99),
        p999: us(summary.p999),
        max: us(summary.max),
    }
}

impl Brief {
    /// The brief that `text`, its JSON, is.
    pub fn parse(text: &str) -> Result<Brief> {
        serde_json::from_str(text).map_err(|error| Fault::from(format!("brief: {error}")))
    }
}
