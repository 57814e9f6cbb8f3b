//! `grid`: the data grid tutorial's benchmark. Client threads write entries of their own over RESP,
//! one at a time, and read them back; once against a table in memory, once against one on flash.
//!
//! Both servers run side by side and take turns slice by slice, so that a machine whose speed
//! wanders wanders under both. The memory table is the same server with its file on a file system
//! in memory and a cache that holds every entry.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use entresol_workload::{Distribution, Grid, Mix, Sizes};
use serde_json::{Value, json};

use super::driver::{Shared, Tally, Until};
use super::rounds::head;
use super::setup::{MEMORY_FILES, Setup, Subject};
use crate::address::Address;
use crate::failure::Outcome;
use crate::meter;
use crate::report::{Report, median, rounded};
use crate::scratch::Scratch;
use crate::service::Service;

/// Writes and reads `grid` against a memory table and a flash table, or against `--target` alone.
pub(crate) fn grid(setup: &Setup, grid: Grid) -> Outcome<Report> {
    let setup = &Setup {
        keys: grid.entries(),
        sizes: Sizes::Fixed(grid.payload_bytes),
        threads: grid.threads as usize,
        in_flight: setup.in_flight,
        ..setup.clone()
    };
    let mut report = head("grid", setup);
    report.set("iterations", grid.iterations);
    if let Some(address) = &setup.target {
        let table = Table::of("target", address.clone(), setup.server_pid);
        let ran = run_tables(setup, vec![table])?;
        report.set("tables", rows(&grid, &ran));
        report.figure("ops_per_second", ran[0].rate(Phase::Read));
        report.set("lost_keys", ran[0].lost());
        return Ok(report);
    }
    let tables = Tables::start(setup, &grid)?;
    let ran = run_tables(
        setup,
        vec![
            Table::of("RAM", tables.memory.address().clone(), Some(tables.memory.pid())),
            Table::of("flash", tables.flash.address().clone(), Some(tables.flash.pid())),
        ],
    )?;
    let ratio = |a: f64, b: f64| rounded(a / b.max(1e-9));
    report.set("tables", rows(&grid, &ran));
    let write = ratio(ran[1].rate(Phase::Write), ran[0].rate(Phase::Write));
    let read = ratio(ran[1].rate(Phase::Read), ran[0].rate(Phase::Read));
    report.set("flash_over_ram", json!({"write": write, "read": read}));
    report.set(
        "source_document_flash_over_ram",
        json!({"write": Grid::TUTORIAL_WRITE_RATIO, "read": Grid::TUTORIAL_READ_RATIO}),
    );
    report.figure("ops_per_second", ran[1].rate(Phase::Read));
    report.set("lost_keys", ran.iter().map(Table::lost).sum::<u64>());
    let resident = |service: &Service| meter::resident_bytes(&service.pid().to_string()).0;
    report.set(
        "resident_bytes",
        json!({"ram": resident(&tables.memory), "flash": resident(&tables.flash)}),
    );
    report.set("data_bytes", grid.entries() * u64::from(grid.payload_bytes));
    report.note(format!(
        "The source document: {} threads × {} iterations × {} bytes over a network of a cloud \
         provider; here both tables are on this machine and clients share its processors.",
        Grid::TUTORIAL.threads,
        Grid::TUTORIAL.iterations,
        Grid::TUTORIAL.payload_bytes
    ));
    tables.memory.stop()?;
    tables.flash.stop()?;
    Ok(report)
}

/// The two servers and their files.
struct Tables {
    memory: Service,
    flash: Service,
    _directories: Directories,
}

/// Where the files are for as long as the servers run.
struct Directories {
    flash: Scratch,
    memory: Scratch,
    buffers: Scratch,
    /// The one that `flash` is in.
    _parent: Scratch,
}

impl Directories {
    fn make(setup: &Setup) -> Outcome<Directories> {
        let parent = setup.scratch()?;
        Ok(Directories {
            flash: Scratch::below(parent.path(), "grid")?,
            memory: Scratch::below(&memory_parent(setup.capacity_bytes()), "entresol-grid")?,
            buffers: Scratch::below(Path::new(MEMORY_FILES), "entresol-buffers")?,
            _parent: parent,
        })
    }
}

impl Tables {
    fn start(setup: &Setup, grid: &Grid) -> Outcome<Tables> {
        const BASE_BYTES: u64 = 128 << 20;
        let data = setup.data_bytes(grid.entries()) as u64;
        let capacity = setup.capacity_bytes();
        let directories = Directories::make(setup)?;
        let memory = setup.memory.unwrap_or(BASE_BYTES + data / 10);
        let durability = setup.durability_name();
        let threads = setup.server_threads.map(|count| count.to_string()).unwrap_or_default();
        let threads = || match threads.as_str() {
            "" => Vec::new(),
            count => vec![OsString::from("--threads"), count.into()],
        };
        let mut flash = options(directories.flash.path(), (memory, capacity, &durability));
        flash.extend(["--buffer-directory".into(), directories.buffers.path().into()]);
        flash.extend(threads());
        let flash = Service::start(&flash)?;
        let whole = BASE_BYTES + data + data / 4;
        let mut memory = options(directories.memory.path(), (whole, capacity, "memory"));
        memory.extend(threads());
        let memory = Service::start(&memory)?;
        Ok(Tables { memory, flash, _directories: directories })
    }
}

