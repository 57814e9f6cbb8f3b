//! The analyser's text, byte for byte, blanks at the ends of lines included.

use std::fmt::Write;

use super::slices::{self, Analysis, Column, rounded};
use super::{Extra, LatencyOptions};
use crate::buckets::BucketUnit;
use crate::log::Log;

/// The text of an analysis.
#[derive(Debug, Clone)]
pub struct LatencyTable {
    names: Vec<String>,
    thresholds: Vec<u32>,
    unit: BucketUnit,
    extra: Extra,
}

const THRESHOLD_COLUMNS: usize = 7;
const RATE_COLUMNS: usize = 11;

/// What comes before the table: the version, the configuration, the rates and the names.
pub fn heading(log: &Log<'_>, path: &str, options: &LatencyOptions) -> String {
    let mut text = format!("{path} is ACT version {}\n\n", log.version);
    if log.unit.is_none() {
        text.push_str("can't find histograms' scale, assuming milliseconds\n");
    }
    let slice_sec = slices::slice_seconds(log, options);
    if i64::try_from(slice_sec) != Ok(options.slice_sec) {
        writeln!(text, "analyzing time slices of {slice_sec} seconds").expect("a string takes all");
    }
    let mut names = vec!["HISTOGRAM NAMES"];
    names.extend(log.announced.iter().map(String::as_str));
    for block in [&log.configuration, &log.derived, &names] {
        for line in block {
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

impl LatencyTable {
    /// A table of histograms as they were asked for.
    ///
    /// # Errors
    /// What is wrong with an option, in the analyser's words.
    pub fn new(options: &LatencyOptions, unit: BucketUnit) -> Result<LatencyTable, String> {
        Ok(LatencyTable {
            names: options.histograms.clone(),
            thresholds: options.thresholds()?,
            unit,
            extra: options.extra,
        })
    }

    /// The four lines above the slices.
    pub fn header(&self) -> String {
        let scale = format!(" %>({})", self.unit.sign());
        let mut lines = ["     ".to_owned(), "     ".to_owned(), "slice".to_owned()];
        let width = self.width();
        for (index, name) in self.names.iter().enumerate() {
            let pad = self.pad(index);
            let rest = width - 1;
            write!(lines[0], "   {name:<rest$}").expect("a string takes all");
            write!(lines[1], "  {pad}{scale:<width$}").expect("a string takes all");
            write!(lines[2], "  {pad}").expect("a string takes all");
            for threshold in &self.thresholds {
                write!(lines[2], "{:>THRESHOLD_COLUMNS$}", 1u64 << threshold)
                    .expect("a string takes all");
            }
            if self.extra == Extra::Rates {
                lines[2].push_str("       rate");
            }
        }
        format!("{}\n{}\n{}\n{}", lines[0], lines[1], lines[2], self.rule())
    }

    /// All slices, with a rule, averages and maxima below; nothing without slices.
    pub fn body(&self, analysis: &Analysis) -> String {
        let Some(first) = analysis.slices.first() else { return String::new() };
        let mut text = String::new();
        let mut sums: Vec<Column> = first.columns.iter().map(blank).collect();
        let mut most = sums.clone();
        for slice in &analysis.slices {
            text.push_str(&self.row(&slice.number.to_string(), &slice.columns));
            for (index, column) in slice.columns.iter().enumerate() {
                fold(&mut sums[index], column, |sum, value| sum + value);
                fold(&mut most[index], column, f64::max);
            }
        }
        let count = analysis.slices.len() as f64;
        for sum in &mut sums {
            let divided = sum.clone();
            fold(sum, &divided, |_, sum| sum / count);
        }
        text + &self.rule() + &self.row("avg", &sums) + &self.row("max", &most)
    }

    fn row(&self, label: &str, columns: &[Column]) -> String {
        let mut line = format!("{label:>5}");
        for (index, column) in columns.iter().enumerate() {
            write!(line, "  {}", self.pad(index)).expect("a string takes all");
            for percent in &column.percent_over {
                write!(line, "{:>THRESHOLD_COLUMNS$.2}", rounded(*percent, 2))
                    .expect("a string takes all");
            }
            if self.extra == Extra::Rates {
                write!(line, "{:>RATE_COLUMNS$.1}", rounded(column.rate, 1))
                    .expect("a string takes all");
            }
        }
        line + "\n"
    }

    fn rule(&self) -> String {
        let mut line = "-----".to_owned();
        for index in 0..self.names.len() {
            write!(line, "  {}", self.pad(index)).expect("a string takes all");
            line.push_str(&" ------".repeat(self.thresholds.len()));
            if self.extra == Extra::Rates {
                line.push_str(" ----------");
            }
        }
        line + "\n"
    }

    fn width(&self) -> usize {
        let rate = if self.extra == Extra::Rates { RATE_COLUMNS } else { 0 };
        self.thresholds.len() * THRESHOLD_COLUMNS + rate
    }

    /// Blanks that make up for a long name of the histogram before.
    fn pad(&self, index: usize) -> String {
        let before = index.checked_sub(1).and_then(|before| self.names.get(before));
        let excess =
            before.map_or(0, |name| (name.chars().count() + 1).saturating_sub(self.width()));
        " ".repeat(excess)
    }
}

fn blank(column: &Column) -> Column {
    Column { total: 0, percent_over: vec![0.0; column.percent_over.len()], rate: 0.0 }
}

fn fold(into: &mut Column, from: &Column, combine: impl Fn(f64, f64) -> f64) {
    for (into, from) in into.percent_over.iter_mut().zip(&from.percent_over) {
        *into = combine(*into, *from);
    }
    into.rate = combine(into.rate, from.rate);
}
