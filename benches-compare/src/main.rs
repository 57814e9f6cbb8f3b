//! `compare`: the same workload, memory cap and durability against Entresol and its peers.

mod cap;
mod comparison;
mod contestant;
mod contestants;
mod plan;
mod probe;
mod report;
mod resp;
mod stage;
mod turn;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::comparison::Bout;
use crate::contestant::{Entrant, Kind, Result, entrants};
use crate::plan::{Course, Durability, Plan, QUEUE_LENGTH, TABLE_ROWS};
use crate::report::Report;
use crate::resp::RespArguments;

/// The same workload, memory cap and durability against Entresol and its peers.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    #[command(flatten)]
    bout: BoutArguments,
}

const EXAMPLES: &str = "Examples:
  compare                                     all contestants, 1.7 GB, one round
  compare --quick --rounds 3                  400 MB, three rounds, medians
  compare --only entresol,lmdb --json out.json
  compare --course rows --keys 1000000        rows in order, of those that keep them
  compare --dir DIR resp                      entresol serve beside redis-server

Exit status: 0 done, 1 a contestant returned wrong values or Entresol did not finish, 2 could not \
run.";

#[derive(Debug, Subcommand)]
enum Role {
    /// `entresol serve` beside redis-server: gets over TCP from memory, and from flash.
    Resp(RespArguments),
    /// Lists the contestants that this program was built with.
    List,
    /// One contestant's process; started by the comparison itself.
    #[command(hide = true)]
    Contestant {
        /// What to do, as JSON.
        brief: String,
    },
}

#[derive(Debug, Args)]
struct BoutArguments {
    /// What is compared.
    #[arg(long, value_enum, default_value = "records")]
    course: Course,
    /// 400 MB of data and short phases instead of 1.7 GB.
    #[arg(long)]
    quick: bool,
    /// How often each contestant plays; figures are medians.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Contestants, by name; all but `nothing` if not given.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the data goes; needs about six times its size, and is left empty.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Records.
    #[arg(long)]
    keys: Option<u64>,
    /// Bytes of a value; 1700, and 100 of rows in order.
    #[arg(long)]
    value_size: Option<usize>,
    /// The memory cap, percent of the data; 38, and 10 of rows in order.
    #[arg(long)]
    memory_percent: Option<u64>,
    /// What the memory cap has besides, MiB; 0, and 48 of rows in order: programs, threads and
    /// buffers that do not grow with the data.
    #[arg(long)]
    memory_base: Option<u64>,
    /// The contestants' own caches, percent of the data; 15, and 2 of rows in order.
    #[arg(long)]
    cache_percent: Option<u64>,
    /// Elements that a round of a queue pushes, and pops.
    #[arg(long, default_value_t = 100_000)]
    queue: u64,
    /// Threads of contestants whose reads block; of rows in order Entresol has as many operations
    /// in flight.
    #[arg(long, default_value_t = 16)]
    threads: usize,
    /// What Entresol's writes survive outside the synced phase.
    #[arg(long, value_enum, default_value = "process")]
    durability: Durability,
    /// Seconds of a timed phase.
    #[arg(long)]
    seconds: Option<f64>,
    /// Writes all figures to this file as JSON; `-`: to standard output instead of the tables.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.role {
        Some(Role::Resp(resp)) => resp::run(&resp, &arguments.bout.dir),
        Some(Role::List) => {
            entrants(arguments.bout.course).iter().for_each(|entrant| println!("{}", entrant.name));
            Ok(ExitCode::SUCCESS)
        }
        Some(Role::Contestant { brief }) => {
            let brief = stage::Brief::parse(&brief);
            brief.and_then(|brief| stage::serve(&brief)).map(|()| ExitCode::SUCCESS)
        }
        None => compare(&arguments.bout),
    };
    ended.unwrap_or_else(|fault| {
        eprintln!("compare: {fault}");
        ExitCode::from(2)
    })
}

fn compare(arguments: &BoutArguments) -> Result<ExitCode> {
    let bout = Bout {
        plan: plan(arguments),
        directory: arguments.dir.clone(),
        rounds: arguments.rounds.max(1),
        probe: Duration::from_millis(if arguments.quick { 600 } else { 1000 }),
    };
    let entrants = chosen(arguments)?;
    let plays = bout.play(&entrants, &mut |line| eprintln!("{line}"))?;
    let report = Report::new(&bout.plan, &entrants, plays);
    match &arguments.json {
        Some(path) if path.as_os_str() == "-" => println!("{}", report.to_json()?),
        Some(path) => {
            std::fs::write(path, report.to_json()?)?;
            print!("{report}");
        }
        None => print!("{report}"),
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn plan(arguments: &BoutArguments) -> Plan {
    let (short, course) = (arguments.quick, arguments.course);
    let keys = arguments.keys.unwrap_or(match course {
        Course::Queue => QUEUE_LENGTH,
        Course::Tables if short => 100_000 * TABLE_ROWS,
        Course::Tables => 1_000_000 * TABLE_ROWS,
        Course::Rows | Course::Sequence if !short => 2_000_000,
        _ if short => 235_000,
        _ => 1_000_000,
    });
    let is_ordered = course.is_ordered();
    let or = |given: Option<u64>, records, rows| {
        given.unwrap_or(if is_ordered { rows } else { records })
    };
    let value_bytes = arguments.value_size.unwrap_or(if is_ordered { 100 } else { 1700 });
    let record_bytes = (plan::KEY_BYTES + value_bytes) as u64;
    // A queue is as large as a round of it makes it, where nothing that was popped goes away.
    let data_bytes = record_bytes * if course == Course::Queue { arguments.queue } else { keys };
    let base = or(arguments.memory_base, 0, 48) << 20;
    Plan {
        course,
        keys: keys.max(1),
        queue: arguments.queue,
        value_bytes,
        memory_bytes: data_bytes * or(arguments.memory_percent, 38, 10) / 100 + base,
        waiting_bytes: (data_bytes / 20).max(1 << 20),
        cache_bytes: (data_bytes * or(arguments.cache_percent, 15, 2) / 100).max(2 << 20),
        threads: arguments.threads.max(1),
        seconds: arguments.seconds.unwrap_or(if short { 2.0 } else { 5.0 }),
        load_seconds_max: match (short, course.is_ordered()) {
            (true, _) => 30.0,
            (false, false) => 80.0,
            (false, true) => 150.0,
        },
        warm_seconds_max: if short { 6.0 } else { 15.0 },
        fill_percent: 70,
        durability: arguments.durability,
        seed: 7,
    }
}

fn chosen(arguments: &BoutArguments) -> Result<Vec<Entrant>> {
    let only = &arguments.only;
    let all = entrants(arguments.course);
    if only.is_empty() {
        return Ok(all.into_iter().filter(|entrant| entrant.kind != Kind::Nothing).collect());
    }
    let find = |name: &String| {
        let entrant = all.iter().find(|entrant| entrant.name == name).copied();
        entrant.ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|entrant| entrant.name).collect();
            format!("--only: there is no '{name}'; there are {}", names.join(", ")).into()
        })
    };
    only.iter().map(find).collect()
}
