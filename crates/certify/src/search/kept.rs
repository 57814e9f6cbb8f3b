//! The tries of a search as JSON, so that an interrupted search goes on in another process.

use serde_json::{Value, json};

use crate::search::{Point, Purpose, Search, Try};
use crate::verdict::{Judgement, Verdict};

/// The tries, and what they are tries of.
pub fn tries_json(search: &Search, configuration: &str, tries: &[Try]) -> Value {
    let tries: Vec<Value> = tries.iter().map(one_json).collect();
    json!({ "search": identity(search, configuration), "tries": tries })
}

/// The tries that [`tries_json`] wrote of the same search; a sentence where it wrote none of it.
pub fn tries_of(
    search: &Search,
    configuration: &str,
    kept: &Value,
) -> Result<Vec<Try>, &'static str> {
    if kept["search"] != identity(search, configuration) {
        return Err("it belongs to a search of another configuration or with other options");
    }
    let tries = kept["tries"].as_array().ok_or("it has no list of tries")?;
    tries.iter().map(|one| one_of(one).ok_or("one of its tries is damaged")).collect()
}

/// What must be the same for tries to count.
fn identity(search: &Search, configuration: &str) -> Value {
    json!({
        "configuration": crc32c::crc32c(configuration.as_bytes()),
        "rules": search.rules.bounds_text(),
        "slice_seconds": search.rules.slice_seconds,
        "shortfall_percent": search.rules.shortfall_percent,
        "step": search.step,
        "seconds": search.seconds,
        "confirm_seconds": search.confirm_seconds,
    })
}

fn one_json(tried: &Try) -> Value {
    let mut notes: Vec<String> = tried.judgement.reasons.iter().map(ToString::to_string).collect();
    notes.extend(tried.judgement.notes.iter().cloned());
    json!({
        "steps": tried.steps,
        "confirm": tried.purpose == Purpose::Confirm,
        "seconds": tried.seconds,
        "verdict": tried.judgement.verdict.word(),
        "notes": notes,
        "point": tried.point.as_ref().map(Point::to_json),
    })
}

fn one_of(one: &Value) -> Option<Try> {
    let verdict = match one["verdict"].as_str()? {
        "pass" => Verdict::Pass,
        "fail" => Verdict::Fail,
        _ => return None,
    };
    let notes = one["notes"].as_array()?.iter().map(|note| note.as_str().map(str::to_owned));
    let judgement =
        Judgement { verdict, reasons: Vec::new(), notes: notes.collect::<Option<_>>()? };
    let purpose = if one["confirm"].as_bool()? { Purpose::Confirm } else { Purpose::Probe };
    let steps = u32::try_from(one["steps"].as_u64()?).ok().filter(|steps| *steps > 0)?;
    let seconds = one["seconds"].as_f64().filter(|seconds| *seconds >= 0.0)?;
    let point = match &one["point"] {
        Value::Null => None,
        point => Some(Point::of_json(point)?),
    };
    Some(Try { steps, purpose, seconds, judgement, point, run: None })
}
