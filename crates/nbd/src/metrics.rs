//! The figures of a cache, its volumes and their server as metrics, by OpenMetrics.
//!
//! They are made of the report that `stat` gives, so that both say the same. A figure that the
//! report lacks, as all of the server's do if none has the cache open, is left out. What the
//! report counts in blocks becomes bytes. `docs/guides/monitoring.md` has a row for each.

mod table;

use entresol_host::{Histogram, Metrics, Series};
use serde_json::Value;

use table::{Figure, Labels, OF_ALL, OF_VOLUMES, Row};

/// What `/metrics` shows: the process beside the report.
pub(crate) fn page(report: &Value) -> String {
    let mut metrics = Metrics::of_process(env!("CARGO_PKG_VERSION"));
    add(&mut metrics, report);
    metrics.text()
}

/// The figures of a report, without those of a process: whoever prints them is not who counted.
pub fn metrics(report: &Value) -> String {
    let mut metrics = Metrics::default();
    add(&mut metrics, report);
    metrics.text()
}

fn add(metrics: &mut Metrics, report: &Value) {
    let block_bytes = number(report, "cache.block_bytes");
    for Row { name, help, figures } in OF_ALL {
        let series = figures.iter().filter_map(|figure| figure.read(report, block_bytes));
        metrics.family(name, help, series);
    }
    let volumes = || named(report, "volumes");
    for Row { name, help, figures } in OF_VOLUMES {
        let series = volumes().flat_map(|(volume, value)| {
            let series = figures.iter().filter_map(move |figure| figure.read(value, block_bytes));
            series.map(move |series| series.labelled("volume", volume))
        });
        metrics.family(name, help, series);
    }
    metrics.family(
        "entresol_volume_info",
        "The mode of each volume.",
        volumes().filter_map(|(volume, value)| {
            let series = Series::of(1_u64).labelled("volume", volume);
            Some(series.labelled("mode", value.get("mode")?.as_str()?))
        }),
    );
    metrics.family(
        "entresol_volume_absent_log_entries",
        "Entries in the log of a volume whose backing could not be opened.",
        named(report, "absent").filter_map(|(volume, value)| {
            Some(Series::of(number(value, "log_entries")?).labelled("volume", volume))
        }),
    );
    of_exports(metrics, report);
    of_commands(metrics, report);
}

/// How many volumes there are, also where there is none to label with its name.
fn of_exports(metrics: &mut Metrics, report: &Value) {
    let states = [("served", "volumes"), ("absent", "absent")];
    metrics.family(
        "entresol_volume_exports",
        "Volumes that are exported, and those whose backing could not be opened.",
        states.into_iter().filter_map(|(state, list)| {
            let count = report.get(list)?.as_array()?.len() as u64;
            Some(Series::of(count).labelled("state", state))
        }),
    );
}

/// What clients ask the server for.
fn of_commands(metrics: &mut Metrics, report: &Value) {
    let by_command = |path: &str| {
        let counts = find(report, path).and_then(Value::as_object).into_iter().flatten();
        counts.filter_map(|(command, count)| {
            Some(Series::of(count.as_u64()?).labelled("command", command.as_str()))
        })
    };
    metrics.family(
        "entresol_volume_commands_total",
        "Commands of clients.",
        by_command("server.requests"),
    );
    metrics.family(
        "entresol_volume_asked_bytes_total",
        "Bytes that commands of clients named.",
        by_command("server.asked_bytes"),
    );
    metrics.family(
        "entresol_volume_request_latency_seconds",
        "From the moment a request was read to the volume's answer.",
        find(report, "server.latency_us").and_then(latency).map(Series::of),
    );
}

fn latency(figures: &Value) -> Option<Histogram> {
    let count = number(figures, "n")?;
    let mean = figures.get("mean")?.as_f64()?;
    let bounds = figures.get("up_to")?.as_object()?.iter();
    let up_to = bounds.map(|(bound, count)| {
        let bound = bound.parse::<f64>().ok()?;
        Some((bound / 1e6, count.as_u64()?))
    });
    Some(Histogram { up_to: up_to.collect::<Option<_>>()?, count, sum: mean / 1e6 * count as f64 })
}

