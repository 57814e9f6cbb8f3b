//! Ordered tables of a hosted store in a process that is killed, round after round. Several writers
//! send atomic batches over several tables, and the process that checks keeps what was
//! acknowledged. After each kill it opens the store, checks every page, and compares every row of
//! every table with the steps that the level of durability promises.
//!
//! Steps, options and the acknowledgement that a kill follows come from the seed; what the
//! scheduler does is not drawn. Files of a failed round stay where they are and are named.
//! `ENTRESOL_SEED` replaces the seed, `ENTRESOL_KILLS` the number of rounds at each level, and
//! `ENTRESOL_LEVEL` the levels: `cargo x kill` sets them.

#![expect(clippy::expect_used, reason = "a test stops where something fails")]

mod ledger;
mod life;
mod plan;
mod worker;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use entresol_random::SplitMix;

use ledger::{After, Ledger};
use life::Life;

const LEVELS: [&str; 5] = ["memory", "process", "flushed", "periodic:50ms", "synced"];
/// Kills of one store, at most.
const ROUNDS_OF_A_LIFE: u64 = 20;
/// Kills at each level where nobody says otherwise.
const ROUNDS: u64 = 2;
const TEST: &str = "acknowledged_batches_over_tables_survive_kills_at_every_level";
/// Set where a known bug was planted: see `cargo x planted`.
const PLANTED: &str = "ENTRESOL_PLANTED";
/// Set in the process that is killed: the round, the level, and both directories.
const WORKER: [&str; 4] =
    ["ENTRESOL_ROUND", "ENTRESOL_LEVEL", "ENTRESOL_DIRECTORY", "ENTRESOL_BUFFERS"];
/// A process that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Kills that are to meet a recovery come within so many microseconds.
const RECOVERY_MICROSECONDS: u64 = 60_000;

/// A process that does not outlive its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// When a process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fuse {
    /// At this acknowledgement.
    Acknowledged(u64),
    /// After a time in which a recovery may go on.
    Time(Duration),
}

