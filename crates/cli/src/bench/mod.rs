//! `entresol bench`: workloads with known answers, against the embedded engine or a RESP server.

mod bigmemory;
mod device;
pub(crate) mod driver;
pub(crate) mod grid;
mod inserts;
mod mixed;
mod ordered;
mod own_database;
pub(crate) mod probe;
mod ram;
mod reads;
mod recovery;
mod rounds;
pub(crate) mod setup;
mod synced;
mod tally;
mod target;
mod writes;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use entresol_tier::{Durability, WriteMode};
use entresol_workload::{Arrivals, BIGMEMORY, Distribution, Grid, Sizes};

pub(crate) use recovery::fill_until_killed;

use crate::address::{AccessArgs, Address, Unshown};
use crate::cleanup::{on_signals, stop_flag};
use crate::failure::{Failure, Outcome};
use crate::meter;
use crate::report::{Format, Report};
use crate::units::{parse_count, parse_size};
use device::FioJob;
use inserts::THREADS_MAX;
use own_database::OwnDatabase;
use setup::Setup;

/// The benches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// Memory of each record on flash: resident memory between two data sizes
    RamPerRecord,
    /// Uniform gets with no cache, against an interleaved probe of the device
    FlashGet,
    /// Zipf 0.99 gets with a cache of 15 % of the data
    ZipfGet,
    /// Puts of new keys, against an interleaved probe of sequential writes
    Load,
    /// Gets and puts on a store that is 70 % full, in the steady state of reclaim
    Overwrite,
    /// Time to open after a kill -9 and after a clean stop
    Recovery,
    /// Durable puts with 64 in flight, and with one
    Synced,
    /// Ordered table: gets of rows that are there, that are not, with Zipf, and from the cache
    OrderedGet,
    /// Ordered table: scans of 100 rows, after loads in random order and in the order of the keys
    OrderedScan,
    /// Ordered table: blind puts with all merges that they cause, uniform and Zipf
    OrderedPut,
    /// Ordered table: rows put again in the steady state of reclaim, uniform and Zipf
    OrderedOverwrite,
    /// Ordered table: puts of new rows, in random order and in the order of the keys
    OrderedLoad,
    /// Ordered table: time to the first answer after a kill -9 and after a clean stop
    OrderedRecovery,
    /// The data grid tutorial: a RAM table against a flash table in one run
    Grid,
    /// Billions of entries, scaled to this machine: fill, then 90 % gets and 10 % puts
    Bigmemory,
    /// 50 % gets, 50 % puts, zipf
    YcsbA,
    /// 95 % gets, 5 % puts, zipf
    YcsbB,
    /// Gets, zipf
    YcsbC,
    /// 95 % gets of the latest, 5 % new keys
    YcsbD,
    /// 95 % short scans, 5 % new keys
    YcsbE,
    /// 50 % gets, 50 % gets followed by a put
    YcsbF,
    /// The probe of the device alone
    Device,
}

/// Options of `entresol bench`. Where an option has no default here, each bench has its own.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol bench flash-get                        against the engine in this process
  entresol bench zipf-get --keys 4M --memory 1GiB --json
  entresol bench ycsb-a --target redis://127.0.0.1:6379 --threads 4
  entresol bench overwrite --fill 80 --distribution zipf
  entresol bench ordered-put --rows 2M --memory 64MiB --json
  entresol bench grid --iterations 20000")]
