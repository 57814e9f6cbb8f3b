//! `--html`: the run as one page with the original's plots.

use std::time::{SystemTime, UNIX_EPOCH};

use entresol_certify::machine::Machine;
use entresol_certify::report::words;
use entresol_certify::report::{
    Axis, Chart, Line, Style, TimeUnit, card, machine_section, sheet, tile,
};
use entresol_workload::Summary;
use entresol_workload::oltp::{Asu, BLOCK_BYTES, CacheCounters, Configuration, Count, Tally};
use maud::{Markup, html};

use super::course::{Course, Stretch};
use super::options::PblioArgs;
use super::report::{CacheName, Ended};
use super::search::Try;

/// What a page is made of.
pub(super) struct Run<'a> {
    pub(super) args: &'a PblioArgs,
    pub(super) configuration: &'a Configuration,
    pub(super) cache: Option<&'a CacheName>,
    pub(super) ended: &'a Ended,
    pub(super) course: &'a Course,
}

const PERCENT: Axis = Axis::linear("%", |value| format!("{value:.0} %"));
const LATENCY: Axis = Axis::linear("mean latency", |value| words::latency(value * 1e6));
const RATE: Axis = Axis::linear("per second", words::amount);

/// A run as one HTML file.
pub(super) fn run_page(run: &Run<'_>) -> String {
    let body = html! {
        header {
            h1 { "OLTP workload, " (run.configuration.bsus) " BSU" }
            p.soft { (when(run.args)) }
        }
        (tiles(run))
        @if run.args.simulate {
            p.soft { "In a virtual clock: counts are exact, and nothing takes time." }
        }
        @for chart in charts(run) { (card(&chart)) }
        @if let Some((cache, _)) = &run.ended.period.cache { (cache_table(cache)) }
        @if let Some(latencies) = &run.ended.latencies {
            (latency_table(&[
                ("from enqueueing", latencies.from_enqueue.summary()),
                ("from the intended start", latencies.from_intended_start.summary()),
            ]))
        }
        (configuration_table(run))
        (place(run.args))
    };
    sheet("OLTP workload", &body, env!("CARGO_PKG_VERSION"))
}

/// A search as one HTML file.
pub(super) fn search_page(args: &PblioArgs, tries: &[Try], most: u64) -> String {
    let limit = args.latency_limit;
    let mut points: Vec<(f64, f64)> =
        tries.iter().map(|one| (one.bsus as f64, one.latency_ms)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let curve = Chart {
        title: "Mean latency from the intended start, a run for each load",
        horizontal: Axis::linear("BSU", words::amount),
        vertical: LATENCY,
        lines: vec![line("mean latency", 0, Style::Marked, points)],
        levels: vec![(limit, format!("limit, {limit} ms"))],
    };
    let body = html! {
        header {
            h1 { "OLTP workload: most BSUs below " (limit) " ms" }
            p.soft { (when(args)) }
        }
        div.tiles {
            (tile("BSUs, most that passed", &words::count(most)))
            (tile("runs", &words::count(tries.len() as u64)))
        }
        (card(&curve))
        div.card { div.scroll { table {
            thead { tr {
                th { "BSU" } th { "asked (1/s)" } th { "done (1/s)" } th { "mean latency" }
                th { "" }
            } }
            tbody { @for one in tries { tr {
                td { (one.bsus) }
                td { (words::count(one.asked_iops)) }
                td { (words::amount(one.iops)) }
                td { (words::latency(one.latency_ms * 1e6)) }
                td.good[one.passes].over[!one.passes] {
                    (if one.passes { "below" } else { "not below" })
                }
            } } }
        } } }
        (place(args))
    };
    sheet("Search for the most BSUs", &body, env!("CARGO_PKG_VERSION"))
}

fn when(args: &PblioArgs) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let clock = if args.simulate { "simulated" } else { "measured" };
    format!("SPC-1-like, {clock} · {}", words::date(now))
}

