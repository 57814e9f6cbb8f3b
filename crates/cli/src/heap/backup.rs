//! `entresol heap backup`: a copy of a heap, its log applied.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{KeyArgs, open};
use crate::cleanup::Unfinished;
use crate::failure::Outcome;
use crate::units::bytes;

/// Options of `entresol heap backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
A program that has the heap open makes a backup of it by itself, while it goes on.

Examples:
  entresol heap backup orders.heap orders-monday.heap")]
pub(crate) struct BackupArgs {
    /// The heap's file; no program may write it meanwhile
    path: PathBuf,
    /// The file to make
    target: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Makes it.
pub(crate) fn run(args: &BackupArgs) -> Outcome<()> {
    let heap = open(&args.path, &args.key)?;
    let unfinished = Unfinished::new(&args.target)?;
    heap.backup(&args.target)?;
    drop(unfinished);
    let figures = heap.statistics();
    let target = args.target.display();
    if args.json {
        let size = figures.size_bytes;
        println!(
            "{}",
            json!({"path": target.to_string(), "size_bytes": size, "live": figures.live})
        );
    } else {
        let size = bytes(figures.size_bytes as f64);
        println!("{target}: {size}, {} allocations", figures.live);
    }
    Ok(())
}
