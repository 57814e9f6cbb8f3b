//! The setup of a bench: options resolved against its defaults, and the subject that it drives.

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use entresol_device::{Device, Preparation};
use entresol_tier::{
    Admission, Durability, OpenMode, PutOptions, SessionOptions, SessionUsers, Statistics,
    StoreOptions, TieredOptions, WriteMode,
};
use entresol_workload::{Arrivals, Distribution, KeyLayout, Mix, Sizes};

use super::driver::{Job, Shared, Tally, Until, drive};
use super::target::{Embedded, Remote};
use crate::address::Address;
use crate::client::Client;
use crate::engine::{Engine, open_file};
use crate::failure::{Failure, Outcome};
use crate::meter;
use crate::progress;
use crate::scratch::Scratch;

/// A bench's options, every default filled in.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) keys: u64,
    pub(crate) sizes: Sizes,
    pub(crate) threads: usize,
    pub(crate) in_flight: usize,
    pub(crate) memory: Option<u64>,
    pub(crate) capacity: Option<u64>,
    pub(crate) fill: f64,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) arrivals: Arrivals,
    pub(crate) distribution: Option<Distribution>,
    pub(crate) durability: Durability,
    pub(crate) write_mode: WriteMode,
    pub(crate) shards: u16,
    /// As of ordered tables.
    pub(crate) absent_filter_bits: u8,
    pub(crate) seed: u64,
    pub(crate) target: Option<Address>,
    pub(crate) server_pid: Option<u32>,
    pub(crate) server_threads: Option<usize>,
    pub(crate) directory: Option<std::path::PathBuf>,
    pub(crate) buffers: Option<std::path::PathBuf>,
    /// Ends the driving of a server.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Bytes a record takes besides key and value: its header and its line in the footer.
const RECORD_OVERHEAD: f64 = 32.0 + 40.0;
/// Superblocks, and segments that are open or kept free for reclaim, bytes.
const SEGMENTS_APART: u64 = 12 << 20;
/// Records begin at multiples of this.
const RECORD_ALIGNMENT: f64 = 32.0;
/// Entries of a scan of YCSB.
const SCAN_ENTRIES: RangeInclusive<u64> = 1..=100;
/// Bytes of a key.
pub(crate) const KEY_BYTES: f64 = 16.0;

impl Setup {
    /// Bytes of flash that `keys` entries take, about.
    pub(crate) fn data_bytes(&self, keys: u64) -> f64 {
        let record = self.sizes.mean() + KEY_BYTES + RECORD_OVERHEAD + RECORD_ALIGNMENT / 2.0;
        keys as f64 * record * 1.002
    }

