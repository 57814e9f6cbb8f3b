//! A configuration as the text of a file: the required items, and items that differ from their
//! defaults.

use std::fmt::Write;

use super::items::{ItemValue, Subject};
use super::{ArrivalKind, EngineKind, Index, LoadModel, Storage, TestOptions, legacy};

impl Storage {
    /// A file that [`Storage::parse`] reads back, with `comment` above, a line for each of its.
    /// Percentages of histograms are rounded to two digits.
    pub fn to_text(&self, comment: &str) -> String {
        file_of(self, comment, &["record-bytes", "large-block-op-kbytes"])
    }
}

impl Index {
    /// A file that [`Index::parse`] reads back, with `comment` above, a line for each of its. No
    /// reader of storage configurations takes it for one.
    pub fn to_text(&self, comment: &str) -> String {
        file_of(self, comment, &["cache-threads"])
    }
}

/// Items that every file shows.
const SHOWN: [&str; 3] = ["test-duration-sec", "read-reqs-per-sec", "write-reqs-per-sec"];

fn file_of<T: Subject>(it: &T, comment: &str, shown: &[&str]) -> String {
    let mut text = String::new();
    for line in comment.lines() {
        text.push_str(&format!("# {line}\n"));
    }
    let (mut it, mut default) = (it.clone(), T::default());
    for item in T::ACT_ITEMS.iter().chain(T::PAPER_ITEMS) {
        let is_shown = SHOWN.contains(&item.name) || shown.contains(&item.name);
        let value = match item.value {
            ItemValue::Devices => Some(it.devices().join(",")),
            ItemValue::Count(field) => {
                let value = *field(&mut it);
                (is_shown || value != *field(&mut default)).then(|| value.to_string())
            }
            ItemValue::Flag(field) => {
                let value = *field(&mut it);
                (value != *field(&mut default)).then(|| yes_or_no(value).to_owned())
            }
            ItemValue::Sizes(field) => field(&mut it).as_ref().map(ToString::to_string),
            ItemValue::Test(_) | ItemValue::Legacy(_) => None,
        };
        if let Some(value) = value {
            line(&mut text, item.name, &value);
        }
    }
    for &(name, item) in legacy::ITEMS {
        if let Some(value) = it.legacy_value(item) {
            line(&mut text, name, &value.to_string());
        }
    }
    own_items(&mut text, it.test(), &TestOptions::default());
    text
}

fn own_items(text: &mut String, test: &TestOptions, default: &TestOptions) {
    match &test.arrivals {
        ArrivalKind::Even => {}
        ArrivalKind::Poisson => line(text, "arrivals", "poisson"),
        ArrivalKind::Recorded(path) => {
            line(text, "arrivals", &format!("recorded {}", path.display()));
        }
    }
    if test.engine == EngineKind::Psync {
        line(text, "engine", "psync");
    }
    match test.model {
        LoadModel::Act => {}
        LoadModel::Engine => line(text, "model", "engine"),
        LoadModel::Entresol => line(text, "model", "entresol"),
    }
    if test.queue_depth != default.queue_depth {
        line(text, "queue-depth", &test.queue_depth.to_string());
    }
    if let Some(seed) = test.seed {
        line(text, "seed", &seed.to_string());
    }
    if test.verify {
        line(text, "verify", "yes");
    }
    if let Some(path) = &test.journal {
        line(text, "journal", &path.display().to_string());
    }
    if test.rules != default.rules {
        let rules: Vec<String> = test
            .rules
            .iter()
            .map(|rule| format!("{}/{}", rule.percent, rule.threshold_ms))
            .collect();
        line(text, "rules", &rules.join(" "));
    }
    if test.rule_slice_sec != default.rule_slice_sec {
        line(text, "rule-slice-sec", &test.rule_slice_sec.to_string());
    }
    if test.rest_sec != default.rest_sec {
        line(text, "rest-sec", &test.rest_sec.to_string());
    }
    if test.shortfall_pct != default.shortfall_pct {
        line(text, "shortfall-pct", &test.shortfall_pct.to_string());
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    writeln!(text, "{name}: {value}").expect("writing to a string cannot fail");
}

fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}