impl Life {
    /// One that has no directories so far.
    fn new(seed: u64, level: &str) -> Life {
        let name = level.split(':').next().unwrap_or_default();
        let name = format!("entresol-killed-{}-{name}-{seed}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        let shared_memory = Path::new("/dev/shm");
        let base = if shared_memory.is_dir() { shared_memory } else { directory.as_path() };
        let buffers = base.join(format!("{name}-buffers"));
        Life { seed, level: level.to_owned(), directory, buffers }
    }

    /// As the environment of the process that is killed says.
    fn of_environment() -> Option<(Life, u64)> {
        let [round, level, directory, buffers] = WORKER.map(|name| std::env::var(name).ok());
        let (directory, buffers) = (PathBuf::from(directory?), PathBuf::from(buffers?));
        let seed = number("ENTRESOL_SEED", 0);
        Some((Life { seed, level: level?, directory, buffers }, round?.parse().ok()?))
    }

    /// Rounds up to the last one; what is wrong otherwise, and where the files are.
    fn pass(&self, rounds: u64) -> Result<(), String> {
        for path in [&self.directory, &self.buffers] {
            std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
        }
        let mut ledger = Ledger::new(self.seed);
        let left = self.directory.join("left");
        for round in 1..=rounds {
            let mut random = SplitMix::new(self.seed << 32 ^ round);
            // As many short rounds as long ones: the first writes after a recovery matter as well.
            let magnitude = 1 << random.index(13);
            let fuse = match random.one_in(4) {
                true => Fuse::Time(Duration::from_micros(random.remainder(RECOVERY_MICROSECONDS))),
                false => Fuse::Acknowledged(1 + random.remainder(magnitude)),
            };
            let checked = self
                .kill(round, fuse, &mut ledger)
                .and_then(|()| {
                    if self.data().exists() {
                        self.copy_to(&left).map_err(|error| error.to_string())?;
                    }
                    let after = if random.one_in(3) { After::Close } else { After::Leave };
                    ledger.check(self, round, after)
                })
                .map_err(|reason| format!("round {round}, {fuse:?}: {reason}"));
            checked.map_err(|reason| {
                let (now, buffers) = (self.directory.display(), self.buffers.display());
                let left = left.display();
                let Life { seed, level, .. } = self;
                format!(
                    "seed {seed}, level {level}, {reason}\nfiles as the last kill left them: \
                     {left}; as they are now: {now}, {buffers}\nreplay with: cargo x kill \
                     --durability {level} --seed {seed} --rounds {rounds}"
                )
            })?;
        }
        self.remove().map_err(|error| error.to_string())
    }

    /// Removes its files.
    fn remove(&self) -> std::io::Result<()> {
        [&self.directory, &self.buffers].into_iter().try_for_each(std::fs::remove_dir_all)
    }

    /// Lets a process write until it is killed, and takes in what it says.
    fn kill(&self, round: u64, fuse: Fuse, ledger: &mut Ledger) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let (directory, buffers) = (&self.directory, &self.buffers);
        let mut child = Command::new(program)
            .args(["--exact", TEST, "--nocapture", "--test-threads", "1"])
            .env("ENTRESOL_SEED", self.seed.to_string())
            .env(WORKER[0], round.to_string())
            .env(WORKER[1], &self.level)
            .env(WORKER[2], directory)
            .env(WORKER[3], buffers)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let lines = lines_of(child.stderr.take().ok_or("the process has no pipe")?);
        let mut child = Killed(child);
        let mut said = Vec::new();
        let patience = if let Fuse::Time(time) = fuse { time } else { PATIENCE };
        let mut heard = 0;
        let ended_by_itself = loop {
            match lines.recv_timeout(patience) {
                Ok(line) => {
                    heard += u64::from(ledger.hear(round, &line));
                    said.push(line);
                }
                Err(RecvTimeoutError::Disconnected) => break true,
                Err(RecvTimeoutError::Timeout) if fuse == Fuse::Time(patience) => break false,
                Err(RecvTimeoutError::Timeout) => return Err(format!("it hangs: {said:?}")),
            }
            if matches!(fuse, Fuse::Time(_)) || fuse == Fuse::Acknowledged(heard) {
                break false;
            }
        };
        child.0.kill().map_err(|error| format!("it cannot be killed: {error}"))?;
        // What it said before it was killed is in the pipe.
        while let Ok(line) = lines.recv_timeout(PATIENCE) {
            ledger.hear(round, &line);
            said.push(line);
        }
        let is_word = |line: &&String| !line.starts_with("done ");
        let words: Vec<&String> = said.iter().filter(is_word).collect();
        match ended_by_itself || !words.is_empty() {
            true => Err(format!("the process failed: {words:?}")),
            false => Ok(()),
        }
    }
}

/// The lines of a pipe, until its other end is closed.
fn lines_of(pipe: std::process::ChildStderr) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable);
    text.map_or(otherwise, |text| text.parse().expect("a variable has a whole number"))
}

#[test]
fn acknowledged_batches_over_tables_survive_kills_at_every_level() {
    if let Some((life, round)) = Life::of_environment() {
        return worker::work(&life, round);
    }
    let only = std::env::var("ENTRESOL_LEVEL").ok();
    for level in LEVELS.iter().filter(|level| only.as_deref().is_none_or(|only| only == **level)) {
        let mut left = number("ENTRESOL_KILLS", ROUNDS);
        for seed in number("ENTRESOL_SEED", 1).. {
            let rounds = left.min(ROUNDS_OF_A_LIFE);
            let life = Life::new(seed, level);
            if let Err(reason) = life.pass(rounds) {
                // Nobody looks into a failure that was asked for.
                if std::env::var_os(PLANTED).is_some() {
                    drop(life.remove());
                }
                panic!("{reason}");
            }
            left -= rounds;
            if left == 0 {
                break;
            }
        }
    }
}
