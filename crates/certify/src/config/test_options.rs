//! Our own items, for how a load is issued and judged. ACT knows none of them.

use std::path::PathBuf;

/// How the load is issued and judged.
#[derive(Debug, Clone, PartialEq)]
pub struct TestOptions {
    /// When transfers are due.
    pub arrivals: ArrivalKind,
    /// What issues them.
    pub engine: EngineKind,
    /// Where they go.
    pub model: LoadModel,
    /// Transfers in flight at most, each device; 0: as many as the load needs.
    pub queue_depth: u32,
    /// Seed of all random choices; `None`: a new one each time, which is reported.
    pub seed: Option<u64>,
    /// Are blocks read checked against what was written there?
    pub verify: bool,
    /// Directory, on another device, of the journal of writes that the power-cut check reads.
    pub journal: Option<PathBuf>,
    /// All of them must hold.
    pub rules: Vec<LatencyRule>,
    /// Length of a slice that the rules are applied to, seconds.
    pub rule_slice_sec: u32,
    /// Pause before each step of a search, seconds.
    pub rest_sec: u32,
    /// Transfers that may be missing from those due, %.
    pub shortfall_pct: f64,
}

/// When transfers are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrivalKind {
    /// At equal distances.
    Even,
    /// At random, each independent of the others.
    Poisson,
    /// At the times of a file: seconds since its begin, one a line.
    Recorded(PathBuf),
}

/// What issues transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// A few threads over io_uring, open loop.
    Uring,
    /// A thread for each transfer in flight, closed loops, as ACT does.
    Psync,
}

/// Where transfers go and what makes large blocks due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadModel {
    /// Anywhere, at ACT's derived rates.
    Act,
    /// Appends with a free list; defragmentation emerges.
    Engine,
    /// The profile of Entresol's own engine.
    Entresol,
}

/// At most `percent` of the transfers of a slice may take longer than `threshold_ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyRule {
    /// %, 0 to 100.
    pub percent: f64,
    /// ms.
    pub threshold_ms: f64,
}

impl Default for TestOptions {
    fn default() -> TestOptions {
        let rule = |percent, threshold_ms| LatencyRule { percent, threshold_ms };
        TestOptions {
            arrivals: ArrivalKind::Even,
            engine: EngineKind::Uring,
            model: LoadModel::Act,
            queue_depth: 0,
            seed: None,
            verify: false,
            journal: None,
            rules: vec![rule(5.0, 1.0), rule(1.0, 8.0), rule(0.1, 64.0)],
            rule_slice_sec: 3600,
            rest_sec: 60,
            shortfall_pct: 1.0,
        }
    }
}

/// Names of the items, each with the function that reads its value. An error says what was
/// expected.
pub(super) const ITEMS: &[(&str, ReadValue)] = &[
    ("arrivals", read_arrivals),
    ("engine", read_engine),
    ("model", read_model),
    ("queue-depth", |test, text| number(text, 0, 65536).map(|value| test.queue_depth = value)),
    ("seed", |test, text| {
        let seed = text.parse().map_err(|_| "a whole number from 0 to 2^64 - 1".to_owned())?;
        test.seed = Some(seed);
        Ok(())
    }),
    ("verify", |test, text| super::strict::flag(text).map(|value| test.verify = value)),
    ("journal", |test, text| {
        test.journal = Some(PathBuf::from(text));
        Ok(())
    }),
    ("rules", read_rules),
    ("rule-slice-sec", |test, text| {
        number(text, 1, u32::MAX).map(|value| test.rule_slice_sec = value)
    }),
    ("rest-sec", |test, text| number(text, 0, u32::MAX).map(|value| test.rest_sec = value)),
    ("shortfall-pct", |test, text| match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => {
            test.shortfall_pct = percent;
            Ok(())
        }
        _ => Err("a percentage from 0 to 100".to_owned()),
    }),
];

pub(super) type ReadValue = fn(&mut TestOptions, &str) -> Result<(), String>;

fn number(text: &str, least: u32, most: u32) -> Result<u32, String> {
    match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("a whole number from {least} to {most}")),
    }
}

fn read_arrivals(test: &mut TestOptions, text: &str) -> Result<(), String> {
    test.arrivals = match text.split_once([' ', '\t']) {
        None if text == "even" => ArrivalKind::Even,
        None if text == "poisson" => ArrivalKind::Poisson,
        Some(("recorded", path)) => ArrivalKind::Recorded(PathBuf::from(path.trim())),
        _ => return Err("`even`, `poisson`, or `recorded` and the path of a file".to_owned()),
    };
    Ok(())
}

fn read_engine(test: &mut TestOptions, text: &str) -> Result<(), String> {
    test.engine = match text {
        "uring" => EngineKind::Uring,
        "psync" => EngineKind::Psync,
        _ => return Err("`uring` or `psync`".to_owned()),
    };
    Ok(())
}

fn read_model(test: &mut TestOptions, text: &str) -> Result<(), String> {
    test.model = match text {
        "act" => LoadModel::Act,
        "engine" => LoadModel::Engine,
        "entresol" => LoadModel::Entresol,
        _ => return Err("`act`, `engine` or `entresol`".to_owned()),
    };
    Ok(())
}

fn read_rules(test: &mut TestOptions, text: &str) -> Result<(), String> {
    let mut rules = Vec::new();
    for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        let rule = word.split_once('/').and_then(|(percent, threshold)| {
            let percent = percent.parse().ok().filter(|p| *p > 0.0 && *p <= 100.0)?;
            let known = |ms: &f64| (0.001..=3_600_000.0).contains(ms);
            let threshold_ms = threshold.parse().ok().filter(known)?;
            Some(LatencyRule { percent, threshold_ms })
        });
        let expected = "pairs of percent/milliseconds such as `5/1 1/8 0.1/64`";
        rules.push(rule.ok_or_else(|| format!("{expected}; `{word}` is none"))?);
    }
    if rules.is_empty() {
        return Err("at least one pair of percent/milliseconds".to_owned());
    }
    test.rules = rules;
    Ok(())
}
