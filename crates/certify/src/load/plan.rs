//! The plan of a load: streams of transfers with their rates, and the loops that the blocking
//! engine runs for them.
//!
//! Rates come from the derivations; here they become streams. The loops of a compatible plan pace
//! as ACT 6 does, rounding included; those of a strict one keep the derived rates exactly, on index
//! devices too.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use entresol_device::WriteMode;
use entresol_workload::mix64;

use crate::config::{ArrivalKind, EngineKind, Index, LoadModel, SizeShare, Storage, TestOptions};
use crate::derive::{IndexRates, StorageRates};
use crate::load::arrival::{Arrival, Recording};
use crate::load::content::Marking;
use crate::load::error::{Error, Result};
use crate::load::interval::{Kind, Series};
use crate::load::model::{ModelOptions, NewBlocks, ReclaimRule};
use crate::load::pace::{Loop, Pace, Steps};
use crate::load::shape::{Shape, Sizes};
use crate::load::target::Manner;
use crate::text;

/// A load.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is transferred, where and how often.
    pub streams: Vec<Stream>,
    /// How threads of the blocking engine share the streams.
    pub loops: Vec<Loop>,
    /// What is reported, in order.
    pub series: Vec<Series>,
    /// Transfers stay within whole blocks of so many bytes.
    pub block_bytes: u32,
    /// When it ends and reports.
    pub timing: Timing,
    /// What issues it.
    pub engine: Engine,
    /// As ACT does it, or better.
    pub manner: Manner,
    /// When transfers of the ring engine are due.
    pub arrival: Arrival,
    /// What is written.
    pub writing: Writing,
    /// Of all random choices.
    pub seed: u64,
}

/// One kind of transfer at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Of what.
    pub kind: Kind,
    /// Where; `None`: on a device chosen at random for each transfer.
    pub device: Option<usize>,
    /// Transfers a second; `None`: the next one so many ns after the end of the last.
    pub pacing: Pacing,
    /// Sizes and places.
    pub shape: Shape,
}

/// What makes a transfer due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// The clock: so many a second.
    Open(f64),
    /// The end of the one before, and a pause in ns.
    Closed {
        /// ns.
        pause_ns: u64,
    },
    /// An engine on the stream's device, which says what is written and where. It says what the
    /// device's stream of large reads reads too.
    Modelled(ModelOptions),
    /// The engine of the device.
    Fed,
}

/// When a load ends and reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Of the whole load, ns.
    pub duration_ns: u64,
    /// Between reports, ns.
    pub interval_ns: u64,
    /// Lag that stops the load, ns; `None`: no lag does.
    pub lag_ns_max: Option<u64>,
}

/// What issues the transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A thread for each transfer in flight, in loops that wait for it.
    Psync,
    /// Few threads over io_uring, after a schedule that no transfer delays.
    Uring {
        /// Threads.
        threads: usize,
        /// Transfers of one stream in flight on one device, at most.
        depth: usize,
    },
}

/// What is written and how reads are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Writing {
    /// Share of random bytes, %.
    pub compress_pct: u32,
    /// Whether contents describe themselves.
    pub marking: Marking,
    /// Whether reads are judged by that.
    pub judging: Judging,
    /// Whether a write is on the medium when it completes.
    pub mode: WriteMode,
    /// The directory of the journal of writes, if there is one.
    pub journal: Option<PathBuf>,
}

/// Whether reads are judged by the descriptions of what they bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judging {
    /// They are not looked at.
    Ignored,
    /// A unit that a load wrote must be the one that was written there.
    Verified,
}

