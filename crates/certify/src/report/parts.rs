//! Parts of pages that show a run: its slices as a table, its time line as charts.

use maud::{Markup, PreEscaped, html};

use crate::load::Telemetry;
use crate::machine::Machine;
use crate::report::charts::{Axis, Chart, Line, Style, TimeUnit};
use crate::report::words;
use crate::verdict::{Latency, Run, Span};

/// The charts that say most about a run.
pub(crate) fn main_charts(run: &Run) -> Markup {
    html! {
        @if let Some(judged) = run.judged_series() {
            (card(&latencies(run, judged)))
            (card(&rate(run, judged)))
        }
    }
}

/// All charts of a run.
pub(crate) fn all_charts(run: &Run, machine: &Machine) -> Markup {
    let devices = distinct_devices(run, machine);
    let of_devices = (run, devices.as_slice());
    html! {
        (main_charts(run))
        @if let Some(judged) = run.judged_series() { (card(&response_and_service(run, judged))) }
        (card(&fulfilment(run)))
        (card(&bandwidth(of_devices)))
        (card(&telemetry(of_devices, "How busy the devices were", SHARE, |one| {
            Some(one.busy * 100.0)
        })))
        (card(&telemetry(of_devices, "Requests in the devices' queues", DEPTH, |one| {
            Some(one.queue_depth)
        })))
        (card(&telemetry(of_devices, "Temperature", DEGREES, |one| one.temperature)))
        @for one in &run.total.telemetry {
            @if let Some(line) = wear(one) { p.soft { (line) } }
        }
    }
}

/// How used up a device was at the end, where it tells.
fn wear(one: &Telemetry) -> Option<String> {
    let (wear, spare) = (one.wear_percent?, one.spare_percent?);
    let device = &one.device;
    Some(format!("{device}: {wear} % of its endurance is used, {spare} % of its spare is left."))
}

const SHARE: Axis = Axis::linear("% of the time", |value| format!("{value:.0} %"));
const DEPTH: Axis = Axis::linear("mean requests", words::amount);
const DEGREES: Axis = Axis::linear("°C", |value| format!("{value:.0} °C"));

/// The slices of a run, with the share over each bound by response and by service time.
pub(crate) fn slice_table(run: &Run) -> Markup {
    let Some(judged) = run.judged_series() else { return html! {} };
    let name = &run.series[judged].name;
    html! {
        div.card {
            h3 { "Slices of " (words::seconds(run.slicing.seconds)) ": " (name) }
            div.scroll { table {
                thead {
                    tr {
                        th { "" }
                        th colspan="2" { "rate (1/s)" }
                        th.group colspan=(run.bounds.len()) { "response time, % at or over" }
                        th.group colspan=(run.bounds.len()) { "service time, % at or over" }
                        th.group colspan="3" { "response time" }
                    }
                    tr {
                        th { "slice" } th { "due" } th { "done" }
                        @for _ in 0..2 {
                            @for (index, bound) in run.bounds.iter().enumerate() {
                                th.group[index == 0] { (bound.threshold_ms()) " ms" }
                            }
                        }
                        th.group { "50 %" } th { "99 %" } th { "longest" }
                    }
                }
                tbody {
                    @for slice in &run.slices { (slice_row(run, slice, judged)) }
                    tr {
                        td { "allowed" } td { "" } td { "" }
                        @for (index, bound) in run.bounds.iter().enumerate() {
                            td.group[index == 0] { "< " (bound.percent) }
                        }
                        @for index in 0..run.bounds.len() { td.group[index == 0] { "" } }
                        td.group { "" } td { "" } td { "" }
                    }
                }
            } }
        }
    }
}

fn slice_row(run: &Run, slice: &Span, judged: usize) -> Markup {
    let figures = &slice.series[judged];
    let percent = |latency: &Latency, index: usize| format!("{:.2}", latency.percent_over(index));
    let summary = &figures.response.summary;
    html! {
        tr {
            td { (slice.number) }
            td { (words::amount(slice.due_per_second(judged))) }
            td { (words::amount(slice.done_per_second(judged))) }
            @for (index, bound) in run.bounds.iter().enumerate() {
                @let over = figures.response.percent_over(index) >= bound.percent;
                td.group[index == 0].over[over] { (percent(&figures.response, index)) }
            }
            @for index in 0..run.bounds.len() {
                td.group[index == 0] { (percent(&figures.service, index)) }
            }
            td.group { (words::latency(summary.p50 as f64)) }
            td { (words::latency(summary.p99 as f64)) }
            td { (words::latency(summary.max as f64)) }
        }
    }
}

