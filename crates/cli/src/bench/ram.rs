//! `ram-per-record`: the memory that each record on flash costs.
//!
//! The figure is the slope of the process's resident memory between two data sizes, so that it
//! leaves out fixed parts (buffers, cache, code) and includes all that grow (allocator, page tables
//! of the index, notes). The worst point along the way is reported beside it.

use entresol_tier::SpaceId;
use entresol_workload::{Distribution, Mix};
use serde_json::json;

use super::driver::{Shared, Until};
use super::rounds::{describe_store, head};
use super::setup::{Setup, Subject};
use crate::failure::Outcome;
use crate::meter;
use crate::report::{Report, rounded};

/// Fills in steps of a twenty-fifth of the keys; the slope is from a fifth of them to all.
pub(crate) fn per_record(setup: &Setup, verify_all: bool) -> Outcome<Report> {
    const STEPS: u64 = 25;
    const CACHE_BYTES: u64 = 8 << 20;
    let subject = Subject::open(setup, Some(CACHE_BYTES))?;
    let shared = Shared::new(setup.keys);
    let mut points = Vec::new();
    for step in 0..STEPS {
        let at = |s: u64| setup.keys * s / STEPS;
        let keys = at(step)..at(step + 1);
        subject.fill(setup, &shared, keys.clone())?;
        if step == 0 {
            touch_what_is_fixed(setup, &subject, &shared, keys.end)?;
        }
        let (resident, _) = meter::resident_bytes("self");
        points.push(Point {
            entries: keys.end as f64,
            resident: resident as f64,
            index: subject.statistics().index_bytes as f64,
        });
    }
    let mut report = head("ram-per-record", setup);
    describe(&mut report, &points);
    let sample = if verify_all { setup.keys } else { setup.keys.min(1_000_000) };
    let distribution = if verify_all { Distribution::Sequential } else { Distribution::Uniform };
    let one_thread = Setup { threads: 1, distribution: None, ..setup.clone() };
    let job = one_thread.fast_job(Mix::gets(distribution), Until::Operations(sample));
    let tally = subject.drive(&one_thread, &job, &shared)?.sound()?;
    let statistics = subject.statistics();
    let count = subject.store().map_or(0, |s| s.engine.tiered.count(SpaceId(0)));
    report.set("entries", count);
    report.set("keys_read_back", tally.operations());
    // The count follows once the store has looked behind the last tag collisions.
    report.set("entries_not_yet_counted", setup.keys.saturating_sub(count));
    report.set("lost_keys", tally.misses);
    report.set("tag_collisions", statistics.collisions_get + statistics.collisions_put);
    describe_store(&mut report, &statistics);
    Ok(report)
}

/// Reads until the cache and the read buffers are in memory, so that they don't count as growth.
fn touch_what_is_fixed(
    setup: &Setup,
    subject: &Subject,
    shared: &Shared,
    keys: u64,
) -> Outcome<()> {
    let some = Setup { keys, ..setup.clone() };
    let job = some.fast_job(Mix::gets(Distribution::Uniform), Until::Operations(keys.min(400_000)));
    subject.drive(&some, &job, shared)?.sound()?;
    Ok(())
}

struct Point {
    entries: f64,
    resident: f64,
    index: f64,
}

fn describe(report: &mut Report, points: &[Point]) {
    let (Some(first), Some(last)) = (points.get(points.len() / 5 - 1), points.last()) else {
        return;
    };
    let slope = (last.resident - first.resident) / (last.entries - first.entries);
    // What does not grow: resident memory at the first point less the index that it held.
    let fixed = first.resident - first.index;
    let worst = points
        .iter()
        .filter(|p| p.entries >= first.entries)
        .map(|p| (p.resident - fixed) / p.entries)
        .fold(0.0, f64::max);
    let index_worst = points
        .iter()
        .filter(|p| p.entries >= first.entries)
        .map(|p| p.index / p.entries)
        .fold(0.0, f64::max);
    report.figure("bytes_per_record", slope);
    report.figure("worst_bytes_per_record", worst);
    report.figure("worst_index_bytes_per_record", index_worst);
    report.set("from_entries", first.entries);
    report.set("to_entries", last.entries);
    report.figure("resident_bytes", last.resident);
    let rows: Vec<_> = points
        .iter()
        .map(|p| {
            json!({
                "entries": p.entries,
                "resident_bytes": p.resident,
                "index_bytes_per_record": rounded(p.index / p.entries),
            })
        })
        .collect();
    report.set("points", rows);
}