    /// The durability, as the option names it.
    pub(crate) fn durability_name(&self) -> String {
        match self.durability {
            Durability::Periodic(ms) => format!("periodic:{ms}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// Capacity at which the data fill the device to the share asked for.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let wanted = self.data_bytes(self.keys) / self.fill;
        let least = 64 << 20;
        let chosen = (wanted as u64).saturating_add(SEGMENTS_APART).max(least);
        self.capacity.unwrap_or(chosen) >> 20 << 20
    }

    /// Keys for which the store has room besides those it is filled with, a hundredth of them at
    /// least: so many that writers are not slowed.
    pub(crate) fn insert_room(&self) -> u64 {
        const FILL_MAX: f64 = 0.85;
        // What reclaim and the streams of a shard keep, and what is apart.
        const RESERVE: u64 = 10 << 20;
        let apart = SEGMENTS_APART + u64::from(self.shards) * RESERVE;
        let room = self.capacity_bytes().saturating_sub(apart) as f64 * FILL_MAX;
        ((room / self.data_bytes(1)) as u64).saturating_sub(self.keys).max(self.keys / 100)
    }

    /// How the store under test is opened. `cache`: bytes of the memory cache; `None`: what
    /// `--memory` leaves.
    pub(crate) fn options(&self, cache: Option<u64>) -> TieredOptions {
        let store = StoreOptions {
            mode: OpenMode::OpenOrCreate,
            shards: self.shards,
            durability: self.durability,
            write_mode: self.write_mode,
            buffer_directory: self.buffers.clone(),
            ..StoreOptions::default()
        };
        let memory = self.memory.unwrap_or_else(|| {
            let base = (256 << 20) + self.keys * 24;
            base.saturating_add(cache.unwrap_or(0))
        });
        TieredOptions {
            store,
            memory_bytes: memory,
            cache_bytes: cache,
            admission: Admission::Always,
        }
    }

    /// A job on this bench's keys.
    pub(crate) fn job(&self, mix: Mix, until: Until) -> Job {
        let share = |per_second: f64| per_second / self.threads as f64;
        Job {
            mix: Mix { distribution: self.distribution.unwrap_or(mix.distribution), ..mix },
            keys: self.keys,
            first_key: 0,
            layout: KeyLayout::Text,
            scan_entries: SCAN_ENTRIES,
            sizes: self.sizes.clone(),
            put: PutOptions::default(),
            in_flight: self.in_flight,
            arrivals: match self.arrivals {
                Arrivals::Even(rate) => Arrivals::Even(share(rate)),
                Arrivals::Poisson(rate) => Arrivals::Poisson(share(rate)),
                Arrivals::Closed => Arrivals::Closed,
            },
            seed: self.seed,
            until,
        }
    }

    /// A job that prepares or checks what is measured at `--rate`: as fast as it goes.
    pub(crate) fn fast_job(&self, mix: Mix, until: Until) -> Job {
        Job { arrivals: Arrivals::Closed, ..self.job(mix, until) }
    }

    /// A job that puts the keys of `keys` once each, in order.
    pub(crate) fn fill_job(&self, keys: Range<u64>) -> Job {
        self.fast_job(Mix::updating(0, Distribution::Sequential), Until::Keys(keys))
    }

    /// The time of one round.
    pub(crate) fn round_time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds / self.rounds.max(1) as f64)
    }

    /// Where the bench's files go: `--dir`, or a directory that vanishes.
    pub(crate) fn scratch(&self) -> Outcome<Scratch> {
        match &self.directory {
            Some(path) => Scratch::at(path),
            None => Scratch::below(&std::env::temp_dir(), "entresol-bench"),
        }
    }

    /// A directory for the write buffers that outlive the process, where the durability asks for
    /// them and none was given, and the setup that names it.
    pub(crate) fn with_buffers(&self) -> Outcome<(Option<Scratch>, Setup)> {
        let outlive = matches!(self.durability, Durability::Process | Durability::Periodic(_));
        if !outlive || self.buffers.is_some() {
            return Ok((None, self.clone()));
        }
        let scratch = Scratch::below(Path::new(MEMORY_FILES), "entresol-buffers")?;
        let setup = Setup { buffers: Some(scratch.path().to_owned()), ..self.clone() };
        Ok((Some(scratch), setup))
    }

    /// Refuses a target other than the embedded engine.
    pub(crate) fn embedded_only(&self, bench: &str) -> Outcome<()> {
        match &self.target {
            None => Ok(()),
            Some(address) => Err(Failure::CannotRun(format!(
                "bench {bench} looks inside the engine and cannot run against {address}; use \
                 --target embedded"
            ))),
        }
    }
}

/// What a bench drives.
pub(crate) enum Subject {
    /// The engine in this process, and the files it is on.
    Embedded(Box<Store>),
    /// A server elsewhere.
    Remote(Address, Option<u32>),
}

/// An embedded store and the file it is on.
pub(crate) struct Store {
    pub(crate) engine: Engine,
    pub(crate) path: std::path::PathBuf,
    scratch: Vec<Scratch>,
}

impl Store {
    /// An engine on the file at `path`, which someone else keeps.
    pub(crate) fn new(engine: Engine, path: std::path::PathBuf) -> Store {
        Store { engine, path, scratch: Vec::new() }
    }
}

/// A file system in memory.
pub(crate) const MEMORY_FILES: &str = "/dev/shm";

