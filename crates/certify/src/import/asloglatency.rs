//! Tables that `asloglatency` printed: the name of a histogram, thresholds, slices, averages.

use super::{ImportError, Profile, Selection, the_only};
use crate::config::SizeHistogram;

/// One table.
struct Table<'a> {
    line: usize,
    namespace: &'a str,
    histogram: &'a str,
    thresholds: Vec<f64>,
    /// Of the row `avg`: percentages, and operations a second last.
    average: Vec<f64>,
}

pub(super) fn import(text: &str, selection: &Selection) -> Result<Profile, ImportError> {
    let tables = tables(text)?;
    let mut namespaces: Vec<&str> = tables.iter().map(|table| table.namespace).collect();
    namespaces.dedup();
    namespaces.sort_unstable();
    namespaces.dedup();
    let namespace = the_only("namespace", selection.namespace.as_deref(), &namespaces)?;
    let mut sizes = Profile::default();
    let mut requests = Profile::default();
    for table in tables.iter().filter(|table| table.namespace == namespace) {
        match table.histogram {
            "device-read-size" => {
                sizes.read_sizes = Some(table.sizes()?);
                sizes.reads = table.average.last().copied();
            }
            "device-write-size" => {
                sizes.write_sizes = Some(table.sizes()?);
                sizes.writes = table.average.last().copied();
            }
            "read" => requests.reads = table.average.last().copied(),
            "write" => requests.writes = table.average.last().copied(),
            _ => {}
        }
    }
    // What devices did comes before what clients asked for.
    Ok(sizes.complete(requests))
}

impl Table<'_> {
    fn sizes(&self) -> Result<SizeHistogram, ImportError> {
        let powers = (0..).map(|power| 2f64.powi(power));
        if !self.thresholds.iter().copied().zip(powers).all(|(found, expected)| found == expected) {
            let problem = format!(
                "the columns of `{}` are not 1, 2, 4, … bytes; run asloglatency with `-e 1`",
                self.histogram
            );
            return Err(ImportError::at(self.line, problem));
        }
        let (percents, _) = self.average.split_at(self.thresholds.len());
        let end = percents.iter().position(|percent| *percent == 0.0).map(|at| at + 1);
        let Some(end) = end else {
            let problem = format!(
                "the last column of `{}` is not 0, so larger records are left out; run \
                 asloglatency with a larger `-n`",
                self.histogram
            );
            return Err(ImportError::at(self.line, problem));
        };
        let list = percents[..end].iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        SizeHistogram::parse(&list).map_err(|problem| ImportError::at(self.line, problem))
    }
}

/// Is `word` the name of a histogram, such as `{ns}-read`?
fn is_name(word: &str) -> bool {
    word.starts_with('{') && word.contains("}-")
}

fn tables(text: &str) -> Result<Vec<Table<'_>>, ImportError> {
    let mut tables = Vec::new();
    let mut name = None;
    let mut open: Option<Table<'_>> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let mut words = line.split_whitespace();
        match words.next() {
            Some(word) if is_name(word) => name = Some(word),
            // Since 2018 the name stands behind a label.
            Some("Histogram") => name = words.find(|word| is_name(word)).or(name),
            Some("slice-to") => {
                let whole = name.and_then(|name| name[1..].split_once("}-"));
                let Some((namespace, histogram)) = whole else {
                    let problem = "no name such as `{ns}-device-read-size` precedes the table";
                    return Err(ImportError::at(number, problem.to_owned()));
                };
                let thresholds = words.filter_map(|word| word.parse().ok()).collect();
                open =
                    Some(Table { line: number, namespace, histogram, thresholds, average: vec![] });
            }
            Some("avg") => {
                let Some(mut table) = open.take() else { continue };
                table.average = words.filter_map(|word| word.parse().ok()).collect();
                if table.average.len() != table.thresholds.len() + 1 {
                    let problem = format!(
                        "the averages have {} figures; expected {} percentages and the rate",
                        table.average.len(),
                        table.thresholds.len()
                    );
                    return Err(ImportError::at(number, problem));
                }
                tables.push(table);
            }
            _ => {}
        }
    }
    if let Some(table) = open {
        let problem =
            format!("the table of `{}` has no row `avg`; it is cut short", table.histogram);
        return Err(ImportError::at(table.line, problem));
    }
    Ok(tables)
}
