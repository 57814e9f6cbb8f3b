//! `entresol store info|tables|verify|dump`: looks into a stopped store and changes nothing.

use std::io::{BufWriter, Write};
use std::time::Instant;

use clap::{Args, Subcommand};
use entresol_tier::{
    Entry, ErrorKind, JournalRecord, OpenMode, SessionOptions, SpaceId, Timestamp,
};
use entresol_tree::{CheckedTables, TableEntry, Told, check_tables, extent_of_tables};
use serde_json::{Map, Value, json};

use crate::data::DataArgs;
use crate::engine::{Engine, now};
use crate::failure::{Failure, Outcome};
use crate::holder::{Damage, scan};
use crate::progress;
use crate::records::{put_parts, text_or_hex};
use crate::report::{Format, Report};
use crate::tables::{self, Bytes, More, OpenTable, RangeArgs, TableRow, has_some};

/// The jobs of `entresol store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Sizes, counts and memory of a store
    Info(StoreArgs),
    /// List the ordered tables
    Tables(StoreArgs),
    /// Read every record, check its checksum, and check the pages of ordered tables
    Verify(StoreArgs),
    /// Print the entries, or rows of an ordered table
    Dump(DumpArgs),
}

/// Which store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol store info --dir /var/lib/entresol
  entresol store info --devices /dev/nvme0n1,/dev/nvme1n1 --selection stripe
  entresol store verify --dir /var/lib/entresol --encryption-key /etc/entresol/key --json")]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Options of `entresol store dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol store dump --dir /var/lib/entresol --limit 20
  entresol store dump --dir /var/lib/entresol --space 1 --json
  entresol store dump --dir /var/lib/entresol --table events --from 2026-11 --limit 10")]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Space to dump; all otherwise
    #[arg(short = 'n', long, visible_alias = "db")]
    space: Option<u16>,
    /// Ordered table whose rows to dump: its name as text, or as hex:DIGITS
    #[arg(long, value_name = "NAME", conflicts_with = "space", value_parser = str::parse::<Bytes>)]
    table: Option<Bytes>,
    #[command(flatten)]
    range: RangeArgs,
    /// Most entries to print
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
}

/// Runs one job.
pub(crate) fn run(command: &StoreCommand) -> Outcome<()> {
    match command {
        StoreCommand::Info(args) => info(args),
        StoreCommand::Tables(args) => list(args),
        StoreCommand::Verify(args) => verify(args),
        StoreCommand::Dump(args) => dump(args),
    }
}

impl StoreArgs {
    fn open(&self) -> Outcome<Engine> {
        self.data.open(OpenMode::ReadOnly, None)
    }

    fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Table }
    }
}

fn info(args: &StoreArgs) -> Outcome<()> {
    let began = Instant::now();
    let engine = args.open()?;
    let opened = began.elapsed().as_secs_f64();
    let statistics = engine.tiered.statistics();
    let mut report = Report::default();
    report.set("store", engine.device.name());
    report.set("capacity_bytes", engine.device.geometry().capacity_bytes);
    report.set("entries", statistics.entries);
    report.set("spaces", spaces(&engine));
    report.set("superblock_copies", superblock_copies(&engine));
    report.set("segments", statistics.segments);
    if let Some(journal) = journal(&engine)? {
        report.set("journal", journal);
    }
    report.set("segments_free", statistics.segments_free);
    report.set("flash_allocated_bytes", statistics.flash_allocated_bytes);
    report.set("flash_live_bytes", statistics.flash_live_bytes);
    let share = statistics.flash_live_bytes as f64 / statistics.flash_allocated_bytes.max(1) as f64;
    report.figure("live_share", share);
    report.set("index_bytes", statistics.index_bytes);
    // That of an empty store is no figure.
    if statistics.entries > 0 {
        let per_entry = statistics.index_bytes as f64 / statistics.entries as f64;
        report.figure("index_bytes_per_entry", per_entry);
    }
    report.figure("open_seconds", opened);
    report_tables(&engine, &mut report)?;
    for leftover in args.data.leftovers() {
        report.note(leftover.to_string());
    }
    report.print(args.format());
    Ok(())
}