/// Bytes of a transfer on an index device.
const INDEX_PAGE_BYTES: u32 = 4096;
/// Reads, and writes, that a cache thread does in a row.
const CACHE_BATCH: u32 = 100;
/// How long a device may take for each transfer before transfers wait for room, seconds: longer
/// than any rule allows most of them to take.
const SERVICE_SECONDS: f64 = 0.016;
/// Transfers in flight that every stream may have.
const DEPTH_MIN: usize = 32;
/// Transfers in flight of one stream on one device, unless configured.
const DEPTH_MAX: usize = 1024;
/// Transfers a second beyond which one thread may not be enough.
const ONE_THREAD_PER_SEC: f64 = 200_000.0;
/// A segment of Entresol's engine.
const SEGMENT_BYTES: u32 = 1 << 20;
/// Bytes written last that a modelled engine keeps in memory: a server's default.
const RECENT_BYTES: u32 = 256 << 20;
/// Live data on the device of a modelled engine that chooses victims late, %.
const COST_BENEFIT_FILL_PCT: u32 = 80;
/// Largest record and block, bytes.
const BYTES_MAX: u32 = 8 << 20;

impl Plan {
    /// The load of `config` on data devices at `rates`.
    pub fn storage(config: &Storage, rates: &StorageRates, manner: Manner) -> Result<Plan> {
        let block_bytes = match modelled(config, manner)? {
            LoadModel::Entresol => SEGMENT_BYTES,
            LoadModel::Act | LoadModel::Engine => config.large_block_op_kbytes.saturating_mul(1024),
        };
        if block_bytes == 0 || block_bytes > BYTES_MAX {
            return Err(Error::Plan(format!(
                "large-block-op-kbytes: {} is {block_bytes} bytes; expected 1 to 8192 KiB",
                config.large_block_op_kbytes
            )));
        }
        for rate in [rates.large_reads, rates.large_writes] {
            if !rate.is_finite() || rate < 0.0 {
                return Err(Error::Plan(format!(
                    "the large-block rate comes out as {rate} a second: a large block of \
                     {block_bytes} bytes holds no whole record of average size; make \
                     large-block-op-kbytes larger or records smaller"
                )));
            }
        }
        let mut plan = Plan::bare(manner, config.seconds(), config.max_lag_sec);
        plan.block_bytes = block_bytes;
        plan.writing.compress_pct = config.compress_pct;
        plan.writing.mode = mode(config.disable_odsync);
        match modelled(config, manner)? {
            LoadModel::Act => plan.add_blocks(config, rates),
            model => plan.add_engines(config, rates, model),
        }
        plan.add_raiders(config);
        plan.add_records(config, rates);
        plan.series = match manner {
            Manner::Compatible => text::storage_series_compat(config),
            Manner::Strict => text::storage_series(config, rates),
        };
        plan.follow(&config.test)?;
        Ok(plan)
    }

    /// The load of `config` on index devices at `rates`.
    pub fn index(config: &Index, rates: &IndexRates, manner: Manner) -> Result<Plan> {
        let seconds = (config.test_duration_sec, config.report_interval_sec);
        let mut plan = Plan::bare(manner, seconds, config.max_lag_sec);
        plan.block_bytes = INDEX_PAGE_BYTES;
        plan.writing.mode = mode(config.disable_odsync);
        let shape = Shape::Blocks { bytes: INDEX_PAGE_BYTES };
        let reads = u64::from(rates.service_reads);
        let stream = |kind, rate: u64| Stream {
            kind,
            device: None,
            pacing: Pacing::Open(rate as f64),
            shape: shape.clone(),
        };
        let threads = service_threads(config.service_threads);
        plan.streams.push(stream(Kind::Read, reads));
        let pace = service_pace(manner, reads, threads);
        plan.loops.push(Loop { kind: Kind::Read, threads, pace, steps: Steps::One(0) });
        if rates.cache_reads_and_writes > 0 {
            plan.streams.push(stream(Kind::Read, rates.cache_reads_and_writes));
            plan.streams.push(stream(Kind::Write, rates.cache_reads_and_writes));
            let threads = config.cache_threads.max(1);
            let (factor, times) = match manner {
                // ACT divides the rate by the devices once more, and works in bursts.
                Manner::Compatible => (config.device_names.len() as u64, CACHE_BATCH),
                Manner::Strict => (1, 1),
            };
            let scale = factor * u64::from(threads);
            let pace = Pace::Scaled { scale, per_sec: rates.cache_reads_and_writes };
            let steps = Steps::Rows { streams: vec![1, 2], times };
            plan.loops.push(Loop { kind: Kind::Write, threads, pace, steps });
        }
        plan.series = text::index_series(config, rates);
        plan.follow(&config.test)?;
        Ok(plan)
    }

