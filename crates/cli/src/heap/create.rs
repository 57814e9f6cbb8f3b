//! `entresol heap create`: a heap in a new file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use entresol_heap::{CreateOptions, ErrorKind, Heap, Medium};
use serde_json::json;

use super::KeyArgs;
use crate::failure::{Failure, Outcome};
use crate::units::{bytes, parse_size};

/// Options of `entresol heap create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol heap create orders.heap --size 1GiB
  entresol heap create orders.heap --size 64MiB --limit 16GiB --label orders
  head -c 32 /dev/urandom > orders.key
  entresol heap create orders.heap --size 1GiB --key-file orders.key")]
pub(crate) struct CreateArgs {
    /// The file; it must not exist
    path: PathBuf,
    /// Its size
    #[arg(long, value_parser = parse_size)]
    size: u64,
    /// The most it may grow to [default: it does not grow]
    #[arg(long, value_parser = parse_size, default_value = "0", hide_default_value = true)]
    limit: u64,
    /// The kind of the heap, at most 16 bytes: programs that name another do not open it
    #[arg(long, default_value = "", hide_default_value = true)]
    label: String,
    /// Size of its log, 16 KiB to 1 GiB [default: an eighth of the heap, 64 KiB to 64 MiB]
    #[arg(long, value_parser = parse_size)]
    log: Option<u64>,
    /// How the file is written while this command makes it
    #[arg(long, value_enum, default_value = "auto")]
    medium: MediumName,
    #[command(flatten)]
    key: KeyArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MediumName {
    /// By stores on persistent memory and on tmpfs, else by pages
    Auto,
    /// By system calls and syncs
    Pages,
    /// By stores and fences
    Bytes,
}

/// Makes it.
pub(crate) fn run(args: &CreateArgs) -> Outcome<()> {
    let mut label = [0; 16];
    let text = args.label.as_bytes();
    let Some(place) = label.get_mut(..text.len()) else {
        let detail = format!("--label {}: {} bytes; expected at most 16", args.label, text.len());
        return Err(Failure::CannotRun(detail));
    };
    place.copy_from_slice(text);
    if let Some(log) = args.log.filter(|log| !(16 << 10..=1 << 30).contains(log)) {
        let detail = format!("--log {log}: expected 16KiB to 1GiB");
        return Err(Failure::CannotRun(detail));
    }
    if args.limit != 0 && args.limit < args.size {
        let detail = format!(
            "--limit {}: less than the --size of {} bytes; expected at least that, or leave it out",
            args.limit, args.size
        );
        return Err(Failure::CannotRun(detail));
    }
    let options = CreateOptions {
        bytes: args.size,
        limit_bytes: args.limit,
        label,
        log_bytes: args.log,
        medium: match args.medium {
            MediumName::Auto => Medium::Auto,
            MediumName::Pages => Medium::Pages,
            MediumName::Bytes => Medium::Bytes,
        },
        cipher: args.key.cipher()?,
        ..CreateOptions::default()
    };
    let heap = Heap::create(&args.path, &options).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::CannotRun(format!("{error}; make its folder first")),
        _ => Failure::from(error),
    })?;
    let figures = heap.statistics();
    let durability = heap.durability();
    let heap_cipher = heap.cipher();
    heap.close()?;
    if args.json {
        let survives = durability.survives_power_loss;
        println!(
            "{}",
            json!({
                "path": args.path.display().to_string(),
                "size_bytes": figures.size_bytes,
                "limit_bytes": figures.limit_bytes,
                "data_bytes": figures.data_bytes,
                "log_bytes": figures.log_bytes,
                "survives_power_loss": survives,
                "cipher": heap_cipher,
            })
        );
        return Ok(());
    }
    println!(
        "{}: {} of which {} for data; it may grow to {}",
        args.path.display(),
        bytes(figures.size_bytes as f64),
        bytes(figures.data_bytes as f64),
        bytes(figures.limit_bytes as f64),
    );
    println!("{durability}");
    if let Some(name) = heap_cipher {
        println!("encrypted with {name}: whoever loses the key loses the heap");
    }
    Ok(())
}