pub(crate) struct BenchArgs {
    /// Which bench
    name: Name,
    /// Entries to fill the store with; rows, of an ordered table
    #[arg(long, visible_alias = "rows", value_parser = parse_entries)]
    keys: Option<u64>,
    /// Bytes of each value: BYTES, MIN-MAX or lognormal:MEDIAN:SIGMA:MAX
    #[arg(long, alias = "payload")]
    value_size: Option<Sizes>,
    /// Threads, each with a session or connection of its own
    #[arg(long, value_parser = parse_threads)]
    threads: Option<usize>,
    /// Requests in flight, each thread
    #[arg(long)]
    in_flight: Option<usize>,
    /// One cap for all memory of the engine: index, buffers and cache
    #[arg(long, value_parser = parse_size)]
    memory: Option<u64>,
    /// Bytes of the data file; chosen from --keys and --fill otherwise
    #[arg(long, value_parser = parse_size)]
    capacity: Option<u64>,
    /// Share of the capacity that the data take, percent
    #[arg(long, value_parser = clap::value_parser!(u8).range(5..=92))]
    fill: Option<u8>,
    /// Length of the measured phase, all rounds together
    #[arg(long, value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// Rounds, each preceded by a probe of the device
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Operations a second to begin, all threads together; as many as can be otherwise
    #[arg(long, value_parser = parse_rate)]
    rate: Option<f64>,
    /// How they arrive with --rate
    #[arg(long, value_enum, default_value_t = ArrivalName::Poisson, requires = "rate")]
    arrivals: ArrivalName,
    /// How keys are chosen: uniform, sequential, zipf or zipf:THETA, latest or latest:THETA,
    /// hotspot or hotspot:KEYS:CHOICES
    #[arg(long)]
    distribution: Option<Distribution>,
    /// What an acknowledged put survives: memory, process, flushed, periodic:MS, synced
    #[arg(long, value_parser = parse_durability)]
    durability: Option<Durability>,
    /// Whether puts are answered at their durability (through) or before (behind)
    #[arg(long, value_enum, default_value_t = WriteModeName::Through)]
    write_mode: WriteModeName,
    /// Shards of the embedded store; otherwise 2, and 1 of ordered tables
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: Option<u16>,
    /// Bits of memory for each row of an ordered table, by which gets of absent keys read nothing
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=32))]
    filter_bits: Option<u8>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What to drive: embedded, redis://HOST:PORT or redis://USER@HOST:PORT/DATABASE,
    /// rediss:// for TLS, or unix:PATH. A server's database must be empty, and is emptied at
    /// the end; it is 15 where none is named
    #[arg(long, default_value = "embedded", value_parser = Unshown(parse_target))]
    target: Target,
    #[command(flatten)]
    access: AccessArgs,
    /// Process id of a server on this machine, for its processor time
    #[arg(long, value_parser = parse_pid)]
    server_pid: Option<u32>,
    /// Directory of the data file; a temporary one otherwise
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Entries of each client thread (grid)
    #[arg(long, value_parser = parse_entries)]
    iterations: Option<u64>,
    /// Directory of write buffers that outlive the process; one that vanishes otherwise
    #[arg(long, hide = true)]
    buffer_directory: Option<PathBuf>,
    /// Threads of the servers that grid starts; as many as processors otherwise
    #[arg(long)]
    server_threads: Option<usize>,
    /// Read back every key, not a sample (ram-per-record)
    #[arg(long)]
    verify_all: bool,
    /// Run fio before and after, where it is installed: random reads, or sequential writes (load)
    #[arg(long)]
    fio: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Embedded,
    Server(Address),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalName {
    Even,
    Poisson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WriteModeName {
    Through,
    Behind,
}

/// Runs a bench and prints its report.
pub(crate) fn run(args: &BenchArgs) -> Outcome<()> {
    let mut setup = args.setup()?;
    args.name.demand_target(&setup)?;
    match setup.target {
        Some(_) => setup.stop = stop_flag()?,
        None => on_signals()?,
    }
    let idle = args.idle_options();
    if !idle.is_empty() {
        say!("entresol: no effect on this bench: {}", idle.join(", "));
    }
    let format = if args.json { Format::Json } else { Format::Table };
    let job = if args.name == Name::Load { FioJob::Writes } else { FioJob::Reads };
    let database = setup.target.as_ref().map(OwnDatabase::take).transpose()?;
    let fio_before = args.fio.then(|| device::fio(&setup, job)).transpose()?;
    let mut report = match args.name {
        Name::RamPerRecord => ram::per_record(&setup, args.verify_all)?,
        Name::FlashGet => reads::flash_get(&setup)?,
        Name::ZipfGet => reads::zipf_get(&setup)?,
        Name::Load => writes::load(&setup)?,
        Name::Overwrite => writes::overwrite(&setup)?,
        Name::Recovery => recovery::recovery(&setup)?,
        Name::Synced => synced::synced(&setup)?,
        Name::OrderedGet => ordered::get(&setup)?,
        Name::OrderedScan => ordered::scan(&setup)?,
        Name::OrderedPut => ordered::put(&setup)?,
        Name::OrderedOverwrite => ordered::overwrite(&setup)?,
        Name::OrderedLoad => ordered::load(&setup)?,
        Name::OrderedRecovery => ordered::recovery(&setup)?,
        Name::Grid => grid::grid(&setup, args.grid(&setup))?,
        Name::Bigmemory => bigmemory::bigmemory(&setup)?,
        Name::YcsbA => mixed::ycsb(&setup, 0)?,
        Name::YcsbB => mixed::ycsb(&setup, 1)?,
        Name::YcsbC => mixed::ycsb(&setup, 2)?,
        Name::YcsbD => mixed::ycsb(&setup, 3)?,
        Name::YcsbE => mixed::ycsb(&setup, 4)?,
        Name::YcsbF => mixed::ycsb(&setup, 5)?,
        Name::Device => device::device(&setup)?,
    };
    if let Some(before) = fio_before {
        report.set("fio_before", before);
        report.set("fio_after", device::fio(&setup, job)?);
    }
    database.map_or(Ok(()), OwnDatabase::give_back)?;
    let broken = report.broken();
    report.print(format);
    broken.map_or(Ok(()), |sentence| Err(Failure::Failed(sentence)))
}

/// What a bench has where the command line says nothing.
struct Defaults {
    keys: u64,
    value_bytes: u32,
    threads: usize,
    in_flight: usize,
    fill: u8,
    seconds: f64,
    durability: Durability,
}

/// What the benches of ordered tables have.
const ORDERED: Defaults = Defaults {
    keys: 1_000_000,
    value_bytes: 100,
    threads: 1,
    in_flight: 32,
    fill: 70,
    seconds: 10.0,
    durability: Durability::Memory,
};

impl Name {
    /// Refuses a server where the bench looks inside of the engine.
    fn demand_target(self, setup: &Setup) -> Outcome<()> {
        let name = match self {
            Name::RamPerRecord => "ram-per-record",
            Name::Recovery => "recovery",
            Name::Synced => "synced",
            Name::Device => "device",
            Name::OrderedGet => "ordered-get",
            Name::OrderedScan => "ordered-scan",
            Name::OrderedPut => "ordered-put",
            Name::OrderedOverwrite => "ordered-overwrite",
            Name::OrderedLoad => "ordered-load",
            Name::OrderedRecovery => "ordered-recovery",
            _ => return Ok(()),
        };
        setup.embedded_only(name)
    }

    /// Whether it is of ordered tables.
    fn is_ordered(self) -> bool {
        matches!(
            self,
            Name::OrderedGet
                | Name::OrderedScan
                | Name::OrderedPut
                | Name::OrderedOverwrite
                | Name::OrderedLoad
                | Name::OrderedRecovery
        )
    }

    fn defaults(self) -> Defaults {
        let base = Defaults {
            keys: 1_000_000,
            value_bytes: BIGMEMORY.value_bytes,
            threads: 1,
            in_flight: 128,
            fill: 75,
            seconds: 10.0,
            durability: Durability::Memory,
        };
        match self {
            Name::RamPerRecord => Defaults { keys: 25_000_000, value_bytes: 100, ..base },
            // One thread writes what a device takes; more of them wait for it and for each other.
            Name::Load => Defaults { keys: 1_500_000, fill: 85, ..base },
            Name::Overwrite => Defaults { keys: 700_000, fill: 70, seconds: 60.0, ..base },
            Name::Recovery => Defaults {
                keys: 10_000_000,
                value_bytes: 100,
                durability: Durability::Process,
                ..base
            },
            // Room enough that no reclaim runs meanwhile: that is what `overwrite` measures.
            Name::Synced => Defaults {
                keys: 400_000,
                in_flight: 64,
                fill: 20,
                seconds: 6.0,
                durability: Durability::Synced,
                ..base
            },
            Name::Grid => Defaults {
                keys: 0,
                value_bytes: Grid::TUTORIAL.payload_bytes,
                threads: Grid::TUTORIAL.threads as usize,
                in_flight: 1,
                durability: Durability::Process,
                ..base
            },
            Name::OrderedRecovery => Defaults { durability: Durability::Process, ..ORDERED },
            Name::OrderedGet
            | Name::OrderedScan
            | Name::OrderedPut
            | Name::OrderedOverwrite
            | Name::OrderedLoad => ORDERED,
            Name::Bigmemory => Defaults { keys: 2_000_000, seconds: 12.0, ..base },
            // Room for what they insert.
            Name::YcsbD | Name::YcsbE => Defaults { fill: 50, ..base },
            Name::ZipfGet => Defaults { threads: 2, ..base },
            _ => base,
        }
    }
}

impl BenchArgs {
    fn setup(&self) -> Outcome<Setup> {
        let base = self.name.defaults();
        Ok(Setup {
            keys: self.keys.unwrap_or(base.keys).max(1),
            sizes: self.value_size.clone().unwrap_or(Sizes::Fixed(base.value_bytes)),
            threads: self.threads.unwrap_or(base.threads).max(1),
            in_flight: self.in_flight.unwrap_or(base.in_flight).clamp(1, 4096),
            memory: self.memory,
            capacity: self.capacity,
            fill: f64::from(self.fill.unwrap_or(base.fill)) / 100.0,
            seconds: self.seconds.unwrap_or(base.seconds).max(0.1),
            rounds: self.rounds.max(1),
            arrivals: match (self.rate, self.arrivals) {
                (None, _) => Arrivals::Closed,
                (Some(rate), ArrivalName::Even) => Arrivals::Even(rate.max(1e-3)),
                (Some(rate), ArrivalName::Poisson) => Arrivals::Poisson(rate.max(1e-3)),
            },
            distribution: self.distribution,
            durability: self.durability.unwrap_or(base.durability),
            write_mode: match self.write_mode {
                WriteModeName::Through => WriteMode::Through,
                WriteModeName::Behind => WriteMode::Behind,
            },
            // Tables use the journal of one shard: that of others would lie idle.
            shards: self.shards.unwrap_or(if self.name.is_ordered() { 1 } else { 2 }),
            absent_filter_bits: self.filter_bits.unwrap_or(0),
            seed: self.seed,
            target: self.server()?,
            server_pid: self.server_pid,
            server_threads: self.server_threads,
            directory: self.dir.clone(),
            buffers: self.buffer_directory.clone(),
            stop: Arc::default(),
        })
    }

    /// The server that is driven, with who asks it.
    fn server(&self) -> Outcome<Option<Address>> {
        match &self.target {
            Target::Server(address) => {
                let mut address = address.clone().with_access(&self.access)?;
                address.database.get_or_insert(own_database::DATABASE);
                Ok(Some(address))
            }
            Target::Embedded => {
                self.access.demand_none()?;
                Ok(None)
            }
        }
    }

    /// Options that were given and change nothing of this bench, or of what it drives.
    fn idle_options(&self) -> Vec<&'static str> {
        use Name::{
            Device, Grid, Load, OrderedLoad, OrderedOverwrite, OrderedRecovery, RamPerRecord,
            Recovery, Synced, YcsbE,
        };
        let name = self.name;
        let is_engine = self.target == Target::Embedded;
        let is_counted = matches!(name, OrderedLoad | OrderedOverwrite | OrderedRecovery);
        let is_timed = !is_counted && !matches!(name, Grid | Load | RamPerRecord | Recovery);
        let is_mixed = is_timed && name != Device;
        let has_own_keys = self.name.is_ordered();
        let changes_write_mode = self.write_mode != WriteModeName::Through;
        // What was given, and whether that counts.
        let options = [
            ("--keys", self.keys.is_some(), name != Grid),
            ("--iterations", self.iterations.is_some(), name == Grid),
            ("--in-flight", self.in_flight.is_some(), name != YcsbE),
            ("--memory", self.memory.is_some(), is_engine && name != Device),
            ("--capacity", self.capacity.is_some(), is_engine),
            ("--fill", self.fill.is_some(), is_engine),
            ("--seconds", self.seconds.is_some(), is_timed),
            ("--rate", self.rate.is_some(), is_mixed || name == Grid),
            ("--distribution", self.distribution.is_some(), is_mixed && !has_own_keys),
            (
                "--durability",
                self.durability.is_some(),
                is_engine && !matches!(name, Device | Synced),
            ),
            ("--write-mode", changes_write_mode, is_engine && !matches!(name, Device | Grid)),
            ("--shards", self.shards.is_some(), is_engine && !matches!(name, Device | Grid)),
            ("--filter-bits", self.filter_bits.is_some(), has_own_keys),
            ("--server-pid", self.server_pid.is_some(), !is_engine),
            ("--dir", self.dir.is_some(), is_engine || self.fio),
            ("--server-threads", self.server_threads.is_some(), is_engine && name == Grid),
            ("--verify-all", self.verify_all, name == RamPerRecord),
        ];
        let idle = options.into_iter().filter(|(_, given, counts)| *given && !counts);
        idle.map(|(option, ..)| option).collect()
    }

    fn grid(&self, setup: &Setup) -> Grid {
        const ITERATIONS: u64 = 10_000;
        Grid {
            threads: setup.threads as u32,
            iterations: self.iterations.unwrap_or(ITERATIONS),
            payload_bytes: setup.sizes.max(),
        }
    }
}

