//! The comparison: rounds in which each contestant plays all phases in a process and a cgroup of
//! its own, with the device probe before and after every phase.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cap::Cap;
use crate::contestant::{Entrant, Fault, Kind, Result};
use crate::plan::{Phase, Plan};
use crate::probe::Probe;
use crate::stage::{Brief, Figures, Opened};

/// What to compare, where, and how often.
#[derive(Debug, Clone)]
pub struct Bout {
    /// The sizes.
    pub plan: Plan,
    /// Where data and probe file go.
    pub directory: PathBuf,
    /// How often each contestant plays.
    pub rounds: usize,
    /// How long a read probe lasts.
    pub probe: Duration,
}

/// One contestant's play in one round.
#[derive(Debug, Clone, Serialize)]
pub struct Play {
    /// Which contestant.
    pub name: &'static str,
    /// Which round, from 1.
    pub round: usize,
    /// The memory cap that it lived under; `None`: uncapped.
    pub memory_bytes: Option<u64>,
    /// Most memory its cgroup held, page cache included.
    pub peak_bytes: u64,
    /// How long opening took.
    pub open_seconds: f64,
    /// What each phase gave.
    pub phases: Vec<Measured>,
    /// Why it ended early, if it did.
    pub fault: Option<String>,
}

/// A phase between its two probes.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// What it gave.
    #[serde(flatten)]
    pub figures: Figures,
    /// Operations a second.
    pub ops_per_second: f64,
    /// The probe before and after: reads a second, or puts a second that its bytes would make.
    pub probe: [f64; 2],
    /// Operations a second over the probes' mean.
    pub fraction_of_device: f64,
}

/// How much of the probe file the write probe after a load writes.
const WRITE_PROBE_BYTES: u64 = 256 << 20;

impl Bout {
    /// Plays all rounds. `report` hears what is going on.
    pub fn play(&self, entrants: &[Entrant], report: &mut dyn FnMut(&str)) -> Result<Vec<Play>> {
        std::fs::create_dir_all(&self.directory)?;
        let scratch = Scratch::new(&self.directory)?;
        report("writing the probe file");
        let mut probe = Probe::new(&scratch.path.join("probe"), self.plan.data_bytes())?;
        let mut plays = Vec::new();
        for round in 1..=self.rounds {
            // Each round begins with another contestant, so that none always follows the same one.
            let mut order = entrants.to_vec();
            order.rotate_left((round - 1) % entrants.len().max(1));
            for entrant in order {
                report(&format!("round {round}: {}", entrant.name));
                let play = self.contest(&entrant, round, &scratch, &mut probe)?;
                report(&summary(&play));
                plays.push(play);
            }
        }
        Ok(plays)
    }

    /// One contestant; again with twice the memory, at most twice, where the cap killed it.
    fn contest(
        &self,
        entrant: &Entrant,
        round: usize,
        scratch: &Scratch,
        probe: &mut Probe,
    ) -> Result<Play> {
        let mut memory_bytes = self.plan.memory_bytes;
        for attempt in 0.. {
            let directory = scratch.path.join(entrant.name);
            std::fs::create_dir_all(&directory)?;
            let capped = entrant.kind != Kind::Memory;
            let name = format!("entresol-compare-{}", std::process::id());
            let cap = if capped { Cap::new(&name, memory_bytes) } else { None };
            let mut play = Play {
                name: entrant.name,
                round,
                memory_bytes: cap.as_ref().map(|_| memory_bytes),
                peak_bytes: 0,
                open_seconds: 0.0,
                phases: Vec::new(),
                fault: None,
            };
            let brief = Brief {
                name: entrant.name.to_owned(),
                directory: directory.clone(),
                cap: cap.as_ref().map(Cap::entrances).unwrap_or_default(),
                io_counts: cap.as_ref().and_then(Cap::io_counts),
                memory_bytes,
                plan: self.plan.clone(),
            };
            let ended = self.phases(&brief, probe, &mut play);
            play.peak_bytes = cap.as_ref().map_or(0, Cap::peak_bytes);
            let killed = cap.as_ref().is_some_and(|cap| cap.kills() > 0);
            std::fs::remove_dir_all(&directory)?;
            settle();
            if ended.is_err() && killed && attempt < 2 {
                memory_bytes *= 2;
                continue;
            }
            play.fault = ended.err().map(|fault| fault.to_string());
            return Ok(play);
        }
        unreachable!("the third attempt returns")
    }

