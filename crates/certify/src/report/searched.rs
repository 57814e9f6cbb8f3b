//! The page of a search.

use maud::{Markup, html};

use crate::report::charts::{Axis, Chart, Line, Style};
use crate::report::{Subject, frame, parts, words};
use crate::search::{Found, Point, Purpose, Try};
use crate::verdict::{Rules, Run, Verdict};

/// A search as one HTML file.
pub fn search_page(subject: &Subject, found: &Found, rules: &Rules) -> String {
    let line = words::search_line(found);
    let word = found.verdict().word();
    let body = html! {
        header {
            h1 { "Largest load of " (targets(subject)) }
            p.soft { (subject.name) " · " (words::date(subject.started_unix)) }
        }
        section class={ "verdict " (word) } {
            @match found.largest_factor() {
                Some(factor) => strong { (words::tidy(factor)) "x" },
                None => strong { "NONE" },
            }
            p { (line) }
        }
        @for note in decisive_notes(found) { p.soft { "Note: " (note) } }
        p.soft { "Each slice had to keep to the bounds " (rules.bounds_text()) " (% / ms)." }
        (parts::card(&curve(found, rules)))
        (tries_table(found, rules))
        @if let Some(run) = best(found) {
            h2 { "The largest load that passed" }
            (parts::slice_table(run))
            (parts::all_charts(run, &subject.machine))
        }
    };
    frame::page("Largest load", subject, word, &body)
}

fn targets(subject: &Subject) -> String {
    let names: Vec<&str> = subject.machine.targets.iter().map(|one| one.name.as_str()).collect();
    names.join(", ")
}

/// Notes on the try that set the limit: the last of the smallest load that failed, else the last.
fn decisive_notes(found: &Found) -> &[String] {
    let failed = |tried: &&Try| found.smallest_failed.is_none_or(|steps| tried.steps == steps);
    let decisive = found.tries.iter().rev().find(failed);
    decisive.map_or(&[], |tried| &tried.judgement.notes)
}

/// The longest run at the largest load that passed.
fn best(found: &Found) -> Option<&Run> {
    let passed = found.tries.iter().filter(|tried| Some(tried.steps) == found.largest);
    let runs = passed.filter_map(|tried| tried.run.as_ref());
    runs.max_by(|a, b| a.total.end_seconds.total_cmp(&b.total.end_seconds))
}

/// Latency against load: one point for each try.
fn curve(found: &Found, rules: &Rules) -> Chart<'static> {
    let line = |name: &str, colour, pick: fn(&Point) -> u64| {
        let of = |tried: &Try| {
            let factor = f64::from(tried.steps) * found.step;
            Some((factor, pick(tried.point.as_ref()?) as f64))
        };
        let mut points: Vec<(f64, f64)> = found.tries.iter().filter_map(of).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line { name: name.to_owned(), points, colour, style: Style::Marked }
    };
    let levels = rules.bounds.iter().map(|bound| {
        let name = format!("{} ms, allowed for < {} %", bound.threshold_ms(), bound.percent);
        (bound.threshold_ns as f64, name)
    });
    Chart {
        title: "Response time against load",
        horizontal: Axis::linear("times the configured load", |value| {
            format!("{}x", words::tidy(value))
        }),
        vertical: Axis::LATENCY,
        lines: vec![
            line("50 % took at most", 0, |point| point.p50_ns),
            line("99 %", 1, |point| point.p99_ns),
            line("99.9 %", 2, |point| point.p999_ns),
        ],
        levels: levels.collect(),
    }
}

fn tries_table(found: &Found, rules: &Rules) -> Markup {
    html! {
        div.card {
            h3 { "Loads that were tried, in order" }
            div.scroll { table {
                thead { tr {
                    th { "load" } th { "verdict" } th { "ran" } th { "done (1/s)" }
                    @for bound in &rules.bounds { th { "% ≥ " (bound.threshold_ms()) " ms" } }
                    th { "50 %" } th { "99 %" } th { "99.9 %" } th { "longest" }
                } }
                tbody { @for tried in &found.tries { (try_row(found, tried, rules)) } }
            } }
        }
        @let failed: Vec<&Try> =
            found.tries.iter().filter(|tried| !tried.judgement.reasons.is_empty()).collect();
        @if !failed.is_empty() {
            div.card {
                h3 { "Why loads failed" }
                ul.reasons {
                    @for tried in failed {
                        li {
                            (words::tidy(f64::from(tried.steps) * found.step)) "x: "
                            @for reason in tried.judgement.reasons.iter().take(2) { (reason) " " }
                        }
                    }
                }
            }
        }
    }
}

fn try_row(found: &Found, tried: &Try, rules: &Rules) -> Markup {
    let passed = tried.judgement.verdict == Verdict::Pass;
    html! {
        tr {
            td {
                (words::tidy(f64::from(tried.steps) * found.step)) "x"
                @if tried.purpose == Purpose::Confirm { " (confirmation)" }
            }
            td.good[passed].over[!passed] { (tried.judgement.verdict.word()) }
            td { (words::seconds(tried.seconds.round() as u32)) }
            @match &tried.point {
                Some(point) => {
                    td { (words::amount(point.done_per_second)) }
                    @for (bound, percent) in rules.bounds.iter().zip(&point.worst_percents) {
                        td.over[*percent >= bound.percent] { (format!("{percent:.2}")) }
                    }
                    td { (words::latency(point.p50_ns as f64)) }
                    td { (words::latency(point.p99_ns as f64)) }
                    td { (words::latency(point.p999_ns as f64)) }
                    td { (words::latency(point.longest_ns as f64)) }
                },
                None => td colspan=(rules.bounds.len() + 5) { "nothing was judged" },
            }
        }
    }
}
