//! `entresol heap check`: look for damage, and give up what is damaged.

use std::path::PathBuf;

use clap::Args;
use entresol_heap::{Repair, check};
use serde_json::json;

use super::KeyArgs;
use crate::failure::{Failure, Outcome};
use crate::units::{bytes, number};

/// Options of `entresol heap check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 the heap is sound (or was repaired), 1 it is damaged, 2 it cannot be looked at.

Examples:
  entresol heap check orders.heap
  entresol heap check orders.heap --repair")]
pub(crate) struct CheckArgs {
    /// The heap's file; no program may have it open
    path: PathBuf,
    /// Give up what is damaged, so that the heap opens; make a copy of the file before
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    key: KeyArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Checks it.
pub(crate) fn run(args: &CheckArgs) -> Outcome<()> {
    let repair = if args.repair { Repair::Yes } else { Repair::No };
    let found = check(&args.path, repair, args.key.cipher()?.as_ref())?;
    let path = args.path.display();
    if args.json {
        println!(
            "{}",
            json!({
                "path": path.to_string(),
                "sound": found.problems.is_empty(),
                "problems": found.problems,
                "notes": found.notes,
                "repaired": found.repaired,
                "live": found.live,
                "live_bytes": found.live_bytes,
                "log_records": found.log_records,
            })
        );
    } else {
        println!(
            "{path}: {} allocations, {}; {} records of the log were not applied yet",
            number(found.live as f64),
            bytes(found.live_bytes as f64),
            number(found.log_records as f64),
        );
        found.notes.iter().for_each(|note| println!("note: {note}"));
        found.problems.iter().for_each(|problem| println!("damaged: {problem}"));
        found.repaired.iter().for_each(|what| println!("repaired: {what}"));
    }
    if found.problems.is_empty() || args.repair {
        return Ok(());
    }
    let count = found.problems.len();
    Err(Failure::Failed(format!(
        "{path}: {count} damaged places; restore a backup, or copy the file and run \
         `entresol heap check --repair`"
    )))
}