    /// Numbers of streams and what each of them transfers at most, bytes.
    pub(crate) fn bytes_max(&self, transfer_bytes_min: u32) -> u64 {
        let of = |stream: &Stream| stream.shape.bytes_max(transfer_bytes_min);
        self.streams.iter().map(of).max().unwrap_or_default()
    }

    fn bare(manner: Manner, (duration, interval): (u32, u32), lag: u32) -> Plan {
        let seconds = |count: u32| u64::from(count) * 1_000_000_000;
        let marking = match manner {
            Manner::Compatible => Marking::Plain,
            Manner::Strict => Marking::Described { run: 0 },
        };
        Plan {
            streams: Vec::new(),
            loops: Vec::new(),
            series: Vec::new(),
            block_bytes: 0,
            timing: Timing {
                duration_ns: seconds(duration),
                interval_ns: seconds(interval.max(1)),
                lag_ns_max: (lag > 0).then(|| seconds(lag)),
            },
            engine: Engine::Psync,
            manner,
            arrival: Arrival::Even,
            writing: Writing {
                compress_pct: 100,
                marking,
                judging: Judging::Ignored,
                mode: WriteMode::Durable,
                journal: None,
            },
            seed: 0,
        }
    }

    fn add_blocks(&mut self, config: &Storage, rates: &StorageRates) {
        let bytes = self.block_bytes;
        let devices = config.device_names.len();
        let kinds = [(Kind::LargeRead, rates.large_reads), (Kind::LargeWrite, rates.large_writes)];
        for device in 0..devices {
            for (kind, rate) in kinds.into_iter().filter(|&(_, rate)| rate > 0.0) {
                let stream = self.streams.len();
                self.streams.push(Stream {
                    kind,
                    device: Some(device),
                    pacing: Pacing::Open(rate / devices as f64),
                    shape: Shape::Blocks { bytes },
                });
                let pace = Pace::Shared { parts: devices as u64, per_sec: rate };
                self.loops.push(Loop { kind, threads: 1, pace, steps: Steps::One(stream) });
            }
        }
    }

    /// An engine for each device, which gets its share of the records written.
    fn add_engines(&mut self, config: &Storage, rates: &StorageRates, model: LoadModel) {
        let bytes = self.block_bytes;
        let devices = config.device_names.len();
        if rates.record_writes == 0.0 {
            return;
        }
        let (rule, fill_pct) = match model {
            LoadModel::Entresol => (ReclaimRule::CostBenefit, COST_BENEFIT_FILL_PCT),
            LoadModel::Act | LoadModel::Engine => {
                let pct = config.defrag_lwm_pct;
                (ReclaimRule::LowWater { pct }, low_water_fill_pct(pct))
            }
        };
        let options = ModelOptions {
            records_per_block: (f64::from(bytes) / rates.stored_bytes_mean.max(1.0)) as u32,
            writes_per_sec: rates.record_writes / devices as f64,
            fill_pct,
            rule,
            recent_blocks: RECENT_BYTES / bytes,
            new_blocks: match config.commit_to_device {
                true => NewBlocks::Committed,
                false => NewBlocks::Written,
            },
        };
        for device in 0..devices {
            let mut streams = vec![(Kind::LargeWrite, Pacing::Modelled(options))];
            // Without that stream the engine finds what it needs in memory.
            if !config.no_defrag_reads {
                streams.push((Kind::LargeRead, Pacing::Fed));
            }
            self.streams.extend(streams.into_iter().map(|(kind, pacing)| Stream {
                kind,
                device: Some(device),
                pacing,
                shape: Shape::Blocks { bytes },
            }));
        }
    }

