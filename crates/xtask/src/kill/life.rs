//! One store from its making through many kills to a clean stop.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use entresol_random::SplitMix;

use super::ledger::{Judgement, Ledger};
use super::load::{Answer, Connection, Fuse, write_until_killed};
use super::service::{Recipe, Service};
use super::{Level, Promise, stream};

/// A store, and what its clients know of it.
pub(super) struct Life {
    directory: PathBuf,
    buffers: PathBuf,
    recipe: Recipe,
    level: Level,
    seed: u64,
    ledgers: Vec<Ledger>,
    is_kept: bool,
}

/// What lives saw.
#[derive(Debug, Default)]
pub(super) struct Figures {
    kills: u64,
    recoveries_cut: u64,
    acknowledged: u64,
    unanswered: u64,
    keys: u64,
    newer: u64,
    older: u64,
    restart_max: Duration,
}

const CONNECTIONS: u64 = 4;
const KEYS_OF_EACH: usize = 200;
/// Gets on their way while keys are checked.
const CHECKED_AT_ONCE: usize = 32;
/// The file in a data directory that is the device.
const DATA_FILE: &str = "entresol.data";
/// A recovery is cut short within so many microseconds.
const CUT_MICROSECONDS: u64 = 30_000;

impl Life {
    /// Draws the options of a store and lays its directories.
    pub(super) fn begin(program: &Path, level: Level, seed: u64) -> Result<Life, String> {
        let name = level.name.split(':').next().unwrap_or_default();
        let name = format!("entresol-kill-{}-{name}-{seed}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        let shared_memory = Path::new("/dev/shm");
        let base = if shared_memory.is_dir() { shared_memory } else { directory.as_path() };
        let buffers = base.join(format!("{name}-buffers"));
        for path in [&directory, &buffers] {
            fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut random = stream(seed, 1);
        let mut options = words(&format!(
            "--dir {} --buffer-directory {} --durability {} --capacity 40MiB --memory 64MiB \
             --threads 2 --segment {} --compression {} --io {}",
            directory.join("data").display(),
            buffers.display(),
            level.name,
            random.pick(&["64KiB", "256KiB", "1MiB"]),
            random.pick(&["none", "none", "lz4", "zstd"]),
            random.pick(&["uring", "uring", "inline", "blocking"]),
        ));
        if random.remainder(4) == 0 {
            let key = directory.join("key");
            fs::write(&key, [7; 32]).map_err(|error| format!("{}: {error}", key.display()))?;
            options.extend(words(&format!("--encryption-key {}", key.display())));
        }
        let recipe = Recipe {
            program: program.to_owned(),
            options,
            socket: directory.join("socket"),
            errors: directory.join("errors"),
        };
        let ledgers = (0..CONNECTIONS).map(|number| Ledger::new(number, KEYS_OF_EACH)).collect();
        Ok(Life { directory, buffers, recipe, level, seed, ledgers, is_kept: false })
    }

    /// Kills the server so many times and stops it cleanly at the end.
    pub(super) fn pass(&mut self, rounds: u64, figures: &mut Figures) -> Result<(), String> {
        let mut service = self.recipe.start()?;
        for round in 1..=rounds {
            let mut random = stream(self.seed, 1_000 + round);
            let killed = self.kill_under_load(service, &mut random, figures);
            service = killed
                .and_then(|()| self.restart(&mut random, figures))
                .and_then(|service| self.check(self.level.promise, figures).map(|()| service))
                .map_err(|reason| format!("round {round}: {reason}"))?;
        }
        self.stop(service).map_err(|reason| format!("at the clean stop: {reason}"))?;
        let after_stop = self.recipe.start()?;
        self.check(Promise::Acknowledged, figures)
            .map_err(|reason| format!("after the clean stop: {reason}"))?;
        self.stop(after_stop)
    }

    /// Leaves the files where they are and says where that is.
    pub(super) fn keep(&mut self) -> String {
        self.is_kept = true;
        format!(
            "served with: {}\nkept as the last kill left them: {}, {}; as they are now: {}, {}",
            self.recipe.options.join(" "),
            self.left().join(DATA_FILE).display(),
            self.left().join("buffers").display(),
            self.directory.join("data").display(),
            self.buffers.display()
        )
    }

    /// Where copies are of what the last kill left.
    fn left(&self) -> PathBuf {
        self.directory.join("left")
    }

    fn kill_under_load(
        &mut self,
        service: Service,
        random: &mut SplitMix,
        figures: &mut Figures,
    ) -> Result<(), String> {
        // As many short rounds as long ones: the first writes after a recovery matter as well.
        let magnitude = 1 << random.remainder(14);
        let fuse = Fuse::new(service, 1 + random.remainder(magnitude));
        let socket = &self.recipe.socket;
        let ended: Vec<Result<u64, String>> = std::thread::scope(|scope| {
            let writers: Vec<_> = self
                .ledgers
                .iter_mut()
                .map(|ledger| {
                    let (fuse, random) = (&fuse, stream(random.next_u64(), 2));
                    scope.spawn(move || {
                        let ended = write_until_killed(socket, ledger, random, fuse);
                        // One that failed ends the round for all.
                        if ended.is_err() { fuse.fire().and(ended) } else { ended }
                    })
                })
                .collect();
            let join = |writer: std::thread::ScopedJoinHandle<'_, _>| {
                writer.join().unwrap_or_else(|_| Err("a connection panicked".to_string()))
            };
            writers.into_iter().map(join).collect()
        });
        for unanswered in ended {
            figures.unanswered += unanswered?;
        }
        figures.kills += 1;
        figures.acknowledged += fuse.acknowledged();
        Ok(())
    }

    /// Restarts the server; now and then a recovery is cut short first.
    fn restart(&self, random: &mut SplitMix, figures: &mut Figures) -> Result<Service, String> {
        self.copy_what_is_left()?;
        if random.remainder(4) == 0 {
            let mut cut = self.recipe.begin()?;
            std::thread::sleep(Duration::from_micros(random.remainder(CUT_MICROSECONDS)));
            cut.kill()?;
            cut.wait()?;
            figures.recoveries_cut += 1;
        }
        let start = Instant::now();
        let service = self.recipe.start()?;
        figures.restart_max = figures.restart_max.max(start.elapsed());
        Ok(service)
    }

    fn copy_what_is_left(&self) -> Result<(), String> {
        let left = self.left();
        let cannot = |error: std::io::Error| format!("{}: {error}", left.display());
        if left.exists() {
            fs::remove_dir_all(&left).map_err(cannot)?;
        }
        let buffers = left.join("buffers");
        fs::create_dir_all(&buffers).map_err(cannot)?;
        let data = self.directory.join("data").join(DATA_FILE);
        fs::copy(data, left.join(DATA_FILE)).map_err(cannot)?;
        for entry in fs::read_dir(&self.buffers).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            fs::copy(entry.path(), buffers.join(entry.file_name())).map_err(cannot)?;
        }
        Ok(())
    }

