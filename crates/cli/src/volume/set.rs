//! `entresol volume set`: options of a volume that change while it is served.

use clap::Args;
use entresol_volume::{Request, Tuning};
use serde_json::{Map, Value, json};

use super::cache::CacheArgs;
use super::reach::Reached;
use crate::failure::{Failure, Outcome};
use crate::units::parse_size;

/// Options of `entresol volume set`.
#[derive(Debug, Args)]
#[command(after_help = "\
What is not named stays as it is. It holds at once, and from then on.

Examples:
  entresol volume set vm1 --limit 2000 --cache /ssd/cache
  entresol volume set vm1 --share 5GiB --admission-hits 2 --cache /ssd/cache
  entresol volume set vm1 --limit 0 --cache /ssd/cache      (no limit any more)")]
pub(crate) struct SetArgs {
    /// The volume
    name: String,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    tuning: TuningArgs,
}

/// What changes.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct TuningArgs {
    /// Most of the cache that its clean blocks take; 0: all
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    share: Option<u64>,
    /// I/Os a second that it gets whatever the others ask
    #[arg(long, value_name = "IOPS")]
    reservation: Option<f64>,
    /// I/Os a second that it never exceeds; 0: no limit
    #[arg(long, value_name = "IOPS")]
    limit: Option<f64>,
    /// Its part of what is left, relative to the others'
    #[arg(long, value_name = "W")]
    weight: Option<f64>,
    /// Streams longer than this go around the cache; 0: streams are cached as everything is
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    sequential_cutoff: Option<u64>,
    /// A block is cached at its n-th miss, up to the 15th
    #[arg(long, value_name = "N")]
    admission_hits: Option<u8>,
    /// Read ahead of sequential readers, into memory; 0: not at all
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    read_ahead: Option<u64>,
    /// What clients that connect from now on are told of it beside its name
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Changes options.
pub(crate) fn run(args: &SetArgs) -> Outcome<()> {
    let tuning = args.tuning.tuning()?;
    let line = line(&args.name, &tuning);
    let mut reached = Reached::new(&args.cache)?;
    let set = reached.ask(&args.name, Request::Tune(tuning), &line);
    let left = reached.leave();
    set.and(left)?;
    println!("volume {}: set", args.name);
    Ok(())
}

impl TuningArgs {
    fn tuning(&self) -> Outcome<Tuning> {
        let rates =
            [("reservation", self.reservation), ("limit", self.limit), ("weight", self.weight)];
        for (name, rate) in rates {
            if let Some(rate) = rate.filter(|rate| !rate.is_finite() || *rate < 0.0) {
                let sentence = format!("--{name}: expected a number from 0 on, found {rate}");
                return Err(Failure::CannotRun(sentence));
            }
        }
        let too_long = |found| {
            Failure::CannotRun(format!("--read-ahead: expected less than 4 GiB, found {found}"))
        };
        let ahead = self.read_ahead.map(|bytes| u32::try_from(bytes).map_err(|_| too_long(bytes)));
        Ok(Tuning {
            share_bytes: self.share,
            reservation: self.reservation,
            limit: self.limit,
            weight: self.weight,
            sequential_cutoff_bytes: self.sequential_cutoff,
            admission_hits: self.admission_hits,
            read_ahead_bytes: ahead.transpose()?,
            description: self.description.clone(),
        })
    }
}

/// The line for a server.
fn line(name: &str, tuning: &Tuning) -> Value {
    let mut line = Map::new();
    let fields = [
        ("command", Some(json!("set"))),
        ("volume", Some(json!(name))),
        ("share_bytes", tuning.share_bytes.map(|value| json!(value))),
        ("reservation", tuning.reservation.map(|value| json!(value))),
        ("limit", tuning.limit.map(|value| json!(value))),
        ("weight", tuning.weight.map(|value| json!(value))),
        ("sequential_cutoff_bytes", tuning.sequential_cutoff_bytes.map(|value| json!(value))),
        ("admission_hits", tuning.admission_hits.map(|value| json!(value))),
        ("read_ahead_bytes", tuning.read_ahead_bytes.map(|value| json!(value))),
        ("description", tuning.description.as_ref().map(|value| json!(value))),
    ];
    for (key, value) in fields {
        if let Some(value) = value {
            line.insert(key.to_owned(), value);
        }
    }
    Value::Object(line)
}
