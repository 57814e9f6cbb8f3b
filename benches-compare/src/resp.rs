//! `entresol serve` beside `redis-server`, one thread each, over loopback TCP, in turns.
//!
//! Gets from memory with one command in flight on each connection and with several; then gets of a
//! data set that memory holds a small part of, beside a probe of the device.

mod client;
mod servers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::contestant::Result;
use crate::probe::{Probe, Reads};
use crate::report::{Table, median, thousands};
use crate::resp::client::{Data, Manner, get};
use crate::resp::servers::Server;

/// Sizes of the comparison of servers.
#[derive(Debug, Args)]
pub struct RespArguments {
    /// The program `entresol`.
    #[arg(long, default_value = "entresol")]
    entresol: PathBuf,
    /// Turns of each server.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Keys of the data in memory.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Keys of the data on flash.
    #[arg(long, default_value_t = 600_000, value_parser = clap::value_parser!(u64).range(1..))]
    flash_keys: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 1700, value_parser = clap::value_parser!(u32).range(16..=65536))]
    value_size: u32,
    /// Connections of the client.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Seconds of a turn.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Prints the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// One turn of one server.
#[derive(Debug, Clone, Copy, Serialize)]
struct Turn {
    ops_per_second: f64,
    cpu_us_per_op: f64,
    /// Share of a processor that the server had.
    busy: f64,
}

/// Turns of both servers, and ours over redis-server's.
#[derive(Debug, Serialize)]
struct Beside {
    pipeline: usize,
    entresol: Vec<Turn>,
    redis: Vec<Turn>,
    /// Of each round: operations a second.
    throughput_ratio: Vec<f64>,
    /// Of each round: processor time an operation.
    cpu_ratio: Vec<f64>,
}

/// Gets from flash beside the probe.
#[derive(Debug, Serialize)]
struct Flash {
    pipeline: usize,
    turns: Vec<Turn>,
    /// Bytes that the server read from the device, an operation.
    device_bytes_per_op: Vec<f64>,
    /// Reads a second of the probe, before and after each turn.
    probe_per_second: Vec<f64>,
    /// Of each turn: operations over the mean of the probes around it.
    fraction_of_device: Vec<f64>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Figures {
    value_bytes: usize,
    connections: u16,
    memory: Vec<Beside>,
    flash: Flash,
}

/// Bytes that a record takes on flash, of each byte of its value, with room for reclaim.
const SPREAD: f64 = 1.6;
/// Memory of the server whose data lie on flash.
const FLASH_MEMORY_BYTES: u64 = 64 << 20;

/// Plays all of it in `directory`, and prints it.
pub fn run(arguments: &RespArguments, directory: &Path) -> Result<ExitCode> {
    std::fs::create_dir_all(directory)?;
    let memory = [1, 16].map(|pipeline| beside(arguments, directory, pipeline));
    let figures = Figures {
        value_bytes: arguments.value_size as usize,
        connections: arguments.connections,
        memory: memory.into_iter().collect::<Result<_>>()?,
        flash: from_flash(arguments, directory)?,
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&figures)?);
    } else {
        print!("{}", figures.tables());
    }
    Ok(ExitCode::SUCCESS)
}

fn beside(arguments: &RespArguments, directory: &Path, pipeline: usize) -> Result<Beside> {
    let data = arguments.data(arguments.keys);
    let (place, bytes) = (directory.join(format!("memory-{pipeline}")), data.bytes());
    let (capacity, memory) =
        ((bytes as f64 * SPREAD) as u64 + (256 << 20), 2 * bytes + (256 << 20));
    let ours = Server::entresol(&arguments.entresol, &place, capacity, memory)?;
    let redis = Server::redis(directory)?;
    data.fill(ours.port())?;
    data.fill(redis.port())?;
    let (mut of_ours, mut of_redis) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        eprintln!("pipeline {pipeline}, round {}", round + 1);
        of_ours.push(turn(&ours, data, arguments.manner(pipeline, round))?.0);
        of_redis.push(turn(&redis, data, arguments.manner(pipeline, round))?.0);
    }
    let ratio = |value: fn(&Turn) -> f64| {
        of_ours.iter().zip(&of_redis).map(|(one, other)| value(one) / value(other)).collect()
    };
    Ok(Beside {
        pipeline,
        throughput_ratio: ratio(|turn| turn.ops_per_second),
        cpu_ratio: ratio(|turn| turn.cpu_us_per_op),
        entresol: of_ours,
        redis: of_redis,
    })
}