    fn add_raiders(&mut self, config: &Storage) {
        let bytes = self.block_bytes;
        for device in (0..config.device_names.len()).filter(|_| config.tomb_raider) {
            let pause_ns = u64::from(config.tomb_raider_sleep_usec) * 1000;
            let stream = self.streams.len();
            self.streams.push(Stream {
                kind: Kind::Raid,
                device: Some(device),
                pacing: Pacing::Closed { pause_ns },
                shape: Shape::InRow { bytes },
            });
            let pace = Pace::After { pause_ns };
            let steps = Steps::One(stream);
            self.loops.push(Loop { kind: Kind::Raid, threads: 1, pace, steps });
        }
    }

    fn add_records(&mut self, config: &Storage, rates: &StorageRates) {
        let (reads, writes) = (rates.internal_reads, rates.internal_writes);
        let (read_sizes, write_sizes) = sizes(config, rates);
        if reads == 0 && writes == 0 {
            return;
        }
        let first = self.streams.len();
        let manner = self.manner;
        let record = |kind, rate: u32, sizes: &Sizes, granule_bytes_min| Stream {
            kind,
            device: None,
            pacing: Pacing::Open(f64::from(rate)),
            shape: match (config.test.model, manner) {
                (LoadModel::Engine | LoadModel::Entresol, Manner::Strict) if kind == Kind::Read => {
                    Shape::Straddling { sizes: sizes.clone() }
                }
                _ => Shape::Records { sizes: sizes.clone(), granule_bytes_min },
            },
        };
        if reads > 0 {
            self.streams.push(record(Kind::Read, reads, &read_sizes, 0));
        }
        if writes > 0 {
            let granule = config.commit_min_bytes;
            self.streams.push(record(Kind::Write, writes, &write_sizes, granule));
        }
        let total = u64::from(reads) + u64::from(writes);
        let steps = match (reads, writes) {
            (0, _) | (_, 0) => Steps::One(first),
            _ => Steps::Mixed {
                first,
                second: first + 1,
                first_of_2_20: (u64::from(reads) << 20) / total,
            },
        };
        let threads = service_threads(config.service_threads);
        let pace = service_pace(self.manner, total, threads);
        let kind = if reads > 0 { Kind::Read } else { Kind::Write };
        self.loops.push(Loop { kind, threads, pace, steps });
    }

    /// Takes over how the load is to be issued.
    fn follow(&mut self, test: &TestOptions) -> Result<()> {
        self.seed = test.seed.unwrap_or_else(fresh_number);
        if self.manner == Manner::Compatible {
            return Ok(());
        }
        self.writing.marking = Marking::Described { run: fresh_number() };
        if test.verify {
            self.writing.judging = Judging::Verified;
        }
        if test.journal.is_some() && self.writing.mode != WriteMode::Durable {
            return Err(Error::Plan(
                "`journal` needs writes that are durable when they are acknowledged; drop \
                 `disable-odsync`"
                    .to_owned(),
            ));
        }
        self.writing.journal.clone_from(&test.journal);
        self.arrival = match &test.arrivals {
            ArrivalKind::Even => Arrival::Even,
            ArrivalKind::Poisson => Arrival::Poisson,
            ArrivalKind::Recorded(path) => Arrival::Recorded(Arc::new(Recording::read(path)?)),
        };
        if test.engine == EngineKind::Uring {
            let depth = match test.queue_depth {
                0 => self.depth(),
                depth => (depth as usize / self.lanes()).max(1),
            };
            self.engine = Engine::Uring { threads: self.threads(), depth };
        }
        Ok(())
    }

    /// Transfers in flight that the busiest stream needs while the device takes [`SERVICE_SECONDS`]
    /// for each.
    fn depth(&self) -> usize {
        let rates = self.streams.iter().map(Stream::per_sec);
        let needed = rates.fold(0.0, f64::max) * SERVICE_SECONDS;
        (needed as usize).clamp(DEPTH_MIN, DEPTH_MAX)
    }

    /// Streams that share the busiest device.
    fn lanes(&self) -> usize {
        let on = |device: usize| {
            self.streams.iter().filter(|of| of.device.is_none_or(|only| only == device)).count()
        };
        let devices = self.streams.iter().filter_map(|of| of.device).max().unwrap_or_default();
        (0..=devices).map(on).max().unwrap_or(1).max(1)
    }

