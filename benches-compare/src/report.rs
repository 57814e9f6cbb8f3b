//! The comparison as tables and as JSON.
//!
//! Medians over the rounds. Rows where we lose, misses of caches and contestants that ended early
//! are printed like all others.

use std::fmt;

use serde::Serialize;

use crate::comparison::{Measured, Play};
use crate::contestant::{Entrant, Kind, Result};
use crate::plan::{Course, Phase, Plan};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    plan: Plan,
    plays: Vec<Play>,
    ratios: Vec<Ratio>,
    #[serde(skip)]
    rows: Vec<(&'static str, Kind)>,
}

/// Ours over a peer's.
#[derive(Debug, Serialize)]
struct Ratio {
    phase: Phase,
    peer: &'static str,
    /// Operations a second over operations a second.
    throughput: f64,
    /// The same without gets that found nothing: what a cache dropped is no work done.
    found: f64,
    /// Fraction of the device over fraction of the device: evens out a device that changes.
    fraction_of_device: f64,
    /// The peer's CPU an operation over ours.
    cpu: f64,
    /// Bytes written for each byte put, over the peer's.
    written: Option<f64>,
}

const OURS: &str = "entresol";

impl Report {
    /// The report of `plays`.
    pub fn new(plan: &Plan, entrants: &[Entrant], plays: Vec<Play>) -> Report {
        let rows = entrants.iter().map(|entrant| (entrant.name, entrant.kind)).collect();
        let mut report = Report { plan: plan.clone(), plays, ratios: Vec::new(), rows };
        report.ratios = report.ratios();
        report
    }

    /// All of it as JSON.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Whether no value came back wrong and ours, if it played, played to the end.
    pub fn is_sound(&self) -> bool {
        let wrong = self.plays.iter().any(|play| {
            let gets = play.phases.iter().filter(|phase| phase.figures.gets > 0);
            gets.into_iter().any(|phase| phase.figures.wrong > 0)
        });
        let lost = self.plays.iter().filter(|play| is_ours(play.name)).any(|play| {
            play.fault.is_some() || play.phases.iter().any(|phase| phase.figures.misses > 0)
        });
        !wrong && !lost
    }

    fn ratios(&self) -> Vec<Ratio> {
        let mut ratios = Vec::new();
        for phase in self.plan.course.shown() {
            for (peer, _) in self.rows.iter().filter(|(name, _)| !is_ours(name)) {
                let rate = |m: &Measured| m.ops_per_second;
                let found = |m: &Measured| m.figures.rate_found(self.plan.course);
                let fraction = |m: &Measured| m.fraction_of_device;
                let cpu = |m: &Measured| m.figures.cpu_us_per_op;
                let written = |m: &Measured| m.figures.write_amplification();
                let over = |value: &dyn Fn(&Measured) -> f64| {
                    Some(self.median(OURS, phase, value)? / self.median(peer, phase, value)?)
                };
                if let (Some(throughput), Some(found), Some(fraction_of_device), Some(cpu)) =
                    (over(&rate), over(&found), over(&fraction), over(&cpu))
                {
                    let cpu = 1.0 / cpu;
                    let written = over(&written).filter(|ratio| ratio.is_finite());
                    ratios.push(Ratio {
                        phase,
                        peer,
                        throughput,
                        found,
                        fraction_of_device,
                        cpu,
                        written,
                    });
                }
            }
        }
        ratios
    }

    fn measured(&self, name: &str, phase: Phase) -> impl Iterator<Item = &Measured> {
        let plays = self.plays.iter().filter(move |play| play.name == name);
        plays.flat_map(|play| &play.phases).filter(move |m| m.figures.phase == phase)
    }

    fn median(&self, name: &str, phase: Phase, value: &dyn Fn(&Measured) -> f64) -> Option<f64> {
        median(self.measured(name, phase).map(value).collect())
    }

