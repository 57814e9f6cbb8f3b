//! A command's figures: printed as a table for people or as one JSON object for scripts, from the
//! same fields in the same order.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use entresol_workload::Summary;
use serde_json::{Map, Value, json};

use crate::units;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Tables for people.
    Table,
    /// One JSON object.
    Json,
}

/// Named figures in the order they were set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    fields: Map<String, Value>,
    /// Names of fields that are figures of a part, and get tables of their own.
    parts: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    /// An empty report of `what`.
    pub(crate) fn new(what: &str) -> Report {
        let mut report = Report::default();
        report.set("bench", what);
        report
    }

    /// Sets a figure.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// Sets a figure rounded to what a reader can use.
    pub(crate) fn figure(&mut self, name: &str, value: f64) {
        self.set(name, rounded(value));
    }

    /// Sets the figures of a part of the bench.
    pub(crate) fn part(&mut self, name: &str, figures: Map<String, Value>) {
        self.parts.push(name.to_owned());
        self.set(name, figures);
    }

    /// Adds a sentence that qualifies the figures.
    pub(crate) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// The figure called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.fields.get(name).and_then(Value::as_f64)
    }

    /// The figures as JSON.
    pub(crate) fn into_json(self) -> Value {
        let mut fields = self.fields;
        if !self.notes.is_empty() {
            fields.insert("notes".to_owned(), json!(self.notes));
        }
        Value::Object(fields)
    }

    /// Prints the figures to standard output.
    pub(crate) fn print(self, format: Format) {
        if format == Format::Json {
            println!("{}", self.into_json());
            return;
        }
        let mut table = plain_table(&["figure", "value"]);
        let mut lists = Vec::new();
        for (name, value) in &self.fields {
            match value {
                Value::Array(rows) if rows.is_empty() => {
                    table.add_row([name.as_str(), "none"]);
                }
                Value::Array(rows) if rows.iter().all(Value::is_object) => {
                    lists.push((name, rows_table(rows)));
                }
                Value::Object(figures) if self.parts.contains(name) => {
                    let mut part = plain_table(&["figure", "value"]);
                    for (name, value) in figures {
                        part.add_row([name.clone(), text(value)]);
                    }
                    lists.push((name, part));
                }
                _ => {
                    table.add_row([name.clone(), text(value)]);
                }
            }
        }
        println!("{table}");
        for (name, table) in lists {
            println!("{name}\n{table}");
        }
        for note in &self.notes {
            println!("* {note}");
        }
    }
}

/// A latency summary recorded in nanoseconds, as JSON in microseconds.
pub(crate) fn latency_us(summary: &Summary) -> Value {
    let us = |ns: u64| rounded(ns as f64 / 1e3);
    json!({
        "p50": us(summary.p50),
        "p90": us(summary.p90),
        "p99": us(summary.p99),
        "p999": us(summary.p999),
        "p9999": us(summary.p9999),
        "max": us(summary.max),
        "n": summary.count,
        "min": us(summary.min),
        "mean": rounded(summary.mean / 1e3),
        "geometric_mean": rounded(summary.geometric_mean / 1e3),
        "standard_deviation": rounded(summary.standard_deviation / 1e3),
    })
}

/// A table with headings, figures to the right.
pub(crate) fn plain_table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(headings.to_vec());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A number to four significant decimals, so that output stays readable.
pub(crate) fn rounded(value: f64) -> f64 {
    let decimals = if value.abs() >= 1000.0 { 1 } else { 4 };
    let factor = 10f64.powi(decimals);
    (value * factor).round() / factor
}

/// The middle of `values`; 0 where there are none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The median of each run's rate over the mean rate of the probes before and after it. `probes` has
/// one more than `runs`.
pub(crate) fn fraction(runs: &[f64], probes: &[f64]) -> f64 {
    let around = probes.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
    let ratios: Vec<f64> = runs.iter().zip(around).map(|(run, probe)| run / probe).collect();
    median(&ratios)
}

fn rows_table(rows: &[Value]) -> Table {
    let headings: Vec<&str> = rows
        .first()
        .and_then(Value::as_object)
        .map(|row| row.keys().map(String::as_str).collect())
        .unwrap_or_default();
    let mut table = plain_table(&headings);
    for row in rows {
        table.add_row(headings.iter().map(|name| text(&row[*name])).collect::<Vec<_>>());
    }
    table
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => units::number(number.as_f64().unwrap_or(0.0)),
        Value::Object(fields) if fields.contains_key("geometric_mean") => {
            let shown = [("p50", "p50"), ("p99", "p99"), ("p99.9", "p999"), ("max", "max")];
            let parts = shown.map(|(label, name)| format!("{label} {}", text(&fields[name])));
            parts.join(" · ")
        }
        Value::Object(fields) => {
            let parts: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name} {}", text(value))).collect();
            parts.join(" · ")
        }
        Value::Array(items) => {
            let is_prose = items.iter().all(Value::is_string);
            let parts: Vec<String> = items.iter().map(text).collect();
            parts.join(if is_prose { "\n" } else { "  " })
        }
        Value::Bool(answer) => if *answer { "yes" } else { "no" }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_run_is_held_against_the_probes_around_it() {
        assert_eq!(fraction(&[50.0, 200.0, 80.0], &[100.0, 100.0, 300.0, 100.0]), 0.5);
        assert_eq!(fraction(&[], &[1.0]), 0.0);
    }

    /// What was damaged stood in one line, as wide as all of it, and so did the table.
    #[test]
    fn sentences_of_a_list_stand_below_each_other() {
        assert_eq!(text(&json!(["one is", "another is"])), "one is\nanother is");
        assert_eq!(text(&json!([1, 2])), "1  2");
    }

    #[test]
    fn json_keeps_the_order_of_figures() {
        let mut report = Report::new("x");
        report.figure("z", 1.23456789);
        report.set("a", 5);
        report.note("so");
        assert_eq!(
            report.into_json().to_string(),
            r#"{"bench":"x","z":1.2346,"a":5,"notes":["so"]}"#
        );
    }
}
