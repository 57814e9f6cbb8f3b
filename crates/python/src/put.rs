//! How an entry is put: keywords of `put`, `put_many` and `touch`.

use std::num::NonZeroU32;

use entresol_host::now;
use entresol_tier::{Condition, Expiry, PutOptions, Timestamp, Version};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failed::Failed;
use crate::options;

const MILLISECONDS: f64 = 1000.0;
/// Seconds of a lifetime at most, which is some thousand years.
const SECONDS_MAX: f64 = 1e11;

/// Reads `ttl`, `idle`, `if_absent`, `if_present`, `if_version` and `durability`.
pub(crate) fn parse(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<PutOptions> {
    let mut put = PutOptions::default();
    let mut conditions = 0;
    for (keyword, value) in keywords.into_iter().flatten() {
        let keyword: String = keyword.extract()?;
        if value.is_none() {
            continue;
        }
        let condition = match keyword.as_str() {
            "ttl" => {
                put.expiry.at = Some(end(&value)?);
                continue;
            }
            "idle" => {
                put.expiry.idle_seconds = Some(idle(&value)?);
                continue;
            }
            "durability" => {
                put.durability = Some(options::durability(&value)?);
                continue;
            }
            "if_absent" => value.extract::<bool>()?.then_some(Condition::Absent),
            "if_present" => value.extract::<bool>()?.then_some(Condition::Present),
            "if_version" => Some(Condition::Version(Version(value.extract()?))),
            _ => {
                let sentence = format!(
                    "there is no option `{keyword}` of a put; there are ttl, idle, if_absent, \
                     if_present, if_version, durability"
                );
                return Err(PyTypeError::new_err(sentence));
            }
        };
        if let Some(condition) = condition {
            put.condition = condition;
            conditions += 1;
        }
    }
    if conditions > 1 {
        let sentence = "conditions of a put: expected one at most, found several".to_owned();
        return Err(Failed::invalid(sentence).into());
    }
    Ok(put)
}

/// An end by lifetime and idle time; none of both is no end.
pub(crate) fn expiry(
    ttl: Option<&Bound<'_, PyAny>>,
    idle_time: Option<&Bound<'_, PyAny>>,
) -> PyResult<Expiry> {
    Ok(Expiry { at: ttl.map(end).transpose()?, idle_seconds: idle_time.map(idle).transpose()? })
}

/// The moment in so many seconds.
fn end(ttl: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    let seconds: f64 = ttl.extract()?;
    if !(seconds > 0.0 && seconds <= SECONDS_MAX) {
        let sentence = format!("option `ttl`: expected seconds above 0, found {seconds}");
        return Err(Failed::invalid(sentence).into());
    }
    Ok(Timestamp(now().0 + (seconds * MILLISECONDS).ceil() as u64))
}

fn idle(seconds: &Bound<'_, PyAny>) -> PyResult<NonZeroU32> {
    let wanted: i64 = seconds.extract()?;
    let seconds = u32::try_from(wanted).ok().and_then(NonZeroU32::new);
    seconds.ok_or_else(|| {
        let sentence = format!("option `idle`: expected whole seconds above 0, found {wanted}");
        Failed::invalid(sentence).into()
    })
}
