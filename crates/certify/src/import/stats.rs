//! `/stats` of our own server: means since it started.

use serde_json::Value;

use super::{ImportError, Profile};
use crate::config::LoadModel;

/// Bytes of a record besides its key and value.
const RECORD_OVERHEAD: f64 = 32.0;

pub(super) fn import(text: &str) -> Result<Profile, ImportError> {
    let stats: Value = serde_json::from_str(text)
        .map_err(|error| ImportError::at(error.line(), format!("this is no JSON: {error}")))?;
    let figure = |path: &str| {
        let found = stats.pointer(path).and_then(Value::as_f64);
        found.ok_or_else(|| {
            let name = path.trim_start_matches('/').replace('/', ".");
            ImportError::of_text(format!("the statistics lack `{name}`; expected those of /stats"))
        })
    };
    let seconds = figure("/uptime_seconds")?;
    if seconds < 1.0 {
        let problem = "the server ran for less than a second; take its statistics later";
        return Err(ImportError::of_text(problem.to_owned()));
    }
    let bytes = figure("/store/key_bytes/mean")? + figure("/store/value_bytes/mean")?;
    let amplification = figure("/store/write_amplification")?;
    let lwm = if amplification > 1.0 { 100.0 * (1.0 - 1.0 / amplification) } else { 0.0 };
    Ok(Profile {
        reads: Some(figure("/store/flash_hits")? / seconds),
        writes: Some(figure("/store/puts")? / seconds),
        record_bytes: Some(((bytes + RECORD_OVERHEAD).round() as u32).clamp(1, 8 << 20)),
        large_block_kbytes: Some(1024),
        defrag_lwm_pct: Some((lwm.round() as u32).min(99)),
        model: Some(LoadModel::Entresol),
        ..Profile::default()
    })
}
