//! One volume on a simulated cache device and a backing in memory, and the model beside them.

mod model;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use entresol_flash::OpenMode;
use entresol_sim::{CrashChoice, Ordering as Completing, Random, SimDevice, SimOptions};
use entresol_volume::backing::Backing;
use entresol_volume::backing::memory::{Loss, MemoryMedium, Pace};
use entresol_volume::{
    Cache, CacheOptions, Completion, Cost, Durable, Hole, Mode, Moment, Qos, Request, VolumeId,
    VolumeOptions, Volumes,
};
use model::{Model, SECTOR};

/// Sectors of the volume: the last block is a short one.
const SECTORS: u64 = 64 * 8 + 3;
const CACHE_BYTES: u64 = 4 << 20;
const IN_FLIGHT_MAX: usize = 8;

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Kill,
    PowerLoss,
    Close,
}

/// A volume under test.
pub(crate) struct World {
    device: SimDevice,
    medium: MemoryMedium,
    directory: Directory,
    boot: u128,
    cache: Option<Cache>,
    volume: VolumeId,
    model: Model,
    random: Random,
    /// Percent of the cache that may be dirty: with many, a log lets go of entries one by one.
    dirty_percent: u8,
    now: u64,
    tokens: u64,
    pending: HashMap<u64, Asked>,
    /// Where the last read ended, sectors.
    reader: u64,
}

enum Asked {
    Read { first: u64, expected: Vec<u8> },
    Write { number: u64 },
    Flush { number: u64 },
    Other,
}

struct Directory(PathBuf);

static DIRECTORIES: AtomicU64 = AtomicU64::new(0);

