//! `entresol load` and `entresol export`: CSV and JSON lines into a store or server, and out.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::Args;
use entresol_tier::OpenMode;

use crate::cleanup::{STOPPED, forget_file, on_signals, register_file, stop_flag, stop_stream};
use crate::failure::{Failure, Outcome};
use crate::holder::{Damage, HolderArgs};
use crate::progress;
use crate::records::{self, Fields, Layout, Writer};
use crate::report::{Format, Report};
use crate::stoppable::Stoppable;
use crate::tables::RangeArgs;
use crate::units::parse_size;

/// Options of `entresol load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol load people.csv --key id --target redis://127.0.0.1:6379
  entresol load packages.jsonl --key name,version --separator = --dir /var/lib/entresol
  entresol load export.jsonl --key key --value value --dir copy --capacity 2GiB
  entresol load events.jsonl --key key --value value --dir /var/lib/entresol --table events")]
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
    #[arg(long, value_parser = parse_size, conflicts_with = "target")]
    capacity: Option<u64>,
    #[command(flatten)]
    holder: HolderArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Options of `entresol export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exports one space, or rows of an ordered table. Read it back with --key key --value value.

Examples:
  entresol export --dir /var/lib/entresol > entries.jsonl
  entresol export --dir /var/lib/entresol --table events --from 2026-11 > november.jsonl
  entresol export --target redis://127.0.0.1:6379 --format csv --output entries.csv")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    holder: HolderArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// How entries are written; by the name of --output otherwise, JSON lines without one
    #[arg(long, value_enum)]
    format: Option<Layout>,
    /// The file to write; standard output otherwise
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Loads a file.
pub(crate) fn load(args: &LoadArgs) -> Outcome<()> {
    args.holder.demand()?;
    let layout = args.format.or_else(|| layout_of(&args.file)).ok_or_else(|| {
        Failure::CannotRun(format!(
            "cannot tell the format of '{}' by its name; give --format csv or --format jsonl",
            args.file.display()
        ))
    })?;
    let (input, total) = opened(&args.file).map_err(|e| {
        let what = format!("cannot read {}", args.file.display());
        Failure::CannotRun(format!("{what}: {e}; name a file, or - for standard input"))
    })?;
    let fields = Fields {
        key: args.key.clone(),
        separator: args.separator.clone(),
        value: args.value.clone(),
    };
    let mut holder = args.holder.open(OpenMode::OpenOrCreate, args.capacity)?;
    let stop = stop_flag()?;
    let began = Instant::now();
    let bar = progress::bar("loading", total);
    let input = Stoppable::new(input, stop_stream()?);
    let input = BufReader::with_capacity(1 << 20, bar.wrap_read(input));
    let (mut count, mut bytes) = (0u64, 0u64);
    let ended = records::read(input, layout, &fields, &mut |item| {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Told(STOPPED));
        }
        holder.put(&item)?;
        count += 1;
        bytes += item.bytes();
        Ok(())
    });
    // What was read before an error stays loaded.
    let (about, finished) = (holder.may_answer_late(), holder.finish());
    if stop.load(Ordering::Relaxed) {
        bar.finish_and_clear();
        finished?;
        say!("entresol: stopped; {count} records were loaded before");
        return Err(Failure::Told(STOPPED));
    }
    ended.and(finished).map_err(|failure| {
        let (name, about) = (args.file.display(), if about { "about " } else { "" });
        Failure::CannotRun(format!("{name}, {failure}; {about}{count} records were loaded before"))
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

/// The file to load, and its bytes, as far as it tells.
fn opened(path: &Path) -> io::Result<(File, u64)> {
    if path == Path::new("-") {
        // Unbuffered: what a buffer holds is not seen by who waits for the descriptor.
        return Ok((File::from(io::stdin().as_fd().try_clone_to_owned()?), 0));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// Exports all entries of a space.
pub(crate) fn export(args: &ExportArgs) -> Outcome<()> {
    args.holder.demand()?;
    if args.output.is_some() {
        on_signals()?;
    }
    let by_name = args.output.as_deref().and_then(layout_of);
    let layout = args.format.or(by_name).unwrap_or(Layout::Jsonl);
    // A store or server that cannot be opened leaves an earlier export as it is.
    let mut holder = args.holder.open(OpenMode::ReadOnly, None)?.within(&args.range);
    let file = args.output.as_deref().map(ExportFile::create).transpose()?;
    let output: Box<dyn Write> = match &file {
        Some(file) => Box::new(file.open()?),
        None => Box::new(std::io::stdout()),
    };
    let mut writer = Writer::new(layout, BufWriter::with_capacity(1 << 20, output))?;
    let spinner = progress::spinner("exporting");
    let (mut count, mut damage) = (0u64, Damage::default());
    let left_out = holder.visit(&mut damage, &mut |item| {
        count += 1;
        if count.is_multiple_of(10_000) {
            spinner.set_message(format!("exported {count} entries"));
        }
        writer.write(&item)
    })?;
    writer.finish()?;
    file.map_or(Ok(()), ExportFile::keep)?;
    spinner.finish_and_clear();
    say!("exported {count} entries");
    for (space, entries) in holder.other_spaces() {
        say!("note: {entries} entries are in space {space}; --space {space} exports those");
    }
    match holder.other_tables()? {
        0 => {}
        count => say!(
            "note: ordered tables: {count}; `entresol store tables` lists them, and --table NAME \
             exports one"
        ),
    }
    damage.judge("all others were exported")?;
    match left_out {
        0 => Ok(()),
        count => Err(Failure::Failed(format!(
            "{count} keys hold neither a string nor a hash and were left out; all others were \
             exported"
        ))),
    }
}

/// A file that is in its place once it is whole; until then, what was there stays. What cannot be
/// replaced is written where it is: a device, a pipe, a file that has lost its name, or one beside
/// which nothing can be made.
struct ExportFile {
    path: PathBuf,
    /// What is written.
    file: File,
    /// Where that is until it is whole; `None`: in its place.
    partial: Option<PathBuf>,
}

impl ExportFile {
    fn create(path: &Path) -> Outcome<ExportFile> {
        let cannot_write = |e| Failure::doing(format!("cannot write {}", path.display()), e);
        let there = path.metadata();
        let place = match (path.canonicalize(), &there) {
            (Ok(place), Ok(found)) => Some(place).filter(|_| found.is_file()),
            (Err(_), Ok(_)) => None,
            (_, Err(_)) => followed(path),
        };
        let Some(place) = place else { return ExportFile::in_place(path).map_err(cannot_write) };
        if there.is_ok() {
            // One that may not be written is not replaced either.
            let file = File::options().write(true).open(&place).map_err(cannot_write)?;
            demand_free(&file).map_err(cannot_write)?;
        }
        let made = match ExportFile::beside(&place, there.ok().map(|found| found.permissions())) {
            Err(error) if bars_others(&error) => ExportFile::in_place(&place),
            made => made,
        };
        made.map_err(cannot_write)
    }

    fn in_place(path: &Path) -> io::Result<ExportFile> {
        // Systems refuse to make what is there and another's, though it may be written.
        let is_new = path.metadata().is_err();
        let file = File::options().write(true).create(is_new).truncate(false).open(path)?;
        demand_free(&file)?;
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(ExportFile { path: path.to_owned(), file, partial: None })
    }

    fn beside(path: &Path, permissions: Option<Permissions>) -> io::Result<ExportFile> {
        let mut partial = path.to_owned().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = own(&partial)?;
        register_file(&partial);
        file.set_len(0)?;
        let made = ExportFile { path: path.to_owned(), file, partial: Some(partial) };
        permissions.map_or(Ok(()), |found| made.file.set_permissions(found))?;
        Ok(made)
    }

    fn open(&self) -> Outcome<File> {
        self.file.try_clone().map_err(|e| self.cannot_write(e))
    }

    /// Puts it in its place.
    fn keep(mut self) -> Outcome<()> {
        self.replace().map_err(|e| self.cannot_write(e))
    }

    fn replace(&mut self) -> io::Result<()> {
        let Some(partial) = &self.partial else { return Ok(()) };
        self.file.sync_all()?;
        match std::fs::rename(partial, &self.path) {
            Ok(()) => {
                forget_file(partial);
                self.partial = None;
                Ok(())
            }
            Err(error) if bars_others(&error) => {
                let mut there = ExportFile::in_place(&self.path)?;
                self.file.rewind()?;
                io::copy(&mut self.file, &mut there.file)?;
                there.file.sync_all()
            }
            Err(error) => Err(error),
        }
    }

    fn cannot_write(&self, error: io::Error) -> Failure {
        Failure::doing(format!("cannot write {}", self.path.display()), error)
    }
}

impl Drop for ExportFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // It is not whole, or not needed any more, and nobody knows of it.
            drop(std::fs::remove_file(partial));
            forget_file(partial);
        }
    }
}

/// Opens or makes the file at `path`, and locks it, so that no other export writes to it.
fn own(path: &Path) -> io::Result<File> {
    // Some file systems number a file anew each time they are asked.
    const ATTEMPTS: usize = 8;
    let mut attempt = 0;
    loop {
        attempt += 1;
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let detail = "another export to it is under way; wait for it, or name another file";
            return Err(io::Error::other(detail));
        }
        // The export that had the lock may just have put the file in its place.
        let (ours, there) = (file.metadata()?, path.metadata());
        let is_ours = there.is_ok_and(|it| (it.dev(), it.ino()) == (ours.dev(), ours.ino()));
        if is_ours || attempt == ATTEMPTS {
            return Ok(file);
        }
    }
}

/// Refuses what an open store is on, that which is exported too: stores hold a lock on it.
fn demand_free(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::other("it is in use, as by a store; name another file"))
        }
        // Where nothing can be locked, no store is.
        Err(TryLockError::Error(_)) => Ok(()),
        Ok(()) => file.unlock(),
    }
}

/// Whether no other file can be made beside a file, or put in its place, which says nothing of the
/// file itself: its directory is another's or read-only, it is mounted, or its name is long.
fn bars_others(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    let kinds = [InvalidFilename, PermissionDenied, ReadOnlyFilesystem, ResourceBusy];
    kinds.contains(&error.kind())
}

/// Where links lead from `path`, though nothing is there; `None` for more than a system follows.
fn followed(path: &Path) -> Option<PathBuf> {
    const LINKS_MAX: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..=LINKS_MAX {
        let Ok(target) = path.read_link() else { return Some(path) };
        path.pop();
        path.push(target);
    }
    None
}

fn layout_of(path: &Path) -> Option<Layout> {
    match path.extension()?.to_str()? {
        "csv" => Some(Layout::Csv),
        "jsonl" | "ndjson" | "json" => Some(Layout::Jsonl),
        _ => None,
    }
}
