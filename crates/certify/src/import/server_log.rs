//! A server's log: dumps of the histograms of sizes, and the report of each device every 20
//! seconds.
//!
//! Counts only grow, so two dumps give a rate and the sizes between them. One dump gives sizes
//! alone. Falling counts show a restart of the server: earlier dumps do not count. A dump with
//! fewer lines than its title says was cut short, and is left out.

use std::collections::BTreeMap;

use super::{ImportError, Profile, Selection, short, the_only};
use crate::config::SizeHistogram;

/// Counts at a time.
#[derive(Debug, Clone, Default)]
struct Dump {
    line: usize,
    seconds: Option<i64>,
    /// What the title says there is, all told.
    total: u64,
    counts: Vec<u64>,
}

/// The first and the last of one run of the server, and one that is being read.
#[derive(Debug, Clone, Default)]
struct Span {
    first: Option<Dump>,
    last: Option<Dump>,
    open: Option<Dump>,
    /// The first that is cut short.
    cut: Option<usize>,
}

/// A counter with the server's own rate: mean of the rates of each device, summed over devices.
type Rates<'a> = BTreeMap<(&'a str, &'a str), Vec<f64>>;

/// More buckets than a server has.
const BUCKETS_MAX: usize = 64;

pub(super) fn import(text: &str, selection: &Selection) -> Result<Profile, ImportError> {
    let mut spans: BTreeMap<(&str, &str), Span> = BTreeMap::new();
    let mut rates: BTreeMap<&str, Rates<'_>> = BTreeMap::new();
    let mut current: Option<(&str, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some((namespace, name, total)) = dump_title(line) {
            let span = spans.entry((namespace, name)).or_default();
            span.close();
            let (line, seconds) = (index + 1, seconds_of(line));
            span.open = Some(Dump { line, seconds, total, counts: Vec::new() });
            current = Some((namespace, name));
        } else if let Some(counts) = bucket_counts(line) {
            let span = current.and_then(|key| spans.get_mut(&key));
            if let Some(span) = span {
                span.add(&counts);
            }
        } else if let Some((namespace, device, rest)) = device_line(line) {
            for name in ["write", "defrag-read", "direct-frees"] {
                if let Some(rate) = rate_of(rest, name) {
                    let rates = rates.entry(namespace).or_default();
                    rates.entry((name, device)).or_default().push(rate);
                }
            }
        }
    }
    spans.values_mut().for_each(Span::close);
    let mut namespaces: Vec<&str> = spans.keys().map(|(namespace, _)| *namespace).collect();
    namespaces.extend(rates.keys());
    namespaces.sort_unstable();
    namespaces.dedup();
    let namespace = the_only("namespace", selection.namespace.as_deref(), &namespaces)?;
    let mut whole = spans.iter().filter(|((of, _), span)| *of == namespace && span.last.is_none());
    if let Some(((_, name), span)) = whole.find(|(_, span)| span.cut.is_some()) {
        let problem = format!(
            "the dump of `{name}` is cut short: its lines hold less than its title says, and \
             there is no whole one"
        );
        return Err(ImportError { line: span.cut, problem });
    }
    let of_devices = rates.remove(namespace).unwrap_or_default();
    Ok(profile(namespace, &spans, &selected(of_devices, selection)?))
}

/// The rates of the devices that are selected, each of which has to be there if any are.
fn selected<'a>(mut rates: Rates<'a>, selection: &Selection) -> Result<Rates<'a>, ImportError> {
    let mut shown: Vec<&str> = rates.keys().map(|&(_, device)| short(device)).collect();
    shown.sort_unstable();
    shown.dedup();
    if selection.devices.is_empty() || shown.is_empty() {
        return Ok(rates);
    }
    let wanted = selection.devices.iter().map(|device| short(device));
    let wanted: Vec<&str> =
        wanted.map(|device| the_only("device", Some(device), &shown)).collect::<Result<_, _>>()?;
    rates.retain(|&(_, device), _| wanted.contains(&short(device)));
    Ok(rates)
}

fn profile(namespace: &str, spans: &BTreeMap<(&str, &str), Span>, rates: &Rates<'_>) -> Profile {
    let span = |name| spans.get(&(namespace, name));
    let sizes = |name| span(name).and_then(Span::sizes);
    let rate = |name| span(name).and_then(Span::rate);
    let of_devices = |name: &str| {
        let each: Vec<f64> = rates
            .iter()
            .filter(|((counter, _), _)| *counter == name)
            .map(|(_, rates)| rates.iter().sum::<f64>() / rates.len() as f64)
            .collect();
        (!each.is_empty()).then(|| each.iter().sum())
    };
    Profile {
        reads: rate("device-read-size").or_else(|| rate("read")),
        writes: rate("device-write-size").or_else(|| rate("write")),
        read_sizes: sizes("device-read-size"),
        write_sizes: sizes("device-write-size"),
        large_writes: of_devices("write"),
        defrag_reads: of_devices("defrag-read"),
        direct_frees: of_devices("direct-frees"),
        ..Profile::default()
    }
}

