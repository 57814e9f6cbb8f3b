//! One report: counts since the beginning of the test, by histogram.

use super::finding;
use super::header::Position;
use crate::buckets::Buckets;
use crate::config::Finding;

/// A report of a log.
#[derive(Debug, Clone)]
pub struct Report {
    /// Seconds since the begin of the test.
    pub seconds: u64,
    /// Its line in the log.
    pub line: usize,
    /// In the order of the log's names; `None`: it is missing, which is one of the faults.
    pub histograms: Vec<Option<LogHistogram>>,
    /// Why its counts are not to be trusted; none: they are sound.
    pub faults: Vec<Finding>,
}

/// Counts since the begin of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHistogram {
    /// As its title says.
    pub total: u64,
    /// By latency.
    pub buckets: Buckets,
}

/// Iterates over the reports of a log.
#[derive(Debug, Clone)]
pub struct Reports<'a> {
    text: &'a str,
    next: Position,
    names: Vec<String>,
    has_old_titles: bool,
    /// What was said outside of reports: errors, and why a test ended. At most the first 1000.
    pub remarks: Vec<Finding>,
    /// All that was said of errors.
    pub said: Said,
}

/// What a log says of errors outside of its reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// Transfers that failed.
    pub failed: u64,
    /// Transfers that brought wrong contents.
    pub wrong: u64,
    /// Errors that the log counts and does not list.
    pub unlisted: u64,
    /// Whether the test stopped by itself.
    pub stopped: bool,
}

impl<'a> Reports<'a> {
    pub(super) fn new(
        text: &'a str,
        first: Position,
        names: Vec<String>,
        has_old_titles: bool,
    ) -> Self {
        // Threads may fail before the log has named the histograms; logs of old name none.
        let mut said = Said::default();
        text[..first.offset].lines().for_each(|line| said.add(line.trim_end()));
        Reports { text, next: first, names, has_old_titles, remarks: Vec::new(), said }
    }

    fn next_line(&mut self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.next.offset..];
        let line = rest.split_inclusive('\n').next()?;
        let number = self.next.line;
        self.next.offset += line.len();
        self.next.line += 1;
        Some((number, line))
    }
}

impl Iterator for Reports<'_> {
    type Item = Report;

    fn next(&mut self) -> Option<Report> {
        let (line, seconds) = loop {
            let (number, line) = self.next_line()?;
            if let Some(seconds) = seconds_of(line) {
                break (number, seconds);
            }
            let said = line.trim_end();
            self.said.add(said);
            if !said.is_empty() && self.remarks.len() < REMARKS_MAX {
                self.remarks.push(finding(number, said.to_owned()));
            }
        };
        let mut body = Body::new(self.names.len());
        let mut titles = OldTitles::default();
        let mut ended = false;
        while let Some((number, line)) = self.next_line() {
            let text = line.trim_end_matches(['\n', '\r']);
            if text.is_empty() && line.ends_with('\n') {
                ended = true;
                break;
            }
            if let Some((name, total)) = title(text) {
                let name = if self.has_old_titles { titles.name(name) } else { name.to_owned() };
                body.begin(self.names.iter().position(|one| *one == name), (number, &name, total));
            } else if !body.add(text) && !is_queue_line(text) {
                let sentence = format!("`{text}` stands inside the report after {seconds} sec");
                body.faults.push(finding(number, sentence));
            }
        }
        if !ended {
            let sentence = format!(
                "the log ends within the report after {seconds} sec; expected an empty line at its \
                 end"
            );
            body.faults.push(finding(self.next.line.saturating_sub(1), sentence));
        }
        Some(body.finish(seconds, line, &self.names))
    }
}

impl Said {
    fn add(&mut self, line: &str) {
        self.stopped |= line.contains("test stopped");
        let Some(error) = line.strip_prefix("ERROR: ") else { return };
        if FAILED_TRANSFER.iter().any(|words| error.starts_with(words)) {
            self.failed += 1;
        } else if error.starts_with("wrong contents") {
            self.wrong += 1;
        } else if let Some((count, "more errors are not listed")) = error.split_once(' ') {
            self.unlisted = self.unlisted.saturating_add(count.parse().unwrap_or(0));
        }
    }
}

