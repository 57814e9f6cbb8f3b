//! `synced`: puts that survive power loss, many writers sharing a sync against one alone.

use std::time::Duration;

use entresol_tier::{Durability, PutOptions};
use entresol_workload::{Distribution, Mix};
use serde_json::json;

use super::driver::{Job, Shared, Tally, Until};
use super::rounds::{Counted, head};
use super::setup::{Setup, Subject};
use crate::failure::Outcome;
use crate::report::{Report, latency_us, median, rounded};

/// Rounds of durable puts with `--in-flight` writers and with one, by turns.
pub(crate) fn synced(setup: &Setup) -> Outcome<Report> {
    let setup = &Setup { durability: Durability::Synced, ..setup.clone() };
    let subject = Subject::open(setup, Some(0))?;
    let shared = Shared::new(setup.keys);
    let filling = Setup { durability: Durability::Memory, in_flight: 128, ..setup.clone() };
    let fill = Job {
        put: PutOptions { durability: Some(Durability::Memory), ..PutOptions::default() },
        ..filling.fill_job(0..setup.keys)
    };
    subject.drive(&filling, &fill, &shared)?.sound()?;
    let mut report = head("synced", setup);
    let half = setup.round_time().max(Duration::from_millis(300)) / 2;
    let alone = Setup { in_flight: 1, threads: 1, ..setup.clone() };
    let mut many_rounds = Vec::new();
    let mut one_rounds = Vec::new();
    let mut counted = Counted::default();
    let mut syncs = 0;
    for round in 0..setup.rounds as u64 {
        let before = subject.statistics();
        many_rounds.push(puts(setup, &subject, &shared, (half, round * 2))?);
        let after = subject.statistics();
        counted.add(&Counted::of(&before).until(&after));
        syncs += after.device_syncs - before.device_syncs;
        one_rounds.push(puts(&alone, &subject, &shared, (half, round * 2 + 1))?);
    }
    let rate = |rounds: &[Tally]| median(&rounds.iter().map(Tally::per_second).collect::<Vec<_>>());
    let mut many = Tally::default();
    many_rounds.iter().for_each(|tally| many.merge(tally));
    let mut one = Tally::default();
    one_rounds.iter().for_each(|tally| one.merge(tally));
    report.figure("ops_per_second", rate(&many_rounds));
    report.figure("cpu_us_per_op", many.cpu_us_per_op());
    report.set("latency_us", latency_us(&many.writes.summary()));
    report.set(
        "one_writer",
        json!({
            "ops_per_second": rounded(rate(&one_rounds)),
            "cpu_us_per_op": rounded(one.cpu_us_per_op()),
            "latency_us": latency_us(&one.writes.summary()),
        }),
    );
    report.figure("over_one_writer", rate(&many_rounds) / rate(&one_rounds).max(1e-9));
    report.figure("puts_per_sync", many.operations() as f64 / syncs.max(1) as f64);
    report.figure("write_amplification", counted.write_amplification());
    Ok(report)
}

fn puts(
    setup: &Setup,
    subject: &Subject,
    shared: &Shared,
    (time, seed): (Duration, u64),
) -> Outcome<Tally> {
    let job = setup.job(Mix::updating(0, Distribution::Uniform), Until::Elapsed(time));
    let put = PutOptions { durability: Some(Durability::Synced), ..PutOptions::default() };
    subject.drive(setup, &Job { seed, put, ..job }, shared)?.sound()
}
