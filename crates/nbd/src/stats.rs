//! `/stats`: the report that administrators get, and after it what the console shows beside: sums
//! over volumes, and what was done in the latest second.

use entresol_host::ProcessFigures;
use entresol_page::{measured, percentiles};
use serde_json::{Map, Value, json};

use crate::history::{Sample, sum};

/// Counts of each volume that are added up.
const SECTIONS: [&str; 5] = ["usage", "requests", "backing_requests", "blocks", "errors"];
/// What says nothing when it is added up: a share of 0 is all.
const ALONE: [&str; 1] = ["share_bytes"];

/// What is known of a server at a moment.
#[derive(Debug)]
pub(crate) struct Moment {
    /// What administrators get.
    pub(crate) report: Value,
    /// What `/health` says.
    pub(crate) health: Value,
    /// What was done in the latest second.
    pub(crate) second: Sample,
    /// Seconds since the start.
    pub(crate) uptime_seconds: u64,
}

impl Moment {
    /// All figures.
    pub(crate) fn stats(self) -> Value {
        let total = totals(&self.report);
        let mut all = self.report;
        all["total"] = total;
        all["version"] = json!(env!("CARGO_PKG_VERSION"));
        all["uptime_seconds"] = json!(self.uptime_seconds);
        all["memory"] = json!({"resident_bytes": ProcessFigures::read().resident_bytes});
        all["health"] = self.health;
        all["second"] = second(&self.second);
        all
    }
}

fn totals(report: &Value) -> Value {
    let mut totals = Map::new();
    let volumes = report["volumes"].as_array();
    totals.insert("volumes".to_owned(), json!(volumes.map_or(0, Vec::len)));
    totals.insert("absent".to_owned(), json!(report["absent"].as_array().map_or(0, Vec::len)));
    // All volumes have the same counts.
    let first = volumes.and_then(|all| all.first());
    for section in SECTIONS {
        let counts = first.and_then(|volume| volume[section].as_object()).into_iter().flatten();
        let counts = counts.filter(|(key, count)| count.is_u64() && !ALONE.contains(&key.as_str()));
        let sums = counts.map(|(key, _)| (key.clone(), json!(sum(report, section, key))));
        totals.insert(section.to_owned(), sums.collect::<Map<String, Value>>().into());
    }
    totals.into()
}

fn second(sample: &Sample) -> Value {
    let rate = |value: f32| measured(value.into());
    let [reads, writes, _] = sample.requests.rates;
    let [hits, partial, full, around] = sample.reads;
    let [from_backing, to_backing, written_back] = sample.backing_bytes;
    let [received, sent] = sample.client_bytes;
    json!({
        "requests": measured(sample.requests.rate()),
        "reads": rate(reads),
        "writes": rate(writes),
        "read_hits": rate(hits),
        "read_partial_misses": rate(partial),
        "read_full_misses": rate(full),
        "pass_through_reads": rate(around),
        "from_backing_bytes": rate(from_backing),
        "to_backing_bytes": rate(to_backing),
        "written_back_bytes": rate(written_back),
        "received_bytes": rate(received),
        "sent_bytes": rate(sent),
        "read_us": percentiles(sample.requests.read_us),
        "write_us": percentiles(sample.requests.write_us),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sums_over_volumes_of_what_can_be_added() {
        let volume = |dirty: u64, error: Value| {
            json!({
                "name": "a", "usage": {"dirty": dirty, "share_bytes": 7},
                "errors": {"cache_reads": 1, "write_back": error},
            })
        };
        let volumes = [volume(2, json!(null)), volume(40, json!("broken"))];
        let report = json!({"volumes": volumes, "absent": [{}]});
        let expected = json!({
            "volumes": 2, "absent": 1, "usage": {"dirty": 42}, "requests": {},
            "backing_requests": {}, "blocks": {}, "errors": {"cache_reads": 2},
        });
        assert_eq!(totals(&report), expected);
        assert_eq!(totals(&json!({}))["volumes"], 0);
    }
}
