//! `entresol heap info`: sizes and figures of a heap.

use std::path::PathBuf;

use clap::Args;

use super::{KeyArgs, label_text, open};
use crate::failure::Outcome;
use crate::report::{Format, Report};

/// Options of `entresol heap info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol heap info orders.heap
  entresol heap info orders.heap --json")]
pub(crate) struct InfoArgs {
    /// The heap's file
    path: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints them.
pub(crate) fn run(args: &InfoArgs) -> Outcome<()> {
    let heap = open(&args.path, &args.key)?;
    let figures = heap.statistics();
    let mut report = Report::default();
    let id: String = heap.heap_id().iter().map(|byte| format!("{byte:02x}")).collect();
    report.set("path", args.path.display().to_string());
    report.set("label", label_text(heap.label()));
    report.set("heap_id", id);
    report.set("cipher", heap.cipher().unwrap_or_else(|| "none".to_owned()));
    report.set("root", heap.root());
    let numbers = [
        ("size_bytes", figures.size_bytes),
        ("limit_bytes", figures.limit_bytes),
        ("data_offset", heap.data_offset()),
        ("data_bytes", figures.data_bytes),
        ("live", figures.live),
        ("live_bytes", figures.live_bytes),
        ("free_page_bytes", figures.free_page_bytes),
        ("free_slot_bytes", figures.free_slot_bytes),
        ("largest_free_bytes", figures.largest_free_bytes),
        ("log_bytes", figures.log_bytes),
    ];
    for (name, number) in numbers {
        report.set(name, number);
    }
    report.print(if args.json { Format::Json } else { Format::Table });
    Ok(())
}
