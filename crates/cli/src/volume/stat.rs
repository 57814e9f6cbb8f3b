//! `entresol volume stat`: figures of a cache and its volumes, in the layout of Open CAS.

use clap::Args;
use serde_json::Value;

use super::cache::CacheArgs;
use super::reach::{Reached, unknown};
use crate::failure::Outcome;
use crate::report::plain_table;
use crate::units::{bytes, number};

/// From when on a device is said not to answer, as in the server's log.
const STALLED_SECONDS: u64 = 30;

/// Options of `entresol volume stat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Counts are those since the cache was opened: a cache that no server has open tells only its usage.

Examples:
  entresol volume stat --cache /ssd/cache
  entresol volume stat vm1 --cache /ssd/cache --json
  entresol volume stat --cache /ssd/cache --prometheus")]
pub(crate) struct StatArgs {
    /// The volume [default: all]
    name: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print one JSON object
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print metrics as Prometheus reads them
    #[arg(long)]
    prometheus: bool,
}

/// Prints them.
pub(crate) fn run(args: &StatArgs) -> Outcome<()> {
    let mut reached = Reached::new(&args.cache)?;
    let figures = reached.statistics();
    reached.leave()?;
    let mut figures = figures?;
    if let Some(name) = &args.name {
        keep_only(&mut figures, name)?;
    }
    if args.json {
        println!("{figures}");
    } else if args.prometheus {
        print!("{}", entresol_nbd::metrics(&figures));
    } else {
        print(&figures);
    }
    Ok(())
}

/// Leaves one volume of all.
fn keep_only(figures: &mut Value, name: &str) -> Outcome<()> {
    let mut names = Vec::new();
    for list in ["volumes", "absent"] {
        if let Some(list) = figures[list].as_array_mut() {
            names.extend(list.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())));
            list.retain(|one| one["name"] == name);
        }
    }
    if names.iter().any(|known| known == name) { Ok(()) } else { Err(unknown(name, &names)) }
}

fn print(figures: &Value) {
    let cache = &figures["cache"];
    let size = |key: &str| bytes(cache[key].as_f64().unwrap_or_default());
    println!(
        "cache {}: {} of {} in use, index {}",
        text(&cache["device"]),
        size("live_bytes"),
        size("capacity_bytes"),
        size("index_bytes"),
    );
    if let Some(failure) = cache["failed"].as_str() {
        println!("the cache FAILED, volumes go on without it: {failure}");
    }
    for stall in stalls(figures) {
        println!("{stall}");
    }
    let block = cache["block_bytes"].as_f64().unwrap_or(4096.0);
    let room = cache["capacity_bytes"].as_f64().unwrap_or_default() / block;
    let free = room - cache["live_bytes"].as_f64().unwrap_or_default() / block;
    for volume in figures["volumes"].as_array().into_iter().flatten() {
        println!(
            "\nvolume {} ({}), {} of {}",
            text(&volume["name"]),
            text(&volume["mode"]),
            bytes(volume["bytes"].as_f64().unwrap_or_default()),
            text(&volume["backing"]),
        );
        print_volume(volume, (room, free.max(0.0)));
    }
    for absent in figures["absent"].as_array().into_iter().flatten() {
        println!("\nvolume {} is ABSENT: {}", text(&absent["name"]), text(&absent["error"]));
    }
}

/// What there is to say of devices that do not answer.
fn stalls(figures: &Value) -> Vec<String> {
    let volumes = figures["volumes"].as_array().into_iter().flatten();
    let backings = volumes.map(|volume| (volume, &volume["backing"]));
    let all = [(&figures["cache"], &figures["cache"]["device"])].into_iter().chain(backings);
    let stalled = all.filter_map(|(of, device)| {
        let seconds = of["oldest_pending_io_seconds"].as_u64()?;
        (seconds >= STALLED_SECONDS).then(|| {
            format!("{} does NOT ANSWER: oldest I/O pending for {seconds} s", text(device))
        })
    });
    stalled.collect()
}