fn tiles(run: &Run<'_>) -> Markup {
    let total = run.ended.period.tally.total();
    let rate = total.requests as f64 / run.ended.seconds.max(f64::MIN_POSITIVE);
    html! {
        div.tiles {
            (tile("I/Os a second", &words::amount(rate)))
            @if let Some(latencies) = &run.ended.latencies {
                @let summary = latencies.from_intended_start.summary();
                (tile("mean latency", &words::latency(total.mean_latency_ms() * 1e6)))
                (tile("99 % took at most", &words::latency(summary.p99 as f64)))
            }
            @if let Some((cache, _)) = &run.ended.period.cache {
                (tile("read hits", &percent(cache.read_hit_rate())))
                (tile("invalidate hits", &percent(cache.invalidate_hit_rate())))
            }
            @if let Some(findings) = &run.ended.findings {
                (tile("blocks read wrong", &words::count(findings.wrong)))
            }
        }
    }
}

/// The original's plots; those without anything to show stay away by themselves.
fn charts(run: &Run<'_>) -> Vec<Chart<'static>> {
    let plot = Plot::new(run);
    let mut charts = Vec::new();
    if run.ended.latencies.is_some() {
        charts.extend(latency_charts(&plot));
    }
    let asked = run.configuration.requests_per_second() as f64;
    let done = |s: &Stretch| Some(s.count(Tally::total).requests as f64 / s.seconds);
    charts.push(plot.chart(
        "I/Os a second",
        RATE,
        vec![
            plot.line("asked on average", 1, Style::Dashed, &|_| Some(asked)),
            plot.line("done", 0, Style::Solid, &done),
        ],
    ));
    let reads = |s: &Stretch| ratio(s.count(Tally::reads).requests, s.count(Tally::total).requests);
    let reads = plot.line("reads of all requests", 0, Style::Solid, &reads);
    charts.push(plot.chart("Read percentage", PERCENT, vec![reads]));
    if run.ended.period.cache.is_some() {
        charts.extend(cache_charts(&plot));
    }
    charts
}

fn latency_charts(plot: &Plot) -> Vec<Chart<'static>> {
    let line = |name: &str, colour, pick: &dyn Fn(&Tally) -> Count| {
        plot.line(name, colour, Style::Solid, &|s| {
            let count = s.count(pick);
            (count.requests > 0).then(|| count.mean_latency_ms())
        })
    };
    let asu = |asu: Asu, read: bool| {
        move |tally: &Tally| if read { tally.asu(asu).read } else { tally.asu(asu).write }
    };
    let all = vec![
        line("all", 0, &Tally::total),
        line("reads", 1, &Tally::reads),
        line("writes", 2, &Tally::writes),
    ];
    let reads = vec![
        line("ASU1, data store", 0, &asu(Asu::Data, true)),
        line("ASU2, user store", 1, &asu(Asu::User, true)),
    ];
    let writes = vec![
        line("ASU1, data store", 0, &asu(Asu::Data, false)),
        line("ASU2, user store", 1, &asu(Asu::User, false)),
        line("ASU3, log", 2, &asu(Asu::Log, false)),
    ];
    vec![
        plot.chart("Mean latency, from enqueueing", LATENCY, all),
        plot.chart("Latency of reads by unit", LATENCY, reads),
        plot.chart("Latency of writes by unit", LATENCY, writes),
    ]
}

fn cache_charts(plot: &Plot) -> Vec<Chart<'static>> {
    let share = |name: &str, colour, pick: fn(&CacheCounters) -> (u64, u64)| {
        plot.line(name, colour, Style::Solid, &|s| {
            let (part, whole) = pick(&s.cache()?);
            ratio(part, whole)
        })
    };
    let rate = |name: &str, colour, pick: fn(&CacheCounters) -> u64| {
        plot.line(name, colour, Style::Solid, &|s| Some(pick(&s.cache()?) as f64 / s.seconds))
    };
    let hits = vec![
        share("read hits of blocks read", 0, |cache| (cache.read_hits, cache.reads)),
        share("invalidate hits of blocks written", 1, |cache| {
            (cache.invalidate_hits, cache.invalidations)
        }),
    ];
    let changes = vec![
        rate("insertions", 0, |cache| cache.insertions),
        rate("evictions", 1, |cache| cache.evictions),
        rate("invalidate hits", 2, |cache| cache.invalidate_hits),
    ];
    let saved = |whole: fn(Count) -> u64| {
        move |s: &Stretch| ratio(s.cache()?.read_hits, whole(s.count(Tally::total)))
    };
    let saved = vec![
        plot.line(
            "blocks read from the cache, of all blocks",
            0,
            Style::Solid,
            &saved(|count| count.blocks),
        ),
        plot.line(
            "as the original plots it: of all requests",
            1,
            Style::Dashed,
            &saved(|count| count.requests),
        ),
    ];
    vec![
        plot.chart("Hits of the cache", PERCENT, hits),
        plot.chart("Changes of the cache, in blocks", RATE, changes),
        plot.chart("I/O that the backing was saved", PERCENT, saved),
    ]
}