/// All series of a run in total.
pub(crate) fn series_table(run: &Run) -> Markup {
    html! {
        div.card {
            h3 { "Everything that was transferred" }
            div.scroll { table {
                thead {
                    tr {
                        th colspan="6" { "" }
                        th.group colspan="4" { "response time" }
                        th.group { "service" }
                    }
                    tr {
                        th { "series" } th { "due" } th { "done" } th { "errors" } th { "wrong" }
                        th { "bytes" }
                        th.group { "50 %" } th { "99 %" } th { "99.9 %" } th { "longest" }
                        th.group { "99 %" }
                    }
                }
                tbody {
                    @for (series, figures) in run.series.iter().zip(&run.total.series) {
                        @let summary = &figures.response.summary;
                        tr {
                            td { (series.name) }
                            td { (words::count(figures.due)) }
                            td { (words::count(figures.done)) }
                            td.over[figures.errors > 0] { (words::count(figures.errors)) }
                            td.over[figures.wrong > 0] { (words::count(figures.wrong)) }
                            td { (words::bytes(figures.bytes as f64)) }
                            @if summary.count == 0 {
                                td.group { "–" } td { "–" } td { "–" } td { "–" }
                                td.group { "–" }
                            } @else {
                                td.group { (words::latency(summary.p50 as f64)) }
                                td { (words::latency(summary.p99 as f64)) }
                                td { (words::latency(summary.p999 as f64)) }
                                td { (words::latency(summary.max as f64)) }
                                td.group { (words::latency(figures.service.summary.p99 as f64)) }
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// A chart on a card, with its legend; nothing where there is nothing to draw.
pub fn card(chart: &Chart<'_>) -> Markup {
    let Some([wide, narrow]) = chart.drawings() else { return html! {} };
    html! {
        div.card.chart {
            h3 { (chart.title) }
            ul.legend {
                @for line in &chart.lines {
                    li {
                        @let dashed = if line.style == Style::Dashed { " dashed" } else { "" };
                        i class=(format!("c{}{dashed}", line.colour % 4 + 1)) {}
                        (line.name)
                    }
                }
                @for (_, name) in &chart.levels { li { i.level.dashed {} (name) } }
            }
            div.wide { (PreEscaped(wide)) }
            div.narrow { (PreEscaped(narrow)) }
        }
    }
}

fn time_unit(run: &Run) -> TimeUnit {
    TimeUnit::of(run.total.end_seconds)
}

/// Where in time a span is drawn.
fn middle(run: &Run, span: &Span) -> f64 {
    f64::midpoint(span.start_seconds, span.end_seconds) / time_unit(run).seconds
}

fn over_time(
    run: &Run,
    (name, colour, style): (&str, usize, Style),
    value: impl Fn(&Span) -> Option<f64>,
) -> Line {
    let points = run.timeline.iter().filter_map(|span| Some((middle(run, span), value(span)?)));
    Line { name: name.to_owned(), points: points.collect(), colour, style }
}

fn latencies(run: &Run, judged: usize) -> Chart<'static> {
    let line = |name, colour, pick: fn(&Latency) -> u64| {
        over_time(run, (name, colour, Style::Solid), |span| {
            let response = &span.series[judged].response;
            (response.summary.count > 0).then(|| pick(response) as f64)
        })
    };
    Chart {
        title: "Response time",
        horizontal: time_unit(run).axis(),
        vertical: Axis::LATENCY,
        lines: vec![
            line("50 % took at most", 0, |response| response.summary.p50),
            line("99 %", 1, |response| response.summary.p99),
            line("99.9 %", 2, |response| response.summary.p999),
            line("all", 3, |response| response.summary.max),
        ],
        levels: run
            .bounds
            .iter()
            .map(|bound| {
                let name =
                    format!("{} ms, allowed for < {} %", bound.threshold_ms(), bound.percent);
                (bound.threshold_ns as f64, name)
            })
            .collect(),
    }
}

fn response_and_service(run: &Run, judged: usize) -> Chart<'static> {
    let line = |name, colour, style, pick: fn(&Span, usize) -> u64| {
        over_time(run, (name, colour, style), |span| {
            (span.series[judged].done > 0).then(|| pick(span, judged) as f64)
        })
    };
    Chart {
        title: "Response time (from when it was due) and service time (from when it was issued)",
        horizontal: time_unit(run).axis(),
        vertical: Axis::LATENCY,
        lines: vec![
            line("response, 99 %", 0, Style::Solid, |span, of| {
                span.series[of].response.summary.p99
            }),
            line("service, 99 %", 0, Style::Dashed, |span, of| span.series[of].service.summary.p99),
            line("response, 99.9 %", 1, Style::Solid, |span, of| {
                span.series[of].response.summary.p999
            }),
            line("service, 99.9 %", 1, Style::Dashed, |span, of| {
                span.series[of].service.summary.p999
            }),
        ],
        levels: Vec::new(),
    }
}

fn rate(run: &Run, judged: usize) -> Chart<'static> {
    Chart {
        title: "Rate due and done",
        horizontal: time_unit(run).axis(),
        vertical: Axis::linear("per second", words::amount),
        lines: vec![
            over_time(run, ("due", 1, Style::Dashed), |span| Some(span.due_per_second(judged))),
            over_time(run, ("done", 0, Style::Solid), |span| Some(span.done_per_second(judged))),
        ],
        levels: Vec::new(),
    }
}

/// All kinds of transfers on one scale, however rare some are.
fn fulfilment(run: &Run) -> Chart<'static> {
    let all = run.counting_series().into_iter().enumerate().take(4);
    let lines = all.map(|(colour, index)| {
        over_time(run, (&run.series[index].name, colour, Style::Solid), |span| {
            let figures = &span.series[index];
            (figures.due > 0).then(|| 100.0 * figures.done as f64 / figures.due as f64)
        })
    });
    Chart {
        title: "Done, in % of what was due",
        horizontal: time_unit(run).axis(),
        vertical: Axis::linear("% of due", |value| format!("{value:.0} %")),
        lines: lines.collect(),
        levels: Vec::new(),
    }
}

fn bandwidth((run, devices): (&Run, &[Observed])) -> Chart<'static> {
    let line = |name, colour, pick: fn(&Telemetry) -> u64| {
        over_time(run, (name, colour, Style::Solid), |span| {
            let told = devices.iter().filter_map(|device| device.of(span));
            let bytes: u64 = told.map(pick).sum();
            let told = !span.telemetry.is_empty() && span.covered_seconds > 0.0;
            told.then(|| bytes as f64 / span.covered_seconds)
        })
    };
    let mut lines =
        vec![line("read", 0, |one| one.read_bytes), line("written", 1, |one| one.written_bytes)];
    lines.retain(|line| line.points.iter().any(|point| point.1 > 0.0));
    Chart {
        title: "What the devices transferred, by the system's count",
        horizontal: time_unit(run).axis(),
        vertical: Axis::linear("a second", |value| format!("{}/s", words::bytes(value))),
        lines,
        levels: Vec::new(),
    }
}

fn telemetry(
    (run, devices): (&Run, &[Observed]),
    title: &'static str,
    vertical: Axis,
    value: fn(&Telemetry) -> Option<f64>,
) -> Chart<'static> {
    let lines = devices.iter().take(4).enumerate().map(|(colour, device)| {
        over_time(run, (&device.label, colour, Style::Solid), |span| value(device.of(span)?))
    });
    let mut lines: Vec<Line> = lines.collect();
    lines.retain(|line| line.points.iter().any(|point| point.1 > 0.0));
    Chart { title, horizontal: time_unit(run).axis(), vertical, lines, levels: Vec::new() }
}

/// A device that the system tells of.
struct Observed {
    /// The target by whose name it is told of.
    target: String,
    /// What it is called in a legend.
    label: String,
}

impl Observed {
    fn of<'a>(&self, span: &'a Span) -> Option<&'a Telemetry> {
        span.telemetry.iter().find(|one| one.device == self.target)
    }
}

/// Each device once, however many targets lie on it.
fn distinct_devices(run: &Run, machine: &Machine) -> Vec<Observed> {
    let mut seen = Vec::new();
    let mut devices = Vec::new();
    for told in &run.total.telemetry {
        let known = machine.targets.iter().find(|target| target.name == told.device);
        let device = known.and_then(|target| target.device.clone());
        let label = device.unwrap_or_else(|| told.device.clone());
        if !seen.contains(&label) {
            seen.push(label.clone());
            devices.push(Observed { target: told.device.clone(), label });
        }
    }
    devices
}