impl Report {
    /// The sentence of a figure that must be zero and is not.
    fn broken(&self) -> Option<String> {
        let lost = self.get("lost_keys").unwrap_or(0.0);
        (lost > 0.0).then(|| format!("{lost} keys that were put were not found"))
    }
}

/// Parses `memory`, `process`, `flushed`, `periodic:MS` or `synced`.
pub(crate) fn parse_durability(text: &str) -> Result<Durability, String> {
    text.parse().map_err(|error: entresol_tier::Error| error.to_string())
}

/// Parses the id of a process whose processor time can be read.
fn parse_pid(text: &str) -> Result<u32, String> {
    let pid = text.parse().ok().filter(|pid| meter::process_cpu_us(*pid).is_some());
    pid.ok_or_else(|| format!("expected the id of a process on this machine, found '{text}'"))
}

/// Most entries of a bench: their numbers fit into keys, and their bytes into 64 bits.
const ENTRIES_MAX: u64 = 1 << 40;
/// A year.
const SECONDS_MAX: f64 = 31_536_000.0;
const RATE_MAX: f64 = 1e9;

fn parse_entries(text: &str) -> Result<u64, String> {
    let count = parse_count(text)?;
    let fits = (1..=ENTRIES_MAX).contains(&count);
    fits.then_some(count).ok_or_else(|| format!("expected 1 to {ENTRIES_MAX}, found '{text}'"))
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("expected 1 to {THREADS_MAX} threads, found '{text}'"))
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    seconds.ok_or_else(|| format!("expected seconds, at most those of a year, found '{text}'"))
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| *rate > 0.0 && *rate <= RATE_MAX);
    rate.ok_or_else(|| {
        format!("expected operations a second, above 0 and up to 1e9, found '{text}'")
    })
}