/// Name of a bench's data file; never the name that a served store has.
pub(crate) const BENCH_FILE: &str = "bench.data";

impl Subject {
    /// The subject that `setup` asks for, empty where it is the embedded engine.
    pub(crate) fn open(setup: &Setup, cache: Option<u64>) -> Outcome<Subject> {
        if let Some(address) = &setup.target {
            return Ok(Subject::Remote(address.clone(), setup.server_pid));
        }
        let scratch = setup.scratch()?;
        let path = scratch.fresh(BENCH_FILE);
        let device = prepared_file(&path, setup.capacity_bytes())?;
        let (buffers, setup) = setup.with_buffers()?;
        let engine = Engine::open(device, setup.options(cache))?;
        let scratch = buffers.into_iter().chain([scratch]).collect();
        Ok(Subject::Embedded(Box::new(Store { engine, path, scratch })))
    }

    /// The path of a file beside the store's, of which nothing stays behind.
    pub(crate) fn fresh_sibling(&self, name: &str) -> Option<std::path::PathBuf> {
        Some(self.store()?.scratch.last()?.fresh(name))
    }

    /// The store, where it is embedded.
    pub(crate) fn store(&self) -> Option<&Store> {
        match self {
            Subject::Embedded(store) => Some(store),
            Subject::Remote(..) => None,
        }
    }

    /// The engine's figures; all zero where it is elsewhere.
    pub(crate) fn statistics(&self) -> Statistics {
        self.store().map(|store| store.engine.tiered.statistics()).unwrap_or_default()
    }

    /// Runs `job`. The tally's processor time is the server's where its pid is known.
    pub(crate) fn drive(&self, setup: &Setup, job: &Job, shared: &Shared) -> Outcome<Tally> {
        match self {
            Subject::Embedded(store) => {
                let options = SessionOptions {
                    depth: job.in_flight.clamp(1, 4096),
                    read_buffer_bytes: read_buffer_bytes(&job.sizes),
                    users: SessionUsers::One,
                };
                let mut sessions = Vec::new();
                for _ in 0..setup.threads {
                    sessions.push(Embedded::new(store.engine.tiered.session(options)?));
                }
                drive(job, shared, sessions)
            }
            Subject::Remote(address, pid) => {
                let mut connections = Vec::new();
                for _ in 0..setup.threads {
                    connections
                        .push(Remote::new(Client::connect(address)?, Arc::clone(&setup.stop)));
                }
                let cpu = || pid.and_then(meter::process_cpu_us);
                let before = cpu();
                let mut tally = drive(job, shared, connections)?;
                if let (Some(before), Some(after)) = (before, cpu()) {
                    tally.cpu_us = after - before;
                }
                Ok(tally)
            }
        }
    }

    /// Puts the keys of `keys` once each, with a progress bar.
    pub(crate) fn fill(&self, setup: &Setup, shared: &Shared, keys: Range<u64>) -> Outcome<Tally> {
        let total = keys.end - keys.start;
        let bar = progress::bar("filling", total);
        let before = shared.finished.load(Ordering::Relaxed);
        let over = AtomicBool::new(false);
        let tally = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    bar.set_position(shared.finished.load(Ordering::Relaxed) - before);
                    std::thread::park_timeout(Duration::from_millis(250));
                }
            });
            let tally = self.drive(setup, &setup.fill_job(keys), shared);
            over.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
            tally
        });
        bar.finish_and_clear();
        tally?.sound()
    }
}

/// A device on a new file of `capacity` bytes, all of them written once.
pub(crate) fn prepared_file(path: &Path, capacity: u64) -> Outcome<Arc<dyn Device>> {
    let spinner = progress::spinner("preparing the file");
    let device = open_file(path, Some(capacity), Preparation::Written);
    spinner.finish_and_clear();
    device
}

fn read_buffer_bytes(sizes: &Sizes) -> usize {
    (sizes.max() as usize + 2048).next_multiple_of(4096).min(1 << 20)
}