    fn write_overview(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["", "kind"]);
        for phase in self.plan.course.shown() {
            table.head.push(format!("{} op/s (x device)", phase.name()));
        }
        table.head.extend(["RSS peak".into(), "cap".into()]);
        for (name, kind) in &self.rows {
            let mut row = vec![(*name).to_owned(), kind_name(*kind).to_owned()];
            for phase in self.plan.course.shown() {
                let rate = self.median(name, phase, &|m| m.ops_per_second);
                let fraction = self.median(name, phase, &|m| m.fraction_of_device);
                row.push(match (rate, fraction) {
                    (Some(rate), _) if phase == Phase::Synced => thousands(rate),
                    (Some(rate), Some(x)) => format!("{} ({x:.2})", thousands(rate)),
                    _ => "-".into(),
                });
            }
            let plays = self.plays.iter().filter(|play| play.name == *name);
            let last = plays.filter_map(|play| Some((play, play.phases.last()?))).next_back();
            row.push(last.map_or("-".into(), |(_, m)| mebibytes(m.figures.peak_rss_bytes)));
            row.push(last.map_or("-".into(), |(play, _)| {
                play.memory_bytes.map_or("none".into(), mebibytes)
            }));
            table.rows.push(row);
        }
        write!(f, "{table}")
    }

    fn write_phase(&self, f: &mut fmt::Formatter<'_>, phase: Phase) -> fmt::Result {
        let head = [
            "",
            "op/s",
            "x device",
            "CPU us/op",
            "get p50",
            "p99",
            "p99.9",
            "put p50",
            "p99",
            "misses",
            "wrong",
            "reads/op",
            "read B/op",
            "WA",
            "rest s",
        ];
        let mut table = Table::new(&head);
        for (name, _) in &self.rows {
            let of = |value: &dyn Fn(&Measured) -> f64| self.median(name, phase, value);
            let Some(rate) = of(&|m| m.ops_per_second) else { continue };
            let number = |value: &dyn Fn(&Measured) -> f64, digits: usize| {
                of(value).filter(|x| x.is_finite()).map_or("-".into(), |x| format!("{x:.digits$}"))
            };
            let seen = |count: u64, text: String| if count == 0 { "-".into() } else { text };
            let gets = self.measured(name, phase).map(|m| m.figures.gets).sum();
            let puts = self.measured(name, phase).map(|m| m.figures.puts).sum();
            let share = |m: &Measured| 100.0 * m.figures.misses as f64 / m.figures.gets as f64;
            let amplification = |m: &Measured| m.figures.write_amplification();
            let reads = |m: &Measured| {
                let reads = m.figures.device_reads.map_or(f64::NAN, |reads| reads as f64);
                reads / m.figures.operations as f64
            };
            let read = |m: &Measured| m.figures.read_bytes as f64 / m.figures.operations as f64;
            table.rows.push(vec![
                (*name).to_owned(),
                thousands(rate),
                number(&|m| m.fraction_of_device, 2),
                number(&|m| m.figures.cpu_us_per_op, 2),
                seen(gets, number(&|m| m.figures.get_us.p50, 0)),
                seen(gets, number(&|m| m.figures.get_us.p99, 0)),
                seen(gets, number(&|m| m.figures.get_us.p999, 0)),
                seen(puts, number(&|m| m.figures.put_us.p50, 0)),
                seen(puts, number(&|m| m.figures.put_us.p99, 0)),
                seen(gets, number(&share, 1) + " %"),
                number(&|m| m.figures.wrong as f64, 0),
                number(&reads, 2),
                number(&read, 0),
                seen(puts, number(&amplification, 2)),
                number(&|m| m.figures.quiesce_seconds, 1),
            ]);
        }
        let probes: Vec<f64> = self
            .rows
            .iter()
            .flat_map(|(name, _)| self.measured(name, phase).flat_map(|m| m.probe))
            .collect();
        let device = median(probes).map_or("-".into(), thousands);
        writeln!(f, "\n{} (device probe, median: {device}/s; latencies in us)", phase.title())?;
        write!(f, "{table}")
    }

    /// Operations a second of a queue's rounds: whether they get slower.
    fn write_queue(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan.course != Course::Queue {
            return Ok(());
        }
        writeln!(
            f,
            "\nqueue, operations a second of each round; last over first; CPU us, likewise"
        )?;
        for play in &self.plays {
            let rounds = || play.phases.iter().filter(|m| m.figures.phase == Phase::Queue);
            let list = |value: &dyn Fn(&Measured) -> f64, digits: usize| {
                let values: Vec<f64> = rounds().map(value).collect();
                let words: Vec<String> = values.iter().map(|v| format!("{v:.digits$}")).collect();
                let over = values.last().zip(values.first()).map_or(0.0, |(last, one)| last / one);
                format!("{}  ({over:.2})", words.join(" "))
            };
            writeln!(f, "{}, round {}: {}", play.name, play.round, list(&|m| m.ops_per_second, 0))?;
            writeln!(f, "    {}", list(&|m| m.figures.cpu_us_per_op, 1))?;
        }
        Ok(())
    }

    fn write_ratios(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "Entresol over",
            "phase",
            "op/s",
            "without misses",
            "by probe",
            "less CPU",
            "bytes written",
        ]);
        for ratio in &self.ratios {
            table.rows.push(vec![
                ratio.peer.to_owned(),
                ratio.phase.name().to_owned(),
                format!("{:.2}", ratio.throughput),
                format!("{:.2}", ratio.found),
                format!("{:.2}", ratio.fraction_of_device),
                format!("{:.1}", ratio.cpu),
                ratio.written.map_or("-".into(), |written| format!("{written:.2}")),
            ]);
        }
        writeln!(f)?;
        write!(f, "{table}")
    }

    fn write_notes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for play in &self.plays {
            let name = play.name;
            if let Some(fault) = &play.fault {
                writeln!(f, "{name}, round {}: ended early: {fault}", play.round)?;
            }
            let raised = play.memory_bytes.filter(|bytes| *bytes > self.plan.memory_bytes);
            if let Some(bytes) = raised {
                writeln!(f, "{name}: killed under the cap, played with {}", mebibytes(bytes))?;
            }
            for m in &play.phases {
                let figures = &m.figures;
                if figures.phase == Phase::Load && figures.operations < self.plan.keys {
                    let count = figures.operations;
                    writeln!(f, "{name}: load cut off by time after {count} records")?;
                }
                if let Some(rate) = figures.paced {
                    writeln!(f, "{name}: load held to {rate:.0}/s, so that it drops little")?;
                }
                if let Some(cpu) = figures.client_cpu_us_per_op {
                    let phase = figures.phase.name();
                    writeln!(f, "{name}, {phase}: the client used {cpu:.1} us CPU/op besides")?;
                }
            }
            writeln!(f, "{name}, round {}: opened in {:.2} s", play.round, play.open_seconds)?;
            if let Some(notes) = play.phases.last().map(|m| m.figures.notes.join(", "))
                && !notes.is_empty()
            {
                writeln!(f, "{name}: {notes}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        writeln!(
            f,
            "{} records of {} + {} B ({}), memory cap {}, own caches {}\n",
            plan.keys,
            crate::plan::KEY_BYTES,
            plan.value_bytes,
            mebibytes(plan.data_bytes()),
            mebibytes(plan.memory_bytes),
            mebibytes(plan.cache_bytes),
        )?;
        self.write_overview(f)?;
        for phase in self.plan.course.shown() {
            self.write_phase(f, phase)?;
        }
        self.write_queue(f)?;
        if !self.ratios.is_empty() {
            self.write_ratios(f)?;
        }
        writeln!(f)?;
        self.write_notes(f)
    }
}

/// Rows of words in columns that line up.
pub(crate) struct Table {
    head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|word| (*word).to_owned()).collect(), rows: Vec::new() }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max();
        for row in lines() {
            for (column, word) in row.iter().enumerate() {
                let width = width(column).unwrap_or(0);
                if column == 0 {
                    write!(f, "{word:<width$}")?;
                } else {
                    write!(f, "  {word:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Store => "store",
        Kind::Cache => "cache",
        Kind::Memory => "RAM",
        Kind::Nothing => "harness",
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

pub(crate) fn thousands(value: f64) -> String {
    if value >= 10_000.0 { format!("{:.1} K", value / 1000.0) } else { format!("{value:.0}") }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Whether it is Entresol, with whatever cache.
fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_middles() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["", "op/s"]);
        table.rows.push(vec!["lmdb".into(), "1".into()]);
        assert_eq!(table.to_string(), "      op/s\nlmdb     1\n");
    }
}
