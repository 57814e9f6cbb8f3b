//! Metrics of a server, as Prometheus scrapes them.
//!
//! A scrape reads the figures where they are counted and lists them here, so nothing is counted
//! twice. The text is that of OpenMetrics 1.0, as the crate `prometheus-client` writes it.
//!
//! A name is written in full, as queries use it, and says what its metric is: a counter ends in
//! `_total`, and the unit stands before that. So a name and its type cannot differ. Labels without
//! a number (`_info`) are gauges of 1: programs that read the older format of Prometheus, such as
//! collectors of text files, know no type `info`, and all the rest they understand.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::process::{ProcessFigures, files_open_now, open_files};

/// The metrics of one scrape.
#[derive(Debug, Default)]
pub struct Metrics {
    families: Vec<Family>,
}

/// What one metric says, with all its labels.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    series: Vec<Series>,
}

/// One number of a metric, or one histogram, with its labels.
#[derive(Debug)]
pub struct Series {
    labels: Vec<(&'static str, String)>,
    reading: Reading,
}

/// What was read.
#[derive(Debug)]
pub enum Reading {
    /// A whole number.
    Whole(u64),
    /// Another number.
    Real(f64),
    /// A distribution.
    Histogram(Histogram),
}

/// A distribution by counts up to some bounds.
#[derive(Debug)]
pub struct Histogram {
    /// Bounds, ascending, and how many did not exceed each.
    pub up_to: Vec<(f64, u64)>,
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Metrics {
    /// What every server tells: its version, and what its process takes of the machine, by the
    /// names that Prometheus' own libraries use.
    pub fn of_process(version: &str) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.family(
            "entresol_build_info",
            "The version of Entresol.",
            [Series::of(1_u64).labelled("version", version)],
        );
        let process = ProcessFigures::read();
        metrics.one(
            "process_cpu_seconds_total",
            "Processor time of the process, in the program and in the system on its behalf.",
            process.user_seconds + process.system_seconds,
        );
        metrics.one(
            "process_resident_memory_bytes",
            "Memory of the process that is resident, its code included.",
            process.resident_bytes,
        );
        metrics.one(
            "process_virtual_memory_bytes",
            "Addresses that the process has mapped.",
            process.virtual_bytes,
        );
        metrics.one(
            "process_start_time_seconds",
            "When the process was started, in seconds since the Unix epoch.",
            process.start_seconds,
        );
        let files = [
            ("process_open_fds", "Files that the process has open.", files_open_now()),
            ("process_max_fds", "Files that the process may have open.", open_files()),
        ];
        for (name, help, number) in files {
            metrics.family(name, help, number.map(Series::of));
        }
        metrics
    }

    /// Adds a metric of one number.
    pub fn one(&mut self, name: &'static str, help: &'static str, reading: impl Into<Reading>) {
        self.family(name, help, [Series::of(reading)]);
    }

    /// Adds a metric of several series; none at all leaves the metric out.
    pub fn family(
        &mut self,
        name: &'static str,
        help: &'static str,
        series: impl IntoIterator<Item = Series>,
    ) {
        assert!(
            self.families.iter().all(|family| family.name != name),
            "{name} is added once, with all its series"
        );
        let series: Vec<Series> = series.into_iter().collect();
        if !series.is_empty() {
            self.families.push(Family { name, help, series });
        }
    }

    /// Their text.
    pub fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut out = String::new();
        text::encode(&mut out, &registry).expect("a string takes every text");
        out
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.families.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn kind(&self) -> MetricType {
        match self.series.first().map(|series| &series.reading) {
            Some(Reading::Histogram(_)) => MetricType::Histogram,
            _ if self.name.ends_with("_total") => MetricType::Counter,
            _ => MetricType::Gauge,
        }
    }

    /// The library puts the unit and the ending of a name after it, and so takes it without.
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = self.kind();
        let stem = match kind {
            MetricType::Counter => self.name.trim_end_matches("_total"),
            _ => self.name,
        };
        let unit = |name: &'static str, unit: Unit| {
            let stem = name.strip_suffix(unit.as_str())?.strip_suffix('_')?;
            Some((stem, unit))
        };
        let units = [Unit::Bytes, Unit::Seconds, Unit::Other("ratio".to_owned())];
        let (stem, unit) = match units.into_iter().find_map(|one| unit(stem, one)) {
            Some((stem, unit)) => (stem, Some(unit)),
            None => (stem, None),
        };
        let mut metric = encoder.encode_descriptor(stem, self.help, unit.as_ref(), kind)?;
        self.series.iter().try_for_each(|series| {
            series.reading.encode(kind, metric.encode_family(&series.labels)?)
        })
    }
}