/// Lines over the time of a run.
struct Plot {
    time: TimeUnit,
    stretches: Vec<Stretch>,
}

impl Plot {
    fn new(run: &Run<'_>) -> Plot {
        let stretches = run.course.stretches();
        Plot { time: TimeUnit::of(run.ended.seconds), stretches }
    }

    fn line(
        &self,
        name: &str,
        colour: usize,
        style: Style,
        value: &dyn Fn(&Stretch) -> Option<f64>,
    ) -> Line {
        let point = |s: &Stretch| Some((s.middle / self.time.seconds, value(s)?));
        line(name, colour, style, self.stretches.iter().filter_map(point).collect())
    }

    fn chart(&self, title: &'static str, vertical: Axis, lines: Vec<Line>) -> Chart<'static> {
        Chart { title, horizontal: self.time.axis(), vertical, lines, levels: Vec::new() }
    }
}

fn line(name: &str, colour: usize, style: Style, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.to_owned(), points, colour, style }
}

/// In percent; none without a whole.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn cache_table(cache: &CacheCounters) -> Markup {
    let rows = [
        ("Reads", cache.reads),
        ("Read hits", cache.read_hits),
        ("Invalidations", cache.invalidations),
        ("Invalidate hits", cache.invalidate_hits),
        ("Insertions", cache.insertions),
        ("Evictions", cache.evictions),
    ];
    html! {
        div.card {
            h3 { "The cache, in blocks of 4 KiB" }
            table.words { tbody {
                @for (name, value) in rows { tr { td { (name) } td { (words::count(value)) } } }
            } }
        }
    }
}

fn latency_table(rows: &[(&str, Summary)]) -> Markup {
    html! {
        div.card {
            h3 { "Latency" }
            div.scroll { table {
                thead { tr {
                    th { "" } th { "mean" } th { "50 %" } th { "90 %" } th { "99 %" }
                    th { "99.9 %" } th { "longest" }
                } }
                tbody { @for (name, summary) in rows { tr {
                    td { (name) }
                    td { (words::latency(summary.mean)) }
                    @for value in [
                        summary.p50, summary.p90, summary.p99, summary.p999, summary.max,
                    ] { td { (words::latency(value as f64)) } }
                } } }
            } }
        }
    }
}

fn configuration_table(run: &Run<'_>) -> Markup {
    let (args, configuration) = (run.args, run.configuration);
    let mut rows = vec![
        ("BSUs", configuration.bsus.to_string()),
        ("Contexts", configuration.contexts.to_string()),
        ("Seconds", format!("{:.1} after a ramp of {}", run.ended.seconds, args.ramp)),
        ("Style", format!("{:?}", args.style).to_lowercase()),
        ("Mix", format!("{:?}", args.mix).to_lowercase()),
        ("Seed", args.seed.map_or("none".to_owned(), |seed| seed.to_string())),
    ];
    for (asu, given) in Asu::ALL.into_iter().zip(args.units()) {
        let name = ["ASU1, data store", "ASU2, user store", "ASU3, log"][asu.index()];
        let mib = (configuration.layout.blocks(asu) * BLOCK_BYTES) as f64 / (1 << 20) as f64;
        rows.push((name, format!("{} MiB: {given}", words::amount(mib))));
    }
    let cache = run.cache.map_or("none".to_owned(), |cache| {
        let mib = cache.capacity_bytes as f64 / (1 << 20) as f64;
        format!("{} MiB: {}", words::amount(mib), cache.name)
    });
    rows.push(("Cache", cache));
    html! {
        h2 { "Configuration" }
        div.card { table.words { tbody {
            @for (name, value) in &rows { tr { td { (name) } td { (value) } } }
        } } }
    }
}

/// The machine, where it matters.
fn place(args: &PblioArgs) -> Markup {
    let files = args.units().into_iter().flat_map(|unit| unit.split(','));
    let targets: Vec<&str> = files.filter(|name| !name.contains(':')).collect();
    html! { @if !args.simulate { (machine_section(&Machine::look(&targets))) } }
}
