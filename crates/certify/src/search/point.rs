//! The point that one try adds to the curve of latency against load.

use serde_json::{Value, json};

use crate::verdict::Run;

/// Figures of the judged operations of one try, by response time.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Operations done a second.
    pub done_per_second: f64,
    /// For each bound of the rules the largest share at or over it in any slice, %.
    pub worst_percents: Vec<f64>,
    /// Half took at most so long, ns.
    pub p50_ns: u64,
    /// 99 % did.
    pub p99_ns: u64,
    /// 99.9 % did.
    pub p999_ns: u64,
    /// All did.
    pub longest_ns: u64,
}

impl Point {
    /// Of a run; `None`: nothing was judged in it.
    pub(super) fn of(run: &Run) -> Option<Point> {
        let judged = run.judged_series()?;
        let summary = &run.total.series[judged].response.summary;
        let worst = |index| {
            let shares =
                run.slices.iter().map(|slice| slice.series[judged].response.percent_over(index));
            shares.fold(0.0, f64::max)
        };
        (summary.count > 0).then(|| Point {
            done_per_second: run.total.done_per_second(judged),
            worst_percents: (0..run.bounds.len()).map(worst).collect(),
            p50_ns: summary.p50,
            p99_ns: summary.p99,
            p999_ns: summary.p999,
            longest_ns: summary.max,
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "done_per_second": self.done_per_second,
            "worst_percents": self.worst_percents,
            "p50_ns": self.p50_ns,
            "p99_ns": self.p99_ns,
            "p999_ns": self.p999_ns,
            "longest_ns": self.longest_ns,
        })
    }

    pub(super) fn of_json(value: &Value) -> Option<Point> {
        let time = |name: &str| value[name].as_u64();
        let percents = value["worst_percents"].as_array()?.iter().map(Value::as_f64);
        Some(Point {
            done_per_second: value["done_per_second"].as_f64()?,
            worst_percents: percents.collect::<Option<_>>()?,
            p50_ns: time("p50_ns")?,
            p99_ns: time("p99_ns")?,
            p999_ns: time("p999_ns")?,
            longest_ns: time("longest_ns")?,
        })
    }
}
