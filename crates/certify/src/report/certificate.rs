//! The page of a certificate.

use maud::{Markup, html};

use crate::certification::{Certificate, Judged};
use crate::report::charts::{Axis, Chart, Line, Style};
use crate::report::{Subject, frame, parts, words};
use crate::verdict::{Round, Run, Steadiness};

/// A certificate as one HTML file.
pub fn certificate_page(subject: &Subject, certificate: &Certificate) -> String {
    let line = words::certificate_line(certificate);
    let word = certificate.verdict.word();
    let reasons = certificate.reasons();
    let body = html! {
        (frame::top(("Certification", word, &line), subject, &reasons, &certificate.notes))
        @if let Some(test) = &certificate.test { (tiles(&test.run)) }
        @if let Some(test) = &certificate.test {
            h2 { "Test at the configured load" }
            p.soft {
                "Every slice must keep to the bounds " (certificate.rules.bounds_text())
                " (% / ms), by response time."
            }
            (parts::slice_table(&test.run))
            (parts::series_table(&test.run))
            (parts::all_charts(&test.run, &subject.machine))
        }
        @if let Some(stress) = &certificate.stress { (stress_section(stress)) }
        @if let Some(steadiness) = &certificate.steadiness { (steady_section(steadiness)) }
        @if let Some(prepared) = certificate.prepared {
            h2 { "Preparation" }
            p {
                (words::bytes(prepared.bytes as f64)) " written in "
                (words::seconds(u32::try_from(prepared.seconds).unwrap_or(u32::MAX))) "."
                @if prepared.left > 0 {
                    " " (prepared.left) " of the targets had been prepared before."
                }
            }
        }
    };
    frame::page("Certification", subject, word, &body)
}

fn tiles(run: &Run) -> Markup {
    let Some(judged) = run.judged_series() else { return html! {} };
    let total = &run.total.series[judged];
    let summary = &total.response.summary;
    let name = &run.series[judged].name;
    html! {
        div.tiles {
            (frame::tile(
                &format!("{name} a second"),
                &words::amount(run.total.done_per_second(judged)),
            ))
            (frame::tile("half took at most", &words::latency(summary.p50 as f64)))
            (frame::tile("99 % took at most", &words::latency(summary.p99 as f64)))
            (frame::tile("99.9 % took at most", &words::latency(summary.p999 as f64)))
            (frame::tile("the longest took", &words::latency(summary.max as f64)))
            (frame::tile("errors", &words::count(errors(run))))
        }
    }
}

fn errors(run: &Run) -> u64 {
    let counted = run.counting_series().into_iter();
    counted.map(|index| run.total.series[index].errors + run.total.series[index].wrong).sum()
}

fn stress_section(stress: &Judged) -> Markup {
    html! {
        h2 { "Stress at " (words::tidy(stress.run.factor)) "x" }
        p.soft { "It only has to run to its end without an error; latencies are free." }
        (parts::slice_table(&stress.run))
        (parts::main_charts(&stress.run))
    }
}

fn steady_section(steadiness: &Steadiness) -> Markup {
    let line = |name: &str, colour, pick: fn(&Round) -> f64| {
        let rounds = &steadiness.rounds;
        let mean = rounds.iter().map(pick).sum::<f64>() / rounds.len().max(1) as f64;
        let points = rounds.iter().enumerate().map(|(index, round)| {
            ((index + 1) as f64, if mean > 0.0 { 100.0 * pick(round) / mean } else { 0.0 })
        });
        Line { name: name.to_owned(), points: points.collect(), colour, style: Style::Marked }
    };
    let chart = Chart {
        title: "Rounds before the test, in % of their mean",
        horizontal: Axis::linear("round", |value| format!("{value:.0}")),
        vertical: Axis::linear("% of the mean", |value| format!("{value:.0} %")),
        lines: vec![
            line("transfers a second", 0, |round| round.done_per_second),
            line("mean service time", 1, |round| round.service_ns),
        ],
        levels: Vec::new(),
    };
    html! {
        h2 { "Steady state" }
        p {
            @if steadiness.steady { "Steady" } @else { "Not steady" }
            " after " (steadiness.rounds.len()) " rounds: the last ones range over "
            (words::tidy(steadiness.range_percent.round())) " % and move by "
            (words::tidy(steadiness.slope_percent.round())) " % of their mean."
        }
        (parts::card(&chart))
    }
}
