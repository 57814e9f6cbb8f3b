//! `entresol heap dump`: the live allocations, or the bytes of one.

use std::path::PathBuf;

use clap::Args;
use entresol_heap::Heap;
use serde_json::json;

use super::{KeyArgs, open};
use crate::failure::{Failure, Outcome};
use crate::units::hex;

/// Bytes of each allocation that a list shows.
const SHOWN_BYTES: u64 = 16;
/// Bytes of a line of one allocation's bytes.
const LINE_BYTES: usize = 16;

/// Options of `entresol heap dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol heap dump orders.heap
  entresol heap dump orders.heap --handle 1085440
  entresol heap dump orders.heap --json | jq .bytes")]
pub(crate) struct DumpArgs {
    /// The heap's file
    path: PathBuf,
    /// Show all bytes of the allocation with this handle
    #[arg(long)]
    handle: Option<u64>,
    /// Allocations listed at most [default: all]
    #[arg(long, conflicts_with = "handle")]
    limit: Option<usize>,
    #[command(flatten)]
    key: KeyArgs,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
}

/// Prints them.
pub(crate) fn run(args: &DumpArgs) -> Outcome<()> {
    let heap = open(&args.path, &args.key)?;
    match args.handle {
        Some(handle) => show(&heap, args, handle),
        None => list(&heap, args),
    }
}

fn list(heap: &Heap, args: &DumpArgs) -> Outcome<()> {
    let mut live = Vec::new();
    heap.visit_live(|handle, bytes| live.push((handle, bytes)));
    live.sort_unstable();
    let root = heap.root();
    let most = args.limit.unwrap_or(usize::MAX);
    for (handle, bytes) in live.iter().take(most).copied() {
        let mut first = vec![0; bytes.min(SHOWN_BYTES) as usize];
        heap.read(handle, &mut first)?;
        if args.json {
            let is_root = handle == root;
            let row = json!({
                "handle": handle, "bytes": bytes, "root": is_root, "first": hex(&first),
            });
            println!("{row}");
        } else {
            let mark = if handle == root { " root" } else { "" };
            println!("{handle:>16} {bytes:>12}  {}{mark}", hex(&first));
        }
    }
    if live.len() > most && !args.json {
        println!("{} more", live.len() - most);
    }
    Ok(())
}

fn show(heap: &Heap, args: &DumpArgs, handle: u64) -> Outcome<()> {
    let Some(length) = heap.usable_bytes(handle) else {
        return Err(Failure::CannotRun(format!(
            "{}: {handle} is not the handle of a live allocation; `entresol heap dump` lists them",
            args.path.display()
        )));
    };
    let mut bytes = vec![0; length as usize];
    heap.read(handle, &mut bytes)?;
    if args.json {
        println!("{}", json!({"handle": handle, "bytes": length, "content": hex(&bytes)}));
        return Ok(());
    }
    for (index, line) in bytes.chunks(LINE_BYTES).enumerate() {
        let text: String = line.iter().map(|byte| printable(*byte)).collect();
        println!("{:>10}  {:<32}  {text}", index * LINE_BYTES, hex(line));
    }
    Ok(())
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' }
}