    fn phases(&self, brief: &Brief, probe: &mut Probe, play: &mut Play) -> Result<()> {
        let record_bytes = self.plan.record_bytes() as f64;
        // The whole probe file is written anew, so that it is as old as the contestant's data.
        let mut before = probe.write(self.plan.data_bytes())? / record_bytes;
        let mut process = Process::start(brief)?;
        play.open_seconds = process.hear::<Opened>()?.open_seconds;
        for phase in self.plan.course.phases() {
            if phase == Phase::Uniform {
                before = probe.read(self.plan.probe_reads(), self.probe)?;
            }
            let Some(figures) = process.phase(phase)? else {
                continue;
            };
            let is_write = self.plan.course.is_ordered() && phase.put_percent() > 0;
            let after = match phase {
                _ if phase == Phase::Load || is_write => {
                    probe.write(WRITE_PROBE_BYTES)? / record_bytes
                }
                _ => probe.read(self.plan.probe_reads(), self.probe)?,
            };
            let rate = figures.rate(self.plan.course);
            let fraction_of_device = rate / ((before + after) / 2.0);
            let probes = [before, after];
            play.phases.push(Measured {
                figures,
                ops_per_second: rate,
                probe: probes,
                fraction_of_device,
            });
            before = after;
        }
        process.end()
    }
}

/// A directory for one comparison; removed when dropped.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(directory: &Path) -> Result<Scratch> {
        let path = directory.join(format!("entresol-compare-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever interrupted us finds the directory by its name.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A contestant's process.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(brief: &Brief) -> Result<Process> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("contestant")
            .arg(serde_json::to_string(brief)?)
            // Each thread of a contestant would else keep memory that it does not use any more.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the contestant has no output")?;
        Ok(Process { child, input, output: BufReader::new(output) })
    }

    fn phase(&mut self, phase: Phase) -> Result<Option<Figures>> {
        let input = self.input.as_mut().ok_or("the contestant was told to end")?;
        if input.write_all(format!("{}\n", phase.name()).as_bytes()).is_err() {
            return Err(self.death());
        }
        self.hear()
    }

    fn hear<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(self.death());
        }
        Ok(serde_json::from_str(&line)?)
    }

    fn end(mut self) -> Result<()> {
        self.input = None;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("it ended with {status}").into()) }
    }

    fn death(&mut self) -> Fault {
        match self.child.wait() {
            Ok(status) => format!("its process ended with {status}").into(),
            Err(error) => error.into(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the device has digested the files that were removed: no discard for half a second.
fn settle() {
    let limit = Instant::now() + Duration::from_secs(15);
    let mut last = discards();
    let mut quiet = 0;
    while quiet < 5 && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(100));
        let now = discards();
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
    }
}

/// Discards completed by all devices.
fn discards() -> u64 {
    let text = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let counts = text.lines().filter_map(|line| line.split_whitespace().nth(14)?.parse().ok());
    counts.fold(0u64, |sum, count: u64| sum.wrapping_add(count))
}

fn summary(play: &Play) -> String {
    let phases: Vec<String> = play
        .phases
        .iter()
        .map(|phase| format!("{} {:.0}/s", phase.figures.phase.name(), phase.ops_per_second))
        .collect();
    let fault = play.fault.as_ref().map(|fault| format!("; ended early: {fault}"));
    format!("    {}{}", phases.join(", "), fault.unwrap_or_default())
}