impl Directory {
    fn new() -> Directory {
        let shared = PathBuf::from("/dev/shm");
        let base = if shared.is_dir() { shared } else { std::env::temp_dir() };
        let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("entresol-volume-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One cache in three is on a device slower than memory.
fn device_options(seed: u64) -> SimOptions {
    let mut options = SimOptions::new(seed, CACHE_BYTES);
    if seed.is_multiple_of(3) {
        options.ordering = Completing::Late { looks_max: 1 + seed as u32 % 50 };
    }
    options
}

impl World {
    pub(crate) fn new(mode: Mode, seed: u64) -> World {
        let medium = MemoryMedium::new((SECTORS * SECTOR) as usize);
        medium.set_pace(Pace::Drawn { seed, reaps_max: 3 });
        let mut world = World {
            device: SimDevice::new(device_options(seed)),
            medium,
            directory: Directory::new(),
            boot: 1,
            cache: None,
            volume: VolumeId(0),
            model: Model::new(SECTORS),
            random: Random::new(seed),
            dirty_percent: [25, 60][(seed % 2) as usize],
            now: 0,
            tokens: 0,
            pending: HashMap::new(),
            reader: 0,
        };
        world.open();
        let options = VolumeOptions {
            name: "disk".to_owned(),
            backing: "memory".to_owned(),
            mode,
            share_bytes: [0, 0, 40 << 10][world.random.below(3) as usize],
            qos: Qos { limit: [0.0, 0.0, 500.0][world.random.below(3) as usize], ..Qos::default() },
            sequential_cutoff_bytes: [0, 16 << 10, 4 << 20][world.random.below(3) as usize],
            admission_hits: 1 + world.random.below(2) as u8,
            read_ahead_bytes: [0, 64 << 10][world.random.below(2) as usize],
            description: String::new(),
        };
        world.volume = world.cache.as_mut().unwrap().create(&options, Moment(0)).unwrap();
        world
    }

    /// Submits and completes requests drawn from the seed.
    pub(crate) fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.now += 1 + self.random.below(20_000_000);
            if self.pending.len() < IN_FLIGHT_MAX {
                self.submit_one();
            }
            if self.random.one_in(2) {
                self.turn();
            }
        }
    }

    /// Ends the process, or the machine, or closes the cache.
    pub(crate) fn end(&mut self, ending: Ending) {
        let cache = self.cache.take().unwrap();
        match ending {
            Ending::Close => {
                self.cache = Some(cache);
                self.settle();
                self.cache.take().unwrap().close(Moment(self.now)).unwrap();
                self.device = self.device.reopened(CrashChoice::KeepAll);
            }
            Ending::Kill => {
                self.device.crash_now();
                self.medium.crash(Loss::None);
                drop(cache);
                self.device = self.device.reopened(CrashChoice::KeepAll);
            }
            Ending::PowerLoss => {
                self.device.crash_now();
                let seed = self.random.next_u64();
                self.medium.crash(if seed.is_multiple_of(3) {
                    Loss::All
                } else {
                    Loss::Drawn(seed)
                });
                drop(cache);
                let choice = match seed % 4 {
                    0 => CrashChoice::DropAll,
                    1 => CrashChoice::KeepAll,
                    _ => CrashChoice::Random(seed),
                };
                self.device = self.device.reopened(choice);
                self.directory = Directory::new();
                self.boot += 1;
            }
        }
        self.pending.clear();
    }

    /// Opens again and compares everything with the model: what the volume reads, that it reads so
    /// when the cache is out of the way, and that the backing alone was a consistent past.
    pub(crate) fn check_after(&mut self, ending: Ending) {
        self.model.check_past(&self.medium.contents());
        self.open();
        let seen = self.read_all();
        self.model.check_survivors(&seen, ending);
        assert!(self.read_all() == seen, "a second read differs from the first");
        self.run(Request::WriteBack);
        let backing = self.medium.contents();
        for (sector, (seen, backing)) in
            seen.chunks(SECTOR as usize).zip(backing.chunks(SECTOR as usize)).enumerate()
        {
            assert!(
                seen == backing,
                "sector {sector} reads as {:?} but the backing holds {:?}",
                model::id_of(seen),
                model::id_of(backing)
            );
        }
        assert!(self.read_all() == seen, "a read after writing back differs");
        self.run(Request::Flush);
        self.model.begin_again(&seen);
    }

    fn open(&mut self) {
        let medium = self.medium.clone();
        let options = CacheOptions {
            mode: OpenMode::OpenOrCreate,
            identity: 77,
            buffer_directory: Some(self.directory.0.clone()),
            boot: self.boot,
            dirty_percent: self.dirty_percent,
            write_back_delay_ms: self.random.below(3) * 20,
            open_backing: Box::new(move |_| Ok(Box::new(medium.open()?) as Box<dyn Backing>)),
            ..CacheOptions::default()
        };
        let cache = Cache::open(Arc::new(self.device.clone()), options, Moment(self.now)).unwrap();
        assert!(cache.absent().is_empty(), "{:?}", cache.absent());
        self.cache = Some(cache);
    }

    fn submit_one(&mut self) {
        let length = match self.random.below(4) {
            0 => 8 * (1 + self.random.below(4)),
            1 => 1 + self.random.below(40),
            2 => 1 + self.random.below(150),
            _ => 8,
        };
        let length = length.min(SECTORS);
        let mut first = self.random.below(SECTORS - length + 1);
        if self.random.one_in(2) {
            first = first / 8 * 8;
        }
        let (offset, bytes) = (first * SECTOR, length * SECTOR);
        let durable = if self.random.one_in(8) { Durable::AtOnce } else { Durable::AtFlush };
        let token = self.tokens;
        self.tokens += 1;
        let (request, asked) = match self.random.below(24) {
            0..=8 => {
                // Half of the readers follow each other: there are streams to read ahead of.
                let follows = self.random.one_in(2) && self.reader + length <= SECTORS;
                let first = if follows { self.reader } else { first };
                self.reader = first + length;
                let offset = first * SECTOR;
                let expected = self.model.newest(first..first + length);
                let length = bytes as u32;
                (Request::Read { offset, length }, Asked::Read { first, expected })
            }
            9..=18 => {
                let number = self.model.write(first..first + length, durable, false);
                let bytes = Bytes::from(self.model.newest(first..first + length));
                (Request::Write { offset, bytes, durable }, Asked::Write { number })
            }
            19 => {
                let number = self.model.write(first..first + length, durable, true);
                let hole = Hole::Allowed;
                let cost = Cost::Any;
                let request = Request::Zero { offset, length: bytes, hole, cost, durable };
                (request, Asked::Write { number })
            }
            20 => {
                let end = first + length;
                let end = if end == SECTORS { end } else { end / 8 * 8 };
                let whole = first.div_ceil(8) * 8;
                let number = self.model.write(whole.min(end)..end, durable, true);
                (Request::Trim { offset, length: bytes, durable }, Asked::Write { number })
            }
            21 | 22 => (Request::Flush, Asked::Flush { number: self.model.begin_flush() }),
            _ if self.random.one_in(3) => {
                let mode = Mode::ALL[self.random.below(5) as usize];
                (Request::SetMode(mode), Asked::Other)
            }
            _ => (Request::Prefetch { offset, length: bytes }, Asked::Other),
        };
        self.pending.insert(token, asked);
        let (volume, now) = (self.volume, Moment(self.now));
        self.cache.as_mut().unwrap().submit(volume, token, request, now);
    }

    fn turn(&mut self) {
        let mut completions = Vec::new();
        let now = Moment(self.now);
        let cache = self.cache.as_mut().unwrap();
        if self.random.one_in(2) {
            cache.turn(now, &mut completions);
        } else {
            cache.wait(now, &mut completions);
        }
        completions.into_iter().for_each(|completion| self.completed(completion));
    }

    fn completed(&mut self, completion: Completion) {
        let bytes = completion.result.unwrap();
        match self.pending.remove(&completion.token).unwrap() {
            Asked::Read { first, expected } => {
                assert_eq!(bytes.len(), expected.len());
                let sectors = bytes.chunks(SECTOR as usize).zip(expected.chunks(SECTOR as usize));
                for (sector, (found, expected)) in (first..).zip(sectors) {
                    assert!(
                        found == expected,
                        "sector {sector} reads as {:?}, not {:?}",
                        model::id_of(found),
                        model::id_of(expected)
                    );
                }
            }
            Asked::Write { number } => self.model.acknowledge(number),
            Asked::Flush { number } => self.model.end_flush(number),
            Asked::Other => {}
        }
    }

    /// Waits until all requests have completed.
    fn settle(&mut self) {
        let mut turns = 0;
        while !self.pending.is_empty() {
            self.now += 10_000_000;
            self.turn();
            turns += 1;
            assert!(turns < 100_000, "{} requests never complete", self.pending.len());
        }
    }

    fn run(&mut self, request: Request) {
        let token = self.tokens;
        self.tokens += 1;
        self.pending.insert(token, Asked::Other);
        let (volume, now) = (self.volume, Moment(self.now));
        self.cache.as_mut().unwrap().submit(volume, token, request, now);
        self.settle();
    }

    fn read_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut at = 0;
        while at < SECTORS * SECTOR {
            let length = (SECTORS * SECTOR - at).min(20 * SECTOR) as u32;
            let token = self.tokens;
            self.tokens += 1;
            let (volume, now) = (self.volume, Moment(self.now));
            let request = Request::Read { offset: at, length };
            self.cache.as_mut().unwrap().submit(volume, token, request, now);
            let mut completions = Vec::new();
            for _ in 0..100_000 {
                if !completions.is_empty() {
                    break;
                }
                self.now += 1_000_000;
                let now = Moment(self.now);
                self.cache.as_mut().unwrap().wait(now, &mut completions);
            }
            all.extend_from_slice(&completions.pop().unwrap().result.unwrap());
            at += u64::from(length);
        }
        all
    }
}