/// The elements of a list that have names.
fn named<'a>(report: &'a Value, list: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let all = report.get(list).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|one| Some((one.get("name")?.as_str()?, one)))
}

impl Figure {
    fn read(&self, report: &Value, block_bytes: Option<u64>) -> Option<Series> {
        const NO_LABELS: Labels = &[];
        let (number, labels) = match self {
            Figure::Number(path, labels) => (number(report, path)?, labels),
            Figure::Blocks(path, labels) => (number(report, path)? * block_bytes?, labels),
            Figure::Others(all, some, labels) => {
                (number(report, all)?.saturating_sub(number(report, some)?), labels)
            }
            Figure::OtherBlocks(all, some, labels) => {
                let others = number(report, all)?.saturating_sub(number(report, some)?);
                (others * block_bytes?, labels)
            }
            Figure::IsSaid(path) => (u64::from(!find(report, path)?.is_null()), &NO_LABELS),
        };
        let series = Series::of(number);
        Some(labels.iter().fold(series, |series, (label, value)| series.labelled(label, *value)))
    }
}

fn number(report: &Value, path: &str) -> Option<u64> {
    find(report, path)?.as_u64()
}

fn find<'a>(report: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(report, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_becomes_metrics_with_the_names_of_volumes_as_labels() {
        let report = json!({
            "cache": {"block_bytes": 4096, "segments": 5, "segments_free": 2, "failed": null},
            "volumes": [
                {"name": "a\"b", "mode": "wb", "blocks": {"to_clients": 1}},
                {"name": "c", "mode": "wt", "blocks": {"to_clients": 2}},
            ],
            "absent": [],
        });
        let expected = "\
# HELP entresol_volume_cache_segments Segments of the cache.
# TYPE entresol_volume_cache_segments gauge
entresol_volume_cache_segments{state=\"free\"} 2
entresol_volume_cache_segments{state=\"used\"} 3
# HELP entresol_volume_cache_failed 1: the cache is no longer used.
# TYPE entresol_volume_cache_failed gauge
entresol_volume_cache_failed 0
# HELP entresol_volume_client_bytes Bytes of clients' reads and writes, in whole blocks.
# TYPE entresol_volume_client_bytes counter
# UNIT entresol_volume_client_bytes bytes
entresol_volume_client_bytes_total{request=\"read\",volume=\"a\\\"b\"} 4096
entresol_volume_client_bytes_total{request=\"read\",volume=\"c\"} 8192
# HELP entresol_volume_info The mode of each volume.
# TYPE entresol_volume_info gauge
entresol_volume_info{volume=\"a\\\"b\",mode=\"wb\"} 1
entresol_volume_info{volume=\"c\",mode=\"wt\"} 1
# HELP entresol_volume_exports Volumes that are exported, and those whose backing could not be \
opened.
# TYPE entresol_volume_exports gauge
entresol_volume_exports{state=\"served\"} 2
entresol_volume_exports{state=\"absent\"} 0
# EOF
";
        assert_eq!(metrics(&report), expected);
    }

    #[test]
    fn latencies_of_requests_become_a_histogram_in_seconds() {
        let mut figures = crate::figures::Figures::default();
        figures.answered(None, 40_000);
        figures.answered(None, 2_000_000);
        let text = metrics(&json!({"server": figures.json()}));
        let name = "entresol_volume_request_latency_seconds";
        for end in [
            "_bucket{le=\"0.000025\"} 0",
            "_bucket{le=\"0.00005\"} 1",
            "_bucket{le=\"0.0025\"} 2",
            "_bucket{le=\"+Inf\"} 2",
            "_count 2",
        ] {
            let line = format!("{name}{end}");
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }
}