/// Rows of a section: what they are called, where their figure stands, and of which figure they
/// are a part.
type Rows<'a> = &'a [(&'a str, &'a str, &'a str)];

const USAGE: Rows<'_> = &[
    ("Occupancy", "occupancy", "room"),
    ("Free", "free", "room"),
    ("Clean", "clean", "occupancy"),
    ("Dirty", "dirty", "occupancy"),
];

const REQUESTS: Rows<'_> = &[
    ("Read hits", "read_hits", "total"),
    ("Read partial misses", "read_partial_misses", "total"),
    ("Read full misses", "read_full_misses", "total"),
    ("Read total", "reads", "total"),
    ("Write hits", "write_hits", "total"),
    ("Write partial misses", "write_partial_misses", "total"),
    ("Write full misses", "write_full_misses", "total"),
    ("Write total", "writes", "total"),
    ("Pass-through reads", "pass_through_reads", "total"),
    ("Pass-through writes", "pass_through_writes", "total"),
    ("Serviced requests", "serviced", "total"),
    ("Total requests", "total", "total"),
];

const BLOCKS: Rows<'_> = &[
    ("Reads from backing", "from_backing", "backing"),
    ("Writes to backing", "to_backing", "backing"),
    ("Total to/from backing", "backing", "backing"),
    ("Read hits from cache", "read_hit", "read"),
    ("Insertions into cache", "insertions", ""),
    ("Written back", "cleaned", "to_backing"),
    ("Reads to clients", "to_clients", "clients"),
    ("Writes from clients", "from_clients", "clients"),
    ("Total to/from clients", "clients", "clients"),
];

const ERRORS: Rows<'_> = &[
    ("Cache read errors", "cache_reads", "total"),
    ("Cache write errors", "cache_writes", "total"),
    ("Backing read errors", "backing_reads", "total"),
    ("Backing write errors", "backing_writes", "total"),
    ("Total errors", "total", "total"),
];

fn print_volume(volume: &Value, (room, free): (f64, f64)) {
    let of = |section: &str, key: &str| volume[section][key].as_f64().unwrap_or_default();
    let usage = |key: &str| match key {
        "room" => room,
        "free" => free.floor(),
        key => of("usage", key),
    };
    let blocks = |key: &str| match key {
        "backing" => of("blocks", "from_backing") + of("blocks", "to_backing"),
        "clients" => of("blocks", "to_clients") + of("blocks", "from_clients"),
        key => of("blocks", key),
    };
    let errors = |key: &str| match key {
        "total" => ["cache_reads", "cache_writes", "backing_reads", "backing_writes"]
            .iter()
            .map(|key| of("errors", key))
            .sum(),
        key => of("errors", key),
    };
    section("Usage", "4 KiB blocks", USAGE, &usage);
    section("Requests", "count", REQUESTS, &|key| of("requests", key));
    section("Blocks", "4 KiB blocks", BLOCKS, &blocks);
    section("Errors", "count", ERRORS, &errors);
    if let Some(error) = volume["errors"]["write_back"].as_str() {
        println!("writing back FAILS: {error}");
    }
}

fn section(title: &str, unit: &str, rows: Rows<'_>, figure: &dyn Fn(&str) -> f64) {
    let mut table = plain_table(&[title, unit, "%"]);
    for (name, key, whole) in rows {
        let (value, whole) = (figure(key), if whole.is_empty() { 0.0 } else { figure(whole) });
        let share = match whole > 0.0 {
            true => format!("{:.1}", value / whole * 100.0),
            false if *name == "Insertions into cache" => String::new(),
            false => "0.0".to_owned(),
        };
        table.add_row([(*name).to_owned(), number(value), share]);
    }
    println!("{table}");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn devices_that_do_not_answer_are_named() {
        let figures = json!({
            "cache": {"device": "/ssd/cache", "oldest_pending_io_seconds": 29},
            "volumes": [
                {"name": "a", "backing": "/hdd/a.img", "oldest_pending_io_seconds": 95},
                {"name": "b", "backing": "/hdd/b.img"},
            ],
        });
        let said = "/hdd/a.img does NOT ANSWER: oldest I/O pending for 95 s";
        assert_eq!(stalls(&figures), [said]);
    }
}
