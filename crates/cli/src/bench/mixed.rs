//! `ycsb-a` … `ycsb-f`: the core workloads of the Yahoo! Cloud Serving Benchmark.

use entresol_workload::{Mix, YCSB};

use super::driver::{Shared, Until};
use super::reads::{fill_to_flash, warm_probe};
use super::rounds::{describe_store, head, interleave};
use super::setup::{Setup, Subject};
use crate::failure::Outcome;
use crate::report::Report;

/// Runs workload number `which` of YCSB.
pub(crate) fn ycsb(setup: &Setup, which: usize) -> Outcome<Report> {
    const CACHE_SHARE: f64 = 0.15;
    let mix: Mix = YCSB[which];
    // A scan waits, and needs a session with nothing else in flight.
    let in_flight = if mix.scans > 0 { 1 } else { setup.in_flight };
    let setup = &Setup { in_flight, ..setup.clone() };
    let data = setup.keys as f64 * (setup.sizes.mean() + 16.0);
    let cache = setup.memory.is_none().then_some((data * CACHE_SHARE) as u64);
    let subject = Subject::open(setup, cache)?;
    let shared = match subject.store() {
        Some(_) => Shared::with_room(setup.keys, setup.insert_room()),
        None => Shared::new(setup.keys),
    };
    fill_to_flash(setup, &subject, &shared)?;
    let probe = warm_probe(setup, &subject, &shared, mix)?;
    let mut report = head(mix.name, setup);
    report.set("distribution", setup.distribution.unwrap_or(mix.distribution).to_string());
    let job = setup.job(mix, Until::Elapsed(setup.round_time()));
    let rounds = interleave(setup, &subject, &shared, &job, probe.as_ref())?;
    rounds.describe(&mut report);
    let total = rounds.total();
    if mix.scans > 0 {
        report.set("entries_scanned", total.scanned);
    }
    report.set("lost_keys", total.misses);
    if shared.inserts.went_round() {
        report.note(
            "The store has no room for more new keys: those that were inserted first were put \
             again. A smaller --fill or a shorter run inserts new ones only.",
        );
    }
    if subject.store().is_some() {
        rounds.describe_engine(&mut report);
        report.figure("ops_over_device", rounds.fraction_of_device());
        describe_store(&mut report, &subject.statistics());
    }
    Ok(report)
}
