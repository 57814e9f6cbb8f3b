//! Figures of an object of JSON, as tiles, rows and bars.

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use crate::words::{Unit, share, shown};

/// The object that a page is made of, that of `/stats`.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a>(pub &'a Value);

impl Figures<'_> {
    /// The number at `path`; 0 if there is none.
    pub fn number(self, path: &str) -> f64 {
        self.0.pointer(path).and_then(Value::as_f64).unwrap_or_default()
    }

    /// The text at `path`; empty if there is none.
    pub fn text(self, path: &str) -> String {
        self.0.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The number at `path`, with its exact value for programs that read the page.
    pub fn show(self, path: &str, unit: Unit) -> Markup {
        let value = self.0.pointer(path).cloned().unwrap_or_default();
        let text = shown(self.number(path), unit);
        html! { data data-stat=(path) value=(value) { (text) } }
    }
}

/// A measured number as a figure: six digits behind the point, for more say nothing.
pub fn measured(value: f64) -> Value {
    let value = if value.is_finite() { value } else { 0.0 };
    json!((value * 1e6).round() / 1e6)
}

/// Percentiles 50, 99 and 99.9 as a figure.
pub fn percentiles([p50, p99, p999]: [f32; 3]) -> Value {
    let measured = |value: f32| measured(value.into());
    json!({"p50": measured(p50), "p99": measured(p99), "p999": measured(p999)})
}

/// A row of a table of figures: its name, where the figure is, how it is written, what it means.
pub type Row = (&'static str, &'static str, Unit, &'static str);

/// A figure that is looked for first.
pub fn tile(name: &str, value: &Markup, beside: &Markup) -> Markup {
    html! { li { span.name { (name) } b { (value) } span.soft { (beside) } } }
}

/// How many calls there were in the latest second, which are called `name` and counted at `path`,
/// and how long they took.
pub fn call_tiles(figures: Figures<'_>, name: &str, path: &str) -> Markup {
    let show = |path: &str, unit| figures.show(path, unit);
    html! {
        (tile(name, &show(path, Unit::Rate), &html! {
            "reads " (show("/second/reads", Unit::Rate))
            ", writes " (show("/second/writes", Unit::Rate))
        }))
        (latency_tiles(figures, ["Reads take", "Writes take"]))
    }
}

/// How long reads and writes took in the latest second, under these names.
pub fn latency_tiles(figures: Figures<'_>, [reads, writes]: [&str; 2]) -> Markup {
    let show = |path: &str| figures.show(path, Unit::Latency);
    html! {
        (tile(reads, &show("/second/read_us/p99"), &html! {
            "p99; p50 " (show("/second/read_us/p50"))
        }))
        (tile(writes, &show("/second/write_us/p99"), &html! {
            "p99; p50 " (show("/second/write_us/p50"))
        }))
    }
}

/// Who answers some calls.
#[derive(Debug)]
pub struct Answered<'a> {
    /// What calls are named.
    pub calls: &'a str,
    /// Who answers: name, path of the count since the start, path of the latest second.
    pub by: &'a [(&'a str, &'a str, &'a str)],
}

impl Answered<'_> {
    /// Their shares as a bar, and a table of them.
    pub fn shown(&self, figures: Figures<'_>) -> Markup {
        let parts: Vec<_> =
            self.by.iter().map(|(name, path, _)| (*name, figures.number(path))).collect();
        let all: f64 = parts.iter().map(|part| part.1).sum();
        html! {
            h2 { "Where " (self.calls.to_lowercase()) " are answered" }
            (bar(&parts, all))
            table {
                thead { tr {
                    th { "By" } th.n { (self.calls) } th.n { "Share" } th.n { "Last second" }
                } }
                tbody { @for (place, (name, path, second)) in self.by.iter().enumerate() {
                    tr {
                        td { (mark(place)) (name) }
                        td.n { (figures.show(path, Unit::Count)) }
                        td.n { (share(figures.number(path), all)) }
                        td.n { (figures.show(second, Unit::Rate)) }
                    }
                } }
            }
        }
    }
}

/// Rows below one another.
pub fn rows(figures: Figures<'_>, all: &[Row]) -> Markup {
    html! {
        table { tbody { @for (name, path, unit, beside) in all {
            tr {
                td { (name) }
                td.n { (figures.show(path, *unit)) }
                td.soft { (beside) }
            }
        } } }
    }
}

/// Parts of `whole` side by side. The table below it says the same in numbers.
pub fn bar(parts: &[(&str, f64)], whole: f64) -> Markup {
    let mut left = 0.0;
    let pieces: Vec<(usize, &str, f64, f64)> = parts
        .iter()
        .enumerate()
        .filter(|(_, (_, value))| whole > 0.0 && *value > 0.0)
        .map(|(place, (name, value))| {
            let width = (1000.0 * value / whole).min(1000.0 - left);
            left += width;
            (place, *name, left - width, width)
        })
        .collect();
    html! {
        svg.bar viewBox="0 0 1000 24" preserveAspectRatio="none" role="img"
            aria-label="shares; the table has the numbers" {
            rect.rest x="0" y="0" width="1000" height="24" {}
            @for (place, name, x, width) in pieces {
                rect class={ "p" (place) } x=(format!("{x:.1}")) y="0" height="24"
                    width=(format!("{width:.1}")) { title { (name) } }
            }
        }
    }
}

/// The mark of the part at `place` of a bar: its colour, and a letter for who sees none.
pub fn mark(place: usize) -> Markup {
    html! { svg.mark viewBox="0 0 10 10" aria-hidden="true" {
        rect class={ "p" (place) } width="10" height="10" {}
    } " " }
}

/// A drawing of a [`Chart`](crate::Chart).
pub fn drawn(svg: &str) -> Markup {
    PreEscaped(svg.to_owned())
}