impl Span {
    /// Takes over the dump that was read.
    fn close(&mut self) {
        let Some(dump) = self.open.take() else { return };
        // A count may grow between the title and its line.
        let sum = dump.counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        if u128::from(sum) * 100 < u128::from(dump.total) * 99 {
            self.cut.get_or_insert(dump.line);
            return;
        }
        let fell = |last: &Dump| {
            let now = |bucket: usize| dump.counts.get(bucket).copied().unwrap_or(0);
            last.counts.iter().enumerate().any(|(bucket, count)| now(bucket) < *count)
        };
        match self.last.take() {
            // The server was started again.
            Some(last) if fell(&last) => self.first = None,
            Some(last) => {
                self.first.get_or_insert(last);
            }
            None => {}
        }
        self.last = Some(dump);
    }

    fn add(&mut self, counts: &[(usize, u64)]) {
        let Some(open) = &mut self.open else { return };
        for &(bucket, count) in counts {
            let filled = &mut open.counts;
            if bucket < BUCKETS_MAX {
                filled.resize(filled.len().max(bucket + 1), 0);
                filled[bucket] = filled[bucket].saturating_add(count);
            }
        }
    }

    /// What was counted between the dumps, or before the only one.
    fn grown(&self) -> Vec<u64> {
        let first = self.first.as_ref().map(|dump| dump.counts.as_slice()).unwrap_or_default();
        let before = |bucket: usize| first.get(bucket).copied().unwrap_or(0);
        let counts = self.last.iter().flat_map(|dump| &dump.counts).enumerate();
        counts.map(|(bucket, count)| count.saturating_sub(before(bucket))).collect()
    }

    fn sizes(&self) -> Option<SizeHistogram> {
        SizeHistogram::of_counts(&self.grown())
    }

    fn rate(&self) -> Option<f64> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let seconds = last.seconds?.checked_sub(first.seconds?)?;
        let grown = self.grown().iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        (seconds > 0).then(|| grown as f64 / seconds as f64)
    }
}

/// `… histogram dump: {ns}-device-read-size (N total) bytes`.
fn dump_title(line: &str) -> Option<(&str, &str, u64)> {
    let (_, rest) = line.split_once("histogram dump: {")?;
    let (namespace, rest) = rest.split_once("}-")?;
    let (name, rest) = rest.split_once(" (")?;
    let total = rest.split(' ').next()?.parse().ok()?;
    Some((namespace, name, total))
}

/// `… (00: 0000000182) (03: 0000000008)`, whatever stands before.
fn bucket_counts(line: &str) -> Option<Vec<(usize, u64)>> {
    let pairs = line.split(" (").skip(1).filter_map(|piece| {
        let (bucket, count) = piece.split_once(')')?.0.split_once(": ")?;
        Some((bucket.parse().ok()?, count.parse().ok()?))
    });
    let counts: Vec<(usize, u64)> = pairs.collect();
    (!counts.is_empty()).then_some(counts)
}

/// `… {ns} /dev/nvme0n1: used-bytes …`.
fn device_line(line: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = line.split_once(" {")?;
    let (namespace, rest) = rest.split_once("} ")?;
    let (device, rest) = rest.split_once(": ")?;
    (!device.contains(' ')).then_some((namespace, device, rest))
}

/// The rate of `name (TOTAL,RATE)`.
fn rate_of(text: &str, name: &str) -> Option<f64> {
    let words: Vec<&str> = text.split(' ').collect();
    let at = words.iter().position(|word| *word == name)?;
    let pair = words.get(at + 1)?.strip_prefix('(')?;
    let rate = pair.trim_end_matches([',', ')']).split_once(',')?.1.parse::<f64>().ok()?;
    rate.is_finite().then_some(rate)
}

/// `Apr 10 2018 07:28:02 GMT: …`, seconds since a fixed day.
fn seconds_of(line: &str) -> Option<i64> {
    let mut words = line.split_whitespace();
    let month =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            .iter()
            .zip(1u8..)
            .find_map(|(name, number)| words.clone().next()?.eq(*name).then_some(number))?;
    words.next();
    let day = words.next()?.parse().ok()?;
    let year = words.next()?.parse().ok()?;
    let date =
        time::Date::from_calendar_date(year, time::Month::try_from(month).ok()?, day).ok()?;
    let mut clock = words.next()?.split(':');
    let mut part = || clock.next()?.split('.').next()?.parse::<i64>().ok();
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    Some(((i64::from(date.to_julian_day()) * 24 + hours) * 60 + minutes) * 60 + seconds)
}
