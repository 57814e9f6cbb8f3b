//! The charts: what the server did in the last ten minutes or the last day.

use maud::{Markup, html};

use super::chart::Chart;
use super::figures::drawn;
use super::words::{Unit, shown};
use crate::history::{Sample, Span};

/// Points of a line: more are not told apart.
const POINTS: usize = 200;

/// What a chart shows.
struct Trend {
    title: &'static str,
    unit: Unit,
    lines: &'static [Line],
}

/// The name of a line, and the figure of a sample that it is of.
type Line = (&'static str, fn(&Sample) -> f32);

const TRENDS: [Trend; 6] = [
    Trend {
        title: "Commands",
        unit: Unit::Rate,
        lines: &[
            ("reads", |one| one.commands[0]),
            ("writes", |one| one.commands[1]),
            ("others", |one| one.commands[2]),
        ],
    },
    Trend {
        title: "Latency of reads",
        unit: Unit::Latency,
        lines: &[
            ("p50", |one| one.read_us[0]),
            ("p99", |one| one.read_us[1]),
            ("p99.9", |one| one.read_us[2]),
        ],
    },
    Trend {
        title: "Latency of writes",
        unit: Unit::Latency,
        lines: &[
            ("p50", |one| one.write_us[0]),
            ("p99", |one| one.write_us[1]),
            ("p99.9", |one| one.write_us[2]),
        ],
    },
    Trend {
        title: "Gets by who answers",
        unit: Unit::Rate,
        lines: &[
            ("memory cache", |one| one.gets[0]),
            ("write buffer", |one| one.gets[1]),
            ("device", |one| one.gets[2]),
            ("no such entry", |one| one.gets[3]),
        ],
    },
    Trend {
        title: "Device",
        unit: Unit::ByteRate,
        lines: &[("read", |one| one.device_bytes[0]), ("written", |one| one.device_bytes[1])],
    },
    Trend {
        title: "Clients' bytes",
        unit: Unit::ByteRate,
        lines: &[("received", |one| one.client_bytes[0]), ("sent", |one| one.client_bytes[1])],
    },
];

/// All charts of `samples`, the oldest first; `now` is the time since the start, seconds.
pub(super) fn charts(samples: &[Sample], span: Span, now: f64) -> Markup {
    html! {
        div.charts { @for trend in &TRENDS { (chart(trend, samples, span, now)) } }
        p.soft {
            "By the second are rates and latencies of the last ten minutes, by the minute those of \
             the last day. Where a point of a chart is of several of them, a rate is their mean, a \
             latency the longest. Latencies run from the bytes read to the reply ready."
        }
    }
}

fn chart(trend: &Trend, samples: &[Sample], span: Span, now: f64) -> Markup {
    let seconds = match span {
        Span::Minutes => 600.0,
        Span::Day => 86_400.0,
    };
    let of = |(_, figure): &Line| points(trend.unit, samples, *figure, now, seconds);
    let lines: Vec<Vec<(f64, f64)>> = trend.lines.iter().map(of).collect();
    let drawing = Chart { seconds, unit: trend.unit, lines: &lines }.drawing();
    let latest = |line: &Line| {
        let value = samples.last().map_or(0.0, |sample| f64::from(line.1(sample)));
        shown(value, trend.unit)
    };
    html! {
        figure.card {
            figcaption {
                h2 { (trend.title) }
                ul.legend { @for (place, line) in trend.lines.iter().enumerate() {
                    li {
                        svg viewBox="0 0 26 8" aria-hidden="true" {
                            line class={ "l" (place) } x1="0" y1="4" x2="26" y2="4" {}
                        }
                        " " (line.0) " " b { (latest(line)) }
                    }
                } }
            }
            @match drawing {
                Some(svg) => div.drawing aria-hidden="true" { (drawn(&svg)) }
                None => p.none { "Nothing to show of this time yet." }
            }
        }
    }
}

/// The points of a line, few enough, the oldest first.
fn points(
    unit: Unit,
    samples: &[Sample],
    figure: fn(&Sample) -> f32,
    now: f64,
    seconds: f64,
) -> Vec<(f64, f64)> {
    let most = if seconds > 600.0 { 1440 } else { 600 };
    let together = most / POINTS;
    // Counted from the newest on, so that a point keeps its samples while it moves to the left.
    let chunks = samples.rchunks(together).rev();
    let point = |few: &[Sample]| {
        let values = few.iter().map(|sample| f64::from(figure(sample)));
        let value = match unit {
            Unit::Latency => values.fold(0.0, f64::max),
            _ => values.sum::<f64>() / few.len() as f64,
        };
        let at = few.last().map_or(0.0, |sample| sample.seconds - now);
        (at.min(0.0), value)
    };
    chunks.map(point).filter(|(at, _)| *at >= -seconds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_the_mean_rate_and_the_longest_latency_of_its_samples() {
        let samples: Vec<Sample> = (1..=6)
            .map(|second| Sample {
                seconds: f64::from(second),
                commands: [second as f32, 0.0, 0.0],
                read_us: [0.0, second as f32, 0.0],
                ..Sample::default()
            })
            .collect();
        let rates = points(Unit::Rate, &samples, |one| one.commands[0], 6.0, 600.0);
        assert_eq!(rates, [(-3.0, 2.0), (0.0, 5.0)]);
        let latencies = points(Unit::Latency, &samples, |one| one.read_us[1], 6.5, 600.0);
        assert_eq!(latencies, [(-3.5, 3.0), (-0.5, 6.0)]);
        assert!(points(Unit::Rate, &samples, |one| one.commands[0], 1e4, 600.0).is_empty());
    }
}