    fn threads(&self) -> usize {
        let total: f64 = self.streams.iter().map(Stream::per_sec).sum();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if total > ONE_THREAD_PER_SEC { processors.min(2) } else { 1 }
    }
}

impl Stream {
    /// Transfers a second; 0 where no clock makes them due.
    pub fn per_sec(&self) -> f64 {
        match self.pacing {
            Pacing::Open(per_sec) => per_sec,
            Pacing::Closed { .. } | Pacing::Fed => 0.0,
            Pacing::Modelled(options) => options.blocks_per_sec(),
        }
    }
}

impl Storage {
    fn seconds(&self) -> (u32, u32) {
        (self.test_duration_sec, self.report_interval_sec)
    }
}

/// ACT cuts the rate of each thread to a whole number.
fn service_pace(manner: Manner, per_sec: u64, threads: u32) -> Pace {
    match manner {
        Manner::Compatible => Pace::Scaled { scale: 1, per_sec: per_sec / u64::from(threads) },
        Manner::Strict => Pace::Scaled { scale: u64::from(threads), per_sec },
    }
}

fn mode(disable_odsync: bool) -> WriteMode {
    if disable_odsync { WriteMode::Flushed } else { WriteMode::Durable }
}

/// What the load is modelled on.
fn modelled(config: &Storage, manner: Manner) -> Result<LoadModel> {
    match (manner, config.test.model, config.test.engine) {
        (Manner::Compatible, ..) | (_, LoadModel::Act, _) => Ok(LoadModel::Act),
        (Manner::Strict, ..) if config.large_block_ops_per_sec != 0 => Err(Error::Plan(
            "`large-block-ops-per-sec` says how many large blocks there are, and `model` works \
             it out; drop one of the two"
                .to_owned(),
        )),
        (Manner::Strict, model, EngineKind::Uring) => Ok(model),
        (Manner::Strict, _, EngineKind::Psync) => Err(Error::Plan(
            "`model` is an engine's, but `engine: psync` only issues ACT's load; use `engine: \
             uring` or `model: act`"
                .to_owned(),
        )),
    }
}

/// Live data on the device of an engine that reclaims below a mark, %: half, or less where blocks
/// are so long left alone that it would not fit. Between mark and full, a block's use falls as time
/// goes by, by the same share in the same time.
fn low_water_fill_pct(pct: u32) -> u32 {
    const MARGIN: f64 = 0.85;
    let mark = (f64::from(pct) / 100.0).clamp(0.02, 0.99);
    let mean_use = (1.0 - mark) / (1.0 / mark).ln();
    ((mean_use * MARGIN * 100.0) as u32).min(50)
}

/// Five for each processor, unless configured.
fn service_threads(configured: u32) -> u32 {
    match configured {
        0 => 5 * std::thread::available_parallelism().map_or(1, usize::from) as u32,
        count => count,
    }
}

/// Sizes of records read and of records written, as stored.
fn sizes(config: &Storage, rates: &StorageRates) -> (Sizes, Sizes) {
    let even = Sizes::Between { min: rates.stored_bytes_min, max: rates.stored_bytes_max };
    if !config.sizes_from_histograms() {
        return (even.clone(), even);
    }
    let of = |histogram: &Option<crate::SizeHistogram>, offset_pct| match histogram {
        Some(histogram) => {
            Sizes::Weighted(histogram.shares(offset_pct).iter().map(weighted).collect())
        }
        None => even.clone(),
    };
    let paper = &config.paper;
    (
        of(&paper.read_histogram, paper.read_size_offset),
        of(&paper.write_histogram, paper.write_size_offset),
    )
}

fn weighted(size: &SizeShare) -> (f64, u32) {
    (size.share * 100.0, size.bytes.ceil() as u32)
}

/// A number that no other run has.
pub(crate) fn fresh_number() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    mix64(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 48)
}
