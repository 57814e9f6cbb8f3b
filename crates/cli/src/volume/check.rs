//! `entresol volume check`: reads every cached block of a stopped cache, and compares the clean
//! blocks with their backing.

use clap::Args;
use entresol_device::Force;
use entresol_volume::{Cache, CheckReport, VolumeInfo, Volumes};
use serde_json::{Value, json};

use super::cache::{CacheArgs, now};
use super::reach::{find, refuse_served};
use crate::failure::{Failure, Outcome};
use crate::progress;
use crate::report::plain_table;
use crate::units::number;

/// Bytes of a block.
const BLOCK_BYTES: u64 = 4096;

/// Options of `entresol volume check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status 1: clean blocks differ from the backing, or dirty ones cannot be read. Clean blocks that
cannot be read are counted, and are read from the backing when they are asked for.

Examples:
  entresol volume check --cache /ssd/cache
  entresol volume check vm1 --cache /ssd/cache --json")]
pub(crate) struct CheckArgs {
    /// The volume [default: all]
    name: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Checks.
pub(crate) fn run(args: &CheckArgs) -> Outcome<()> {
    refuse_served(&args.cache)?;
    let mut cache = args.cache.open(None, Force::No)?;
    let checked = check(&mut cache, args);
    let closed = cache.close(now()).map_err(Failure::from);
    let (reports, absent) = checked?;
    closed?;
    print(&reports, &absent, args);
    for (name, report) in &reports {
        let first = |blocks: &[u64]| blocks.first().map_or(0, |block| block * BLOCK_BYTES);
        if !report.lost.is_empty() {
            return Err(Failure::Failed(format!(
                "volume {name}: {} dirty blocks cannot be read, so what was written there is lost; \
                 the first is at offset {}",
                report.lost.len(),
                first(&report.lost)
            )));
        }
        if !report.wrong.is_empty() {
            return Err(Failure::Failed(format!(
                "volume {name}: {} clean blocks differ from the backing: somebody wrote to it \
                 behind the cache; the first is at offset {}",
                report.wrong.len(),
                first(&report.wrong)
            )));
        }
    }
    if absent.is_empty() { Ok(()) } else { Err(Failure::Failed(absent.join("; "))) }
}

type Checked = (Vec<(String, CheckReport)>, Vec<String>);

fn check(cache: &mut Cache, args: &CheckArgs) -> Outcome<Checked> {
    let mut wanted = cache.list();
    let mut absent: Vec<String> = Vec::new();
    match &args.name {
        Some(name) => {
            let id = find(cache, name)?;
            wanted.retain(|volume| volume.id == id);
        }
        None => absent.extend(
            cache.absent().iter().map(|(name, error)| format!("volume {name} is absent: {error}")),
        ),
    }
    let mut reports = Vec::new();
    for VolumeInfo { id, name, bytes, .. } in wanted {
        let bar = progress::bar(&format!("checking {name}"), bytes.div_ceil(BLOCK_BYTES));
        let report = cache.check(id, now(), &mut |done, _| bar.set_position(done));
        bar.finish_and_clear();
        reports.push((name, report?));
    }
    Ok((reports, absent))
}

fn print(reports: &[(String, CheckReport)], absent: &[String], args: &CheckArgs) {
    let counts = |report: &CheckReport| {
        [
            ("clean", report.clean),
            ("dirty", report.dirty),
            ("wrong", report.wrong.len() as u64),
            ("unreadable", report.unreadable),
            ("lost", report.lost.len() as u64),
        ]
    };
    if args.json {
        let one = |(name, report): &(String, CheckReport)| {
            let mut value = json!({"name": name, "blocks": report.blocks});
            counts(report).into_iter().for_each(|(key, count)| value[key] = json!(count));
            let first = report.lost.iter().chain(&report.wrong).next();
            value["first_offset"] = json!(first.map(|block| block * BLOCK_BYTES));
            value
        };
        let volumes: Vec<Value> = reports.iter().map(one).collect();
        println!("{}", json!({"volumes": volumes, "absent": absent}));
        return;
    }
    let mut table = plain_table(&["volume", "clean", "dirty", "wrong", "unreadable", "lost"]);
    for (name, report) in reports {
        let counts = counts(report).map(|(_, count)| number(count as f64));
        table.add_row([name.clone()].into_iter().chain(counts));
    }
    println!("{table}");
}