fn from_flash(arguments: &RespArguments, directory: &Path) -> Result<Flash> {
    let pipeline = 16;
    let data = arguments.data(arguments.flash_keys);
    let mut probe = Probe::new(&directory.join("probe"), data.bytes())?;
    let capacity = (data.bytes() as f64 * SPREAD) as u64 + (256 << 20);
    let place = directory.join("flash");
    let server = Server::entresol(&arguments.entresol, &place, capacity, FLASH_MEMORY_BYTES)?;
    data.fill(server.port())?;
    let duration = Duration::from_secs_f64(arguments.seconds.max(0.1));
    let mut flash = Flash {
        pipeline,
        turns: Vec::new(),
        device_bytes_per_op: Vec::new(),
        probe_per_second: vec![probe.read(Reads::OF_RECORDS, duration)?],
        fraction_of_device: Vec::new(),
    };
    for round in 0..arguments.rounds {
        eprintln!("from flash, round {}", round + 1);
        let before = flash.probe_per_second[flash.probe_per_second.len() - 1];
        let (turn, read_bytes) = turn(&server, data, arguments.manner(pipeline, round))?;
        let after = probe.read(Reads::OF_RECORDS, duration)?;
        flash.turns.push(turn);
        flash.device_bytes_per_op.push(read_bytes);
        flash.probe_per_second.push(after);
        flash.fraction_of_device.push(turn.ops_per_second * 2.0 / (before + after));
    }
    Ok(flash)
}

/// What a server did in one turn, and the bytes it read from devices for each operation.
fn turn(server: &Server, data: Data, manner: Manner) -> Result<(Turn, f64)> {
    let before = server.usage();
    let done = get(server.port(), data, manner)?;
    let after = server.usage();
    let (gets, cpu_us) = (done.gets as f64, (after.cpu_us - before.cpu_us) as f64);
    let turn = Turn {
        ops_per_second: gets / done.seconds,
        cpu_us_per_op: cpu_us / gets,
        busy: cpu_us / 1e6 / done.seconds,
    };
    Ok((turn, (after.read_bytes - before.read_bytes) as f64 / gets))
}

impl RespArguments {
    fn data(&self, keys: u64) -> Data {
        Data { keys, value_bytes: self.value_size as usize }
    }

    fn manner(&self, pipeline: usize, round: u16) -> Manner {
        Manner {
            connections: usize::from(self.connections),
            pipeline,
            duration: Duration::from_secs_f64(self.seconds.max(0.1)),
            seed: 1 + u64::from(round),
        }
    }
}

impl Figures {
    fn tables(&self) -> String {
        let head = ["GET", "", "op/s", "CPU us/op", "busy", "op/s ÷ redis", "CPU ÷ redis"];
        let mut table = Table::new(&head);
        for beside in &self.memory {
            let case = format!("memory, pipeline {}", beside.pipeline);
            let ratios = [list(&beside.throughput_ratio), list(&beside.cpu_ratio)];
            table.rows.push(row(&case, "entresol", &beside.entresol, ratios));
            table.rows.push(row("", "redis", &beside.redis, [String::new(), String::new()]));
        }
        let flash = &self.flash;
        let case = format!("flash, pipeline {}", flash.pipeline);
        let none = [String::new(), String::new()];
        table.rows.push(row(&case, "entresol", &flash.turns, none));
        let probe = median(flash.probe_per_second.clone()).map_or("-".into(), thousands);
        let read = median(flash.device_bytes_per_op.clone()).unwrap_or_default();
        format!(
            "{} B, {} connections, one thread each; medians, ratios of each round\n\n{table}\n\
             from flash: {} of the device's probe ({probe}/s), {read:.0} bytes read an operation\n",
            self.value_bytes,
            self.connections,
            list(&flash.fraction_of_device),
        )
    }
}

fn row(case: &str, name: &str, turns: &[Turn], [throughput, cpu]: [String; 2]) -> Vec<String> {
    let middle =
        |value: fn(&Turn) -> f64| median(turns.iter().map(value).collect()).unwrap_or_default();
    vec![
        case.to_owned(),
        name.to_owned(),
        thousands(middle(|turn| turn.ops_per_second)),
        format!("{:.2}", middle(|turn| turn.cpu_us_per_op)),
        format!("{:.2}", middle(|turn| turn.busy)),
        throughput,
        cpu,
    ]
}

fn list(values: &[f64]) -> String {
    let words: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
    words.join(" ")
}