fn verify(args: &StoreArgs) -> Outcome<()> {
    let engine = args.open()?;
    let began = Instant::now();
    let mut session = engine.tiered.session(SessionOptions::default())?;
    let expected: u64 = engine.tiered.statistics().entries;
    let bar = progress::bar("verifying", expected);
    let (mut entries, mut bytes, mut damage) = (0u64, 0u64, Damage::default());
    for space in engine.tiered.spaces() {
        // At the beginning of time nothing has ended: what expired and was not found yet is read
        // and counted like the rest, as it is by the index.
        scan(&mut session, (space, Timestamp(0)), &mut damage, &mut |entry| {
            entries += 1;
            bytes += (entry.key.len() + entry.value.len()) as u64;
            if entries.is_multiple_of(1024) {
                bar.set_position(entries);
            }
            Ok(())
        })?;
    }
    bar.finish_and_clear();
    let journaled = replay(&engine, &mut damage, &mut |_, _| {})?;
    let tables = verify_tables(&engine, &mut damage)?;
    let seconds = began.elapsed().as_secs_f64();
    let mut report = Report::default();
    report.set("store", engine.device.name());
    report.set("entries_verified", entries);
    if journaled > 0 {
        report.set("journal_records_verified", journaled);
    }
    report.set("entries_indexed", expected);
    report.set("bytes", bytes);
    if let Some(tables) = tables {
        set_checked(&mut report, &tables);
    }
    report.set("damaged", damage.sentences().collect::<Vec<_>>());
    report.set("superblock_copies", superblock_copies(&engine));
    report.figure("seconds", seconds);
    report.figure("mb_per_second", bytes as f64 / seconds / 1e6);
    report.print(args.format());
    damage.judge(&format!("{entries} entries are sound"))?;
    if entries < expected {
        return Err(Failure::Failed(format!(
            "{} of {expected} indexed entries could not be read back",
            expected - entries
        )));
    }
    match engine.tiered.store().superblock_damage() {
        Some(damage) => Err(Failure::Failed(format!("all entries are sound, but {damage}"))),
        None => Ok(()),
    }
}

fn dump(args: &DumpArgs) -> Outcome<()> {
    let engine = args.store.open()?;
    if let Some(Bytes(name)) = &args.table {
        return dump_rows(args, &engine, name);
    }
    let mut session = engine.tiered.session(SessionOptions::default())?;
    let mut output = BufWriter::new(std::io::stdout().lock());
    let wanted = args.space.map_or_else(|| engine.tiered.spaces(), |space| vec![SpaceId(space)]);
    let (mut left, mut damage) = (args.limit, Damage::default());
    for space in wanted {
        let ended = scan(&mut session, (space, now()), &mut damage, &mut |entry| {
            if left == 0 {
                return Err(Failure::Failed(ENOUGH.into()));
            }
            left -= 1;
            let line = match args.store.format() {
                Format::Json => json_line(space, &entry).to_string(),
                Format::Table => text_line(space, &entry),
            };
            writeln!(output, "{line}").map_err(Failure::not_written)
        });
        match ended {
            Err(Failure::Failed(sentence)) if sentence == ENOUGH => break,
            other => other?,
        }
    }
    if args.space.is_none() {
        let mut written = Ok(());
        replay(&engine, &mut damage, &mut |lane, record| {
            if left > 0 && written.is_ok() {
                left -= 1;
                let line = match args.store.format() {
                    Format::Json => journal_json(lane, &record).to_string(),
                    Format::Table => journal_text(lane, &record),
                };
                written = writeln!(output, "{line}").map_err(Failure::not_written);
            }
        })?;
        written?;
    }
    output.flush().map_err(Failure::not_written)?;
    damage.judge("all others were printed")
}