fn parse_target(text: &str) -> Result<Target, String> {
    match text {
        "embedded" => Ok(Target::Embedded),
        other => match other.parse() {
            Ok(address) => Ok(Target::Server(address)),
            Err(what) => {
                Err(format!("expected embedded, or {}", what.trim_start_matches("expected ")))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use entresol_workload::Mix;

    use super::driver::Until;
    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchArgs,
    }

    /// The options of a command line, the program's name first.
    pub(crate) fn setup_of(words: &[&str]) -> Setup {
        Line::parse_from(words).args.setup().unwrap()
    }

    /// To warm up, `zipf-get` made three million gets at the rate asked for, and one get in flight
    /// was held against the device while thousands waited behind it.
    #[test]
    fn only_what_is_measured_keeps_to_the_rate() {
        let setup = setup_of(&["bench", "flash-get", "--rate", "10", "--threads", "2"]);
        let mix = Mix::gets(Distribution::Uniform);
        let arrivals = |job: driver::Job| job.arrivals;
        assert_eq!(arrivals(setup.job(mix, Until::Operations(1))), Arrivals::Poisson(5.0));
        assert_eq!(arrivals(setup.fast_job(mix, Until::Operations(1))), Arrivals::Closed);
        assert_eq!(arrivals(setup.fill_job(0..1)), Arrivals::Closed);
    }
}
