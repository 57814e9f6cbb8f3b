//! The outcome of a load: sums over all intervals, their table, and whether the devices sustained
//! it.

use std::collections::BTreeSet;

use comfy_table::{Table, presets};
use entresol_certify::load::{Ending, Interval, Kind, Series, SeriesInterval, Trouble};

use super::tester;
use crate::failure::{Failure, Outcome};
use crate::units;

/// Sums of the series of all devices together.
#[derive(Debug)]
pub(crate) struct Sums {
    names: Vec<(usize, String)>,
    sums: Vec<SeriesInterval>,
    seconds: f64,
    troubles: Vec<String>,
    troubles_unlisted: u64,
}

/// Troubles that are shown.
const TROUBLES_MAX: usize = 10;

impl Sums {
    /// Nothing yet, of the series among `series` that are not of one device.
    pub(crate) fn of(series: &[Series]) -> Sums {
        let whole = series.iter().enumerate().filter(|(_, series)| series.device.is_none());
        let names: Vec<_> = whole.map(|(index, series)| (index, series.name.clone())).collect();
        let sums = vec![SeriesInterval::default(); names.len()];
        Sums { names, sums, seconds: 0.0, troubles: Vec::new(), troubles_unlisted: 0 }
    }

    /// Adds an interval.
    pub(crate) fn add(&mut self, interval: &Interval) {
        self.seconds = interval.end_seconds;
        for ((index, _), sum) in self.names.iter().zip(&mut self.sums) {
            let one = &interval.series[*index];
            sum.due += one.due;
            sum.errors += one.errors;
            sum.wrong += one.wrong;
            sum.bytes += one.bytes;
            sum.service.merge(&one.service);
            sum.response.merge(&one.response);
        }
    }

    /// Notes what went wrong; the first of them are shown at once.
    pub(crate) fn trouble(&mut self, trouble: &Trouble) {
        let text = match trouble {
            Trouble::Failed { text, .. } | Trouble::Wrong { text, .. } => text.clone(),
            Trouble::Lagged { kind, lag_ns } => lag_sentence(*kind, *lag_ns),
            Trouble::Unlisted { count } => {
                self.troubles_unlisted += count;
                return;
            }
        };
        if self.troubles.len() < TROUBLES_MAX {
            tester::tell(&format!("entresol: {text}"));
            self.troubles.push(text);
        } else {
            self.troubles_unlisted += 1;
        }
    }

    /// The sums, for people.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "",
            "per second",
            "of due",
            "errors",
            "wrong",
            "service p50",
            "p99",
            "max",
            "response p50",
            "p99",
            "max",
        ]);
        for ((_, name), sum) in self.names.iter().zip(&self.sums) {
            let (service, response) = (sum.service.summary(), sum.response.summary());
            let time = |ns: u64| units::seconds(ns as f64 / 1e9);
            let share = 100.0 * service.count as f64 / sum.due.max(1) as f64;
            table.add_row([
                name.clone(),
                units::number(service.count as f64 / self.seconds.max(1e-9)),
                format!("{share:.1} %"),
                sum.errors.to_string(),
                sum.wrong.to_string(),
                time(service.p50),
                time(service.p99),
                time(service.max),
                time(response.p50),
                time(response.p99),
                time(response.max),
            ]);
        }
        let mut text = format!("{table}\n");
        if self.troubles_unlisted > 0 {
            text.push_str(&format!("{} more errors are not listed\n", self.troubles_unlisted));
        }
        text
    }

    /// Whether the devices sustained the load; if not, why.
    pub(crate) fn judge(&self, ending: &Ending, shortfall_pct: f64) -> Outcome<()> {
        let mut reasons = BTreeSet::new();
        match ending {
            Ending::Completed | Ending::Interrupted => {}
            Ending::Lagged { kind, lag_ns } => {
                reasons.insert(lag_sentence(*kind, *lag_ns));
            }
            Ending::Broken(why) => {
                reasons.insert(why.clone());
            }
        }
        for ((_, name), sum) in self.names.iter().zip(&self.sums) {
            if sum.errors > 0 {
                reasons.insert(format!("{} {name} failed", sum.errors));
            }
            if sum.wrong > 0 {
                reasons.insert(format!("{} {name} brought wrong contents", sum.wrong));
            }
            let missing = sum.due.saturating_sub(sum.service.count() + sum.errors);
            let missing_pct = 100.0 * missing as f64 / sum.due.max(1) as f64;
            // A count may be off by one at either end, whatever the rate.
            if missing > 2 && missing_pct > shortfall_pct {
                let done = sum.service.count();
                reasons.insert(format!("{done} of {} {name} due were done", sum.due));
            }
        }
        if reasons.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> = reasons.into_iter().collect();
        Err(Failure::Failed(format!("the load was not sustained: {}", reasons.join("; "))))
    }
}

fn lag_sentence(kind: Kind, lag_ns: u64) -> String {
    let late = units::seconds(lag_ns as f64 / 1e9);
    format!("{} fell {late} behind their schedule", lagging(kind))
}

/// What falls behind.
pub(crate) fn lagging(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "reads",
        Kind::Write => "writes",
        Kind::LargeRead => "large-block reads",
        Kind::LargeWrite => "large-block writes",
        Kind::Raid => "the tomb raider's reads",
    }
}