/// How a transfer that failed is told of: by ACT since 5, and by ACT 3 and 4.
const FAILED_TRANSFER: [&str; 4] = ["reading", "writing", "seek & read", "seek & write"];

/// A log full of errors must not fill the memory.
const REMARKS_MAX: usize = 1000;

/// A report that is being read.
struct Body {
    histograms: Vec<Option<LogHistogram>>,
    current: Option<usize>,
    faults: Vec<Finding>,
}

impl Body {
    fn new(histograms: usize) -> Body {
        Body { histograms: vec![None; histograms], current: None, faults: Vec::new() }
    }

    /// Begins the histogram at `index`; the title is its line, name and total.
    fn begin(&mut self, index: Option<usize>, title: (usize, &str, u64)) {
        let (line, name, total) = title;
        self.current = index;
        let sentence = match index {
            None => format!("histogram `{name}` is none of those that the log names"),
            Some(index) if self.histograms[index].is_some() => {
                format!("histogram `{name}` is there twice in a report")
            }
            Some(index) => {
                self.histograms[index] = Some(LogHistogram { total, buckets: Buckets::new() });
                return;
            }
        };
        self.faults.push(finding(line, sentence));
    }

    /// Adds a line of buckets; false: it is none.
    fn add(&mut self, line: &str) -> bool {
        let Some(counts) = bucket_line(line) else { return false };
        let histogram = self.current.and_then(|index| self.histograms[index].as_mut());
        if let Some(histogram) = histogram {
            for (bucket, count) in counts {
                histogram.buckets.add(bucket, count);
            }
        }
        true
    }

    fn finish(mut self, seconds: u64, line: usize, names: &[String]) -> Report {
        for (histogram, name) in self.histograms.iter().zip(names) {
            let sentence = match histogram {
                None => format!("the report after {seconds} sec lacks histogram `{name}`"),
                Some(histogram) if histogram.total != histogram.buckets.total() => format!(
                    "the report after {seconds} sec says that `{name}` has {} in total, but its \
                     buckets hold {}",
                    histogram.total,
                    histogram.buckets.total()
                ),
                Some(_) => continue,
            };
            self.faults.push(finding(line, sentence));
        }
        Report { seconds, line, histograms: self.histograms, faults: self.faults }
    }
}

/// The names of a report of old, in the words of today.
pub(super) fn old_names<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut titles = OldTitles::default();
    let body = lines.take_while(|line| !line.trim_end().is_empty());
    body.filter_map(|line| title(line.trim_end())).map(|(name, _)| titles.name(name)).collect()
}

/// Titles of old logs: devices come after the kind of transfer that they belong to.
#[derive(Default)]
struct OldTitles {
    writes: bool,
}

impl OldTitles {
    fn name(&mut self, title: &str) -> String {
        let known = match title {
            "LARGE BLOCK READS" => "large-block-reads",
            "LARGE BLOCK WRITES" => "large-block-writes",
            "RAW READS" => "device-reads",
            "READS" => "reads",
            "RAW WRITES" => "device-writes",
            "WRITES" => "writes",
            device if device.starts_with('/') => {
                return format!("{device}-{}", if self.writes { "writes" } else { "reads" });
            }
            other => return other.to_owned(),
        };
        self.writes = known == "device-writes";
        known.to_owned()
    }
}

/// `after 5 sec:`, with a capital in old logs.
pub(super) fn seconds_of(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("after ").or_else(|| line.strip_prefix("After "))?;
    rest.trim_end().strip_suffix(" sec:")?.parse().ok()
}

/// `reads (200 total)`.
fn title(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.rsplit_once(" (")?;
    let total = rest.strip_suffix(" total)")?.parse().ok()?;
    Some((name.trim_end(), total))
}

/// ` (00: 0000000182) (03: 0000000008)`.
fn bucket_line(line: &str) -> Option<Vec<(usize, u64)>> {
    let inner = line.strip_prefix(" (")?.strip_suffix(')')?;
    let counts = inner.split(") (").map(|pair| {
        let (bucket, count) = pair.split_once(": ")?;
        let bucket = bucket.parse().ok().filter(|bucket| *bucket < Buckets::COUNT)?;
        Some((bucket, count.parse().ok()?))
    });
    counts.collect()
}

fn is_queue_line(line: &str) -> bool {
    line.starts_with("requests queued:") || line.starts_with("requests-queued:")
}
