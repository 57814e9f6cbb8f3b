//! `entresol volume flush` and `entresol volume mode`.

use clap::Args;
use entresol_volume::{Mode, Request};
use serde_json::json;

use super::cache::CacheArgs;
use super::reach::Reached;
use crate::failure::{Failure, Outcome};
use crate::progress;

/// Options of `entresol volume flush`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status 1: a volume is absent, as its backing cannot be opened, and may have dirty blocks.

Examples:
  entresol volume flush vm1 --cache /ssd/cache
  entresol volume flush --cache /ssd/cache")]
pub(crate) struct FlushArgs {
    /// The volume [default: all]
    name: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Options of `entresol volume mode`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol volume mode vm1 wb --cache /ssd/cache
  entresol volume mode vm1 pt --cache /ssd/cache    (nothing is dirty once it is done)")]
pub(crate) struct ModeArgs {
    /// The volume
    name: String,
    /// wt write-through, wb write-back, wa write-around, wo write-only, pt pass-through
    mode: String,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Writes back what is dirty.
pub(crate) fn flush(args: &FlushArgs) -> Outcome<()> {
    let mut reached = Reached::new(&args.cache)?;
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => reached.names()?,
    };
    let mut failures = Vec::new();
    for name in &names {
        let spinner = progress::spinner(&format!("writing back {name}"));
        let line = json!({"command": "flush", "volume": name});
        let flushed = reached.ask(name, Request::WriteBack, &line);
        spinner.finish_and_clear();
        match flushed {
            Ok(()) => println!("volume {name}: all that was dirty is on its backing"),
            Err(failure) if args.name.is_some() => failures.push(failure.to_string()),
            // The others are written back all the same.
            Err(failure) => failures.push(format!("volume {name} is not written back: {failure}")),
        }
    }
    let complete = match args.name {
        None => reached.demand_none_left_out(),
        Some(_) => Ok(()),
    };
    let left = reached.leave();
    let flushed = match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::CannotRun(failures.join("; "))),
    };
    flushed.and(complete).and(left)
}

/// Changes what a volume does with the cache.
pub(crate) fn mode(args: &ModeArgs) -> Outcome<()> {
    let mode: Mode = args.mode.parse()?;
    let mut reached = Reached::new(&args.cache)?;
    let spinner = progress::spinner(&format!("changing {} to {mode}", args.name));
    let line = json!({"command": "mode", "volume": args.name, "mode": mode.name()});
    let changed = reached.ask(&args.name, Request::SetMode(mode), &line);
    spinner.finish_and_clear();
    let left = reached.leave();
    changed.and(left)?;
    println!("volume {}: mode {mode}", args.name);
    Ok(())
}
