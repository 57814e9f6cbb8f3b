//! What a query of Prometheus names: metrics, labels, values of labels.
//!
//! It is taken to words, not understood: `promtool check rules` does that.

use crate::scrape::Scrape;

/// Words of the language that are no metrics.
const WORDS: [&str; 24] = [
    "and",
    "avg",
    "changes",
    "count",
    "group_left",
    "group_right",
    "histogram_quantile",
    "ignoring",
    "increase",
    "max",
    "min",
    "offset",
    "on",
    "or",
    "rate",
    "scalar",
    "sum",
    "time",
    "unless",
    "by",
    "without",
    "clamp_max",
    "clamp_min",
    "bool",
];
/// Words before a list of labels.
const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];

/// What a query names.
pub(crate) struct Query {
    text: String,
    metrics: Vec<Metric>,
    /// Labels that results are grouped or shown by.
    labels: Vec<String>,
}

#[derive(Default)]
struct Metric {
    name: String,
    /// Labels that are asked for, and the value if it has to be just that.
    labels: Vec<(String, Option<String>)>,
}

impl Query {
    /// Takes a query to words.
    pub(crate) fn of(text: &str) -> Query {
        let mut query = Query { text: text.to_owned(), metrics: Vec::new(), labels: Vec::new() };
        let mut rest = text;
        let mut last = String::new();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '{' => {
                    let end = rest.find('}').expect("braces are closed");
                    query.metrics.last_mut().expect("a metric is before them").ask(&rest[1..end]);
                    end + 1
                }
                '(' if GROUPING.contains(&last.as_str()) => {
                    let end = rest.find(')').expect("parentheses are closed");
                    let labels = rest[1..end].split(',').map(|label| label.trim().to_owned());
                    query.labels.extend(labels.filter(|label| !label.is_empty()));
                    end + 1
                }
                '[' => rest.find(']').expect("brackets are closed") + 1,
                _ if first.is_alphanumeric() || first == '_' => {
                    let is_part = |sign: char| sign.is_alphanumeric() || "_.".contains(sign);
                    rest.find(|sign| !is_part(sign)).unwrap_or(rest.len())
                }
                _ => first.len_utf8(),
            };
            let word = &rest[..length];
            if first.is_alphabetic() && !WORDS.contains(&word) {
                query.metrics.push(Metric { name: word.to_owned(), labels: Vec::new() });
            }
            if !word.trim().is_empty() {
                last = word.to_owned();
            }
            rest = &rest[length..];
        }
        query
    }

    /// The same with the labels that a template shows, as `{{label}}` or `{{ $labels.label }}`.
    pub(crate) fn with_template(mut self, template: &str) -> Query {
        for part in template.split("{{").skip(1) {
            let shown = part.split("}}").next().unwrap_or_default().trim();
            let label = shown.strip_prefix("$labels.").unwrap_or(shown);
            if !label.starts_with('$') {
                self.labels.push(label.to_owned());
            }
        }
        self
    }

    /// Sentences about what is in none of `scrapes`.
    pub(crate) fn faults(&self, scrapes: &[Scrape]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut known: Vec<&str> = ADDED.to_vec();
        for Metric { name, labels } in &self.metrics {
            if name == "up" {
                continue;
            }
            let found: Vec<_> =
                scrapes.iter().filter_map(|scrape| scrape.samples.get(name)).collect();
            if found.is_empty() {
                faults.push(format!("there is no metric `{name}`: {}", self.text));
                continue;
            }
            known.extend(found.iter().flat_map(|labels| labels.keys()).map(String::as_str));
            for (label, value) in labels.iter().filter(|(one, _)| !ADDED.contains(&one.as_str())) {
                let values: Vec<_> = found.iter().filter_map(|labels| labels.get(label)).collect();
                if values.is_empty() {
                    faults.push(format!("{name} has no label `{label}`: {}", self.text));
                } else if let Some(value) = value
                    && !values.iter().any(|values| values.contains(value))
                {
                    faults.push(format!("{label} of {name} is never `{value}`: {}", self.text));
                }
            }
        }
        for label in self.labels.iter().filter(|label| !known.contains(&label.as_str())) {
            if faults.is_empty() {
                faults.push(format!("no metric has the label `{label}`: {}", self.text));
            }
        }
        faults
    }
}

impl Metric {
    fn ask(&mut self, matchers: &str) {
        for matcher in matchers.split(',') {
            let (label, value) = matcher.split_once('=').expect("a label is compared");
            let exact = !value.starts_with('~');
            let value = value.trim_matches(['~', '"']).to_owned();
            let label = label.trim_end_matches('!').trim().to_owned();
            self.labels.push((label, exact.then_some(value)));
        }
    }
}
