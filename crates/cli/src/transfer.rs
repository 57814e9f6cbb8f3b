//! `entresol load` and `entresol export`: CSV and JSON lines into a store or server, and out.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use entresol_tier::OpenMode;

use crate::failure::{Failure, Outcome};
use crate::place::{Damage, PlaceArgs};
use crate::progress;
use crate::records::{self, Fields, Layout, Writer};
use crate::report::{Format, Report};
use crate::units::parse_size;

/// Options of `entresol load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol load people.csv --key id --target redis://127.0.0.1:6379
  entresol load packages.jsonl --key name,version --separator = --dir /var/lib/entresol
  entresol load export.jsonl --key key --value value --dir copy --capacity 2GiB")]
pub(crate) struct LoadArgs {
    /// The file to read; - reads standard input
    file: PathBuf,
    /// Field that is the key; several, separated by commas, are joined
    #[arg(long, value_delimiter = ',', required = true)]
    key: Vec<String>,
    /// What joins the parts of a key
    #[arg(long, default_value = ":")]
    separator: String,
    /// Field that is the value; without it the whole record, as a JSON object
    #[arg(long)]
    value: Option<String>,
    /// How the file is written; by its name otherwise
    #[arg(long, value_enum)]
    format: Option<Layout>,
    /// Bytes of the store to make where --dir or --devices has none
    #[arg(long, value_parser = parse_size)]
    capacity: Option<u64>,
    #[command(flatten)]
    place: PlaceArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Options of `entresol export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol export --dir /var/lib/entresol > entries.jsonl
  entresol export --target redis://127.0.0.1:6379 --format csv --output entries.csv")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// How entries are written; by the name of --output otherwise, JSON lines without one
    #[arg(long, value_enum)]
    format: Option<Layout>,
    /// The file to write; standard output otherwise
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Loads a file.
pub(crate) fn load(args: &LoadArgs) -> Outcome<()> {
    args.place.demand()?;
    let layout = args.format.or_else(|| layout_of(&args.file)).ok_or_else(|| {
        Failure::CannotRun(format!(
            "cannot tell the format of '{}' by its name; give --format csv or --format jsonl",
            args.file.display()
        ))
    })?;
    let (input, total): (Box<dyn Read>, u64) = match args.file.as_os_str().to_str() {
        Some("-") => (Box::new(std::io::stdin()), 0),
        _ => {
            let named = |e| Failure::doing(format!("cannot read {}", args.file.display()), e);
            let file = File::open(&args.file).map_err(named)?;
            let length = file.metadata().map_err(named)?.len();
            (Box::new(file), length)
        }
    };
    let fields = Fields {
        key: args.key.clone(),
        separator: args.separator.clone(),
        value: args.value.clone(),
    };
    let mut place = args.place.open(OpenMode::OpenOrCreate, args.capacity)?;
    let began = Instant::now();
    let bar = progress::bar("loading", total);
    let input = BufReader::with_capacity(1 << 20, bar.wrap_read(input));
    let (mut count, mut bytes) = (0u64, 0u64);
    let ended = records::read(input, layout, &fields, &mut |item| {
        count += 1;
        bytes += (item.key.len() + item.value.len()) as u64;
        place.put(&item)
    });
    // What was read before an error stays loaded.
    place.finish()?;
    ended.map_err(|failure| {
        let name = args.file.display();
        Failure::CannotRun(format!("{name}, {failure}; {count} records were loaded before"))
    })?;
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    let mut report = Report::default();
    report.set("file", args.file.display().to_string());
    report.set("records", count);
    report.set("bytes", bytes);
    report.figure("seconds", seconds);
    report.figure("records_per_second", count as f64 / seconds);
    report.print(if args.json { Format::Json } else { Format::Table });
    Ok(())
}

/// Exports all entries of a space.
pub(crate) fn export(args: &ExportArgs) -> Outcome<()> {
    args.place.demand()?;
    let by_name = args.output.as_deref().and_then(layout_of);
    let layout = args.format.or(by_name).unwrap_or(Layout::Jsonl);
    let output: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(
            File::create(path)
                .map_err(|e| Failure::doing(format!("cannot write {}", path.display()), e))?,
        ),
        None => Box::new(std::io::stdout()),
    };
    let mut place = args.place.open(OpenMode::ReadOnly, None)?;
    let mut writer = Writer::new(layout, BufWriter::with_capacity(1 << 20, output))?;
    let spinner = progress::spinner("exporting");
    let (mut count, mut damage) = (0u64, Damage::default());
    place.visit(&mut damage, &mut |item| {
        count += 1;
        if count.is_multiple_of(10_000) {
            spinner.set_message(format!("exported {count} entries"));
        }
        writer.write(&item)
    })?;
    writer.finish()?;
    spinner.finish_and_clear();
    eprintln!("exported {count} entries");
    damage.judge("all others were exported")
}

fn layout_of(path: &Path) -> Option<Layout> {
    match path.extension()?.to_str()? {
        "csv" => Some(Layout::Csv),
        "jsonl" | "ndjson" | "json" => Some(Layout::Jsonl),
        _ => None,
    }
}