/// Prints rows of an ordered table, those that are in the journal alone included.
fn dump_rows(args: &DumpArgs, engine: &Engine, name: &[u8]) -> Outcome<()> {
    let mut table = OpenTable::open_existing(&engine.tiered, name)?;
    let mut output = BufWriter::new(std::io::stdout().lock());
    let mut left = args.limit;
    if left > 0 {
        table.scan(&args.range, &mut |row| {
            left -= 1;
            let line = match args.store.format() {
                Format::Json => row_json(name, &row).to_string(),
                Format::Table => row_text(&row),
            };
            writeln!(output, "{line}").map_err(Failure::not_written)?;
            Ok(if left > 0 { More::Wanted } else { More::Unwanted })
        })?;
    }
    output.flush().map_err(Failure::not_written)
}

/// Lists the ordered tables.
fn list(args: &StoreArgs) -> Outcome<()> {
    let engine = args.open()?;
    let all = if has_some(&engine.tiered)? { tables::all(&engine.tiered)? } else { Vec::new() };
    let mut output = BufWriter::new(std::io::stdout().lock());
    for TableEntry { id, name, is_dropped, journaled_changes } in &all {
        let line = match args.format() {
            Format::Json => {
                let (name, name_hex) = text_or_hex(name);
                json!({
                    "name": name,
                    "name_hex": name_hex,
                    "id": format!("{id:016x}"),
                    "dropped": is_dropped,
                    "journaled_changes": journaled_changes,
                })
                .to_string()
            }
            Format::Table => {
                let dropped = if *is_dropped { "\tdropped" } else { "" };
                let name = name.escape_ascii();
                format!("{name}\t{id:016x}\t{journaled_changes} changes in the journal{dropped}")
            }
        };
        writeln!(output, "{line}").map_err(Failure::not_written)?;
    }
    output.flush().map_err(Failure::not_written)
}

/// What is known of ordered tables without a look at their pages.
fn report_tables(engine: &Engine, report: &mut Report) -> Outcome<()> {
    if !has_some(&engine.tiered)? {
        return Ok(());
    }
    let options = tables::options();
    let bar = progress::bar("listing tables", engine.tiered.statistics().segments);
    let extent = extent_of_tables(&engine.tiered, &options, now(), &mut || bar.inc(1))?;
    bar.finish_and_clear();
    report.set("tables", extent.tables);
    report.set("table_pages", extent.pages);
    report.set("table_delta_pages", extent.delta_pages);
    report.set("table_record_bytes", extent.record_bytes);
    let journal = engine.tiered.store().journal_state(options.lane)?;
    report.set("table_journal_bytes", journal.bytes);
    report.set("tables_settled", extent.is_settled);
    if !extent.is_settled {
        report.note(
            "ordered tables were not closed after their last change: some changes are in the \
             journal alone, and tables without a page are not counted; `entresol store verify` \
             counts them",
        );
    }
    Ok(())
}

/// Checks the ordered tables, if there are any.
fn verify_tables(engine: &Engine, damage: &mut Damage) -> Outcome<Option<CheckedTables>> {
    if !has_some(&engine.tiered)? {
        return Ok(None);
    }
    let options = tables::options();
    let bar = progress::bar("checking tables", engine.tiered.count(options.space));
    let checked = check_tables(&engine.tiered, &options, now(), &mut |told| match told {
        Told::Pages(pages) => bar.inc(pages),
        Told::Damage(found) => damage.note(found.to_string()),
        Told::Table(_) => {}
    })?;
    bar.finish_and_clear();
    Ok(Some(checked))
}

fn set_checked(report: &mut Report, tables: &CheckedTables) {
    let sums = &tables.sums;
    report.set("tables_verified", tables.tables);
    report.set("tables_dropped", tables.dropped);
    report.set("tables_settled", tables.is_settled);
    report.set("table_rows", sums.rows);
    report.set("table_leaves", sums.leaves);
    report.set("table_delta_pages", sums.delta_pages);
    report.set("table_inner_nodes", sums.inner_nodes);
    report.set("table_page_bytes", sums.page_bytes);
    report.set("table_journal_batches", tables.batches);
    report.set("table_journal_changes", tables.changes);
    report.set("table_pages_behind", sums.pages_behind);
    report.set("table_pages_left", sums.pages_left);
    report.set("table_pages_dropped", sums.pages_dropped);
    report.set("table_values_left", tables.values_left);
    if !tables.is_settled {
        report.note(format!(
            "ordered tables were not closed after their last change: of the {} changes in the \
             journal some are in no page, and are not among the rows",
            tables.changes
        ));
    }
}