impl Series {
    /// One that has no label.
    pub fn of(reading: impl Into<Reading>) -> Series {
        Series { labels: Vec::new(), reading: reading.into() }
    }

    /// The same with one label more.
    pub fn labelled(mut self, label: &'static str, value: impl Into<String>) -> Series {
        self.labels.push((label, value.into()));
        self
    }
}

impl Reading {
    fn encode(&self, kind: MetricType, mut metric: MetricEncoder<'_>) -> fmt::Result {
        match (self, kind) {
            (Reading::Whole(number), MetricType::Counter) => {
                metric.encode_counter::<NoLabelSet, u64, u64>(number, None)
            }
            (Reading::Real(number), MetricType::Counter) => {
                metric.encode_counter::<NoLabelSet, f64, u64>(number, None)
            }
            (Reading::Whole(number), _) => metric.encode_gauge(number),
            (Reading::Real(number), _) => metric.encode_gauge(number),
            (Reading::Histogram(histogram), _) => {
                let Histogram { count, sum, .. } = *histogram;
                metric.encode_histogram::<NoLabelSet>(sum, count, &histogram.buckets(), None)
            }
        }
    }
}

impl Histogram {
    /// How many are between each bound and the one before, as the library adds them up again.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let ends = self.up_to.iter().copied().chain([(f64::INFINITY, self.count)]);
        let mut before = 0;
        ends.map(|(bound, count)| {
            let between = count.saturating_sub(before);
            before = before.max(count);
            (bound, between)
        })
        .collect()
    }
}

impl From<u64> for Reading {
    fn from(number: u64) -> Reading {
        Reading::Whole(number)
    }
}

impl From<f64> for Reading {
    fn from(number: f64) -> Reading {
        Reading::Real(number)
    }
}

impl From<bool> for Reading {
    fn from(is_so: bool) -> Reading {
        Reading::Whole(u64::from(is_so))
    }
}

impl From<Histogram> for Reading {
    fn from(histogram: Histogram) -> Reading {
        Reading::Histogram(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_type_and_unit_and_stays_as_it_was_written() {
        let mut metrics = Metrics::default();
        metrics.one("a_read_bytes_total", "What was read.", 7_u64);
        metrics.one("a_share_ratio", "A share.", 0.5);
        metrics.one("a_is_well", "1: it is.", true);
        let series = Series::of(1_u64).labelled("name", "a\"b\\c\nd");
        metrics.family("a_thing_info", "A thing.", [series]);
        metrics.family("a_thing_that_is_not", "None.", []);
        let expected = "\
# HELP a_read_bytes What was read.
# TYPE a_read_bytes counter
# UNIT a_read_bytes bytes
a_read_bytes_total 7
# HELP a_share_ratio A share.
# TYPE a_share_ratio gauge
# UNIT a_share_ratio ratio
a_share_ratio 0.5
# HELP a_is_well 1: it is.
# TYPE a_is_well gauge
a_is_well 1
# HELP a_thing_info A thing.
# TYPE a_thing_info gauge
a_thing_info{name=\"a\\\"b\\\\c\\nd\"} 1
# EOF
";
        assert_eq!(metrics.text(), expected);
    }

    #[test]
    fn buckets_of_a_histogram_count_all_below_them() {
        let up_to = vec![(0.5, 2), (1.0, 2)];
        let mut metrics = Metrics::default();
        let histogram = Histogram { up_to, count: 5, sum: 9.5 };
        metrics.family("b_seconds", "Times.", [Series::of(histogram).labelled("of", "x")]);
        let text = metrics.text();
        for line in [
            "b_seconds_count{of=\"x\"} 5",
            "b_seconds_sum{of=\"x\"} 9.5",
            "b_seconds_bucket{le=\"0.5\",of=\"x\"} 2",
            "b_seconds_bucket{le=\"1.0\",of=\"x\"} 2",
            "b_seconds_bucket{le=\"+Inf\",of=\"x\"} 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn a_process_is_told_of_by_the_names_that_others_use() {
        let text = Metrics::of_process("1.2.3").text();
        assert!(text.contains("\nentresol_build_info{version=\"1.2.3\"} 1\n"), "{text}");
        let number = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(-1.0)
        };
        for name in [
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_start_time_seconds",
            "process_open_fds",
            "process_max_fds",
        ] {
            assert!(number(name) > 0.0, "{name} in\n{text}");
        }
        assert!(number("process_cpu_seconds_total") >= 0.0, "{text}");
        let resident = number("process_resident_memory_bytes");
        assert!(number("process_virtual_memory_bytes") >= resident, "{text}");
        // After 2020, so that it is no time since the machine's start.
        assert!(number("process_start_time_seconds") > 1_577_836_800.0, "{text}");
    }
}