    /// Reads every key and compares it with what `promise` allows.
    fn check(&mut self, promise: Promise, figures: &mut Figures) -> Result<(), String> {
        let mut connection = Connection::open(&self.recipe.socket)?;
        let mut present = 0;
        for ledger in &mut self.ledgers {
            let places: Vec<usize> = (0..ledger.len()).collect();
            for places in places.chunks(CHECKED_AT_ONCE) {
                for place in places {
                    connection.gather(&[b"GET", ledger.name(*place).as_bytes()]);
                }
                connection.flush().map_err(|error| format!("cannot ask: {error}"))?;
                for place in places {
                    let found = match connection.receive()? {
                        Some(Answer::Value(found)) => found,
                        other => return Err(format!("{}: {other:?}", ledger.name(*place))),
                    };
                    present += i64::from(found.is_some());
                    figures.keys += 1;
                    match ledger.judge(*place, found.as_deref(), promise)? {
                        Judgement::Acknowledged => {}
                        Judgement::Newer => figures.newer += 1,
                        Judgement::Older => figures.older += 1,
                    }
                }
            }
        }
        match ask(&mut connection, &[b"DBSIZE"])? {
            Answer::Number(count) if count == present => Ok(()),
            other => Err(format!("DBSIZE is {other:?}, and {present} keys are there")),
        }
    }

    /// Stops the server as a person would.
    fn stop(&self, mut service: Service) -> Result<(), String> {
        let mut connection = Connection::open(&self.recipe.socket)?;
        connection.gather(&[b"SHUTDOWN"]);
        connection.flush().map_err(|error| format!("cannot ask for a stop: {error}"))?;
        let status = service.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if !self.is_kept {
            for path in [&self.directory, &self.buffers] {
                // What cannot be removed stays in the temporary directory, where it may.
                drop(fs::remove_dir_all(path));
            }
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { kills, recoveries_cut, acknowledged, unanswered, .. } = self;
        let Figures { keys, newer, older, .. } = self;
        write!(
            f,
            "{kills} kills, {recoveries_cut} recoveries cut short; {acknowledged} writes \
             acknowledged, {unanswered} not; {keys} keys compared: 0 wrong, {newer} newer than \
             acknowledged, {older} older; restart {} ms at most",
            self.restart_max.as_millis()
        )
    }
}

fn ask(connection: &mut Connection, arguments: &[&[u8]]) -> Result<Answer, String> {
    connection.gather(arguments);
    connection.flush().map_err(|error| format!("cannot ask: {error}"))?;
    connection.receive()?.ok_or_else(|| "the server closed the connection".to_string())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_string).collect()
}