fn row_json(table: &[u8], row: &TableRow) -> Value {
    let (table, table_hex) = text_or_hex(table);
    let (key, key_hex) = text_or_hex(&row.key);
    let (value, value_hex) = text_or_hex(row.value.as_deref().unwrap_or_default());
    let mut line = json!({
        "table": table,
        "table_hex": table_hex,
        "key": key,
        "key_hex": key_hex,
        "value": row.value.as_ref().map(|_| value),
        "value_hex": value_hex,
    });
    if let (Value::Object(record), false) = (&mut line, row.parts.is_empty()) {
        put_parts(&row.parts, record);
    }
    line
}

fn row_text(row: &TableRow) -> String {
    let value = row.value.as_deref().unwrap_or_default();
    let more = match row.parts.len() {
        0 => String::new(),
        count => format!("\tand {count} parts"),
    };
    format!("{}\t{}{more}", row.key.escape_ascii(), value.escape_ascii())
}

/// What ends a scan that printed all it was to print.
const ENOUGH: &str = "enough entries";

/// How many of the two copies verify.
fn superblock_copies(engine: &Engine) -> u64 {
    if engine.tiered.store().superblock_damage().is_some() { 1 } else { 2 }
}

/// How the journal stands, lane by lane, if there is one.
fn journal(engine: &Engine) -> Outcome<Option<Value>> {
    let store = engine.tiered.store();
    let mut lanes = Vec::new();
    for lane in 0..store.journal_lanes() {
        let state = store.journal_state(lane)?;
        if state.segments > 0 {
            lanes.push(json!({
                "lane": lane,
                "segments": state.segments,
                "bytes": state.bytes,
                "watermark": state.watermark.0,
            }));
        }
    }
    Ok((!lanes.is_empty()).then_some(lanes.into()))
}

/// Visits the records of all lanes of the journal; how many. Notes where one is damaged.
fn replay(
    engine: &Engine,
    damage: &mut Damage,
    visit: &mut dyn FnMut(u16, JournalRecord<'_>),
) -> Outcome<u64> {
    let store = engine.tiered.store();
    let mut records = 0;
    for lane in 0..store.journal_lanes() {
        let replayed = store.replay_journal(lane, &mut |record| {
            records += 1;
            visit(lane, record);
        });
        match replayed {
            Err(error) if error.kind() == ErrorKind::Corrupt => damage.note(error.to_string()),
            replayed => drop(replayed?),
        }
    }
    Ok(records)
}

fn spaces(engine: &Engine) -> Value {
    let mut spaces = Map::new();
    for space in engine.tiered.spaces() {
        spaces.insert(space.0.to_string(), engine.tiered.count(space).into());
    }
    spaces.into()
}

fn json_line(space: SpaceId, entry: &Entry<'_>) -> Value {
    let (key, key_hex) = text_or_hex(entry.key);
    json!({
        "space": space.0,
        "key": key,
        "key_hex": key_hex,
        "value_bytes": entry.value.len(),
        "version": entry.version.0,
        "label": entry.label,
        "expires_at_ms": entry.expiry.at.map(|at| at.0),
        "idle_seconds": entry.expiry.idle_seconds.map(std::num::NonZeroU32::get),
    })
}

fn journal_json(lane: u16, record: &JournalRecord<'_>) -> Value {
    json!({
        "journal_lane": lane,
        "sequence": record.sequence.0,
        "owner": record.owner,
        "bytes": record.bytes.len(),
    })
}

fn journal_text(lane: u16, record: &JournalRecord<'_>) -> String {
    format!(
        "journal {lane}\towner {}\t{} bytes\tsequence {}",
        record.owner,
        record.bytes.len(),
        record.sequence.0
    )
}

fn text_line(space: SpaceId, entry: &Entry<'_>) -> String {
    format!(
        "{}\t{}\t{} bytes\tversion {}\tlabel {}",
        space.0,
        entry.key.escape_ascii(),
        entry.value.len(),
        entry.version.0,
        entry.label
    )
}
