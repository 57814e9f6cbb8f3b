//! Charts of what a process did in the last ten minutes or the last day.

use maud::{Markup, html};

use crate::chart::Chart;
use crate::figures::drawn;
use crate::history::{Sampled, Span, StoreSampled};
use crate::words::{Unit, shown};

/// Points of a line: more are not told apart.
const POINTS: usize = 200;

/// What a chart shows.
#[derive(Debug)]
pub struct Trend<S: 'static> {
    /// Its heading.
    pub title: &'static str,
    /// How its figures are written.
    pub unit: Unit,
    /// At most as many as there are colours.
    pub lines: &'static [Line<S>],
}

impl<S: Sampled> Trend<S> {
    /// How long reads take.
    pub const READS: Trend<S> = Trend::reads("Latency of reads");
    /// How long writes take.
    pub const WRITES: Trend<S> = Trend::writes("Latency of writes");

    /// How long reads take, under that title.
    pub const fn reads(title: &'static str) -> Trend<S> {
        Trend {
            title,
            unit: Unit::Latency,
            lines: &[
                ("p50", |one| one.calls().read_us[0]),
                ("p99", |one| one.calls().read_us[1]),
                ("p99.9", |one| one.calls().read_us[2]),
            ],
        }
    }

    /// How long writes take, under that title.
    pub const fn writes(title: &'static str) -> Trend<S> {
        Trend {
            title,
            unit: Unit::Latency,
            lines: &[
                ("p50", |one| one.calls().write_us[0]),
                ("p99", |one| one.calls().write_us[1]),
                ("p99.9", |one| one.calls().write_us[2]),
            ],
        }
    }

    /// How many calls there are, which are called `title`.
    pub const fn calls(title: &'static str) -> Trend<S> {
        Trend {
            title,
            unit: Unit::Rate,
            lines: &[
                ("reads", |one| one.calls().rates[0]),
                ("writes", |one| one.calls().rates[1]),
                ("others", |one| one.calls().rates[2]),
            ],
        }
    }
}

impl<S: StoreSampled> Trend<S> {
    /// What the device reads and writes.
    pub const DEVICE: Trend<S> = Trend {
        title: "Device",
        unit: Unit::ByteRate,
        lines: &[
            ("read", |one| one.store().device_bytes[0]),
            ("written", |one| one.store().device_bytes[1]),
        ],
    };

    /// Who answers the gets, which are called `title`.
    pub const fn gets(title: &'static str) -> Trend<S> {
        Trend {
            title,
            unit: Unit::Rate,
            lines: &[
                ("memory cache", |one| one.store().gets[0]),
                ("write buffer", |one| one.store().gets[1]),
                ("device", |one| one.store().gets[2]),
                ("no such entry", |one| one.store().gets[3]),
            ],
        }
    }
}

/// The name of a line, and the figure of a sample that it is of.
pub type Line<S> = (&'static str, fn(&S) -> f32);

/// Charts over the time that has passed.
#[derive(Debug)]
pub struct Charts<'a, S: 'static> {
    /// What they show.
    pub trends: &'a [Trend<S>],
    /// What there is to show, the oldest first.
    pub samples: &'a [S],
    /// How far back they go.
    pub span: Span,
    /// The time since the start, seconds.
    pub now: f64,
    /// How latencies are measured, in a sentence.
    pub measured: &'a str,
}

impl<S: Sampled> Charts<'_, S> {
    /// All of them, and what their points are.
    pub fn shown(&self) -> Markup {
        html! {
            (self.drawings())
            p.soft {
                "By the second are rates and latencies of the last ten minutes, by the minute \
                 those of the last day. Where a point of a chart is of several of them, a rate is \
                 their mean, a latency the longest. "
                (self.measured)
            }
        }
    }

    /// All of them.
    pub fn drawings(&self) -> Markup {
        html! {
            div.charts { @for trend in self.trends {
                (chart(trend, self.samples, self.span, self.now))
            } }
        }
    }
}

fn chart<S: Sampled>(trend: &Trend<S>, samples: &[S], span: Span, now: f64) -> Markup {
    let seconds = match span {
        Span::Minutes => 600.0,
        Span::Day => 86_400.0,
    };
    let of = |(_, figure): &Line<S>| points(trend.unit, samples, *figure, now, seconds);
    let lines: Vec<Vec<(f64, f64)>> = trend.lines.iter().map(of).collect();
    let drawing = Chart { seconds, unit: trend.unit, lines: &lines }.drawing();
    let latest = |line: &Line<S>| {
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
fn points<S: Sampled>(
    unit: Unit,
    samples: &[S],
    figure: fn(&S) -> f32,
    now: f64,
    seconds: f64,
) -> Vec<(f64, f64)> {
    let most = if seconds > 600.0 { 1440 } else { 600 };
    let together = most / POINTS;
    // Counted from the newest on, so that a point keeps its samples while it moves to the left.
    let chunks = samples.rchunks(together).rev();
    let point = |few: &[S]| {
        let values = few.iter().map(|sample| f64::from(figure(sample)));
        let value = match unit {
            Unit::Latency => values.fold(0.0, f64::max),
            _ => values.sum::<f64>() / few.len() as f64,
        };
        let at = few.last().map_or(0.0, |sample| sample.seconds() - now);
        (at.min(0.0), value)
    };
    chunks.map(point).filter(|(at, _)| *at >= -seconds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passed::Calls;

    #[derive(Debug, Clone, Copy, Default)]
    struct Sample {
        seconds: f64,
        calls: Calls,
    }

    impl Sampled for Sample {
        fn seconds(&self) -> f64 {
            self.seconds
        }

        fn calls(&self) -> &Calls {
            &self.calls
        }
    }

    #[test]
    fn a_point_has_the_mean_rate_and_the_longest_latency_of_its_samples() {
        let samples: Vec<Sample> = (1..=6)
            .map(|second| {
                let all = [second as f32; 3];
                let calls = Calls { rates: all, read_us: all, write_us: all };
                Sample { seconds: f64::from(second), calls }
            })
            .collect();
        let (_, reads) = Trend::calls("Calls").lines[0];
        let rates = points(Unit::Rate, &samples, reads, 6.0, 600.0);
        assert_eq!(rates, [(-3.0, 2.0), (0.0, 5.0)]);
        let latencies = points(Unit::Latency, &samples, Trend::WRITES.lines[1].1, 6.5, 600.0);
        assert_eq!(latencies, [(-3.5, 3.0), (-0.5, 6.0)]);
        assert!(points(Unit::Rate, &samples, reads, 1e4, 600.0).is_empty());
    }
}