/// A file system in memory, where it has the room; the temporary directory otherwise.
fn memory_parent(capacity: u64) -> PathBuf {
    let parent = Path::new(MEMORY_FILES);
    match entresol_device::free_bytes(parent) {
        Some(free) if free > capacity + capacity / 8 => parent.to_owned(),
        _ => std::env::temp_dir(),
    }
}

fn options(directory: &Path, (memory, capacity, durability): (u64, u64, &str)) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec!["--dir".into(), directory.into()];
    for (name, value) in [
        ("--memory", memory.to_string()),
        ("--capacity", capacity.to_string()),
        ("--durability", durability.to_owned()),
    ] {
        options.push(name.into());
        options.push(value.into());
    }
    options
}

/// One table's runs.
struct Table {
    name: &'static str,
    subject: Subject,
    writes: Vec<Tally>,
    reads: Vec<Tally>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Write,
    Read,
}

impl Table {
    fn of(name: &'static str, address: Address, pid: Option<u32>) -> Table {
        let subject = Subject::Remote(address, pid);
        Table { name, subject, writes: Vec::new(), reads: Vec::new() }
    }

    fn tallies(&self, phase: Phase) -> &[Tally] {
        match phase {
            Phase::Write => &self.writes,
            Phase::Read => &self.reads,
        }
    }

    fn rate(&self, phase: Phase) -> f64 {
        median(&self.tallies(phase).iter().map(Tally::per_second).collect::<Vec<_>>())
    }

    /// Processor time of an operation, µs, where that is the server's.
    fn server_cpu(&self, total: &Tally) -> Option<f64> {
        match self.subject {
            Subject::Remote(_, None) => None,
            _ => Some(rounded(total.cpu_us_per_op())),
        }
    }

    fn lost(&self) -> u64 {
        self.reads.iter().map(|tally| tally.misses).sum()
    }
}

fn run_tables(setup: &Setup, mut tables: Vec<Table>) -> Outcome<Vec<Table>> {
    let shared = Shared::new(setup.keys);
    for phase in [Phase::Write, Phase::Read] {
        let mix = match phase {
            Phase::Write => Mix::updating(0, Distribution::Sequential),
            Phase::Read => Mix::gets(Distribution::Sequential),
        };
        if phase == Phase::Read {
            warm_up(setup, &tables, &shared)?;
        }
        let rounds = setup.rounds as u64;
        for round in 0..rounds {
            let at = |r: u64| setup.keys * r / rounds;
            let job = setup.job(mix, Until::Keys(at(round)..at(round + 1)));
            for table in &mut tables {
                let tally = table.subject.drive(setup, &job, &shared)?.sound()?;
                match phase {
                    Phase::Write => table.writes.push(tally),
                    Phase::Read => table.reads.push(tally),
                }
            }
        }
    }
    Ok(tables)
}

/// Reads every entry once, so that the memory table has in memory what it will have there.
fn warm_up(setup: &Setup, tables: &[Table], shared: &Shared) -> Outcome<()> {
    let job = setup.fast_job(Mix::gets(Distribution::Sequential), Until::Keys(0..setup.keys));
    for table in tables {
        table.subject.drive(setup, &job, shared)?.sound()?;
    }
    Ok(())
}

/// The tutorial's columns: time of the test, rate of a thread, rate of all, megabytes a second.
fn rows(grid: &Grid, tables: &[Table]) -> Vec<Value> {
    let mut rows = Vec::new();
    for phase in [Phase::Write, Phase::Read] {
        for table in tables {
            let seconds: f64 =
                table.tallies(phase).iter().map(|tally| tally.elapsed.as_secs_f64()).sum();
            let mut total = Tally::default();
            table.tallies(phase).iter().for_each(|tally| total.merge(tally));
            let rate = table.rate(phase);
            let summary = total.latencies().summary();
            rows.push(json!({
                "test": format!("{phase:?}").to_lowercase(),
                "table": table.name,
                "avg_test_time_s": rounded(seconds),
                "avg_tp": rounded(rate / f64::from(grid.threads)),
                "total_tp": rounded(rate),
                "mb_per_second": rounded(rate * f64::from(grid.payload_bytes) / 1e6),
                "server_cpu_us_per_op": table.server_cpu(&total),
                "p50_us": rounded(summary.p50 as f64 / 1e3),
                "p99_us": rounded(summary.p99 as f64 / 1e3),
            }));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::setup_of;

    /// That of the table on flash was gone as soon as both servers ran.
    #[test]
    fn directories_of_the_tables_are_there_for_as_long_as_somebody_has_them() {
        let directories = Directories::make(&setup_of(&["bench", "grid"])).unwrap();
        let all = [&directories.flash, &directories.memory, &directories.buffers];
        let paths = all.map(|scratch| scratch.path().to_owned());
        assert!(paths.iter().all(|path| path.exists()), "{paths:?}");
        drop(directories);
        assert!(!paths.iter().any(|path| path.exists()), "{paths:?}");
    }
}
